"""What can be chosen: labels, operators, detectors, policies."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from allonym import registry
from allonym.errors import UnknownNameError
from allonym.labels import TAXONOMY
from allonym.policy import Policy, presets
from allonym.replace.mention import get_operator, traits_of
from allonym.server.access import Who, needs, services_of
from allonym.server.policies import policy_of
from allonym.server.services import Services
from allonym.server.wire import choices as wire

router = APIRouter(prefix="/v1", tags=["choices"])
Within = Annotated[Services, Depends(services_of)]
PolicyName = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]
_NEEDS = {"presidio": "presidio_analyzer"}
_CONFIGURED = frozenset(("ensemble", "flair", "gliner", "llm", "mitie", "spacy", "transformers"))
"""Detectors that run only under a policy that names their model, members or endpoint."""

_PLAIN = frozenset(("keep", "suppress", "mask", "generalise", "sanitize", "hash"))
"""Operators whose replacements do not tell what stood there."""


@router.get("/labels", summary="The taxonomy")
def labels(who: Annotated[Who, needs()]) -> wire.Labels:
    """Every kind of thing that identifies."""
    rows = [
        wire.LabelOut(name=one.name, parent=one.parent, kind=one.kind, risk=one.risk, description=one.description)
        for one in TAXONOMY
    ]
    return wire.Labels(labels=rows)


@router.get("/operators", summary="Ways to replace")
def operators(who: Annotated[Who, needs()]) -> wire.Operators:
    """All operators."""
    rows = []
    for name in registry.operators.names():
        operator = get_operator(name)
        first = (inspect.getdoc(operator) or "").split("\n\n")[0].replace("\n", " ")
        traits = traits_of(operator)
        reversible = name not in _PLAIN and not traits.lossy
        rows.append(wire.OperatorOut(name=name, reversible=reversible, keyed=traits.keyed, description=first))
    return wire.Operators(operators=rows)


@router.get("/detectors", summary="Ways to find")
def detectors(who: Annotated[Who, needs()]) -> wire.Detectors:
    """All detectors, and which of them any request may add. What needs a model, members or an endpoint runs only under
    a policy that names them."""
    rows = [wire.DetectorOut(name=name, available=_runs(name)) for name in registry.detectors.names()]
    return wire.Detectors(detectors=rows)


def _runs(detector: str) -> bool:
    return detector not in _CONFIGURED and (detector not in _NEEDS or find_spec(_NEEDS[detector]) is not None)


@router.get("/policies", summary="All policies")
def policies(who: Annotated[Who, needs()], services: Within) -> wire.PoliciesOut:
    """Presets, then what admins stored."""
    rows = []
    for name in services.policies.names():
        policy = policy_of(services.policies.source(name))
        rows.append(_short(name, policy))
    return wire.PoliciesOut(policies=rows)


@router.get("/policies/{name}", summary="One policy")
def policy(name: PolicyName, who: Annotated[Who, needs()], services: Within) -> wire.PolicyDetail:
    """What a policy does with each label."""
    return _detail(name, _known(name, services), services.policies.toml(name) if who.may("admin") else None)


@router.put("/policies/{name}", summary="Store a policy")
def store(
    name: PolicyName, body: wire.PolicyText, who: Annotated[Who, needs("admin")], services: Within
) -> wire.PolicyDetail:
    """Keep a policy in TOML under a name. It may extend a preset; it reads no file."""
    made = services.policies.store(name, body.toml)
    services.accounts.record(who, f"policy {name} stored")
    return _detail(name, made, body.toml)


@router.delete("/policies/{name}", status_code=204, summary="Remove a stored policy")
def remove(name: PolicyName, who: Annotated[Who, needs("admin")], services: Within) -> Response:
    """Remove a stored policy. Presets stay."""
    services.policies.remove(name)
    services.accounts.record(who, f"policy {name} removed")
    return Response(status_code=204)


def _known(name: str, services: Services) -> Policy:
    try:
        return policy_of(services.policies.source(name))
    except UnknownNameError as error:
        error.status = 404
        raise


def _short(name: str, policy: Policy) -> wire.PolicyOut:
    used = {policy.default.operator, *(rule.operator for rule in policy.rules.values())}
    keyed = any(traits_of(get_operator(one)).keyed for one in sorted(used))
    return wire.PolicyOut(name=name, description=policy.description, preset=name in presets(), keyed=keyed)


def _detail(name: str, policy: Policy, toml: str | None) -> wire.PolicyDetail:
    rules = {
        label.name: wire.RuleOut(operator=policy.rule(label.name).operator, threshold=policy.threshold_for(label.name))
        for label in policy.taxonomy
        if policy.looks_for(label.name)
    }
    short = _short(name, policy).model_dump()
    return wire.PolicyDetail(**short, toml=toml, detectors=list(policy.detectors), rules=rules)

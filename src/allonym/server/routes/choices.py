"""What a request can choose from: labels, operators, detectors, policies."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Path

from allonym import registry
from allonym.detection.languages import read_language_names
from allonym.document import Document
from allonym.errors import UnknownNameError
from allonym.labels import TAXONOMY
from allonym.policy import Policy, presets
from allonym.project import first_policy
from allonym.project.questions import QUESTIONS
from allonym.protocol import get_operator, get_operator_traits
from allonym.server.policies import load_policy, parse_stored_policy
from allonym.server.routes.parameters import Admin, Anonymizing, AnyServices, SignedIn
from allonym.server.wire import accounts as wire
from allonym.server.wire.jobs import SWAP_SETTINGS
from allonym.settings import describe_schema
from allonym.swap.corpus import STATES
from allonym.swap.settings import Settings
from allonym.swap.settings import presets as swap_presets

router = APIRouter(prefix="/v1", tags=["choices"])
PolicyName = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]
_MODULES = {"presidio": "presidio_analyzer"}  # that detectors need
_CONFIGURED = frozenset(("ensemble", "flair", "gliner", "llm", "mitie", "spacy", "transformers", "word_tagger"))
"""Detectors that run only under a policy that names their model, members or endpoint."""

_IRREVERSIBLE = frozenset(("keep", "suppress", "mask", "generalise", "sanitize", "hash"))
"""Operators whose replacements do not lead back to an original."""


@router.get("/labels", summary="The taxonomy")
def list_labels(caller: SignedIn) -> wire.Labels:
    """Every label of what identifies."""
    return wire.Labels(labels=[wire.LabelOut.from_object(label) for label in TAXONOMY])


@router.get("/operators", summary="Operators")
def list_operators(caller: SignedIn) -> wire.Operators:
    """All operators: the ways to make a replacement."""
    rows = []
    for name in registry.operators.names():
        operator = get_operator(name)
        summary = (inspect.getdoc(operator) or "").split("\n\n")[0].replace("\n", " ")
        traits = get_operator_traits(operator)
        reversible = name not in _IRREVERSIBLE and not traits.lossy
        rows.append(wire.OperatorOut(name=name, reversible=reversible, keyed=traits.keyed, description=summary))
    return wire.Operators(operators=rows)


@router.get("/detectors", summary="Detectors")
def list_detectors(caller: SignedIn) -> wire.Detectors:
    """All detectors, and which of them any request may add. A detector that needs a model, members or an endpoint runs
    only under a policy that names them."""
    rows = [wire.DetectorOut(name=name, available=_is_addable_by_request(name)) for name in registry.detectors.names()]
    return wire.Detectors(detectors=rows)


def _is_addable_by_request(detector: str) -> bool:
    is_installed = detector not in _MODULES or find_spec(_MODULES[detector]) is not None
    return detector not in _CONFIGURED and is_installed


@router.get("/swap-settings", summary="Settings of swapping")
def describe_swap_settings(caller: SignedIn) -> dict[str, Any]:
    """The JSON schema of those options of a job of the kind `swap` that settle how it searches, for a form. The
    defaults are those of the settings `default`. `presets` has the categories of each preset with their states, of
    which `states` are all."""
    categories = {name: dict(Settings.load(name).categories) for name in swap_presets()}
    return {**describe_schema(tuple(SWAP_SETTINGS.values())), "presets": categories, "states": list(STATES)}


@router.get("/policies", summary="All policies")
def list_policies(caller: SignedIn, services: AnyServices) -> wire.PoliciesOut:
    """Presets, then the policies that admins stored."""
    names = services.policies.list_policy_names()
    rows = [_summarise_policy(name, load_policy(services.policies.make_policy_json(name))) for name in names]
    return wire.PoliciesOut(policies=rows)


@router.get("/policies/{name}", summary="One policy")
def get_policy(name: PolicyName, caller: SignedIn, services: AnyServices) -> wire.PolicyDetail:
    """What a policy does with each label."""
    try:
        policy = load_policy(services.policies.make_policy_json(name))
    except UnknownNameError as error:
        error.status = 404
        raise
    return _describe_policy(
        name, policy, services.policies.find_stored_toml(name) if "admin" in caller.permissions else None
    )


@router.put("/policies/{name}", summary="Store a policy")
def store_policy(name: PolicyName, body: wire.PolicyText, caller: Admin, services: AnyServices) -> wire.PolicyDetail:
    """Store a policy in TOML under a name. It may extend a preset; it reads no file."""
    policy = services.policies.store_policy(name, body.toml)
    services.accounts.record_action(caller, f"policy {name} stored")
    return _describe_policy(name, policy, body.toml)


@router.post("/first-policy", summary="A first policy for some texts")
async def suggest_policy(body: wire.FirstPolicy, caller: Anonymizing, services: AnyServices) -> wire.FirstPolicyOut:
    """The questions of `allonym init` with answers that fit a sample of texts, the policy in TOML that they make, and
    what it does to passages of the sample. Nothing is stored. An answer that is sent holds; the others follow it."""
    return wire.FirstPolicyOut.from_values(await services.kernel.run(make_first_policy, body))


def make_first_policy(body: wire.FirstPolicy) -> dict[str, Any]:
    """Return the values of a :class:`wire.FirstPolicyOut`. Runs in a worker."""
    documents = [Document(text.name, text.text) for text in body.texts]
    sample = first_policy.sample_documents(documents)
    answers, reasons = first_policy.suggest_answers(sample, body.answers)
    toml = first_policy.write_policy(answers, "first policy", f"{len(documents)} text{'s' * (len(documents) != 1)}")
    questions = [
        {
            "name": question.name,
            "words": question.words,
            "answers": dict(question.answers or read_language_names()),
            "answer": getattr(answers, question.name),
            "reason": reasons.get(question.name, ""),
        }
        for question in QUESTIONS
    ]
    return {
        "questions": questions,
        "toml": toml,
        "keyed": first_policy.needs_key(answers),
        "warnings": first_policy.list_warnings(answers),
        "passages": [
            {
                "id": passage.name,
                "before": passage.before,
                "after": passage.after,
                "before_spans": [mark._asdict() for mark in passage.originals],
                "spans": [mark._asdict() for mark in passage.replacements],
            }
            for passage in first_policy.choose_passages(sample, parse_stored_policy(toml, "first policy"))
        ],
    }


@router.delete("/policies/{name}", status_code=204, summary="Remove a stored policy")
def remove_policy(name: PolicyName, caller: Admin, services: AnyServices) -> None:
    """Remove a stored policy. Presets stay."""
    services.policies.remove_policy(name)
    services.accounts.record_action(caller, f"policy {name} removed")


def _summarise_policy(name: str, policy: Policy) -> wire.PolicyOut:
    operators = {policy.default.operator, *(rule.operator for rule in policy.rules.values())}
    keyed = any(get_operator_traits(get_operator(operator)).keyed for operator in sorted(operators))
    return wire.PolicyOut(name=name, description=policy.description, preset=name in presets(), keyed=keyed)


def _describe_policy(name: str, policy: Policy, toml: str | None) -> wire.PolicyDetail:
    rules = {
        label.name: wire.RuleOut(operator=policy.rule(label.name).operator, threshold=policy.threshold_for(label.name))
        for label in policy.taxonomy
        if policy.looks_for(label.name)
    }
    summary = _summarise_policy(name, policy).model_dump()
    return wire.PolicyDetail(**summary, toml=toml, detectors=list(policy.detectors), rules=rules)

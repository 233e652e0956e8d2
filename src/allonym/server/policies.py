"""Which policy a request gets: a preset or a stored one, with what the request changes and the organisation's lists.

A request may choose and tighten or loosen, but it cannot name a path, a model or an endpoint: only a stored policy can,
and only admins store one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

import sqlalchemy as sa

from allonym.errors import PolicyError, RequestError, UnknownNameError
from allonym.policy import Policy, presets
from allonym.server import database as db
from allonym.server.database import Database, now
from allonym.server.sealing import Sealing

_ABOUT = "policy"
_REMOTE = frozenset(("llm",))
"""Detectors and operators that a request cannot choose by itself: they ask another machine."""

Lists = Mapping[str, Sequence[str]]


class Entries(Protocol):
    """Where the organisation's own terms come from."""

    def entries(self, project: str | None) -> tuple[Lists, Lists]:
        """Terms to find by label, and terms to leave by label or ``*``, for all projects and for this one."""


class Policies:
    """Presets and stored policies, by name.

    Args:
        place: the server's database.
        sealing: under which stored policies lie; they may hold names.
        default: the policy of requests that name none.
    """

    def __init__(self, place: Database, sealing: Sealing, default: str) -> None:
        self._place, self._sealing, self.default = place, sealing, default
        self.lists: Entries | None = None
        self.toml(default)

    def __repr__(self) -> str:
        return "Policies()"

    def names(self) -> tuple[str, ...]:
        """All names, presets first."""
        with self._place.reading() as connection:
            stored = connection.execute(sa.select(db.policies.c.name).order_by(db.policies.c.name)).scalars().all()
        return (*presets(), *stored)

    def toml(self, name: str) -> str | None:
        """A stored policy's text; None for a preset.

        Raises:
            UnknownNameError: there is neither.
        """
        if name in presets():
            return None
        with self._place.reading() as connection:
            sealed = connection.execute(sa.select(db.policies.c.sealed).where(db.policies.c.name == name)).scalar()
        if sealed is None:
            raise UnknownNameError("policy", name, self.names())
        return self._sealing.unseal(sealed, _ABOUT + name)

    def store(self, name: str, toml: str) -> Policy:
        """Keep a policy under a name that is no preset's.

        Raises:
            PolicyError: it is not valid, extends a file or reads one.
            RequestError: a preset has this name (409).
        """
        if name in presets():
            raise RequestError(f"{name!r} is a preset; store yours under another name", 409, "Taken")
        policy = _parse_stored(toml, name)
        row = {"sealed": self._sealing.seal(toml, _ABOUT + name), "changed": now()}
        with self._place.writing() as connection:
            result = connection.execute(sa.update(db.policies).where(db.policies.c.name == name).values(**row))
            if not result.rowcount:
                connection.execute(sa.insert(db.policies), [{"name": name, **row}])
        return policy

    def remove(self, name: str) -> None:
        """Remove a stored policy.

        Raises:
            RequestError: there is none of this name (404).
        """
        with self._place.writing() as connection:
            if not connection.execute(sa.delete(db.policies).where(db.policies.c.name == name)).rowcount:
                raise RequestError(f"there is no stored policy {name!r}", 404, "NotFound")

    def source(self, choice: str | Mapping[str, Any] | None, project: str | None = None) -> str:
        """What a request chose, as one line of JSON from which :func:`policy_of` makes the policy, here or in a worker.

        Args:
            choice: a name, or the fields of ``wire.PolicyChoice``.
            project: whose lists count besides those for all.

        Raises:
            UsageError: something in it is not known or not allowed.
        """
        chosen: dict[str, Any] = {"name": choice} if isinstance(choice, str) else dict(choice or {})
        name = chosen.get("name") or self.default
        find, leave = self.lists.entries(project) if self.lists else ({}, {})
        source = json.dumps(
            {
                "name": name,
                "toml": self.toml(name),
                "confidence": chosen.get("confidence"),
                "operators": chosen.get("operators") or {},
                "off": chosen.get("off") or [],
                "detectors": chosen.get("detectors"),
                "dictionary": _merge_lists(chosen.get("dictionary") or {}, find),
                "exclude": _merge_lists(chosen.get("exclude") or {}, leave),
            },
            sort_keys=True,
        )
        policy_of(source)
        return source


def _merge_lists(first: Lists, other: Lists) -> dict[str, list[str]]:
    return {label: [*first.get(label, ()), *other.get(label, ())] for label in sorted({*first, *other})}


@lru_cache(maxsize=64)
def policy_of(source: str) -> Policy:
    """The policy that :meth:`Policies.source` describes; the same object for the same source, as detectors are kept."""
    choice = json.loads(source)
    toml, name = choice["toml"], choice["name"]
    base = Policy.load(name) if toml is None else _parse_stored(toml, name)
    for chosen in (choice["detectors"] or (), choice["operators"].values()):
        for one in chosen:
            if one in _REMOTE and one not in base.detectors:
                raise PolicyError(f"policy: {one!r} asks another machine, so only a stored policy can choose it")
    table: dict[str, Any] = {"name": base.name}
    detect: dict[str, Any] = {}
    if choice["off"]:
        detect["exclude"] = [*base.exclude, *choice["off"]]
    if choice["detectors"] is not None:
        detect["detectors"] = choice["detectors"]
    if detect:
        table["detect"] = detect
    for key, terms in (("dictionary", choice["dictionary"]), ("exclusions", choice["exclude"])):
        if terms:
            table[key] = terms
    operators = dict(choice["operators"])
    overall = operators.pop("*", None)
    if overall is not None:
        base = base.with_(rules=MappingProxyType({}))
        table["default"] = {"operator": overall}
    if operators:
        table["rules"] = {label: {"operator": operator} for label, operator in operators.items()}
    policy = base.changed(table, "policy") if len(table) > 1 else base
    if choice["confidence"] is None:
        return policy
    confidence = float(choice["confidence"])
    return policy.with_threshold(confidence, min(max(confidence, 0.01), 0.99))


def _parse_stored(toml: str, name: str) -> Policy:
    where = f"policy {name}"
    try:
        raw = tomllib.loads(toml)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(f"{where}: not valid TOML: {error}") from None
    parent = raw.pop("extends", "default")
    if parent not in presets():
        raise UnknownNameError("policy preset", parent, presets(), f"{where}: extends")
    for key in ("dictionary", "exclusions"):
        for label, terms in raw.get(key, {}).items() if isinstance(raw.get(key), dict) else ():
            if not isinstance(terms, list):
                raise PolicyError(f"{where}: {key}.{label} must list its terms here; a stored policy reads no file")
    return Policy.load(parent).changed({"name": name, **raw}, where)

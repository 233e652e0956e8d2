"""The policy of a request: a preset or a stored one, with the changes of the request and the organisation's lists.

A request may choose a policy and tighten or loosen it, but it cannot name a path, a model or an endpoint: only a stored
policy can, and only admins store one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from allonym.errors import PolicyError, RequestError, UnknownNameError, check_names
from allonym.policy import Policy, presets
from allonym.server import database as db
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.terms import TermLists, TermsByLabel

_PURPOSE = "policy"
_REMOTE = frozenset(("llm",))
"""Detectors and operators that a request cannot choose by itself: they send text to another machine."""


class Policies:
    """Presets and stored policies, by name.

    Args:
        database: of the server.
        sealing: encrypts stored policies, which may hold names.
        lists: the organisation's own terms.
        default: the policy of requests that name none.
    """

    def __init__(self, database: Database, sealing: Sealing, lists: TermLists, default: str) -> None:
        self._database, self._sealing, self._lists, self.default = database, sealing, lists, default
        self.find_stored_toml(default)

    def __repr__(self) -> str:
        return "Policies()"

    def list_policy_names(self) -> tuple[str, ...]:
        """Return all names, presets first."""
        rows = self._database.fetch_rows(sa.select(db.policies.c.name).order_by(db.policies.c.name))
        return (*presets(), *(row.name for row in rows))

    def find_stored_toml(self, name: str) -> str | None:
        """Return a stored policy's text; None for a preset.

        Raises:
            UnknownNameError: there is neither.
        """
        if name in presets():
            return None
        row = self._database.fetch_first_row(sa.select(db.policies.c.sealed).where(db.policies.c.name == name))
        if row is None:
            raise UnknownNameError("policy", name, self.list_policy_names())
        return self._sealing.unseal(row.sealed, _PURPOSE + name)

    def store_policy(self, name: str, toml: str) -> Policy:
        """Store a policy under a name that is no preset's.

        Raises:
            PolicyError: it is not valid, extends a file or reads one.
            RequestError: a preset has this name (409).
        """
        if name in presets():
            raise RequestError(f"{name!r} is a preset; store yours under another name", 409, "Taken")
        policy = _parse_stored_policy(toml, name)
        row = {"sealed": self._sealing.seal(toml, _PURPOSE + name), "changed": get_unix_time()}
        with self._database.open_write_transaction() as connection:
            self._database.upsert_row(connection, db.policies, {"name": name}, row)
        return policy

    def remove_policy(self, name: str) -> None:
        """Remove a stored policy.

        Raises:
            RequestError: there is none of this name (404).
        """
        if not self._database.execute_writes(sa.delete(db.policies).where(db.policies.c.name == name)):
            raise RequestError(f"there is no stored policy {name!r}", 404, "NotFound")

    def make_policy_json(self, choice: str | Mapping[str, Any] | None, project: str | None = None) -> str:
        """Return a request's choice as JSON, from which :func:`load_policy` makes the policy, here or in a worker.

        Args:
            choice: a name, or the fields of ``wire.PolicyChoice``.
            project: its lists count besides those for all projects.

        Raises:
            UsageError: something in it is not known or not allowed.
        """
        chosen: dict[str, Any] = {"name": choice} if isinstance(choice, str) else dict(choice or {})
        name = chosen.get("name") or self.default
        find, leave = self._lists.get_terms_and_exclusions(project)
        source = json.dumps(
            {
                "name": name,
                "toml": self.find_stored_toml(name),
                "confidence": chosen.get("confidence"),
                "operators": chosen.get("operators") or {},
                "off": chosen.get("off") or [],
                "detectors": chosen.get("detectors"),
                "dictionary": _merge_term_lists(chosen.get("dictionary") or {}, find),
                "exclude": _merge_term_lists(chosen.get("exclude") or {}, leave),
            },
            sort_keys=True,
        )
        load_policy(source)
        return source


def _merge_term_lists(first: TermsByLabel, second: TermsByLabel) -> dict[str, list[str]]:
    return {label: [*first.get(label, ()), *second.get(label, ())] for label in sorted({*first, *second})}


@lru_cache(maxsize=64)
def load_policy(policy_json: str) -> Policy:
    """Return the policy that :meth:`Policies.make_policy_json` describes, the same object for the same source."""
    choice = json.loads(policy_json)
    toml, name = choice["toml"], choice["name"]
    base = Policy.load(name) if toml is None else _parse_stored_policy(toml, name)
    for chosen in (*(choice["detectors"] or ()), *choice["operators"].values()):
        if chosen in _REMOTE and chosen not in base.detectors:
            raise PolicyError(f"policy: {chosen!r} asks another machine, so only a stored policy can choose it")
    excluded = [*base.exclude, *choice["off"]] if choice["off"] else None
    detect = {"exclude": excluded, "detectors": choice["detectors"]}
    rules = {label: {"operator": operator} for label, operator in choice["operators"].items()}
    table = {
        "detect": {key: value for key, value in detect.items() if value is not None},
        "dictionary": choice["dictionary"],
        "exclusions": choice["exclude"],
        "default": rules.pop("*", None),
        "rules": rules,
    }
    if table["default"]:
        base = base.with_(rules=MappingProxyType({}))
    changes = {key: value for key, value in table.items() if value}
    policy = base.changed({"name": base.name, **changes}, "policy") if changes else base
    if choice["confidence"] is None:
        return policy
    confidence = float(choice["confidence"])
    return policy.with_threshold(confidence, min(max(confidence, 0.01), 0.99))


def _parse_stored_policy(toml: str, name: str) -> Policy:
    where = f"policy {name}"
    try:
        raw = tomllib.loads(toml)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(f"{where}: not valid TOML: {error}") from None
    parent = raw.pop("extends", "default")
    check_names("policy preset", [parent], presets(), f"{where}: extends")
    for key in ("dictionary", "exclusions"):
        for label, terms in raw.get(key, {}).items() if isinstance(raw.get(key), dict) else ():
            if not isinstance(terms, list):
                raise PolicyError(f"{where}: {key}.{label} must list its terms here; a stored policy reads no file")
    return Policy.load(parent).changed({"name": name, **raw}, where)

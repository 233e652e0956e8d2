"""The policy of a request: a preset or a stored one, with the changes of the request and the organisation's lists.

A request may choose a policy and tighten or loosen it, but it cannot name a path, a model or an endpoint: only a stored
policy can, and only admins store one.

The organisation's own terms are always or never found, in all projects or in one, in force at once. A term cannot be on
both lists of one project: adding it to one removes it from the other, so that the last decision holds. Terms are
sealed; each process keeps them in memory until they change.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from allonym.errors import PolicyError, RequestError, UnknownNameError, check_names
from allonym.policy import Policy, presets
from allonym.project.terms import DICTIONARY, EXCLUSION, check_and_normalise_term
from allonym.server import database as db
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.wire.reviews import TermOut

ALL_PROJECTS = 0
"""The project number of a term that holds for all projects."""
MOST_TERMS = 10_000
"""Terms of one project, at most."""
_TERM_PURPOSE = "term"

TermsByLabel = Mapping[str, Sequence[str]]
Version = tuple[int, int]


class TermLists:
    """The terms in the server's database.

    Args:
        database: of the server.
        sealing: encrypts terms.
    """

    def __init__(self, database: Database, sealing: Sealing) -> None:
        self._database, self._sealing = database, sealing
        self._cache: tuple[Version, dict[str | None, tuple[TermsByLabel, TermsByLabel]]] | None = None

    def get_terms_and_exclusions(self, project: str | None = None) -> tuple[TermsByLabel, TermsByLabel]:
        """Return terms to find by label, and exclusions by label or ``*``: those for all projects and this one's."""
        with self._database.open_read_transaction() as connection:
            count, last = connection.execute(sa.select(sa.func.count(), sa.func.max(db.terms.c.number))).one()
            version = (int(count), int(last or 0))
            cache = self._cache
            if cache is None or cache[0] != version:
                self._cache = cache = (version, _group_by_project(self._read_all_terms(connection)))
        return cache[1].get(project) or cache[1].get(None) or ({}, {})

    def list_terms(self, project: str | None = None) -> list[TermOut]:
        """Return all terms in the order in which they were added, or those of one project.

        Raises:
            RequestError: there is no such project (404).
        """
        with self._database.open_read_transaction() as connection:
            if project is not None:
                get_project_number(connection, project)
            terms = self._read_all_terms(connection)
        return [term for term in terms if project in (None, term.project)]

    def add_term(
        self,
        kind: str,
        label: str,
        term: str,
        owner: str,
        project: str | None = None,
        connection: sa.Connection | None = None,
    ) -> TermOut:
        """Add a term; one that is there already stays as it is.

        Args:
            kind, label, term: what is found, or never found.
            owner: who adds it.
            project: in which it holds; None: in all.
            connection: with an open transaction; by default it is added in one of its own.

        Raises:
            UsageError: it is no term: less than two letters or digits, more than 200 characters, several lines.
            UnknownNameError: no such label.
            RequestError: no such project (404), or the list is full (409).
        """
        if connection is None:
            with self._database.open_write_transaction() as connection:
                return self.add_term(kind, label, term, owner, project, connection)
        term = check_and_normalise_term(kind, label, term)
        number = ALL_PROJECTS if project is None else get_project_number(connection, project)
        same_project = db.terms.c.project == number
        digest = self._sealing.make_lookup_digest(_TERM_PURPOSE, term.casefold())
        query = sa.select(db.terms).where(same_project, db.terms.c.digest == digest)
        row = connection.execute(query).first()
        if row is not None:
            stored = self._unseal_term(row, project)
            if (stored.kind, stored.label, stored.term) == (kind, label, term):
                return stored
            connection.execute(sa.delete(db.terms).where(db.terms.c.number == row.number))
        elif (connection.execute(sa.select(sa.func.count()).where(same_project)).scalar() or 0) >= MOST_TERMS:
            raise RequestError(f"a list has at most {MOST_TERMS} terms", 409, "Full")
        sealed = self._sealing.seal_json([label, term], _TERM_PURPOSE)
        values = {"project": number, "kind": kind, "digest": digest, "sealed": sealed, "owner": owner}
        connection.execute(sa.insert(db.terms).values(**values, created=get_unix_time()))
        return self._unseal_term(connection.execute(query).one(), project)

    def get_term(self, term_number: int) -> TermOut:
        """Return a term.

        Raises:
            RequestError: there is none of this number (404).
        """
        term = next((t for t in self.list_terms() if t.id == term_number), None)
        if term is None:
            raise RequestError(f"there is no term {term_number}", 404, "NotFound")
        return term

    def remove_term(self, term_number: int) -> None:
        """Remove a term.

        Raises:
            RequestError: there is none of this number (404).
        """
        self.get_term(term_number)
        self._database.execute_writes(sa.delete(db.terms).where(db.terms.c.number == term_number))

    def _read_all_terms(self, connection: sa.Connection) -> list[TermOut]:
        query = sa.select(db.terms, db.projects.c.name.label("name")).outerjoin(
            db.projects, db.projects.c.number == db.terms.c.project
        )
        return [self._unseal_term(row, row.name) for row in connection.execute(query.order_by(db.terms.c.number)).all()]

    def _unseal_term(self, row: Any, project: str | None) -> TermOut:
        label, term = self._sealing.unseal_json(row.sealed, _TERM_PURPOSE)
        values = {"id": row.number, "label": label, "term": term, "project": project, "by": row.owner}
        return TermOut(**values, kind=row.kind, created=row.created)


def get_project_number(connection: sa.Connection, project: str) -> int:
    """Return the number of a project.

    Raises:
        RequestError: there is no such project (404).
    """
    number = None
    if project.isprintable():  # a database may refuse what is not
        number = connection.execute(sa.select(db.projects.c.number).where(db.projects.c.name == project)).scalar()
    if number is None:
        raise RequestError(f"there is no project {project!r}", 404, "NotFound")
    return int(number)


def _group_by_project(terms: Sequence[TermOut]) -> dict[str | None, tuple[TermsByLabel, TermsByLabel]]:
    """Return the two lists of each project, and of None for all projects. A project's own terms win over those."""
    general = {term.term.casefold(): term for term in terms if term.project is None}
    lists: dict[str | None, tuple[TermsByLabel, TermsByLabel]] = {}
    for project in {None, *(term.project for term in terms)}:
        chosen = general | {term.term.casefold(): term for term in terms if term.project == project}
        lists[project] = (
            _group_by_label(chosen.values(), DICTIONARY),
            _group_by_label(chosen.values(), EXCLUSION),
        )
    return lists


def _group_by_label(terms: Iterable[TermOut], kind: str) -> TermsByLabel:
    groups = defaultdict[str, list[str]](list)
    for term in terms:
        if term.kind == kind:
            groups[term.label].append(term.term)
    return MappingProxyType({label: tuple(sorted(groups[label])) for label in sorted(groups)})


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
        policy = parse_stored_policy(toml, name)
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
    base = Policy.load(name) if toml is None else parse_stored_policy(toml, name)
    for chosen in (*(choice["detectors"] or ()), *choice["operators"].values()):
        if chosen in _REMOTE and chosen not in base.detectors:
            raise PolicyError(f"policy: {chosen!r} asks another machine, so only a stored policy can choose it")
    detect = {"exclude": choice["off"] or None, "detectors": choice["detectors"]}
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


def parse_stored_policy(toml: str, name: str) -> Policy:
    """Return the policy of a text in TOML that extends a preset and names no file.

    Raises:
        PolicyError: it is none.
    """
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

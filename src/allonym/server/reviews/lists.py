"""The organisation's own terms: what is always found and what is never, for all projects or one; in force at once.

A term cannot be on both lists of one place: who adds it to the one takes it off the other, so that the last decision
holds. Terms are sealed; each process keeps them in memory until they change.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import sqlalchemy as sa

from allonym.document import Document
from allonym.errors import AllonymError, RequestError, UsageError
from allonym.labels import TAXONOMY
from allonym.pipeline import detect
from allonym.policy import Policy, TermList
from allonym.server import database as db
from allonym.server.database import Database, now
from allonym.server.sealing import Sealing

DICTIONARY, EXCLUSION = "dictionary", "exclusion"
KINDS = (DICTIONARY, EXCLUSION)
ANY = "*"
"""The label of an exclusion that holds for all labels."""
FOR_ALL = 0
"""The project's number of a term that holds for all projects."""
MOST = 10_000
"""Terms of one place, at most."""
_LEAST, _LONGEST = 2, 200  # letters and digits; characters
_ABOUT = "term"

Lists = Mapping[str, Sequence[str]]
Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Term:
    """A line of a list.

    Attributes:
        number: names it.
        kind: one of ``KINDS``.
        label: of the taxonomy; of an exclusion also ``*``.
        term: hidden from ``repr``.
        project: its name; None: for all.
        owner: who added it; created: when.
    """

    number: int
    kind: str
    label: str
    term: str = field(repr=False)
    project: str | None
    owner: str
    created: int


class TermLists:
    """The terms in the server's database.

    Args:
        place: the database.
        sealing: under which terms lie.
    """

    def __init__(self, place: Database, sealing: Sealing) -> None:
        self._place, self._sealing = place, sealing
        self._lock = threading.Lock()
        self._kept: tuple[Version, dict[str | None, tuple[Lists, Lists]]] | None = None

    def __repr__(self) -> str:
        return "TermLists()"

    def entries(self, project: str | None = None) -> tuple[Lists, Lists]:
        """Terms to find by label, and terms to leave by label or ``*``: those for all, and this project's."""
        with self._place.reading() as connection:
            counted = connection.execute(sa.select(sa.func.count(), sa.func.max(db.terms.c.number))).one()
            version = (int(counted[0]), int(counted[1] or 0))
            with self._lock:
                kept = self._kept
            if kept is None or kept[0] != version:
                kept = (version, _by_project(self._read(connection)))
                with self._lock:
                    self._kept = kept
        return kept[1].get(project) or kept[1].get(None) or ({}, {})

    def terms(self, project: str | None = None) -> list[Term]:
        """All lines, in the order of their making, or those of one project.

        Raises:
            RequestError: there is no such project (404).
        """
        with self._place.reading() as connection:
            if project is not None:
                project_number(connection, project)
            rows = self._read(connection)
        return [r for r in rows if project in (None, r.project)]

    def add(self, kind: str, label: str, term: str, owner: str, project: str | None = None) -> Term:
        """Add a term; one that is there already stays as it is.

        Raises:
            UsageError: it is no term: less than two letters or digits, more than 200 characters, several lines.
            UnknownNameError: no such label.
            RequestError: no such project (404), or the place is full (409).
        """
        with self._place.writing() as connection:
            number = FOR_ALL if project is None else project_number(connection, project)
            return self.write(connection, number, project, kind, label, term, owner)

    def write(
        self, connection: sa.Connection, number: int, project: str | None, kind: str, label: str, term: str, owner: str
    ) -> Term:
        """As :meth:`add`, within a transaction, for the project with this number."""
        kind, label, term = checked(kind, label, term)
        here = db.terms.c.project == number
        digest = self._sealing.digest(_ABOUT, term.casefold())
        found = connection.execute(sa.select(db.terms).where(here, db.terms.c.digest == digest)).first()
        if found is not None:
            known = self._opened(found, project)
            if (known.kind, known.label, known.term) == (kind, label, term):
                return known
            connection.execute(sa.delete(db.terms).where(db.terms.c.number == found.number))
        elif (connection.execute(sa.select(sa.func.count()).where(here)).scalar() or 0) >= MOST:
            raise RequestError(f"a list has at most {MOST} terms", 409, "Full")
        created = now()
        row = {
            "project": number,
            "kind": kind,
            "digest": digest,
            "sealed": self._sealing.seal(json.dumps([label, term]), _ABOUT),
            "owner": owner,
            "created": created,
        }
        made = connection.execute(sa.insert(db.terms).values(**row)).inserted_primary_key
        return Term(int(made[0]) if made else 0, kind, label, term, project, owner, created)

    def remove(self, number: int) -> Term:
        """Remove a term.

        Raises:
            RequestError: there is none of this number (404).
        """
        with self._place.writing() as connection:
            term = next((t for t in self._read(connection) if t.number == number), None)
            if term is None:
                raise RequestError(f"there is no term {number}", 404, "NotFound")
            connection.execute(sa.delete(db.terms).where(db.terms.c.number == number))
        return term

    def _read(self, connection: sa.Connection) -> list[Term]:
        joined = sa.select(db.terms, db.projects.c.name.label("name")).outerjoin(
            db.projects, db.projects.c.number == db.terms.c.project
        )
        rows = connection.execute(joined.order_by(db.terms.c.number)).all()
        return [self._opened(row, row.name) for row in rows]

    def _opened(self, row: sa.Row[tuple[object, ...]], project: str | None) -> Term:
        label, term = json.loads(self._sealing.opened(row.sealed, _ABOUT))
        return Term(row.number, row.kind, label, term, project, row.owner, row.created)


def checked(kind: str, label: str, term: str) -> tuple[str, str, str]:
    """Kind, label and term of a line as they are kept.

    Raises:
        UsageError, UnknownNameError: see :meth:`TermLists.add`.
    """
    if not (label == ANY and kind == EXCLUSION):
        TAXONOMY.get(label, "label")
    said = " ".join(term.split())
    if "\n" in term.strip() or len(said) > _LONGEST or sum(map(str.isalnum, said)) < _LEAST:
        raise UsageError(f"term: one line of {_LEAST} letters or digits and at most {_LONGEST} characters is required")
    _works(kind, label, said)
    return kind, label, said


def _works(kind: str, label: str, term: str) -> None:
    """One term that no detector can use would stop every request, so each is tried first."""
    listed = (TermList(label, (term,)),)
    known = (TermList("PERSON", (term,)),) if kind == EXCLUSION else listed
    policy = Policy(name="list", detectors=("lexicon",), dictionary=known)
    try:
        alone = detect(Document("", term), policy)
        left = alone if kind == DICTIONARY else detect(Document("", term), policy.with_(exclusions=listed))
    except AllonymError:
        alone, left = (), ()
    if not alone or (kind == EXCLUSION and label in (ANY, "PERSON") and left):
        raise UsageError("term: letters or digits that the dictionary can find again are required")


def project_number(connection: sa.Connection, project: str) -> int:
    """The number of a project.

    Raises:
        RequestError: there is no such project (404).
    """
    number = None
    if project.isprintable():  # a database may refuse what is not
        number = connection.execute(sa.select(db.projects.c.number).where(db.projects.c.name == project)).scalar()
    if number is None:
        raise RequestError(f"there is no project {project!r}", 404, "NotFound")
    return int(number)


def _by_project(terms: Sequence[Term]) -> dict[str | None, tuple[Lists, Lists]]:
    """Project, or None for all, to its two lists with those for all. What a project says itself comes first."""
    general = [t for t in terms if t.project is None]
    out: dict[str | None, tuple[Lists, Lists]] = {}
    for project in (None, *dict.fromkeys(t.project for t in terms if t.project is not None)):
        own = [t for t in terms if project is not None and t.project == project]
        said = {t.term.casefold() for t in own}
        chosen = [*own, *(t for t in general if t.term.casefold() not in said)]
        out[project] = (_grouped(chosen, DICTIONARY), _grouped(chosen, EXCLUSION))
    return out


def _grouped(terms: Sequence[Term], kind: str) -> Lists:
    found: dict[str, list[str]] = {}
    for term in terms:
        if term.kind == kind:
            found.setdefault(term.label, []).append(term.term)
    return MappingProxyType({label: tuple(sorted(found[label])) for label in sorted(found)})

"""The review queue: projects, their documents, and what two reviewers and an adjudicator say of each.

Reviewers are blind to each other until both are done. What one saves names the version that was read; another one than
the stored is refused, so that nothing is overwritten unseen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from allonym.document import Document, Span
from allonym.errors import DatabaseError, RequestError, UsageError
from allonym.plan import digest
from allonym.server import database as db
from allonym.server.access import Who
from allonym.server.accounts import is_name
from allonym.server.database import Database, is_taken, now
from allonym.server.reviews.lists import FOR_ALL, TermLists, project_number
from allonym.server.reviews.readings import Reading, agree
from allonym.server.sealing import Sealing

NEW, OPEN, DISAGREEMENT, DONE = "new", "in_review", "disagreement", "done"
STATES = (NEW, OPEN, DISAGREEMENT, DONE)
ORDERS = ("risk", "gain", "added")
VERDICT_SEAT, SEATS = 0, (1, 2)

Wanted = tuple[str, str, str, str | None]
"""A term that a reviewer wants on a list: kind, label, term, and the project, or None for all."""


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """A document of the queue, with its texts. Hidden from ``repr``.

    Attributes:
        number: names it in the database.
        id: as its owner calls it.
        state: one of ``STATES``.
        document: the original.
        anonymised: what became of it.
        edits: of the plan, as plain values.
        spans: what was found.
        labels: the tagger's labels that were looked for.
        risk: as :meth:`allonym.server.reviews.risk.Risk.to_dict` gives it.
    """

    number: int
    id: str
    state: str
    document: Document
    anonymised: str
    edits: list[dict[str, Any]]
    spans: tuple[Span, ...]
    labels: tuple[str, ...]
    risk: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """A document in the list of a project: no text but its id, which is hidden from ``repr``.

    Attributes:
        reviewers: how many have begun; done: how many are done.
        mine: the caller's own reading: ``none``, ``open`` or ``done``.
        adjudicated: whether somebody has decided.
    """

    id: str = field(repr=False)
    state: str
    risk: float
    gain: float
    bound: int
    direct: int
    mentions: int
    words: int
    reasons: list[dict[str, Any]]
    reviewers: int
    done: int
    mine: str
    adjudicated: bool
    created: int
    changed: int


@dataclass(frozen=True, slots=True)
class Seat:
    """A reading with who read (the user's number and name), its version (0: none yet), and whether they are done."""

    seat: int
    user: int
    reader: str
    version: int
    done: bool
    reading: Reading = field(repr=False)


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its policy choice (it may hold names: hidden from ``repr``), and the documents in each state."""

    name: str
    policy: Any = field(repr=False)
    owner: str
    created: int
    states: Mapping[str, int]


class Queue:
    """Projects and documents in the server's database.

    Args:
        place: the database.
        sealing: under which texts, ids, marks and decisions lie.
        lists: where decisions on terms go.
    """

    def __init__(self, place: Database, sealing: Sealing, lists: TermLists) -> None:
        self._place, self._sealing, self.lists = place, sealing, lists

    def __repr__(self) -> str:
        return "Queue()"

    # Projects

    def make(self, name: str, policy: Any, owner: str) -> Project:
        """Make a project.

        Raises:
            UsageError: the name will not do. RequestError: it is taken (409).
        """
        if not is_name(name):
            raise UsageError("the name of a project has printable characters, no slash, no space at its ends")
        sealed = self._sealing.seal(json.dumps(policy), f"project {name}")
        created = now()
        row = {"name": name, "sealed": sealed, "owner": owner, "created": created}
        try:
            with self._place.writing() as connection:
                connection.execute(sa.insert(db.projects).values(**row))
        except DatabaseError as error:
            if is_taken(error):
                raise RequestError(f"there is a project {name!r} already", 409, "Taken") from None
            raise
        return Project(name, policy, owner, created, dict.fromkeys(STATES, 0))

    def projects(self, name: str | None = None) -> list[Project]:
        """All projects by name, or this one.

        Raises:
            RequestError: there is no such project (404).
        """
        asked = sa.select(db.projects).order_by(db.projects.c.name)
        if name is not None:
            if not name.isprintable():
                raise _missing("project", name)
            asked = asked.where(db.projects.c.name == name)
        with self._place.reading() as connection:
            rows = connection.execute(asked).all()
            grouped = sa.select(db.documents.c.project, db.documents.c.state, sa.func.count())
            counts = connection.execute(grouped.group_by(db.documents.c.project, db.documents.c.state)).all()
        if name is not None and not rows:
            raise _missing("project", name)
        held: dict[int, dict[str, int]] = {r.number: dict.fromkeys(STATES, 0) for r in rows}
        for project, state, count in counts:
            if project in held:
                held[project][state] = count
        return [
            Project(
                r.name,
                json.loads(self._sealing.opened(r.sealed, f"project {r.name}")),
                r.owner,
                r.created,
                held[r.number],
            )
            for r in rows
        ]

    def remove(self, name: str) -> int:
        """Remove a project with its documents, readings and terms; gives how many documents there were.

        Raises:
            RequestError: there is no such project (404).
        """
        with self._place.writing() as connection:
            number = self._project(connection, name)
            mine = sa.select(db.documents.c.number).where(db.documents.c.project == number)
            connection.execute(sa.delete(db.readings).where(db.readings.c.document.in_(mine)))
            gone = connection.execute(sa.delete(db.documents).where(db.documents.c.project == number)).rowcount
            connection.execute(sa.delete(db.terms).where(db.terms.c.project == number))
            connection.execute(sa.delete(db.projects).where(db.projects.c.number == number))
        return gone

    # Documents

    def known(self, project: str, ids: Sequence[str], texts: Sequence[str]) -> list[bool]:
        """Which documents are there already, with the same text.

        Raises:
            RequestError: there is no such project (404), or another text has one's id (409).
        """
        with self._place.reading() as connection:
            number = self._project(connection, project)
            out = []
            for place, (id, text) in enumerate(zip(ids, texts, strict=True)):
                row = self._row(connection, number, project, id)
                if row is not None and self._head(row)["digest"] != digest(text):
                    raise RequestError(f"documents[{place}]: its id is another document's", 409, "Taken")
                out.append(row is not None)
        return out

    def add(
        self,
        project: str,
        id: str,
        document: Document,
        anonymised: str,
        edits: list[dict[str, Any]],
        spans: Sequence[Span],
        labels: Sequence[str],
        risk: Mapping[str, Any],
        words: int,
    ) -> None:
        """Put a document into the queue; one of this id that is there already stays.

        Raises:
            RequestError: there is no such project (404).
        """
        head = {
            "id": id,
            "digest": digest(document.text),
            "mentions": len(spans),
            "words": words,
            "bound": risk["bound"],
            "direct": risk["direct"],
            "reasons": risk["reasons"],
        }
        body = {
            "text": document.text,
            "parts": document.parts,
            "turns": [[t.start, t.end, t.speaker] for t in document.turns],
            "anonymised": anonymised,
            "edits": edits,
            "spans": [[s.start, s.end, s.label, s.score, s.source] for s in spans],
            "labels": list(labels),
            "risk": risk,
        }
        with self._place.writing() as connection:
            number = self._project(connection, project)
            if self._row(connection, number, project, id) is not None:
                return
            row = {
                "project": number,
                "digest": self._digest(project, id),
                "head": self._sealing.seal(json.dumps(head), "head"),
                "body": self._sealing.seal(json.dumps(body), "body"),
                "risk": float(risk["expected"]),
                "gain": float(risk["gain"]),
                "state": NEW,
                "created": now(),
                "changed": now(),
            }
            connection.execute(sa.insert(db.documents).values(**row))

    def lines(
        self, project: str, user: int, *, state: str | None = None, order: str = "risk", offset: int, limit: int
    ) -> tuple[list[Line], int]:
        """Documents of a project, the most urgent first, and how many there are in all.

        Args:
            project: its name.
            user: the number of the user for whom ``mine`` is told.
            state: only documents in this state.
            order: one of ``ORDERS``: by risk, by what the tagger may learn, or as they were added.
            offset, limit: of the part that is given.

        Raises:
            RequestError: there is no such project (404).
        """
        risk, gain = db.documents.c.risk.desc(), db.documents.c.gain.desc()
        columns = {"risk": (risk, gain), "gain": (gain, risk)}
        with self._place.reading() as connection:
            number = self._project(connection, project)
            wanted = [db.documents.c.project == number, *([db.documents.c.state == state] if state else [])]
            total = connection.execute(sa.select(sa.func.count()).select_from(db.documents).where(*wanted)).scalar()
            asked = sa.select(*[c for c in db.documents.c if c.name != "body"]).where(*wanted)
            first = (*columns.get(order, ()), db.documents.c.number)
            rows = connection.execute(asked.order_by(*first).offset(offset).limit(limit)).all()
            seats = sa.select(*[c for c in db.readings.c if c.name != "sealed"])
            here = seats.where(db.readings.c.document.in_([r.number for r in rows]))
            held: dict[int, list[Any]] = {}
            for seat in connection.execute(here).all():
                held.setdefault(seat.document, []).append(seat)
        return [self._line(row, held.get(row.number, []), user) for row in rows], int(total or 0)

    def item(self, project: str, id: str) -> Item:
        """A document with its texts.

        Raises:
            RequestError: there is no such project or document (404).
        """
        with self._place.reading() as connection:
            return self._item(self._found(connection, project, id))

    def items(self, project: str, state: str | None = None) -> list[tuple[Item, dict[int, Seat]]]:
        """All documents of a project, or those in a state, with all readings by seat, as they were added."""
        with self._place.reading() as connection:
            number = self._project(connection, project)
            wanted = [db.documents.c.project == number, *([db.documents.c.state == state] if state else [])]
            rows = connection.execute(sa.select(db.documents).where(*wanted).order_by(db.documents.c.number)).all()
            return [(self._item(row), self._seats(connection, row.number)) for row in rows]

    def drop(self, project: str, id: str) -> None:
        """Remove a document with all that was said of it.

        Raises:
            RequestError: there is no such project or document (404).
        """
        with self._place.writing() as connection:
            row = self._found(connection, project, id, locked=True)
            connection.execute(sa.delete(db.readings).where(db.readings.c.document == row.number))
            connection.execute(sa.delete(db.documents).where(db.documents.c.number == row.number))

    # Readings

    def reading(self, project: str, id: str, who: Who) -> Seat:
        """A reviewer's own reading; version 0 where there is none yet."""
        with self._place.reading() as connection:
            row = self._found(connection, project, id)
            seats = self._seats(connection, row.number)
        own = _own(seats, who.id)
        return Seat(0, who.id, who.name, 0, False, Reading()) if own is None else seats[own]

    def both(self, project: str, id: str) -> tuple[Item, dict[int, Seat]]:
        """A document with the readings of both reviewers, and the verdict where there is one.

        Raises:
            RequestError: not both are done, so they stay blind to each other (409).
        """
        with self._place.reading() as connection:
            row = self._found(connection, project, id)
            seats = self._seats(connection, row.number)
            item = self._item(row)
        if not _both_done(seats):
            raise RequestError("both reviewers must be done first: until then neither is shown", 409, "NotYet")
        return item, seats

    def save(
        self,
        project: str,
        id: str,
        who: Who,
        version: int,
        done: bool,
        read: Callable[[Item], tuple[Reading, Iterable[Wanted]]],
        *,
        verdict: bool = False,
    ) -> tuple[Seat, str]:
        """Keep a reading, and give it with the document's state.

        Args:
            project, id: of the document.
            who: the reader. A removed user's name is free again, so that readings are somebody's by number.
            version: of the reading that the reader began from; 0: there was none.
            done: whether the reader has nothing to add.
            read: gives the reading, sound for the document, and terms for the lists.
            verdict: it decides where two reviewers disagree, instead of being a reviewer's own.

        Raises:
            RequestError: there is no such document (404); two others review it, another version is stored, the document
                is settled, or a verdict comes before both are done (409). Nothing is changed then.
        """
        with self._place.writing() as connection:
            row = self._found(connection, project, id, locked=True)
            seats, item = self._seats(connection, row.number), self._item(row)
            number = _seat_of(seats, who.id, verdict)
            before = seats.get(number)
            reading, wanted = read(item)
            stored = before.version if before else 0
            if before and stored == version + 1 and (before.reading, before.done) == (reading, done):
                return before, row.state  # the answer to the first try got lost
            _may(row.state, seats, verdict)
            if stored != version:
                raise RequestError(
                    f"version {version} was read, but {stored} is stored now; read it again, nothing was changed",
                    409,
                    "Stale",
                )
            values = {
                "user": who.id,
                "reader": who.name,
                "version": stored + 1,
                "done": done,
                "sealed": self._sealing.seal(reading.to_json(), f"reading {row.number} {number}"),
                "changed": now(),
            }
            if before:
                at = sa.and_(db.readings.c.document == row.number, db.readings.c.seat == number)
                connection.execute(sa.update(db.readings).where(at).values(**values))
            else:
                connection.execute(sa.insert(db.readings).values(document=row.number, seat=number, **values))
            seats[number] = Seat(number, who.id, who.name, stored + 1, done, reading)
            state = _state(item, seats)
            changed = sa.update(db.documents).where(db.documents.c.number == row.number)
            connection.execute(changed.values(state=state, changed=now()))
            for kind, label, term, place in wanted:
                where = FOR_ALL if place is None else row.project
                self.lists.write(connection, where, place, kind, label, term, who.name)
        return seats[number], state

    def forget(self, user: int) -> None:
        """Free the seats in which somebody who is no more has not ended; what they had ended stays."""
        unfinished = (db.readings.c.user == user) & ~db.readings.c.done
        with self._place.writing() as connection:
            connection.execute(sa.delete(db.readings).where(unfinished))

    # Inside

    def _project(self, connection: sa.Connection, name: str) -> int:
        return project_number(connection, name)

    def _digest(self, project: str, id: str) -> str:
        return self._sealing.digest("document", project, id)

    def _row(self, connection: sa.Connection, number: int, project: str, id: str, locked: bool = False) -> Any:
        at = sa.and_(db.documents.c.project == number, db.documents.c.digest == self._digest(project, id))
        asked = sa.select(db.documents).where(at)
        return connection.execute(asked.with_for_update() if locked else asked).first()

    def _found(self, connection: sa.Connection, project: str, id: str, locked: bool = False) -> Any:
        row = self._row(connection, self._project(connection, project), project, id, locked)
        if row is None:
            raise RequestError(f"there is no such document in the project {project!r}", 404, "NotFound")
        return row

    def _head(self, row: Any) -> dict[str, Any]:
        head: dict[str, Any] = json.loads(self._sealing.opened(row.head, "head"))
        return head

    def _item(self, row: Any) -> Item:
        head, body = self._head(row), json.loads(self._sealing.opened(row.body, "body"))
        with self._place.check_values():
            return Item(
                row.number,
                head["id"],
                row.state,
                _document(head["id"], body),
                body["anonymised"],
                body["edits"],
                tuple(Span(*s) for s in body["spans"]),
                tuple(body["labels"]),
                body["risk"],
            )

    def _line(self, row: Any, seats: Sequence[Any], user: int) -> Line:
        head = self._head(row)
        own = next((s for s in seats if s.seat in SEATS and s.user == user), None)
        return Line(
            head["id"],
            row.state,
            row.risk,
            row.gain,
            head["bound"],
            head["direct"],
            head["mentions"],
            head["words"],
            head["reasons"],
            sum(s.seat in SEATS for s in seats),
            sum(s.seat in SEATS and s.done for s in seats),
            "none" if own is None else "done" if own.done else "open",
            any(s.seat == VERDICT_SEAT and s.done for s in seats),
            row.created,
            row.changed,
        )

    def _seats(self, connection: sa.Connection, number: int) -> dict[int, Seat]:
        rows = connection.execute(sa.select(db.readings).where(db.readings.c.document == number)).all()
        out = {}
        for r in rows:
            read = Reading.from_json(self._sealing.opened(r.sealed, f"reading {number} {r.seat}"))
            out[r.seat] = Seat(r.seat, r.user, r.reader, r.version, r.done, read)
        return out


def _document(id: str, body: Mapping[str, Any]) -> Document:
    from allonym.document import Turn

    turns = tuple(Turn(a, b, tuple(who) if who else None) for a, b, who in body["turns"])
    return Document(id, body["text"], parts=tuple((a, b) for a, b in body["parts"]), turns=turns)


def _own(seats: Mapping[int, Seat], user: int) -> int | None:
    return next((s for s in SEATS if s in seats and seats[s].user == user), None)


def _seat_of(seats: Mapping[int, Seat], user: int, verdict: bool) -> int:
    """Where a reading goes."""
    if verdict:
        return VERDICT_SEAT
    own = _own(seats, user)
    free = next((s for s in SEATS if s not in seats), None)
    if own is None and free is None:
        raise RequestError("two others review this document already", 409, "Taken")
    return own or free or 0


def _may(state: str, seats: Mapping[int, Seat], verdict: bool) -> None:
    if verdict and not _both_done(seats):
        raise RequestError("both reviewers must be done before somebody decides", 409, "NotYet")
    if verdict and state == DONE:
        raise RequestError("this document is settled", 409, "Settled")
    if not verdict and _both_done(seats):
        raise RequestError("both reviewers are done; now somebody who may adjudicate decides", 409, "Settled")


def _both_done(seats: Mapping[int, Seat]) -> bool:
    return all(s in seats and seats[s].done for s in SEATS)


def _state(item: Item, seats: Mapping[int, Seat]) -> str:
    if not _both_done(seats):
        return OPEN
    verdict = seats.get(VERDICT_SEAT)
    if verdict is not None and verdict.done:
        return DONE
    one, other = (seats[s].reading for s in SEATS)
    return DONE if agree(one, other, item.document.text, item.spans) else DISAGREEMENT


def _missing(kind: str, name: str) -> RequestError:
    return RequestError(f"there is no {kind} {name!r}", 404, "NotFound")

"""The review queue: projects, their documents, and the readings of two reviewers and an adjudicator of each.

Reviewers are blind to each other until both are done. Whoever saves names the version that they read; if another one is
stored, nothing is saved, so that nothing is overwritten unseen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from allonym.document import Document, Span, Turn
from allonym.errors import RequestError, UsageError
from allonym.models.words import split_words
from allonym.plan import Edit, digest
from allonym.project.readings import Reading
from allonym.project.risks import Risk
from allonym.project.seats import (
    NEW,
    SEATS,
    STATES,
    VERDICT_SEAT,
    ReviewDocument,
    UserReading,
    are_both_reviewers_done,
    check_may_save,
    check_version,
    choose_seat,
    decide_state,
    find_reviewer_seat,
)
from allonym.serial import to_plain
from allonym.server import database as db
from allonym.server.access import Caller
from allonym.server.accounts import is_valid_url_segment
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.policies import TermLists, get_project_number
from allonym.server.wire.reviews import DocumentLine, ProjectOut

_EDIT_KEYS = ("start", "end", "replacement", "label")

ListedTerm = tuple[str, str, str, str | None]
"""A term that a reviewer puts on a list: kind, label, term, and the project, or None for all."""


class ReviewQueue:
    """Projects and documents in the server's database.

    Args:
        database: of the server.
        sealing: encrypts texts, ids, marks and decisions.
        lists: take the terms that follow from decisions.
    """

    def __init__(self, database: Database, sealing: Sealing, lists: TermLists) -> None:
        self._database, self._sealing, self.lists = database, sealing, lists

    # Projects

    def make_project(self, name: str, policy: Any, owner: str) -> ProjectOut:
        """Make a project.

        Raises:
            UsageError: the name is not acceptable. RequestError: it is taken (409).
        """
        if not is_valid_url_segment(name):
            raise UsageError("the name of a project has printable characters, no slash, no space at its ends")
        row = {"name": name, "sealed": self._sealing.seal_json(policy, f"project {name}"), "owner": owner}
        with self._database.open_unique_write_transaction(f"there is a project {name!r} already") as connection:
            connection.execute(sa.insert(db.projects).values(**row, created=get_unix_time()))
        return self.list_projects(name)[0]

    def list_projects(self, name: str | None = None) -> list[ProjectOut]:
        """Return all projects by name, or only the one with this name.

        Raises:
            RequestError: there is no such project (404).
        """
        query = sa.select(db.projects).order_by(db.projects.c.name)
        with self._database.open_read_transaction() as connection:
            if name is not None:
                query = query.where(db.projects.c.number == get_project_number(connection, name))
            rows = connection.execute(query).all()
            columns = (db.documents.c.project, db.documents.c.state)
            counted = connection.execute(sa.select(*columns, sa.func.count()).group_by(*columns)).all()
        counts = {(project, state): count for project, state, count in counted}
        projects = []
        for row in rows:
            policy = self._sealing.unseal_json(row.sealed, f"project {row.name}")
            states: dict[Any, int] = {state: counts.get((row.number, state), 0) for state in STATES}
            values = {"policy": policy, "documents": sum(states.values()), "states": states}
            projects.append(ProjectOut(name=row.name, owner=row.owner, created=row.created, **values))
        return projects

    def remove_project(self, name: str) -> int:
        """Remove a project with its documents, readings and terms, and return how many documents it had.

        Raises:
            RequestError: there is no such project (404).
        """
        with self._database.open_write_transaction() as connection:
            number = get_project_number(connection, name)
            documents = sa.select(db.documents.c.number).where(db.documents.c.project == number)
            connection.execute(sa.delete(db.readings).where(db.readings.c.document.in_(documents)))
            removed = connection.execute(sa.delete(db.documents).where(db.documents.c.project == number)).rowcount
            connection.execute(sa.delete(db.terms).where(db.terms.c.project == number))
            connection.execute(sa.delete(db.projects).where(db.projects.c.number == number))
        return removed

    # Documents

    def select_new_documents(self, project: str, documents: Iterable[Document]) -> list[Document]:
        """Return the documents that are not there already, with the same text.

        Raises:
            RequestError: there is no such project (404), or another text has the same id (409).
        """
        new = []
        with self._database.open_read_transaction() as connection:
            number = get_project_number(connection, project)
            for index, document in enumerate(documents):
                row = self._find_document_row(connection, number, project, document.id)
                if row is None:
                    new.append(document)
                elif self._sealing.unseal_json(row.head, "head")["digest"] != digest(document.text):
                    raise RequestError(f"documents[{index}]: its id is another document's", 409, "Taken")
        return new

    def add_document_if_new(self, project: str, item: ReviewDocument) -> None:
        """Put a document into the queue; if its id is there already, that document stays.

        Raises:
            RequestError: there is no such project (404).
        """
        document, risk = item.document, item.risk
        assert risk is not None  # the routes require the extra
        head = {
            "id": item.id,
            "digest": digest(document.text),
            "mentions": len(item.spans),
            "words": len(split_words(document.text)),
            **{name: to_plain(getattr(risk, name)) for name in ("bound", "direct", "reasons")},
        }
        body = {
            "text": document.text,
            "parts": list(document.parts),
            "turns": [[t.start, t.end, t.speaker] for t in document.turns],
            "anonymised": item.anonymised,
            "edits": [{name: getattr(edit, name) for name in _EDIT_KEYS} for edit in item.edits],
            "spans": [[s.start, s.end, s.label, s.score, s.source] for s in item.spans],
            "labels": list(item.labels),
            "risk": to_plain(risk),
        }
        with self._database.open_write_transaction() as connection:
            number = get_project_number(connection, project)
            if self._find_document_row(connection, number, project, item.id) is not None:
                return
            row = {
                "project": number,
                "digest": self._sealing.make_lookup_digest("document", project, item.id),
                "head": self._sealing.seal_json(head, "head"),
                "body": self._sealing.seal_json(body, "body"),
                "risk": float(risk.expected),
                "gain": float(risk.gain),
                "state": NEW,
                "created": get_unix_time(),
                "changed": get_unix_time(),
            }
            connection.execute(sa.insert(db.documents).values(**row))

    def list_documents(
        self, project: str, user_id: int, *, state: str | None = None, order: str = "risk", offset: int, limit: int
    ) -> tuple[list[DocumentLine], int]:
        """Return documents of a project, the most urgent first, and how many there are in all.

        Args:
            project: its name.
            user_id: the number of the user whose own readings ``mine`` shows.
            state: only documents in this state.
            order: by ``risk``, by what the tagger may learn (``gain``), or as they were ``added``.
            offset, limit: of the page.

        Raises:
            RequestError: there is no such project (404).
        """
        risk, gain = db.documents.c.risk.desc(), db.documents.c.gain.desc()
        columns = {"risk": (risk, gain), "gain": (gain, risk)}
        with self._database.open_read_transaction() as connection:
            where = self._make_document_filters(connection, project, state)
            total = connection.execute(sa.select(sa.func.count()).select_from(db.documents).where(*where)).scalar()
            query = sa.select(*[c for c in db.documents.c if c.name != "body"]).where(*where)
            query = query.order_by(*columns.get(order, ()), db.documents.c.number)
            rows = connection.execute(query.offset(offset).limit(limit)).all()
            readings = sa.select(*[c for c in db.readings.c if c.name != "sealed"])
            seats = defaultdict[int, list[Any]](list)
            for seat in connection.execute(readings.where(db.readings.c.document.in_([r.number for r in rows]))).all():
                seats[seat.document].append(seat)
        return [self._make_document_line(row, seats[row.number], user_id) for row in rows], int(total or 0)

    def list_documents_and_readings(
        self, project: str, state: str | None = None
    ) -> list[tuple[ReviewDocument, dict[int, UserReading]]]:
        """Return all documents of a project, or those in a state, with their readings by seat, as they were added."""
        with self._database.open_read_transaction() as connection:
            where = self._make_document_filters(connection, project, state)
            rows = connection.execute(sa.select(db.documents).where(*where).order_by(db.documents.c.number)).all()
            return [(self._unseal_document(row), self._read_document_readings(connection, row.number)) for row in rows]

    def remove_document(self, project: str, id: str) -> None:
        """Remove a document with its readings.

        Raises:
            RequestError: there is no such project or document (404).
        """
        with self._database.open_write_transaction() as connection:
            row = self._get_document_row(connection, project, id, lock=True)
            connection.execute(sa.delete(db.readings).where(db.readings.c.document == row.number))
            connection.execute(sa.delete(db.documents).where(db.documents.c.number == row.number))

    # Readings

    def get_document_and_readings(
        self, project: str, id: str, caller: Caller
    ) -> tuple[ReviewDocument, UserReading, dict[int, UserReading]]:
        """Return a document, the caller's own reading of it (version 0: none yet), and all readings by seat.

        Until both reviewers are done they stay blind to each other, and there are none by seat.

        Raises:
            RequestError: there is no such project or document (404).
        """
        with self._database.open_read_transaction() as connection:
            row = self._get_document_row(connection, project, id)
            seats = self._read_document_readings(connection, row.number)
            item = self._unseal_document(row)
        number = find_reviewer_seat(seats, caller.id)
        own_seat = UserReading(0, caller.id, caller.name, 0, False, Reading()) if number is None else seats[number]
        return item, own_seat, seats if are_both_reviewers_done(seats) else {}

    def save_reading(
        self,
        project: str,
        id: str,
        caller: Caller,
        version_read: int,
        is_done: bool,
        make_reading_and_terms: Callable[[ReviewDocument], tuple[Reading, Iterable[ListedTerm]]],
        *,
        is_verdict: bool = False,
    ) -> tuple[UserReading, ReviewDocument]:
        """Store a reading, and return it with the document in its new state.

        Args:
            project, id: of the document.
            caller: the reader. As the name of a removed user is free again, readings belong to the user's number.
            version_read: of the reading that the reader began from; 0: there was none.
            is_done: whether the reader has nothing to add.
            make_reading_and_terms: returns the reading, sound for the document, and terms for the lists.
            is_verdict: it decides where two reviewers disagree, instead of being a reviewer's own.

        Raises:
            RequestError: there is no such document (404); two others review it, another version is stored, the document
                is settled, or a verdict comes before both are done (409). Nothing is changed then.
        """
        with self._database.open_write_transaction() as connection:
            row = self._get_document_row(connection, project, id, lock=True)
            seats, item = self._read_document_readings(connection, row.number), self._unseal_document(row)
            number = choose_seat(seats, caller.id, is_verdict)
            before = seats.get(number)
            reading, terms = make_reading_and_terms(item)
            stored = before.version if before else 0
            if before and stored == version_read + 1 and (before.reading, before.done) == (reading, is_done):
                return before, item  # the answer to the first try got lost
            check_may_save(row.state, seats, is_verdict)
            check_version(version_read, stored)
            seat = seats[number] = UserReading(number, caller.id, caller.name, stored + 1, is_done, reading)
            sealed = self._sealing.seal_json(reading.to_dict(), f"reading {row.number} {number}")
            values = {name: getattr(seat, name) for name in ("user", "reader", "version", "done")}
            values |= {"sealed": sealed, "changed": get_unix_time()}
            self._database.upsert_row(connection, db.readings, {"document": row.number, "seat": number}, values)
            item = replace(item, state=decide_state(item, seats))
            update = sa.update(db.documents).where(db.documents.c.number == row.number)
            connection.execute(update.values(state=item.state, changed=get_unix_time()))
            for kind, label, term, place in terms:
                self.lists.add_term(kind, label, term, caller.name, place, connection)
        return seat, item

    def remove_unfinished_readings(self, user_id: int) -> None:
        """Remove the readings of a removed user that are not done, so that others can review; finished ones stay."""
        unfinished = (db.readings.c.user == user_id) & ~db.readings.c.done
        self._database.execute_writes(sa.delete(db.readings).where(unfinished))

    def _make_document_filters(self, connection: sa.Connection, project: str, state: str | None) -> list[Any]:
        """Return the conditions for the documents of a project, or those in a state."""
        where = [db.documents.c.project == get_project_number(connection, project)]
        return [*where, db.documents.c.state == state] if state else where

    def _find_document_row(
        self, connection: sa.Connection, project_number: int, project: str, document_id: str, lock: bool = False
    ) -> Any:
        name = self._sealing.make_lookup_digest("document", project, document_id)
        query = sa.select(db.documents).where(db.documents.c.project == project_number, db.documents.c.digest == name)
        return connection.execute(query.with_for_update() if lock else query).first()

    def _get_document_row(self, connection: sa.Connection, project: str, document_id: str, lock: bool = False) -> Any:
        row = self._find_document_row(connection, get_project_number(connection, project), project, document_id, lock)
        if row is None:
            raise RequestError(f"there is no such document in the project {project!r}", 404, "NotFound")
        return row

    def _unseal_document(self, row: Any) -> ReviewDocument:
        id, body = self._sealing.unseal_json(row.head, "head")["id"], self._sealing.unseal_json(row.body, "body")
        with self._database.report_damaged_values():
            turns = tuple(Turn(start, end, tuple(name) if name else None) for start, end, name in body["turns"])
            parts = tuple((start, end) for start, end in body["parts"])
            return ReviewDocument(
                id,
                Document(id, body["text"], parts=parts, turns=turns),
                body["anonymised"],
                tuple(Edit(**edit) for edit in body["edits"]),
                tuple(Span(*span) for span in body["spans"]),
                tuple(body["labels"]),
                Risk.from_dict(body["risk"]),
                row.state,
            )

    def _make_document_line(self, row: Any, reading_rows: Sequence[Any], user_id: int) -> DocumentLine:
        mine = next((s for s in reading_rows if s.seat in SEATS and s.user == user_id), None)
        columns = {name: getattr(row, name) for name in ("state", "risk", "gain", "created", "changed")}
        counts = {
            "reviewers": sum(s.seat in SEATS for s in reading_rows),
            "done": sum(s.seat in SEATS and s.done for s in reading_rows),
            "mine": "none" if mine is None else "done" if mine.done else "open",
            "adjudicated": any(s.seat == VERDICT_SEAT and s.done for s in reading_rows),
        }
        return DocumentLine.from_values({**self._sealing.unseal_json(row.head, "head"), **columns, **counts})

    def _read_document_readings(self, connection: sa.Connection, document_number: int) -> dict[int, UserReading]:
        seats = {}
        for row in connection.execute(sa.select(db.readings).where(db.readings.c.document == document_number)).all():
            reading = Reading.from_dict(self._sealing.unseal_json(row.sealed, f"reading {document_number} {row.seat}"))
            seats[row.seat] = UserReading(row.seat, row.user, row.reader, row.version, row.done, reading)
        return seats

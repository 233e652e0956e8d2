"""Intruder studies on the server: P3's judging task for invited people, dealt and counted as the paper pages are.

An invited person has a link and no account. Its token is kept as a digest only, opens one page of texts under tokens,
and nothing else; what the texts are about is in the study's key, which is sealed and never sent. Answers are sealed and
saved as they come; one that comes again replaces the one before, until the person has finished.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from allonym.errors import DatabaseError, MissingExtra, RequestError, UsageError
from allonym.server import database as db
from allonym.server.accounts import digest
from allonym.server.database import Database, is_taken, now
from allonym.server.sealing import Sealing

INVITED, BEGUN, FINISHED, EXPIRED = "invited", "begun", "finished", "expired"
_DAY = 86_400
_LINK = "this link has expired, was withdrawn or is not complete"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a study and the truth. All but the id and the group hidden from ``repr``."""

    id: str
    text: str = field(repr=False)
    subject: str = field(repr=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """A study in short. Invited: whose link still holds or who has begun."""

    number: int
    name: str
    owner: str
    created: int
    texts: int
    pages: int
    invited: int
    begun: int
    finished: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """How far one invited person is."""

    page: int
    state: str
    answered: int
    of: int
    expires: int


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """What an invited person gets: texts under tokens, and the answers so far. Hidden from ``repr``."""

    study: str
    consent: str
    guesses: int
    items: tuple[tuple[str, str], ...]
    answers: Mapping[str, Mapping[str, Any]]
    done: bool
    expires: int


class Studies:
    """Studies in the server's database.

    Args:
        place: the database.
        sealing: under which texts, truths and answers lie.
    """

    def __init__(self, place: Database, sealing: Sealing) -> None:
        self._place, self._sealing = place, sealing

    def __repr__(self) -> str:
        return "Studies()"

    def make(
        self,
        name: str,
        texts: Sequence[Text],
        owner: str,
        *,
        judgements: int,
        per_page: int,
        seed: int,
        guesses: int,
        consent: str,
        aliases: Mapping[str, Sequence[str]],
    ) -> Study:
        """Deal texts to pages, one for each person, as :func:`allonym.evaluate.sheets.judging` does.

        Raises:
            MissingExtra: the extra ``evaluate`` is not installed.
            UsageError: the name will not do. DataError: an empty text or subject, or an id twice.
            RequestError: the name is taken (409).
        """
        if name != name.strip() or not name.isprintable():
            raise UsageError("the name of a study has printable characters, and no space at its ends")
        sheets = _sheets().judging(
            [t.id for t in texts],
            [t.text for t in texts],
            [t.subject for t in texts],
            [t.group for t in texts],
            judgements=judgements,
            per_page=per_page,
            seed=seed,
        )
        held = {
            "key": json.loads(sheets.to_key()),
            "texts": {token: entry.text for token, entry in sheets.entries.items()},
            "guesses": guesses,
            "consent": consent,
            "aliases": {who: list(names) for who, names in aliases.items()},
        }
        created = now()
        row = {
            "name": name,
            "sealed": self._sealing.seal(json.dumps(held), f"study {name}"),
            "texts": len(texts),
            "pages": len(sheets.pages),
            "owner": owner,
            "created": created,
        }
        try:
            with self._place.writing() as connection:
                made = connection.execute(sa.insert(db.studies).values(**row)).inserted_primary_key
        except DatabaseError as error:
            if is_taken(error):
                raise RequestError(f"there is a study {name!r} already", 409, "Taken") from None
            raise
        number = int(made[0]) if made else 0
        return Study(number, name, owner, created, len(texts), len(sheets.pages), 0, 0, 0)

    def studies(self, number: int | None = None) -> list[Study]:
        """All studies, the newest first, or this one.

        Raises:
            RequestError: there is no such study (404).
        """
        asked = sa.select(db.studies).order_by(db.studies.c.number.desc())
        if number is not None:
            asked = asked.where(db.studies.c.number == number)
        with self._place.reading() as connection:
            rows = connection.execute(asked).all()
            invited = connection.execute(sa.select(db.invitations)).all()
        if number is not None and not rows:
            raise _missing(number)
        of: dict[int, list[Any]] = {}
        for one in invited:
            of.setdefault(one.study, []).append(one)
        out = []
        for r in rows:
            own = of.get(r.number, [])
            alive = sum(bool(i.opened) or i.expires > now() for i in own)
            begun, finished = sum(bool(i.opened) for i in own), sum(bool(i.done) for i in own)
            out.append(Study(r.number, r.name, r.owner, r.created, r.texts, r.pages, alive, begun, finished))
        return out

    def remove(self, number: int) -> None:
        """Remove a study with its invitations and answers.

        Raises:
            RequestError: there is no such study (404).
        """
        with self._place.writing() as connection:
            if not connection.execute(sa.delete(db.studies).where(db.studies.c.number == number)).rowcount:
                raise _missing(number)
            for owned in (db.invitations, db.answers):
                connection.execute(sa.delete(owned).where(owned.c.study == number))

    def invite(self, number: int, count: int, days: float) -> list[tuple[str, int, int]]:
        """Tokens for people, each with its page and when it expires. A page whose link expired unopened is free again.

        Raises:
            RequestError: there is no such study (404), or not so many pages are left (409).
        """
        expires = now() + int(days * _DAY)
        with self._place.writing() as connection:
            asked = sa.select(db.studies.c.pages).where(db.studies.c.number == number)
            pages = connection.execute(asked.with_for_update()).scalar()
            if pages is None:
                raise _missing(number)
            mine = db.invitations.c.study == number
            stale = sa.and_(mine, db.invitations.c.opened.is_(None), db.invitations.c.expires <= now())
            connection.execute(sa.delete(db.invitations).where(stale))
            taken = set(connection.execute(sa.select(db.invitations.c.page).where(mine)).scalars().all())
            free = [page for page in range(1, int(pages) + 1) if page not in taken][:count]
            if len(free) < count:
                raise RequestError(
                    f"{pages} people are needed for this study, and {len(taken)} are invited; {count} more cannot be",
                    409,
                    "Full",
                )
            made = [(secrets.token_urlsafe(32), page, expires) for page in free]
            rows = [
                {"digest": digest(token), "study": number, "page": page, "expires": expires, "created": now()}
                for token, page, _ in made
            ]
            connection.execute(sa.insert(db.invitations), rows)
        return made

    def withdraw(self, number: int, page: int) -> None:
        """Let a link work no more, so that its page can go to somebody else; answers to it are removed.

        Raises:
            RequestError: nobody is invited to this page (404).
        """
        with self._place.writing() as connection:
            at = sa.and_(db.invitations.c.study == number, db.invitations.c.page == page)
            if not connection.execute(sa.delete(db.invitations).where(at)).rowcount:
                raise RequestError(f"nobody is invited to page {page} of study {number}", 404, "NotFound")
            gone = sa.and_(db.answers.c.study == number, db.answers.c.page == page)
            connection.execute(sa.delete(db.answers).where(gone))

    def invitations(self, number: int) -> list[Invitation]:
        """How far each invited person is, by page."""
        with self._place.reading() as connection:
            held = self._held(connection, number)
            asked = sa.select(db.invitations).where(db.invitations.c.study == number)
            rows = connection.execute(asked.order_by(db.invitations.c.page)).all()
            counted = sa.select(db.answers.c.page, sa.func.count()).where(db.answers.c.study == number)
            answered = {row[0]: row[1] for row in connection.execute(counted.group_by(db.answers.c.page))}
        sizes = [len(page) for page in held["key"]["pages"]]
        return [Invitation(r.page, _state(r), int(answered.get(r.page, 0)), sizes[r.page - 1], r.expires) for r in rows]

    # The invited person

    def task(self, token: str) -> Task:
        """What a link opens.

        Raises:
            RequestError: it is not known, or has expired (404).
        """
        with self._place.reading() as connection:
            row = self._invited(connection, token)
            held = self._held(connection, row.study)
            given = self._given(connection, row.study, row.page)
        if not row.opened:
            with self._place.writing() as connection:
                at = db.invitations.c.digest == row.digest
                connection.execute(sa.update(db.invitations).where(at).values(opened=now()))
        tokens = held["key"]["pages"][row.page - 1]
        return Task(
            held["name"],
            held["consent"],
            held["guesses"],
            tuple((t, held["texts"][t]) for t in tokens),
            given,
            bool(row.done),
            row.expires,
        )

    def answer(self, token: str, answers: Mapping[str, Mapping[str, Any]], done: bool) -> tuple[int, int, bool]:
        """Keep answers by the texts' tokens; gives how many there are, of how many, and whether the person is done.

        Raises:
            RequestError: the link is not known or has expired (404), or the person has finished, with other answers
                (409).
            UsageError: an answer is about nothing on this page, or names more people than asked for.
        """
        with self._place.writing() as connection:
            row = self._invited(connection, token, locked=True)
            held = self._held(connection, row.study)
            tokens = held["key"]["pages"][row.page - 1]
            known = self._given(connection, row.study, row.page)
            for item, said in answers.items():
                if item not in tokens:
                    raise UsageError("answers: one is about nothing on this page")
                if len(said["names"]) > held["guesses"]:
                    raise UsageError(f"answers: at most {held['guesses']} names are asked for")
            new = {item: dict(said) for item, said in answers.items() if known.get(item) != dict(said)}
            if row.done and new:
                raise RequestError("you have finished, so your answers are final", 409, "Finished")
            for item, said in new.items():
                at = sa.and_(db.answers.c.study == row.study, db.answers.c.page == row.page, db.answers.c.item == item)
                about = f"answer {row.study} {row.page} {item}"
                values = {"sealed": self._sealing.seal(json.dumps(said), about), "changed": now()}
                if item in known:
                    connection.execute(sa.update(db.answers).where(at).values(**values))
                else:
                    key = {"study": row.study, "page": row.page, "item": item}
                    connection.execute(sa.insert(db.answers).values(**key, **values))
            finished = bool(row.done or done)
            stamped = {"opened": row.opened or now(), "done": row.done or (now() if done else None)}
            connection.execute(sa.update(db.invitations).where(db.invitations.c.digest == row.digest).values(**stamped))
        return len({*known, *new}), len(tokens), finished

    # Results

    def results(self, number: int, seed: int = 0) -> dict[str, Any] | None:
        """What :func:`allonym.evaluate.people_study` makes of the answers, with how sure people were of right and wrong
        guesses (0 to 100); None while there is no answer. It holds names and what people wrote.

        Raises:
            RequestError: there is no such study (404).
            MissingExtra: the extra ``evaluate`` is not installed.
        """
        with self._place.reading() as connection:
            held = self._held(connection, number)
            pages = sa.select(db.answers.c.page).where(db.answers.c.study == number).distinct()
            given = {page: self._given(connection, number, page) for page in connection.execute(pages).scalars().all()}
        if not any(given.values()):
            return None
        from allonym.evaluate import Judgement, Truth, people_study
        from allonym.evaluate.people import CUT
        from allonym.intruder.names import closest
        from allonym.intruder.persons import Answer
        from allonym.stats import none
        from allonym.stats.samples import average

        entries = {e["token"]: e for e in held["key"]["entries"]}
        truths = [Truth(e["id"], e["subject"], e["group"]) for e in entries.values()]
        judgements: list[Judgement] = []
        sure: dict[bool, list[float]] = {True: [], False: []}
        for page, answers in sorted(given.items()):
            for item, said in sorted(answers.items()):
                entry, names = entries[item], tuple(said["names"])
                answer = Answer(said["identified"] == "yes", names, said["reason"], said["knowledge"])
                judgements.append(Judgement(entry["id"], str(page), answer))
                if names:
                    true = (entry["subject"], *held["aliases"].get(entry["subject"], ()))
                    sure[closest(names[0], true) >= CUT].append(float(said["confidence"]))
        found = people_study(truths, judgements, aliases=held["aliases"], seed=seed).to_dict(texts=True)
        for right, name in ((True, "confidence_right"), (False, "confidence_wrong")):
            told = average(sure[right]) if sure[right] else none(f"no guess was {'right' if right else 'wrong'}")
            found[name] = told.to_dict()
        return found

    # Inside

    def _held(self, connection: sa.Connection, number: int) -> dict[str, Any]:
        row = connection.execute(sa.select(db.studies).where(db.studies.c.number == number)).first()
        if row is None:
            raise _missing(number)
        return {"name": row.name, **json.loads(self._sealing.opened(row.sealed, f"study {row.name}"))}

    def _invited(self, connection: sa.Connection, token: str, locked: bool = False) -> Any:
        asked = sa.select(db.invitations).where(db.invitations.c.digest == digest(token))
        row = connection.execute(asked.with_for_update() if locked else asked).first()
        if row is None or row.expires <= now():
            raise RequestError(_LINK, 404, "WrongLink")
        return row

    def _given(self, connection: sa.Connection, study: int, page: int) -> dict[str, dict[str, Any]]:
        at = sa.and_(db.answers.c.study == study, db.answers.c.page == page)
        rows = connection.execute(sa.select(db.answers).where(at).order_by(db.answers.c.item)).all()
        return {r.item: json.loads(self._sealing.opened(r.sealed, f"answer {study} {page} {r.item}")) for r in rows}


def _state(row: Any) -> str:
    if row.done:
        return FINISHED
    if row.expires <= now():
        return EXPIRED
    return BEGUN if row.opened else INVITED


def _sheets() -> Any:
    try:
        from allonym.evaluate import sheets
    except ImportError as error:
        raise MissingExtra("an intruder study", "evaluate") from error
    return sheets


def _missing(number: int) -> RequestError:
    return RequestError(f"there is no study {number}", 404, "NotFound")

"""Intruder studies on the server: P3's judging task for invited people, dealt and counted as the paper pages are.

An invited person has a link and no account. Its token is stored as a digest only, opens one page of texts under tokens,
and nothing else. Whom the texts are about is in the study's key, which is sealed and never sent. Answers are sealed and
saved as they come; a new answer to a text replaces the one before, until the person has finished.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sa

from allonym.errors import MissingExtra, RequestError, UsageError
from allonym.report.intruder_study import CONSENT, INSTRUCTIONS, TITLES
from allonym.server import database as db
from allonym.server.accounts import hash_token
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.wire import studies as wire

_DAY = 86_400


class Studies:
    """The studies in the server's database.

    Args:
        database: of the server.
        sealing: encrypts texts, true names and answers.
    """

    def __init__(self, database: Database, sealing: Sealing) -> None:
        self._database, self._sealing = database, sealing

    def make_study(self, body: wire.NewStudy, owner: str) -> wire.StudyOut:
        """Deal texts to pages, one for each person, as :func:`allonym.evaluate.sheets.make_judging_sheets` does.

        Raises:
            MissingExtra: the extra ``evaluate`` is not installed.
            UsageError: the name is not acceptable. DataError: an empty text or subject, or an id twice.
            RequestError: the name is taken (409).
        """
        if body.name != body.name.strip() or not body.name.isprintable():
            raise UsageError("the name of a study has printable characters, and no space at its ends")
        try:
            from allonym.evaluate import sheets
        except ImportError as error:
            raise MissingExtra("an intruder study", "evaluate") from error
        columns = ([getattr(text, name) for text in body.texts] for name in ("id", "text", "subject", "group"))
        dealt = sheets.make_judging_sheets(*columns, **body.model_dump(include={"judgements", "per_page", "seed"}))
        content = {
            "key": json.loads(dealt.to_key_json()),
            "texts": {token: entry.text for token, entry in dealt.entries.items()},
            **body.model_dump(include={"guesses", "consent", "aliases"}),
        }
        insert = sa.insert(db.studies).values(
            name=body.name,
            sealed=self._sealing.seal_json(content, f"study {body.name}"),
            texts=len(body.texts),
            pages=len(dealt.pages),
            owner=owner,
            created=get_unix_time(),
        )
        with self._database.open_unique_write_transaction(f"there is a study {body.name!r} already") as connection:
            connection.execute(insert)
            number = connection.execute(sa.select(db.studies.c.number).where(db.studies.c.name == body.name)).scalar()
        return self.list_studies(number)[0]

    def list_studies(self, study_number: int | None = None) -> list[wire.StudyOut]:
        """Return all studies, the newest first, or only the one with this number.

        Raises:
            RequestError: there is no such study (404).
        """
        query = sa.select(db.studies).order_by(db.studies.c.number.desc())
        if study_number is not None:
            query = query.where(db.studies.c.number == study_number)
        with self._database.open_read_transaction() as connection:
            rows = connection.execute(query).all()
            invitations = defaultdict[int, list[Any]](list)
            for invitation in connection.execute(sa.select(db.invitations)).all():
                invitations[invitation.study].append(invitation)
        if study_number is not None and not rows:
            raise _make_study_not_found_error(study_number)
        return [_describe_study(row, invitations[row.number]) for row in rows]

    def remove_study(self, study_number: int) -> None:
        """Remove a study with its invitations and answers.

        Raises:
            RequestError: there is no such study (404).
        """
        with self._database.open_write_transaction() as connection:
            if not connection.execute(sa.delete(db.studies).where(db.studies.c.number == study_number)).rowcount:
                raise _make_study_not_found_error(study_number)
            for table in (db.invitations, db.answers):
                connection.execute(sa.delete(table).where(table.c.study == study_number))

    def make_invitations(self, study_number: int, people: int, days_valid: float) -> list[tuple[str, int, int]]:
        """Return tokens for people, each with its page and when it expires.

        A page whose link expired before it was opened is free again.

        Raises:
            RequestError: there is no such study (404), or too few pages are left (409).
        """
        expires, invitations = get_unix_time() + int(days_valid * _DAY), db.invitations.c
        with self._database.open_write_transaction() as connection:
            query = sa.select(db.studies.c.pages).where(db.studies.c.number == study_number)
            pages = connection.execute(query.with_for_update()).scalar()
            if pages is None:
                raise _make_study_not_found_error(study_number)
            here = invitations.study == study_number
            unopened = (invitations.opened.is_(None), invitations.expires <= get_unix_time())
            connection.execute(sa.delete(db.invitations).where(here, *unopened))
            dealt = set(connection.execute(sa.select(invitations.page).where(here)).scalars())
            free = [page for page in range(1, int(pages) + 1) if page not in dealt][:people]
            if len(free) < people:
                message = f"this study needs {pages} people, and {len(dealt)} are invited; {people} more cannot be"
                raise RequestError(message, 409, "Full")
            links = [(secrets.token_urlsafe(32), page, expires) for page in free]
            row = {"study": study_number, "expires": expires, "created": get_unix_time()}
            rows = [{"digest": hash_token(token), "page": page, **row} for token, page, _ in links]
            connection.execute(sa.insert(db.invitations), rows)
        return links

    def withdraw_invitation(self, study_number: int, page: int) -> None:
        """Invalidate a link and remove its answers, so that its page can go to somebody else.

        Raises:
            RequestError: nobody is invited to this page (404).
        """
        with self._database.open_write_transaction() as connection:
            removed = [
                connection.execute(sa.delete(table).where(table.c.study == study_number, table.c.page == page)).rowcount
                for table in (db.invitations, db.answers)
            ]
            if not removed[0]:
                raise RequestError(f"nobody is invited to page {page} of study {study_number}", 404, "NotFound")

    def list_invitation_progress(self, study_number: int) -> list[wire.Invited]:
        """Return how far each invited person is, by page."""
        with self._database.open_read_transaction() as connection:
            sizes = [len(page) for page in self._get_study_content(connection, study_number)["key"]["pages"]]
            query = sa.select(db.invitations).where(db.invitations.c.study == study_number)
            rows = connection.execute(query.order_by(db.invitations.c.page)).all()
            counts = sa.select(db.answers.c.page, sa.func.count()).where(db.answers.c.study == study_number)
            answered = {page: int(count) for page, count in connection.execute(counts.group_by(db.answers.c.page))}
        invited = []
        for row in rows:
            progress = {"answered": answered.get(row.page, 0), "of": sizes[row.page - 1]}
            invited.append(
                wire.Invited(page=row.page, state=_get_invitation_state(row), expires=row.expires, **progress)
            )
        return invited

    # The invited person

    def open_judging_task(self, link_token: str) -> wire.Task:
        """Return the task of the person who has a link.

        Raises:
            RequestError: the link is not known, or has expired (404).
        """
        with self._database.open_read_transaction() as connection:
            row = self._get_valid_invitation_row(connection, link_token)
            content = self._get_study_content(connection, row.study)
            answers = self._get_page_answers(connection, row.study, row.page)
        if not row.opened:
            invitation = db.invitations.c.digest == row.digest
            self._database.execute_writes(sa.update(db.invitations).where(invitation).values(opened=get_unix_time()))
        return wire.Task(
            study=content["name"],
            title=TITLES["judge"],
            instructions=list(INSTRUCTIONS["judge"]),
            consent=content["consent"].strip() or CONSENT,
            guesses=content["guesses"],
            items=[wire.TaskItem(token=t, text=content["texts"][t]) for t in content["key"]["pages"][row.page - 1]],
            answers={item: wire.AnswerIO(**answer) for item, answer in answers.items()},
            done=bool(row.done),
            expires=row.expires,
        )

    def save_answers(self, link_token: str, answers: Mapping[str, Mapping[str, Any]], is_done: bool) -> wire.Received:
        """Store answers by the tokens of their texts.

        Raises:
            RequestError: the link is not known or has expired (404), or the person has finished, with other answers
                (409).
            UsageError: an answer is about no text of this page, or names more people than the study asks for.
        """
        with self._database.open_write_transaction() as connection:
            row = self._get_valid_invitation_row(connection, link_token, lock=True)
            content = self._get_study_content(connection, row.study)
            tokens = content["key"]["pages"][row.page - 1]
            stored = self._get_page_answers(connection, row.study, row.page)
            for item, answer in answers.items():
                if item not in tokens:
                    raise UsageError("answers: one is about no text of this page")
                if len(answer["names"]) > content["guesses"]:
                    raise UsageError(f"answers: the study asks for at most {content['guesses']} names")
            new = {item: dict(answer) for item, answer in answers.items() if stored.get(item) != dict(answer)}
            if row.done and new:
                raise RequestError("you have finished, so your answers are final", 409, "Finished")
            for item, answer in new.items():
                key = {"study": row.study, "page": row.page, "item": item}
                sealed = self._sealing.seal_json(answer, f"answer {row.study} {row.page} {item}")
                values = {"sealed": sealed, "changed": get_unix_time()}
                self._database.upsert_row(connection, db.answers, key, values)
            stamps = {
                "opened": row.opened or get_unix_time(),
                "done": row.done or (get_unix_time() if is_done else None),
            }
            connection.execute(sa.update(db.invitations).where(db.invitations.c.digest == row.digest).values(**stamps))
        return wire.Received(answered=len({*stored, *new}), of=len(tokens), done=bool(row.done or is_done))

    # Results

    def compute_results(self, study_number: int) -> wire.StudyResults | None:
        """Return what :func:`allonym.evaluate.people_study` makes of the answers; None while there is none.

        It adds how confident people were of right and wrong guesses (0 to 100). It holds names and what people wrote.

        Raises:
            RequestError: there is no such study (404).
            MissingExtra: the extra ``evaluate`` is not installed.
        """
        with self._database.open_read_transaction() as connection:
            content = self._get_study_content(connection, study_number)
            pages = sa.select(db.answers.c.page).where(db.answers.c.study == study_number).distinct()
            answers = {
                page: self._get_page_answers(connection, study_number, page) for page in connection.scalars(pages).all()
            }
        if not any(answers.values()):
            return None
        from allonym.evaluate import Judgement, Truth, people_study
        from allonym.intruder.persons import Answer
        from allonym.intruder.scoring import CUT, measure_best_likeness
        from allonym.stats import none
        from allonym.stats.samples import average

        entries = {entry["token"]: entry for entry in content["key"]["entries"]}
        truths = [Truth(e["id"], e["subject"], e["group"]) for e in entries.values()]
        judgements: list[Judgement] = []
        confidences: dict[bool, list[float]] = {True: [], False: []}
        for page, answered in sorted(answers.items()):
            for item, reply in sorted(answered.items()):
                entry, names = entries[item], tuple(reply["names"])
                answer = Answer(reply["identified"] == "yes", names, reply["reason"], reply["knowledge"])
                judgements.append(Judgement(entry["id"], str(page), answer))
                if names:
                    true_names = (entry["subject"], *content["aliases"].get(entry["subject"], ()))
                    confidences[measure_best_likeness(names[0], true_names) >= CUT].append(float(reply["confidence"]))
        results = people_study(truths, judgements, aliases=content["aliases"]).to_dict(texts=True)
        for right, word in ((True, "right"), (False, "wrong")):
            values = confidences[right]
            results[f"confidence_{word}"] = (average(values) if values else none(f"no guess was {word}")).to_dict()
        table, terms = results["results"], results["terms"]
        results |= {"ranks": table["ranks"], "rows": table["rows"], "overall": wire.StudyRate.from_values(table["all"])}
        results |= {key: [wire.StudyRate.from_values(row) for row in table[key]] for key in ("groups", "subjects")}
        results |= {"revealed": terms["revealed_all"], "kept": terms["kept_all"]}
        return wire.StudyResults.from_values(results)

    def _get_study_content(self, connection: sa.Connection, study_number: int) -> dict[str, Any]:
        """Return the name of a study and what is sealed of it."""
        row = connection.execute(sa.select(db.studies).where(db.studies.c.number == study_number)).first()
        if row is None:
            raise _make_study_not_found_error(study_number)
        return {"name": row.name, **self._sealing.unseal_json(row.sealed, f"study {row.name}")}

    def _get_valid_invitation_row(self, connection: sa.Connection, link_token: str, lock: bool = False) -> Any:
        query = sa.select(db.invitations).where(db.invitations.c.digest == hash_token(link_token))
        row = connection.execute(query.with_for_update() if lock else query).first()
        if row is None or row.expires <= get_unix_time():
            raise RequestError("this link has expired, was withdrawn or is not complete", 404, "WrongLink")
        return row

    def _get_page_answers(self, connection: sa.Connection, study_number: int, page: int) -> dict[str, dict[str, Any]]:
        query = sa.select(db.answers).where(db.answers.c.study == study_number, db.answers.c.page == page)
        rows = connection.execute(query.order_by(db.answers.c.item)).all()
        return {r.item: self._sealing.unseal_json(r.sealed, f"answer {study_number} {page} {r.item}") for r in rows}


def _describe_study(row: Any, invitation_rows: Sequence[Any]) -> wire.StudyOut:
    counts = {
        "invited": sum(bool(i.opened) or i.expires > get_unix_time() for i in invitation_rows),
        "begun": sum(bool(i.opened) for i in invitation_rows),
        "finished": sum(bool(i.done) for i in invitation_rows),
    }
    return wire.StudyOut.from_values({**row._mapping, "id": row.number, **counts})


def _get_invitation_state(invitation_row: Any) -> Literal["invited", "begun", "finished", "expired"]:
    if invitation_row.done:
        return "finished"
    if invitation_row.expires <= get_unix_time():
        return "expired"
    return "begun" if invitation_row.opened else "invited"


def _make_study_not_found_error(study_number: int) -> RequestError:
    return RequestError(f"there is no study {study_number}", 404, "NotFound")

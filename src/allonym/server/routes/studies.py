"""Intruder studies: the judging task of Kleinberg et al. 2022 for invited people, dealt and counted as paper pages.

Studies are made and read by users with the permission. An invited person has a link and no account. Its token is stored
as a digest only, opens one page of texts under tokens, and nothing else. Whom the texts are about is in the key of the
study, which is sealed and never sent. Answers are sealed and saved as they come; a new answer replaces the one
before, until the person has finished.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Path, Response

from allonym.errors import MissingExtra, RequestError, UsageError
from allonym.report.intruder_study import CONSENT, INSTRUCTIONS, TITLES
from allonym.server import database as db
from allonym.server.accounts import hash_token
from allonym.server.database import get_unix_time
from allonym.server.routes.parameters import AnyServices, Limit, Number, Offset, Scholar
from allonym.server.services import Services
from allonym.server.wire import studies as wire

router = APIRouter(prefix="/v1", tags=["studies"])
Token = Annotated[str, Path(min_length=1, max_length=200)]
_DAY = 86_400


@router.get("/studies", summary="Studies")
def list_studies(caller: Scholar, services: AnyServices, offset: Offset = 0, limit: Limit = 100) -> wire.Studies:
    """All studies, the newest first."""
    with services.database.open_read_transaction() as connection:
        total = connection.execute(sa.select(sa.func.count()).select_from(db.studies)).scalar() or 0
        query = sa.select(db.studies).order_by(db.studies.c.number.desc()).offset(offset).limit(limit)
        rows = connection.execute(query).all()
        return wire.Studies(studies=_describe_studies(connection, rows), total=total)


@router.post("/studies", status_code=201, summary="Make a study")
def make_study(body: wire.NewStudy, caller: Scholar, services: AnyServices) -> wire.StudyOut:
    """Anonymised texts are dealt to pages, one for each person, so that each text is read about equally often. Texts
    and true names are sealed. Needs the extra `evaluate`."""
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
        sealed=services.sealing.seal_json(content, f"study {body.name}"),
        texts=len(body.texts),
        pages=len(dealt.pages),
        owner=caller.name,
        created=get_unix_time(),
    )
    with services.database.open_unique_write_transaction(f"there is a study {body.name!r} already") as connection:
        connection.execute(insert)
        query = sa.select(db.studies).where(db.studies.c.name == body.name)
        (study,) = _describe_studies(connection, connection.execute(query).all())
    services.accounts.record_action(caller, "study made", {"texts": study.texts, "pages": study.pages})
    return study


@router.get("/studies/{id}", summary="A study and its results")
def get_study(id: Number, caller: Scholar, services: AnyServices) -> wire.StudyDetail:
    """How far the invited people are, and the tables of their answers so far. The tables reveal the true names: do not
    show them to people who are still to judge."""
    with services.database.open_read_transaction() as connection:
        row = _get_study_row(connection, id)
        content = _unseal_content(row, services)
        query = sa.select(db.invitations).where(db.invitations.c.study == id).order_by(db.invitations.c.page)
        invitations = connection.execute(query).all()
        pages = connection.scalars(sa.select(db.answers.c.page).where(db.answers.c.study == id).distinct()).all()
        answers = {page: _get_page_answers(connection, services, id, page) for page in pages}
        (study,) = _describe_studies(connection, [row])
    invited = [
        wire.Invited(
            page=each.page,
            state=_get_invitation_state(each),
            answered=len(answers.get(each.page, ())),
            of=len(content["key"]["pages"][each.page - 1]),
            expires=each.expires,
        )
        for each in invitations
    ]
    results = _compute_results(content, answers) if answers else None
    return wire.StudyDetail(**study.model_dump(), invitations=invited, results=results)


@router.delete("/studies/{id}", status_code=204, summary="Remove a study")
def remove_study(id: Number, caller: Scholar, services: AnyServices) -> None:
    """Remove a study with its invitations and answers."""
    with services.database.open_write_transaction() as connection:
        _get_study_row(connection, id)
        connection.execute(sa.delete(db.studies).where(db.studies.c.number == id))
        for table in (db.invitations, db.answers):
            connection.execute(sa.delete(table).where(table.c.study == id))
    services.accounts.record_action(caller, "study removed")


@router.post("/studies/{id}/invitations", status_code=201, summary="Invite people")
def invite_people(id: Number, body: wire.InvitePeople, caller: Scholar, services: AnyServices) -> wire.InvitationLinks:
    """A link for each person, shown only this once, as only a digest of its token is stored. It opens that person's
    page and nothing else."""
    moment, columns = get_unix_time(), db.invitations.c
    expires = moment + int(body.days * _DAY)
    with services.database.open_write_transaction() as connection:
        study = _get_study_row(connection, id, lock=True)
        here = columns.study == id  # a page whose link expired before it was opened is free again
        connection.execute(sa.delete(db.invitations).where(here, columns.opened.is_(None), columns.expires <= moment))
        dealt = set(connection.execute(sa.select(columns.page).where(here)).scalars())
        free = [page for page in range(1, study.pages + 1) if page not in dealt][: body.count]
        if len(free) < body.count:
            invited = f"this study needs {study.pages} people, and {len(dealt)} are invited"
            raise RequestError(f"{invited}; {body.count} more cannot be", 409, "Full")
        tokens = {page: secrets.token_urlsafe(32) for page in free}
        row = {"study": id, "expires": expires, "created": moment}
        rows = [{"digest": hash_token(token), "page": page, **row} for page, token in tokens.items()]
        connection.execute(sa.insert(db.invitations), rows)
    services.accounts.record_action(caller, "study invitations", {"people": len(tokens)})
    links = [
        wire.InvitationLink(link=f"{services.url}/study/{token}", page=page, expires=expires)
        for page, token in tokens.items()
    ]
    return wire.InvitationLinks(invitations=links)


@router.delete("/studies/{id}/invitations/{page}", status_code=204, summary="Withdraw an invitation")
def withdraw_invitation(id: Number, page: Number, caller: Scholar, services: AnyServices) -> None:
    """The link stops working, its answers are removed, and the page can go to somebody else."""
    with services.database.open_write_transaction() as connection:
        removed = [
            connection.execute(sa.delete(table).where(table.c.study == id, table.c.page == page)).rowcount
            for table in (db.invitations, db.answers)
        ]
        if not removed[0]:
            raise RequestError(f"nobody is invited to page {page} of study {id}", 404, "NotFound")
    services.accounts.record_action(caller, "study invitation withdrawn")


@router.get("/study/{token}", summary="The task of an invited person")
def get_task(token: Token, services: AnyServices, response: Response) -> wire.Task:
    """Texts to judge, and the answers so far. Needs no account but the token of a link."""
    response.headers["cache-control"] = "no-store"
    with services.database.open_read_transaction() as connection:
        row = _get_valid_invitation_row(connection, token)
        content = _unseal_content(_get_study_row(connection, row.study), services)
        answers = _get_page_answers(connection, services, row.study, row.page)
    if not row.opened:
        invitation = db.invitations.c.digest == row.digest
        services.database.execute_writes(sa.update(db.invitations).where(invitation).values(opened=get_unix_time()))
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


@router.post("/study/{token}", summary="Answers of an invited person")
def save_answers(token: Token, body: wire.Answers, services: AnyServices) -> wire.Received:
    """Answers are saved as they come, one by one or together; the same answer sent again changes nothing. With `done`
    they are final."""
    answers = {answer.item: answer.model_dump(exclude={"item"}) for answer in body.answers}
    moment = get_unix_time()
    with services.database.open_write_transaction() as connection:
        row = _get_valid_invitation_row(connection, token, lock=True)
        content = _unseal_content(_get_study_row(connection, row.study), services)
        tokens = content["key"]["pages"][row.page - 1]
        stored = _get_page_answers(connection, services, row.study, row.page)
        for item, answer in answers.items():
            if item not in tokens:
                raise UsageError("answers: one is about no text of this page")
            if len(answer["names"]) > content["guesses"]:
                raise UsageError(f"answers: the study asks for at most {content['guesses']} names")
        new = {item: answer for item, answer in answers.items() if stored.get(item) != answer}
        if row.done and new:
            raise RequestError("you have finished, so your answers are final", 409, "Finished")
        for item, answer in new.items():
            key = {"study": row.study, "page": row.page, "item": item}
            sealed = services.sealing.seal_json(answer, f"answer {row.study} {row.page} {item}")
            services.database.upsert_row(connection, db.answers, key, {"sealed": sealed, "changed": moment})
        stamps = {"opened": row.opened or moment, "done": row.done or (moment if body.done else None)}
        connection.execute(sa.update(db.invitations).where(db.invitations.c.digest == row.digest).values(**stamps))
    return wire.Received(answered=len({*stored, *new}), of=len(tokens), done=bool(row.done or body.done))


PageAnswers = Mapping[str, dict[str, Any]]
"""The answers of one page by the tokens of their texts."""


def _compute_results(content: Mapping[str, Any], answers: Mapping[int, PageAnswers]) -> wire.StudyResults:
    """Return what :func:`allonym.evaluate.people_study` makes of the answers, by page.

    It adds how confident people were of right and wrong guesses (0 to 100). It holds names and what people wrote.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
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


def _get_study_row(connection: sa.Connection, study_number: int, lock: bool = False) -> Any:
    query = sa.select(db.studies).where(db.studies.c.number == study_number)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise RequestError(f"there is no study {study_number}", 404, "NotFound")
    return row


def _unseal_content(study_row: Any, services: Services) -> dict[str, Any]:
    """Return the name of a study and what is sealed of it."""
    return {"name": study_row.name, **services.sealing.unseal_json(study_row.sealed, f"study {study_row.name}")}


def _get_valid_invitation_row(connection: sa.Connection, link_token: str, lock: bool = False) -> Any:
    query = sa.select(db.invitations).where(db.invitations.c.digest == hash_token(link_token))
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None or row.expires <= get_unix_time():
        raise RequestError("this link has expired, was withdrawn or is not complete", 404, "WrongLink")
    return row


def _get_page_answers(connection: sa.Connection, services: Services, study_number: int, page: int) -> PageAnswers:
    query = sa.select(db.answers).where(db.answers.c.study == study_number, db.answers.c.page == page)
    rows = connection.execute(query.order_by(db.answers.c.item)).all()
    unseal = services.sealing.unseal_json
    return {row.item: unseal(row.sealed, f"answer {study_number} {page} {row.item}") for row in rows}


def _describe_studies(connection: sa.Connection, rows: Sequence[Any]) -> list[wire.StudyOut]:
    invitations = defaultdict[int, list[Any]](list)
    for invitation in connection.execute(sa.select(db.invitations)).all():
        invitations[invitation.study].append(invitation)
    studies = []
    for row in rows:
        counts = {
            "invited": sum(bool(i.opened) or i.expires > get_unix_time() for i in invitations[row.number]),
            "begun": sum(bool(i.opened) for i in invitations[row.number]),
            "finished": sum(bool(i.done) for i in invitations[row.number]),
        }
        studies.append(wire.StudyOut.from_values({**row._mapping, "id": row.number, **counts}))
    return studies


def _get_invitation_state(invitation_row: Any) -> Literal["invited", "begun", "finished", "expired"]:
    if invitation_row.done:
        return "finished"
    if invitation_row.expires <= get_unix_time():
        return "expired"
    return "begun" if invitation_row.opened else "invited"

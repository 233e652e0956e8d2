"""Intruder studies: made and read by who may, answered by invited people without an account."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from allonym.report.intruder_study import CONSENT, INSTRUCTIONS, TITLES
from allonym.server.access import Who, needs, services_of
from allonym.server.services import Services
from allonym.server.studies import Study, Text
from allonym.server.wire import studies as wire

router = APIRouter(prefix="/v1", tags=["studies"])
Within = Annotated[Services, Depends(services_of)]
Number = Annotated[int, Path(ge=1, le=1 << 62)]
Token = Annotated[str, Path(min_length=1, max_length=200)]
Scholar = Annotated[Who, needs("studies")]


@router.get("/studies", summary="Studies")
def studies(
    who: Scholar,
    services: Within,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> wire.Studies:
    """All, the newest first."""
    found = services.studies.studies()
    return wire.Studies(studies=[_study(s) for s in found[offset : offset + limit]], total=len(found))


@router.post("/studies", status_code=201, summary="Make a study")
def make_study(body: wire.NewStudy, who: Scholar, services: Within) -> wire.StudyOut:
    """Anonymised texts are dealt to pages, one for each person, so that all are read about equally often. Texts and
    truths are sealed. Needs the extra `evaluate`."""
    made = services.studies.make(
        body.name,
        [Text(t.id, t.text, t.subject, t.group) for t in body.texts],
        who.name,
        judgements=body.judgements,
        per_page=body.per_page,
        seed=body.seed,
        guesses=body.guesses,
        consent=body.consent,
        aliases=body.aliases,
    )
    services.accounts.record(who, "study made", {"texts": made.texts, "pages": made.pages})
    return _study(made)


@router.get("/studies/{id}", summary="A study and its results")
def study(id: Number, who: Scholar, services: Within) -> wire.StudyDetail:
    """How far the invited people are, and P3's tables of what they answered so far. They tell the truth: not for
    people who are still to judge."""
    found = services.studies.studies(id)[0]
    invited = [wire.Invited(**asdict(one)) for one in services.studies.invitations(id)]
    results = services.studies.results(id)
    return wire.StudyDetail(
        **_study(found).model_dump(), invitations=invited, results=_results(results) if results else None
    )


@router.delete("/studies/{id}", status_code=204, summary="Remove a study")
def remove_study(id: Number, who: Scholar, services: Within) -> None:
    """With its invitations and answers."""
    services.studies.remove(id)
    services.accounts.record(who, "study removed")


@router.post("/studies/{id}/invitations", status_code=201, summary="Invite people")
def invite_people(id: Number, body: wire.InvitePeople, who: Scholar, services: Within) -> wire.InvitationLinks:
    """A link for each person, shown this once: only a digest of its token is kept. It opens that person's page and
    nothing else."""
    made = services.studies.invite(id, body.count, body.days)
    services.accounts.record(who, "study invitations", {"people": len(made)})
    links = [
        wire.InvitationLink(link=f"{services.url}/study/{token}", page=page, expires=expires)
        for token, page, expires in made
    ]
    return wire.InvitationLinks(invitations=links)


@router.delete("/studies/{id}/invitations/{page}", status_code=204, summary="Withdraw an invitation")
def withdraw(id: Number, page: Number, who: Scholar, services: Within) -> None:
    """The link works no more, its answers are removed, and the page can go to somebody else."""
    services.studies.withdraw(id, page)
    services.accounts.record(who, "study invitation withdrawn")


@router.get("/study/{token}", summary="The task of an invited person")
def task(token: Token, services: Within, response: Response) -> wire.Task:
    """Needs no account but the token of a link: texts, and what was answered so far."""
    response.headers["cache-control"] = "no-store"
    found = services.studies.task(token)
    return wire.Task(
        study=found.study,
        title=TITLES["judge"],
        instructions=list(INSTRUCTIONS["judge"]),
        consent=found.consent.strip() or CONSENT,
        guesses=found.guesses,
        items=[wire.TaskItem(token=name, text=text) for name, text in found.items],
        answers={name: wire.AnswerIO(**said) for name, said in found.answers.items()},
        done=found.done,
        expires=found.expires,
    )


@router.post("/study/{token}", summary="Answers of an invited person")
def answer(token: Token, body: wire.Answers, services: Within) -> wire.Received:
    """Saved as they come, one by one or together; sent again they change nothing. With `done` they are final."""
    given = {one.item: one.model_dump(exclude={"item"}) for one in body.answers}
    answered, of, done = services.studies.answer(token, given, body.done)
    return wire.Received(answered=answered, of=of, done=done)


def _study(made: Study) -> wire.StudyOut:
    told = asdict(made)
    return wire.StudyOut(id=told.pop("number"), **told)


def _results(found: dict[str, Any]) -> wire.StudyResults:
    table, terms = found["results"], found["terms"]
    direct = ("judgements", "judges", "unread", "cut", "claims", "agreement", "chance_corrected", "trusted")
    more = ("by_chance", "alike", "found_by_any", "confidence_right", "confidence_wrong")
    return wire.StudyResults(
        **{name: found[name] for name in (*direct, *more)},
        overall=_rate(table["all"]),
        groups=[_rate(r) for r in table["groups"]],
        subjects=[_rate(r) for r in table["subjects"]],
        ranks=table["ranks"],
        rows=[wire.StudyRow(**row) for row in table["rows"]],
        revealed=[tuple(t) for t in terms["revealed_all"]],
        kept=[tuple(t) for t in terms["kept_all"]],
    )


def _rate(row: dict[str, Any]) -> wire.StudyRate:
    return wire.StudyRate(**{name: row[name] for name in wire.StudyRate.model_fields})

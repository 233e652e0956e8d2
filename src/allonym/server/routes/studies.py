"""Intruder studies: made and read by users with the permission, answered by invited people without an account."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from allonym.server.routes.parameters import AnyServices, Limit, Number, Offset, Scholar
from allonym.server.wire import studies as wire

router = APIRouter(prefix="/v1", tags=["studies"])
Token = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("/studies", summary="Studies")
def list_studies(caller: Scholar, services: AnyServices, offset: Offset = 0, limit: Limit = 100) -> wire.Studies:
    """All studies, the newest first."""
    studies = services.studies.list_studies()
    return wire.Studies(studies=studies[offset : offset + limit], total=len(studies))


@router.post("/studies", status_code=201, summary="Make a study")
def make_study(body: wire.NewStudy, caller: Scholar, services: AnyServices) -> wire.StudyOut:
    """Anonymised texts are dealt to pages, one for each person, so that each text is read about equally often. Texts
    and true names are sealed. Needs the extra `evaluate`."""
    study = services.studies.make_study(body, caller.name)
    services.accounts.record_action(caller, "study made", {"texts": study.texts, "pages": study.pages})
    return study


@router.get("/studies/{id}", summary="A study and its results")
def get_study(id: Number, caller: Scholar, services: AnyServices) -> wire.StudyDetail:
    """How far the invited people are, and P3's tables of their answers so far. The tables reveal the true names: do not
    show them to people who are still to judge."""
    study = services.studies.list_studies(id)[0]
    return wire.StudyDetail(
        **study.model_dump(),
        invitations=services.studies.list_invitation_progress(id),
        results=services.studies.compute_results(id),
    )


@router.delete("/studies/{id}", status_code=204, summary="Remove a study")
def remove_study(id: Number, caller: Scholar, services: AnyServices) -> None:
    """Remove a study with its invitations and answers."""
    services.studies.remove_study(id)
    services.accounts.record_action(caller, "study removed")


@router.post("/studies/{id}/invitations", status_code=201, summary="Invite people")
def invite_people(id: Number, body: wire.InvitePeople, caller: Scholar, services: AnyServices) -> wire.InvitationLinks:
    """A link for each person, shown only this once, as only a digest of its token is stored. It opens that person's
    page and nothing else."""
    links = services.studies.make_invitations(id, body.count, body.days)
    services.accounts.record_action(caller, "study invitations", {"people": len(links)})
    shown = [
        wire.InvitationLink(link=f"{services.url}/study/{token}", page=page, expires=expires)
        for token, page, expires in links
    ]
    return wire.InvitationLinks(invitations=shown)


@router.delete("/studies/{id}/invitations/{page}", status_code=204, summary="Withdraw an invitation")
def withdraw_invitation(id: Number, page: Number, caller: Scholar, services: AnyServices) -> None:
    """The link stops working, its answers are removed, and the page can go to somebody else."""
    services.studies.withdraw_invitation(id, page)
    services.accounts.record_action(caller, "study invitation withdrawn")


@router.get("/study/{token}", summary="The task of an invited person")
def get_task(token: Token, services: AnyServices, response: Response) -> wire.Task:
    """Texts to judge, and the answers so far. Needs no account but the token of a link."""
    response.headers["cache-control"] = "no-store"
    return services.studies.open_judging_task(token)


@router.post("/study/{token}", summary="Answers of an invited person")
def save_answers(token: Token, body: wire.Answers, services: AnyServices) -> wire.Received:
    """Answers are saved as they come, one by one or together; the same answer sent again changes nothing. With `done`
    they are final."""
    answers = {answer.item: answer.model_dump(exclude={"item"}) for answer in body.answers}
    return services.studies.save_answers(token, answers, body.done)

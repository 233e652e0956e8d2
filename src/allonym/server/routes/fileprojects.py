"""Projects of files: from files to a signed release. Files and releases are made by jobs of the kind `project`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from allonym.link import link
from allonym.models.words import split_words
from allonym.project import get_public_key
from allonym.project.readings import Reading
from allonym.project.seats import (
    SEATS,
    VERDICT_SEAT,
    ReviewDocument,
    UserReading,
    are_both_reviewers_done,
    find_reviewer_seat,
)
from allonym.project.terms import DICTIONARY
from allonym.serial import to_plain
from allonym.server import fileprojects
from allonym.server.access import Caller
from allonym.server.fileprojects import FileProject
from allonym.server.routes.parameters import AnyServices, Limit, Offset, Reviewer, make_permission_dependency
from allonym.server.services import Services
from allonym.server.uploads import format_disposition
from allonym.server.wire import fileprojects as wire
from allonym.server.wire import reviews as review_wire
from allonym.server.wire import texts as text_wire

router = APIRouter(prefix="/v1/file-projects", tags=["projects of files"])
Id = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
DocumentId = Annotated[str, Path(pattern="^[0-9]{1,9}-[0-9]{1,9}$")]
FileNumber = Annotated[int, Path(ge=1, le=1_000_000)]
Editor = Annotated[Caller, make_permission_dependency("review", "anonymize")]
Adjudicator = Annotated[Caller, make_permission_dependency("review", "adjudicate")]


@router.get("", summary="Projects of files")
def list_projects(caller: Reviewer, services: AnyServices) -> wire.FileProjectLines:
    """Those that the caller owns or was let into."""
    rows = services.file_projects.list_projects(caller)
    return wire.FileProjectLines(projects=[wire.FileProjectLine(**_describe(row, caller, services)) for row in rows])


@router.post("", status_code=201, summary="Make a project of files")
def make_project(body: wire.NewFileProject, caller: Editor, services: AnyServices) -> wire.FileProjectLine:
    """The caller owns it. Add files by a job of the kind `project`."""
    row = services.file_projects.make_project(caller, body.name, body.policy)
    services.accounts.record_action(caller, "project of files made")
    return wire.FileProjectLine(**_describe(row, caller, services))


@router.get("/{id}", summary="A project of files")
def get_project(id: Id, caller: Reviewer, services: AnyServices) -> wire.FileProjectOut:
    """Its files, where it stands, and its releases."""
    row = services.file_projects.get_project(caller, id)
    project = services.file_projects.open_project(caller, id)
    status = project.get_status()
    names = ("documents", "mentions", "people", "unseen", "states")
    return wire.FileProjectOut(
        **_describe(row, caller, services),
        **{name: getattr(status, name) for name in names},
        files=[wire.SourceFileOut.from_values({**asdict(file), "states": file.states}) for file in project.files],
        releases=[wire.ReleaseLine.from_values({**row, "number": n}) for n, row in enumerate(project.releases, 1)],
        public_key=get_public_key(project),
    )


@router.delete("/{id}", status_code=204, summary="Remove a project of files")
def remove_project(id: Id, caller: Editor, services: AnyServices) -> None:
    """For its owner: remove it with its files, reviews and releases, and its originals in the vault."""
    services.file_projects.remove_project(caller, id)
    services.accounts.record_action(caller, "project of files removed")


@router.delete("/{id}/files/{number}", status_code=204, summary="Remove a file of a project")
def remove_file(id: Id, number: FileNumber, caller: Editor, services: AnyServices) -> None:
    """For the owner: remove it with its documents and their reviews."""
    services.file_projects.open_project(caller, id, is_owner=True).remove(number)
    services.accounts.record_action(caller, "file of a project removed")


@router.get("/{id}/findings", summary="What a project replaces")
def list_findings(
    id: Id, caller: Reviewer, services: AnyServices, label: str = "", offset: Offset = 0, limit: Limit = 100
) -> wire.FoundEntities:
    """By person or other referent, and by surface, with counts; the most frequent first."""
    entities = services.file_projects.open_project(caller, id).list_entities(label)
    rows = [wire.FoundEntityOut.model_validate(to_plain(entity)) for entity in entities[offset : offset + limit]]
    return wire.FoundEntities(entities=rows, total=len(entities))


@router.get("/{id}/corrections", summary="Corrections of a project")
def list_corrections(id: Id, caller: Reviewer, services: AnyServices) -> wire.Corrections:
    """What is always or never found, in one document or in all."""
    terms = services.file_projects.open_project(caller, id).terms
    return wire.Corrections(
        corrections=[
            wire.CorrectionOut(
                surface=term.term,
                decision="always" if term.kind == DICTIONARY else "never",
                label=term.label,
                document=term.document,
            )
            for term in terms
        ]
    )


@router.post("/{id}/corrections", summary="Correct once, everywhere or in one document")
async def correct_project(id: Id, body: wire.Correction, caller: Editor, services: AnyServices) -> wire.Corrected:
    """Find a text always or never from now on, or take that back, and anonymise again what it changes. The last
    decision on a text holds."""
    project = await run_in_threadpool(services.file_projects.open_project, caller, id)
    values = (body.surface, body.decision, body.label, body.document)
    files = await services.kernel.run(fileprojects.correct_project, project.folder, services.vault, *values)
    counts = {"files": files}
    await run_in_threadpool(services.accounts.record_action, caller, f"project corrected: {body.decision}", counts)
    return wire.Corrected(files=files)


@router.post("/{id}/people", summary="Join or part people of a project")
async def correct_person(id: Id, body: wire.PersonCorrection, caller: Editor, services: AnyServices) -> wire.Corrected:
    """Say that two people of the register are the same, or that a name is somebody else's, and anonymise again what it
    changes."""
    project = await run_in_threadpool(services.file_projects.open_project, caller, id)
    values = (body.person, body.same_as, body.part, caller.audit_name)
    files = await services.kernel.run(fileprojects.correct_person, project.folder, services.vault, *values)
    action = "project: person parted" if body.part is not None else "project: people joined"
    await run_in_threadpool(services.accounts.record_action, caller, action, {"files": files})
    return wire.Corrected(files=files)


@router.get("/{id}/documents", summary="The queue of a project of files")
def list_documents(
    id: Id,
    caller: Reviewer,
    services: AnyServices,
    state: review_wire.State | None = None,
    order: review_wire.Order = "risk",
    offset: Offset = 0,
    limit: Limit = 100,
) -> review_wire.DocumentLines:
    """Documents, the riskiest first, or as they were `added`. Of others' reviews only how many have begun and are
    done."""
    project = services.file_projects.open_project(caller, id)
    rows = project.list_documents(state=state, order="added" if order == "added" else "risk")
    lines = [_describe_line(item, seats, caller) for item, seats in rows[offset : offset + limit]]
    return review_wire.DocumentLines(documents=lines, total=len(rows))


@router.get("/{id}/documents/{document}", summary="A document of a project of files")
def get_document(id: Id, document: DocumentId, caller: Reviewer, services: AnyServices) -> review_wire.DocumentOut:
    """As `/v1/projects/{name}/documents/{id}`. Reviewers are blind to each other until both are done."""
    project = services.file_projects.open_project(caller, id)
    item, seats = project.get_document(document)
    number = find_reviewer_seat(seats, caller.id)
    mine = UserReading(0, caller.id, caller.name, 0, False, Reading()) if number is None else seats[number]
    others = seats if are_both_reviewers_done(seats) else {}
    verdict = others.get(VERDICT_SEAT)
    values = {
        **(to_plain(item.risk) if item.risk else {"bound": 0, "direct": 0, "reasons": [], "proposals": []}),
        "id": item.id,
        "state": item.state,
        "text": item.document.text,
        "turns": [(t.speaker[0] if t.speaker else t.start, t.end) for t in item.document.turns],
        "anonymised": item.anonymised,
        "spans": _number_entities(item),
        "edits": [review_wire.EditOut.from_object(edit) for edit in item.edits],
        "risk": item.risk.expected if item.risk else 0.0,
        "version": mine.version,
        "done": mine.done,
        **fileprojects.drop_outdated(mine.reading, item).to_dict(),
        "others": [_describe_reading(others[n]) for n in SEATS if n in others],
        "settled": _describe_reading(verdict) if verdict else None,
    }
    return review_wire.DocumentOut.from_values(values)


@router.put("/{id}/documents/{document}/marks", summary="Save one's review of a document")
async def save_review(
    id: Id, document: DocumentId, body: review_wire.ReadingIn, caller: Editor, services: AnyServices
) -> review_wire.Saved:
    """As `/v1/projects/{name}/documents/{id}/marks`; corrections are made by `/corrections`, not by `list`."""
    return await _save_reading(id, document, body, caller, services, is_verdict=False)


@router.put("/{id}/documents/{document}/settled", summary="Decide on a document")
async def save_verdict(
    id: Id, document: DocumentId, body: review_wire.ReadingIn, caller: Adjudicator, services: AnyServices
) -> review_wire.Saved:
    """The reading that holds, once both reviewers are done."""
    return await _save_reading(id, document, body, caller, services, is_verdict=True)


@router.get("/{id}/agreement", summary="Agreement of a project of files")
def get_agreement(id: Id, caller: Reviewer, services: AnyServices) -> review_wire.Agreed:
    """How far reviewers agree on what both looked at, and the residual risk of the settled documents."""
    result = services.file_projects.open_project(caller, id).measure_reviews()
    return review_wire.Agreed.model_validate(result.to_dict())


@router.get(
    "/{id}/releases/{number}",
    summary="Download a release",
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The signed ZIP"}},
)
def get_release(id: Id, number: FileNumber, caller: Editor, services: AnyServices) -> FileResponse:
    """The signed ZIP. The audit log shows who took it."""
    path = fileprojects.check_release_number(services.file_projects.open_project(caller, id), number)
    services.accounts.record_action(caller, "release taken")
    headers = {"content-disposition": format_disposition(path.name)}
    return FileResponse(path, media_type="application/zip", headers=headers)


async def _save_reading(
    id: str, document: str, body: review_wire.ReadingIn, caller: Caller, services: Services, *, is_verdict: bool
) -> review_wire.Saved:
    project = await run_in_threadpool(services.file_projects.open_project, caller, id)
    values = (document, caller.id, caller.name, body.model_dump(), is_verdict)
    saved = await services.kernel.run(fileprojects.save_project_reading, project.folder, services.vault, *values)
    if body.done:  # if it settles the document, the release has what was said
        await services.kernel.run(fileprojects.update_project, project.folder, services.vault)
    if body.done and is_verdict:
        await run_in_threadpool(services.accounts.record_action, caller, "document settled", {"documents": 1})
    return review_wire.Saved.from_values(
        {
            "version": saved.version,
            "done": saved.is_done,
            "state": saved.state,
            "score": saved.score,
            "anonymised": saved.anonymised,
            "edits": [review_wire.EditOut.from_object(edit) for edit in saved.edits],
            "spans": [text_wire.Span(**asdict(span), entity=0) for span in saved.spans],
        }
    )


def _describe(row: FileProject, caller: Caller, services: Services) -> dict[str, Any]:
    owner, users = services.scopes.name_users(row.scope)
    columns = {name: getattr(row, name) for name in ("id", "name", "policy", "created", "scope")}
    return {**columns, "owner": owner, "users": users}


def _describe_line(item: ReviewDocument, seats: dict[int, UserReading], caller: Caller) -> review_wire.DocumentLine:
    number = find_reviewer_seat(seats, caller.id)
    readings = [seats[n] for n in SEATS if n in seats]
    risk = to_plain(item.risk) if item.risk else {"bound": 0, "direct": 0, "gain": 0.0, "reasons": []}
    return review_wire.DocumentLine.from_values(
        {
            **risk,
            "id": item.id,
            "state": item.state,
            "risk": item.risk.expected if item.risk else 0.0,
            "mentions": len(item.spans),
            "words": len(split_words(item.document.text)),
            "reviewers": len(readings),
            "done": sum(reading.done for reading in readings),
            "mine": "none" if number is None else "done" if seats[number].done else "open",
            "adjudicated": VERDICT_SEAT in seats and seats[VERDICT_SEAT].done,
            "created": 0,
            "changed": 0,
        }
    )


def _number_entities(item: ReviewDocument) -> list[text_wire.Span]:
    entities = enumerate(link(item.document, item.spans).entities, 1)
    numbers = {(span.start, span.end): n for n, entity in entities for span in entity.spans}
    return [text_wire.Span(**asdict(s), entity=numbers.get((s.start, s.end), 0)) for s in item.spans]


def _describe_reading(seat: UserReading) -> review_wire.ReadingOut:
    return review_wire.ReadingOut(reviewer=seat.reader, version=seat.version, done=seat.done, **seat.reading.to_dict())

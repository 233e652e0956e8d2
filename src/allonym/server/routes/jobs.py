"""Jobs: files and corpora in the background."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from allonym.server.jobs.jobs import KINDS
from allonym.server.jobs.task import ROLES, InputFile
from allonym.server.routes.parameters import AnyServices, JobUser, Limit, ReleaseUser
from allonym.server.uploads import Form, format_disposition, receive_form
from allonym.server.wire import jobs as wire
from allonym.server.wire.base import Failure

router = APIRouter(prefix="/v1", tags=["jobs"])
Id = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$")]
Release = Annotated[int, Path(ge=0, le=1_000_000)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
_WAIT = 25.0
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
)
"""A report holds its own style and script. In the sandbox they have no origin: no cookie, no request."""

_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
_DESCRIPTIONS = {
    "files": "what is processed; of an evaluation, the originals; a release of a project needs none",
    "anonymised": "evaluate, harden: the same texts after anonymisation",
    "gold": "evaluate: the originals with spans that people marked",
    "background": "swap, evaluate, harden: further texts that intruders know",
    "metadata": "swap, evaluate, harden: a table with a row for each document",
}
_OPTIONS = "; ".join(f"{name}: {', '.join(kind.options.model_fields)}" for name, kind in KINDS.items())
FORM = Form(ROLES, ("kind", "options"), most_files=5_000)
_FIELDS: dict[str, Any] = {
    "kind": {"type": "string", "enum": list(KINDS)},
    "options": {
        "type": "string",
        "contentMediaType": "application/json",
        "description": f"JSON object; its keys depend on the kind: {_OPTIONS}",
    },
    **{role: {**_FILES, "description": _DESCRIPTIONS[role]} for role in ROLES},
}


@router.post(
    "/jobs",
    status_code=202,
    summary="Make a job of files",
    openapi_extra=FORM.describe_body(["kind"], _FIELDS),
    responses={
        415: {"model": Failure, "description": "The body is no multipart/form-data"},
        507: {"model": Failure, "description": "The disk is full"},
    },
)
async def make_job(request: Request, caller: JobUser, services: AnyServices) -> wire.Job:
    """Upload files to be processed in the background: TXT, MD, JSONL, JSON, CSV, TSV, Parquet, HTML, EML, DOCX, XLSX,
    PDF, SRT, VTT and others, also packed (`.gz`). The names of files are shown again, cleaned; they are never used as
    paths. Uploads are removed when the job has ended (of `swap` and `harden`, with its results)."""

    def add_job() -> wire.Job:
        uploads = []
        for number, (role, upload) in enumerate(received, 1):
            upload.file.flush()
            os.fsync(upload.file.fileno())
            upload.file.close()
            uploads.append(InputFile(role, upload.filename or "", f"{number}", upload.size or 0))
        job = services.jobs.make_job(caller, texts, uploads, folder)
        services.accounts.record_action(caller, f"job {job.kind}", {"files": len(uploads)})
        return job

    with services.jobs.open_upload_folder() as folder:
        texts, received = await receive_form(request, FORM, folder.arriving)
        return await run_in_threadpool(add_job)


@router.get("/jobs", summary="One's own jobs")
def list_jobs(
    caller: JobUser,
    services: AnyServices,
    offset: Offset = 0,
    limit: Limit = 100,
    kind: Annotated[wire.Kind | None, Query(description="only jobs of this kind")] = None,
) -> wire.Jobs:
    """Newest first. An admin sees all."""
    return services.jobs.list_jobs(caller, offset, limit, kind)


@router.get("/jobs/{id}", summary="One job")
def get_job(id: Id, caller: JobUser, services: AnyServices) -> wire.Job:
    """Its state, progress and results."""
    return services.jobs.get_job(caller, id)


@router.post("/jobs/{id}/cancel", summary="Cancel a job")
async def cancel_job(id: Id, caller: JobUser, services: AnyServices) -> wire.Job:
    """End a job that has not ended. Its files are removed; entries that it has added to the vault stay."""
    return await services.jobs.cancel_job(caller, id)


@router.delete("/jobs/{id}", status_code=204, summary="Remove a job")
async def remove_job(id: Id, caller: JobUser, services: AnyServices) -> None:
    """End a job if it runs, and remove it with all its files."""
    await services.jobs.remove_job(caller, id)


@router.get(
    "/jobs/{id}/results/{name}",
    summary="Download a result",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
)
def get_result(
    id: Id,
    name: str,
    caller: JobUser,
    services: AnyServices,
    inline: Annotated[bool, Query(description="a report: to be shown in a frame, in a sandbox")] = False,
) -> FileResponse:
    """As an attachment. `inline` shows a report in a page's frame."""
    path, media_type = services.jobs.get_result_path_and_media_type(caller, id, name)
    shown = inline and media_type == "text/html"
    headers = {"x-content-type-options": "nosniff", "content-disposition": format_disposition(name, inline=shown)}
    policy = f"{_REPORT_POLICY}frame-ancestors 'self'" if shown else "sandbox; default-src 'none'"
    headers["content-security-policy"] = policy
    return FileResponse(path, media_type=media_type, headers=headers)


@router.get("/jobs/{id}/releases", summary="Releases of a swap")
def list_releases(id: Id, caller: JobUser, services: AnyServices) -> wire.Releases:
    """Every release with its risk and utility, for a plot."""
    return services.jobs.list_releases(caller, id)


@router.get("/jobs/{id}/levels", summary="Levels of hardening")
def list_levels(id: Id, caller: JobUser, services: AnyServices) -> wire.Levels:
    """Every level with its risk and the content that is gone, for a plot."""
    return services.jobs.list_levels(caller, id)


@router.get("/jobs/{id}/releases/{release}/documents", summary="Documents of a release or level, before and after")
async def list_release_documents(
    id: Id,
    release: Release,
    caller: ReleaseUser,
    services: AnyServices,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    again: Annotated[bool, Query(description="make it once more where that failed before")] = False,
) -> wire.Documents:
    """A release is made when it is first asked for, which may take a while: `ready` is false until then. Of `harden`,
    `release` is a level, and documents are shown as anonymised and as hardened."""
    return await services.jobs.get_or_make_release_documents(caller, id, release, offset, limit, _WAIT, again)


@router.post("/jobs/{id}/choose", summary="Choose a release or a level")
def choose_release(id: Id, body: wire.Choice, caller: ReleaseUser, services: AnyServices) -> wire.Job:
    """Write a release, or a level of hardening, as a further result. The job runs again until that is done."""
    return services.jobs.request_release_as_result(caller, id, body.release)

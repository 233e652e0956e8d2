"""Jobs: files and corpora in the background."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from allonym.server.access import Who, needs, services_of
from allonym.server.jobs.jobs import OPTIONS
from allonym.server.jobs.task import ROLES
from allonym.server.jobs.uploads import received
from allonym.server.services import Services
from allonym.server.wire import jobs as wire
from allonym.server.wire.base import Failure

router = APIRouter(prefix="/v1", tags=["jobs"])
Within = Annotated[Services, Depends(services_of)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$")]
_WAIT = 25.0
_PAGE = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
)
"""A report holds its own style and script. In the sandbox they have no origin: no cookie, no request."""

_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
_SAYS = {
    "files": "what is treated; of an evaluation, the originals",
    "anonymised": "evaluate: the same texts after anonymisation",
    "gold": "evaluate: the originals with spans that people marked",
    "background": "swap, evaluate: further texts that intruders know",
    "metadata": "swap, evaluate: a table with a row for each document",
}
_FORM: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["kind", "files"],
                "properties": {
                    "kind": {"type": "string", "enum": list(OPTIONS)},
                    "options": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "description": "JSON object; its keys depend on the kind: "
                        + "; ".join(f"{kind}: {', '.join(model.model_fields)}" for kind, model in OPTIONS.items()),
                    },
                    **{role: {**_FILES, "description": _SAYS[role]} for role in ROLES},
                },
            }
        }
    },
}


@router.post(
    "/jobs",
    status_code=202,
    summary="Make a job of files",
    openapi_extra={"requestBody": _FORM},
    responses={
        415: {"model": Failure, "description": "The body is no multipart/form-data"},
        507: {"model": Failure, "description": "The disk is full"},
    },
)
async def make_job(request: Request, who: Annotated[Who, needs("jobs")], services: Within) -> wire.Job:
    """Upload files to be treated in the background: TXT, MD, JSONL, JSON, CSV, TSV, Parquet, HTML, EML, DOCX, XLSX,
    SRT, VTT, also packed (`.gz`). The names of files are shown again, cleaned; they are never used as paths. Uploads
    are removed when the job has ended (of a swap, with its results)."""
    jobs = services.jobs

    def made() -> wire.Job:
        job = jobs.make(who, form, folder)
        services.accounts.record(who, f"job {job.kind}", {"files": len(form.files)})
        return job

    with jobs.coming() as folder:
        form = await received(request, folder.path / "arriving", ROLES, ("kind", "options"))
        return await run_in_threadpool(made)


@router.get("/jobs", summary="One's own jobs")
def list_jobs(
    who: Annotated[Who, needs("jobs")],
    services: Within,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kind: Annotated[wire.Kind | None, Query(description="only jobs of this kind")] = None,
) -> wire.Jobs:
    """Newest first. An admin sees all."""
    return services.jobs.listed(who, offset, limit, kind)


@router.get("/jobs/{id}", summary="One job")
def get_job(id: Id, who: Annotated[Who, needs("jobs")], services: Within) -> wire.Job:
    """Its state, its progress, its results."""
    return services.jobs.one(who, id)


@router.post("/jobs/{id}/cancel", summary="Cancel a job")
async def cancel_job(id: Id, who: Annotated[Who, needs("jobs")], services: Within) -> wire.Job:
    """End a job that has not ended. Its files are removed; what its vault keeps by then, it keeps."""
    return await services.jobs.cancel(who, id)


@router.delete("/jobs/{id}", status_code=204, summary="Remove a job")
async def remove_job(id: Id, who: Annotated[Who, needs("jobs")], services: Within) -> None:
    """End it if it runs, and remove it with all its files."""
    await services.jobs.remove(who, id)


@router.get(
    "/jobs/{id}/results/{name}",
    summary="Download a result",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
)
def get_result(
    id: Id,
    name: str,
    who: Annotated[Who, needs("jobs")],
    services: Within,
    inline: Annotated[bool, Query(description="a report: to be shown in a frame, in a sandbox")] = False,
) -> FileResponse:
    """As an attachment. `inline` shows a report in a page's frame."""
    path, kind = services.jobs.result(who, id, name)
    shown = inline and kind == "text/html"
    headers = {"x-content-type-options": "nosniff", "content-disposition": disposition(name, inline=shown)}
    headers["content-security-policy"] = f"{_PAGE}frame-ancestors 'self'" if shown else "sandbox; default-src 'none'"
    return FileResponse(path, media_type=kind, headers=headers)


@router.get("/jobs/{id}/releases", summary="Releases of a swap")
def list_releases(id: Id, who: Annotated[Who, needs("jobs")], services: Within) -> wire.Releases:
    """Every release with its risk and utility, for a plot."""
    return services.jobs.releases(who, id)


@router.get("/jobs/{id}/releases/{release}/documents", summary="Documents of a release, before and after")
async def list_release_documents(
    id: Id,
    release: Annotated[int, Path(ge=0, le=1_000_000)],
    who: Annotated[Who, needs("jobs", "anonymize")],
    services: Within,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    again: Annotated[bool, Query(description="make it once more where that failed before")] = False,
) -> wire.Documents:
    """A release that nobody has asked for before is made first, which may take a while: `ready` is false until then."""
    return await services.jobs.documents(who, id, release, offset, limit, _WAIT, again)


@router.post("/jobs/{id}/choose", summary="Choose a release")
def choose_release(
    id: Id, body: wire.Choice, who: Annotated[Who, needs("jobs", "anonymize")], services: Within
) -> wire.Job:
    """Write a release as a further result of the swap. The job is at work again until that is there."""
    return services.jobs.choose(who, id, body.release)


def disposition(name: str, *, inline: bool = False) -> str:
    """A Content-Disposition by RFC 6266: the name in ASCII, and as it is for who knows that."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in name)
    return f"{'inline' if inline else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"

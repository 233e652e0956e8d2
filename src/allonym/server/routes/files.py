"""Files that a person works with: their texts, and the file again after its plans were applied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from allonym.errors import DataError, RequestError
from allonym.plan import Plan
from allonym.server import files
from allonym.server.jobs.names import append_to_stem, clean_file_name, get_media_type
from allonym.server.processing import parse_plan
from allonym.server.routes.parameters import Anonymizing, AnyServices, Detecting
from allonym.server.services import Services
from allonym.server.uploads import Form, format_disposition, receive_form
from allonym.server.wire import texts as wire

router = APIRouter(prefix="/v1/files", tags=["files"])
FORM = Form(("file",), ("plans",), most_files=1, file_bytes=32 << 20, text_bytes=64 << 20)
_PLANS: TypeAdapter[list[wire.FilePlan]] = TypeAdapter(list[wire.FilePlan])
_FILE = {"type": "string", "format": "binary", "description": f"one of {', '.join(files.FORMATS)}"}
_PLANS_FIELD = {"type": "string", "contentMediaType": "application/json", "description": "JSON list of {id, plan}"}


@router.post("/text", summary="Read a file", openapi_extra=FORM.describe_body(["file"], {"file": _FILE}))
async def read_file(request: Request, caller: Detecting, services: AnyServices) -> wire.FileTexts:
    """The texts of a file, with the turns of conversations. Plans for these texts fit `/v1/files/apply`. Nothing is
    stored. Of a PDF, only the text is read; a scanned or encrypted one is refused."""
    async with _hold_file_slot(services):
        name, data, _ = await _receive_file(request, services.settings.timeout)
        return await services.kernel.run(files.read_file_texts, data, name, services.settings.max_characters)


@router.post(
    "/apply",
    summary="Apply plans to a file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
    openapi_extra=FORM.describe_body(["file", "plans"], {"file": _FILE, "plans": _PLANS_FIELD}),
)
async def apply_plans(request: Request, caller: Anonymizing, services: AnyServices) -> Response:
    """The file with the plan of each of its documents applied: formatting stays, properties that name people are
    emptied. Each document needs a plan that was made for its text. A PDF comes back redacted."""
    async with _hold_file_slot(services):
        name, data, field = await _receive_file(request, services.settings.timeout)
        plans = await run_in_threadpool(_parse_plans, field)
        content = await services.kernel.run(files.apply_plans_to_file, data, name, plans)
    headers = {"content-disposition": format_disposition(append_to_stem(name, "anonymised"))}
    return Response(content, media_type=get_media_type(name), headers=headers)


def _parse_plans(field: str | None) -> dict[str, Plan]:
    """Return the plans of an upload, by their documents' ids.

    Raises:
        RequestError: the field is missing, or no list of plans (422).
        PlanMismatch: one of them is no plan.
    """
    if field is None:
        raise RequestError("plans is required: a JSON list of {id, plan}", 422, "InvalidRequest")
    try:
        rows = _PLANS.validate_json(field)
    except (ValueError, RecursionError):
        raise RequestError("plans is not a JSON list of {id, plan}", 422, "InvalidRequest") from None
    plans = {row.id: parse_plan(row.plan) for row in rows}
    if len(plans) < len(rows):
        raise RequestError("plans names a document twice", 422, "InvalidRequest")
    return plans


@asynccontextmanager
async def _hold_file_slot(services: Services) -> AsyncIterator[None]:
    """Limit how many requests hold a file in memory. A request that waits too long is refused, before its body counts
    as too slow."""
    try:
        async with asyncio.timeout(services.settings.body_timeout / 2):
            await services.file_turns.acquire()
    except TimeoutError:
        raise RequestError("the server is busy with other files; try again", 503, "Busy") from None
    try:
        yield
    finally:
        services.file_turns.release()


async def _receive_file(request: Request, seconds: float) -> tuple[str, bytes, str | None]:
    """Return name and bytes of the one file of an upload, and its field ``plans``. All of it stays in memory.

    Raises:
        RequestError: see :func:`allonym.server.uploads.receive_form`; or it takes longer than ``seconds`` (408).
    """
    try:
        async with asyncio.timeout(seconds):
            texts, received = await receive_form(request, FORM)
    except TimeoutError:
        message = f"the file did not come within {seconds:g} s; send it as a job"
        raise RequestError(message, 408, "TooSlow") from None
    if not received:
        raise RequestError("the form needs a file in the field 'file'", 422, "InvalidRequest")
    file = received[0][1]
    data, name = await file.read(), clean_file_name(file.filename or "", 1)
    await file.close()
    try:
        files.get_readable_format_name(name)
    except DataError as error:
        raise RequestError(str(error), 415, "WrongMediaType") from None
    return name, data, texts.get("plans")

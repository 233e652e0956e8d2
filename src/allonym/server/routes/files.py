"""Files that a person works with: their texts, and the file again after its plans were applied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from allonym.errors import DataError, RequestError
from allonym.plan import Plan
from allonym.server import files
from allonym.server.jobs.names import append_to_stem, clean_file_name, get_media_type
from allonym.server.processing import parse_plan
from allonym.server.routes.jobs import describe_form_body, format_disposition
from allonym.server.routes.parameters import Anonymizing, AnyServices, Detecting
from allonym.server.services import Services
from allonym.server.wire import texts as wire

router = APIRouter(prefix="/v1/files", tags=["files"])
MOST_PLANS = 64 << 20
"""Bytes of all plans of a file as JSON."""

_PLANS: TypeAdapter[list[wire.FilePlan]] = TypeAdapter(list[wire.FilePlan])


_FILE = {"type": "string", "format": "binary", "description": f"one of {', '.join(files.FORMATS)}"}
_PLANS_FIELD = {"type": "string", "contentMediaType": "application/json", "description": "JSON list of {id, plan}"}


@router.post("/text", summary="Read a file", openapi_extra=describe_form_body(["file"], {"file": _FILE}))
async def read_file(request: Request, caller: Detecting, services: AnyServices) -> wire.FileTexts:
    """The texts of a file, with the turns of conversations. Plans for these texts fit `/v1/files/apply`. Nothing is
    stored. Of a PDF, only the text is read; a scanned or encrypted one is refused."""
    async with _hold_file_slot(services):
        name, data, _ = await _receive_upload(request, services.settings.timeout)
        return await services.kernel.run(files.read_file_texts, data, name, services.settings.max_characters)


@router.post(
    "/apply",
    summary="Apply plans to a file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
    openapi_extra=describe_form_body(["file", "plans"], {"file": _FILE, "plans": _PLANS_FIELD}),
)
async def apply_plans(request: Request, caller: Anonymizing, services: AnyServices) -> Response:
    """The file with the plan of each of its documents applied: formatting stays, properties that name people are
    emptied. Each document needs a plan that was made for its text. A PDF cannot be written."""
    async with _hold_file_slot(services):
        name, data, field = await _receive_upload(request, services.settings.timeout)
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


async def _receive_upload(request: Request, seconds: float) -> tuple[str, bytes, str | None]:
    """Return name and bytes of the one file of an upload, and its field ``plans``. All of it stays in memory.

    Raises:
        RequestError: there is no such body, or it breaks off, takes longer than ``seconds``, or holds too much (400,
            408, 413, 415).
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    parser = _Parser(request.headers, _limit_body(request), max_files=1, max_fields=1, max_part_size=MOST_PLANS)
    try:
        async with asyncio.timeout(seconds):
            form = await parser.parse()
    except TimeoutError:
        message = f"the file did not come within {seconds:g} s; send it as a job"
        raise RequestError(message, 408, "TooSlow") from None
    except ClientDisconnect:
        raise RequestError("the upload broke off", 400, "BrokenOff") from None
    except (MultiPartException, KeyError, UnicodeDecodeError):
        raise RequestError("the body is not a form with one file, and plans beside it", 400, "InvalidRequest") from None
    try:
        file, plans = form.get("file"), form.get("plans")
        if not isinstance(file, UploadFile) or isinstance(plans, UploadFile):
            raise RequestError("the form needs a file in the field 'file'", 422, "InvalidRequest")
        data = await file.read()
        name = clean_file_name(file.filename or "", 1)
    finally:
        await form.close()
    try:
        files.get_readable_format_name(name)
    except DataError as error:
        raise RequestError(str(error), 415, "WrongMediaType") from None
    return name, data, plans


class _Parser(MultiPartParser):
    """Takes one file, which stays in memory and is refused as soon as it is too large."""

    spool_max_size = files.MOST_BYTES + 1
    _size = 0

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """See the base class."""
        if self._current_part.file is not None:
            self._size += end - start
            _check_upload_size(self._size)
        super().on_part_data(data, start, end)


async def _limit_body(request: Request) -> AsyncGenerator[bytes, None]:
    size = 0
    async for block in request.stream():
        size += len(block)
        _check_upload_size(size, files.MOST_BYTES + MOST_PLANS)
        yield block


def _check_upload_size(size: int, most: int | None = None) -> None:
    if size > (files.MOST_BYTES if most is None else most):
        message = f"a file has at most {files.MOST_BYTES >> 20} MB here; send a larger one as a job"
        raise RequestError(message, 413, "TooLarge")

"""Files that a person works with: their texts, and the file again with plans carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from allonym.errors import DataError, RequestError
from allonym.plan import Plan
from allonym.server import files
from allonym.server.access import Who, needs, services_of
from allonym.server.jobs.names import cleaned, media_type, with_mark
from allonym.server.routes.jobs import disposition
from allonym.server.services import Services
from allonym.server.treating import plan_of
from allonym.server.wire import files as wire

router = APIRouter(prefix="/v1/files", tags=["files"])
Within = Annotated[Services, Depends(services_of)]
MOST_PLANS = 64 << 20
"""Bytes of all plans of a file as JSON."""

_PLANS: TypeAdapter[list[wire.FilePlan]] = TypeAdapter(list[wire.FilePlan])


def _described(**more: Any) -> dict[str, Any]:
    file = {"type": "string", "format": "binary", "description": f"one of {', '.join(files.FORMATS)}"}
    schema = {"type": "object", "required": ["file", *more], "properties": {"file": file, **more}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post("/text", summary="Read a file", openapi_extra=_described())
async def file_text(request: Request, who: Annotated[Who, needs("detect")], services: Within) -> wire.FileTexts:
    """The texts of a file, each with its turns where it is a conversation. Offsets and plans made of them fit
    `/v1/files/apply`. Nothing is kept. A PDF gives its text only; a scanned or encrypted one is refused."""
    async with _turn(services):
        name, data, _ = await _received(request, services.settings.timeout)
        found = await services.kernel.run(files.read_texts, data, name, services.settings.max_characters)
    return wire.FileTexts(
        name=name,
        format=found.format,
        saveable=found.saveable,
        documents=[
            wire.FileText(
                id=one.id,
                text=one.text,
                turns=[
                    wire.FileTurn(
                        start=turn.start,
                        end=turn.end,
                        speaker=turn.speaker and wire.Place(start=turn.speaker[0], end=turn.speaker[1]),
                    )
                    for turn in one.turns
                ]
                or None,
            )
            for one in found.documents
        ],
    )


@router.post(
    "/apply",
    summary="Write a file with plans carried out",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
    openapi_extra=_described(
        plans={"type": "string", "contentMediaType": "application/json", "description": "JSON list of {id, plan}"}
    ),
)
async def file_apply(request: Request, who: Annotated[Who, needs("anonymize")], services: Within) -> Response:
    """The file as it was, with the plan of each of its documents carried out: formatting stays, properties that name
    people are emptied. Each document needs a plan that was made for its text. A PDF cannot be written."""
    async with _turn(services):
        name, data, given = await _received(request, services.settings.timeout)
        plans = await run_in_threadpool(_plans, given)
        made = await services.kernel.run(files.apply_plans, data, name, plans)
    headers = {"content-disposition": disposition(with_mark(name, "anonymised"))}
    return Response(made, media_type=media_type(name), headers=headers)


def _plans(given: str | None) -> dict[str, Plan]:
    """The plans of an upload, by their documents' ids.

    Raises:
        RequestError: they are none (422).
        PlanMismatch: one of them is none.
    """
    if given is None:
        raise RequestError("plans is required: a JSON list of {id, plan}", 422, "InvalidRequest")
    try:
        rows = _PLANS.validate_json(given)
    except (ValueError, RecursionError):
        raise RequestError("plans is not a JSON list of {id, plan}", 422, "InvalidRequest") from None
    plans = {row.id: plan_of(row.plan) for row in rows}
    if len(plans) < len(rows):
        raise RequestError("plans names a document twice", 422, "InvalidRequest")
    return plans


@asynccontextmanager
async def _turn(services: Services) -> AsyncIterator[None]:
    """One of few who hold a file in memory. Whoever waits too long is sent away, before its body counts as too slow."""
    try:
        async with asyncio.timeout(services.settings.body_timeout / 2):
            await services.file_turns.acquire()
    except TimeoutError:
        raise RequestError("the server is busy with other files; try again", 503, "Busy") from None
    try:
        yield
    finally:
        services.file_turns.release()


async def _received(request: Request, seconds: float) -> tuple[str, bytes, str | None]:
    """Name and bytes of the one file of an upload, and the field ``plans``. All of it stays in memory.

    Raises:
        RequestError: the body is none, breaks off, takes longer than ``seconds``, or holds too much (400, 408, 413,
            415).
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    parser = _Parser(request.headers, _pieces(request), max_files=1, max_fields=1, max_part_size=MOST_PLANS)
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
        name = cleaned(file.filename or "", 1)
    finally:
        await form.close()
    try:
        files.format_name(name)
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
            if self._size > files.MOST_BYTES:
                raise _too_large()
        super().on_part_data(data, start, end)


async def _pieces(request: Request) -> AsyncGenerator[bytes, None]:
    got = 0
    async for piece in request.stream():
        got += len(piece)
        if got > files.MOST_BYTES + MOST_PLANS:
            raise _too_large()
        yield piece


def _too_large() -> RequestError:
    message = f"a file has at most {files.MOST_BYTES >> 20} MB here; send a larger one as a job"
    return RequestError(message, 413, "TooLarge")

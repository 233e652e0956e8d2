"""Files that a person works with: their texts, and the file again with plans carried out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from allonym.errors import DataError, RequestError
from allonym.server import files
from allonym.server.access import Who, needs, services_of
from allonym.server.routes.jobs import disposition
from allonym.server.services import Services
from allonym.server.treating import plan_of
from allonym.server.wire import files as wire

router = APIRouter(prefix="/v1/files", tags=["files"])
Within = Annotated[Services, Depends(services_of)]
MOST_PLANS = 64 << 20
"""Bytes of all plans of a file as JSON."""

_PLANS: TypeAdapter[list[wire.FilePlan]] = TypeAdapter(list[wire.FilePlan])
_MEDIA = {
    "txt": "text/plain; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
}


def _described(**more: Any) -> dict[str, Any]:
    file = {"type": "string", "format": "binary", "description": f"one of {', '.join(files.FORMATS)}"}
    schema = {"type": "object", "required": ["file", *more], "properties": {"file": file, **more}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post("/text", summary="Read a file", openapi_extra=_described())
async def file_text(request: Request, who: Annotated[Who, needs("detect")], services: Within) -> wire.FileTexts:
    """The texts of a file, each with its turns where it is a conversation. Offsets and plans made of them fit
    `/v1/files/apply`. Nothing is kept. A PDF gives its text only; a scanned or encrypted one is refused."""
    name, data, _ = await _received(request)
    found = await services.kernel.run(files.read, data, name, services.settings.max_characters)
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
    name, data, given = await _received(request)
    if given is None:
        raise RequestError("plans is required: a JSON list of {id, plan}", 422, "InvalidRequest")
    try:
        rows = _PLANS.validate_json(given)
    except (ValidationError, RecursionError):
        raise RequestError("plans is not a JSON list of {id, plan}", 422, "InvalidRequest") from None
    plans = {row.id: plan_of(row.plan) for row in rows}
    if len(plans) < len(rows):
        raise RequestError("plans names a document twice", 422, "InvalidRequest")
    made = await services.kernel.run(files.carried_out, data, name, plans)
    media = _MEDIA.get(files.suffix(name), "application/octet-stream")
    return Response(made, media_type=media, headers={"content-disposition": disposition(name)})


async def _received(request: Request) -> tuple[str, bytes, bytes | None]:
    """Name and bytes of the one file of an upload, and the field ``plans``. All of it stays in memory.

    Raises:
        RequestError: the body is none, breaks off, or holds too much (400, 413, 415).
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    most = files.MOST_BYTES + MOST_PLANS
    too_large = RequestError(
        f"a file has at most {files.MOST_BYTES >> 20} MB here; send a larger one as a job", 413, "TooLarge"
    )

    pieces: list[bytes] = []
    got = 0
    try:
        async for piece in request.stream():
            got += len(piece)
            if got > most:
                raise too_large
            pieces.append(piece)
    except ClientDisconnect:
        raise RequestError("the upload broke off", 400, "BrokenOff") from None
    parser = MultiPartParser(request.headers, _each(pieces), max_files=1, max_fields=1, max_part_size=MOST_PLANS)
    parser.spool_max_size = most + 1  # so that nothing goes to a disk
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, UnicodeDecodeError):
        raise RequestError("the body is not a form with one file, and plans beside it", 400, "InvalidRequest") from None
    try:
        file, plans = form.get("file"), form.get("plans")
        if not isinstance(file, UploadFile) or isinstance(plans, UploadFile):
            raise RequestError("the form needs a file in the field 'file'", 422, "InvalidRequest")
        data = await file.read()
        name = files.file_name(file.filename or "")
    finally:
        await form.close()
    if len(data) > files.MOST_BYTES:
        raise too_large
    try:
        files.suffix(name)
    except DataError as error:
        raise RequestError(str(error), 415, "WrongMediaType") from None
    return name, data, None if plans is None else plans.encode("utf-8", "surrogatepass")


async def _each(pieces: list[bytes]) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece

"""Forms with files as they arrive, read by Starlette's parser: files stay in memory, or go block by block to the disk.

Beyond what that parser limits, unknown fields, and files that get too large, are refused before they have come whole.
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from allonym.errors import RequestError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Form:
    """What a form may hold.

    Attributes:
        file_fields, text_fields: the fields that are files, and those that are not.
        most_files: how many files there may be.
        file_bytes: largest file; None: the limit of the request is enough.
        text_bytes: largest field that is no file.
    """

    file_fields: tuple[str, ...]
    text_fields: tuple[str, ...]
    most_files: int
    file_bytes: int | None = None
    text_bytes: int = 1 << 20

    def describe_body(self, required: list[str], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the description of a request with this form, for OpenAPI."""
        schema = {"type": "object", "required": required, "properties": fields}
        return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


async def receive_form(
    request: Request, form: Form, folder: Path | None = None
) -> tuple[dict[str, str], list[tuple[str, UploadFile]]]:
    """Receive a form, and return texts by their fields, and the files with their fields, in order.

    Args:
        request: with a body of ``multipart/form-data``.
        form: what it may hold.
        folder: where files go, under numbers from 1; it exists. None: they stay in memory.

    Raises:
        RequestError: there is no such body, or it breaks off or holds too much (400, 413, 415, 507).
        UnknownNameError: a field is not known.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    try:
        received = await _FormParser(request, form, folder).parse()
    except MultiPartException:
        raise RequestError("the body is not valid multipart/form-data", 400, "InvalidRequest") from None
    except ClientDisconnect:
        raise RequestError("the upload broke off", 400, "BrokenOff") from None
    except OSError as error:
        raise RequestError(f"the upload could not be stored: {error.strerror}", 507, "NoSpace") from None
    texts = {name: value for name, value in received.items() if isinstance(value, str)}
    files = [(name, value) for name, value in received.multi_items() if isinstance(value, UploadFile)]
    return texts, files


class _FormParser(MultiPartParser):
    """Refuses what a form may not hold as soon as it comes. See :func:`receive_form`."""

    spool_max_size = 0  # what goes to no folder stays in memory

    def __init__(self, request: Request, form: Form, folder: Path | None) -> None:
        blocks = self._read_blocks(request)
        super().__init__(request.headers, blocks, max_files=math.inf, max_part_size=form.text_bytes)
        self._form, self._folder, self._size = form, folder, 0
        self._is_complete = False

    async def _read_blocks(self, request: Request) -> AsyncGenerator[bytes, None]:
        async for block in request.stream():
            yield block
        if not self._is_complete:
            raise ClientDisconnect

    def on_headers_finished(self) -> None:
        """See the base class."""
        super().on_headers_finished()
        part, form, self._size = self._current_part, self._form, 0
        if part.file is None:
            if part.field_name not in form.text_fields:
                names = (*form.text_fields, *form.file_fields)
                raise UnknownNameError("field", part.field_name[:64], names, "form")
            return
        if part.field_name not in form.file_fields:
            raise UnknownNameError("field with a file", part.field_name[:64], form.file_fields, "form")
        if self._current_files > form.most_files:
            raise RequestError(f"a form has at most {form.most_files} files here", 413, "TooLarge")
        if self._folder is not None:
            path = self._folder / f"{self._current_files}"
            file: Any = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            part.file.file.close()
            part.file.file = self._files_to_close_on_error[-1] = file

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """See the base class."""
        self._size += end - start
        most = self._form.text_bytes if self._current_part.file is None else self._form.file_bytes
        if most is not None and self._size > most:
            message = f"a field has at most {most >> 20} MB here; send a larger file as a job"
            raise RequestError(message, 413, "TooLarge")
        super().on_part_data(data, start, end)

    def on_end(self) -> None:
        """See the base class."""
        self._is_complete = True


def format_disposition(name: str, *, inline: bool = False) -> str:
    """Return a Content-Disposition by RFC 6266: the name in ASCII, and unchanged for clients that understand that."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in name)
    return f"{'inline' if inline else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"

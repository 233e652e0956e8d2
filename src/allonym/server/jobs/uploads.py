"""Uploads as they arrive: files go straight to the disk, block by block, with limits, never as a whole to memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from allonym.errors import RequestError, UnknownNameError
from allonym.server.jobs.task import InputFile

MOST_FILES = 5_000
MOST_HEADERS = 8 << 10
MOST_TEXT = 1 << 20
"""Bytes of a field that is no file."""


async def receive_upload(
    request: Request, folder: Path, file_fields: tuple[str, ...], text_fields: tuple[str, ...]
) -> tuple[dict[str, str], list[InputFile]]:
    """Receive an upload, write its files into a folder, and return texts by their fields, and the files in order.

    Args:
        request: with a body of ``multipart/form-data``.
        folder: where files go, under numbers; it exists.
        file_fields: fields that are files. texts: fields that are not.

    Raises:
        RequestError: there is no such body, or it breaks off or holds too much (400, 413, 507).
        UnknownNameError: a field is none of these.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 1 <= len(boundary) <= 200:
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    form = _FormReader(folder, file_fields, text_fields)
    try:
        parser = MultipartParser(boundary, form.get_parser_callbacks())  # type: ignore[arg-type]
        async for block in request.stream():
            if block:
                await run_in_threadpool(parser.write, block)
        parser.finalize()
        if not form.is_complete:
            raise RequestError("the upload broke off", 400, "BrokenOff")
    except FormParserError:
        raise RequestError("the body is not valid multipart/form-data", 400, "InvalidRequest") from None
    except ClientDisconnect:
        raise RequestError("the upload broke off", 400, "BrokenOff") from None
    except OSError as error:
        raise RequestError(f"the upload could not be stored: {error.strerror}", 507, "NoSpace") from None
    finally:
        form.close()
    return form.texts, form.files


class _FormReader:
    """Takes what the parser reads."""

    def __init__(self, folder: Path, roles: tuple[str, ...], text_names: tuple[str, ...]) -> None:
        self.texts: dict[str, str] = {}
        self.files: list[InputFile] = []
        self.is_complete = False
        self._folder, self._roles, self._text_names = folder, roles, text_names
        self._name = self._file = ""
        self._stream: BinaryIO | None = None
        self._on_part_begin()

    def get_parser_callbacks(self) -> dict[str, object]:
        """Return the methods that the parser calls, by the names of its events."""
        return {name.removeprefix("_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")}

    def close(self) -> None:
        """Close the file that is being written."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None

    def _on_part_begin(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._header, self._value, self._text, self._size = b"", b"", b"", 0

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._check_header_size()

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_header_size()

    def _check_header_size(self) -> None:
        if len(self._header) + len(self._value) > MOST_HEADERS or len(self._headers) > 16:
            raise RequestError("the headers of a part are too long", 400, "InvalidRequest")

    def _on_header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _on_headers_finished(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if kind != b"form-data" or b"name" not in options:
            raise RequestError("each part needs a name", 400, "InvalidRequest")
        self._name = options[b"name"].decode("utf-8", "replace")
        if b"filename" in options or b"filename*" in options:
            if self._name not in self._roles:
                raise UnknownNameError("field with a file", self._name[:64], self._roles, "form")
            if len(self.files) >= MOST_FILES:
                raise RequestError(f"a job has at most {MOST_FILES} files; pack records into one", 413, "TooLarge")
            self._file = options.get(b"filename", b"").decode("utf-8", "replace")
            path = self._folder / f"{len(self.files) + 1}"
            self._stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        elif self._name not in self._text_names:
            raise UnknownNameError("field", self._name[:64], (*self._text_names, *self._roles), "form")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._stream is not None:
            self._stream.write(data[start:end])
            return
        if self._size > MOST_TEXT:
            raise RequestError(f"a field has at most {MOST_TEXT} bytes", 413, "TooLarge")
        self._text += data[start:end]

    def _on_part_end(self) -> None:
        if self._stream is None:
            self.texts[self._name] = self._text.decode("utf-8", "replace")
            return
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()
        self.files.append(InputFile(self._name, self._file, f"{len(self.files) + 1}", self._size))

    def _on_end(self) -> None:
        self.is_complete = True

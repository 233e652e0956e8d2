"""Uploads as they arrive: files straight to the disk, a piece at a time, with limits; never in memory as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from allonym.errors import RequestError, UnknownNameError

MOST_FILES = 5_000
MOST_HEADERS = 8 << 10
MOST_TEXT = 1 << 20
"""Bytes of a field that is no file."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A file that was uploaded: the field, the name that was sent, where it lies, and its size."""

    role: str
    name: str = field(repr=False)
    path: Path
    size: int


@dataclass(slots=True)
class Form:
    """What an upload held.

    Attributes:
        texts: fields that are no files.
        files: the others, in their order.
    """

    texts: dict[str, str] = field(default_factory=dict, repr=False)
    files: list[Arrived] = field(default_factory=list)


async def received(request: Request, folder: Path, roles: tuple[str, ...], texts: tuple[str, ...]) -> Form:
    """Take an upload in.

    Args:
        request: with a body of ``multipart/form-data``.
        folder: where files go, under numbers; it exists.
        roles: fields that are files. texts: fields that are not.

    Raises:
        RequestError: the body is none, breaks off, or holds too much (400, 413, 507).
        UnknownNameError: a field is none of these.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 1 <= len(boundary) <= 200:
        raise RequestError("a body of multipart/form-data is required", 415, "WrongMediaType")
    form = _Form(folder, roles, texts)
    try:
        parser = MultipartParser(boundary, form.callbacks())  # type: ignore[arg-type]
        async for piece in request.stream():
            if piece:
                await run_in_threadpool(parser.write, piece)
        parser.finalize()
    except FormParserError:
        raise RequestError("the body is not valid multipart/form-data", 400, "InvalidRequest") from None
    except ClientDisconnect:
        raise RequestError("the upload broke off", 400, "BrokenOff") from None
    except OSError as error:
        raise RequestError(f"the upload could not be stored: {error.strerror}", 507, "NoSpace") from None
    finally:
        form.close()
    if not form.over:
        raise RequestError("the upload broke off", 400, "BrokenOff")
    return form.form


class _Form:
    """What the parser calls."""

    def __init__(self, folder: Path, roles: tuple[str, ...], texts: tuple[str, ...]) -> None:
        self.form, self.over = Form(), False
        self._folder, self._roles, self._texts = folder, roles, texts
        self._header, self._value, self._headers = b"", b"", dict[bytes, bytes]()
        self._size = 0
        self._name = self._file = ""
        self._stream: BinaryIO | None = None
        self._text = b""

    def callbacks(self) -> dict[str, object]:
        return {name.removeprefix("_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")}

    def close(self) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None

    def _on_part_begin(self) -> None:
        self._headers, self._header, self._value, self._size, self._text = {}, b"", b"", 0, b""

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._bounded()

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._bounded()

    def _bounded(self) -> None:
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
            if len(self.form.files) >= MOST_FILES:
                raise RequestError(f"a job has at most {MOST_FILES} files; pack records into one", 413, "TooLarge")
            self._file = options.get(b"filename", b"").decode("utf-8", "replace")
            path = self._folder / f"{len(self.form.files) + 1}"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._stream = os.fdopen(handle, "wb")
        elif self._name not in self._texts:
            raise UnknownNameError("field", self._name[:64], (*self._texts, *self._roles), "form")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._stream is not None:
            self._stream.write(data[start:end])
        else:
            if self._size > MOST_TEXT:
                raise RequestError(f"a field has at most {MOST_TEXT} bytes", 413, "TooLarge")
            self._text += data[start:end]

    def _on_part_end(self) -> None:
        if self._stream is None:
            self.form.texts[self._name] = self._text.decode("utf-8", "replace")
            return
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._stream = None
        path = self._folder / f"{len(self.form.files) + 1}"
        self.form.files.append(Arrived(self._name, self._file, path, self._size))

    def _on_end(self) -> None:
        self.over = True

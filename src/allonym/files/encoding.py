"""Text encodings: UTF-8 with and without a byte order mark, and UTF-16 with one. The output keeps the encoding.

Other encodings are refused: text decoded with a wrong encoding hides names from every detector.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from allonym.errors import DataError
from allonym.files.record import Chunk

_MARKS = (
    (codecs.BOM_UTF32_LE, ""),
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
MAX_RECORD = 1 << 26
"""Greatest size of a line or row in bytes; an unclosed quote would otherwise read the whole file."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec and the byte order mark in front of the text."""

    codec: str
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """Decode ``data``, which has no mark. Raises :class:`DataError` if it is not in this encoding."""
        try:
            return data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise DataError(f"not valid {self.codec.upper()} at byte {error.start}; UTF-8 is required") from None

    def encode_file(self, text: str) -> bytes:
        """Encode the text of a whole file, with the mark. Raises :class:`DataError` for lone surrogates."""
        return self.mark + self.encode(text)

    def encode(self, text: str) -> bytes:
        """Encode ``text``, without a mark. Raises :class:`DataError` for lone surrogates."""
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            raise DataError(f"cannot be written as {self.codec.upper()}: lone surrogate at {error.start}") from None


def detect_encoding(head: bytes) -> Encoding:
    """Return the encoding that a file's byte order mark names, or UTF-8."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            if not codec:
                raise DataError("UTF-32 is not read; convert the file to UTF-8")
            return Encoding(codec, mark)
    if b"\x00" in head[:4]:
        raise DataError("not a text file, or UTF-16 without a byte order mark; UTF-8 is required")
    return Encoding("utf-8")


def decode_file(data: bytes) -> tuple[str, Encoding]:
    """Return the text and the encoding of a whole file. Raises :class:`DataError` if it is not text."""
    encoding = detect_encoding(data[:4])
    return encoding.decode(data[len(encoding.mark) :]), encoding


def make_chunks(pieces: Iterable[bytes], head: tuple[object, ...], start: int) -> Iterator[Chunk]:
    """Yield the pieces of a file from the offset ``start`` as chunks with this head."""
    position = start
    for data in pieces:
        position += len(data)
        yield Chunk(data, head, position == len(data), position)


def cut_stream(
    stream: BinaryIO, encoding: Encoding, size: int, find_boundary: Callable[[str, bool], int], buffer: bytes = b""
) -> Iterator[bytes]:
    """Yield chunks of about ``size`` bytes that end at ``find_boundary(text, at_end)``, which returns 0 for none.

    ``buffer`` has been read from the stream already. The chunks depend on the bytes and ``size`` alone. For UTF-8,
    ``text`` has one character per byte, so boundaries must be ASCII characters.

    Raises:
        DataError: a record is longer than ``MAX_RECORD`` bytes.
    """
    wide = encoding.codec != "utf-8"
    want = size
    ended = False
    while True:
        while len(buffer) < want and not ended:
            more = stream.read(want - len(buffer))
            ended = not more
            buffer += more
        if not buffer:
            return
        last = ended and len(buffer) <= want
        view = buffer[:want]
        if wide:
            text = codecs.getincrementaldecoder(encoding.codec)("replace").decode(view)
            cut_position = len(text[: find_boundary(text, last)].encode(encoding.codec, "surrogatepass"))
        else:
            cut_position = find_boundary(view.decode("latin-1"), last)
        if cut_position == 0 and last:
            cut_position = len(view)
        if cut_position:
            yield buffer[:cut_position]
            buffer = buffer[cut_position:]
            want = size
        elif want >= MAX_RECORD:
            raise DataError(f"a record is longer than {MAX_RECORD} bytes; is a quote left open?")
        else:
            want *= 2

"""Pictures in files: replace them by grey ones, or remove the metadata of cameras and programs."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

SIDE = 8
GREY = 0xD9


def make_grey_png() -> bytes:
    """Return a small grey picture, which is stretched to the size of the replaced one."""
    rows = (b"\0" + bytes([GREY]) * SIDE) * SIDE
    head = struct.pack(">2I5B", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return _PNG + b"".join(_make_png_chunk(kind, data) for kind, data in chunks)


def make_grey_data_uri() -> str:
    """Return a small grey picture as a ``data:`` URI."""
    return "data:image/png;base64," + base64.b64encode(make_grey_png()).decode()


_PNG = b"\x89PNG\r\n\x1a\n"
_SHOWN = frozenset((b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"pHYs", b"bKGD"))


def _make_png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def strip_picture_metadata(data: bytes) -> bytes | None:
    """Remove texts, times, places and previews from a PNG or JPEG; return None for other pictures.

    The colour profile and the orientation noted by a camera are removed as well.
    """
    try:
        if data.startswith(_PNG):
            return _PNG + b"".join(_make_png_chunk(k, d) for k, d in _read_png_chunks(data) if k in _SHOWN)
        if data.startswith(b"\xff\xd8\xff"):
            return b"\xff\xd8" + b"".join(_read_jpeg_image_segments(data))
    except (struct.error, IndexError, ValueError):
        pass
    return None


def _read_png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(_PNG)
    kind = b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        if len(body) < length:
            raise ValueError
        yield kind, body
        position += length + 12


def _read_jpeg_image_segments(data: bytes) -> Iterator[bytes]:
    """Return the segments of the image data, without comments and application data other than JFIF's and Adobe's."""
    position = 2
    while True:
        marker, kind = data[position], data[position + 1]
        if marker != 0xFF:
            raise ValueError
        if kind == 0xFF:
            position += 1
            continue
        if kind == 0xD9:
            yield b"\xff\xd9"
            return
        (length,) = struct.unpack_from(">H", data, position + 2)
        segment = data[position : position + 2 + length]
        if len(segment) < 2 + length:
            raise ValueError
        position += 2 + length
        if kind == 0xE0 and segment[4:9] == b"JFIF\0":
            # its preview is left out
            yield b"\xff\xe0\x00\x10" + segment[4:16] + b"\0\0"
        elif (kind == 0xEE and segment[4:9] == b"Adobe") or not (0xE0 <= kind <= 0xEF or kind == 0xFE):
            yield segment
        if kind == 0xDA:
            end = position
            while not (data[end] == 0xFF and data[end + 1] not in (0, *range(0xD0, 0xD8))):
                end += 1
            yield data[position:end]
            position = end

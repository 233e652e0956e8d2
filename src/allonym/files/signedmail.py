"""Mails that lie within their signature (S/MIME, ``smime-type=signed-data``): the same mail without it."""

from __future__ import annotations

import base64
import email.parser
import email.policy
import re
from collections.abc import Iterator

_PARTED = re.compile(rb"\r?\n(?=\r?\n)")
_CONTENT_HEADER = re.compile(rb"(?im)^content-[!-9;-~]+[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*")
_KIND = re.compile(r"application/(?:x-)?pkcs7-mime")
_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
"""The object identifier of signed data, RFC 5652 section 5.1."""

_MOST_LAYERS = 5
_OCTETS, _OBJECT_IDENTIFIER, _INDEFINITE = 0x04, 0x06, 0x80


def unwrap_signed_mail(data: bytes) -> bytes:
    """Return a mail without the signatures in which it lies; a mail that lies in none stays as it is."""
    for _ in range(_MOST_LAYERS):
        parted = _PARTED.search(data)
        if parted is None or b"pkcs7-mime" not in data[: parted.start()].lower():
            return data
        head, body = data[: parted.end()], data[parted.end() :]
        parsed = email.parser.BytesHeaderParser(policy=email.policy.compat32).parsebytes(head)
        if not _KIND.fullmatch(parsed.get_content_type()):
            return data
        coding = str(parsed.get("content-transfer-encoding", "")).strip().lower()
        try:
            content = _find_signed_content(base64.b64decode(body) if coding == "base64" else body.lstrip())
        except (ValueError, LookupError, RecursionError):
            return data
        newline = b"\r\n" if b"\r\n" in head else b"\n"
        data = _CONTENT_HEADER.sub(b"", head) + content.replace(b"\r\n", b"\n").replace(b"\n", newline)
    return data


def _find_signed_content(data: bytes) -> bytes:
    """Return the content that signed data hold; raises ValueError or LookupError if they hold none."""
    _, start, end, _ = _read_element(data, 0, len(data))
    (kind, a, b), (_, start, end) = _list_elements(data, start, end)
    if kind != _OBJECT_IDENTIFIER or data[a:b] != _SIGNED_DATA:
        raise ValueError("no signed data")
    ((_, start, end),) = _list_elements(data, start, end)
    _, _, (_, start, end), *_ = _list_elements(data, start, end)
    _, (_, start, end) = _list_elements(data, start, end)
    return b"".join(_join_octets(data, start, end))


def _join_octets(data: bytes, start: int, end: int) -> Iterator[bytes]:
    for kind, a, b in _list_elements(data, start, end):
        pieces = [(kind, a, b)] if kind == _OCTETS else _list_elements(data, a, b)
        yield from (data[first:last] for _, first, last in pieces)


def _list_elements(data: bytes, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return the kind, start and end of each element of BER in a stretch of data."""
    out: list[tuple[int, int, int]] = []
    while start < end:
        kind, a, b, start = _read_element(data, start, end)
        out.append((kind, a, b))
    return out


def _read_element(data: bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Return the kind of the element at an offset, the start and end of its content, and the start of the next."""
    kind, size, a = data[start], data[start + 1], start + 2
    if size == _INDEFINITE:
        b = a
        while data[b : b + 2] != b"\0\0":
            b = _read_element(data, b, end)[3]
        return kind, a, b, b + 2
    if size > _INDEFINITE:
        width = size - _INDEFINITE
        size, a = int.from_bytes(data[a : a + width], "big"), a + width
    if a + size > end:
        raise ValueError("the data end within an element")
    return kind, a, a + size, a + size

"""Mail (EML): the headers and text bodies form one document; all bytes outside changed text are kept.

Names in address headers are treated like the speaker labels of a conversation. Text attachments are anonymised too.
A file with any other attachment is refused.
"""

from __future__ import annotations

import base64
import binascii
import email.header
import email.message
import email.parser
import email.policy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.errors import HeaderParseError
from itertools import islice

from allonym.document import Turn
from allonym.errors import DataError, RefusedContent, hide_foreign_errors
from allonym.files import markup
from allonym.files.fields import mask_unusual_name
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk
from allonym.files.segments import Segment, splice_segments, to_document

_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:[ \t]*((?:[^\r\n]|\r?\n[ \t])*)(?:\r?\n|\Z)")
_BLANK = re.compile(rb"\r?\n")
_PLAIN_HEADERS = frozenset(("mime-version", "content-transfer-encoding"))
_ADDRESS_HEADERS = (
    "from to cc bcc reply-to sender return-path delivered-to resent-from resent-to resent-cc "
    "disposition-notification-to"
)
_ADDRESSES = frozenset(_ADDRESS_HEADERS.split())
_NAME = re.compile(r'(?:^|[,;:])\s*(?:"([^"@]*)"|([^"<>,;:@]*[^"<>,;:@\s]))\s*(?=<)')
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64decode,
    "quoted-printable": binascii.a2b_qp,
    **dict.fromkeys(("7bit", "8bit", "binary"), bytes),
}
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class _TextBlock:
    """A block of the mail's bytes: its text, the segments to anonymise, and the encoder of the text."""

    start: int
    end: int
    text: str = field(repr=False)
    segments: tuple[Segment, ...] = field(repr=False)
    write: Callable[[str], bytes] = field(repr=False)
    names: tuple[tuple[int, int], ...] = ()


def _parse_mail(chunk: Chunk, job: Job) -> ParsedChunk:
    data = chunk.data
    blocks = list(_read_mime_entity(data, 0, len(data), 0))
    pieces = [(segment, block.names) for block in blocks for segment in block.segments]
    document = to_document([segment for segment, _ in pieces])
    turns = [
        Turn(end, end, (start + a, start + b))
        for (start, end), (_, names) in zip(document.parts, pieces, strict=bool(pieces))
        for a, b in names
    ]
    document = replace(document, turns=tuple(turns))

    def render_mail(new: tuple[str, ...]) -> bytes:
        out: list[bytes] = []
        position = 0
        upcoming = iter(new)
        for block in blocks:
            mine = list(islice(upcoming, len(block.segments)))
            if all(part == s.text for part, s in zip(mine, block.segments, strict=True)):
                continue
            out += (data[position : block.start], block.write(splice_segments(block.text, block.segments, mine)))
            position = block.end
        return b"".join((*out, data[position:]))

    return ParsedChunk([Draft(document, render_mail)])


def _read_mime_entity(data: bytes, start: int, end: int, depth: int) -> Iterator[_TextBlock]:
    if depth > MAX_DEPTH:
        raise RefusedContent(f"parts are nested more than {MAX_DEPTH} deep")
    position = start
    if envelope := re.match(rb"From [^\r\n]*\r?\n", data[start : start + 1000]):
        # The line in front of each mail in a mailbox file.
        position += envelope.end()
        yield from _read_text_outside_parts(data, start, position)
    first = position
    while (match := _HEADER.match(data, position, end)) and match.end() > position:
        yield from _read_header(data, match)
        position = match.end()
    blank = _BLANK.match(data, position, end)
    if blank is None and position < end:
        raise DataError("not a mail: a line in the header block is not a header")
    head = email.parser.BytesHeaderParser(policy=email.policy.compat32).parsebytes(data[first:position])
    body = blank.end() if blank else end
    kind = head.get_content_type()
    if kind.startswith("multipart/"):
        yield from _read_multipart(data, body, end, head, depth)
    elif kind == "message/rfc822":
        yield from _read_mime_entity(data, body, end, depth + 1)
    elif kind.startswith("text/") or kind in ("message/delivery-status", "application/json", "application/xml"):
        yield from _read_body(data, body, end, head, kind)
    elif data[body:end].strip():
        raise RefusedContent(f"an attachment of type {mask_unusual_name(kind)} cannot be treated yet")


def _read_header(data: bytes, match: re.Match[bytes]) -> Iterator[_TextBlock]:
    name = match[1].decode("ascii").lower()
    start, end = match.span(2)
    if name in _PLAIN_HEADERS or start == end:
        return
    raw = re.sub(rb"\r?\n(?=[ \t])", b"", data[start:end])
    message = f"the header {mask_unusual_name(match[1].decode('ascii'))} cannot be decoded"
    with hide_foreign_errors(message, UnicodeDecodeError, LookupError, HeaderParseError, binascii.Error):
        text = raw.decode("utf-8")
        if "=?" in text:
            text = str(email.header.make_header(email.header.decode_header(text)))
    gap = f"\n{match[1].decode('ascii')}: "
    pieces: tuple[Segment, ...] = (Segment(0, len(text), text, before=gap),)
    if name in ("content-type", "content-disposition"):
        # Only parameters such as file names contain text; the type and the boundary must stay.
        parameters = re.finditer(r'(?:file)?name\*?\d*\*?\s*=\s*("?)([^";]*)\1', text, re.IGNORECASE)
        pieces = tuple(Segment(*m.span(2), m[2], before=gap) for m in parameters if m[2])
    names = tuple(m.span(m.lastindex or 0) for m in _NAME.finditer(text)) if name in _ADDRESSES else ()
    if pieces:
        yield _TextBlock(start, end, text, pieces, _encode_header, names)


def _encode_header(text: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")
    return email.header.Header(text, "utf-8").encode().encode("ascii")


def _read_multipart(data: bytes, start: int, end: int, head: email.message.Message, depth: int) -> Iterator[_TextBlock]:
    boundary = head.get_boundary()
    if not boundary:
        raise DataError("a multipart without boundary")
    dashed = b"--" + re.escape(boundary.encode("utf-8", "surrogateescape"))
    mark = re.compile(rb"(?:\A|(?<=\n))" + dashed + rb"(--)?[ \t]*(?:\r?\n|\Z)")
    position = start
    inside = False
    for match in mark.finditer(data, start, end):
        if match.start() < position:
            continue
        stop = match.start()
        if inside:
            # The line end before a boundary belongs to the boundary.
            stop -= 2 if data[stop - 2 : stop] == b"\r\n" else 1
            yield from _read_mime_entity(data, position, max(position, stop), depth + 1)
        elif data[position:stop].strip():
            yield from _read_text_outside_parts(data, position, stop)
        position = match.end()
        inside = match[1] is None
        if not inside:
            break
    if inside:
        yield from _read_mime_entity(data, position, end, depth + 1)
    elif data[position:end].strip():
        yield from _read_text_outside_parts(data, position, end)


def _read_text_outside_parts(data: bytes, start: int, end: int) -> Iterator[_TextBlock]:
    with hide_foreign_errors("text between the parts is not UTF-8", UnicodeDecodeError):
        text = data[start:end].decode("utf-8")
    yield _TextBlock(start, end, text, (Segment(0, len(text), text),), str.encode)


def _read_body(data: bytes, start: int, end: int, head: email.message.Message, kind: str) -> Iterator[_TextBlock]:
    raw = data[start:end]
    coding = str(head.get("Content-Transfer-Encoding", "7bit")).strip().lower()
    charset = (head.get_content_charset() or "utf-8").lower()
    if charset in ("us-ascii", "ascii"):
        charset = "utf-8"
    newline = b"\r\n" if b"\r\n" in raw else b"\n"
    if coding not in _DECODERS:
        raise RefusedContent(f"the transfer encoding {mask_unusual_name(coding)} is not read")
    message = f"a body of type {mask_unusual_name(kind)} cannot be decoded as {mask_unusual_name(charset)}"
    with hide_foreign_errors(message, LookupError, UnicodeDecodeError, binascii.Error):
        text = _DECODERS[coding](raw).decode(charset)
    if not text.strip():
        return

    def encode_body(new: str) -> bytes:
        message = f"a replacement cannot be written in the body's character set {mask_unusual_name(charset)}"
        with hide_foreign_errors(message, UnicodeEncodeError):
            out = new.encode(charset)
        if coding == "base64":
            return base64.encodebytes(out).rstrip().replace(b"\n", newline) + raw[len(raw.rstrip()) :]
        if coding == "quoted-printable":
            return binascii.b2a_qp(out, istext=True)
        return out

    if kind in ("text/html", "application/xml", "text/xml"):
        pieces = tuple(markup.find_html_segments(text))
    else:
        pieces = (Segment(0, len(text), text),)
    yield _TextBlock(start, end, text, pieces, encode_body)


EML = Format("eml", _parse_mail)

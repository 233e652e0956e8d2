"""Mail (EML) and mailboxes (mbox): headers, bodies and attachments form one document; other bytes are kept.

Names and addresses in headers are identifiers as a whole, see :mod:`allonym.files.mailheaders`; technical headers are
searched by rules, and for what was found elsewhere. Attachments are treated by their own format, also mails within
mails. What cannot be treated is left out, with a note in its place: files of unknown kinds, pictures without OCR unless
the policy keeps them, signatures. A mailbox is a file of many mails.
"""

from __future__ import annotations

import base64
import binascii
import email.message
import email.parser
import email.policy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath
from typing import BinaryIO

from allonym.batch import RECORD_ERRORS
from allonym.document import DATES_OF, PROSE, TECHNICAL, Document
from allonym.errors import AllonymError, DataError, RefusedContent, UsageError
from allonym.files import markup
from allonym.files.embedded import join_documents, parse_embedded_file, take_parts
from allonym.files.encoding import Encoding, cut_stream, decode_text, make_chunks
from allonym.files.fields import mask_unusual_name
from allonym.files.formats import MEDIA_TYPES, format_of, get_format
from allonym.files.mailheaders import SEALS, mask_boundaries, read_envelope, read_header
from allonym.files.pictures import strip_picture_metadata
from allonym.files.record import Chunk, Draft, Failure, Format, Job, ParsedChunk, Piece, Tally, read_beginning
from allonym.files.segments import Segment, splice_segments, to_document
from allonym.files.signedmail import unwrap_signed_mail
from allonym.plan import digest

_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:[ \t]*((?:[^\r\n]|\r?\n[ \t])*)(?:\r?\n|\Z)")
_STRAY_LINE = re.compile(
    rb"[^\r\n]+\r?\n(?=(?:[^\r\n]+\r?\n){0,50}?(?:content-type|content-transfer-encoding|mime-version)[ \t]*:)", re.I
)
"""A line among the headers that is none, before headers that tell how to read the body."""

_BLANK = re.compile(rb"\r?\n")
_ENVELOPE = re.compile(rb"From [^\r\n]*\r?\n")
_NEXT_MAIL = re.compile(r"(?:\A|\n)\r?\n(?=From [^\r\n]* \d\d:\d\d)")
_TELLING = 1 << 16
"""Bytes at the beginning of a mailbox by which it is told from others."""
_TYPES = {
    **{MEDIA_TYPES[name]: name for name in "csv tsv json pdf docx xlsx pptx odt ods odp rtf epub zip ics vcf".split()},
    **dict.fromkeys(("text/x-vcard", "text/directory"), "vcf"),
    "application/ics": "ics",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "text/rtf": "rtf",
    "application/x-zip-compressed": "zip",
}
"""Formats of attachments whose names have no known suffix."""

_HTML = frozenset(("text/html", "application/xhtml+xml", "application/xml", "text/xml", "text/x-amp-html"))
_TEXTS = frozenset(("message/delivery-status", "message/disposition-notification", "application/xml"))
_PICTURES = frozenset(("png", "jpg"))
_SIGNATURES = re.compile(r"application/(?:x-)?(?:pkcs7|pgp)-signature")
_ENCRYPTED = re.compile(r"application/(?:x-)?pkcs7-mime|multipart/encrypted")
_ENCODED_FILE = re.compile(r"(?m)^begin [0-7]{3,4} [^\r\n]+\r?\n(?:[ -`]{1,63}\r?\n)+end[ \t]*$")
"""A file in a text, by uuencode."""

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")
MAX_DEPTH = 20


def _decode_base64(raw: bytes) -> bytes:
    return base64.b64decode(_NOT_BASE64.sub(b"", raw) + b"==")


def _decode_uu(raw: bytes) -> bytes:
    lines = raw.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith(b"begin ")]
    out = []
    for line in lines[starts[0] + 1 if starts else 0 :]:
        if line.strip() in (b"end", b"`"):
            break
        out.append(binascii.a2b_uu(line))
    return b"".join(out)


def _encode_uu(data: bytes, newline: bytes) -> bytes:
    lines = [binascii.b2a_uu(data[i : i + 45]).rstrip(b"\n") for i in range(0, len(data), 45)]
    return newline.join([b"begin 644 data", *lines, b"`", b"end", b""])


def _encode_base64(data: bytes, newline: bytes) -> bytes:
    return base64.encodebytes(data).replace(b"\n", newline)


def _encode_quoted(data: bytes, newline: bytes) -> bytes:
    return binascii.b2a_qp(data.replace(b"\r\n", b"\n"), istext=True).replace(b"\n", newline)


_CODINGS: Mapping[str, tuple[Callable[[bytes], bytes], Callable[[bytes, bytes], bytes]]] = {
    "base64": (_decode_base64, _encode_base64),
    "quoted-printable": (binascii.a2b_qp, _encode_quoted),
    **dict.fromkeys(("uuencode", "x-uuencode", "uue", "x-uue"), (_decode_uu, _encode_uu)),
}
"""Transfer encodings; all others, also misspelt ones, are those of plain bytes."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A stretch of the mail's bytes that changes: its draft and the separator before it, or other bytes.

    ``is_always_written``: also if no text changes, since it loses hidden data or pictures.
    """

    start: int
    end: int
    draft: Draft | None = None
    before: str = "\n"
    fixed: bytes = field(default=b"", repr=False)
    is_attachment: bool = False
    is_always_written: bool = False


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one mail: its bytes, the settings, and the counts of what is left out."""

    data: bytes = field(repr=False)
    job: Job
    tally: Tally
    newline: bytes

    def read_entity(self, start: int, end: int, depth: int = 0, around: str = "") -> Iterator[_Block]:
        """Yield the blocks of a mail or of a part of one, which lies in a part of type ``around``."""
        if depth > MAX_DEPTH:
            raise RefusedContent(f"parts are nested more than {MAX_DEPTH} deep")
        data = self.data
        position = start
        if envelope := _ENVELOPE.match(data, start, min(end, start + 1000)):
            position = envelope.end()
            yield _Block(start, position, read_envelope(envelope[0]))
        headers: list[re.Match[bytes]] = []
        while True:
            if (match := _HEADER.match(data, position, end)) and match.end() > position:
                headers.append(match)
                position = match.end()
            elif headers and not around.startswith("multipart/") and (line := _STRAY_LINE.match(data, position, end)):
                yield self._read_text_outside_parts(position, line.end())
                position = line.end()
            else:
                break
        blank = _BLANK.match(data, position, end)
        if not headers and blank is None and not depth:
            raise DataError("not a mail: it does not begin with a header")
        head = email.parser.BytesHeaderParser(policy=email.policy.compat32).parsebytes(
            b"".join(match[0] for match in headers)
        )
        body = blank.end() if blank else position
        kind = head.get_content_type()
        if kind == "text/plain" and around == "multipart/digest" and "content-type" not in head:
            kind = "message/rfc822"
        if _ENCRYPTED.fullmatch(kind):
            if not depth:
                raise RefusedContent("an encrypted mail cannot be treated")
            yield self._leave_out(start, end, kind, around, "attachments left out")
        elif _SIGNATURES.fullmatch(kind):
            yield self._leave_out(start, end, kind, around, "signatures left out")
        elif around.startswith("multipart/"):
            yield from self._read_part(start, body, end, headers, head, kind, around, depth)
        else:
            yield from self._read_whole(body, end, headers, head, kind, depth)

    def _read_part(
        self,
        start: int,
        body: int,
        end: int,
        headers: Sequence[re.Match[bytes]],
        head: email.message.Message,
        kind: str,
        around: str,
        depth: int,
    ) -> Iterator[_Block]:
        """Yield the blocks of a part; one that cannot be treated is left out with its headers."""
        content = list(self._read_content(body, end, head, kind, depth))
        shown = [block for block in content if block is not None]
        if len(shown) < len(content):
            yield self._leave_out(start, end, kind, around, "attachments left out")
        elif any(block.is_attachment for block in shown):
            draft = _join_blocks(self.data, start, end, [*self._read_headers(headers), *shown])

            def write_attachment(parts: tuple[str, ...]) -> bytes:
                try:
                    return draft.render(parts)
                except (AllonymError, *RECORD_ERRORS):
                    return self._leave_out(start, end, kind, around, "attachments left out").fixed

            yield _Block(start, end, Draft(draft.document, write_attachment), is_always_written=True)
        else:
            yield from self._read_headers(headers)
            yield from shown

    def _read_whole(
        self,
        body: int,
        end: int,
        headers: Sequence[re.Match[bytes]],
        head: email.message.Message,
        kind: str,
        depth: int,
    ) -> Iterator[_Block]:
        """Yield the blocks of a whole mail; a single content that cannot be treated is left out, its headers stay."""
        content = list(self._read_content(body, end, head, kind, depth))
        shown = [block for block in content if block is not None]
        if len(shown) < len(content):
            note = self._leave_out(body, end, kind, "", "attachments left out")
            for match in headers:
                is_about_content = match[1].lower().startswith(b"content-")
                yield from (_Block(*match.span()),) if is_about_content else self._read_headers([match])
            yield replace(note, fixed=note.fixed.partition(self.newline * 2)[2])
        else:
            yield from self._read_headers(headers)
            yield from shown

    def _read_headers(self, headers: Sequence[re.Match[bytes]]) -> Iterator[_Block]:
        for match in headers:
            name = match[1].decode("ascii")
            if SEALS.fullmatch(name.lower()):
                self.tally.treated["signatures left out"] += 1
                yield _Block(*match.span())
                continue
            value = match[2]
            if name.lower() == "content-type" and value[:16].lower() == b"multipart/signed":
                # Its signature is left out.
                parameters = re.sub(
                    rb";\s*(?:protocol|micalg)\s*=\s*(?:\"[^\"]*\"|[^;\s]*)", b"", value, flags=re.IGNORECASE
                )
                yield _Block(*match.span(2), fixed=b"multipart/mixed" + parameters[16:])
            elif draft := read_header(name, value, self.newline.decode()):
                yield _Block(*match.span(2), draft, f"\n{name}: ")

    def _leave_out(self, start: int, end: int, kind: str, around: str, what: str) -> _Block:
        self.tally.treated[what] += 1
        return _Block(start, end, fixed=self._write_note(kind, around))

    def _write_note(self, kind: str, around: str) -> bytes:
        """Return a part that stands for one that is left out. Readers show the last of several alternatives."""
        n, plain = self.newline, mask_unusual_name(kind).encode("ascii")
        if around == "multipart/alternative":
            return b"Content-Type: " + (plain if b"(" not in plain else b"application/octet-stream") + n + n
        note = b"[Left out: an attachment of type " + plain + b"]"
        return b"Content-Type: text/plain; charset=us-ascii" + n + n + note + n

    def _read_content(
        self, start: int, end: int, head: email.message.Message, kind: str, depth: int
    ) -> Iterator[_Block | None]:
        """Yield the blocks of a body; None: it has to be left out."""
        coding = str(head.get("Content-Transfer-Encoding", "")).strip().strip("\"'").lower()
        if kind.startswith("multipart/") and head.get_boundary():
            yield from self._read_multipart(start, end, head, kind, depth)
        elif kind in ("message/rfc822", "message/global", "message/external-body") and coding not in _CODINGS:
            yield from self.read_entity(start, end, depth + 1, kind)
        elif self.data[start:end].strip():
            format = _find_format(head, kind)
            is_picture = kind.startswith("image/") or (format is not None and format.name in _PICTURES)
            is_text = kind.startswith(("text/", "multipart/")) or kind in _TEXTS
            if format is not None and format.written_as:
                format = None  # it would be of another kind than its name says
            if is_picture and self.job.policy.images == "keep":
                yield self._keep_picture(start, end, coding)
            elif format is not None and not (is_text and format.name in ("txt", "html")):
                yield self._read_attachment(start, end, head, format, coding)
            elif is_text:
                yield self._read_text(start, end, head, kind, coding)
            else:
                yield None

    def _read_multipart(
        self, start: int, end: int, head: email.message.Message, kind: str, depth: int
    ) -> Iterator[_Block]:
        data = self.data
        dashed = b"--" + re.escape(str(head.get_boundary()).encode("utf-8", "surrogateescape"))
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
                yield from self.read_entity(position, max(position, stop), depth + 1, kind)
            elif data[position:stop].strip():
                yield self._read_text_outside_parts(position, stop)
            position = match.end()
            inside = match[1] is None
            if not inside:
                break
        if inside:
            yield from self.read_entity(position, end, depth + 1, kind)
        elif data[position:end].strip():
            yield self._read_text_outside_parts(position, end)

    def _read_text_outside_parts(self, start: int, end: int) -> _Block:
        text, encoding = _decode_bytes(self.data[start:end], "")
        return _Block(start, end, Draft(Document("", text), lambda new: encoding.encode(new[0])))

    def _decode(self, start: int, end: int, coding: str) -> bytes | None:
        """Return the bytes of a body without its transfer encoding; None where it is damaged."""
        raw = self.data[start:end]
        try:
            return _CODINGS[coding][0](raw) if coding in _CODINGS else raw
        except binascii.Error:
            return None

    def _encode(self, data: bytes, start: int, end: int, coding: str) -> bytes:
        if coding not in _CODINGS:
            return data
        raw = self.data[start:end]
        return _CODINGS[coding][1](data, self.newline).rstrip() + raw[len(raw.rstrip()) :]

    def _read_text(self, start: int, end: int, head: email.message.Message, kind: str, coding: str) -> _Block | None:
        decoded = self._decode(start, end, coding)
        if decoded is None:
            return None
        text, encoding = _decode_bytes(decoded, head.get_content_charset() or "")
        if coding not in (*_CODINGS, "8bit", "binary") and decoded.isascii():
            encoding = replace(encoding, is_ascii=True)
        if kind in _HTML:
            segments = markup.find_html_segments(text, self.job.policy)
            encoding = replace(encoding, is_markup=True)
        else:
            role = TECHNICAL if kind.startswith("message/") else PROSE
            files = list(_ENCODED_FILE.finditer(text))
            ends = [0, *(end for match in files for end in match.span()), len(text)]
            segments = [Segment(a, b, text[a:b], role=role) for a, b in zip(ends[::2], ends[1::2], strict=True)]
            segments += (Segment(*match.span(), "", fixed="[Left out: an attachment]") for match in files)
            if files:
                self.tally.treated["attachments left out"] += len(files)

        def write_text(parts: tuple[str, ...]) -> bytes:
            new = splice_segments(text, segments, parts)
            return self._encode(encoding.encode(new), start, end, coding)

        has_data = any(segment.fixed is not None for segment in segments)
        return _Block(start, end, Draft(to_document(segments), write_text), "\n\n", is_always_written=has_data)

    def _read_attachment(
        self, start: int, end: int, head: email.message.Message, format: Format, coding: str
    ) -> _Block | None:
        """Return an attachment treated by its format; None where it cannot be read."""
        data = self._decode(start, end, coding)
        if data is None:
            return None
        charset = head.get_content_charset() or ""
        encoding: Encoding | None = None
        if charset and not data.startswith(b"PK"):
            text, encoding = _decode_bytes(data, charset)
            data = text.encode("utf-8")
        try:
            draft = parse_embedded_file(data, format, self.job, self.tally)
        except UsageError:
            raise
        except (AllonymError, *RECORD_ERRORS):
            return None

        def write_attachment(parts: tuple[str, ...]) -> bytes:
            new = draft.render(parts)
            new = new if encoding is None else encoding.encode(new.decode("utf-8"))
            return self._encode(new, start, end, coding)

        return _Block(start, end, Draft(draft.document, write_attachment), "\n\n", b"", True, True)

    def _keep_picture(self, start: int, end: int, coding: str) -> _Block | None:
        """Return a picture without its metadata; None where it is of another kind than PNG and JPEG."""
        picture = strip_picture_metadata(self._decode(start, end, coding) or b"")
        if picture is None:
            return None
        self.tally.treated["pictures kept"] += 1
        return _Block(start, end, fixed=self._encode(picture, start, end, coding))


def _decode_bytes(data: bytes, charset: str) -> tuple[str, Encoding]:
    """Return the text of a part and its encoding; bytes that are no text are read one by one."""
    try:
        return decode_text(data, charset)
    except DataError:
        return data.decode("latin-1"), Encoding("iso8859-1")


def _find_format(head: email.message.Message, kind: str) -> Format | None:
    """Return the format of an attachment, by the suffix of its name or by its type; None: text, or unknown."""
    name = (head.get_filename() or "").replace("\\", "/")
    try:
        format, is_packed = format_of(PurePath(name).name)
    except DataError:
        return get_format(_TYPES[kind]) if kind in _TYPES else None
    return None if is_packed else format


def _parse_mail(chunk: Chunk, job: Job) -> ParsedChunk:
    tally = Tally()
    return ParsedChunk([read_mail(chunk.data, job, tally)], tally=tally)


def read_mail(data: bytes, job: Job, tally: Tally) -> Draft:
    """Return a mail as one draft; what is left out is counted in ``tally``.

    Raises:
        DataError: it is not a mail, or encrypted.
    """
    unwrapped = unwrap_signed_mail(data)
    if unwrapped is not data:
        data = unwrapped
        tally.treated["signatures left out"] += 1
    data = mask_boundaries(data)
    newline = b"\r\n" if re.match(rb"[^\n]*\r\n", data) else b"\n"
    reader = _Reader(data, job, tally, newline)
    return _join_blocks(data, 0, len(data), list(reader.read_entity(0, len(data))))


def _join_blocks(data: bytes, start: int, end: int, blocks: Sequence[_Block]) -> Draft:
    """Return the draft of a stretch of the mail's bytes, which holds the blocks."""
    blocks = sorted(blocks, key=lambda block: block.start)
    drafts = [(block.draft.document, block.before) for block in blocks if block.draft is not None]
    document = join_documents([d for d, _ in drafts], [before for _, before in drafts])

    def write_blocks(new: tuple[str, ...]) -> bytes:
        out: list[bytes] = []
        position = start
        upcoming = iter(new)
        for block in blocks:
            written = block.fixed
            if block.draft is not None:
                mine = take_parts(upcoming, block.draft.document)
                if mine == block.draft.document.part_texts() and not block.is_always_written:
                    continue
                written = block.draft.render(mine)
            out += (data[position : block.start], written)
            position = block.end
        return b"".join((*out, data[position:end]))

    return Draft(document, write_blocks)


def _read_mailbox_chunks(stream: BinaryIO, job: Job, size: int, start: int) -> Iterator[Chunk]:
    beginning = read_beginning(stream, _TELLING)
    head = (digest(beginning.decode("latin-1")),)
    if start:
        stream.seek(start)
        beginning = b""
    return make_chunks(cut_stream(stream, Encoding("utf-8"), size, _find_last_mail, beginning), head, start)


def _find_last_mail(text: str, at_end: bool) -> int:
    return len(text) if at_end else max((match.end() for match in _NEXT_MAIL.finditer(text)), default=0)


def _parse_mailbox(chunk: Chunk, job: Job) -> ParsedChunk:
    text = chunk.data.decode("latin-1")
    borders = [0, *(match.end() for match in _NEXT_MAIL.finditer(text)), len(text)]
    tally = Tally()
    pieces: list[Piece] = []
    for number, (a, b) in enumerate(pairwise(borders), 1):
        if a == b:
            continue
        try:
            draft = read_mail(chunk.data[a:b], job, tally)
            meta = {**draft.document.meta, DATES_OF: chunk.head[0]}  # an answer stays behind what it answers
            pieces.append(replace(draft, document=replace(draft.document, meta=meta), line=number))
        except DataError as error:
            pieces.append(Failure("", number, str(error)))
    return ParsedChunk(pieces, len(pieces), tally)


EML = Format("eml", _parse_mail)
MBOX = Format("mbox", _parse_mailbox, _read_mailbox_chunks, many=True, unit="mail")

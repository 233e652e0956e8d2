"""ZIP and EPUB: each file of the archive is treated by its format; a value has the same replacement in all of them.

Files of an unknown kind are left out, and counted in the report. In a ZIP archive a file that fails is left out too,
and names of files that identify are replaced. In an EPUB book pictures become grey. A protected book is refused.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from allonym.document import CAPTION, Document
from allonym.errors import DataError, RefusedContent
from allonym.files.office import Package
from allonym.files.pictures import make_grey_png
from allonym.files.record import Chunk, Draft, Failure, Format, Job, ParsedChunk, Piece, Tally

MAX_DEPTH = 3
"""Greatest depth of archives inside archives."""

_BATCH = 1 << 16
_SIGNS = re.compile(r"_+|(?<=[^\W\d_])-(?=[^\W\d_])")
_EPUB: Mapping[str, str] = {
    r"mimetype|META-INF/(container|metadata|manifest)\.xml|.*\.css|.*\.(?i:otf|ttf|woff2?)": "keep",
    r"(?i:.*\.(opf|ncx|xml))": "xml",
    r"(?i:.*\.(x?html?))": "html",
    r"(?i:.*\.(png|jpe?g|gif|webp))": "image",
}


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of an archive: its name, its format, and its parsed chunks."""

    name: str
    format: Format
    chunks: tuple[ParsedChunk, ...]

    def join(self, written: Sequence[bytes | None]) -> bytes | None:
        """Return the file from the bytes of its pieces, or None if it is left out."""
        if not self.format.many and None in written:
            return None
        out = io.BytesIO()
        writer = self.format.writer(out) if self.format.writer else None
        position = 0
        for parsed in self.chunks:
            data = parsed.join_pieces(list(written[position : position + len(parsed.pieces)]))
            position += len(parsed.pieces)
            (writer or out).write(data)
        if writer:
            writer.write_end()
        return out.getvalue()


def _parse_member(name: str, data: bytes, kind: Format, job: Job, depth: int) -> _Member:
    if kind.chunks is None:
        return _Member(name, kind, (kind.parse(Chunk(data, (depth,), end=len(data)), job),))
    stream = cast(BinaryIO, io.BytesIO(data))
    return _Member(name, kind, tuple(kind.parse(chunk, job) for chunk in kind.chunks(stream, job, _BATCH, 0)))


def _find_format(name: str, depth: int) -> Format | None:
    """Return the format of a file of an archive; None: it is left out."""
    from allonym.files.formats import format_of

    try:
        kind, is_packed = format_of(name)
    except DataError:
        return None
    return None if is_packed or (kind.name == "zip" and depth >= MAX_DEPTH) else kind


def _parse_zip(chunk: Chunk, job: Job) -> ParsedChunk:
    depth = cast(int, chunk.head[0]) + 1 if chunk.head else 0
    package = Package.open(chunk.data)
    fields = job.fields
    tally, pieces, members = Tally(), cast("list[Piece]", []), cast("list[_Member]", [])
    if fields:
        raise DataError("an archive has no fields to choose from")
    for number, (name, data) in enumerate(package.entries.items(), 1):
        kind = None if PurePosixPath(name).name.startswith(".") else _find_format(name, depth)
        if kind is None:
            tally.treated["files of an unknown kind left out"] += 1
            continue
        try:
            member = _parse_member(name, data, kind, job, depth)
        except DataError as error:
            pieces.append(Failure("", number, f"file {number} of the archive: {error}"))
            members.append(_Member(name, kind, ()))
            continue
        members.append(member)
        for parsed in member.chunks:
            tally.add(parsed.tally)
            pieces += parsed.pieces
    names = _draft_names([member.name for member in members])
    return ParsedChunk([*pieces, names], len(members), tally, partial(_join_zip, package, members), shared=True)


def _draft_names(names: Sequence[str]) -> Draft:
    """Return a draft of the names of files, read without their suffixes and as words."""
    parts = [word for name in names for word in PurePosixPath(name).with_suffix("").parts]
    texts = [_SIGNS.sub(" ", part) for part in parts]
    counts = [len(PurePosixPath(name).parts) for name in names]

    def render_names(new: tuple[str, ...]) -> bytes:
        words = iter(
            part if text == changed else _make_file_name(changed)
            for part, text, changed in zip(parts, texts, new if texts else (), strict=True)
        )
        paths = ["/".join(next(words) for _ in range(count)) for count in counts]
        return json.dumps([p + PurePosixPath(n).suffix for p, n in zip(paths, names, strict=True)]).encode()

    document = Document.from_parts("", texts, separators="\n", roles=[CAPTION] * len(texts))
    return Draft(document, render_names, counted=False)


def _make_file_name(text: str) -> str:
    return re.sub(r"[^\w ()-]+", "", text).strip().replace(" ", "_") or "file"


def _join_zip(package: Package, members: Sequence[_Member], written: list[bytes | None]) -> bytes:
    names = written[-1]
    if names is None:
        raise DataError("the names of the archive's files cannot be treated")
    entries: dict[str, bytes] = {}
    packed: set[str] = set()
    position = 0
    for member, new in zip(members, json.loads(names), strict=True):
        count = sum(len(parsed.pieces) for parsed in member.chunks) if member.chunks else 1
        data = member.join(written[position : position + count]) if member.chunks else None
        position += count
        if data is None:
            continue
        path, number = PurePosixPath(new), 1
        while str(path) in entries:
            number += 1
            path = PurePosixPath(new).with_stem(f"{PurePosixPath(new).stem}_{number}")
        entries[str(path)] = data
        if member.name in package.packed:
            packed.add(str(path))
    return Package(entries, packed).to_bytes()


def _parse_epub(chunk: Chunk, job: Job) -> ParsedChunk:
    from allonym.files.formats import get_format

    package = Package.open(chunk.data)
    if "META-INF/encryption.xml" in package.entries and b"EncryptedData" in package.entries["META-INF/encryption.xml"]:
        raise RefusedContent("a protected book cannot be treated")
    tally, pieces = Tally(), cast("list[Piece]", [])
    members: list[tuple[str, _Member]] = []
    for name, data in package.entries.items():
        task = next((t for p, t in _EPUB.items() if re.fullmatch(p, name)), "")
        if task in ("xml", "html"):
            member = _parse_member(name, data, get_format(task), job, 0)
            members.append((name, member))
            for parsed in member.chunks:
                tally.add(parsed.tally)
                pieces += parsed.pieces
        elif task == "image":
            package.entries[name] = make_grey_png()
            tally.treated["pictures left out"] += 1
        elif not task:
            package.dropped.add(name)
            tally.treated["unknown parts left out"] += 1

    def join_book(written: list[bytes | None]) -> bytes:
        position = 0
        for name, member in members:
            count = sum(len(parsed.pieces) for parsed in member.chunks)
            data = member.join(written[position : position + count])
            position += count
            if data is None:
                raise DataError("a part of the book cannot be treated")
            package.entries[name] = data
        return package.to_bytes()

    return ParsedChunk(pieces, 1, tally, join_book, shared=True)


ZIP = Format("zip", _parse_zip, many=True, unit="file")
EPUB = Format("epub", _parse_epub)

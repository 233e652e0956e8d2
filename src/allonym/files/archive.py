"""ZIP and EPUB: the files of an archive, each read by its format, form one document.

What is found in one of them is covered in all. Files of an unknown kind are left out, and counted in the report. In a
ZIP archive a file that cannot be read is left out too, and names of files that identify are replaced. In an EPUB book
pictures become grey. A protected book is refused.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from allonym.batch import RECORD_ERRORS, describe_failure
from allonym.document import CAPTION, Document
from allonym.errors import DataError, RefusedContent, UsageError
from allonym.files.embedded import join_documents, parse_embedded_file, take_parts
from allonym.files.office import Package, assign_tasks
from allonym.files.pictures import make_grey_png
from allonym.files.record import (
    MAX_WHOLE,
    Chunk,
    Draft,
    Failure,
    Format,
    Job,
    ParsedChunk,
    Piece,
    Tally,
    check_compression_ratio,
)

MAX_DEPTH = 3
"""Greatest depth of archives inside archives."""

_SPACES = re.compile(r"_+|(?<=[^\W\d_])-(?=[^\W\d_])")
_EMBEDDED_STYLE = re.compile(rb"/\*.*?(?:\*/|\Z)|(?<=url\()\s*[\"']?data:[^)]*", re.DOTALL | re.IGNORECASE)
"""Comments and embedded data of a style sheet."""

_EPUB: Mapping[str, str] = {
    r"mimetype|META-INF/(container|manifest)\.xml|.*\.(?i:otf|ttf|woff2?)": "keep",
    r".*\.(?i:css)": "style",
    r"(?i:.*\.(opf|ncx|xml))": "xml",
    r"(?i:.*\.(x?html?))": "html",
    r"(?i:.*\.(png|jpe?g|gif|webp))": "image",
}


def _parse_zip(chunk: Chunk, job: Job) -> ParsedChunk:
    if job.fields:
        raise DataError("an archive has no fields to choose from")
    tally = Tally()
    draft, failures = _read_archive(chunk.data, job, tally, 0)

    def get_archive(written: list[bytes | None]) -> bytes:
        if written[0] is None:
            raise RefusedContent("a file of the archive cannot be treated")
        return written[0]

    return ParsedChunk([draft, *failures], 1 + len(failures), tally, get_archive)


def _read_archive(data: bytes, job: Job, tally: Tally, depth: int) -> tuple[Draft, list[Piece]]:
    """Return an archive as one draft, and the files in it that cannot be read."""
    package = _open_archive(data, "a ZIP archive")
    if not depth:
        _check_unpacked_size(package, len(data))
    drafts: dict[str, Draft] = {}
    failures: list[Piece] = []
    for number, (name, content) in enumerate(package.entries.items(), 1):
        kind = _find_format(name, depth)
        if kind is None:
            tally.treated["files of an unknown kind left out"] += 1
            continue
        try:
            if kind.name == "zip":
                drafts[name], more = _read_archive(content, job, tally, depth + 1)
                failures += more
            else:
                drafts[name] = parse_embedded_file(content, kind, job, tally)
        except UsageError:
            raise
        except (DataError, *RECORD_ERRORS) as error:
            failures.append(Failure("", number, f"file {number} of the archive: {describe_failure(error)}"))
    paths = ["/".join(_split_path(name)) for name in drafts]
    names = _read_names(paths)
    document = join_documents([*(d.document for d in drafts.values()), names], ["\n\n"] * (len(drafts) + 1))

    def write_archive(parts: tuple[str, ...]) -> bytes:
        upcoming = iter(parts)
        contents = [d.render(take_parts(upcoming, d.document)) for d in drafts.values()]
        new_paths = _make_paths(paths, list(upcoming))
        packed = {new for new, name in zip(new_paths, drafts, strict=True) if name in package.packed}
        return Package(dict(zip(new_paths, contents, strict=True)), packed).to_bytes()

    return Draft(document, write_archive), failures


def _open_archive(data: bytes, what: str) -> Package:
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise DataError(f"the file is not {what}")
    return Package.open(data)


def _check_unpacked_size(package: Package, packed: int) -> None:
    """Check the size of an archive with all packages in it: each may be small, and all of them a "zip bomb"."""
    size, todo = 0, [(package, 0)]
    while todo:
        package, depth = todo.pop()
        size += sum(map(len, package.entries.values()))
        if size > MAX_WHOLE:
            raise DataError(f"the archive unpacks to more than {MAX_WHOLE} bytes")
        check_compression_ratio(packed, size)
        for data in package.entries.values() if depth <= MAX_DEPTH else ():
            if data.startswith(b"PK"):
                with suppress(DataError):  # told when it is read
                    todo.append((Package.open(data), depth + 1))


def _split_path(name: str) -> list[str]:
    """Return the parts of a file's path that stay inside the folder that the archive is unpacked into."""
    parts = re.split(r"[/\\]+", re.sub(r"^[A-Za-z]:", "", name))
    return [part for part in parts if part not in ("", ".", "..")]


def _find_format(name: str, depth: int) -> Format | None:
    """Return the format of a file of an archive; None: it is left out."""
    from allonym.files.formats import format_of

    if PurePosixPath(name).name.startswith("."):
        return None
    try:
        kind, is_packed = format_of(name)
    except DataError:
        return None
    return None if is_packed or kind.written_as or (kind.name == "zip" and depth >= MAX_DEPTH) else kind


def _read_names(names: Sequence[str]) -> Document:
    """Return the names of files and folders as one document, without suffixes, and read as words."""
    words = [_SPACES.sub(" ", part) for name in names for part in PurePosixPath(name).with_suffix("").parts]
    return Document.from_parts("", words or [""], roles=[CAPTION] * (len(words) or 1))


def _make_paths(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the new names of files from the new texts of their parts; each is unlike all others."""
    upcoming = iter(words)
    paths: list[str] = []
    for name in names:
        old = PurePosixPath(name)
        parts = [
            part if new == _SPACES.sub(" ", part) else _make_file_name(new)
            for part, new in zip(old.with_suffix("").parts, upcoming, strict=False)
        ]
        stem, number = "/".join(parts), 1
        path = f"{stem}{old.suffix}"
        while path in paths:
            number += 1
            path = f"{stem}_{number}{old.suffix}"
        paths.append(path)
    return paths


def _make_file_name(text: str) -> str:
    return re.sub(r"[^\w ()-]+", "", text).strip().replace(" ", "_") or "file"


def _parse_epub(chunk: Chunk, job: Job) -> ParsedChunk:
    from allonym.files.formats import get_format

    package = _open_archive(chunk.data, "an EPUB book")
    if b"EncryptedData" in package.entries.get("META-INF/encryption.xml", b""):
        raise RefusedContent("a protected book cannot be treated")
    tally = Tally()
    drafts: dict[str, Draft] = {}
    for name, task in assign_tasks(package, _EPUB).items():
        data = package.entries[name]
        if task in ("xml", "html"):
            drafts[name] = parse_embedded_file(data, get_format(task), job, tally)
        elif task == "style":
            package.entries[name] = _EMBEDDED_STYLE.sub(b"", data)
        elif task == "image":
            package.entries[name] = make_grey_png()
            tally.treated["pictures left out"] += 1
        elif task != "keep":
            package.dropped.add(name)
            tally.treated["unknown parts left out"] += 1

    def write_book(parts: tuple[str, ...]) -> bytes:
        upcoming = iter(parts)
        for name, draft in drafts.items():
            package.entries[name] = draft.render(take_parts(upcoming, draft.document))
        return package.to_bytes()

    document = join_documents([draft.document for draft in drafts.values()], ["\n\n"] * len(drafts))
    return ParsedChunk([Draft(document, write_book)], 1, tally)


ZIP = Format("zip", _parse_zip, many=True, unit="file")
EPUB = Format("epub", _parse_epub)

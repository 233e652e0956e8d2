"""Names of files that come and go: what is shown of them, under which names they lie on the disk, what they hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Container
from pathlib import PurePosixPath

from allonym.errors import DataError
from allonym.files import format_of, get_format
from allonym.text.fold import Level, fold

MOST = 120
"""Characters of a name that is shown."""

_TYPES = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".eml": "message/rfc822",
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
    ".gz": "application/gzip",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".parquet": "application/vnd.apache.parquet",
}
_FORBIDDEN = frozenset('<>:"/\\|?*%')
_RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))))


def cleaned(name: str, number: int) -> str:
    """What is shown of a file's name, which comes from anybody: its last part, without what is invisible or forbidden.

    Args:
        name: as it was sent.
        number: of the file, for one whose name has nothing left.
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    visible = (" " if c.isspace() else c for c in last if not unicodedata.category(c).startswith("C") or c.isspace())
    kept = "".join("_" if c in _FORBIDDEN else c for c in visible)
    kept = " ".join(kept.split()).lstrip(". ").rstrip(". ")
    stem, suffix = parted(kept)
    if stem.partition(".")[0].strip().casefold() in _RESERVED:
        stem = f"_{stem}"
    suffix = suffix[:20]
    return f"{stem[: MOST - len(suffix)]}{suffix}" if stem else f"file-{number}{suffix}"


def parted(name: str) -> tuple[str, str]:
    """Stem and suffix of a name; ``.gz`` belongs to the suffix before it."""
    path = PurePosixPath(name)
    if path.suffix.lower() == ".gz" and PurePosixPath(path.stem).suffix:
        suffix = PurePosixPath(path.stem).suffix + path.suffix
    else:
        suffix = path.suffix
    return name[: len(name) - len(suffix)], suffix


def with_mark(name: str, mark: str) -> str:
    """``letter.txt`` as ``letter-safe.txt`` for the mark ``safe``."""
    stem, suffix = parted(name)
    return f"{stem}-{mark}{suffix}"


def apart(name: str, taken: Container[str]) -> str:
    """The name, or where it is taken, the name with a number. ``taken`` holds names as :func:`folded`."""
    stem, suffix = parted(name)
    out, number = name, 1
    while folded(out) in taken:
        number += 1
        out = f"{stem} ({number}){suffix}"
    return out


def folded(name: str) -> str:
    """By which two names are the same to somebody or to some file system."""
    return fold(name, Level.CASE)


def stored(name: str, number: int, format: str | None = None) -> str:
    """Under which name a file lies on the disk: a number, and a suffix that says its format.

    Raises:
        DataError: no format has its suffix.
        UnknownNameError: there is no such format.
    """
    packed = name.lower().endswith(".gz")
    if format is not None:
        kind = get_format(format).name
    else:
        found, packed = format_of(name)
        kind = found.name
    return f"file-{number:05}.{kind}{'.gz' if packed else ''}"


def plain_suffix(name: str, known: Container[str]) -> str:
    """The suffix of a file that no format of ours reads, such as annotated text.

    Raises:
        DataError: it is none of those known.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in known:
        raise DataError(f"a file of this kind cannot end in {suffix or 'nothing'}")
    return suffix


def media_type(name: str) -> str:
    """What a result is, by its suffix; text is UTF-8 or says otherwise itself."""
    return _TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")

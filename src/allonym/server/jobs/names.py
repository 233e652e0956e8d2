"""Names of files that come and go: as they are shown, as they lie on the disk, and the media types that they imply."""

from __future__ import annotations

import unicodedata
from collections.abc import Container
from pathlib import PurePosixPath

from allonym.errors import DataError
from allonym.files import format_of, get_format
from allonym.files.formats import MEDIA_TYPES
from allonym.text.fold import Level, fold

MOST = 120
"""Characters of a name that is shown."""

_FORBIDDEN = frozenset('<>:"/\\|?*%')
_RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))))


def clean_file_name(name: str, file_number: int) -> str:
    """Return a file's name as it is shown: its last part, without characters that are invisible or forbidden.

    Args:
        name: as it was sent, by anybody.
        file_number: of the file, for a name of which nothing is left.
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    visible = (" " if c.isspace() else c for c in last if not unicodedata.category(c).startswith("C") or c.isspace())
    allowed = "".join("_" if c in _FORBIDDEN else c for c in visible)
    stem, suffix = split_suffix(" ".join(allowed.split()).lstrip(". ").rstrip(". "))
    if stem.partition(".")[0].strip().casefold() in _RESERVED:
        stem = f"_{stem}"
    suffix = suffix[:20]
    return f"{stem[: MOST - len(suffix)]}{suffix}" if stem else f"file-{file_number}{suffix}"


def split_suffix(name: str) -> tuple[str, str]:
    """Return stem and suffix of a name; ``.gz`` belongs to the suffix before it."""
    path = PurePosixPath(name)
    suffix = path.suffix
    if suffix.lower() == ".gz":
        suffix = PurePosixPath(path.stem).suffix + suffix
    return name[: len(name) - len(suffix)], suffix


def append_to_stem(name: str, addition: str) -> str:
    """Add a mark to a name: ``letter.txt`` becomes ``letter-safe.txt`` for ``safe``."""
    stem, suffix = split_suffix(name)
    return f"{stem}-{addition}{suffix}"


def reserve_unique_name(name: str, used_folded_names: set[str]) -> str:
    """Return the name, with a number where it is used already, and add its form by :func:`fold_name` to the used."""
    stem, suffix = split_suffix(name)
    unique, number = name, 1
    while fold_name(unique) in used_folded_names:
        number += 1
        unique = f"{stem} ({number}){suffix}"
    used_folded_names.add(fold_name(unique))
    return unique


def fold_name(name: str) -> str:
    """Return the form in which two names are equal if people or some file system take them for the same."""
    return fold(name, Level.CASE)


def make_stored_name(name: str, file_number: int, format_name: str | None = None) -> str:
    """Return a file's name on the disk: a number, and a suffix for its format.

    Raises:
        DataError: no format has its suffix.
        UnknownNameError: there is no such format.
    """
    if format_name is None:
        kind, packed = format_of(name)
    else:
        kind, packed = get_format(format_name), name.lower().endswith(".gz")
    return f"file-{file_number:05}.{kind.name}{'.gz' if packed else ''}"


def require_allowed_suffix(name: str, allowed_suffixes: Container[str]) -> str:
    """Return the suffix of a file that no format of ours reads, such as annotated text.

    Raises:
        DataError: it is not allowed.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in allowed_suffixes:
        raise DataError(f"a file of this kind cannot end in {suffix or 'nothing'}")
    return suffix


def get_media_type(name: str) -> str:
    """Return a result's media type by its suffix; text is UTF-8 or declares its encoding itself."""
    return MEDIA_TYPES.get(PurePosixPath(name).suffix.lower().lstrip("."), "application/octet-stream")

"""Which fields of a record are treated: those named, or all text but record ids.

Without names every text is treated, since a field that nobody thought of is where names survive. Only fields whose
whole name says that they number the records are left, and only where their value looks like a number or a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from allonym.batch import split_field_name

ID_NAMES = frozenset(("id", "_id", "doc_id", "docid", "document_id", "record_id", "row_id", "uuid", "guid"))
_ID_VALUE = re.compile(r"[A-Za-z0-9._:/#+-]{1,128}")
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.:/ -]{0,63}")

Path = tuple[str, ...]


@lru_cache(maxsize=256)
def parse_path(name: str) -> Path:
    """A dotted path; list indices are transparent, so ``a[*].b``, ``a[].b`` and ``a.b`` are the same.

    >>> parse("turns[*].text")
    ('turns', 'text')
    """
    return tuple(re.sub(r"\[[*\d]*\]", "", name).strip(".").split("."))


@lru_cache(maxsize=4096)
def find_named_field(path: Path, fields: tuple[str, ...]) -> str | None:
    """The first of ``fields`` that names ``path`` or something above it; None where none does. ``*``: any key."""
    joined = ".".join(path)
    for name in fields:
        field_path = parse_path(name)
        if joined == name or (
            len(field_path) <= len(path) and all(w in ("*", p) for w, p in zip(field_path, path, strict=False))
        ):
            return name
    return None


def is_id(path: Path, value: str) -> bool:
    """Whether a field numbers its record: a top-level field with such a name and a value without blanks or ``@``."""
    return len(path) == 1 and path[0].lower() in ID_NAMES and _ID_VALUE.fullmatch(value) is not None


def is_plain_key(key: str) -> bool:
    """Whether an object's key looks like a field's name rather than data such as an address or a number."""
    return _PLAIN_KEY.fullmatch(key) is not None and sum(c.isdigit() for c in key) < 5


def read_metadata(record: Mapping[str, object]) -> dict[str, object]:
    """What a record says about itself, for policies that look names up there.

    Keys can be asked for as they are or as ``lower_case_words``. Inner ``meta`` and ``metadata`` count too.
    """
    out: dict[str, object] = {}
    for inner in (record.get("meta"), record.get("metadata"), record):
        if isinstance(inner, Mapping):
            out |= {
                split_field_name(key).replace(" ", "_"): value for key, value in inner.items() if isinstance(key, str)
            }
            out |= inner
    return out


def find_field(meta: Mapping[str, object], name: str) -> object:
    """The value of a metadata field by its name, as ``lower_case_words``, or as a dotted path; None where it has none.

    The names of :func:`read_metadata` are looked up.
    """
    value: object = meta.get(name, meta.get(split_field_name(name).replace(" ", "_")))
    if value is None and "." in name:
        value = meta
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def format_path(path: Iterable[str]) -> str:
    """A path for reports; keys that may be data are shown as ``*``."""
    return ".".join(key if is_plain_key(key) else "*" for key in path)


def mask_name(name: str) -> str:
    """A name from a file as it may stand in a message: shown where it is a plain one, else left out."""
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9/+._-]{0,60}", name) else "(no plain name)"

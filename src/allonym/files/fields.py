"""The fields of a record to anonymise: the named fields, or all text except record ids.

By default every text is anonymised, since names survive in fields that nobody thought of. A field is left only if its
whole name is that of a record id, and its value looks like a number or a code, but not like one that people bear
(P-0147).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from allonym.batch import split_field_name
from allonym.detection.listed_names import is_full_name, is_given_name
from allonym.document import TECHNICAL

ID_NAMES = frozenset(("id", "_id", "doc_id", "docid", "document_id", "record_id", "row_id", "uuid", "guid"))
_ID_VALUE = re.compile(r"[A-Za-z0-9._:/#+-]{1,128}")
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.:/ -]{0,63}")

FieldKeys = tuple[str, ...]


@lru_cache(maxsize=256)
def list_field_keys(dotted_name: str) -> FieldKeys:
    """Parse a dotted path; list indices are ignored, so ``a[*].b``, ``a[].b`` and ``a.b`` are the same.

    >>> list_field_keys("turns[*].text")
    ('turns', 'text')
    """
    return tuple(re.sub(r"\[[*\d]*\]", "", dotted_name).strip(".").split("."))


@lru_cache(maxsize=4096)
def find_covering_field(path: FieldKeys, fields: tuple[str, ...]) -> str | None:
    """Return the first of ``fields`` that names ``path`` or a parent of it, or None. ``*`` matches any key."""
    joined = ".".join(path)
    for name in fields:
        wanted_path = list_field_keys(name)
        fits = all(w in ("*", p) for w, p in zip(wanted_path, path, strict=False))
        if joined == name or (fits and len(wanted_path) <= len(path)):
            return name
    return None


def is_record_id(path: FieldKeys, value: str) -> bool:
    """Tell whether a field is a record id: a top-level field with such a name and a value without spaces or ``@``."""
    return len(path) == 1 and path[0].lower() in ID_NAMES and _ID_VALUE.fullmatch(value) is not None


def find_record_id(fields: Iterable[tuple[str, object]]) -> str:
    """Return the first record id among top-level fields, given as (name, value), or an empty string."""
    values = ((name, str(value)) for name, value in fields if isinstance(value, (str, int)))
    return next((value for name, value in values if is_record_id((name,), value)), "")


def is_persons_name(key: str) -> bool:
    """Tell whether a key or a header is a full name, or a given name that is no ordinary word."""
    return is_full_name(key) or is_given_name(key)


def is_plain_key(key: str) -> bool:
    """Tell whether an object's key looks like a field's name, and not like data: an address, a number, a person."""
    return _PLAIN_KEY.fullmatch(key) is not None and sum(c.isdigit() for c in key) < 5 and not is_persons_name(key)


def find_key_role(key: str) -> str:
    """Return the role of an object's key that is read as text: a person, if it is a full name, or technical text."""
    return "PERSON" if is_full_name(key) else TECHNICAL


def collect_metadata(record: Mapping[str, object]) -> dict[str, object]:
    """Return the metadata of a record, for policies that use names from it.

    Keys are given as they are and as ``lower_case_words``. The fields of ``meta`` and ``metadata`` are included.
    """
    out: dict[str, object] = {}
    for inner in (record.get("meta"), record.get("metadata"), record):
        if isinstance(inner, Mapping):
            out |= {split_field_name(k).replace(" ", "_"): v for k, v in inner.items() if isinstance(k, str)}
            out |= inner
    return out


def find_metadata_value(meta: Mapping[str, object], name: str) -> object:
    """Return the value of a metadata field by its name, as ``lower_case_words``, or by a dotted path, or None.

    ``meta`` is the result of :func:`collect_metadata`.
    """
    value: object = meta.get(name, meta.get(split_field_name(name).replace(" ", "_")))
    if value is None and "." in name:
        value = meta
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def format_masked_keys(keys: Iterable[str]) -> str:
    """Format a path for reports; keys that may be data are shown as ``*``."""
    return ".".join(key if is_plain_key(key) else "*" for key in keys)


def mask_unusual_name(name: str) -> str:
    """Return a name from a file for a message: the name if it is a plain one, else a note."""
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9/+._-]{0,60}", name) else "(no plain name)"

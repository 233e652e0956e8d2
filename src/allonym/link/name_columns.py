"""Rows of a table in which one column has somebody's given name and another one the family name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from allonym.document import Document, Interval

_WORD_BORDER = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|[\W_]+")


def find_row_names(document: Document) -> dict[Interval, str]:
    """Return the places of cells with a part of a name, without blanks around it, each with the full name of its row.

    Empty for a document whose parts are no fields. A cell counts where its column tells by its name which part it
    holds, and exactly one other column of the same person the other part.
    """
    columns: dict[str, dict[str, list[Interval]]] = {}
    for (start, end), field in zip(document.parts, document.fields, strict=False):
        owner, part = _read_column_name(field)
        value = document.text[start:end]
        if part and value.strip():
            start += len(value) - len(value.lstrip())
            columns.setdefault(owner, {}).setdefault(part, []).append((start, start + len(value.strip())))
    names: dict[Interval, str] = {}
    for parts in columns.values():
        forenames, family = parts.get("given", []), parts.get("family") or parts.get("unsure", [])
        if len(forenames) == len(family) == 1:
            first, last = (document.text[slice(*place)] for place in (forenames[0], family[0]))
            if first not in last:  # a column "name" may hold the full name
                names |= dict.fromkeys((forenames[0], family[0]), f"{first} {last}")
    return names


@lru_cache(maxsize=1024)
def _read_column_name(name: str) -> tuple[str, str]:
    """Return whose name a column holds, as its words say, and which part of it; both may be empty."""
    words = " ".join(_WORD_BORDER.sub(" ", name).lower().split())
    parts = _read_phrases()
    phrase = max((p for p in parts if words == p or words.endswith(f" {p}")), key=len, default="")
    return (words.removesuffix(phrase).strip(), parts[phrase]) if phrase else ("", "")


@cache
def _read_phrases() -> Mapping[str, str]:
    """Return the phrases of the file, each with the part of a name that it calls."""
    raw = tomllib.loads(files("allonym.link").joinpath("name_columns.toml").read_text(encoding="utf-8"))
    return {" ".join(phrase.split()): part for part, text in raw.items() for phrase in text.split(";")}

"""Names of months, weekdays and seasons in the languages that dates are read in, in all forms of ``calendar.tsv``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Named(NamedTuple):
    """A name of the calendar as it was found.

    Attributes:
        language: ISO 639-1.
        kind: ``month``, ``weekday`` or ``season``.
        place: January, Monday and winter are 0.
        names: the same form for all.
    """

    language: str
    kind: str
    place: int
    names: tuple[str, ...]


@cache
def _table() -> dict[tuple[str, str], tuple[Named, ...]]:
    """(kind, folded name) to what it can be, by the table's order."""
    found: dict[tuple[str, str], list[Named]] = {}
    text = files("allonym").joinpath("replace", "calendar.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        language, kind, _, listed = line.split("\t")
        names = tuple(listed.split())
        for i, name in enumerate(names):
            found.setdefault((kind, name.casefold()), []).append(Named(language, kind, i, names))
    return {key: tuple(rows) for key, rows in found.items()}


def named(kind: str, word: str, language: str = "en") -> Named | None:
    """What a word names: in ``language`` where it can, else in the first language of the table that has it."""
    rows = _table().get((kind, word.rstrip(".").casefold()), ())
    return next((row for row in rows if row.language == language), rows[0] if rows else None)


@cache
def words(kind: str) -> str:
    """All names of a kind as alternatives of a regular expression, the longest first."""
    return "|".join(sorted((word for k, word in _table() if k == kind), key=lambda w: (-len(w), w)))


def written(was: str, name: Named, index: int) -> str:
    """Another name of the same form, in the case of the one that was there."""
    new = name.names[index % len(name.names)]
    if was.isupper() and len(was) > 1:
        return new.upper()
    return new.lower() if was.islower() else new[0].upper() + new[1:]

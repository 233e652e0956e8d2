"""Names of months, weekdays and seasons in the languages that dates are read in, in all forms of ``calendar.tsv``."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from allonym.replace.tables import read_tsv


class CalendarName(NamedTuple):
    """A name of a month, weekday or season.

    Attributes:
        language: ISO 639-1.
        kind: ``month``, ``weekday`` or ``season``.
        place: its position; January, Monday and winter are 0.
        names: the same form of the name for all positions.
    """

    language: str
    kind: str
    place: int
    names: tuple[str, ...]


@cache
def _read_names() -> dict[tuple[str, str], tuple[CalendarName, ...]]:
    """Map (kind, folded name) to what it can be, in the order of the table."""
    out: dict[tuple[str, str], tuple[CalendarName, ...]] = {}
    for language, kind, _, joined in read_tsv("calendar.tsv"):
        names = tuple(joined.split())
        for i, name in enumerate(names):
            key = (kind, name.casefold())
            out[key] = (*out.get(key, ()), CalendarName(language, kind, i, names))
    return out


def find_calendar_name(kind: str, word: str, language: str = "en") -> CalendarName | None:
    """Return what a word names: in ``language`` where it can, else in the first language of the table that has it."""
    rows = _read_names().get((kind, word.rstrip(".").casefold()), ())
    return next((row for row in rows if row.language == language), rows[0] if rows else None)


@cache
def join_calendar_names(kind: str) -> str:
    """Return all names of a kind as alternatives of a regular expression, the longest first."""
    return "|".join(sorted((word for k, word in _read_names() if k == kind), key=lambda w: (-len(w), w)))


def write_calendar_name(index: int, name: CalendarName, model: str) -> str:
    """Return the name at another position, in the form of ``name`` and in the case of ``model``."""
    new = name.names[index % len(name.names)]
    if model.isupper() and len(model) > 1:
        return new.upper()
    return new.lower() if model.islower() else new[0].upper() + new[1:]

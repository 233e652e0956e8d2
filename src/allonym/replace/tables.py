"""Tables and word lists that lie beside the modules of this package, each read once.

Among them are the names of months, weekdays and seasons in the languages that dates are read in, in all forms.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from allonym.text.names import normalize_surface


def _read_data_file(name: str) -> str:
    return files("allonym.replace").joinpath(name).read_text(encoding="utf-8")


@cache
def read_toml(name: str = "patterns.toml") -> dict[str, Any]:
    """Return the content of a TOML file of this package. Callers share it and must not change it."""
    return tomllib.loads(_read_data_file(name))


def read_tsv(name: str) -> list[list[str]]:
    """Return the fields of each line of a tab-separated file of this package, without its header line."""
    return [line.split("\t") for line in _read_data_file(name).splitlines()[1:]]


@cache
def list_words(*path: str, file: str = "patterns.toml") -> tuple[str, ...]:
    """Return a word list of a TOML file.

    Args:
        path: keys that lead to the list. Its words are divided by spaces, or by bars where it holds any.
        file: name of the TOML file.
    """
    text: Any = read_toml(file)
    for key in path:
        text = text[key]
    if "|" in text:
        return tuple(word.strip() for word in text.replace("\n", "|").split("|") if word.strip())
    return tuple(text.split())


@cache
def read_word_set(*path: str, file: str = "patterns.toml") -> frozenset[str]:
    """Return the words of :func:`list_words`, as they are written and in plain form."""
    return frozenset(form for word in list_words(*path, file=file) for form in (word, normalize_surface(word)))


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
def _read_calendar_names() -> dict[tuple[str, str], tuple[CalendarName, ...]]:
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
    rows = _read_calendar_names().get((kind, word.rstrip(".").casefold()), ())
    return next((row for row in rows if row.language == language), rows[0] if rows else None)


@cache
def join_calendar_names(kind: str) -> str:
    """Return all names of a kind as alternatives of a regular expression, the longest first."""
    return "|".join(sorted((word for k, word in _read_calendar_names() if k == kind), key=lambda w: (-len(w), w)))


def write_calendar_name(index: int, name: CalendarName, model: str) -> str:
    """Return the name at another position, in the form of ``name`` and in the case of ``model``."""
    new = name.names[index % len(name.names)]
    if model.isupper() and len(model) > 1:
        return new.upper()
    return new.lower() if model.islower() else new[0].upper() + new[1:]

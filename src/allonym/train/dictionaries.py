"""What a dictionary knows of words, for the small taggers: of German, Wiktionary (``german-nouns``, CC BY-SA 4.0)."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.resources import files

from allonym.errors import UsageError
from allonym.models.wordtagger import WordLists

_GIVEN, _FAMILY, _PLACE, _OTHER = 1, 2, 4, 8
_GERMAN = {
    "Toponym": _PLACE,
    "Straßenname": _PLACE,
    "Vorname": _GIVEN,
    "Nachname": _FAMILY,
    "Eigenname": _OTHER,
}
_NO_WORDS = {"Abkürzung", "Wortverbindung"}
_CASES = ("lemma", "nominativ", "genitiv", "dativ", "akkusativ")


def _read_german() -> dict[str, int]:
    try:
        import german_nouns  # noqa: F401
    except ImportError:
        raise UsageError(
            "the recipe needs the dictionary german-nouns, which no extra brings, since it asks for an lxml older than "
            "ours: pip install --no-deps german-nouns"
        ) from None
    out: defaultdict[str, int] = defaultdict(int)
    with files("german_nouns").joinpath("nouns.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kinds = set(row["pos"].split(","))
            value = next((_GERMAN[kind] for kind in _GERMAN if kind in kinds), WordLists.ORDINARY)
            if not kinds & _NO_WORDS:
                for column, form in row.items():
                    if column and column.startswith(_CASES) and form.isalpha():
                        out[form.lower()] |= value
    return dict(out)


DICTIONARIES: Mapping[str, Callable[[], dict[str, int]]] = {"de": _read_german}
"""ISO 639 codes to functions that read words in small letters and what they are, as in :class:`WordLists`."""

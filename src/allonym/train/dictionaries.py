"""What dictionaries know of words, for the small taggers.

German comes from Wiktionary (``german-nouns``, CC BY-SA 4.0), Polish from SGJP (``morfeusz2``, BSD).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from allonym.errors import UsageError, require_extra
from allonym.kb import KnowledgeBase
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
_POLISH = {"imię": _GIVEN, "nazwisko": _FAMILY, "nazwa_geograficzna": _PLACE, "nazwa_organizacji": _OTHER}


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


def _read_polish() -> dict[str, int]:
    """The forms of the names that the knowledge base knows, and of all words of wordfreq."""
    with require_extra("dictionaries of the tagger", "train"):
        import morfeusz2
        import wordfreq
    reader, kb = morfeusz2.Morfeusz(), KnowledgeBase.open()
    words = set(wordfreq.get_frequency_dict("pl", wordlist="large"))
    names = [*kb.list_known_names("first"), *kb.list_known_names("last")]
    names += [word for city in kb.pool("city", country="PL") for word in city.label.split()]
    words.update(form[0].lower() for name in names if name.isalpha() for form in reader.generate(name.capitalize()))
    return {word: rate_polish_word(reader, word) for word in words if word.isalpha()}


def rate_polish_word(reader: Any, word: str) -> int:
    """What a reader of ``morfeusz2`` knows of a word in small letters, as in :class:`WordLists`; 0 for nothing."""
    out = 0
    for form in (word, word.capitalize()):
        for _, _, (surface, lemma, tag, kinds, _) in reader.analyse(form):
            if surface.lower() == word and tag != "ign":
                out |= sum(_POLISH.get(kind, 0) for kind in kinds) or (0 if lemma[0].isupper() else WordLists.ORDINARY)
    return out


DICTIONARIES: Mapping[str, Callable[[], dict[str, int]]] = {"de": _read_german, "pl": _read_polish}
"""ISO 639 codes to functions that read words in small letters and what they are, as in :class:`WordLists`."""

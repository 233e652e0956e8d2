"""Comparison of words, common words, and the endings of inflected names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from allonym.text.fold import fold
from allonym.text.names import has_swapped_letters, is_within_one_edit

LONGEST_ENDING = 6
AFTER_APOSTROPHE = {
    "a": 0,
    "ego": 0,
    "y": 0,
    "i": 0,
    "u": 0,
    "owi": 1,
    "emu": 1,
    "ę": 2,
    "em": 3,
    "ym": 3,
    "im": 3,
    "ą": 3,
}
AFTER_APOSTROPHE |= {"ie": 4, "ów": 0, "om": 1, "ami": 3, "ach": 4}
"""Polish endings of foreign names after an apostrophe, and their cases."""


def is_one_slip(a: str, b: str) -> bool:
    """Tell whether two words differ by one insertion, deletion, substitution or swap of neighbouring letters."""
    return a != b and (is_within_one_edit(a, b) or has_swapped_letters(a, b, least=2))


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """Return the words of ``common.txt``, folded."""
    lines = (files("allonym.restore") / "common.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(fold(w) for line in lines if not line.startswith("#") for w in line.split())


class Ending(NamedTuple):
    """An inflected form: language, class, and column of ``endings.tsv``.

    An empty class means the class of the word to inflect. ``kept_letters`` is an ending that is kept as written.
    """

    language: str
    kind: str
    case: int
    kept_letters: str = ""


class _Row(NamedTuple):
    language: str
    kind: str
    base: str
    forms: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=1)
def _read_rows() -> tuple[_Row, ...]:
    lines = (files("allonym.restore") / "endings.tsv").read_text(encoding="utf-8").splitlines()
    out = []
    for line in lines:
        if line and not line.startswith("#"):
            language, kind, base, *forms = line.split("\t")
            split = tuple(tuple("" if f == "-" else f for f in form.split("/")) for form in forms)
            out.append(_Row(language, kind, "" if base == "-" else base, split))
    return tuple(out)


@lru_cache(maxsize=1)
def _group_by_ending() -> dict[str, tuple[tuple[str, Ending], ...]]:
    table: dict[str, dict[str, Ending]] = {}
    for row in _read_rows():
        for case, forms in enumerate(row.forms):
            for form in forms:
                if form != row.base:
                    kept_form = form if row.language == "de" else ""
                    table.setdefault(form, {}).setdefault(row.base, Ending(row.language, row.kind, case, kept_form))
    return {form: tuple(bases.items()) for form, bases in table.items()}


def find_bases(word: str) -> Iterator[tuple[str, Ending]]:
    """Return the base forms of a lower-case word, each with its ending."""
    table = _group_by_ending()
    for size in range(min(LONGEST_ENDING, len(word) - 2) + 1):
        stem = word[: len(word) - size]
        for base, ending in table.get(word[len(word) - size :], ()):
            if base or size:
                yield stem + base, ending


def _get_inflection_class(low: str) -> str:
    """Return the class of a name by its ending alone; empty if such names are not inflected."""
    if low.endswith("a"):
        return "f"
    return "m" if low[-1] not in "eiouyąęéíóú" or low.endswith(("ski", "cki", "dzki")) else ""


def inflect_word(word: str, ending: Ending) -> str:
    """Inflect another name in the same way; return it unchanged if its class has no such form."""
    low = word.lower()
    kind = ending.kind or _get_inflection_class(low)
    if ending.kept_letters:
        if ending.kept_letters in "sS" and word[-1:].lower() in "sßxz":
            return word
        return word + ending.kept_letters
    best: _Row | None = None
    for row in _read_rows():
        if row.language != ending.language or row.kind != kind or not low.endswith(row.base):
            continue
        if not row.base and low[-1:] in "aeiouyóąę":
            continue
        if best is None or len(row.base) > len(best.base):
            best = row
    if best is None or len(low) - len(best.base) < 1 or (len(low) < 4 and low[-1] in "eiouy"):
        return word
    form = best.forms[ending.case][0]
    if len(low) < 4 and not form.startswith(best.base):
        return word
    stem = word[: len(word) - len(best.base)]
    return stem + (form.upper() if word.isupper() and len(word) > 1 else form)

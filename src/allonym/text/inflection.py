"""The endings of inflected names: which names a word may be a form of, and another name in the same form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_LONGEST_ENDING = 6
AFTER_APOSTROPHE = {
    ending: case
    for case, endings in enumerate(("a ego y i u ów", "owi emu om", "ę", "em ym im ą ami", "ie ach"))
    for ending in endings.split()
}
"""Polish endings of foreign names after an apostrophe, and their cases."""


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


@cache
def _read_inflection_rows() -> tuple[_Row, ...]:
    out = []
    for line in (files("allonym.text") / "endings.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        language, kind, base, *forms = line.split("\t")
        split = tuple(tuple("" if f == "-" else f for f in form.split("/")) for form in forms)
        out.append(_Row(language, kind, "" if base == "-" else base, split))
    return tuple(out)


@cache
def _map_endings_to_bases() -> dict[str, tuple[tuple[str, Ending], ...]]:
    table: dict[str, dict[str, Ending]] = {}
    for row in _read_inflection_rows():
        for case, forms in enumerate(row.forms):
            for form in forms:
                if form != row.base:
                    suffix = form if row.language == "de" else ""
                    table.setdefault(form, {}).setdefault(row.base, Ending(row.language, row.kind, case, suffix))
    return {form: tuple(bases.items()) for form, bases in table.items()}


def find_base_forms(word: str) -> Iterator[tuple[str, Ending]]:
    """Return the base forms of a lower-case word, each with its ending."""
    table = _map_endings_to_bases()
    for size in range(min(_LONGEST_ENDING, len(word) - 2) + 1):
        stem = word[: len(word) - size]
        for base, ending in table.get(word[len(word) - size :], ()):
            if base or size:
                yield stem + base, ending


def list_bases_in_case(word: str, language: str, case: int) -> Iterator[tuple[str, Ending]]:
    """Yield what a lower-case word may be a form of, in one case (column of ``endings.tsv``), without plurals.

    Of a base only the class is asked that writes its longest ending.
    """
    for row in _read_inflection_rows():
        if row.language != language or row.kind not in ("f", "m"):
            continue
        for form in row.forms[case]:
            if form and word.endswith(form) and len(word) - len(form) > 1:
                base = word[: len(word) - len(form)] + row.base
                if base != word and _find_row(base, language, row.kind) == row:
                    yield base, Ending(language, row.kind, case)


def _find_row(low: str, language: str, kind: str) -> _Row | None:
    """The row whose base is the longest that a word ends with."""
    rows = (row for row in _read_inflection_rows() if (row.language, row.kind) == (language, kind))
    fitting = (row for row in rows if (low.endswith(row.base) if row.base else low[-1:] not in "aeiouyóąę"))
    return max(fitting, key=lambda row: len(row.base), default=None)


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
    best = _find_row(low, ending.language, kind)
    if best is None or len(low) - len(best.base) < 1 or (len(low) < 4 and low[-1] in "eiouy"):
        return word
    form = best.forms[ending.case][0]
    if len(low) < 4 and not form.startswith(best.base):
        return word
    stem = word[: len(word) - len(best.base)]
    return stem + (form.upper() if word.isupper() and len(word) > 1 else form)

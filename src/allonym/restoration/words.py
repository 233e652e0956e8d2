"""Comparison of words, common words, replacements that are ordinary words, and the endings of inflected names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from allonym.labels import TAXONOMY
from allonym.replace.tables import find_calendar_name
from allonym.text.fold import fold
from allonym.text.names import has_swapped_letters, is_within_one_edit
from allonym.text.prose import read_common_words, read_number_words

_LONGEST_ORDINARY = 60
_MOST_DIGITS = 4
_NUMBER = re.compile(r"['’]?[0-9]{1,4}(?:[.,][0-9]{1,3})?(?:\s?%|st|nd|rd|th|s)?")
_WORDS = re.compile(r"[^\W\d_]+(?:[ \-\u00a0\u2010\u2011][^\W\d_]+)*")
_BETWEEN = re.compile(r"[ \-\u00a0\u2010\u2011]")
_COMMON_NOUNS = frozenset(
    "AGE AWARD DATE_TIME EVENT FAMILY_RELATION GENDER IMMIGRATION_STATUS LANGUAGE LAW MARITAL_STATUS MEDICAL_TERM "
    "NUMERIC OCCUPATION ORIGIN OTHER_IDENTIFYING_ATTRIBUTE PRODUCT PRONOUN SEXUAL_ORIENTATION TRADE_UNION".split()
)
"""Labels whose lower-case words are not names; those of others are names or codes, unless they are common."""

LONGEST_ENDING = 6
AFTER_APOSTROPHE = {
    ending: case
    for case, endings in enumerate(("a ego y i u ów", "owi emu om", "ę", "em ym im ą ami", "ie ach"))
    for ending in endings.split()
}
"""Polish endings of foreign names after an apostrophe, and their cases."""


def is_one_slip(a: str, b: str) -> bool:
    """Tell whether two words differ by one insertion, deletion, substitution or swap of neighbouring letters."""
    return a != b and (is_within_one_edit(a, b) or has_swapped_letters(a, b, least=2))


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a data file of this package, without comments."""
    lines = (files("allonym.restoration") / name).read_text(encoding="utf-8").splitlines()
    return (line for line in lines if line and not line.startswith("#"))


def is_ordinary(replacement: str, label: str) -> bool:
    """Tell whether any text may contain a replacement by chance.

    That is a number of up to four digits, a number in words, a year, month, weekday or season alone, or one ordinary
    lower-case word.
    """
    if len(replacement) > _LONGEST_ORDINARY:
        return False
    bare = replacement.strip().rstrip(".,;:")
    if _NUMBER.fullmatch(bare):
        return sum(map(str.isdigit, bare)) <= _MOST_DIGITS
    if not _WORDS.fullmatch(bare):
        return False
    words = [fold(w) for w in _BETWEEN.split(bare)]
    small, plain = bare.islower(), TAXONOMY.get_family(label) in _COMMON_NOUNS
    if (small or plain) and read_number_words().issuperset(words):
        return True
    if len(words) > 1:
        return False
    return (plain or words[0] in read_common_words()) if small else (plain and _is_calendar_word(bare))


def is_rare(replacement: str) -> bool:
    """Tell whether an ordinary replacement is a word in few texts, such as an occupation.

    A text derived from one with such a replacement has it from there.
    """
    word = fold(replacement.strip())
    is_listed = word in read_common_words() or word in read_number_words()
    return word.isalpha() and not is_listed and not _is_calendar_word(word)


def _is_calendar_word(word: str) -> bool:
    return any(find_calendar_name(kind, word) is not None for kind in ("month", "weekday", "season"))


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
    for line in read_lines("endings.tsv"):
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
    rows = (row for row in _read_inflection_rows() if (row.language, row.kind) == (ending.language, kind))
    fitting = (row for row in rows if (low.endswith(row.base) if row.base else low[-1:] not in "aeiouyóąę"))
    best = max(fitting, key=lambda row: len(row.base), default=None)
    if best is None or len(low) - len(best.base) < 1 or (len(low) < 4 and low[-1] in "eiouy"):
        return word
    form = best.forms[ending.case][0]
    if len(low) < 4 and not form.startswith(best.base):
        return word
    stem = word[: len(word) - len(best.base)]
    return stem + (form.upper() if word.isupper() and len(word) > 1 else form)

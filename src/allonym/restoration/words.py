"""Comparison of words, and replacements that are ordinary words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

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

"""Ordinary replacements: numbers and words that occur in any text."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from allonym.replace.calendars import find_calendar_name
from allonym.restore.forms import root_label
from allonym.restore.words import common_words
from allonym.text.fold import fold

_LONGEST = 60
_MOST_DIGITS = 4
_NUMBER = re.compile(r"['’]?[0-9]{1,4}(?:[.,][0-9]{1,3})?(?:\s?%|st|nd|rd|th|s)?")
_WORDS = re.compile(r"[^\W\d_]+(?:[ \-\u00a0\u2010\u2011][^\W\d_]+)*")
_BETWEEN = re.compile(r"[ \-\u00a0\u2010\u2011]")
_COMMON_NOUNS = frozenset(
    "AGE AWARD DATE_TIME EVENT FAMILY_RELATION GENDER IMMIGRATION_STATUS LANGUAGE LAW MARITAL_STATUS MEDICAL_TERM "
    "NUMERIC OCCUPATION ORIGIN OTHER_IDENTIFYING_ATTRIBUTE PRODUCT PRONOUN SEXUAL_ORIENTATION TRADE_UNION".split()
)
"""Labels whose lower-case words are not names; those of others are names or codes, unless they are common."""


@lru_cache(maxsize=1)
def number_words() -> frozenset[str]:
    """Return the words of ``numbers.txt``, folded."""
    lines = (files("allonym.restore") / "numbers.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(fold(w) for line in lines if not line.startswith("#") for w in line.split())


def is_ordinary(replacement: str, label: str) -> bool:
    """Tell whether any text may contain a replacement by chance.

    That is a number of up to four digits, a number in words, a year, month, weekday or season alone, or one ordinary
    lower-case word.
    """
    if len(replacement) > _LONGEST:
        return False
    bare = replacement.strip().rstrip(".,;:")
    if _NUMBER.fullmatch(bare):
        return sum(map(str.isdigit, bare)) <= _MOST_DIGITS
    if not _WORDS.fullmatch(bare):
        return False
    words = [fold(w) for w in _BETWEEN.split(bare)]
    small, plain = bare.islower(), root_label(label) in _COMMON_NOUNS
    if (small or plain) and number_words().issuperset(words):
        return True
    if len(words) > 1:
        return False
    return (plain or words[0] in common_words()) if small else (plain and _is_calendar_word(bare))


def is_rare(replacement: str) -> bool:
    """Tell whether an ordinary replacement is a word in few texts, such as an occupation.

    A text derived from one with such a replacement has it from there.
    """
    word = fold(replacement.strip())
    return word.isalpha() and not (word in common_words() or word in number_words() or _is_calendar_word(word))


def _is_calendar_word(word: str) -> bool:
    return any(find_calendar_name(kind, word) is not None for kind in ("month", "weekday", "season"))

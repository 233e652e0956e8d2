"""Words: the one place that says what a word and a token is.

The patterns are meant for surfaces, names and single texts. None of them takes more than linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache


def count_nouns(number: int, singular: str, plural: str = "") -> str:
    """Write a number and its noun; the plural has an s where it is not given.

    >>> count_nouns(1, "file"), count_nouns(1200, "entity", "entities")
    ('1 file', '1,200 entities')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


@lru_cache(maxsize=64)
def compile_word_pattern(joints: str = "", *, digits: bool = True, least: int = 1) -> re.Pattern[str]:
    """Compile the pattern of a word: a run of letters and digits of any script.

    Args:
        joints: signs of which one may join two runs to one word, such as ``'’-``.
        digits: whether digits belong to words.
        least: characters that a run must have.

    >>> compile_word_pattern("'-", digits=False).findall("Mary-Ann's 2nd")
    ["Mary-Ann's", 'nd']
    """
    run = r"[^\W_]" if digits else r"[^\W\d_]"
    run += "+" if least == 1 else f"{{{least},}}"
    return re.compile(f"{run}(?:[{re.escape(joints)}]{run})*" if joints else run)


WORD = compile_word_pattern()
"""A run of letters and digits of any script."""

LETTERS = compile_word_pattern(digits=False)
"""A run of letters of any script."""

COMPOUND = compile_word_pattern("'’-")
"""Words that an apostrophe or a hyphen joins: ``don't``, ``Smith-Jones``."""

IDENTIFIER = re.compile(r"\w+")
"""A run of letters, digits and underscores."""

TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
"""A word, or a single sign that is no space."""


def find_words(text: str) -> list[str]:
    """Return the runs of letters and digits in a text."""
    return WORD.findall(text)


def compile_whole_words(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern so that it matches only where no letter or digit stands right before or behind it."""
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", flags)

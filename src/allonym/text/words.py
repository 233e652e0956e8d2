"""Words: the one place that says what a word, a token and the end of a sentence is.

The patterns are meant for the code's own texts and for surfaces; documents of any size are read by the RE2 patterns of
:mod:`allonym.detect.scan`. None of them can take more than linear time.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+")
"""A run of letters and digits of any script."""

LETTERS = re.compile(r"[^\W\d_]+")
"""A run of letters of any script."""

IDENTIFIER = re.compile(r"\w+")
"""A run of letters, digits and underscores."""

COMPOUND = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
"""Words that an apostrophe or a hyphen joins: ``don't``, ``Smith-Jones``."""

LETTER_COMPOUND = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""Runs of letters that an apostrophe or a hyphen joins."""

TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
"""A word, or a single sign that is no space."""

BEFORE_WORD = r"(?<![^\W_])"
AFTER_WORD = r"(?![^\W_])"
"""Patterns for the borders of a word, to be put around a pattern that matches whole words only."""


def find_words(text: str) -> list[str]:
    """Return the runs of letters and digits in a text."""
    return WORD.findall(text)


def compile_whole_words(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern that matches only where no letter or digit stands right before or behind it."""
    return re.compile(f"{BEFORE_WORD}(?:{pattern}){AFTER_WORD}", flags)

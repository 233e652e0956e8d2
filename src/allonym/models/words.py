"""Word borders and word shapes as the embedded models see them, in training and in use alike."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*|([^\w\s]|_)\1*")
SHAPES = 24
"""Number of values of :func:`classify_shape`."""

_JOINED = SHAPES // 2


def split_words(text: str) -> list[tuple[int, int]]:
    """Return the borders of words, half-open: runs of letters and digits, and runs of one punctuation mark."""
    return [match.span() for match in _WORD.finditer(text)]


def classify_shape(word: str, touches_previous: bool) -> int:
    """Classify a word's outer form: its casing and digits, and whether it touches the word before it.

    The vocabulary has no capitals, so the models get the form as a feature of its own.
    """
    return _classify_casing(word) + (_JOINED if touches_previous else 0)


def _classify_casing(word: str) -> int:
    first = word[0]
    if not first.isalnum():
        return 0 if first in ".!?" else 1 if first in "\"'“”‘’«»()[]" else 2 if first in "@#/\\_" else 3
    if word.isdigit():
        return 4 if len(word) != 4 else 5
    if any(c.isdigit() for c in word):
        return 6
    if word.islower():
        return 7
    if len(word) == 1:
        return 8
    if word.isupper():
        return 9
    if first.isupper() and word[1:].islower():
        return 10
    return 11

"""Word borders and word shapes as the embedded models see them, in training and in use alike."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*|([^\w\s]|_)\1*")
SHAPES = 24
"""How many values :func:`shape` has."""

_JOINED = SHAPES // 2


def words(text: str) -> list[tuple[int, int]]:
    """Borders of the words, half-open: runs of letters and digits, and runs of one punctuation mark."""
    return [found.span() for found in _WORD.finditer(text)]


def shape(word: str, joined: bool) -> int:
    """Class of a word's outer form: its casing, digits and accents, and whether it touches the word before it.

    The vocabulary knows no capitals, so the form is told apart.
    """
    return _form(word) + (_JOINED if joined else 0)


def _form(word: str) -> int:
    first = word[0]
    if not (first.isalnum()):
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

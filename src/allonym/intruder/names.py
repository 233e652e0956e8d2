"""When a guessed name counts as the true one: P3's cosine of character counts (3.1.3.2, "Measuring de-anonymisation").

P3 counts the characters of both names as in its example (s, a, m, s, m, i, t, h): small letters, no spaces. Their
order does not count, so that a threshold of 0.75 forgives typos, and also accepts some other names of similar letters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt

from allonym.text.fold import Level, fold

CUT = 0.75
"""The least similarity of a name that counts as identified (P3)."""


def measure_likeness(guess: str, name: str) -> float:
    """Cosine of the character counts of two names: 0 for no common character, 1 for the same in the same proportions.

    0 where one of them is empty: an intruder that names nobody has identified nobody.

    >>> likeness("Sam Smith", "samsmith")
    1.0
    >>> round(likeness("Sam Smit", "Sam Smith"), 3)
    0.956
    """
    a, b = _count_characters(guess), _count_characters(name)
    if not a or not b:
        return 0.0
    if a == b:
        return 1.0
    dot = sum(n * b[c] for c, n in a.items())
    return min(1.0, dot / sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())))


def measure_best_likeness(guess: str, names: Iterable[str]) -> float:
    """The highest :func:`measure_likeness` of a guess with any name of one person; 0 where there is no name."""
    return max((measure_likeness(guess, name) for name in names), default=0.0)


def _count_characters(name: str) -> Counter[str]:
    return Counter(c for c in fold(name, Level.CASE) if not c.isspace())

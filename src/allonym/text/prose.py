"""Words that are common in prose, and numbers in words, folded."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from allonym.text.fold import fold


@cache
def read_common_words() -> frozenset[str]:
    """Return words that are common in one of ten languages."""
    return _read_words("prose.txt")


@cache
def read_number_words() -> frozenset[str]:
    """Return the words of numbers."""
    return _read_words("numbers.txt")


def _read_words(name: str) -> frozenset[str]:
    lines = (files("allonym.text") / name).read_text(encoding="utf-8").splitlines()
    return frozenset(fold(word) for line in lines if not line.startswith("#") for word in line.split())

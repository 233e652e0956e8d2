"""How a replacement is written: its case, numbers in words, and changes to a text put in their places."""

from __future__ import annotations

import re
from collections.abc import Iterable

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
ORDINALS += [f"twenty-{word}" for word in ORDINALS[:9]] + ["thirtieth", "thirty-first"]
"""Ordinals of the days of a month."""


def splice_text(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other words in some of its places.

    Args:
        text: the text.
        changes: (start, end, new words), sorted and disjoint.
    """
    parts, position = [], 0
    for start, end, new in changes:
        parts += [text[position:start], new]
        position = end
    return "".join((*parts, text[position:]))


def match_case(new: str, model: str) -> str:
    """Return ``new`` in the case of ``model``: capitals, small letters, or as names are written."""
    if sum(c.isalpha() for c in model) > 1 and model.isupper():
        return new.upper()
    if model.islower():
        return new.lower()
    if model[:1].isupper() and model[1:].islower() and not new[:1].isupper():
        return new[:1].upper() + new[1:]
    return new


def match_capitals(new: str, model: str) -> str:
    """Return ``new`` in capitals or small letters where all of ``model`` is; not in the capitals of an abbreviation."""
    letters = [c for c in model if c.isalpha()]
    if len(letters) > 3 and all(c.isupper() for c in letters):
        return new.upper()
    return new.lower() if letters and all(c.islower() for c in letters) else new


def capitalise_like(new: str, model: str) -> str:
    """Return ``new``, in small letters, with the capitals of ``model``: all, the first, or none."""
    if model.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if model[0].isupper() else new


def read_number(text: str) -> int | None:
    """Return the number that digits, or English words from zero to ninety-nine, name; None for other texts."""
    if text.isdigit():
        return int(text)
    first, _, second = re.sub("[- ]", " ", text.lower()).partition(" ")
    if not second and first in ONES:
        return ONES.index(first)
    if first not in TENS or (second and second not in ONES[1:10]):
        return None
    return 20 + 10 * TENS.index(first) + (ONES.index(second) if second else 0)


def write_number(value: int, model: str) -> str:
    """Return a number as ``model`` is written: in digits, or up to 99 in words with a hyphen or a space."""
    if model.isdigit() or value > 99:
        return str(value)
    tens, ones = divmod(value, 10)
    word = ONES[value] if value < 20 else TENS[tens - 2]
    if value >= 20 and ones:
        word += (" " if " " in model else "-") + ONES[ones]
    return capitalise_like(word, model)


def get_ordinal_suffix(value: int, model: str) -> str:
    """Return ``st``, ``nd``, ``rd`` or ``th``, in capitals where ``model`` is."""
    suffix = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return suffix.upper() if model.isupper() else suffix

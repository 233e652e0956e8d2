"""Adapt originals to the form in which their replacements occur: case, endings, digits, dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from allonym.replace.dates import ReadDate, move_date, read_date
from allonym.restoration.forms import split_words_and_gaps
from allonym.text.fold import fold
from allonym.text.inflection import Ending, inflect_word

_CALLING = frozenset(
    "1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 "
    "86 90 91 92 93 94 95 98".split()
)


def get_letter_case(text: str) -> str:
    """Return ``upper``, ``lower``, ``title`` (each word), ``first`` (only the first word), or nothing otherwise."""
    if text.islower():
        return "lower"
    if text.isupper():
        return "upper" if sum(map(str.isupper, text)) > 1 else ""
    if text.istitle():
        return "title"
    words = [w for w in split_words_and_gaps(text)[1::2] if w[0].isalpha()]
    small = [w[1:] == w[1:].lower() for w in words]
    if not words:
        return ""
    if all(small) and all(w[0].isupper() for w in words):
        return "title"
    if all(small) and words[0][0].isupper() and all(w[0].islower() for w in words[1:]):
        return "first"
    return ""


def join_words_like(original: str, surface: str) -> str:
    """Join the words of an original as an identifier joins those of its replacement; empty if it is none.

    >>> join_words_like("Zoë Connor", "emma_tyler"), join_words_like("Zoë Connor", "emmaTyler")
    ('zoe_connor', 'zoëConnor')
    """
    signs = {sign for sign in surface if not sign.isalnum()}
    words = split_words_and_gaps(original)[1::2]
    if len(words) < 2 or len(signs) > 1 or not signs <= set("-_."):
        return ""
    if surface.islower():
        return (signs.pop() if signs else "").join(map(fold, words))
    if surface.isupper() or signs:
        words = [word.upper() for word in words] if surface.isupper() else words
        return (signs.pop() if signs else "").join(words)
    return words[0].lower() + "".join(words[1:]) if surface[0].islower() else ""


def match_case(original: str, pattern: str, surface: str) -> str:
    """Return ``original`` in the letter case that ``surface`` gives to ``pattern``."""
    was, now = get_letter_case(pattern), get_letter_case(surface)
    if was == now or not now or surface == pattern:
        return original
    if now == "upper":
        return original.upper()
    if now == "lower":
        return original.lower() if was else original
    if now == "title" and (original.isupper() or original.islower()):
        pieces = split_words_and_gaps(original)
        return "".join(p[:1].upper() + p[1:].lower() if i % 2 else p for i, p in enumerate(pieces))
    return original[:1].upper() + original[1:] if was == "lower" else original


def add_endings(original: str, word_count: int, endings: Sequence[Ending | None]) -> str:
    """Return ``original`` with the endings of its replacement, which has ``word_count`` words."""
    split = split_words_and_gaps(original)
    count = len(split) // 2
    if count != word_count:  # the last word decides
        endings = [*[None] * (count - 1), next((e for e in reversed(endings) if e is not None), None)][:count]
    for index, ending in enumerate(endings):
        if ending is not None:
            split[2 * index + 1] = inflect_word(split[2 * index + 1], ending)
    return "".join(split)


def extract_code_characters(text: str) -> str:
    """Return the letters and digits of a number or code, in capitals."""
    return "".join([c for c in text if c.isalnum()]).upper()


def replace_last_characters(surface: str, original: str, count: int) -> str | None:
    """Replace the last ``count`` letters and digits of ``surface`` by the original's; None if there are fewer."""
    signs = [c for c in original if c.isalnum()]
    if len(signs) < count:
        return None
    places = [i for i, c in enumerate(surface) if c.isalnum()][-count:]
    out = list(surface)
    for place, sign in zip(places, signs[-count:], strict=True):
        out[place] = sign.lower() if surface[place].islower() else sign
    return "".join(out)


def strip_calling_code(number: str) -> str:
    """Return the digits of a telephone number without calling code (after ``+`` or ``00``) and trunk zero."""
    digits = extract_code_characters(number)
    if number.lstrip().startswith("+") or digits.startswith("00"):
        digits = digits.removeprefix("00")
        for size in (1, 2, 3):
            if size == 3 or digits[:size] in _CALLING:
                digits = digits[size:]
                break
    return digits.removeprefix("0")


def read_date_key(text: str) -> tuple[int | None, int | None, int | None] | None:
    """Return year, month and day of a date that can be shifted, or None."""
    read = read_date(text)
    return None if read is None or read.month is None else (read.year, read.month, read.day)


def format_date_like(pattern: ReadDate, original: str) -> str | None:
    """Write the original's date in the format of another; None if they have different parts."""
    goal = read_date(original)
    if goal is None or goal.month is None or pattern.month is None:
        return None
    if (goal.year is None, goal.day is None) != (pattern.year is None, pattern.day is None):
        return None
    leap = (2, 29) in ((goal.month, goal.day), (pattern.month, pattern.day))
    year = 2000 if leap else 2001
    try:
        to = date(goal.year or year, goal.month, goal.day or 15)
        days = (to - date(pattern.year or year, pattern.month, pattern.day or 15)).days
    except ValueError:
        return None
    out = move_date(pattern, days) if days else pattern.text
    if out is None:
        return None
    goal_key = (goal.year, goal.month, goal.day)
    reads = (read_date(out, order) for order in ("mdy", "dmy"))
    return out if any(read and (read.year, read.month, read.day) == goal_key for read in reads) else None

"""Folding: text without the differences that do not make another name, in levels that build on each other.

========== ============================================================== ====================
level      what is folded, besides the levels before                       example
========== ============================================================== ====================
CASE       case, full-width and other compatibility forms                  ``ＡDA`` to ``ada``
MARKS      diacritics, enclosing marks, invisible characters               ``Zoë`` to ``zoe``
LETTERS    letters that Unicode does not decompose: ``ł ø đ ð ı æ œ þ``     ``Łódź`` to ``lodz``
SCRIPT     decimal digits of all scripts                                   ``٤٢`` to ``42``
========== ============================================================== ====================

A few letters have a second spelling of two letters (``Müller``: ``Muller`` or ``Mueller``). :func:`spell_out_umlauts`
gives it. Two names are compared in both spellings, but only where one of them has such a letter: see
:func:`fold_spellings`.
"""

from __future__ import annotations

import unicodedata
from enum import IntEnum
from functools import cache


class Level(IntEnum):
    """How much is folded; each level includes those before it."""

    CASE = 1
    MARKS = 2
    LETTERS = 3
    SCRIPT = 4


LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ȷ": "j", "æ": "ae", "œ": "oe"}
LETTERS |= {"þ": "th", "ß": "ss", "ə": "e", "ɔ": "o", "ɛ": "e", "ŋ": "ng"}
LETTERS |= {"ɓ": "b", "ɖ": "d", "ɗ": "d", "ƙ": "k", "ƴ": "y"}
"""Small letters that no Unicode normal form decomposes, and the letters a to z that are written in their place."""

SPELLED_OUT = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "đ": "dj"}
"""Small letters that are also written as two letters where a keyboard lacks them."""


def _make_translation_table(table: dict[str, str]) -> dict[int, str]:
    capitals = {k.upper(): v.capitalize() for k, v in table.items() if len(k.upper()) == 1 and k not in ("ı", "ȷ")}
    return str.maketrans({**table, **capitals, **({"ẞ": "SS"} if "ß" in table else {})})


_ASCII_LETTERS = _make_translation_table(LETTERS)
_TWO_LETTERS = _make_translation_table(SPELLED_OUT)
EXPANDED = "".join(chr(point) for point, letters in _ASCII_LETTERS.items() if len(letters) > 1)
"""The letters, small and capital, that :func:`expand_special_letters` makes into several."""

UMLAUTS = "".join(map(chr, _TWO_LETTERS))
"""The letters, small and capital, that :func:`spell_out_umlauts` makes into two."""

_INVISIBLE = ("Mn", "Me", "Cf")


class _Table(dict[int, str]):
    """Maps a code point to its folded characters, for :meth:`str.translate`; filled as code points occur."""

    def __init__(self, level: Level, unfolded: str) -> None:
        self._level = level
        self._letters = {k: v for k, v in LETTERS.items() if k not in unfolded}

    def __missing__(self, point: int) -> str:
        char, level = chr(point), self._level
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        if level >= Level.MARKS:
            folded = "".join(c for c in folded if unicodedata.category(c) not in _INVISIBLE)
        if level >= Level.LETTERS:
            folded = "".join(self._letters.get(c, c) for c in folded)
        if level >= Level.SCRIPT:
            folded = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)
        folded = self[point] = unicodedata.normalize("NFC", folded)
        return folded


@cache
def _get_fold_table(level: Level, unfolded: str) -> _Table:
    return _Table(level, unfolded)


def fold(text: str, level: Level = Level.LETTERS, unfolded: str = "") -> str:
    """Return the text folded to a level.

    Spaces and punctuation stay. The length may change. Folding twice changes nothing.

    Args:
        text: any text.
        level: what is folded.
        unfolded: small letters of :data:`LETTERS` that stay as they are, for keys that were stored before these letters
            were folded.

    >>> fold("Łukasz STRAUẞ"), fold("Łukasz", Level.MARKS)
    ('lukasz strauss', 'łukasz')
    """
    if text.isascii():
        return text.lower()
    if level == Level.CASE:
        text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFC", text.translate(_get_fold_table(level, unfolded)))


def fold_surface(text: str, level: Level = Level.LETTERS) -> str:
    """Return the folded text with single spaces between its words and none around it."""
    return " ".join(fold(text, level).split())


def spell_out_umlauts(text: str) -> str:
    """Return the text with its umlauts and the like as two letters; the same text where it has none.

    >>> spell_out_umlauts("Jürgen Ångström")
    'Juergen Aangstroem'
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_TWO_LETTERS)


def fold_spellings(text: str) -> tuple[str, ...]:
    """Return the folded text, and as a second item its folded spelled-out form where that differs.

    Two names agree where they share a spelling: ``Müller`` with ``Muller`` and with ``Mueller``. ``Muller`` and
    ``Mueller`` do not agree: neither has a letter that could be written in both ways.

    >>> fold_spellings("Müller"), fold_spellings("Mueller")
    (('muller', 'mueller'), ('mueller',))
    """
    folded = fold(text)
    if text.isascii() or (spelled := fold(spell_out_umlauts(text))) == folded:
        return (folded,)
    return folded, spelled


def expand_special_letters(text: str) -> str:
    """Return the text with letters a to z for those of :data:`LETTERS`; case stays, as do diacritics.

    >>> expand_special_letters("Æsa Strauß")
    'Aesa Strauss'
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_ASCII_LETTERS)


def to_ascii_letters(text: str) -> str:
    """Return the letters a to z, A to Z and the digits of a text, as addresses hold them; case stays.

    >>> to_ascii_letters("Łucja d'Ærø")
    'LucjadAero'
    """
    decomposed = unicodedata.normalize("NFKD", expand_special_letters(text))
    return "".join(c for c in decomposed if c.isascii() and c.isalnum())

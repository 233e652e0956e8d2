"""Linear-time matching over a text's bytes, with offsets in code points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

import re2

from allonym.text.words import WORD

Groups = tuple[tuple[int, int], ...]
"""The whole match and its groups, each as (start, end)."""


def _make_re2_options(**values: int) -> re2.Options:
    options = re2.Options()
    for name, value in {"log_errors": False, **values}.items():
        setattr(options, name, value)
    return options


_PIECE = re.compile(r"\\Q.*?\\E|\\[pP](?:\{(\^?\w+)\}|(\w))|\\.|\[:\^?\w+:\]|\[\^?\]?|.", re.DOTALL)
_ASCII_CLASSES = {"L": "A-Za-z", "Lu": "A-Z", "Ll": "a-z", "N": "0-9"}
_BEYOND_ASCII = r"\x{80}-\x{10FFFF}"


def widen_classes(pattern: str) -> str:
    r"""Write a pattern that matches wherever ``pattern`` does, perhaps elsewhere, and that makes a smaller automaton.

    Every character beyond ASCII counts as a letter and as none: ``\p{L}`` alone has hundreds of ranges in UTF-8, each
    of which takes part in every state of a set. A pattern with other classes of Unicode than letters and numbers stays.
    """
    if not re.search(r"\\[pP]", pattern):
        return pattern
    pieces: list[str] = []
    negated: bool | None = None  # of the class in brackets, None outside
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        if piece[:2] in ("\\p", "\\P"):
            letters = _ASCII_CLASSES.get(match[1] or match[2]) if piece[1] == "p" else None
            if letters is None:
                return pattern
            piece = letters if negated else letters + _BEYOND_ASCII
            if negated is None:
                piece = f"[{piece}]"
        elif piece in ("[", "[^", "[]", "[^]") and negated is None:
            negated = piece.startswith("[^")
        elif piece == "]":
            negated = None
        pieces.append(piece)
    return "".join(pieces)


@cache
def compile_pattern(pattern: str) -> re2._Regexp:
    """Compile a pattern for texts of :func:`encode_text`. Bad syntax raises ``re2.error`` and is not logged."""
    return re2.compile(pattern.encode("utf-8"), _make_re2_options())


_ANYWHERE, _AT_START = re2._Anchor.UNANCHORED, re2._Anchor.ANCHOR_START


def find_match(
    pattern: re2._Regexp, data: bytes, start: int, end: int, *, at_start: bool = False
) -> Sequence[tuple[int, int]] | None:
    """Find the first match in ``data[start:end]``: the places of the whole match and of its groups, in bytes.

    It makes none of the objects of ``pattern.search`` (``pattern.match`` with ``at_start``), which cost more than many
    a search. A group that took no part is (-1, -1).
    """
    places: Sequence[tuple[int, int]] = pattern._regexp.Match(_AT_START if at_start else _ANYWHERE, data, start, end)
    return None if places[0][0] < 0 else places


def iterate_matches(pattern: re2._Regexp, data: bytes, start: int, end: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield the matches in ``data[start:end]`` from left to right, each as :func:`find_match` does."""
    match = pattern._regexp.Match
    while start <= end:
        places = match(_ANYWHERE, data, start, end)
        stop = places[0][1]
        if stop < 0:
            return
        yield places
        start = stop if stop > start else start + 1


class PatternSet:
    """Patterns that are looked for together, in one pass. They are numbered from 0.

    Args:
        patterns: for texts of :func:`encode_text`; bad syntax raises ``re2.error``.
        memory: bytes that the set may take.
    """

    def __init__(self, patterns: Sequence[str], memory: int = 8 << 20) -> None:
        self._set = re2.Set.SearchSet(_make_re2_options(max_mem=memory))
        # The set answers "nothing" also where it ran out of memory. The empty pattern matches always, so that an
        # answer without it is known for a failure, and every pattern then counts as present.
        for pattern in (*patterns, ""):
            self._set.Add(pattern.encode("utf-8"))
        self._set.Compile()
        self._numbers = range(len(patterns))

    def find_matching_patterns(self, data: bytes | memoryview) -> Sequence[int]:
        """The numbers of the patterns that match somewhere in ``data``; all numbers where the set ran out of memory."""
        matched = self._set.Match(data)
        if matched is None:
            return self._numbers
        return [i for i in matched if i in self._numbers]


@lru_cache(maxsize=64)
def compile_patterns(patterns: tuple[str, ...], memory: int = 8 << 20) -> PatternSet:
    """Compile patterns as one set, once for all policies that share them; bad syntax raises ``re2.error``."""
    return PatternSet(patterns, memory)


def compile_words_pattern(words: Iterable[str], tail: str = "", *, whole_words: bool = False) -> re2._Regexp:
    """Compile a pattern for the longest of some words, followed by ``tail``.

    No cache keeps it, since the words may come from a document. With ``whole_words`` it skips words inside others, as
    far as RE2's word boundaries can tell: they know ASCII only.
    """
    options = _make_re2_options(longest_match=True, max_mem=64 << 20)
    uncached = re2.Filter()
    escaped = []
    for word in words:
        start_boundary = r"\b" if whole_words and word[0].isascii() and word[0].isalnum() else ""
        right = r"\b" if whole_words and word[-1].isascii() and word[-1].isalnum() else ""
        escaped.append(f"{start_boundary}{re2.escape(word)}{tail}{right}")
    uncached.Add(encode_text("|".join(escaped)), options)
    uncached.Compile()
    return uncached.re(0)


MANY = 100_000
"""Characters of words up to which one pattern for all of them is quick, and sure to compile."""
_JOINED = 8  # runs of letters and digits that one word may consist of


def find_whole_words(words: Iterable[str], text: str, endings: Iterable[str] = ("",)) -> Iterator[tuple[int, int]]:
    """Find words in the text as whole words with one of the endings; fast for any number of words."""
    vocabulary = frozenset(words)
    reach = 0
    for run in WORD.finditer(text):
        start, end = run.span()
        if start < reach:
            continue
        stops = [end]
        while len(stops) < _JOINED and text[end : end + 1] in ("'", "’", "-", "_"):
            more = WORD.match(text, end + 1)
            if more is None:
                break
            end = more.end()
            stops.append(end)
        for stop in reversed(stops):
            word = text[start:stop]
            if any(word.endswith(ending) and word[: len(word) - len(ending)] in vocabulary for ending in endings):
                yield start, stop
                reach = stop
                break


def encode_text(text: str) -> bytes:
    """The UTF-8 bytes of a text; lone surrogates are allowed."""
    return text.encode("utf-8", "surrogatepass")


def find_matches(pattern: re2._Regexp, text: str, data: bytes | None = None) -> Iterator[Groups]:
    """Yield all matches from left to right: for each group, first the whole match, its (start, end) in code points.

    A group that took no part is (-1, -1). ``data`` is ``encode_text(text)`` where the caller has it already.
    """
    if data is None:
        data = encode_text(text)
    matches = iterate_matches(pattern, data, 0, len(data))
    if len(data) == len(text):
        yield from map(tuple, matches)
        return
    position = points = 0
    for places in matches:
        base = places[0][0]
        points += _count_characters(data[position:base])
        position = base
        yield tuple(
            (-1, -1) if a < 0 else (points + _count_characters(data[base:a]), points + _count_characters(data[base:b]))
            for a, b in places
        )


def _count_characters(piece: bytes) -> int:
    return len(piece) if piece.isascii() else len(piece.decode("utf-8", "surrogatepass"))

"""Semantic chunks: consecutive sentences on one topic (P1 3.1.2).

A chunk ends where the vectors of two neighbouring sentences are further apart than a percentile of all such distances
of the stretch, as in LlamaIndex' semantic splitter. Then chunks that are too short are joined and those that are too
long are cut. Chunks tile their stretch: joined, they are its text, character for character.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from allonym.detection.words import read_word_list
from allonym.document import Interval, Reach, merge_intervals
from allonym.errors import UsageError

BREAKPOINT = 75.0
"""Percentile of the distances between neighbouring sentences above which a chunk ends (P1 3.1.2)."""
MIN_CHARS, MAX_CHARS = 120, 1200
"""Least and most code points of a chunk."""

_FUNCTION = read_word_list("function_words")
_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|\Z)|[。！？]+[”’」』]*|\n")
_WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘«]+\Z")
_NEXT = re.compile(r"[\s\"'“‘«(\[¿¡]*([^\W_]*)")
_NEVER = frozenset(
    "mr mrs ms mx dr prof rev hon st sen rep gov gen col capt lt sgt pres vs cf fig figs eq no nos vol pp ch sec art "
    "approx est ca incl excl e.g i.e resp viz".split()
)
"""Abbreviations that never end a sentence."""
_SELDOM = frozenset(
    "inc corp co ltd llc plc bros jr sr etc al dept univ assn intl ave blvd rd mt ft jan feb mar apr jun jul aug sep "
    "sept oct nov dec a.m p.m u.s u.k u.n e.u d.c ph.d m.d b.a m.a l.p s.a n.v".split()
)
"""Abbreviations that end a sentence only before a word that begins one."""


def split_sentences(text: str, start: int = 0, end: int | None = None) -> tuple[Interval, ...]:
    """Return intervals that tile ``text[start:end]``, a sentence each, with the blanks behind it.

    A line break ends a sentence too, unless the line was wrapped: the next begins with a small letter.
    """
    end = len(text) if end is None else end
    out: list[Interval] = []
    for match in _END.finditer(text, start, end):
        if match.start() < start or not _is_sentence_end(text, match, start, end):
            continue
        stop = match.end()
        while stop < end and text[stop].isspace():
            stop += 1
        if not text[start:stop].isspace():
            out.append((start, stop))
            start = stop
    if start < end:
        if out and text[start:end].isspace():
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return tuple(out)


def _is_sentence_end(text: str, match: re.Match[str], start: int, end: int) -> bool:
    mark = match.group()
    after = _NEXT.match(text, match.end(), end)
    word = after[1] if after else ""
    if word[:1].islower():
        return mark[0] in "。！？" or (mark == "\n" and text[max(0, match.start() - 1)] in ".!?…:;\n")
    if mark[0] != "." or mark[:2] == "..":
        return True
    before = _WORD_BEFORE.search(text, max(start, match.start() - 24), match.start())
    last = before.group().lower() if before else ""
    if last in _NEVER:
        return last in ("no", "nos") and not word[:1].isdigit()
    if last in _SELDOM or (len(last) == 1 and last.isalpha()):
        return not word or word.lower() in _FUNCTION
    lead = text[start : match.start()].strip()
    return not (lead.isdigit() and len(lead) < 4 and text[match.end() : match.end() + 1] != "\n")  # "1. First"


def join_cut_tiles(tiles: Sequence[Interval], spans: Iterable[Interval]) -> tuple[Interval, ...]:
    """Join neighbouring tiles wherever the border between them lies inside one of the spans."""
    reach = Reach(merge_intervals(spans))
    out: list[Interval] = []
    for a, b in tiles:
        if out and reach.contains(a - 1, a + 1):
            out[-1] = (out[-1][0], b)
        else:
            out.append((a, b))
    return tuple(out)


def split_chunks(
    text: str,
    tiles: Sequence[Interval],
    vectors: Any,
    breakpoint: float = BREAKPOINT,
    min_chars: int = MIN_CHARS,
    max_chars: int = MAX_CHARS,
    spans: Iterable[Interval] = (),
) -> tuple[Interval, ...]:
    """Return intervals that tile the same stretch as the sentences.

    A chunk is longer than ``max_chars`` only if a sentence has no blank outside ``spans``, and shorter than
    ``min_chars`` only if such sentences leave no other border, or the stretch is short.

    Args:
        text: the whole text.
        tiles: neighbouring sentences, see :func:`split_sentences`.
        vectors: unit rows ``(len(tiles), d)``.
        breakpoint: percentile, 0 to 100; the higher, the fewer borders.
        min_chars, max_chars: code points.
        spans: intervals that no border may cut, e.g. findings.

    Raises:
        UsageError: a percentile or a size that is out of range.
    """
    if not 0 <= breakpoint <= 100:
        raise UsageError(f"breakpoint must be a percentile from 0 to 100, got {breakpoint}")
    if not 1 <= min_chars <= max_chars:
        raise UsageError(f"chunks need 1 <= min_chars <= max_chars, got {min_chars} and {max_chars}")
    if len(tiles) != len(vectors):
        raise UsageError(f"{len(tiles)} sentences need as many vectors, got {len(vectors)}")
    if not tiles:
        return ()
    rows = np.asarray(vectors, np.float64)
    gaps = 1.0 - np.einsum("ij,ij->i", rows[:-1], rows[1:])  # cosine distances, 0 to 2
    limit = np.percentile(gaps, breakpoint) if len(gaps) else 0.0
    borders = [0, *(int(i) + 1 for i in np.flatnonzero(gaps > limit)), len(tiles)]
    pieces = _join_short_pieces(tiles, gaps, borders, min_chars, max_chars)
    reach = Reach(merge_intervals(spans))
    out: list[Interval] = []
    for first, last in _split_long_pieces(tiles, gaps, pieces, min_chars, max_chars):
        a, b = tiles[first][0], tiles[last - 1][1]
        while b - a > max_chars and (stop := _find_cut_position(text, a, b, max_chars, reach)) != b:
            out.append((a, stop))
            a = stop
        out.append((a, b))
    return tuple(out)


def _join_short_pieces(
    tiles: Sequence[Interval], gaps: Any, borders: list[int], least: int, most: int
) -> list[Interval]:
    """Return the pieces between ``borders`` after the shortest have joined their nearer neighbours.

    Pieces are ranges of tiles.
    """
    first = list(borders[:-1])
    last = list(borders[1:])
    before = list(range(-1, len(first) - 1))
    after = [*range(1, len(first)), -1]
    joined = [False] * len(first)

    def size(i: int) -> int:
        return tiles[last[i] - 1][1] - tiles[first[i]][0]

    heap = [(size(i), i) for i in range(len(first)) if size(i) < least]
    heapq.heapify(heap)
    while heap:
        length, i = heapq.heappop(heap)
        if joined[i] or length != size(i):
            continue
        neighbours = [(float(gaps[max(first[i], first[j]) - 1]), j) for j in (before[i], after[i]) if j >= 0]
        if not neighbours:
            continue
        # If neither has room, a piece that is too long now is cut again, elsewhere.
        j = min([(d, j) for d, j in neighbours if size(j) + length <= most] or neighbours)[1]
        a, b = min(i, j), max(i, j)
        last[a], after[a], joined[b] = last[b], after[b], True
        if after[b] >= 0:
            before[after[b]] = a
        if size(a) < least:
            heapq.heappush(heap, (size(a), a))
    return [(first[i], last[i]) for i in range(len(first)) if not joined[i]]


def _split_long_pieces(
    tiles: Sequence[Interval], gaps: Any, pieces: list[Interval], least: int, most: int
) -> list[Interval]:
    """Return the pieces, those over ``most`` cut where neighbouring sentences differ most; as ranges of tiles."""
    out: list[Interval] = []
    stack = list(pieces)[::-1]
    while stack:
        first, last = stack.pop()
        start, end = tiles[first][0], tiles[last - 1][1]
        if end - start <= most or last - first == 1:
            out.append((first, last))
            continue
        inner = range(first + 1, last)
        roomy = [i for i in inner if tiles[i][0] - start >= least and end - tiles[i][0] >= least]
        if roomy:
            border = max(roomy, key=lambda i: (float(gaps[i - 1]), -i))
        else:
            border = min(inner, key=lambda i: (abs(2 * tiles[i][0] - start - end), i))
        stack += [(border, last), (first, border)]
    return out


def _find_cut_position(text: str, start: int, end: int, size: int, reach: Reach) -> int:
    """Return where to cut a sentence that is too long: behind the last blank within ``size``, else the first after."""
    for position in chain(range(min(start + size, end - 1), start, -1), range(start + size + 1, end)):
        is_word_start = text[position - 1].isspace() and not text[position].isspace()
        if is_word_start and not reach.contains(position - 1, position + 1):
            return position
    return end

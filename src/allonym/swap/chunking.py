"""Semantic chunks: consecutive sentences on one topic (P1 3.1.2).

A border stands where the vectors of two neighbouring sentences are further apart than a percentile of all such
distances of the stretch, as in LlamaIndex' semantic splitter; then chunks that are too short are joined and those that
are too long are cut. Chunks tile their stretch: joined, they are its text, character for character.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from allonym.detect.words import word_list
from allonym.document import Interval, merge
from allonym.errors import UsageError

BREAKPOINT = 75.0
"""Percentile of the distances between neighbouring sentences above which a border stands (P1 3.1.2)."""
MIN_CHARS, MAX_CHARS = 120, 1200
"""Code points that a chunk has at least and at most."""

_FUNCTION = word_list("function_words")
_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|\Z)|[。！？]+[”’」』]*|\n")
_WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘«]+\Z")
_NEXT = re.compile(r"[\s\"'“‘«(\[¿¡]*([^\W_]*)")
_NEVER = frozenset(
    "mr mrs ms mx dr prof rev hon st sen rep gov gen col capt lt sgt pres vs cf fig figs eq no nos vol pp ch sec art "
    "approx est ca incl excl e.g i.e resp viz".split()
)
"""Abbreviations that something follows."""
_SELDOM = frozenset(
    "inc corp co ltd llc plc bros jr sr etc al dept univ assn intl ave blvd rd mt ft jan feb mar apr jun jul aug sep "
    "sept oct nov dec a.m p.m u.s u.k u.n e.u d.c ph.d m.d b.a m.a l.p s.a n.v".split()
)
"""Abbreviations that may end a sentence; they do where a word follows that begins one."""


def sentences(text: str, start: int = 0, end: int | None = None) -> tuple[Interval, ...]:
    """Intervals that tile ``text[start:end]``, a sentence each, with the blanks behind it.

    A line break ends a sentence too, unless the line was wrapped: the next begins with a small letter.
    """
    end = len(text) if end is None else end
    out: list[Interval] = []
    at = start
    for match in _END.finditer(text, start, end):
        if match.start() < at or not _ends(text, match, at, end):
            continue
        stop = match.end()
        while stop < end and text[stop].isspace():
            stop += 1
        if not text[at:stop].isspace():
            out.append((at, stop))
            at = stop
    if at < end:
        if out and text[at:end].isspace():
            out[-1] = (out[-1][0], end)
        else:
            out.append((at, end))
    return tuple(out)


def _ends(text: str, match: re.Match[str], start: int, end: int) -> bool:
    mark = match.group()
    after = _NEXT.match(text, match.end(), end)
    word = after[1] if after else ""
    if word[:1].islower():
        return mark[0] in "。！？" or (mark == "\n" and text[max(0, match.start() - 1)] in ".!?…:;\n")
    if mark[0] != "." or mark[:2] == "..":
        return True
    before = _WORD_BEFORE.search(text, max(start, match.start() - 24), match.start())
    said = before.group().lower() if before else ""
    if said in _NEVER:
        return said in ("no", "nos") and not word[:1].isdigit()
    if said in _SELDOM or (len(said) == 1 and said.isalpha()):
        return not word or word.lower() in _FUNCTION
    lead = text[start : match.start()].strip()
    return not (lead.isdigit() and len(lead) < 4 and text[match.end() : match.end() + 1] != "\n")  # "1. First"


def without_cuts(borders: Sequence[Interval], taken: Iterable[Interval]) -> tuple[Interval, ...]:
    """The tiles with those joined between which a border lies inside one of the intervals ``taken``."""
    whole = merge(taken)
    starts = [a for a, _ in whole]
    out: list[Interval] = []
    for a, b in borders:
        i = bisect_left(starts, a) - 1
        if out and i >= 0 and whole[i][1] > a:
            out[-1] = (out[-1][0], b)
        else:
            out.append((a, b))
    return tuple(out)


def distances(vectors: Any) -> Any:
    """Cosine distances of neighbouring rows: float64 ``(n - 1,)``, 0 to 2, of unit rows ``(n, d)``."""
    rows = np.asarray(vectors, np.float64)
    return 1.0 - np.einsum("ij,ij->i", rows[:-1], rows[1:])


def check_sizes(breakpoint: float, min_chars: int, max_chars: int) -> None:
    """Raises :class:`UsageError` where the percentile or the sizes are none."""
    if not 0 <= breakpoint <= 100:
        raise UsageError(f"breakpoint must be a percentile from 0 to 100, got {breakpoint}")
    if not 1 <= min_chars <= max_chars:
        raise UsageError(f"chunks need 1 <= min_chars <= max_chars, got {min_chars} and {max_chars}")


def chunk(
    text: str,
    tiles: Sequence[Interval],
    vectors: Any,
    *,
    breakpoint: float = BREAKPOINT,
    min_chars: int = MIN_CHARS,
    max_chars: int = MAX_CHARS,
    taken: Iterable[Interval] = (),
) -> tuple[Interval, ...]:
    """Intervals that tile what the sentences tile.

    A chunk is longer than ``max_chars`` only where a sentence has no blank outside ``taken``, and shorter than
    ``min_chars`` only where such sentences leave no other border, or the stretch is short.

    Args:
        text: the whole text.
        tiles: neighbouring sentences, see :func:`sentences`.
        vectors: unit rows ``(len(tiles), d)``.
        breakpoint: percentile, 0 to 100; the higher, the fewer borders.
        min_chars, max_chars: code points.
        taken: intervals that no border may cut, e.g. what was found in the text.

    Raises:
        UsageError: a percentile or a size that is none.
    """
    check_sizes(breakpoint, min_chars, max_chars)
    if len(tiles) != len(vectors):
        raise UsageError(f"{len(tiles)} sentences need as many vectors, got {len(vectors)}")
    if not tiles:
        return ()
    apart = distances(vectors)
    limit = np.percentile(apart, breakpoint) if len(apart) else 0.0
    borders = [0, *(int(i) + 1 for i in np.flatnonzero(apart > limit)), len(tiles)]
    pieces = _joined(tiles, apart, borders, min_chars, max_chars)
    whole = merge(taken)
    starts = [a for a, _ in whole]
    ends = [b for _, b in whole]
    out: list[Interval] = []
    for first, last in _cut(tiles, apart, pieces, min_chars, max_chars):
        a, b = tiles[first][0], tiles[last - 1][1]
        while b - a > max_chars:
            stop = _blank(text, a, b, max_chars, starts, ends)
            if stop == b:
                break
            out.append((a, stop))
            a = stop
        out.append((a, b))
    return tuple(out)


def _joined(
    tiles: Sequence[Interval], apart: Any, borders: Sequence[int], min_chars: int, max_chars: int
) -> list[Interval]:
    """The pieces between ``borders`` after the shortest have joined their nearer neighbours; as ranges of tiles."""
    first = list(borders[:-1])
    last = list(borders[1:])
    before = list(range(-1, len(first) - 1))
    after = [*range(1, len(first)), -1]
    gone = [False] * len(first)

    def size(i: int) -> int:
        return tiles[last[i] - 1][1] - tiles[first[i]][0]

    heap = [(size(i), i) for i in range(len(first)) if size(i) < min_chars]
    heapq.heapify(heap)
    while heap:
        long, i = heapq.heappop(heap)
        if gone[i] or long != size(i):
            continue
        beside = [(float(apart[max(first[i], first[j]) - 1]), j) for j in (before[i], after[i]) if j >= 0]
        if not beside:
            continue
        # Where neither has room, what is too long now is cut again, elsewhere.
        j = min([(d, j) for d, j in beside if size(j) + long <= max_chars] or beside)[1]
        left, right = min(i, j), max(i, j)
        last[left], after[left], gone[right] = last[right], after[right], True
        if after[right] >= 0:
            before[after[right]] = left
        if size(left) < min_chars:
            heapq.heappush(heap, (size(left), left))
    return [(first[i], last[i]) for i in range(len(first)) if not gone[i]]


def _cut(
    tiles: Sequence[Interval], apart: Any, pieces: Iterable[Interval], min_chars: int, max_chars: int
) -> list[Interval]:
    """The pieces, those over ``max_chars`` cut where neighbouring sentences are furthest apart; as ranges of tiles."""
    out: list[Interval] = []
    stack = list(pieces)[::-1]
    while stack:
        first, last = stack.pop()
        start, end = tiles[first][0], tiles[last - 1][1]
        if end - start <= max_chars or last - first == 1:
            out.append((first, last))
            continue
        inner = range(first + 1, last)
        roomy = [i for i in inner if tiles[i][0] - start >= min_chars and end - tiles[i][0] >= min_chars]
        if roomy:
            at = max(roomy, key=lambda i: (float(apart[i - 1]), -i))
        else:
            at = min(inner, key=lambda i: (abs(2 * tiles[i][0] - start - end), i))
        stack += [(at, last), (first, at)]
    return out


def _blank(text: str, start: int, end: int, size: int, starts: Sequence[int], ends: Sequence[int]) -> int:
    """Where a sentence that is too long is cut: behind the last blank within ``size``, else the first one after."""
    for at in chain(range(min(start + size, end - 1), start, -1), range(start + size + 1, end)):
        if text[at - 1].isspace() and not text[at].isspace():
            i = bisect_right(starts, at) - 1
            if i < 0 or ends[i] <= at or starts[i] == at:
                return at
    return end

"""Questions about many spans at once, answered in one pass over their sorted ends instead of pair by pair."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from allonym.document import Interval, Span


class Reach:
    """How far a set of spans reaches from any position. Building it sorts the spans; a question takes a bisection."""

    def __init__(self, spans: Iterable[Span]) -> None:
        borders = sorted((span.start, span.end) for span in spans)
        self._starts = [start for start, _ in borders]
        self._ends = list(accumulate((end for _, end in borders), max))

    def find_furthest_end(self, position: int) -> int:
        """The furthest end of the spans that start at or before ``position``; 0 where none does."""
        count = bisect_right(self._starts, position)
        return self._ends[count - 1] if count else 0

    def contains(self, start: int, end: int) -> bool:
        """Whether one of the spans holds all of ``start:end``."""
        return self.find_furthest_end(start) >= end

    def touches(self, start: int, end: int) -> bool:
        """Whether one of the spans shares a character with ``start:end``."""
        return self.find_furthest_end(end - 1) > start


def pair_overlaps(spans: Sequence[Span], others: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """Each span, in order of its start, with those of ``others`` that share a character with it."""
    waiting = sorted(others, reverse=True)
    active: list[Span] = []
    for span in sorted(spans):
        while waiting and waiting[-1].start < span.end:
            active.append(waiting.pop())
        active = [other for other in active if other.end > span.start]
        yield span, [other for other in active if other.start < span.end]


def clip_intervals(intervals: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """What the sorted, disjoint ``intervals`` cover of ``start:end``."""
    first = bisect_right(intervals, start, key=lambda interval: interval[1])
    last = bisect_left(intervals, end, key=lambda interval: interval[0])
    return [(max(start, a), min(end, b)) for a, b in intervals[first:last]]

"""Windows over texts that are too long for a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from allonym.document import Interval

_WORD = re.compile(r"\S{1,100}")


def split_words(text: str) -> list[Interval]:
    """The intervals of the words, which are separated by blanks; longer words are cut after 100 characters."""
    return [m.span() for m in _WORD.finditer(text)]


def cut_windows(
    text: str,
    limit: float,
    overlap: float,
    places: Sequence[Interval] | None = None,
    cost: Callable[[str], float] = lambda _: 1.0,
) -> Iterator[Interval]:
    """Cut a text into windows, from word to word, that together hold all its words.

    Args:
        text: any text.
        limit: the most that the words of one window may cost together. A word that costs more has a window of its own.
        overlap: the least cost of the words that two neighbouring windows share, where the limit leaves room for it.
        places: the intervals of the words, sorted and disjoint; by default those of :func:`split_words`.
        cost: cost of a word; by default every word costs 1.

    The windows depend on the text alone.
    """
    places = split_words(text) if places is None else places
    costs = [cost(text[a:b]) for a, b in places]
    first = 0
    while first < len(places):
        end, spent = first + 1, costs[first]
        while end < len(places) and spent + costs[end] <= limit:
            spent += costs[end]
            end += 1
        yield places[first][0], places[end - 1][1]
        if end == len(places):
            return
        shared, room = 0.0, limit - costs[end]  # the next window must reach further than this one
        following = end
        while following - 1 > first and shared < overlap and shared + costs[following - 1] <= room:
            following -= 1
            shared += costs[following]
        first = following

"""Windows over texts that are longer than a model can take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from allonym.document import Interval

_WORD = re.compile(r"\S{1,100}")


def split_words(text: str) -> list[Interval]:
    """Where the words stand: stretches without a blank, in pieces of 100 characters where they are longer."""
    return [m.span() for m in _WORD.finditer(text)]


def cut_windows(
    text: str,
    limit: float,
    overlap: float,
    places: Sequence[Interval] | None = None,
    cost: Callable[[str], float] = lambda _: 1.0,
) -> Iterator[Interval]:
    """Stretches of a text, from word to word, that together hold all its words.

    Args:
        text: any text.
        limit: what the words of one window may cost together. A word that costs more has a window of its own.
        overlap: what the words that two neighbouring windows share cost at least, where the limit leaves room for it.
        places: where the words stand, sorted and disjoint; by default as in :func:`split_words`.
        cost: of a word; by default every word costs 1.

    Only the text decides where the windows lie.
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

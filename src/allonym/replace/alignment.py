"""Aligns a text with what a model made of it: passages to give to the model, and the places of its changes.

Both sides are divided into words and signs; difflib (Ratcliff and Obershelp) finds what they share. A change counts for
a place of the source only where it lies in that place and nowhere beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from allonym.document import Interval
from allonym.text.words import TOKEN

LENGTH = 160
"""Characters that a passage has at most, unless a place that must not be cut is longer."""

_Block = tuple[str, int, int, int, int]
_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


def split_passages(text: str, places: Iterable[Interval], length: int = LENGTH) -> list[Interval]:
    """Divide a text into sentences and lines, short ones together, without the space around them.

    Args:
        text: any.
        places: places that no cut may go through, sorted.
        length: of a passage at most, in characters; a longer sentence is cut at a space.
    """
    fixed = list(places)
    ends = _find_cuts(_END, text, fixed)
    spaces: list[int] | None = None
    out: list[Interval] = []
    start = previous = 0
    for end in [*ends, len(text)]:
        if end - start > length and previous > start:
            out.append((start, previous))
            start = previous
        while end - start > length:
            spaces = _find_cuts(_SPACE, text, fixed) if spaces is None else spaces
            first = bisect_right(spaces, start)
            last = bisect_right(spaces, start + length, first) - 1  # the last one that leaves it short enough
            cut = spaces[max(first, last)] if first < len(spaces) else end
            if cut >= end:
                break
            out.append((start, cut))
            start = cut
        previous = end
    out.append((start, len(text)))
    trimmed = ((a + len(t) - len(t.lstrip()), a + len(t.rstrip())) for a, b in out for t in (text[a:b],))
    return [(a, b) for a, b in trimmed if a < b]


def _find_cuts(pattern: re.Pattern[str], text: str, places: Sequence[Interval]) -> list[int]:
    """Return the ends of the pattern's matches that lie inside no place."""
    out: list[int] = []
    i = 0
    for match in pattern.finditer(text):
        end = match.end()
        while i < len(places) and places[i][1] <= end:
            i += 1
        if i == len(places) or places[i][0] >= end:
            out.append(end)
    return out


@dataclass(frozen=True, slots=True)
class Alignment:
    """The changes of a model's output against its source.

    Attributes:
        values: for each place, its text in the output; None where the change reaches beyond the place. Hidden from
            ``repr``.
        rejected: number of changes outside of all places, or reaching beyond one.
        unchanged: number of words and signs outside of all places that are unchanged in the output, and of all of them.
    """

    values: tuple[str | None, ...] = field(repr=False)
    rejected: int
    unchanged: tuple[int, int]


def align_output(source: str, output: str, places: Sequence[Interval]) -> Alignment:
    """Align an output to its source.

    Args:
        source, output: one passage each.
        places: of the source, sorted and disjoint.
    """
    source_tokens, output_tokens = list(TOKEN.finditer(source)), list(TOKEN.finditer(output))
    spans = [_find_tokens(source_tokens, place) for place in places]
    inside = [-1] * len(source_tokens)
    for number, (a, b) in enumerate(spans):
        inside[a:b] = [number] * (b - a)
    matcher = SequenceMatcher(None, [t[0] for t in source_tokens], [t[0] for t in output_tokens], autojunk=False)
    to: list[int | None] = [None] * (len(source_tokens) + 1)  # boundary of the source to that of the output
    broken: set[int] = set()
    rejected = unchanged = 0
    for tag, i1, i2, j1, j2 in _split_blocks(matcher.get_opcodes(), inside):
        if tag == "equal":
            for i in range(i1, i2):
                unchanged += inside[i] < 0
                to[i] = j1 + i - i1
            to[i2] = j2
            continue
        touched = set(inside[i1:i2])
        fits = len(touched) == 1 and -1 not in touched
        if fits:
            to[i1] = j1 if to[i1] is None else to[i1]
            to[i2] = j2
        else:
            rejected += 1
            broken |= touched
            # Words inserted right before or behind a place are no part of it, and no other change of it is certain.
            broken |= {inside[i] for i in (i1 - 1, i2) if tag == "insert" and 0 <= i < len(inside)}
    values: list[str | None] = []
    for number, (a, b) in enumerate(spans):
        start, end = to[a], to[b]
        if number in broken or start is None or end is None or start >= end or a == b:
            values.append(None)
        else:
            values.append(output[output_tokens[start].start() : output_tokens[end - 1].end()])
    outside = sum(n < 0 for n in inside)
    return Alignment(tuple(values), rejected, (unchanged, outside))


def _split_blocks(blocks: Iterable[_Block], inside: Sequence[int]) -> Iterable[_Block]:
    """Yield the blocks; those that replace words by as many others are cut at the bounds of places."""
    for tag, i1, i2, j1, j2 in blocks:
        start = i1
        if tag == "replace" and i2 - i1 == j2 - j1:
            for i in range(i1 + 1, i2):
                if inside[i] != inside[i - 1]:
                    yield tag, start, i, j1 + start - i1, j1 + i - i1
                    start = i
        yield tag, start, i2, j1 + start - i1, j2


def _find_tokens(tokens: Sequence[re.Match[str]], place: Interval) -> Interval:
    """Return the first and the last token of a place, half open."""
    hit = [i for i, t in enumerate(tokens) if t.start() < place[1] and place[0] < t.end()]
    return (hit[0], hit[-1] + 1) if hit else (0, 0)

"""Documents to windows: what the models read at once.

A window depends on its document alone, and each is computed alone, so that no batch, order or worker can change a
result. Windows end where sentences do; only a sentence longer than a window is cut, and there the two parts overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from allonym.models.wordpiece import WordPiece
from allonym.models.words import shape, words

LENGTH = 126
"""Pieces in a window at most, its two border marks not counted."""

OVERLAP = 40
"""Pieces that the two parts of an overlong sentence share."""


@dataclass(frozen=True, slots=True, repr=False)  # pieces spell the text
class Window:
    """Consecutive words of a document.

    Attributes:
        first, last: index of the first word, and one past that of the last.
        keep_from, keep_to: words whose result is taken from this window; the rest is context.
        pieces: piece numbers, border marks included.
        shapes: the word shape of each piece.
        heads: for each word, the place of its first piece in ``pieces``.
    """

    first: int
    last: int
    keep_from: int
    keep_to: int
    pieces: tuple[int, ...]
    shapes: tuple[int, ...]
    heads: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Words:
    """The words of a text with their pieces.

    Attributes:
        borders: offsets of each word in the text.
        pieces: piece numbers of each word.
        shapes: shape of each word.
        breaks: how good a window's end before each word is: 0 inside a sentence, 1 between sentences, 2 between lines.
    """

    borders: Sequence[tuple[int, int]]
    pieces: Sequence[tuple[int, ...]]
    shapes: Sequence[int]
    breaks: Sequence[int]


def read_words(text: str, pieces: WordPiece) -> Words:
    """Words, pieces, shapes and possible borders of a text."""
    borders = words(text)
    split, shapes = [], []
    before = 0
    for start, end in borders:
        word = text[start:end]
        split.append(pieces.pieces(word))
        shapes.append(shape(word, start == before and start > 0))
        before = end
    return Words(borders, split, shapes, breaks_of(text, borders))


def breaks_of(text: str, borders: Sequence[tuple[int, int]]) -> list[int]:
    """For each word how good a border is before it; see :class:`Words`."""
    breaks = []
    before, ended = 0, False
    for start, end in borders:
        first = text[start]
        if start > before and "\n" in text[before:start]:
            breaks.append(2)
        else:
            breaks.append(1 if ended and start > before and not first.islower() else 0)
        if first in ".!?":
            ended = True
        elif first not in "\"'”’)]»":
            ended = False
        before = end
    return breaks


def cut(read: Words, length: int = LENGTH, overlap: int = OVERLAP) -> list[tuple[int, int, int, int]]:
    """``(first, last, keep_from, keep_to)`` of each window, in words; ``length`` exceeds ``overlap`` by a word."""
    n = len(read.pieces)
    out: list[tuple[int, int, int, int]] = []
    first = kept = 0
    while first < n:
        size, last = 0, first
        while last < n and size + len(read.pieces[last]) <= length:
            size += len(read.pieces[last])
            last += 1
        if last == n:
            out.append((first, n, kept, n))
            break
        end = _good_end(read, first, last)
        if end:
            out.append((first, end, kept, end))
            first = kept = end
            continue
        back, shared = last, 0
        while back > first + 1 and shared + len(read.pieces[back - 1]) <= overlap:
            back -= 1
            shared += len(read.pieces[back])
        middle = (back + last + 1) // 2
        out.append((first, last, kept, middle))
        first, kept = max(back, first + 1), middle
    return out


def _good_end(read: Words, first: int, last: int) -> int:
    """The best place to end a window that must end at ``last``: latest line end in its second half, else sentence."""
    half = first + (last - first + 1) // 2
    for wanted in (2, 1):
        low = half if wanted == 2 else first + 1
        for at in range(last, low - 1, -1):
            if read.breaks[at] >= wanted:
                return at
    return 0


def windows(read: Words, pieces: WordPiece) -> list[Window]:
    """The windows of a text whose words are ``read``."""
    out = []
    for first, last, keep_from, keep_to in cut(read):
        ids, shapes, heads = [pieces.start], [0], []
        for i in range(first, last):
            heads.append(len(ids))
            ids += read.pieces[i]
            shapes += [read.shapes[i]] * len(read.pieces[i])
        ids.append(pieces.end)
        shapes.append(0)
        out.append(Window(first, last, keep_from, keep_to, tuple(ids), tuple(shapes), tuple(heads)))
    return out

"""Windows of documents, the stretches that the models read at once.

A window depends on its document alone, and each is computed alone, so that no batch, order or worker can change a
result. Windows end where sentences do; only a sentence longer than a window is cut, and there the two parts overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from allonym.models.words import Unigram, WordPiece, classify_shape, split_words

LENGTH = 126
"""Most pieces in a window, without its two border marks."""

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
        breaks: how good the end of a window before each word is: 0 inside a sentence, 1 between sentences, 2 between
            lines.
    """

    borders: Sequence[tuple[int, int]]
    pieces: Sequence[tuple[int, ...]]
    shapes: Sequence[int]
    breaks: Sequence[int]


def tokenise_text(text: str, pieces: WordPiece) -> Words:
    """Read the words, pieces, shapes and possible borders of a text."""
    borders = split_words(text)
    split, shapes = [], []
    before = 0
    for start, end in borders:
        word = text[start:end]
        split.append(pieces.pieces(word))
        shapes.append(classify_shape(word, start == before and start > 0))
        before = end
    return Words(borders, split, shapes, rate_word_borders(text, borders))


def rate_word_borders(text: str, borders: Sequence[tuple[int, int]]) -> list[int]:
    """Return how good a border is before each word; see :class:`Words`."""
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


def cut_window_ranges(words: Words, length: int = LENGTH, overlap: int = OVERLAP) -> list[tuple[int, int, int, int]]:
    """Return ``(first, last, keep_from, keep_to)`` of each window, in words.

    ``length`` must exceed ``overlap`` by the pieces of one word.
    """
    n = len(words.pieces)
    ranges: list[tuple[int, int, int, int]] = []
    first = keep_from = 0
    while first < n:
        size, last = 0, first
        while last < n and size + len(words.pieces[last]) <= length:
            size += len(words.pieces[last])
            last += 1
        if last == n:
            ranges.append((first, n, keep_from, n))
            break
        end = _find_window_end(words, first, last)
        if end:
            ranges.append((first, end, keep_from, end))
            first = keep_from = end
            continue
        back, shared = last, 0
        while back > first + 1 and shared + len(words.pieces[back - 1]) <= overlap:
            back -= 1
            shared += len(words.pieces[back])
        middle = (back + last + 1) // 2
        ranges.append((first, last, keep_from, middle))
        first, keep_from = max(back, first + 1), middle
    return ranges


def _find_window_end(words: Words, first: int, last: int) -> int:
    """Find the best end up to ``last``: the last line end in the window's second half, else the last sentence end."""
    half = first + (last - first + 1) // 2
    for quality, low in ((2, half), (1, first + 1)):
        for end in range(last, low - 1, -1):
            if words.breaks[end] >= quality:
                return end
    return 0


def cut_windows(words: Words, pieces: WordPiece | Unigram) -> list[Window]:
    """Cut a text whose ``words`` are read into windows."""
    out = []
    for first, last, keep_from, keep_to in cut_window_ranges(words):
        ids, shapes, heads = [pieces.start], [0], []
        for i in range(first, last):
            heads.append(len(ids))
            ids += words.pieces[i]
            shapes += [words.shapes[i]] * len(words.pieces[i])
        ids.append(pieces.end)
        shapes.append(0)
        out.append(Window(first, last, keep_from, keep_to, tuple(ids), tuple(shapes), tuple(heads)))
    return out

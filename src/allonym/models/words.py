"""Words as the embedded models see them, in training and in use alike: borders, shapes and pieces.

The pieces are those of a BERT vocabulary (Wu et al. 2016, arXiv:1609.08144): no capitals, no accents, longest first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*|([^\w\s]|_)\1*")
SHAPES = 24
"""Number of values of :func:`classify_shape`."""
MOST_PIECES = 10  # of one word; the rest of a longer one tells nothing about names
_CACHED = 400_000  # words whose pieces are remembered
_UNKNOWN = 30.0  # what a letter that is in no piece costs

_JOINED = SHAPES // 2


def split_words(text: str) -> list[tuple[int, int]]:
    """Return the borders of words, half-open: runs of letters and digits, and runs of one punctuation mark."""
    return [match.span() for match in _WORD.finditer(text)]


def classify_shape(word: str, touches_previous: bool) -> int:
    """Classify a word's outer form: its casing and digits, and whether it touches the word before it.

    The vocabulary has no capitals, so the models get the form as a feature of its own.
    """
    return _classify_casing(word) + (_JOINED if touches_previous else 0)


def _classify_casing(word: str) -> int:
    first = word[0]
    if not first.isalnum():
        return 0 if first in ".!?" else 1 if first in "\"'“”‘’«»()[]" else 2 if first in "@#/\\_" else 3
    if word.isdigit():
        return 4 if len(word) != 4 else 5
    if any(c.isdigit() for c in word):
        return 6
    if word.islower():
        return 7
    if len(word) == 1:
        return 8
    if word.isupper():
        return 9
    if first.isupper() and word[1:].islower():
        return 10
    return 11


class WordPiece:
    """A vocabulary of word pieces.

    Args:
        vocabulary: the pieces in order of their numbers; those inside a word begin with ``##``.

    Raises:
        DataError: the vocabulary lacks ``[CLS]``, ``[SEP]`` or ``[UNK]``.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: i for i, piece in enumerate(vocabulary)}
        self.start, self.end, self.unknown = _find_marks(self._ids)
        self._cache: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> WordPiece:
        """Read a ``vocab.txt``, one piece a line."""
        return cls(path.read_text("utf-8").removesuffix("\n").split("\n"))

    def pieces(self, word: str) -> tuple[int, ...]:
        """Return the piece numbers of a word, 1 to ``MOST_PIECES``; a run of marks counts as one mark."""
        numbers = self._cache.get(word)
        if numbers is None:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            numbers = self._cache[word] = self._encode_uncached_word(word)
        return numbers

    def _encode_uncached_word(self, word: str) -> tuple[int, ...]:
        plain = word[: 8 * MOST_PIECES] if word[0].isalnum() else word[0]
        plain = plain.replace("Σ", "σ").lower()  # as in BERT, no final form
        plain = "".join(c for c in unicodedata.normalize("NFD", plain) if unicodedata.category(c) != "Mn")
        numbers = [number for part in _split_ideographs(plain) for number in self._match_longest_pieces(part)]
        return tuple(numbers[:MOST_PIECES]) or (self.unknown,)

    def _match_longest_pieces(self, part: str) -> list[int]:
        numbers: list[int] = []
        start = 0
        while start < len(part):
            prefix = "##" if start else ""
            for end in range(len(part), start, -1):
                number = self._ids.get(prefix + part[start:end])
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return [self.unknown]
        return numbers


SPACE = "\u2581"
"""Begins the pieces of a :class:`Unigram` that follow a gap."""


class Unigram:
    """A vocabulary of pieces with capitals and accents, of which the likeliest make up a word (Kudo 2018).

    Args:
        vocabulary: the pieces in order of their numbers; those behind a gap begin with ``SPACE``.
        scores: the log chance of each piece.

    Raises:
        DataError: the vocabulary lacks ``[CLS]``, ``[SEP]`` or ``[UNK]``.
    """

    def __init__(self, vocabulary: Sequence[str], scores: Sequence[float]) -> None:
        self._ids = {piece: i for i, piece in enumerate(vocabulary)}
        self.start, self.end, self.unknown = _find_marks(self._ids)
        self.vocabulary, self.scores = vocabulary, [float(score) for score in scores]
        self._longest = max(map(len, vocabulary))
        self._cache: dict[tuple[str, bool], tuple[int, ...]] = {}

    def pieces(self, word: str, follows_gap: bool) -> tuple[int, ...]:
        """Return the piece numbers of a word, 1 to ``MOST_PIECES``."""
        numbers = self._cache.get((word, follows_gap))
        if numbers is None:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            likeliest = self._match_likeliest_pieces(word, follows_gap)[1][:MOST_PIECES]
            numbers = self._cache[word, follows_gap] = tuple(likeliest) or (self.unknown,)
        return numbers

    def choose_case(self, word: str) -> str:
        """Return a word in capitals as it is likelier written: in small letters, or with a capital first."""
        forms = word.lower(), word.capitalize()
        return max(forms, key=lambda form: self._match_likeliest_pieces(form, True)[0])

    def _match_likeliest_pieces(self, word: str, follows_gap: bool) -> tuple[float, list[int]]:
        """The log chance of the likeliest pieces, and their numbers."""
        text = SPACE * follows_gap + unicodedata.normalize("NFKC", word[: 8 * MOST_PIECES])
        best: list[tuple[float, int, int]] = [(0.0, 0, 0)]  # score, where the last piece begins, its number
        for end in range(1, len(text) + 1):
            ways = [(best[end - 1][0] - _UNKNOWN, end - 1, self.unknown)]
            for start in range(max(0, end - self._longest), end):
                number = self._ids.get(text[start:end])
                if number is not None:
                    ways.append((best[start][0] + self.scores[number], start, number))
            best.append(max(ways))
        numbers: list[int] = []
        end = len(text)
        while end:
            _, end, number = best[end]
            numbers.append(number)
        return best[-1][0], numbers[::-1]


def read_pieces(folder: Path) -> Any:
    """Read the :class:`WordPiece` of a folder, or its :class:`Unigram` where the pieces have scores."""
    import numpy as np  # which the words alone do not need

    scores = folder / "piece_scores.npy"
    if not scores.exists():
        return WordPiece.read(folder / "vocab.txt")
    return Unigram((folder / "vocab.txt").read_text("utf-8").removesuffix("\n").split("\n"), np.load(scores))


def _find_marks(ids: Mapping[str, int]) -> tuple[int, int, int]:
    for name in ("[CLS]", "[SEP]", "[UNK]"):
        if name not in ids:
            raise DataError(f"a vocabulary of pieces needs {name}")
    return ids["[CLS]"], ids["[SEP]"], ids["[UNK]"]


def _split_ideographs(word: str) -> list[str]:
    """Split a word so that Chinese characters stand alone, as in BERT."""
    if word.isascii() or not any(map(_is_ideograph, word)):
        return [word]
    parts = [""]
    for c in word:
        if _is_ideograph(c):
            parts += [c, ""]
        else:
            parts[-1] += c
    return [p for p in parts if p]


def _is_ideograph(c: str) -> bool:
    return "\u3400" <= c <= "\u9fff" or "\uf900" <= c <= "\ufaff" or c >= "\U00020000"

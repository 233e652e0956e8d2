"""Words as the embedded models see them, in training and in use alike: borders, shapes and pieces.

The pieces are those of a BERT vocabulary (Wu et al. 2016, arXiv:1609.08144): no capitals, no accents, longest first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from allonym.errors import DataError

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*|([^\w\s]|_)\1*")
SHAPES = 24
"""Number of values of :func:`classify_shape`."""
MOST_PIECES = 10  # of one word; the rest of a longer one tells nothing about names
_CACHED = 400_000  # words whose pieces are remembered

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
        for name in ("[CLS]", "[SEP]", "[UNK]"):
            if name not in self._ids:
                raise DataError(f"a vocabulary of pieces needs {name}")
        self.start, self.end, self.unknown = (self._ids[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
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

"""Words to pieces of a BERT vocabulary (Wu et al. 2016, arXiv:1609.08144): no capitals, no accents, longest first."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from allonym.errors import DataError

MOST_PIECES = 10  # of one word; the rest of a longer one tells nothing about names
_KEPT = 400_000  # words remembered


class WordPiece:
    """Piece numbers of words, remembered.

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
        self._seen: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> WordPiece:
        """From a ``vocab.txt``, one piece a line."""
        return cls(path.read_text("utf-8").removesuffix("\n").split("\n"))

    def pieces(self, word: str) -> tuple[int, ...]:
        """Piece numbers of one word, at least one and at most ``MOST_PIECES``; a run of marks counts as one mark."""
        found = self._seen.get(word)
        if found is None:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            found = self._seen[word] = self._split(word)
        return found

    def _split(self, word: str) -> tuple[int, ...]:
        plain = word[: 8 * MOST_PIECES] if word[0].isalnum() else word[0]
        plain = plain.replace("Σ", "σ").lower()  # as in BERT, no final form
        plain = "".join(c for c in unicodedata.normalize("NFD", plain) if unicodedata.category(c) != "Mn")
        out: list[int] = []
        for part in _parts(plain):
            out += self._longest(part)
        return tuple(out[:MOST_PIECES]) or (self.unknown,)

    def _longest(self, part: str) -> list[int]:
        out: list[int] = []
        start = 0
        while start < len(part):
            prefix = "##" if start else ""
            for end in range(len(part), start, -1):
                number = self._ids.get(prefix + part[start:end])
                if number is not None:
                    out.append(number)
                    start = end
                    break
            else:
                return [self.unknown]
        return out


def _parts(word: str) -> list[str]:
    """Chinese characters stand alone, as in BERT."""
    if word.isascii() or not any(map(_chinese, word)):
        return [word]
    parts = [""]
    for c in word:
        if _chinese(c):
            parts += [c, ""]
        else:
            parts[-1] += c
    return [p for p in parts if p]


def _chinese(c: str) -> bool:
    return "\u3400" <= c <= "\u9fff" or "\uf900" <= c <= "\ufaff" or c >= "\U00020000"

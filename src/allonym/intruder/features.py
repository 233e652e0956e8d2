"""What record linkage looks at in a text: n-grams of words, n-grams of characters within words, and sentence vectors.

Every feature knows the words that it stands on, so that what it adds to a decision can be told back to the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from allonym.text.placeholders import find_placeholders, remove_placeholders
from allonym.text.words import IDENTIFIER

Ids = NDArray[np.int64]

_KEPT = 20_000  # texts whose features are kept


@dataclass(frozen=True, slots=True, repr=False)
class Read:
    """A text as a reader sees it.

    Attributes:
        spans: int ``(t, 2)``: start and end of its words, in code points, end exclusive.
        ids: int ``(f,)``: its features, each as often as it occurs.
        first, last: int ``(f,)``: the first and the last of the words that each stands on.
    """

    spans: Ids
    ids: Ids = field(repr=False)
    first: Ids
    last: Ids


class Reader:
    """Reads texts once for all intruders that share it; features get numbers as they are met.

    Args:
        words: least and greatest n of word n-grams; words have two letters at least, in lower case.
        characters: least and greatest n of character n-grams; a blank stands before and behind each word.
        tags: whether placeholders are read as words, else they are passed over.
    """

    def __init__(
        self, words: tuple[int, int] = (1, 2), characters: tuple[int, int] = (3, 5), *, tags: bool = False
    ) -> None:
        self._words = words
        self._characters = characters
        self._tags = tags
        self._numbers: dict[str, dict[str, int]] = {"words": {}, "characters": {}}
        self._grams: dict[str, Ids] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._read: dict[tuple[str, str], Read] = {}

    def read(self, text: str, kind: str) -> Read:
        """The features of one kind, ``words`` or ``characters``, with where they stand."""
        found = self._read.pop((kind, text), None)
        if found is None:
            spans = self.spans(text)
            low = text.lower() if len(text.lower()) == len(text) else "".join(_lower(c) for c in text)
            said = [low[a:b] for a, b in spans]
            made = self._word_grams(said) if kind == "words" else self._character_grams(said)
            found = Read(np.array(spans, np.int64).reshape(-1, 2), *made)
        self._read[kind, text] = found  # what was used last is dropped last
        if len(self._read) > _KEPT:
            del self._read[next(iter(self._read))]
        return found

    def counts(self, texts: Sequence[str], kind: str) -> Any:
        """How often each feature occurs in each text: sparse ``(n, V)``; V grows as features are met."""
        starts, ids, times = [0], [], []
        for text in texts:
            own, often = np.unique(self.read(text, kind).ids, return_counts=True)
            ids.append(own)
            times.append(often)
            starts.append(starts[-1] + len(own))
        width = len(self._numbers[kind])
        if not texts:
            return sparse.csr_matrix((0, width))
        data = np.concatenate(times).astype(np.float64)
        return sparse.csr_matrix((data, np.concatenate(ids), starts), shape=(len(texts), width))

    def names(self, kind: str) -> list[str]:
        """The features of a kind by their numbers."""
        return list(self._numbers[kind])

    def vectors(self, texts: Sequence[str], *, keep: bool = True) -> NDArray[np.float64]:
        """Unit vectors of the embedded sentence encoder, placeholders left out, ``(n, 384)``; may ``keep`` them."""
        from allonym.models.encoder import WIDTH, load_encoder

        missing = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        plain = missing if self._tags else [remove_placeholders(t) for t in missing]
        made = dict(zip(missing, load_encoder().encode(plain), strict=True)) if missing else {}
        found = self._vectors | made
        if keep and len(found) <= _KEPT:
            self._vectors = found
        return np.array([found[t] for t in texts], np.float64).reshape(-1, WIDTH)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of the words of a text that are looked at."""
        words = [m.span() for m in IDENTIFIER.finditer(text)]
        placeholders = [] if self._tags else find_placeholders(text)
        if not placeholders:
            return words
        spans, k = [], 0
        for start, end in words:
            while k < len(placeholders) and placeholders[k].end <= start:
                k += 1
            if k == len(placeholders) or end <= placeholders[k].start:
                spans.append((start, end))
        return spans

    def _word_grams(self, said: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        numbers = self._numbers["words"]
        at = [i for i, word in enumerate(said) if len(word) > 1]
        ids, first, last = [], [], []
        low, high = self._words
        for size in range(low, high + 1):
            for k in range(len(at) - size + 1):
                name = " ".join(said[i] for i in at[k : k + size])
                ids.append(numbers.setdefault(name, len(numbers)))
                first.append(at[k])
                last.append(at[k + size - 1])
        return np.array(ids, np.int64), np.array(first, np.int64), np.array(last, np.int64)

    def _character_grams(self, said: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        each = [self._grams_of(word) for word in said]
        where = np.repeat(np.arange(len(said)), [len(e) for e in each]).astype(np.int64)
        return (np.concatenate(each) if each else np.zeros(0, np.int64)), where, where

    def _grams_of(self, word: str) -> Ids:
        found = self._grams.get(word)
        if found is None:
            numbers, padded = self._numbers["characters"], f" {word} "
            low, high = self._characters
            names = [
                padded[i : i + size]
                for size in range(low, min(high, len(padded)) + 1)
                for i in range(len(padded) - size + 1)
            ]
            found = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
            self._grams[word] = found
        return found


def _lower(character: str) -> str:
    """In lower case, where that is one character too: offsets must not move."""
    return low if len(low := character.lower()) == 1 else character


class Weights:
    """Sublinear TF-IDF as learnt from some texts: ``(1 + log tf) (log((1 + n) / (1 + df)) + 1)``, rows of length 1.

    Args:
        counts: sparse ``(n, V)``, of the texts that are learnt from.
    """

    def __init__(self, counts: Any) -> None:
        often = np.bincount(counts.indices, minlength=counts.shape[1])
        self.idf = np.where(often > 0, np.log((1 + counts.shape[0]) / (1 + often)) + 1, 0.0)

    def of(self, counts: Any) -> Any:
        """The weights of other texts; what was never learnt has none."""
        width = len(self.idf)
        rows = counts[:, :width] if counts.shape[1] > width else counts.copy()
        if rows.shape[1] < width:
            rows = sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
        rows.data = (1 + np.log(rows.data)) * self.idf[rows.indices]
        rows.eliminate_zeros()
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        length[length == 0] = 1
        rows.data /= np.repeat(length, np.diff(rows.indptr))
        return rows

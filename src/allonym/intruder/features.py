"""Features of texts for record linkage: n-grams of words, n-grams of characters within words, and sentence vectors.

Every feature knows the words that it stands on, so that what it adds to a decision can be shown in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from allonym.document import subtract_intervals
from allonym.text.placeholders import find_placeholders, remove_placeholders
from allonym.text.words import IDENTIFIER

Ids = NDArray[np.int64]

_CACHED = 20_000  # texts whose features are remembered


@dataclass(frozen=True, slots=True, repr=False)
class TextFeatures:
    """The features of a text.

    Attributes:
        spans: int ``(t, 2)``: start and end of its words, in code points, end exclusive.
        ids: int ``(f,)``: its features, each as often as it occurs.
        first, last: int ``(f,)``: the first and the last of the words that each stands on.
    """

    spans: Ids
    ids: Ids = field(repr=False)
    first: Ids
    last: Ids


class FeatureReader:
    """Reads texts once for all intruders that share it. Features are numbered as they are met.

    Args:
        words: least and greatest n of word n-grams; words have two letters at least, in lower case.
        characters: least and greatest n of character n-grams; a blank stands before and behind each word.
        tags: whether placeholders are read as words; else they are passed over.
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
        self._read: dict[tuple[str, str], TextFeatures] = {}

    def read_features(self, text: str, kind: str) -> TextFeatures:
        """Return the features of one kind, ``words`` or ``characters``, and where they stand."""
        features = self._read.pop((kind, text), None)
        if features is None:
            spans = self.find_word_spans(text)
            low = text.lower() if len(text.lower()) == len(text) else "".join(map(_lower_keeping_length, text))
            words = [low[a:b] for a, b in spans]
            grams = self._locate_word_grams(words) if kind == "words" else self._locate_character_grams(words)
            features = TextFeatures(np.array(spans, np.int64).reshape(-1, 2), *grams)
        self._read[kind, text] = features  # what was used last is dropped last
        if len(self._read) > _CACHED:
            del self._read[next(iter(self._read))]
        return features

    def count_features(self, texts: Sequence[str], kind: str) -> Any:
        """How often each feature occurs in each text: sparse ``(n, V)``; V grows as features are met."""
        if not texts:
            return sparse.csr_matrix((0, len(self._numbers[kind])))
        rows = [np.unique(self.read_features(text, kind).ids, return_counts=True) for text in texts]
        starts = np.cumsum([0, *(len(ids) for ids, _ in rows)])
        data = np.concatenate([times for _, times in rows]).astype(np.float64)
        ids = np.concatenate([ids for ids, _ in rows])
        return sparse.csr_matrix((data, ids, starts), shape=(len(texts), len(self._numbers[kind])))

    def list_known_features(self, kind: str) -> list[str]:
        """The features of a kind by their numbers."""
        return list(self._numbers[kind])

    def encode_texts(self, texts: Sequence[str], *, cache: bool = True) -> NDArray[np.float64]:
        """Unit vectors of the embedded sentence encoder, placeholders left out, ``(n, 384)``; ``cache`` caches them."""
        from allonym.models.encoder import WIDTH, load_encoder

        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        readable = missing if self._tags else [remove_placeholders(text) for text in missing]
        vectors = self._vectors | (dict(zip(missing, load_encoder().encode(readable), strict=True)) if missing else {})
        if cache and len(vectors) <= _CACHED:
            self._vectors = vectors
        return np.array([vectors[text] for text in texts], np.float64).reshape(-1, WIDTH)

    def find_word_spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of the words of a text that are read."""
        placeholders = [] if self._tags else [(p.start, p.end) for p in find_placeholders(text)]
        readable = subtract_intervals((0, len(text)), placeholders)
        return [match.span() for start, end in readable for match in IDENTIFIER.finditer(text, start, end)]

    def _locate_word_grams(self, words: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        numbers = self._numbers["words"]
        places = [i for i, word in enumerate(words) if len(word) > 1]
        ids, first, last = [], [], []
        low, high = self._words
        for size in range(low, high + 1):
            for k in range(len(places) - size + 1):
                name = " ".join(words[i] for i in places[k : k + size])
                ids.append(numbers.setdefault(name, len(numbers)))
                first.append(places[k])
                last.append(places[k + size - 1])
        return np.array(ids, np.int64), np.array(first, np.int64), np.array(last, np.int64)

    def _locate_character_grams(self, words: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        grams = [self._list_gram_ids_of_word(word) for word in words]
        places = np.repeat(np.arange(len(words)), [len(ids) for ids in grams]).astype(np.int64)
        return (np.concatenate(grams) if grams else np.zeros(0, np.int64)), places, places

    def _list_gram_ids_of_word(self, word: str) -> Ids:
        if word not in self._grams:
            numbers, padded = self._numbers["characters"], f" {word} "
            low, high = self._characters
            sizes = range(low, min(high, len(padded)) + 1)
            names = [padded[i : i + size] for size in sizes for i in range(len(padded) - size + 1)]
            self._grams[word] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        return self._grams[word]


def _lower_keeping_length(character: str) -> str:
    """In lower case, where that is one character too: offsets must not move."""
    return low if len(low := character.lower()) == 1 else character


class TfidfWeights:
    """Sublinear TF-IDF as learnt from some texts: ``(1 + log tf) (log((1 + n) / (1 + df)) + 1)``, rows of length 1.

    Args:
        counts: sparse ``(n, V)``, of the texts to learn from.
    """

    def __init__(self, counts: Any) -> None:
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        self.idf = np.where(documents > 0, np.log((1 + counts.shape[0]) / (1 + documents)) + 1, 0.0)

    def weigh_counts(self, counts: Any) -> Any:
        """Weigh the counts of other texts; a feature that was never learnt has no weight."""
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

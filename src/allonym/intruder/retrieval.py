"""Public background: texts about candidates, searched for the one that an anonymised text is about.

By words with BM25 (Robertson and Zaragoza 2009, doi:10.1561/1500000019), and by meaning with vectors of the embedded
sentence encoder. Nothing is learnt from other texts of the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allonym.intruder.linkage import FeatureReader

_SATURATION, _LENGTH = 1.2, 0.75  # BM25's k1 and b

Floats = NDArray[np.float64]


class Background:
    """Texts about candidates.

    Args:
        pairs: (text, candidate); several texts about one candidate may be given.
        candidates: those who are ranked; each has a text.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], candidates: Sequence[str]) -> None:
        self._reader = FeatureReader((1, 1))
        place = {name: k for k, name in enumerate(candidates)}
        self._texts = ["\n".join(text for text, name in pairs if name == candidate) for candidate in candidates]
        passages = [(part, place[name]) for text, name in pairs for part in text.split("\n") if part.strip()]
        self._passages = [part for part, _ in passages]
        self._owners = np.array([owner for _, owner in passages], np.int64)

    def score_words(self, texts: Sequence[str]) -> Floats:
        """Return BM25 of each candidate's texts for the words of each text: float ``(n, C)``, 0 or more."""
        counts = self._reader.count_features(self._texts, "words")
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        n = len(self._texts)
        idf = np.log1p((n - documents + 0.5) / (documents + 0.5))
        spread = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / max(1.0, lengths.mean()))
        times = counts.data
        counts.data = (
            idf[counts.indices] * times * (_SATURATION + 1) / (times + np.repeat(spread, np.diff(counts.indptr)))
        )
        queries = self._reader.count_features(texts, "words")[:, : counts.shape[1]]
        queries.data[:] = 1
        scores: Floats = (queries @ counts.T).toarray()
        return scores

    def score_meaning(self, texts: Sequence[str]) -> Floats:
        """Return the greatest cosine of each candidate's passages (lines) with each text: float ``(n, C)``, -1 to 1."""
        cosines = self._reader.encode_texts(texts) @ self._reader.encode_texts(self._passages).T
        scores = np.full((len(texts), len(self._texts)), -1.0)
        for k, owner in enumerate(self._owners.tolist()):
            scores[:, owner] = np.maximum(scores[:, owner], cosines[:, k])
        return scores

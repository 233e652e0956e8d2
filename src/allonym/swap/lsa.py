"""Latent semantic analysis: TF-IDF and a truncated SVD of the corpus itself (Deerwester et al. 1990,
doi:10.1002/(SICI)1097-4571(199009)41:6<391::AID-ASI1>3.0.CO;2-9)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd

from allonym.errors import DataError

_SMALL = 1e-6  # singular values below this share of the largest hold rounding only


class Lsa:
    """Vectors from the words of a corpus, in any language that puts spaces between words.

    Words are counted on a log scale. Those of a single text, or of more than half of the texts, count only where a
    corpus has few others.

    Args:
        components: most dimensions; fewer where the corpus has fewer, 2 at least.
        seed: of the SVD.
    """

    keep = False

    def __init__(self, components: int = 100, seed: int = 0) -> None:
        self._components = max(2, components)
        self._seed = seed
        self._vectorizer: Any = None
        self._axes: Any = None
        self._middle: Any = None
        self.identity = ""

    def fit(self, texts: Sequence[str]) -> Lsa:
        """Learn from a corpus.

        Raises:
            DataError: no text has a word.
        """
        out = Lsa(self._components, self._seed)
        table = None
        # Few texts share few words: where one rule leaves too little, the next is tried.
        for min_df, max_df in ((2, 0.5), (2, 1.0), (1, 1.0)):
            vectorizer = TfidfVectorizer(
                sublinear_tf=True, min_df=min_df, max_df=max_df, token_pattern=r"(?u)\b\w\w+\b"
            )
            try:
                table = vectorizer.fit_transform(texts)
            except ValueError:
                continue
            empty = int((table.getnnz(axis=1) == 0).sum())
            if empty * 10 <= len(texts) and min(table.shape) > 2:
                break
        if table is None:
            raise DataError(f"embedder 'lsa': none of {len(texts)} texts holds a word of two letters or more")
        if min(table.shape) <= self._components + 1:
            _, sizes, axes = np.linalg.svd(table.toarray(), full_matrices=False)
        else:
            _, sizes, axes = randomized_svd(table, self._components, n_iter=7, random_state=self._seed)
        axes = axes[: self._components][sizes[: self._components] > _SMALL * sizes[0]]
        signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])  # the same for either solver
        out._axes = np.zeros((max(2, len(axes)), table.shape[1]))
        out._axes[: len(axes)] = axes * signs[:, None]
        out._vectorizer = vectorizer
        rows = table @ out._axes.T
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        mean = np.asarray(rows / np.where(length < _SMALL, 1, length)).mean(axis=0)
        out._middle = mean if mean @ mean else np.ones(len(mean))
        digest = hashlib.sha256(f"{self._components} {self._seed}".encode())
        for text in texts:
            digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        out.identity = f"lsa {digest.hexdigest()[:16]}"
        return out

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a float64 array ``(len(texts), d)``; a text without words of the corpus has its mean direction."""
        rows = self._vectorizer.transform(texts) @ self._axes.T
        rows[np.linalg.norm(rows, axis=1) < _SMALL] = self._middle
        return rows

"""Complement naive Bayes for many classes (Rennie et al. 2003, "Tackling the poor assumptions of naive Bayes text
classifiers", ICML), in memory that grows with the texts and not with words times classes.

The weight of word i for class c is -log((a_i - n_ci + s) / sum_j (a_j - n_cj + s)), where n_ci counts the word in the
class, a_i in all classes, and s smooths. Most n_ci are zero: only differences from the weights of n_ci = 0 are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ROOM = 4_000_000  # most scores in memory at once


class Complement:
    """The classifier; rows of data are sparse matrices of counts or weights, 0 or more.

    Args:
        smoothing: s, greater than 0.

    Attributes:
        classes_: (C,) labels, sorted.
    """

    def __init__(self, smoothing: float = 0.1) -> None:
        self.smoothing = smoothing

    def fit(self, x: Any, y: NDArray[np.int64]) -> Complement:
        """Learn from rows ``x`` (n, V), sparse, and their classes ``y`` (n,)."""
        self.classes_, places = np.unique(y, return_inverse=True)
        n, count = len(y), len(self.classes_)
        members = sparse.csr_matrix((np.ones(n), (places, np.arange(n))), shape=(count, n))
        differences = (members @ x).tocsr()
        smooth = np.asarray(differences.sum(axis=0), np.float64).ravel() + self.smoothing
        self._word_weights = -np.log(smooth)
        rest = np.maximum(smooth[differences.indices] - differences.data, self.smoothing)
        differences.data = -np.log(rest) - self._word_weights[differences.indices]
        differences.sort_indices()
        sizes = (members @ np.asarray(x.sum(axis=1), np.float64)).ravel()
        self._class_weights = np.log(smooth.sum() - sizes)
        self._differences = differences
        self._by_word = differences.T.tocsr()
        mean = np.asarray(differences.sum(axis=0)).ravel() / count
        self._mean = self._word_weights + self._class_weights.mean() + mean
        return self

    def rank_top_classes(self, x: Any, many: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best classes of each row, (n, many) places in ``classes_``, and their scores; ties go to the first."""
        n, count = x.shape[0], len(self.classes_)
        order, scores = np.zeros((n, many), np.int64), np.zeros((n, many))
        step = max(1, _ROOM // count)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            table = self.scores(x[part])
            rows = np.arange(len(table))
            for k in range(many):
                order[part, k] = best = table.argmax(axis=1)
                scores[part, k] = table[rows, best]
                table[rows, best] = -np.inf
        return order, scores

    def scores(self, x: Any) -> NDArray[np.float64]:
        """(n, C) log-likelihoods of the rows under each class's complement, negated: higher is surer."""
        scores: NDArray[np.float64] = (x @ self._by_word).toarray()
        scores += np.outer(np.asarray(x.sum(axis=1)).ravel(), self._class_weights)
        scores += np.asarray(x @ self._word_weights).reshape(-1, 1)
        return scores

    def weights(self, c: int, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of some words for class number ``c``, less their means over the classes."""
        weights: NDArray[np.float64] = self._word_weights[words] + self._class_weights[c] - self._mean[words]
        part = slice(self._differences.indptr[c], self._differences.indptr[c + 1])
        stored, differences = self._differences.indices[part], self._differences.data[part]
        if len(stored):
            places = np.minimum(np.searchsorted(stored, words), len(stored) - 1)
            weights += np.where(stored[places] == words, differences[places], 0.0)
        return weights

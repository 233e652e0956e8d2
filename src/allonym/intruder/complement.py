"""Complement naive Bayes for many classes (Rennie et al. 2003, "Tackling the poor assumptions of naive Bayes text
classifiers", ICML), in memory that grows with the texts and not with words times classes.

The weight of word i for class c is -log((a_i - n_ci + s) / sum_j (a_j - n_cj + s)), where n_ci counts the word in the
class, a_i in all classes, and s smooths. Most n_ci are zero: what is stored is how much the others' weights differ from
those of n_ci = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ROOM = 4_000_000  # scores that are held at once


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
        """Count: ``x`` (n, V) sparse, ``y`` (n,) integers."""
        self.classes_, place = np.unique(y, return_inverse=True)
        n, count = len(y), len(self.classes_)
        member = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(count, n))
        inside = (member @ x).tocsr()
        every = np.asarray(inside.sum(axis=0), np.float64).ravel()
        smooth = every + self.smoothing
        self._word = -np.log(smooth)
        rest = np.maximum(smooth[inside.indices] - inside.data, self.smoothing)
        inside.data = -np.log(rest) - self._word[inside.indices]
        inside.sort_indices()
        held = (member @ np.asarray(x.sum(axis=1), np.float64)).ravel()
        self._class = np.log(smooth.sum() - held)
        self._more = inside
        self._by_word = inside.T.tocsr()
        self._mean = self._word + self._class.mean() + np.asarray(inside.sum(axis=0)).ravel() / count
        return self

    def top(self, x: Any, many: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best classes of each row, (n, many) places in ``classes_``, and their scores; ties go to the first."""
        n, count = x.shape[0], len(self.classes_)
        order, scores = np.zeros((n, many), np.int64), np.zeros((n, many))
        step = max(1, _ROOM // count)
        for at in range(0, n, step):
            part = slice(at, min(at + step, n))
            table = self.scores(x[part])
            rows = np.arange(len(table))
            for k in range(many):
                order[part, k] = best = table.argmax(axis=1)
                scores[part, k] = table[rows, best]
                table[rows, best] = -np.inf
        return order, scores

    def scores(self, x: Any) -> NDArray[np.float64]:
        """(n, C) log-likelihoods of the rows under each class's complement, negated: the higher, the surer."""
        out: NDArray[np.float64] = (x @ self._by_word).toarray()
        out += np.outer(np.asarray(x.sum(axis=1)).ravel(), self._class)
        out += np.asarray(x @ self._word).reshape(-1, 1)
        return out

    def weights(self, c: int, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of some words for class number ``c``, less their means over the classes."""
        out: NDArray[np.float64] = self._word[words] + self._class[c] - self._mean[words]
        part = slice(self._more.indptr[c], self._more.indptr[c + 1])
        held, more = self._more.indices[part], self._more.data[part]
        if len(held):
            at = np.minimum(np.searchsorted(held, words), len(held) - 1)
            out += np.where(held[at] == words, more[at], 0.0)
        return out

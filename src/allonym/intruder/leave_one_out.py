"""Linkage that judges each text as if it had never learnt it: the same linear model as
:mod:`allonym.intruder.linkage`, with the leave-one-out weights of ridge regression in closed form.

So that thousands of texts can be judged again and again while they change: one system of equations a time, none a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from allonym.intruder.linkage import FeatureReader, Floats, TfidfWeights, spread_over_words

KINDS = ("words", "characters")
_MOST = 3000  # texts that are learnt from


class LeaveOneOut:
    """An intruder who has learnt from a corpus and judges each of its texts, in whatever version, without that text.

    Args:
        reader: of the features; what it has read of a text is not read again.
        learnt: the texts to learn from; of more than 3,000, evenly spread ones.
        labels: int ``(n,)``: the class of each, 0 to C - 1.
        judged: a version of each text to judge; the learnt ones by default.
        ridge: penalty that keeps weights small.

    Attributes:
        scores: float ``(n, C)``: how much speaks for each class; -inf for a class without another text.
    """

    def __init__(
        self,
        reader: FeatureReader,
        learnt: Sequence[str],
        labels: NDArray[np.int64],
        judged: Sequence[str] | None = None,
        ridge: float = 1.0,
    ) -> None:
        self._reader = reader
        self._judged = learnt if judged is None else judged
        n = len(learnt)
        chosen = np.arange(n) if n <= _MOST else np.unique(np.linspace(0, n - 1, _MOST).astype(np.int64))
        self._place = np.full(n, -1)
        self._place[chosen] = np.arange(len(chosen))
        counts = np.bincount(labels[chosen], minlength=int(labels.max()) + 1)
        targets = np.eye(len(counts))[labels[chosen]]
        similarity: Any = ridge * np.eye(len(chosen))
        across: Any = 0.0
        self._parts = []
        for kind in KINDS:
            learnt_counts = reader.count_features([learnt[i] for i in chosen], kind)
            weights = TfidfWeights(learnt_counts)
            rows = weights.weigh_counts(learnt_counts)
            judged_rows = weights.weigh_counts(reader.count_features(self._judged, kind))
            self._parts.append((kind, rows.tocsc(), judged_rows))
            similarity += (rows @ rows.T).toarray()
            across += (judged_rows @ rows.T).toarray()
        self._inverse = linalg.inv(similarity, check_finite=False)
        self._dual = self._inverse @ (targets - targets.mean(axis=0))
        self.scores: Floats = targets.mean(axis=0) + across @ self._dual
        inside = np.flatnonzero(self._place >= 0)
        place = self._place[inside]
        lost = (across[inside] * self._inverse[place]).sum(axis=1) / np.diag(self._inverse)[place]
        self.scores[inside] -= lost[:, None] * self._dual[place]
        left = counts[None, :] - np.eye(len(counts), dtype=np.int64)[labels] * (self._place >= 0)[:, None]
        self.scores[left < 1] = -np.inf

    def list_word_leads(self, i: int, subject: int, rivals: Sequence[int]) -> list[tuple[int, int, float]]:
        """List what each word of judged text ``i`` adds to the lead of a class over the mean of others: start, end,
        weight, in reading order."""
        dual, place = self._dual, self._place[i]
        lead = dual[:, subject] - dual[:, list(rivals)].mean(axis=1)
        if place >= 0:
            lead = lead - self._inverse[:, place] * (lead[place] / self._inverse[place, place])
        text = self._judged[i]
        spans = self._reader.find_word_spans(text)
        total = np.zeros(len(spans))
        for kind, rows, judged_rows in self._parts:
            row = judged_rows[i]
            added = row.data * (rows[:, row.indices].T @ lead)
            total += spread_over_words(row.indices, added, self._reader.read_features(text, kind), len(spans))
        return [(a, b, float(w)) for (a, b), w in zip(spans, total, strict=True)]

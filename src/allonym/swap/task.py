"""Task utility: whether a model that learns from the released texts still does its work.

A linear classifier on the vectors of chunks predicts a label of the user's (a sector, a sentiment), each document by
models that never saw it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from allonym.errors import DataError
from allonym.stats import Estimate
from allonym.swap.corpus import Corpus

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Task:
    """Accuracy of a task on chunks, with 95 % Wilson intervals, as if chunks of a document were independent.

    Attributes:
        label: the metadata key that is predicted; classes: its values; chunks: how many were judged.
        before: learnt from originals, judged on originals.
        learnt: learnt from released chunks, judged on originals: what a release is worth to who learns from it.
        applied: learnt from originals, judged on released chunks.
        chance: of the most frequent class.
    """

    label: str
    classes: int
    chunks: int
    before: Estimate
    learnt: Estimate
    applied: Estimate
    chance: float

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "label": self.label,
            "classes": self.classes,
            "chunks": self.chunks,
            "before": self.before.to_dict(),
            "learnt": self.learnt.to_dict(),
            "applied": self.applied.to_dict(),
            "chance": self.chance,
        }


def task_utility(corpus: Corpus, label: str, before: Any, after: Any) -> Task:
    """How well a metadata key is predicted from chunks, before and after the exchange.

    Args:
        label: a key of the documents' metadata; documents without it are left out.
        before, after: (n, d) vectors of all chunks.

    Raises:
        DataError: fewer than two classes, or a class of which no two documents are.
    """
    values = labels_of(corpus, label)
    chunks = np.array([i for i, c in enumerate(corpus.chunks) if values[c.document]], dtype=np.intp)
    targets = np.array([values[corpus.chunks[i].document] for i in chunks])
    documents = np.array([corpus.chunks[i].document for i in chunks])
    names = sorted(set(targets.tolist()))
    old, new = np.asarray(before, np.float64)[chunks], np.asarray(after, np.float64)[chunks]
    right = np.zeros((3, len(chunks)), dtype=bool)
    folds = GroupKFold(min(FOLDS, len(set(documents.tolist()))))
    for train, test in folds.split(old, targets, documents):
        if len(set(targets[train].tolist())) < 2:
            right[:, test] = targets[test] == targets[train][0]
            continue
        original = LogisticRegression(C=10.0, max_iter=1000).fit(old[train], targets[train])
        released = LogisticRegression(C=10.0, max_iter=1000).fit(new[train], targets[train])
        right[0, test] = original.predict(old[test]) == targets[test]
        right[1, test] = released.predict(old[test]) == targets[test]
        right[2, test] = original.predict(new[test]) == targets[test]
    unchanged, learnt, applied = (_wilson(int(row.sum()), len(chunks)) for row in right)
    most = max(int((targets == name).sum()) for name in names)
    return Task(label, len(names), len(chunks), unchanged, learnt, applied, most / len(chunks))


def labels_of(corpus: Corpus, label: str) -> list[str]:
    """Each document's value of a metadata key, empty where it has none or no chunk; quick, to be asked first.

    Raises:
        DataError: as :func:`task_utility`.
    """
    used = {chunk.document for chunk in corpus.chunks}
    values = [_value(d.meta.get(label)) if i in used else "" for i, d in enumerate(corpus.documents)]
    counts = Counter(v for v in values if v)
    if not counts:
        raise DataError(f"task: no document has the metadata key {label!r}")
    if len(counts) < 2:
        raise DataError(f"task: {label!r} has one value only; two are required")
    if max(counts.values()) < 2:
        raise DataError(f"task: every value of {label!r} is of one document only; nothing can be learnt for others")
    return values


def _value(given: object) -> str:
    return "" if given is None or isinstance(given, (list, tuple, dict)) else str(given)


def _wilson(k: int, n: int) -> Estimate:
    """A share with its 95 % interval (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    z = 1.959963984540054
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((p * (1 - p) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return Estimate(p, min(max(centre - half, 0.0), p), max(min(centre + half, 1.0), p), n, "share, 95 % Wilson")

"""The cost of swapping: how much of the clusters' likelihood the swapped chunks keep, and how well a task still works.

P1 (arXiv 2505.21128) section 2.5, equations (2.17) to (2.19). Log densities are with respect to the uniform measure
on the sphere: only there is the denominator the gain over a model that knows nothing, and U the share of it that stays.

A task is to predict a label of the user's (a sector, a sentiment) with a linear classifier on the vectors of chunks,
for each document by models that never saw it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from allonym.errors import DataError, UsageError
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import share
from allonym.swap.corpus import Corpus

STAND_IN = "U = exp(D / (n d))"
"""In the flag of a utility that is not the ratio of (2.18)."""
FOLDS = 5

_Values = Sequence[float] | Any  # or a one-dimensional array


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility of one release.

    Attributes:
        value: U of (2.19), or exp(D / (n d)) where the ratio would mislead; see ``flags``. Above 1 if the swapped
            chunks fit their clusters better than before.
        distance: D of (2.17), nats.
        changed: swapped chunks.
        kept: exp(D / (n d)), defined for every l: the likelihood that stays, as a mean over chunks and dimensions.
        misleading: whether ``value`` is ``kept`` because the ratio would mislead.
        flags: remarks for a report.
    """

    value: float
    distance: float
    changed: int
    kept: float = 1.0
    misleading: bool = False
    flags: tuple[str, ...] = ()


def compute_distance_utility(distance: float, n: int, d: int) -> float:
    """Return exp(D / (n d)), which stands in for U where the ratio of (2.18) misleads."""
    return math.exp(min(distance / (n * d), 700.0))


def compute_utility(before: _Values, after: _Values, total: float, *, n: int, d: int) -> Utility:
    """Return U and D.

    U = 1 + D / l holds only where l, the log-likelihood of all chunks given their clusters, is above 0 and above
    |D|. Elsewhere its sign or size means nothing, and U = exp(D / (n d)) stands in for it, which is monotone in D and
    1 at D = 0; a flag marks it. The two scales do not compare: see
    :func:`allonym.swap.release_search.unify_utility_scale`.

    Args:
        before: log density of each swapped chunk under the component of its cluster, before the swap.
        after: the same chunks after it, under the same components.
        total: l(x|l) of (2.19), the sum of such log densities before the swap over all n chunks.
        n: chunks of the corpus.
        d: dimension of the embedding.

    Raises:
        UsageError: arrays of different lengths, more swapped chunks than n, or n or d below 1.
        DataError: a log density that is not finite, as of a component that has collapsed.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if old.ndim != 1 or old.shape != new.shape:
        raise UsageError(f"utility: two vectors of one length are required, got {old.shape} and {new.shape}")
    changed = len(old)
    if n < 1 or d < 1 or changed > n:
        raise UsageError(f"utility: n and d must be at least 1 and n at least {changed}, got n = {n}, d = {d}")
    distance = float((new - old).sum())
    if not (math.isfinite(distance) and math.isfinite(total)):
        raise DataError("utility: a log density is not finite; a component of the mixture may have collapsed")
    if not changed:
        return Utility(1.0, 0.0, 0)
    flags = []
    if total <= 0:
        flags.append(f"the clusters fit no better than the uniform distribution: {STAND_IN}")
    elif abs(distance) >= total:
        flags.append(f"D exceeds the likelihood of the clusters: {STAND_IN}")
    misleading = bool(flags)
    kept_share = compute_distance_utility(distance, n, d)
    if distance > 0:
        flags.append("utility above 1")
    value = kept_share if misleading else 1 + distance / total
    return Utility(value, distance, changed, kept_share, misleading, tuple(flags))


# Tasks


class Task(Serialisable):
    """Accuracy of a task on chunks, with 95 % Wilson intervals, as if chunks of a document were independent.

    Attributes:
        label: the metadata key that is predicted; classes: its values; chunks: how many were judged.
        before: learnt from originals, judged on originals.
        learnt: learnt from released chunks, judged on originals: the value of a release as training data.
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


def task_utility(corpus: Corpus, label: str, before: Any, after: Any) -> Task:
    """Measure how well a metadata key is predicted from chunks, before and after the exchange.

    Args:
        label: a key of the documents' metadata; documents without it are left out.
        before, after: (n, d) vectors of all chunks.

    Raises:
        DataError: fewer than two classes, or a class of which no two documents are.
    """
    values = list_metadata_values(corpus, label)
    chunks = np.array([i for i, c in enumerate(corpus.chunks) if values[c.document]], dtype=np.intp)
    documents = np.array([corpus.chunks[i].document for i in chunks])
    targets = np.array([values[document] for document in documents])
    counts = Counter(targets.tolist())
    old, new = np.asarray(before, np.float64)[chunks], np.asarray(after, np.float64)[chunks]
    right = np.zeros((3, len(chunks)), dtype=bool)
    folds = GroupKFold(min(FOLDS, len(set(documents.tolist()))))
    for train, test in folds.split(old, targets, documents):
        if len(set(targets[train].tolist())) < 2:
            right[:, test] = targets[test] == targets[train][0]
            continue
        original = LogisticRegression(C=10.0, max_iter=1000).fit(old[train], targets[train])
        released = LogisticRegression(C=10.0, max_iter=1000).fit(new[train], targets[train])
        for row, model, rows in ((0, original, old), (1, released, old), (2, original, new)):
            right[row, test] = model.predict(rows[test]) == targets[test]
    unchanged, learnt, applied = (share(int(row.sum()), len(chunks)) for row in right)
    chance = max(counts.values()) / len(chunks)
    return Task(label, len(counts), len(chunks), unchanged, learnt, applied, chance)


def list_metadata_values(corpus: Corpus, key: str) -> list[str]:
    """Return each document's value of a metadata key, empty where it has none or no chunk; quick, for an early check.

    Raises:
        DataError: as :func:`task_utility`.
    """
    used = {chunk.document for chunk in corpus.chunks}
    metadata_values = (d.meta.get(key) if i in used else None for i, d in enumerate(corpus.documents))
    values = [
        "" if value is None or isinstance(value, (list, tuple, dict)) else str(value) for value in metadata_values
    ]
    counts = Counter(v for v in values if v)
    if not counts:
        raise DataError(f"task: no document has the metadata key {key!r}")
    if len(counts) < 2:
        raise DataError(f"task: {key!r} has one value only; two are required")
    if max(counts.values()) < 2:
        raise DataError(f"task: every value of {key!r} is of one document only; nothing can be learnt for others")
    return values

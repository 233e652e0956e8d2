"""Descriptions of the components of a mixture: sizes, a map of their means, and words that stand out."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from allonym.swap.corpus import Corpus
from allonym.swap.mixture import SphericalMixture
from allonym.swap.results import Cluster
from allonym.text.placeholders import remove_placeholders
from allonym.text.words import compile_words

WORDS = 6
"""Words named per cluster."""

_WORD = compile_words(digits=False, least=3)
_CLEAR = 1.5  # least log odds ratio, in standard errors


def project_means(means: Any, weights: Any) -> Any:
    """Project the means on a plane: the first two principal directions of the weighted means.

    Args:
        means: (K, d) unit rows; weights: (K,), sum 1.

    Returns:
        (K, 2). The signs make each direction's largest coordinate positive.
    """
    means, weights = np.asarray(means, np.float64), np.asarray(weights, np.float64)
    centred = means - weights @ means
    _, _, directions = np.linalg.svd(centred * np.sqrt(weights)[:, None], full_matrices=False)
    points = centred @ directions[:2].T
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    largest = points[np.abs(points).argmax(axis=0), (0, 1)]
    return points * np.where(largest < 0, -1.0, 1.0)


def summarise_clusters(corpus: Corpus, mixture: SphericalMixture, labels: Any) -> tuple[Cluster, ...]:
    """Return one :class:`Cluster` per component, in the mixture's order.

    Args:
        labels: (n,) the component of each chunk.
    """
    labels = np.asarray(labels)
    points = project_means(mixture.means_, mixture.weights_)
    words = find_distinctive_words(corpus, labels, len(points))
    documents = np.array([chunk.document for chunk in corpus.chunks])
    return tuple(
        Cluster(
            size=int((labels == k).sum()),
            documents=len(set(documents[labels == k].tolist())),
            weight=float(mixture.weights_[k]),
            rho=float(mixture.rhos_[k]),
            x=float(points[k, 0]),
            y=float(points[k, 1]),
            words=words[k],
            degenerate=bool(mixture.degenerate_[k]),
        )
        for k in range(len(points))
    )


def find_distinctive_words(corpus: Corpus, labels: Any, count: int) -> tuple[tuple[str, ...], ...]:
    """Return words that a cluster's chunks hold more often than the others (log odds; a word counts once per chunk).

    Words of entities, of placeholders, and of fewer than three documents are left out, so that none names anybody.
    """
    labels = np.asarray(labels)
    values = chain.from_iterable(chunk.values for chunk in corpus.chunks)
    names = {word.lower() for v in values for form in (v.key, *v.forms) for word in _WORD.findall(form)}
    inside: list[Counter[str]] = [Counter() for _ in range(count)]
    homes: dict[str, set[int]] = {}
    total: Counter[str] = Counter()
    for chunk, label in zip(corpus.chunks, labels.tolist(), strict=True):
        words = sorted({w.lower() for w in _WORD.findall(remove_placeholders(chunk.text))} - names)
        inside[label].update(words)
        total.update(words)
        for word in words:
            homes.setdefault(word, set()).add(chunk.document)
    n = len(corpus.chunks)
    least = min(3, len(corpus.documents))
    wide = {w for w in total if len(homes[w]) >= least}
    sizes = np.bincount(labels, minlength=count)
    out = []
    for k in range(count):
        size = int(sizes[k])
        counts = [(w, c) for w, c in inside[k].items() if w in wide and c > 1]
        scored = [(_compute_log_odds(c, size, total[w] - c, n - size), w) for w, c in counts]
        best = sorted((s for s in scored if s[0] > _CLEAR), key=lambda s: (-s[0], s[1]))
        out.append(tuple(w for _, w in best[:WORDS]))
    return tuple(out)


def _compute_log_odds(a: int, n: int, b: int, m: int) -> float:
    """Return the log odds ratio over its standard error, half a chunk added to each cell (Haldane and Anscombe)."""
    cells = np.array([a, n - a, b, m - b]) + 0.5
    ratio = np.log(cells[0] * cells[3] / (cells[1] * cells[2]))
    return float(ratio / np.sqrt((1 / cells).sum()))

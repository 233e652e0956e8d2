"""The choice of the number of components and of the family, by BIC or ICL; and what the components are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from allonym.errors import UnknownNameError, UsageError
from allonym.serial import Serialisable
from allonym.swap.corpus import Corpus, ignore_progress
from allonym.swap.density import FAMILIES
from allonym.swap.mixture import SphericalMixture, compute_criteria, run_em_from_all_starts
from allonym.swap.results import Cluster
from allonym.swap.rows import Spread, limit_blas_to_one_thread
from allonym.text.placeholders import remove_placeholders
from allonym.text.words import compile_word_pattern

CRITERIA = ("bic", "icl")
STEPS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of components that are tried by default."""
PER_CLUSTER = 25
"""Least number of rows per component, on average, with such a number."""


class Fit(Serialisable):
    """A fitted candidate: what was asked for, and the result.

    Attributes:
        family, clusters: what was asked for; left: components that remain.
        log_likelihood, bic, icl: of the fit; of the latter two, the lower the better.
        converged: whether the gain fell below the tolerance; degenerate: components at the cap of concentration.
        iterations: of the best run.
    """

    KEYS = ("family", "clusters", "left", "log_likelihood", "bic", "icl", "converged", "degenerate", "iterations")

    family: str
    clusters: int
    left: int
    log_likelihood: float
    bic: float
    icl: float
    converged: bool
    degenerate: int
    iterations: int
    mixture: SphericalMixture = field(repr=False, compare=False)

    @property
    def usable(self) -> bool:
        """Whether it converged to a mixture of finite likelihood without a component at the cap."""
        return self.converged and not self.degenerate and isfinite(self.log_likelihood)


def list_cluster_counts(n: int) -> tuple[int, ...]:
    """Return the numbers of components to try on ``n`` rows: up to 64, with at least 25 rows each on average."""
    most = max(1, n // PER_CLUSTER)
    return tuple(sorted({k for k in STEPS if k <= most} | {min(most, STEPS[-1])}))


def fit_all(
    X: ArrayLike,
    clusters: Iterable[int] = (),
    families: Sequence[str] = FAMILIES,
    *,
    advance: Callable[[int, int], object] = ignore_progress,
    spread: Spread | None = None,
    **settings: Any,
) -> tuple[Fit, ...]:
    """Fit every family with every number of components to the rows of ``X``.

    Args:
        clusters: numbers of components; empty: :func:`list_cluster_counts`.
        advance: called with the numbers of finished and of all fits.
        spread: the workers; None: threads of this process. Fits do not depend on it.
        settings: further arguments of :class:`SphericalMixture`, the same for all.

    Raises:
        UsageError: a number is below 1 or above the number of rows; otherwise as :meth:`SphericalMixture.fit`.
    """
    n = len(X)  # type: ignore[arg-type]
    numbers = tuple(dict.fromkeys(clusters)) or list_cluster_counts(n)
    if min(numbers) < 1 or max(numbers) > n:
        raise UsageError(f"numbers of components must lie between 1 and the number of rows, {n}; got {list(numbers)}")
    mixtures = [SphericalMixture(k, family=family, **settings) for family in families for k in numbers]
    fits = []
    with limit_blas_to_one_thread():
        rows = mixtures[0].rows(X, spread)
        runs = run_em_from_all_starts(rows, mixtures)
        for i, mixture in enumerate(mixtures):
            advance(i, len(mixtures))
            mixture.fit_rows(rows, runs=runs)
            scores = compute_criteria(mixture, rows)
            sizes = mixture.family, mixture.n_components, len(mixture.weights_)
            degenerate = int(mixture.degenerate_.sum())
            fits.append(Fit(*sizes, *scores, mixture.converged_, degenerate, mixture.n_iter_, mixture))
    advance(len(mixtures), len(mixtures))
    return tuple(fits)


def choose_fit(fits: Sequence[Fit], criterion: str = "bic") -> Fit:
    """Return the fit of the lowest criterion among those that converged without a component at the cap.

    If there are none, those without a component at the cap compete, since an unbounded likelihood would win for no
    reason; then all. Ties go to fewer components.

    Raises:
        UsageError: there is no fit, or no such criterion.
    """
    if criterion not in CRITERIA:
        raise UnknownNameError("criterion", criterion, CRITERIA)
    if not fits:
        raise UsageError("at least one fitted mixture is required to choose from, got none")
    sound = [f for f in fits if not f.degenerate and isfinite(f.log_likelihood)] or list(fits)
    return min([f for f in sound if f.converged] or sound, key=lambda f: (getattr(f, criterion), f.clusters, f.family))


# Descriptions of components

WORDS = 6
"""Words named per cluster."""

_WORD = compile_word_pattern(digits=False, least=3)
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
        scored = [(_compute_log_odds_z(c, size, total[w] - c, n - size), w) for w, c in counts]
        best = sorted((s for s in scored if s[0] > _CLEAR), key=lambda s: (-s[0], s[1]))
        out.append(tuple(w for _, w in best[:WORDS]))
    return tuple(out)


def _compute_log_odds_z(a: int, n: int, b: int, m: int) -> float:
    """Return the log odds ratio over its standard error, half a chunk added to each cell (Haldane and Anscombe)."""
    cells = np.array([a, n - a, b, m - b]) + 0.5
    ratio = np.log(cells[0] * cells[3] / (cells[1] * cells[2]))
    return float(ratio / np.sqrt((1 / cells).sum()))

"""The choice of the number of components and of the family: every candidate fitted, compared by BIC or ICL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from math import isfinite
from typing import Any

from numpy.typing import ArrayLike

from allonym.errors import UnknownNameError, UsageError
from allonym.serial import Serialisable
from allonym.swap.corpus import ignore_progress
from allonym.swap.density import FAMILIES
from allonym.swap.mixture import SphericalMixture, compute_criteria, run_starts
from allonym.swap.rows import Spread, limit_to_one_thread

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
    with limit_to_one_thread():
        rows = mixtures[0].rows(X, spread)
        runs = run_starts(rows, mixtures)
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

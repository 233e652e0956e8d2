"""How many components, and of which family: every candidate fitted, compared by BIC or ICL. Plain data for a plot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from numpy.typing import ArrayLike

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.density import FAMILIES
from allonym.swap.mixture import SphericalMixture, criteria, starts
from allonym.swap.shards import Spread, one_thread

CRITERIA = ("bic", "icl")
STEPS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of components that are tried where none are named."""
PER_CLUSTER = 25
"""Rows per component that a number so chosen leaves on average, at least."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A mixture that was tried: what it started from, what came of it.

    Attributes:
        family, clusters: what was asked for; left: components that are left.
        log_likelihood, bic, icl: of the fit; of the latter two, the lower the better.
        converged: whether the gain fell below the tolerance; degenerate: components at the cap of concentration.
        iterations: of the run that was kept.
    """

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
        """Whether it converged to a mixture of finite likelihood, no component of it at the cap."""
        return self.converged and not self.degenerate and isfinite(self.log_likelihood)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "mixture"}


def steps(n: int) -> tuple[int, ...]:
    """Numbers of components to try on ``n`` rows: up to 64, with at least 25 rows each on average."""
    most = max(1, n // PER_CLUSTER)
    return tuple(sorted({k for k in STEPS if k <= most} | {min(most, STEPS[-1])}))


def fit_all(
    X: ArrayLike,
    clusters: Iterable[int] = (),
    families: Sequence[str] = FAMILIES,
    *,
    advance: Callable[[int, int], None] | None = None,
    spread: Spread | None = None,
    **settings: object,
) -> tuple[Fit, ...]:
    """Every family with every number of components, fitted to the rows of ``X``.

    Args:
        clusters: numbers of components; empty: :func:`steps`.
        advance: called with how many fits are done, and of how many.
        spread: who works on the rows; None: threads of this process. Fits do not depend on it.
        settings: further arguments of :class:`SphericalMixture`, the same for all.

    Raises:
        UsageError: a number is below 1 or above the number of rows; otherwise as :meth:`SphericalMixture.fit`.
    """
    n = len(X)  # type: ignore[arg-type]
    numbers = tuple(dict.fromkeys(clusters)) or steps(n)
    if min(numbers) < 1 or max(numbers) > n:
        raise UsageError(f"numbers of components must lie between 1 and the number of rows, {n}; got {list(numbers)}")
    tried = [(family, k) for family in families for k in numbers]
    mixtures = [SphericalMixture(k, family=family, **settings) for family, k in tried]  # type: ignore[arg-type]
    fits = []
    with one_thread():
        rows = mixtures[0].rows(X, spread)
        runs = starts(rows, mixtures)
        for i, mixture in enumerate(mixtures):
            if advance is not None:
                advance(i, len(tried))
            mixture.fit_rows(rows, runs=runs)
            log_likelihood, bic, icl = criteria(mixture, rows)
            left, degenerate = len(mixture.weights_), int(mixture.degenerate_.sum())
            fits.append(
                Fit(
                    mixture.family,
                    mixture.n_components,
                    left,
                    log_likelihood,
                    bic,
                    icl,
                    mixture.converged_,
                    degenerate,
                    mixture.n_iter_,
                    mixture,
                )
            )
    if advance is not None:
        advance(len(tried), len(tried))
    return tuple(fits)


def chosen(fits: Sequence[Fit], criterion: str = "bic") -> Fit:
    """The fit of the lowest criterion, of those that converged without a component at the cap, where there are such.

    Else of those without a component at the cap: a likelihood that is unbounded there would win for no reason. Ties go
    to fewer components.

    Raises:
        UsageError: there is no fit, or no such criterion.
    """
    if criterion not in CRITERIA:
        raise UnknownNameError("criterion", criterion, CRITERIA)
    if not fits:
        raise UsageError("at least one fitted mixture is required to choose from, got none")
    sound = [f for f in fits if not f.degenerate and isfinite(f.log_likelihood)] or list(fits)
    return min([f for f in sound if f.converged] or sound, key=lambda f: (getattr(f, criterion), f.clusters, f.family))

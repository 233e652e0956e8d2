"""Mixtures of directions: clusters of unit vectors, with a density for every one (P1 2.2).

Follows scikit-learn's manner: parameters in the constructor, results in attributes with a trailing underscore.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.swap.density import Array, exponents, log_density, mean_cosine
from allonym.swap.em import (
    LEAST,
    Climb,
    Limits,
    Parameters,
    climb,
    from_labels,
    joint,
    soft_labels,
    spread_labels,
    stepwise,
)
from allonym.swap.points import shares, stretches, unit_rows

STARTS = ("both", "soft", "k-means++")
COPIES = ("once", "count")
SAMPLE = 20_000
"""Restarts compete on a sample of at most this many rows, or 50 per component; the best goes on with all rows."""

NEAR_ONE = {"float64": 1 - 1e-6, "float32": 1 - 3e-4}
"""The cap of rho: nearer to 1, points of that precision cannot be told apart."""


class SphericalMixture(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of spherical Cauchy or Poisson-kernel-based distributions on the unit sphere, fitted by EM.

    The likelihood of either family can grow without bound where points coincide: a component then has its ``rho`` at
    the cap and is flagged in ``degenerate_``. For pkbd any component with fewer effective points than dimensions can
    do so; spcauchy only where half of a component's weight lies on one point, which makes it the default.

    Args:
        n_components: clusters to start with; fewer may be left.
        family: ``spcauchy`` or ``pkbd``.
        min_weight: components below this share of the rows are dropped, 0 to 1.
        min_size: components below this effective size (sum of posteriors) are dropped.
        start: ``soft`` (a random label has .9 of each row), ``k-means++``, or ``both`` in turn.
        restarts: how many starts compete. Of those with the fewest components at the cap, the highest log-likelihood
            wins.
        max_iter: expectation steps per start (passes over the data).
        tol: stop when the log-likelihood changes by less than this share of itself and a nat per row together; at least
            5e-7 in float32.
        max_rho: cap of the concentration; None: 1 - 1e-6 in float64, 1 - 3e-4 in float32.
        seed: of all random choices; the same seed and data give the same fit.
        copies: rows that equal each other exactly count ``once`` together, so that repeated boilerplate draws no
            component onto itself, or each (``count``).
        dtype: ``float32`` or ``float64`` for the products; None: that of the data. Sums are float64.
        batch_size: rows per batch of stepwise EM for large data; None: every iteration uses all rows.

    Attributes:
        weights_ (K,), means_ (K, d), rhos_ (K,): the components, the heaviest first; float64.
        labels_ (n,): the likeliest component of each row of the data fitted.
        log_likelihood_: of the data (copies as said) at these parameters, nats against the uniform distribution.
        n_iter_, converged_: of the run that was kept. trace_: log-likelihood at each of its expectation steps.
        degenerate_ (K,): rho at the cap. cosines_ (K,): expected cosine of a member to the mean direction.
        warnings_: remarks in plain words.
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        family: str = "spcauchy",
        min_weight: float = 0.0,
        min_size: float = 2.0,
        start: str = "both",
        restarts: int = 6,
        max_iter: int = 300,
        tol: float = 1e-7,
        max_rho: float | None = None,
        seed: int = 0,
        copies: str = "once",
        dtype: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.min_weight = min_weight
        self.min_size = min_size
        self.start = start
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.max_rho = max_rho
        self.seed = seed
        self.copies = copies
        self.dtype = dtype
        self.batch_size = batch_size

    def fit(self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None) -> SphericalMixture:
        """Fit to the rows of ``X`` (n, d), which are scaled to unit length where they are not; ``y`` is ignored.

        Rows of zeros have no direction; they count for nothing.

        Args:
            labels: (n,) integers from 0: start from these instead of random starts.

        Raises:
            UsageError: a setting is out of range, there is no row, or more components are asked for than rows.
            DataError: a value is not finite, or every row is zero.
        """
        data, zeros = unit_rows(X, self.dtype)
        n, d = data.shape
        self._check(n, d)
        if zeros.all():
            raise DataError("a mixture needs directions; all rows are zero")
        weight = self._weight(data, zeros)
        start = None if labels is None else _labels(labels, n, self.n_components)
        run = self._fit(data, weight, start)
        order = np.lexsort((np.arange(len(run.parameters.rhos)), -run.parameters.weights))
        found = run.parameters.take(order)
        self.n_features_in_ = d
        self.weights_, self.means_, self.rhos_ = found.weights, found.means, found.rhos
        self.trace_ = np.array(run.trace)
        self.n_iter_ = len(run.trace)
        self.converged_ = run.converged
        self.degenerate_ = self._at_cap(found, self._cap(data.dtype))
        self.cosines_ = mean_cosine(found.rhos, d, self.family)
        self.labels_ = np.empty(n, np.int64)
        total = 0.0
        for part, log in joint(data, found, self.family):
            self.labels_[part] = log.argmax(axis=0)
            scores = _log_sum(log)
            total += float(scores.sum() if weight is None else scores @ weight[part])
        self.log_likelihood_ = total
        self.warnings_ = tuple(self._remarks(run, weight, zeros))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The likeliest component of each row: int64 (n,)."""
        data, _ = self._fitted_rows(X)
        out = np.empty(len(data), np.int64)
        for part, log in joint(data, self._parameters, self.family):
            out[part] = log.argmax(axis=0)
        return out

    def predict_proba(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, K), float64."""
        data, _ = self._fitted_rows(X)
        out = np.empty((len(data), len(self.rhos_)))
        for part, log in joint(data, self._parameters, self.family):
            share = np.exp(log - log.max(axis=0), dtype=np.float64)
            out[part] = (share / share.sum(axis=0)).T
        return out

    def score_samples(self, X: ArrayLike) -> Array:
        """Log density of each row under the mixture, nats, uniform measure: float64 (n,)."""
        data, _ = self._fitted_rows(X)
        out = np.empty(len(data))
        for part, log in joint(data, self._parameters, self.family):
            out[part] = _log_sum(log)
        return out

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log density of the rows; ``y`` is ignored."""
        return float(self.score_samples(X).mean())

    def component_log_density(self, X: ArrayLike, labels: ArrayLike) -> Array:
        """log f(x_i; theta of the component labels_i), without its weight: the terms of P1 (2.17). float64 (n,).

        Computed in float64 whatever the data's type.
        """
        data, _ = self._fitted_rows(X)
        chosen = _labels(labels, len(data), len(self.rhos_))
        cosine = np.empty(len(data))
        for part in stretches(*data.shape):
            rows = data[part].astype(np.float64)
            length = np.linalg.norm(rows, axis=1)
            cosine[part] = np.einsum("ij,ij->i", rows, self.means_[chosen[part]]) / np.where(length > 0, length, 1)
        return log_density(cosine, self.rhos_[chosen], data.shape[1], self.family)

    @property
    def n_parameters(self) -> int:
        """Free parameters: d per component (direction and rho) and the weights."""
        return int(self.means_.size + len(self.rhos_) - 1)

    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion, the lower the better (Schwarz 1978, doi:10.1214/aos/1176344136)."""
        return criteria(self, X)[1]

    def icl(self, X: ArrayLike) -> float:
        """BIC with twice the entropy of the posteriors added: prefers clusters apart.

        Biernacki, Celeux and Govaert 2000, doi:10.1109/34.865189.
        """
        return criteria(self, X)[2]

    def _check(self, n: int, d: int) -> None:
        exponents(self.family, d)
        if self.start not in STARTS:
            raise UnknownNameError("start", self.start, STARTS)
        if self.copies not in COPIES:
            raise UnknownNameError("way to count copies", self.copies, COPIES)
        if self.n_components < 1:
            raise UsageError(f"n_components must be at least 1, got {self.n_components}")
        if self.n_components > n:
            raise UsageError(f"n_components must be at most the number of rows, {n}; got {self.n_components}")
        for name, low in (("restarts", 1), ("max_iter", 1), ("min_size", 0), ("tol", 0), ("batch_size", 1)):
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise UsageError(f"{name} must be at least {low}, got {value}")
        if not 0 <= self.min_weight <= 1:
            raise UsageError(f"min_weight must lie between 0 and 1, got {self.min_weight}")
        if self.max_rho is not None and not 0 < self.max_rho < 1:
            raise UsageError(f"max_rho must lie between 0 and 1, got {self.max_rho}")

    def _cap(self, dtype: np.dtype[Any]) -> float:
        return NEAR_ONE[dtype.name] if self.max_rho is None else min(self.max_rho, 1 - 1e-12)

    def _weight(self, X: Array, zeros: Array) -> Array | None:
        weight = shares(X) if self.copies == "once" else None
        if not zeros.any():
            return weight
        return np.where(zeros, 0.0, 1.0 if weight is None else weight)

    def _fit(self, X: Array, weight: Array | None, labels: Array | None) -> Climb:
        n, k, cap = len(X), self.n_components, self._cap(X.dtype)

        def run(rows: Array, counts: Array | None, start: Array, *, whole: bool) -> Climb:
            return self._climb(rows, counts, from_labels(rows, start, k, self.family, cap, counts), whole=whole)

        if labels is not None:
            return run(X, weight, labels, whole=True)
        size = max(SAMPLE, 50 * k)
        some, counts = X, weight
        if n > size:
            chosen = np.sort(np.random.default_rng([self.seed, 0]).choice(n, size, replace=False))
            some, counts = X[chosen], None if weight is None else weight[chosen]
        best: tuple[tuple[int, float], Climb] | None = None
        for i in range(self.restarts):
            rng = np.random.default_rng([self.seed, 1, i])
            soft = self.start == "soft" or (self.start == "both" and i % 2 == 1)
            first = soft_labels(len(some), k, rng) if soft else spread_labels(some, k, rng, counts)
            result = run(some, counts, first, whole=False)
            key = (int(self._at_cap(result.parameters, cap).sum()), -result.trace[-1])
            if best is None or key < best[0]:
                best = (key, result)
        assert best is not None
        if n <= size and not self._batched(n):
            return best[1]
        last = self._climb(X, weight, best[1].parameters, whole=True)
        return replace(last, dropped=last.dropped + best[1].dropped, merged=last.merged + best[1].merged)

    def _climb(self, X: Array, weight: Array | None, start: Parameters, *, whole: bool) -> Climb:
        total = float(len(X) if weight is None else weight.sum())
        limits = Limits(
            max_iter=self.max_iter,
            tol=max(self.tol, 5e-7) if X.dtype == np.float32 else self.tol,
            smallest=max(self.min_weight * total, self.min_size, LEAST),
            max_rho=self._cap(X.dtype),
        )
        if whole and self.batch_size is not None and self._batched(len(X)):
            rng = np.random.default_rng([self.seed, 2])
            return stepwise(X, start, self.family, limits, rng, self.batch_size, weight)
        return climb(X, start, self.family, limits, weight)

    def _batched(self, n: int) -> bool:
        return self.batch_size is not None and self.batch_size < n

    def _at_cap(self, parameters: Parameters, cap: float) -> Array:
        return np.asarray(1 - parameters.rhos <= 2 * (1 - cap))

    def _remarks(self, run: Climb, weight: Array | None, zeros: Array) -> Iterator[str]:
        k, d = self.means_.shape
        total = float(len(zeros) if weight is None else weight.sum())
        again = len(zeros) - int(zeros.sum()) - round(total)
        if zeros.any():
            yield f"{int(zeros.sum())} of {len(zeros)} rows are zero; they count for nothing"
        if again:
            yield f"{again} of {len(zeros)} rows are copies of others; equal rows count once"
        if not run.converged:
            yield f"EM did not converge in {self.max_iter} iterations"
        if run.dropped:
            smallest = max(self.min_weight * total, self.min_size, LEAST)
            yield f"{run.dropped} components were dropped: their effective size fell below {smallest:g}"
        if run.merged:
            yield f"{run.merged} components were the same as others and were merged"
        if self.degenerate_.any():
            yield (
                f"{int(self.degenerate_.sum())} of {k} components have their concentration at its cap: they hold "
                "(nearly) one point only, or the likelihood is unbounded there; utility says nothing about them"
            )
        few = int((self.weights_ * total < d).sum())
        if self.family == "pkbd" and few:
            yield (
                f"{few} of {k} components have fewer effective points than dimensions ({d}): "
                "the likelihood of pkbd is unbounded there and the fit a local maximum; spcauchy has no such limit"
            )

    @property
    def _parameters(self) -> Parameters:
        return Parameters(self.weights_, self.means_, self.rhos_)

    def _fitted_rows(self, X: ArrayLike) -> tuple[Array, Array]:
        if not hasattr(self, "means_"):
            raise UsageError("this mixture is not fitted yet; call fit first")
        data, zeros = unit_rows(X, self.dtype)
        if data.shape[1] != self.means_.shape[1]:
            raise UsageError(f"rows must have {self.means_.shape[1]} columns, got {data.shape[1]}")
        return data, zeros


def criteria(mixture: SphericalMixture, X: ArrayLike) -> tuple[float, float, float]:
    """(log-likelihood, BIC, ICL) of a fitted mixture on ``X``, in one pass over it; copies count as in the fit."""
    data, zeros = mixture._fitted_rows(X)
    weight = mixture._weight(data, zeros)
    n = float(len(data) if weight is None else weight.sum())
    total = entropy = 0.0
    for part, log in joint(data, mixture._parameters, mixture.family):
        scores = _log_sum(log)
        log -= scores.astype(log.dtype)
        mixed = -(np.exp(log) * np.maximum(log, -1e4)).sum(axis=0, dtype=np.float64)  # 0 log 0 is 0
        total += float(scores.sum() if weight is None else scores @ weight[part])
        entropy += float(mixed.sum() if weight is None else mixed @ weight[part])
    bic = -2 * total + mixture.n_parameters * float(np.log(n))
    return total, bic, bic + 2 * max(entropy, 0.0)


def _log_sum(log: Array) -> Array:
    top = log.max(axis=0)
    return np.asarray(top + np.log(np.exp(log - top).sum(axis=0)), np.float64)


def _labels(labels: ArrayLike, n: int, k: int) -> Array:
    found = np.asarray(labels)
    if found.shape != (n,) or not np.issubdtype(found.dtype, np.integer):
        raise UsageError(f"labels must be {n} integers, got an array of shape {found.shape} of {found.dtype}")
    if found.min() < 0 or found.max() >= k:
        raise UsageError(f"labels must lie between 0 and {k - 1}, got {found.min()} to {found.max()}")
    return found.astype(np.int64, copy=False)

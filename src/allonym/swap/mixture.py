"""Mixtures of directions: clusters of unit vectors, with a density for every one (P1 2.2).

Follows scikit-learn's manner: parameters in the constructor, results in attributes with a trailing underscore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
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
from allonym.swap.shards import ALONE, SIZE, Here, Rows, Shard, Spread, added, one_thread

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
        shard_size: rows whose sums are made apart from others', see :mod:`allonym.swap.shards`. With the same one the
            same fit comes out, to the last bit, however many threads or machines work on it.

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
        shard_size: int = SIZE,
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
        self.shard_size = shard_size

    def fit(self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None) -> SphericalMixture:
        """Fit to the rows of ``X`` (n, d), which are scaled to unit length where they are not; ``y`` is ignored.

        Rows of zeros have no direction; they count for nothing.

        Args:
            labels: (n,) integers from 0: start from these instead of random starts.

        Raises:
            UsageError: a setting is out of range, there is no row, or more components are asked for than rows.
            DataError: a value is not finite, or every row is zero.
        """
        return self.fit_rows(self.rows(X), labels=labels)

    def rows(self, X: ArrayLike, spread: Spread | None = None) -> Rows:
        """The rows of ``X`` as :meth:`fit` takes them: unit length, weighted as ``copies`` says, in shards.

        Args:
            spread: who works on them; None: threads of this process, where it is worth while.
        """
        data, zeros = unit_rows(X, self.dtype)
        if not self.shard_size >= 1:
            raise UsageError(f"shard_size must be at least 1, got {self.shard_size}")
        here = Here(1 if data.size <= ALONE else 0)
        return Rows(data, self._weight(data, zeros), self.shard_size, spread or here, int(zeros.sum()))

    def fit_rows(
        self, rows: Rows, *, labels: ArrayLike | None = None, runs: Iterator[Climb] | None = None
    ) -> SphericalMixture:
        """:meth:`fit` to rows as :meth:`rows` gives them.

        Args:
            runs: what became of the starts, where :func:`starts` was called before for several mixtures.
        """
        n, d = rows.X.shape
        self._check(n, d)
        if rows.zeros == n:
            raise DataError("a mixture needs directions; all rows are zero")
        start = None if labels is None else _labels(labels, n, self.n_components)
        with one_thread():
            run = self._fit(rows, start, runs)
        order = np.lexsort((np.arange(len(run.parameters.rhos)), -run.parameters.weights))
        found = run.parameters.take(order)
        self.n_features_in_ = d
        self.weights_, self.means_, self.rhos_ = found.weights, found.means, found.rhos
        self.trace_ = np.array(run.trace)
        self.n_iter_ = len(run.trace)
        self.converged_ = run.converged
        self.degenerate_ = self._at_cap(found, self._cap(rows.X.dtype))
        self.cosines_ = mean_cosine(found.rhos, d, self.family)
        with one_thread():
            parts = rows.each(_judged, found, self.family)
        self.labels_ = np.concatenate([part for part, _ in parts])
        self.log_likelihood_ = float(added([total for _, total in parts]))
        self.warnings_ = tuple(self._remarks(run, rows))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The likeliest component of each row: int64 (n,)."""
        data, _ = self._fitted_rows(X)
        out = np.empty(len(data), np.int64)
        with one_thread():
            for part, log in joint(data, self._parameters, self.family):
                out[part] = log.argmax(axis=0)
        return out

    def predict_proba(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, K), float64."""
        data, _ = self._fitted_rows(X)
        out = np.empty((len(data), len(self.rhos_)))
        with one_thread():
            for part, log in joint(data, self._parameters, self.family):
                share = np.exp(log - log.max(axis=0), dtype=np.float64)
                out[part] = (share / share.sum(axis=0)).T
        return out

    def score_samples(self, X: ArrayLike) -> Array:
        """Log density of each row under the mixture, nats, uniform measure: float64 (n,)."""
        data, _ = self._fitted_rows(X)
        out = np.empty(len(data))
        with one_thread():
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

    def _fit(self, rows: Rows, labels: Array | None, runs: Iterator[Climb] | None) -> Climb:
        cap = self._cap(rows.X.dtype)
        if labels is not None:
            start = from_labels(rows, labels, self.n_components, self.family, cap)
            return self._climb(rows, start, whole=True)
        mine = islice(starts(rows, [self]) if runs is None else runs, self.restarts)
        best = min(mine, key=lambda run: (int(self._at_cap(run.parameters, cap).sum()), -run.trace[-1]))
        if len(rows) <= self._sample and not self._batched(len(rows)):
            return best
        last = self._climb(rows, best.parameters, whole=True)
        return replace(last, dropped=last.dropped + best.dropped, merged=last.merged + best.merged)

    @property
    def _sample(self) -> int:
        return max(SAMPLE, 50 * self.n_components)

    def _start_run(self, some: Rows, number: int) -> Climb:
        # EM on the sample of the rows on which starts compete, from the start of this number.
        k, cap = self.n_components, self._cap(some.X.dtype)
        rng = np.random.default_rng([self.seed, 1, number])
        soft = self.start == "soft" or (self.start == "both" and number % 2 == 1)
        first = soft_labels(len(some), k, rng) if soft else spread_labels(some.X, k, rng, some.weight)
        return self._climb(some, from_labels(some, first, k, self.family, cap), whole=False)

    def _climb(self, rows: Rows, start: Parameters, *, whole: bool) -> Climb:
        single = rows.X.dtype == np.float32
        limits = Limits(
            max_iter=self.max_iter,
            tol=max(self.tol, 5e-7) if single else self.tol,
            smallest=max(self.min_weight * rows.whole, self.min_size, LEAST),
            max_rho=self._cap(rows.X.dtype),
        )
        if whole and self.batch_size is not None and self._batched(len(rows)):
            rng = np.random.default_rng([self.seed, 2])
            return stepwise(rows, start, self.family, limits, rng, self.batch_size)
        return climb(rows, start, self.family, limits)

    def _batched(self, n: int) -> bool:
        return self.batch_size is not None and self.batch_size < n

    def _at_cap(self, parameters: Parameters, cap: float) -> Array:
        return np.asarray(1 - parameters.rhos <= 2 * (1 - cap))

    def _remarks(self, run: Climb, rows: Rows) -> Iterator[str]:
        k, d = self.means_.shape
        total = rows.whole
        again = len(rows) - rows.zeros - round(total)
        if rows.zeros:
            yield f"{rows.zeros} of {len(rows)} rows are zero; they count for nothing"
        if again:
            yield f"{again} of {len(rows)} rows are copies of others; equal rows count once"
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


def starts(rows: Rows, mixtures: Sequence[SphericalMixture]) -> Iterator[Climb]:
    """What becomes of all starts of mixtures of one seed, mixture by mixture; see :meth:`SphericalMixture.fit_rows`.

    No run needs another, so whoever works on the rows may work on several at the same time.
    """
    each: list[Iterable[Climb]] = []
    for size, group in groupby(mixtures, key=lambda m: m._sample):
        some, of_size = rows.alone(), list(group)
        if len(rows) > size:
            rng = np.random.default_rng([of_size[0].seed, 0])
            some = rows.take(np.sort(rng.choice(len(rows), size, replace=False))).alone()
        items = [(mixture, i) for mixture in of_size for i in range(mixture.restarts)]
        each.append(rows.spread.each(_started, some, items))
    return chain.from_iterable(each)


def _started(some: Rows, item: tuple[SphericalMixture, int]) -> Climb:
    mixture, number = item
    return mixture._start_run(some, number)


def criteria(mixture: SphericalMixture, X: ArrayLike | Rows) -> tuple[float, float, float]:
    """(log-likelihood, BIC, ICL) of a fitted mixture on ``X``, in one pass over it; copies count as in the fit."""
    if not isinstance(X, Rows):
        data, zeros = mixture._fitted_rows(X)
        X = Rows(data, mixture._weight(data, zeros), mixture.shard_size)
    with one_thread():
        total, entropy = X.total(_told, mixture._parameters, mixture.family).tolist()
    bic = -2 * total + mixture.n_parameters * float(np.log(X.whole))
    return total, bic, bic + 2 * max(entropy, 0.0)


# What is done with a shard


def _judged(shard: Shard, parameters: Parameters, family: str) -> tuple[Array, float]:
    """The likeliest component of each row, and the log-likelihood."""
    labels = np.empty(len(shard.X), np.int64)
    total = 0.0
    for part, log in joint(shard.X, parameters, family):
        labels[part] = log.argmax(axis=0)
        scores = _log_sum(log)
        total += float(scores.sum() if shard.weight is None else scores @ shard.weight[part])
    return labels, total


def _told(shard: Shard, parameters: Parameters, family: str) -> Array:
    """(2,): log-likelihood, and entropy of the posteriors."""
    total = entropy = 0.0
    for part, log in joint(shard.X, parameters, family):
        scores = _log_sum(log)
        log -= scores.astype(log.dtype)
        mixed = -(np.exp(log) * np.maximum(log, -1e4)).sum(axis=0, dtype=np.float64)  # 0 log 0 is 0
        weight = None if shard.weight is None else shard.weight[part]
        total += float(scores.sum() if weight is None else scores @ weight)
        entropy += float(mixed.sum() if weight is None else mixed @ weight)
    return np.array([total, entropy])


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

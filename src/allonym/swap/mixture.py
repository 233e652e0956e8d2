"""Mixtures of directions: clusters of unit vectors, with a density for every one (P1 2.2).

The class follows scikit-learn: parameters in the constructor, results in attributes with a trailing underscore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain, groupby, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.swap import em
from allonym.swap.density import Array, compute_log_density, compute_mean_cosine, get_density_exponents
from allonym.swap.em import LEAST, EmRun, Limits, Parameters, estimate_from_labels, iterate_log_joint_densities
from allonym.swap.rows import (
    ALONE,
    SIZE,
    Rows,
    Shard,
    Spread,
    ThisProcess,
    compute_copy_weights,
    iterate_row_slices,
    limit_blas_to_one_thread,
    sum_along_tree,
    to_unit_rows,
)

STARTS = ("both", "soft", "k-means++")
COPIES = ("once", "count")
SAMPLE = 20_000
"""Restarts compete on a sample of at most this many rows, or 50 per component; the best goes on with all rows."""

NEAR_ONE = {"float64": 1 - 1e-6, "float32": 1 - 3e-4}
"""The cap of rho: nearer to 1, points of that precision cannot be told apart."""


@dataclass(eq=False, repr=False)
class SphericalMixture(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of spherical Cauchy or Poisson-kernel-based distributions on the unit sphere, fitted by EM.

    The likelihood of either family can grow without bound where points coincide: a component then has its ``rho`` at
    the cap and is flagged in ``degenerate_``. For pkbd any component with fewer effective points than dimensions can
    do so; spcauchy only where half of a component's weight lies on one point, which makes it the default.

    Args:
        n_components: clusters to start with; fewer may remain.
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
        shard_size: rows that are summed separately, see :mod:`allonym.swap.rows`. The same size gives the same fit, to
            the last bit, for any number of threads or machines.

    Attributes:
        weights_ (K,), means_ (K, d), rhos_ (K,): the components, the heaviest first; float64.
        labels_ (n,): the likeliest component of each row of the data fitted.
        log_likelihood_: of the data (with the weights of copies) at these parameters, nats against the uniform
            distribution.
        n_iter_, converged_: of the best run. trace_: log-likelihood at each of its expectation steps.
        degenerate_ (K,): rho at the cap. cosines_ (K,): expected cosine of a member to the mean direction.
        warnings_: remarks as sentences.
    """

    n_components: int = 10
    _: KW_ONLY
    family: str = "spcauchy"
    min_weight: float = 0.0
    min_size: float = 2.0
    start: str = "both"
    restarts: int = 6
    max_iter: int = 300
    tol: float = 1e-7
    max_rho: float | None = None
    seed: int = 0
    copies: str = "once"
    dtype: str | None = None
    batch_size: int | None = None
    shard_size: int = SIZE

    def fit(self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None) -> SphericalMixture:
        """Fit to the rows of ``X`` (n, d), which are scaled to unit length if necessary; ``y`` is ignored.

        Rows of zeros have no direction; they have no weight.

        Args:
            labels: (n,) integers from 0: start from these instead of random starts.

        Raises:
            UsageError: a setting is out of range, there is no row, or more components are asked for than rows.
            DataError: a value is not finite, or every row is zero.
        """
        return self.fit_rows(self.rows(X), labels=labels)

    def rows(self, X: ArrayLike, spread: Spread | None = None) -> Rows:
        """Return the rows of ``X`` as :meth:`fit` takes them: of unit length, weighted by ``copies``, in shards.

        Args:
            spread: the workers; None: threads of this process, if there are enough data.
        """
        data, zeros = to_unit_rows(X, self.dtype)
        if not self.shard_size >= 1:
            raise UsageError(f"shard_size must be at least 1, got {self.shard_size}")
        here = ThisProcess(1 if data.size <= ALONE else 0)
        return Rows(data, self._weigh_rows(data, zeros), self.shard_size, spread or here, int(zeros.sum()))

    def fit_rows(
        self, rows: Rows, *, labels: ArrayLike | None = None, runs: Iterator[EmRun] | None = None
    ) -> SphericalMixture:
        """Fit to rows that :meth:`rows` returned; see :meth:`fit`.

        Args:
            runs: the runs of this mixture's starts, if :func:`run_em_from_all_starts` was called for several mixtures.
        """
        n, d = rows.X.shape
        self._check_parameters(n, d)
        if rows.zeros == n:
            raise DataError("a mixture needs directions; all rows are zero")
        start = None if labels is None else _check_labels(labels, n, self.n_components)
        with limit_blas_to_one_thread():
            run = self._run_em_from_best_start(rows, start, runs)
        order = np.lexsort((np.arange(len(run.parameters.rhos)), -run.parameters.weights))
        parameters = run.parameters.select_components(order)
        self.n_features_in_ = d
        self.weights_, self.means_, self.rhos_ = parameters.weights, parameters.means, parameters.rhos
        self.trace_ = np.array(run.trace)
        self.n_iter_ = len(run.trace)
        self.converged_ = run.converged
        self.degenerate_ = _mark_capped_components(parameters, self._get_max_rho(rows.X.dtype))
        self.cosines_ = compute_mean_cosine(parameters.rhos, d, self.family)
        self.labels_, self.log_likelihood_, _ = _label_and_score_rows(rows, parameters, self.family)
        self.warnings_ = tuple(self._list_warnings(run, rows))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the likeliest component of each row: int64 (n,)."""
        return self._apply_to_log_densities(X, lambda log: log.argmax(axis=0))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return posterior probabilities (n, K), float64."""

        def normalise(log: Array) -> Array:
            share = np.exp(log - log.max(axis=0), dtype=np.float64)
            return np.asarray((share / share.sum(axis=0)).T)

        return self._apply_to_log_densities(X, normalise)

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the log density of each row under the mixture, nats, uniform measure: float64 (n,)."""
        return self._apply_to_log_densities(X, _compute_log_sum_exp)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density of the rows; ``y`` is ignored."""
        return float(self.score_samples(X).mean())

    def component_log_density(self, X: ArrayLike, labels: ArrayLike) -> Array:
        """Return log f(x_i; theta of the component labels_i), without its weight: the terms of P1 (2.17), (n,).

        The computation is in float64 whatever the data's type.
        """
        data, _ = self._make_unit_rows(X)
        components = _check_labels(labels, len(data), len(self.rhos_))
        cosine = np.empty(len(data))
        for block in iterate_row_slices(*data.shape):
            rows = data[block].astype(np.float64)
            length = np.linalg.norm(rows, axis=1)
            product = np.einsum("ij,ij->i", rows, self.means_[components[block]])
            cosine[block] = product / np.where(length > 0, length, 1)
        return compute_log_density(cosine, self.rhos_[components], data.shape[1], self.family)

    def _apply_to_log_densities(self, X: ArrayLike, compute: Callable[[Array], Array]) -> Array:
        data, _ = self._make_unit_rows(X)
        with limit_blas_to_one_thread():
            blocks = iterate_log_joint_densities(data, self._parameters, self.family)
            return np.concatenate([compute(log) for _, log in blocks])

    @property
    def n_parameters(self) -> int:
        """Free parameters: d per component (direction and rho) and the weights."""
        return int(self.means_.size + len(self.rhos_) - 1)

    def bic(self, X: ArrayLike) -> float:
        """Return the Bayesian information criterion; less is better (Schwarz 1978, doi:10.1214/aos/1176344136)."""
        return compute_criteria(self, X)[1]

    def icl(self, X: ArrayLike) -> float:
        """Return the BIC plus twice the entropy of the posteriors, which prefers well separated clusters.

        Biernacki, Celeux and Govaert 2000, doi:10.1109/34.865189.
        """
        return compute_criteria(self, X)[2]

    def _check_parameters(self, n: int, d: int) -> None:
        get_density_exponents(self.family, d)
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

    def _get_max_rho(self, dtype: np.dtype[Any]) -> float:
        return NEAR_ONE[dtype.name] if self.max_rho is None else min(self.max_rho, 1 - 1e-12)

    def _weigh_rows(self, X: Array, zeros: Array) -> Array | None:
        weight = compute_copy_weights(X) if self.copies == "once" else None
        if not zeros.any():
            return weight
        return np.where(zeros, 0.0, 1.0 if weight is None else weight)

    def _run_em_from_best_start(self, rows: Rows, labels: Array | None, runs: Iterator[EmRun] | None) -> EmRun:
        cap = self._get_max_rho(rows.X.dtype)
        if labels is not None:
            start = estimate_from_labels(rows, labels, self.n_components, self.family, cap)
            return self._run_em(rows, start, final=True)
        started = islice(run_em_from_all_starts(rows, [self]) if runs is None else runs, self.restarts)
        best = min(started, key=lambda run: (_mark_capped_components(run.parameters, cap).sum(), -run.trace[-1]))
        if len(rows) <= min(self._sample_size, self.batch_size or len(rows)):
            return best
        last = self._run_em(rows, best.parameters, final=True)
        return replace(last, dropped=last.dropped + best.dropped, merged=last.merged + best.merged)

    @property
    def _sample_size(self) -> int:
        return max(SAMPLE, 50 * self.n_components)

    def _run_em_from_random_start(self, sample: Rows, number: int) -> EmRun:
        # EM on the sample of the rows on which starts compete, from the start of this number.
        k, cap = self.n_components, self._get_max_rho(sample.X.dtype)
        rng = np.random.default_rng([self.seed, 1, number])
        if self.start == "soft" or (self.start == "both" and number % 2 == 1):
            labels = em.draw_random_labels(len(sample), k, rng)
        else:
            labels = em.draw_kmeans_labels(sample.X, k, rng, sample.weight)
        return self._run_em(sample, estimate_from_labels(sample, labels, k, self.family, cap), final=False)

    def _run_em(self, rows: Rows, start: Parameters, *, final: bool) -> EmRun:
        single = rows.X.dtype == np.float32
        limits = Limits(
            max_iter=self.max_iter,
            tol=max(self.tol, 5e-7) if single else self.tol,
            smallest=self._get_smallest_size(rows),
            max_rho=self._get_max_rho(rows.X.dtype),
        )
        if final and self.batch_size is not None and self.batch_size < len(rows):
            rng = np.random.default_rng([self.seed, 2])
            return em.run_stepwise_em(rows, start, self.family, limits, rng, self.batch_size)
        return em.run_em(rows, start, self.family, limits)

    def _get_smallest_size(self, rows: Rows) -> float:
        return max(self.min_weight * rows.total_weight, self.min_size, LEAST)

    def _list_warnings(self, run: EmRun, rows: Rows) -> Iterator[str]:
        k, d = self.means_.shape
        total = rows.total_weight
        copies = len(rows) - rows.zeros - round(total)
        if rows.zeros:
            yield f"{rows.zeros} of {len(rows)} rows are zero; they count for nothing"
        if copies:
            yield f"{copies} of {len(rows)} rows are copies of others; equal rows count once"
        if not run.converged:
            yield f"EM did not converge in {self.max_iter} iterations"
        if run.dropped:
            smallest = self._get_smallest_size(rows)
            yield f"{run.dropped} components were dropped: their effective size fell below {smallest:g}"
        if run.merged:
            yield f"{run.merged} components were the same as others and were merged"
        if self.degenerate_.any():
            yield (
                f"{int(self.degenerate_.sum())} of {k} components have their concentration at its cap: they hold "
                "(nearly) one point only, or the likelihood is unbounded there; utility says nothing about them"
            )
        sparse = int((self.weights_ * total < d).sum())
        if self.family == "pkbd" and sparse:
            yield (
                f"{sparse} of {k} components have fewer effective points than dimensions ({d}): "
                "the likelihood of pkbd is unbounded there and the fit a local maximum; spcauchy has no such limit"
            )

    @property
    def _parameters(self) -> Parameters:
        return Parameters(self.weights_, self.means_, self.rhos_)

    def _make_unit_rows(self, X: ArrayLike) -> tuple[Array, Array]:
        if not hasattr(self, "means_"):
            raise UsageError("this mixture is not fitted yet; call fit first")
        data, zeros = to_unit_rows(X, self.dtype)
        if data.shape[1] != self.means_.shape[1]:
            raise UsageError(f"rows must have {self.means_.shape[1]} columns, got {data.shape[1]}")
        return data, zeros


def _mark_capped_components(parameters: Parameters, cap: float) -> Array:
    return np.asarray(1 - parameters.rhos <= 2 * (1 - cap))


def run_em_from_all_starts(rows: Rows, mixtures: Sequence[SphericalMixture]) -> Iterator[EmRun]:
    """Run EM from all starts of mixtures of one seed, mixture by mixture; see :meth:`SphericalMixture.fit_rows`.

    No run needs another, so the workers may do several at the same time.
    """
    runs: list[Iterable[EmRun]] = []
    for size, group in groupby(mixtures, key=lambda m: m._sample_size):
        sample, same_size = rows.without_workers(), list(group)
        if len(rows) > size:
            rng = np.random.default_rng([same_size[0].seed, 0])
            sample = rows.select_rows(np.sort(rng.choice(len(rows), size, replace=False))).without_workers()
        items = [(mixture, i) for mixture in same_size for i in range(mixture.restarts)]
        runs.append(rows.spread.map_items(_run_numbered_start, sample, items))
    return chain.from_iterable(runs)


def _run_numbered_start(sample: Rows, item: tuple[SphericalMixture, int]) -> EmRun:
    mixture, number = item
    return mixture._run_em_from_random_start(sample, number)


def compute_criteria(mixture: SphericalMixture, X: ArrayLike | Rows) -> tuple[float, float, float]:
    """Return (log-likelihood, BIC, ICL) of a fitted mixture on ``X``, in one pass; copies count as in the fit."""
    if not isinstance(X, Rows):
        data, zeros = mixture._make_unit_rows(X)
        X = Rows(data, mixture._weigh_rows(data, zeros), mixture.shard_size)
    _, total, entropy = _label_and_score_rows(X, mixture._parameters, mixture.family)
    bic = -2 * total + mixture.n_parameters * float(np.log(X.total_weight))
    return total, bic, bic + 2 * max(entropy, 0.0)


def _label_and_score_rows(rows: Rows, parameters: Parameters, family: str) -> tuple[Array, float, float]:
    """Return the likeliest component of each row, the log-likelihood, and the entropy of the posteriors."""
    with limit_blas_to_one_thread():
        labels, sums = zip(*rows.map_shards(_label_and_score_shard, parameters, family), strict=True)
    total, entropy = sum_along_tree(sums).tolist()
    return np.concatenate(labels), total, entropy


def _label_and_score_shard(shard: Shard, parameters: Parameters, family: str) -> tuple[Array, Array]:
    """Return the likeliest component of each row, and (2,): log-likelihood, and entropy of the posteriors."""
    labels = np.empty(len(shard.X), np.int64)
    total = entropy = 0.0
    for block, log in iterate_log_joint_densities(shard.X, parameters, family):
        labels[block] = log.argmax(axis=0)
        scores = _compute_log_sum_exp(log)
        log -= scores.astype(log.dtype)
        mixed = -(np.exp(log) * np.maximum(log, -1e4)).sum(axis=0, dtype=np.float64)  # 0 log 0 is 0
        weight = None if shard.weight is None else shard.weight[block]
        total += float(scores.sum() if weight is None else scores @ weight)
        entropy += float(mixed.sum() if weight is None else mixed @ weight)
    return labels, np.array([total, entropy])


def _compute_log_sum_exp(log_densities: Array) -> Array:
    top = log_densities.max(axis=0)
    return np.asarray(top + np.log(np.exp(log_densities - top).sum(axis=0)), np.float64)


def _check_labels(labels: ArrayLike, n: int, k: int) -> Array:
    array = np.asarray(labels)
    if array.shape != (n,) or not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"labels must be {n} integers, got an array of shape {array.shape} of {array.dtype}")
    if array.min() < 0 or array.max() >= k:
        raise UsageError(f"labels must lie between 0 and {k - 1}, got {array.min()} to {array.max()}")
    return array.astype(np.int64, copy=False)

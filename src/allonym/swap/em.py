"""Expectation and maximisation for mixtures on the sphere, in blocks of rows that fit the cache.

-log w is convex in w, so its tangent at the present parameters minorises it; the minorant's maximum is one MM step
(Hunter and Lange 2004, doi:10.1198/0003130042836)::

    v_ik = p_ik / w_ik,   r_k = sum_i v_ik x_i,   B_k = sum_i p_ik,   C_k = sum_i v_ik
    mu_k = r_k / |r_k|,   rho_k: the root in [0, 1) of  a B rho / (1 - rho^2) + b (C rho - |r|)

The likelihood never falls. An iteration is two matrix products per block of rows. Its sums are additive: over the
blocks of a shard in turn, over shards along a tree (:mod:`allonym.swap.rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from allonym.swap.density import Array, Exponents, get_density_exponents
from allonym.swap.rows import Rows, Shard, iterate_row_slices

LEAST = 1e-3
"""A component of a smaller effective size is always dropped."""

SAME = 1e-3
"""Components nearer than this (see :func:`map_to_first_equal_component`) are merged."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """weights (K,), means (K, d) with unit rows, rhos (K,); all float64."""

    weights: Array
    means: Array
    rhos: Array

    def select_components(self, selection: Array) -> Parameters:
        """Return some of the components, with weights that sum to 1."""
        weights = self.weights[selection]
        return Parameters(weights / weights.sum(), self.means[selection], self.rhos[selection])


@dataclass(frozen=True, slots=True)
class Sums:
    """The result of an expectation step: log-likelihood of the parameters it used, B (K,), C (K,), r (K, d)."""

    log_likelihood: float
    size: Array
    shrunk: Array
    pull: Array

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.size, self.shrunk, self.pull

    def __add__(self, other: Sums) -> Sums:
        arrays = (a + b for a, b in zip(self._arrays, other._arrays, strict=True))
        return Sums(self.log_likelihood + other.log_likelihood, *arrays)

    def select_components(self, selection: Array) -> Sums:
        """Return the sums of some of the components."""
        return Sums(self.log_likelihood, *(a[selection] for a in self._arrays))

    def blend(self, other: Sums, weight: float) -> Sums:
        """Return (1 - weight) of these sums plus ``weight`` of the other ones."""
        arrays = (a + weight * (b - a) for a, b in zip(self._arrays, other._arrays, strict=True))
        return Sums(other.log_likelihood, *arrays)

    def divide(self, divisor: float) -> Sums:
        """Divide everything but the log-likelihood by a number, the weight of the rows."""
        return Sums(self.log_likelihood, *(a / divisor for a in self._arrays))

    def merge_components(self, first_equal: Array) -> Sums:
        """Add up components that are the same, as :func:`map_to_first_equal_component` reports them."""
        components, group = np.unique(first_equal, return_inverse=True)
        totals = [np.zeros((len(components), *a.shape[1:])) for a in self._arrays]
        for total, values in zip(totals, self._arrays, strict=True):
            np.add.at(total, group, values)
        return Sums(self.log_likelihood, *totals)


def _compute_scale(parameters: Parameters, exponent: Exponents) -> Array:
    # s_k with log pi_k + log f_k = -b log(s_k w_k): the constants go into the matrix product.
    a, b = exponent
    rho = parameters.rhos
    return np.asarray(np.exp(-(np.log(parameters.weights) + a * (np.log1p(-rho) + np.log1p(rho))) / b))


def _iterate_scaled_distances(X: Array, parameters: Parameters, family: str) -> Iterator[tuple[slice, Array, Array]]:
    # Per block s_k w_ik and its logarithm, (K, rows) each; the next block overwrites both.
    n, d = X.shape
    rho = parameters.rhos
    k = len(rho)
    scale = _compute_scale(parameters, get_density_exponents(family, d))
    directions = np.ascontiguousarray((-2 * scale * rho * parameters.means.T), X.dtype)
    centre = (scale * (1 + rho**2)).astype(X.dtype)[:, None]
    sharp = np.flatnonzero(rho > 0.99)
    means = parameters.means.astype(X.dtype)
    small = scale * 1e6 * np.finfo(X.dtype).eps
    rows = next(iterate_row_slices(n, d, k)).stop
    product, w_space, log_space = (np.empty(k * rows, X.dtype) for _ in range(3))
    for block in iterate_row_slices(n, d, k):
        rows = block.stop - block.start
        raw = product[: k * rows].reshape(rows, k)
        w, log = w_space[: k * rows].reshape(k, rows), log_space[: k * rows].reshape(k, rows)
        # Components outside: reductions over them run along the rows. Which product is faster depends on the type.
        if X.dtype == np.float64:
            np.matmul(directions.T, X[block].T, out=w)
            w += centre
        else:
            np.matmul(X[block], directions, out=raw)
            np.add(raw.T, centre, out=w)
        for i in sharp:  # near such a mean w is a small difference of large numbers: 2 - 2 t is |x - mu|^2
            near = np.flatnonzero(w[i] < small[i])
            gap = X[block][near] - means[i]
            w[i, near] = scale[i] * ((1 - rho[i]) ** 2 + rho[i] * np.einsum("ij,ij->i", gap, gap))
        np.log(w, out=log)
        yield block, w, log


def iterate_log_joint_densities(X: Array, parameters: Parameters, family: str) -> Iterator[tuple[slice, Array]]:
    """Yield per block of rows its slice and log pi_k + log f_k(x_i) as ``(K, rows)``, overwritten by the next block."""
    b = get_density_exponents(family, X.shape[1])[1]
    for block, _, log in _iterate_scaled_distances(X, parameters, family):
        log *= X.dtype.type(-b)
        yield block, log


def compute_expectation_sums(shard: Shard, parameters: Parameters, family: str, labels: Array | None = None) -> Sums:
    """Run one expectation step over a shard. Posteriors are never stored.

    ``labels``, those of all rows, replace the posteriors by .9 on each row's label and .1 spread over the others (a
    start). Products are in the data's precision, sums over blocks in float64.
    """
    X, (k, d) = shard.X, parameters.means.shape
    exponent = get_density_exponents(family, d)
    minus = X.dtype.type(-exponent[1])
    size, shrunk, pull = np.zeros(k), np.zeros(k), np.zeros((k, d))
    total = 0.0
    for block, w, log in _iterate_scaled_distances(X, parameters, family):
        counts = None if shard.weight is None else shard.weight[block]
        if labels is None:
            low = log.min(axis=0)
            log -= low
            log *= minus
            share = np.exp(log, out=log)
            mass = share.sum(axis=0)
            score = np.log(mass, dtype=np.float64)
            score -= exponent[1] * low.astype(np.float64)
            total += float(score.sum() if counts is None else score @ counts)
            factor = np.divide(1 if counts is None else counts, mass).astype(X.dtype)
            size += share @ factor
            np.divide(share, w, out=w)
            w *= factor
        else:
            _fill_soft_labels(labels[shard.row_slice][block], log, counts)
            size += log.sum(axis=1)
            np.divide(log, w, out=w)
        shrunk += w.sum(axis=1)
        pull += w @ X[block]
    scale = _compute_scale(parameters, exponent)
    return Sums(total, size, shrunk * scale, pull * scale[:, None])


def _fill_soft_labels(labels: Array, out: Array, weight: Array | None) -> None:
    """Fill ``out`` (K, rows): .9 on each row's label, .1 / (K - 1) elsewhere, 1 where K = 1; times ``weight``."""
    k = len(out)
    out.fill(0.1 / (k - 1) if k > 1 else 1)
    out[labels, np.arange(len(labels))] = 0.9 if k > 1 else 1
    if weight is not None:
        out *= weight.astype(out.dtype)


def solve_concentration(size: Array, shrunk: Array, length: Array, exponent: Exponents, max_rho: float) -> Array:
    """Return the MM step's rho, at most ``max_rho``: the root of a B rho / (1 - rho^2) + b (C rho - |r|), by Newton.

    The function is convex and rises, and |r| / C lies right of its root, so Newton's steps from there cannot overshoot.
    """
    a, b = exponent
    rho = np.minimum(length / shrunk, max_rho)
    for _ in range(200):
        rest = (1 - rho) * (1 + rho)
        value = a * size * rho / rest + b * (shrunk * rho - length)
        slope = a * size * (1 + rho**2) / rest**2 + b * shrunk
        new = np.clip(rho - value / slope, 0, max_rho)
        if np.all(np.abs(new - rho) <= 1e-16 + 4e-16 * rho):
            break
        rho = new
    return np.asarray(new)


def _split_lengths_and_directions(pull: Array) -> tuple[Array, Array]:
    # Lengths (K,) and unit directions (K, d). Without a direction rho is 0, and any will do.
    length = np.linalg.norm(pull, axis=1)
    means = pull / np.where(length > 0, length, 1)[:, None]
    means[length == 0, 0] = 1
    return length, means


def run_maximisation_step(sums: Sums, family: str, max_rho: float) -> Parameters:
    """Return the parameters of one MM step."""
    length, means = _split_lengths_and_directions(sums.pull)
    rhos = solve_concentration(sums.size, sums.shrunk, length, get_density_exponents(family, means.shape[1]), max_rho)
    return Parameters(sums.size / sums.size.sum(), means, rhos)


def estimate_from_labels(rows: Rows, labels: Array, k: int, family: str, max_rho: float) -> Parameters:
    """Return parameters for labels 0..k-1: weighted mean directions, rho = min(|mean|, .95), then one MM step."""
    sums = rows.sum_shards(_sum_soft_labels, labels, k)
    length, means = _split_lengths_and_directions(sums.pull)
    rough = Parameters(sums.size / sums.size.sum(), means, np.minimum(length / sums.size, min(0.95, max_rho)))
    return run_maximisation_step(rows.sum_shards(compute_expectation_sums, rough, family, labels), family, max_rho)


def _sum_soft_labels(shard: Shard, labels: Array, k: int) -> Sums:
    """Return B and r of soft labels, without the shrinking that parameters bring."""
    X, shard_labels = shard.X, labels[shard.row_slice]
    size, pull = np.zeros(k), np.zeros((k, X.shape[1]))
    for block in iterate_row_slices(len(X), X.shape[1], k):
        soft = np.empty((k, block.stop - block.start), X.dtype)
        _fill_soft_labels(shard_labels[block], soft, None if shard.weight is None else shard.weight[block])
        size += soft.sum(axis=1)
        pull += soft @ X[block]
    return Sums(0.0, size, np.zeros(k), pull)


def draw_random_labels(n: int, k: int, rng: np.random.Generator) -> Array:
    """Return labels at random, every one of them in use."""
    return rng.permutation(np.arange(n) % k)


def draw_kmeans_labels(X: Array, k: int, rng: np.random.Generator, weight: Array | None = None) -> Array:
    """Return labels of the nearest of ``k`` rows that k-means++ draws (Arthur and Vassilvitskii 2007), by cosine."""
    n = len(X)
    counts = np.ones(n) if weight is None else weight
    best = np.full(n, -np.inf)
    labels = np.zeros(n, np.int64)
    chance = counts
    for j in range(k):
        ladder = np.cumsum(chance)
        centre = min(int(np.searchsorted(ladder, rng.random() * ladder[-1], "right")), n - 1)
        cosine = X @ X[centre]
        nearer = cosine > best
        labels[nearer] = j
        best[nearer] = cosine[nearer]
        gap = np.maximum(1 - best, 0) * counts
        chance = gap if gap.sum() > 1e-9 else counts  # all rows are centres already: any will do
    return labels


def mark_kept_components(size: Array, smallest: float) -> Array:
    """Return a mask of the components that stay: of those below ``smallest``, the smallest quarter goes at a time.

    Their points then strengthen the others; dropping all at once may leave one component only.
    """
    keep = np.ones(len(size), bool)
    below = int((size < smallest).sum())
    if below:
        dropped = min(max(-(-below // 4), int((size < LEAST).sum())), len(size) - 1)
        keep[np.argsort(size, kind="stable")[:dropped]] = False
    return keep


def _drop_small_components(sums: Sums, smallest: float, scale: float = 1.0) -> tuple[Sums, int]:
    # The sums of the components that stay, and how many go; ``scale`` turns mean sizes into sizes.
    keep = mark_kept_components(sums.size * scale, smallest)
    return (sums, 0) if keep.all() else (sums.select_components(keep), int((~keep).sum()))


def map_to_first_equal_component(parameters: Parameters) -> Array:
    """Return for each component the first one that is the same, (K,); all different: 0 to K - 1.

    Two are the same where d |psi_i - psi_j|^2 / (1 - 2 psi_i'psi_j + |psi_i|^2 |psi_j|^2) is below :data:`SAME`, with
    psi = rho mu: the squared Moebius distance, which times 2 d is about their Kullback-Leibler divergence (spcauchy).
    """
    psi = parameters.rhos[:, None] * parameters.means
    d = psi.shape[1]
    square = parameters.rhos**2
    first = np.arange(len(psi))
    for i in range(len(psi)):
        if first[i] == i:
            gap = ((psi[i:] - psi[i]) ** 2).sum(axis=1)
            # (1 - |a|^2)(1 - |b|^2) + |a - b|^2 = 1 - 2 a'b + |a|^2 |b|^2, without cancelling
            denominator = (1 - square[i]) * (1 - square[i:]) + gap
            same = np.flatnonzero(d * gap < SAME * denominator) + i
            first[same] = np.minimum(first[same], i)
    return first


@dataclass(frozen=True, slots=True)
class Limits:
    """When EM stops, the effective size below which a component is dropped, and the cap of rho."""

    max_iter: int
    tol: float
    smallest: float
    max_rho: float


@dataclass(frozen=True, slots=True)
class EmRun:
    """An EM run: its last parameters, the log-likelihood at each expectation step, how many components went."""

    parameters: Parameters
    trace: tuple[float, ...]
    converged: bool
    dropped: int = 0
    merged: int = 0


def run_em(rows: Rows, start: Parameters, family: str, limits: Limits) -> EmRun:
    """Run EM over all rows, at most ``max_iter`` steps, until a step changes the log-likelihood by less than ``tol`` of
    itself and a nat per row together.

    Components of an effective size below ``smallest`` are dropped; at convergence equal ones are merged.
    """
    parameters, total_weight = start, rows.total_weight
    trace: list[float] = []
    dropped = merged = 0
    previous: float | None = None
    for _ in range(limits.max_iter):
        sums = rows.sum_shards(compute_expectation_sums, parameters, family)
        trace.append(sums.log_likelihood)
        converged = previous is not None and abs(trace[-1] - previous) <= limits.tol * (abs(previous) + total_weight)
        previous = trace[-1]
        sums, gone = _drop_small_components(sums, limits.smallest)
        if gone:
            dropped, previous = dropped + gone, None
        elif converged:
            first = map_to_first_equal_component(parameters)
            if not (same := len(first) - len(np.unique(first))):
                return EmRun(parameters, tuple(trace), True, dropped, merged)
            merged += same
            sums, previous = sums.merge_components(first), None
        parameters = run_maximisation_step(sums, family, limits.max_rho)
    return EmRun(parameters, tuple(trace), False, dropped, merged)


def run_stepwise_em(
    rows: Rows, start: Parameters, family: str, limits: Limits, rng: np.random.Generator, batch: int
) -> EmRun:
    """Run stepwise EM (Cappe and Moulines 2009, doi:10.1111/j.1467-9868.2009.00698.x) on random batches of rows.

    Step t has size (t + 2)^-.6. There are at most ``max_iter`` passes, until a pass gains less than max(``tol``, 1e-4)
    by the measure of :func:`run_em`; then two full iterations. The trace holds the passes' running log-likelihoods and
    those of the end. The sums begin with the larger of a batch and 50 rows per component, so that none is lost by
    chance.
    """
    parameters, n, total_weight = start, len(rows), rows.total_weight
    sample = np.sort(rng.choice(n, min(n, max(batch, 50 * len(start.rhos))), replace=False))
    mean = _compute_mean_sums(rows.select_rows(sample), start, family)
    trace: list[float] = []
    dropped = merged = step = 0
    converged = False
    for _ in range(limits.max_iter):
        order = rng.permutation(n)
        total = 0.0
        for begin in range(0, n, batch):
            sums = _compute_mean_sums(rows.select_rows(np.sort(order[begin : begin + batch])), parameters, family)
            total += sums.log_likelihood
            mean = mean.blend(sums, (step + 2) ** -0.6)
            step += 1
            mean, gone = _drop_small_components(mean, LEAST, total_weight)
            dropped += gone
            parameters = run_maximisation_step(mean, family, limits.max_rho)
        mean, gone = _drop_small_components(mean, limits.smallest, total_weight)
        first = map_to_first_equal_component(parameters) if not gone else np.arange(len(mean.size))
        same = len(first) - len(np.unique(first))
        dropped, merged = dropped + gone, merged + same
        trace.append(total)
        if gone or same:
            mean = mean.merge_components(first)
            parameters = run_maximisation_step(mean, family, limits.max_rho)
        elif len(trace) > 1 and trace[-1] - trace[-2] <= max(limits.tol, 1e-4) * (abs(trace[-2]) + total_weight):
            converged = True
            break
    end = run_em(rows, parameters, family, replace(limits, max_iter=2))
    trace += end.trace
    return EmRun(end.parameters, tuple(trace), converged or end.converged, dropped + end.dropped, merged + end.merged)


def _compute_mean_sums(rows: Rows, parameters: Parameters, family: str) -> Sums:
    sums: Sums = rows.sum_shards(compute_expectation_sums, parameters, family)
    return sums.divide(max(rows.total_weight, 1e-300))

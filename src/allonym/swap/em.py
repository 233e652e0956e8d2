"""Expectation and maximisation for mixtures on the sphere, in rows that fit the cache.

-log w is convex in w, so its tangent at the present parameters minorises it; the minorant's maximum is one MM step
(Hunter and Lange 2004, doi:10.1198/0003130042836)::

    v_ik = p_ik / w_ik,   r_k = sum_i v_ik x_i,   B_k = sum_i p_ik,   C_k = sum_i v_ik
    mu_k = r_k / |r_k|,   rho_k: the root in [0, 1) of  a B rho / (1 - rho^2) + b (C rho - |r|)

The likelihood never falls. An iteration is two matrix products per stretch of rows, and its sums are additive: over the
stretches of a shard in turn, over shards along a tree (:mod:`allonym.swap.shards`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from allonym.swap.density import Array, exponents
from allonym.swap.points import stretches
from allonym.swap.shards import Rows, Shard

LEAST = 1e-3
"""A component of a smaller effective size is always dropped."""

SAME = 1e-3
"""Components nearer than this (see :func:`duplicates`) are one."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """weights (K,), means (K, d) with unit rows, rhos (K,); all float64."""

    weights: Array
    means: Array
    rhos: Array

    def take(self, keep: Array) -> Parameters:
        """Those components only, weights renormalised."""
        weights = self.weights[keep]
        return Parameters(weights / weights.sum(), self.means[keep], self.rhos[keep])


@dataclass(frozen=True, slots=True)
class Sums:
    """What an expectation step leaves: B (K,), C (K,), r (K, d), and the log-likelihood of the parameters it used."""

    size: Array
    shrunk: Array
    pull: Array
    log_likelihood: float

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.size + other.size,
            self.shrunk + other.shrunk,
            self.pull + other.pull,
            self.log_likelihood + other.log_likelihood,
        )

    def take(self, keep: Array) -> Sums:
        """Those components only."""
        return Sums(self.size[keep], self.shrunk[keep], self.pull[keep], self.log_likelihood)

    def blend(self, other: Sums, step: float) -> Sums:
        """(1 - step) of this and step of the other."""
        return Sums(
            self.size + step * (other.size - self.size),
            self.shrunk + step * (other.shrunk - self.shrunk),
            self.pull + step * (other.pull - self.pull),
            other.log_likelihood,
        )

    def divide(self, by: float) -> Sums:
        """Everything but the log-likelihood divided by a number, the weight of the rows."""
        return Sums(self.size / by, self.shrunk / by, self.pull / by, self.log_likelihood)


def _scale(parameters: Parameters, exponent: tuple[float, float]) -> Array:
    # s_k with log pi_k + log f_k = -b log(s_k w_k): the constants go into the matrix product.
    a, b = exponent
    rho = parameters.rhos
    return np.asarray(np.exp(-(np.log(parameters.weights) + a * (np.log1p(-rho) + np.log1p(rho))) / b))


def _scaled(X: Array, parameters: Parameters, family: str) -> Iterator[tuple[slice, Array, Array]]:
    # Per stretch s_k w_ik and its logarithm, (K, rows) each; the next stretch overwrites both.
    n, d = X.shape
    rho = parameters.rhos
    k = len(rho)
    scale = _scale(parameters, exponents(family, d))
    directions = np.ascontiguousarray((-2 * scale * rho * parameters.means.T), X.dtype)
    centre = (scale * (1 + rho**2)).astype(X.dtype)[:, None]
    sharp = np.flatnonzero(rho > 0.99)
    means = parameters.means.astype(X.dtype)
    little = scale * 1e6 * np.finfo(X.dtype).eps
    rows = next(stretches(n, d, k)).stop
    product, w_space, log_space = (np.empty(k * rows, X.dtype) for _ in range(3))
    for part in stretches(n, d, k):
        rows = part.stop - part.start
        raw = product[: k * rows].reshape(rows, k)
        w, log = w_space[: k * rows].reshape(k, rows), log_space[: k * rows].reshape(k, rows)
        # Components outside: reductions over them run along the rows. Which product is faster depends on the type.
        if X.dtype == np.float64:
            np.matmul(directions.T, X[part].T, out=w)
            w += centre
        else:
            np.matmul(X[part], directions, out=raw)
            np.add(raw.T, centre, out=w)
        for i in sharp:  # near such a mean w is a small difference of large numbers: 2 - 2 t is |x - mu|^2
            near = np.flatnonzero(w[i] < little[i])
            apart = X[part][near] - means[i]
            w[i, near] = scale[i] * ((1 - rho[i]) ** 2 + rho[i] * np.einsum("ij,ij->i", apart, apart))
        np.log(w, out=log)
        yield part, w, log


def joint(X: Array, parameters: Parameters, family: str) -> Iterator[tuple[slice, Array]]:
    """Per stretch of rows: where it is, and log pi_k + log f_k(x_i) as ``(K, rows)``, overwritten by the next."""
    b = exponents(family, X.shape[1])[1]
    for part, _, log in _scaled(X, parameters, family):
        log *= X.dtype.type(-b)
        yield part, log


def expect(
    X: Array, parameters: Parameters, family: str, weight: Array | None = None, labels: Array | None = None
) -> Sums:
    """One expectation step over all rows of ``X`` (n, d), as one shard. Posteriors are never stored.

    ``weight`` (n,) says how much each row counts; None: 1. ``labels`` replaces the posteriors by .9 on each row's label
    and .1 spread over the others (a start). Products are in the data's precision, sums over stretches in float64.
    """
    k, d = parameters.means.shape
    exponent = exponents(family, d)
    minus = X.dtype.type(-exponent[1])
    size, shrunk, pull = np.zeros(k), np.zeros(k), np.zeros((k, d))
    total = 0.0
    for part, w, log in _scaled(X, parameters, family):
        counts = None if weight is None else weight[part]
        if labels is None:
            low = log.min(axis=0)
            log -= low
            log *= minus
            share = np.exp(log, out=log)
            mass = share.sum(axis=0)
            score = np.log(mass, dtype=np.float64)
            score -= exponent[1] * low.astype(np.float64)
            total += float(score.sum() if counts is None else score @ counts)
            whole = np.divide(1 if counts is None else counts, mass).astype(X.dtype)
            size += share @ whole
            np.divide(share, w, out=w)
            w *= whole
        else:
            soften(labels[part], log, counts)
            size += log.sum(axis=1)
            np.divide(log, w, out=w)
        shrunk += w.sum(axis=1)
        pull += w @ X[part]
    scale = _scale(parameters, exponent)
    return Sums(size, shrunk * scale, pull * scale[:, None], total)


def soften(labels: Array, out: Array, weight: Array | None = None) -> None:
    """Fill ``out`` (K, rows): .9 on each row's label, .1 / (K - 1) elsewhere, 1 where K = 1; times ``weight``."""
    k = len(out)
    out.fill(0.1 / (k - 1) if k > 1 else 1)
    out[labels, np.arange(len(labels))] = 0.9 if k > 1 else 1
    if weight is not None:
        out *= weight.astype(out.dtype)


def concentration(size: Array, shrunk: Array, length: Array, exponent: tuple[float, float], max_rho: float) -> Array:
    """The MM step's rho, at most ``max_rho``: root of a B rho / (1 - rho^2) + b (C rho - |r|), by Newton.

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


def maximise(sums: Sums, family: str, max_rho: float) -> Parameters:
    """The parameters of one MM step."""
    length = np.linalg.norm(sums.pull, axis=1)
    means = sums.pull / np.where(length > 0, length, 1)[:, None]
    means[length == 0, 0] = 1  # no direction: rho is 0, any will do
    rhos = concentration(sums.size, sums.shrunk, length, exponents(family, means.shape[1]), max_rho)
    return Parameters(sums.size / sums.size.sum(), means, rhos)


def from_labels(
    X: Array | Rows, labels: Array, k: int, family: str, max_rho: float, weight: Array | None = None
) -> Parameters:
    """Parameters from initial labels 0..k-1: weighted mean directions, rho = min(|mean|, .95), then one MM step."""
    rows = _rows(X, weight)
    sums = rows.total(_gathered, labels, k)
    length = np.linalg.norm(sums.pull, axis=1)
    means = sums.pull / np.where(length > 0, length, 1)[:, None]
    means[length == 0, 0] = 1
    rough = Parameters(sums.size / sums.size.sum(), means, np.minimum(length / sums.size, min(0.95, max_rho)))
    return maximise(rows.total(_labelled, rough, family, labels), family, max_rho)


def _rows(X: Array | Rows, weight: Array | None) -> Rows:
    return X if isinstance(X, Rows) else Rows(X, weight)


# What is done with a shard


def _expected(shard: Shard, parameters: Parameters, family: str) -> Sums:
    return expect(shard.X, parameters, family, shard.weight)


def _labelled(shard: Shard, parameters: Parameters, family: str, labels: Array) -> Sums:
    return expect(shard.X, parameters, family, shard.weight, labels[shard.rows])


def _gathered(shard: Shard, labels: Array, k: int) -> Sums:
    """B and r of softened labels, without the shrinking that parameters bring."""
    X, mine = shard.X, labels[shard.rows]
    size, pull = np.zeros(k), np.zeros((k, X.shape[1]))
    for part in stretches(len(X), X.shape[1], k):
        soft = np.empty((k, part.stop - part.start), X.dtype)
        soften(mine[part], soft, None if shard.weight is None else shard.weight[part])
        size += soft.sum(axis=1)
        pull += soft @ X[part]
    return Sums(size, np.zeros(k), pull, 0.0)


def soft_labels(n: int, k: int, rng: np.random.Generator) -> Array:
    """Labels at random, every one of them in use."""
    return rng.permutation(np.arange(n) % k)


def spread_labels(X: Array, k: int, rng: np.random.Generator, weight: Array | None = None) -> Array:
    """Labels of the nearest of ``k`` rows that k-means++ draws (Arthur and Vassilvitskii 2007), by cosine."""
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


def too_small(size: Array, smallest: float) -> Array:
    """Which components stay, as a mask: of those below ``smallest``, the smallest quarter goes at a time.

    Their points then strengthen the others; dropping all at once may leave one component only.
    """
    keep = np.ones(len(size), bool)
    below = int((size < smallest).sum())
    if below:
        gone = min(max(-(-below // 4), int((size < LEAST).sum())), len(size) - 1)
        keep[np.argsort(size, kind="stable")[:gone]] = False
    return keep


def duplicates(parameters: Parameters) -> Array:
    """(K,): for each component the first one that is the same. Themselves where all differ.

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
            whole = (1 - square[i]) * (1 - square[i:]) + gap
            same = np.flatnonzero(d * gap < SAME * whole) + i
            first[same] = np.minimum(first[same], i)
    return first


def merged(sums: Sums, first: Array) -> Sums:
    """The sums of components that :func:`duplicates` found to be the same, added up."""
    keep, group = np.unique(first, return_inverse=True)
    k = len(keep)
    size, shrunk, pull = np.zeros(k), np.zeros(k), np.zeros((k, sums.pull.shape[1]))
    np.add.at(size, group, sums.size)
    np.add.at(shrunk, group, sums.shrunk)
    np.add.at(pull, group, sums.pull)
    return Sums(size, shrunk, pull, sums.log_likelihood)


@dataclass(frozen=True, slots=True)
class Limits:
    """When EM stops, the effective size below which a component is dropped, and the cap of rho."""

    max_iter: int
    tol: float
    smallest: float
    max_rho: float


@dataclass(frozen=True, slots=True)
class Climb:
    """An EM run: its last parameters, the log-likelihood at each expectation step, how many components went."""

    parameters: Parameters
    trace: tuple[float, ...]
    converged: bool
    dropped: int = 0
    merged: int = 0


def climb(X: Array | Rows, start: Parameters, family: str, limits: Limits, weight: Array | None = None) -> Climb:
    """EM over all rows, at most ``max_iter`` steps, until a step changes the log-likelihood by less than ``tol`` of
    itself and a nat per row together.

    Components of an effective size below ``smallest`` are dropped; at convergence equal ones are merged.
    """
    now = start
    rows = _rows(X, weight)
    whole = rows.whole
    trace: list[float] = []
    dropped = united = 0
    previous: float | None = None
    for _ in range(limits.max_iter):
        sums = rows.total(_expected, now, family)
        trace.append(sums.log_likelihood)
        keep = too_small(sums.size, limits.smallest)
        settled = previous is not None and abs(trace[-1] - previous) <= limits.tol * (abs(previous) + whole)
        previous = trace[-1]
        if not keep.all():
            dropped += int((~keep).sum())
            sums, previous = sums.take(keep), None
        elif settled:
            first = duplicates(now)
            if len(np.unique(first)) == len(first):
                return Climb(now, tuple(trace), True, dropped, united)
            united += len(first) - len(np.unique(first))
            sums, previous = merged(sums, first), None
        now = maximise(sums, family, limits.max_rho)
    return Climb(now, tuple(trace), False, dropped, united)


def stepwise(
    X: Array | Rows,
    start: Parameters,
    family: str,
    limits: Limits,
    rng: np.random.Generator,
    batch: int,
    weight: Array | None = None,
) -> Climb:
    """Stepwise EM (Cappe and Moulines 2009, doi:10.1111/j.1467-9868.2009.00698.x) on random batches of rows.

    Step t of size (t + 2)^-.6, at most ``max_iter`` passes, until a pass gains less than max(``tol``, 1e-4) by the
    measure of :func:`climb`; then two full iterations. The trace holds the passes' running log-likelihoods and those of
    the end. The sums begin with the larger of a batch and 50 rows per component, so that none is lost by chance.
    """
    rows = _rows(X, weight)
    n, whole = len(rows), rows.whole
    now = start
    first = np.sort(rng.choice(n, min(n, max(batch, 50 * len(start.rhos))), replace=False))
    mean = _mean_sums(rows.take(first), start, family)
    trace: list[float] = []
    dropped = united = step = 0
    converged = False
    for _ in range(limits.max_iter):
        order = rng.permutation(n)
        total = 0.0
        for at in range(0, n, batch):
            sums = _mean_sums(rows.take(np.sort(order[at : at + batch])), now, family)
            total += sums.log_likelihood
            mean = mean.blend(sums, (step + 2) ** -0.6)
            step += 1
            mean, gone = _kept(mean, whole, LEAST)
            dropped += gone
            now = maximise(mean, family, limits.max_rho)
        mean, gone = _kept(mean, whole, limits.smallest)
        firsts = duplicates(now) if not gone else np.arange(len(mean.size))
        same = len(firsts) - len(np.unique(firsts))
        dropped, united = dropped + gone, united + same
        trace.append(total)
        if gone or same:
            mean = merged(mean, firsts)
            now = maximise(mean, family, limits.max_rho)
        elif len(trace) > 1 and trace[-1] - trace[-2] <= max(limits.tol, 1e-4) * (abs(trace[-2]) + whole):
            converged = True
            break
    end = climb(rows, now, family, replace(limits, max_iter=2))
    return Climb(
        end.parameters, (*trace, *end.trace), converged or end.converged, dropped + end.dropped, united + end.merged
    )


def _mean_sums(some: Rows, now: Parameters, family: str) -> Sums:
    sums: Sums = some.total(_expected, now, family)
    return sums.divide(max(some.whole, 1e-300))


def _kept(mean: Sums, whole: float, smallest: float) -> tuple[Sums, int]:
    keep = too_small(mean.size * whole, smallest)
    return (mean, 0) if keep.all() else (mean.take(keep), int((~keep).sum()))

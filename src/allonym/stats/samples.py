"""Intervals of shares, means and differences of samples, and of any statistic by bootstrap; McNemar's test of pairs.

Bootstrap of statistics that are computed from sums over units: many numbers from one set of draws. The draws are those
of :func:`bootstrap` with the same seed, so the intervals are the same; but the units are drawn once, and tables of
counts are summed instead of calling a statistic for each draw.

McNemar's test: did a change make right answers wrong more often than wrong answers right? McNemar 1947,
doi:10.1007/BF02295996; with continuity correction Edwards 1948, doi:10.1007/BF02289261."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtri, stdtrit

from allonym.errors import UsageError
from allonym.stats import Estimate, none

_LEVEL = 0.95  # of intervals
_ROUNDING = 1e-12  # spread that rounding can leave, as a share of the largest value


def share(hits: int, n: int, level: float = _LEVEL) -> Estimate:
    """Return a proportion with Wilson's score interval (Wilson 1927, doi:10.1080/01621459.1927.10502953).

    Args:
        hits: 0 to ``n``.
        n: number of observations; of 0 the proportion is NaN.
        level: of the interval, between 0 and 1.
    """
    if not n:
        return none("nothing to count")
    z = float(ndtri(0.5 + level / 2))
    p, z2 = hits / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Estimate(p, max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half)), n, f"Wilson, {level:.0%}")


_share_of = share  # for where a parameter has this name


def average(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values with Student's t interval; one value has no width, none gives NaN."""
    n = len(values)
    if not n:
        return none("no values")
    x = np.asarray(values, float)
    centre = float(x.mean())
    if n == 1:
        return Estimate(centre, centre, centre, 1, "one value")
    half = float(stdtrit(n - 1, 0.5 + _LEVEL / 2)) * float(x.std(ddof=1)) / math.sqrt(n)
    return Estimate(centre, centre - half, centre + half, n, f"mean, t, {_LEVEL:.0%}")


def difference(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Return the mean of ``after - before``, pair by pair, with Student's t interval.

    Raises:
        ValueError: unequal lengths.
    """
    return average([b - a for a, b in zip(before, after, strict=True)])


def cohens_d(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Return Cohen's d of two groups, pooled SD (n - 2), with the normal interval of Hedges and Olkin 1985; NaN where
    it is not defined."""
    n, m = len(first), len(second)
    if n < 2 or m < 2:
        return none("two values in each group are required", n + m)
    a, b = np.asarray(first, float), np.asarray(second, float)
    pooled = math.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / (n + m - 2))
    if pooled <= _ROUNDING * max(np.abs(a).max(), np.abs(b).max()):
        return none("no spread", n + m)
    d = float((a.mean() - b.mean()) / pooled)
    half = float(ndtri(0.5 + _LEVEL / 2)) * math.sqrt((n + m) / (n * m) + d * d / (2 * (n + m)))
    return Estimate(d, d - half, d + half, n + m, f"pooled, normal, {_LEVEL:.0%}")


def bootstrap(statistic: Callable[[Any], float], n: int, *, draws: int = 1000, seed: int = 0) -> Estimate:
    """Return a statistic of ``n`` units with the percentile interval of units that are drawn with replacement.

    Args:
        statistic: of an int array of units, ``(n,)``, which may repeat; NaN where it is not defined.
        n: units that are independent of each other, mostly documents.
        draws: number of draws; those without a value are left out, and counted in the method.
        seed: of the draws.

    Returns:
        The statistic of every unit once; NaN of none.
    """
    if not n:
        return none("nothing to draw from")
    value = float(statistic(np.arange(n)))
    if math.isnan(value):
        return none("not defined", n)
    rng = np.random.default_rng(seed)
    drawn = np.array([float(statistic(rng.integers(0, n, n))) for _ in range(draws)])
    return estimate_with_percentiles(value, drawn, n, "bootstrap")


def estimate_with_percentiles(value: float, drawn: Any, n: int, method: str) -> Estimate:
    """Return a value with the percentile interval of its draws, ``(draws,)``; those that are NaN are left out."""
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return Estimate(value, value, value, n, "no draw has a value")
    low, high = np.quantile(defined, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])
    missing = len(drawn) - len(defined)
    lost = f", {missing} of {len(drawn)} draws without a value" if missing else ""
    return Estimate(value, min(value, float(low)), max(value, float(high)), n, f"{method}, {_LEVEL:.0%}{lost}")


class Draws:
    """Draws of units with replacement.

    Args:
        n: units that are independent of each other, mostly documents.
        draws: number of draws; 0: no intervals.
        seed: of the draws.
    """

    def __init__(self, n: int, *, draws: int = 1000, seed: int = 0) -> None:
        self.n = n
        rng = np.random.default_rng(seed)
        dtype = np.uint8 if n < 200 else np.uint16 if n < 60000 else np.uint32
        weights = np.zeros((draws if n > 1 else 0, n), dtype)
        for row in weights:
            row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        self._weights = weights

    def sums(self, counts: Any) -> Any:
        """Sum counts over all units, and below that over each draw: ``(n, ...)`` to ``(1 + draws, ...)``."""
        table = np.asarray(counts, float)
        flat = table.reshape(self.n, math.prod(table.shape[1:]))
        sums = [flat.sum(axis=0, keepdims=True)]
        sums += [self._weights[i : i + 64].astype(float) @ flat for i in range(0, len(self._weights), 64)]
        return np.concatenate(sums).reshape(1 + len(self._weights), *table.shape[1:])

    def estimate(self, values: Any, n: int, reason: str = "not defined", *, share: bool = False) -> Estimate:
        """Return a statistic of :meth:`sums` as an estimate with the percentile interval.

        Args:
            values: of all units and of each draw, ``(1 + draws,)``; NaN where it is not defined.
            n: observations that the estimate shows; mostly more than there are units.
            reason: why there is no value, where there is none.
            share: whether it is a share of ``n``. Where it is 0 or 1, no draw can differ; then Wilson's interval is
                used, as if the observations were independent.
        """
        value, drawn = float(values[0]), np.asarray(values[1:], float)
        if np.isnan(value):
            return none(reason, n)
        if self.n == 1:
            return Estimate(value, value, value, n, "one document, so no interval")
        if not len(drawn):
            return Estimate.exact(value, n)
        defined = drawn[~np.isnan(drawn)]
        if share and value in (0.0, 1.0) and len(defined) and defined.min() == defined.max():
            return _share_of(round(value) * n, n)
        return estimate_with_percentiles(value, drawn, n, f"bootstrap over {self.n:,} documents")


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tests of answers to the same questions before and after a change.

    Attributes:
        statistic: (b - c)^2 / (b + c), chi squared with one degree of freedom; 0 where nothing changed.
        corrected: the same with continuity correction, (|b - c| - 1)^2 / (b + c).
        asymptotic, continuity: their p values.
        exact: the p value of the two-sided binomial test, b of b + c at one half. Values below 1e-308 are 0.
    """

    statistic: float
    corrected: float
    asymptotic: float
    continuity: float
    exact: float


def mcnemar(table: tuple[int, int, int, int]) -> McNemar:
    """Compare paired right and wrong answers.

    Args:
        table: numbers of answers that are right before and after, before only (b), after only (c), and never.

    Raises:
        UsageError: not four numbers of 0 or above.
    """
    if len(table) != 4 or any(x < 0 for x in table):
        raise UsageError(f"mcnemar: four counts of 0 or above are required, got {tuple(table)}")
    _, b, c, _ = table
    if not b + c:
        return McNemar(0.0, 0.0, 1.0, 1.0, 1.0)
    statistic = (b - c) ** 2 / (b + c)
    corrected = max(abs(b - c) - 1, 0) ** 2 / (b + c)
    exact = min(1.0, 2 * float(bdtr(float(min(b, c)), b + c, 0.5)))
    asymptotic, continuity = map(_compute_chi_squared_tail, (statistic, corrected))
    return McNemar(statistic, corrected, asymptotic, continuity, exact)


def _compute_chi_squared_tail(statistic: float) -> float:
    """Probability that chi squared with one degree of freedom exceeds the statistic."""
    return math.erfc(math.sqrt(statistic / 2))

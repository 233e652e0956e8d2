"""Ewens-Pitman's sampling formula: how many cells of a table are unique in the population it was drawn from.

P1 (arXiv 2505.21128) section 2.4, equations (2.10) to (2.14); Pitman 1995, doi:10.1007/BF01213386; Hoshino 2001,
Journal of Official Statistics 17(4). A partition puts n observations into k blocks (cells of a table); it is described
by its frequencies ``{j: s_j}``, the number of blocks of size j. The discount alpha lies in [0, 1), the strength theta
above -alpha.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, polygamma

from allonym.errors import UsageError
from allonym.stats import Estimate, none

Gradient = tuple[float, float]
LogValue = Callable[[float, float], tuple[float, Gradient]]
"""(theta, alpha) to the logarithm of a quantity, and its derivatives by theta and alpha."""

_Z = 1.959963984540054
_DROP = _Z * _Z / 2  # of the log-likelihood at the end of a 95 % interval
_STARTS = (0.05, 0.3, 0.6, 0.85, 0.97)
_LEAST = 1e-7  # an alpha below this tends to the boundary


@dataclass(frozen=True, slots=True)
class Partition:
    """The maximum likelihood fit of (2.10) to one table.

    Attributes:
        theta, alpha: strength and discount; NaN unless ``status`` is ``interior`` or ``alpha=0``.
        log_likelihood: of (2.10), with its constant; 0 where the likelihood has no maximum but tends to 1.
        status: ``interior``; ``alpha=0``, the maximum lies on the boundary (Ewens' formula); ``all-singletons`` or
            ``one-block``, the likelihood only has a supremum; ``empty``, fewer than two observations.
        n, k, singles: observations, blocks, and blocks of one (s_1).
        covariance: of (theta, alpha), the inverse of the observed information; at ``alpha=0`` of theta alone.
        se_theta, se_alpha: its roots; 0 for alpha on the boundary, NaN where nothing was fitted.
        limit: (theta, alpha) at the far end of the 95 % likelihood interval where the estimate lies on a boundary:
            the largest alpha for ``alpha=0``, the least theta of Ewens' formula for ``all-singletons``.
    """

    theta: float
    alpha: float
    log_likelihood: float
    status: str
    n: int
    k: int
    singles: int
    covariance: tuple[tuple[float, float], tuple[float, float]]
    se_theta: float
    se_alpha: float
    limit: tuple[float, float] | None = None

    @property
    def fitted(self) -> bool:
        """Whether theta and alpha exist."""
        return self.status in ("interior", "alpha=0")

    @property
    def strength(self) -> Estimate:
        """theta with its 95 % interval, by the delta method on log(theta + alpha)."""
        if not self.fitted:
            return none(self.status, self.n)
        total = self.estimate(lambda theta, alpha: (math.log(theta + alpha), (1 / (theta + alpha),) * 2))
        low = total.low - self.alpha if self.limit is None else min(total.low, self.limit[0])
        high = total.high - self.alpha
        return Estimate(self.theta, min(low, self.theta), max(high, self.theta), self.n, total.method)

    @property
    def discount(self) -> Estimate:
        """alpha with its 95 % interval: by the delta method on logit(alpha), on the boundary by profile likelihood."""
        if not self.fitted:
            return none(self.status, self.n)
        if self.limit is not None:
            return Estimate(0.0, 0.0, self.limit[1], self.n, "profile likelihood, 95 %")
        odds = math.log(self.alpha / (1 - self.alpha))
        far = _Z * self.se_alpha / (self.alpha * (1 - self.alpha))
        low, high = _compute_logistic(odds - far), _compute_logistic(odds + far)
        return Estimate(self.alpha, min(low, self.alpha), max(high, self.alpha), self.n, "delta method, 95 %")

    def estimate(self, log_value: LogValue, *, degenerate: float = math.nan) -> Estimate:
        """Estimate a positive quantity of theta and alpha, with its 95 % interval by the delta method on its logarithm.

        On the boundary the interval also reaches the quantity at :attr:`limit`.

        Args:
            log_value: its logarithm with derivatives.
            degenerate: its limit, for a table that has no fit.
        """
        if not self.fitted:
            if self.limit is None or math.isnan(degenerate):
                return Estimate(degenerate, degenerate, degenerate, self.n, f"by definition: {self.status}")
            low = min(degenerate, math.exp(log_value(*self.limit)[0]))
            return Estimate(degenerate, low, degenerate, self.n, "by definition, 95 % likelihood interval")
        centre, (by_theta, by_alpha) = log_value(self.theta, self.alpha)
        (tt, ta), (_, aa) = self.covariance
        variance = by_theta * by_theta * tt + 2 * by_theta * by_alpha * ta + by_alpha * by_alpha * aa
        far = _Z * math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.inf
        low, high = centre - far, centre + far
        method = "delta method, 95 %"
        if self.limit is not None:
            end = log_value(*self.limit)[0]
            low, high = min(low, end), max(high, end)
            method = "delta method and profile likelihood, 95 %"
        return Estimate(_exp_or_infinity(centre), _exp_or_infinity(low), _exp_or_infinity(high), self.n, method)


def count_frequencies(counts: Iterable[int]) -> dict[int, int]:
    """Count block sizes into ``{j: s_j}``, j ascending.

    Raises:
        UsageError: a size below 1.
    """
    return _sort_valid_frequencies(Counter(int(c) for c in counts))


def log_uniques(population: float, *, asymptotic: bool = False) -> LogValue:
    """Return log E[S_1] as a function of theta and alpha, with derivatives: (2.13), or (2.14) if ``asymptotic``.

    Raises:
        UsageError: a population below 1.
    """
    if not population >= 1:
        raise UsageError(f"population: must be at least 1, got {population:g}")

    def log_exact(theta: float, alpha: float) -> tuple[float, Gradient]:
        far, near = population + theta + alpha - 1, theta + alpha
        value = math.log(population) + _compute_log_gamma_ratio(near, 1 - alpha)
        value -= _compute_log_gamma_ratio(far, 1 - alpha)
        by_theta = float(digamma(far) - digamma(population + theta) - digamma(near) + digamma(theta + 1))
        return value, (by_theta, float(digamma(far) - digamma(near)))

    def log_limit(theta: float, alpha: float) -> tuple[float, Gradient]:
        near = theta + alpha
        value = alpha * math.log(population) + _compute_log_gamma_ratio(near, 1 - alpha)
        by_theta = float(digamma(theta + 1) - digamma(near))
        return value, (by_theta, math.log(population) - float(digamma(near)))

    return log_limit if asymptotic else log_exact


def log_stay(n: int, population: float) -> LogValue:
    """Return the logarithm of the probability that a block of one among n is still one among ``population``.

    By the rule of the next observation this is the product of 1 - (1 - alpha) / (theta + i) for i from n to N - 1:
    (2.15) with s_1 replaced by its expectation. It lies in (0, 1] and is 1 at N = n.
    """

    def log_probability_of_stay(theta: float, alpha: float) -> tuple[float, Gradient]:
        far, near = population + theta + alpha - 1, n + theta + alpha - 1
        by_theta = digamma(far) - digamma(population + theta) - digamma(near) + digamma(n + theta)
        chance = _compute_log_gamma_ratio(near, 1 - alpha) - _compute_log_gamma_ratio(far, 1 - alpha)
        return chance, (float(by_theta), float(digamma(far) - digamma(near)))

    return log_probability_of_stay


def fit_partition(frequencies: Mapping[int, int]) -> Partition:
    """Fit theta and alpha by maximum likelihood.

    Damped Newton steps in (log(theta + alpha), logit alpha) from several starts, with the absolute eigenvalues of the
    Hessian because the likelihood is not concave everywhere, against Ewens' formula on the boundary alpha = 0.

    Args:
        frequencies: ``{j: s_j}``.

    Raises:
        UsageError: sizes or numbers below 1.
    """
    data = _Likelihood(_sort_valid_frequencies(frequencies))
    if data.n < 2:
        return _make_degenerate_fit(data, "empty")
    if data.k == data.n:
        least = brentq(lambda u: data.log_likelihood(math.exp(u), 0.0) + _DROP, -20.0, 60.0, xtol=1e-12)
        return _make_degenerate_fit(data, "all-singletons", (math.exp(least), 0.0))
    if data.k == 1:
        return _make_degenerate_fit(data, "one-block")

    theta = data.fit_ewens()
    top, on_boundary = data.log_likelihood(theta, 0.0), True
    alpha = 0.0
    if data.derivatives(theta, 0.0)[0][1] <= 0:
        top += data.slack  # a maximum itself: another one must be higher, not only rounded up
    for start in _STARTS:
        fit = _climb_likelihood(data, data.find_starting_log_sum(start), math.log(start / (1 - start)))
        if fit is not None and fit[2] > top:
            theta, alpha, top = fit
            on_boundary = False
    _, ((tt, ta), (_, aa)) = data.derivatives(theta, alpha)
    top, limit = data.log_likelihood(theta, alpha), None
    if on_boundary:
        covariance = ((_invert_or_infinity(-tt), 0.0), (0.0, 0.0))
        limit = _find_alpha_interval_end(data, theta, top)
    else:
        determinant = tt * aa - ta * ta
        covariance = ((math.inf, 0.0), (0.0, math.inf))
        if tt < 0 and determinant > 0:
            covariance = ((-aa / determinant, ta / determinant), (ta / determinant, -tt / determinant))
    status = "alpha=0" if on_boundary else "interior"
    errors = math.sqrt(covariance[0][0]), math.sqrt(covariance[1][1])
    return Partition(theta, alpha, top, status, data.n, data.k, data.singles, covariance, *errors, limit)


class _Likelihood:
    """One table, prepared for the likelihood."""

    def __init__(self, frequencies: Mapping[int, int]) -> None:
        self.sizes: Any = np.array(list(frequencies), dtype=float)
        self.times: Any = np.array(list(frequencies.values()), dtype=float)
        self.n = sum(j * s for j, s in frequencies.items())
        self.k = sum(frequencies.values())
        self.singles = frequencies.get(1, 0)
        self.slack = 1e-14 * self.n * math.log(self.n + 1)  # rounding of the likelihood
        self._blocks: Any = np.arange(1, max(self.k, 1), dtype=float)
        self._all: Any = np.arange(1, max(self.n, 1), dtype=float)
        arrangements = self.times @ gammaln(self.sizes + 1)
        self._constant = float(gammaln(self.n + 1) - arrangements - gammaln(self.times + 1).sum())

    def log_likelihood(self, theta: float, alpha: float) -> float:
        if self.n < 2:
            return 0.0
        rising = _compute_log_gamma_ratio(theta + 1, self.n - 1)
        inside = self.times @ (gammaln(self.sizes - alpha) - gammaln(1 - alpha))
        return float(np.log(theta + alpha * self._blocks).sum() - rising + inside) + self._constant

    def derivatives(self, theta: float, alpha: float) -> tuple[Gradient, tuple[Gradient, Gradient]]:
        """Gradient and Hessian by theta and alpha."""
        inverse = 1 / (theta + alpha * self._blocks)
        per_block = inverse * self._blocks
        # For theta beyond n the digammas' difference would cancel.
        if theta < self.n:
            first = float(digamma(theta + self.n) - digamma(theta + 1))
            second = float(polygamma(1, theta + 1) - polygamma(1, theta + self.n))
        else:
            each = 1 / (theta + self._all)
            first, second = float(each.sum()), float(each @ each)
        within = self.times @ (digamma(self.sizes - alpha) - digamma(1 - alpha))
        squares = self.times @ (polygamma(1, 1 - alpha) - polygamma(1, self.sizes - alpha))
        by_theta, by_alpha = float(inverse.sum()) - first, float(per_block.sum()) - float(within)
        both = -float(inverse @ per_block)
        second_by_alpha = -float(per_block @ per_block) - float(squares)
        return (by_theta, by_alpha), ((second - float(inverse @ inverse), both), (both, second_by_alpha))

    def fit_ewens(self) -> float:
        """Estimate theta for alpha = 0: n - k equals its expectation, the sum of i / (theta + i) over i < n."""

        def excess(log_theta: float) -> float:
            return float((self._all / (math.exp(log_theta) + self._all)).sum()) - (self.n - self.k)

        return math.exp(brentq(excess, -60, 60, xtol=1e-14))

    def find_starting_log_sum(self, alpha: float) -> float:
        """Find log(theta + alpha) where the expected number of blocks is about k, as a start."""
        low, high = -30.0, 2 * math.log(self.n) + 7
        while high - low > 1e-3:
            middle = (low + high) / 2
            theta = math.exp(middle) - alpha
            growth = _compute_log_gamma_ratio(theta + alpha, 1 - alpha)
            growth += _compute_log_gamma_ratio(theta + self.n, alpha)
            if (math.exp(growth) - theta) / alpha < self.k:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def _climb_likelihood(data: _Likelihood, log_sum: float, logit_alpha: float) -> tuple[float, float, float] | None:
    """Take Newton steps from (log(theta + alpha), logit alpha) to theta, alpha, likelihood; None towards alpha = 0."""
    theta, alpha = _compute_theta_and_alpha(log_sum, logit_alpha)
    here = data.log_likelihood(theta, alpha)
    for _ in range(100):
        (by_theta, by_alpha), ((tt, ta), (_, aa)) = data.derivatives(theta, alpha)
        total, bend = theta + alpha, alpha * (1 - alpha)
        turn = bend * (1 - 2 * alpha)
        gradient = np.array([by_theta * total, (by_alpha - by_theta) * bend])
        across = (ta - tt) * total * bend
        curve = (tt - 2 * ta + aa) * bend * bend + (by_alpha - by_theta) * turn
        hessian = np.array([[tt * total * total + by_theta * total, across], [across, curve]])
        values, axes = np.linalg.eigh(hessian)
        step = axes @ ((axes.T @ gradient) / np.maximum(np.abs(values), 1e-12 * np.abs(values).max() + 1e-300))
        gain = float(gradient @ step)
        length = float(np.sqrt(step @ step))
        step *= min(1.0, 2.0 / length) if length else 0.0
        for _ in range(40):
            ahead = _compute_theta_and_alpha(log_sum + float(step[0]), logit_alpha + float(step[1]))
            there = data.log_likelihood(*ahead)
            if there >= here - data.slack:
                break
            step /= 2
        else:
            return theta, alpha, here
        log_sum, logit_alpha, (theta, alpha), here = (
            log_sum + float(step[0]),
            logit_alpha + float(step[1]),
            ahead,
            there,
        )
        if alpha < _LEAST:
            return None
        if gain < 1e-16:
            break
    return theta, alpha, here


def _find_alpha_interval_end(data: _Likelihood, theta: float, top_at_zero: float) -> tuple[float, float]:
    """Return (theta, alpha) at the largest alpha whose profile likelihood is within 95 % of that at alpha = 0."""
    best = math.log(theta)

    def shortfall(alpha: float) -> float:
        return top_at_zero - _DROP - _maximise_over_theta(data, alpha, best)[1]

    low, high = 0.0, 0.5
    while shortfall(high) < 0:
        low, high = high, (1 + high) / 2
    alpha = float(brentq(shortfall, low, high, xtol=1e-9, rtol=1e-9))
    return math.exp(_maximise_over_theta(data, alpha, best)[0]) - alpha, alpha


def _maximise_over_theta(data: _Likelihood, alpha: float, log_sum: float) -> tuple[float, float]:
    """Find log(theta + alpha) that maximises the likelihood for a given alpha, and the likelihood there."""
    here = data.log_likelihood(math.exp(log_sum) - alpha, alpha)
    for _ in range(100):
        total = math.exp(log_sum)
        (by_theta, _), ((tt, _), _) = data.derivatives(total - alpha, alpha)
        slope, bend = by_theta * total, tt * total * total + by_theta * total
        step = max(-2.0, min(2.0, slope / max(abs(bend), 1e-300)))
        for _ in range(40):
            there = data.log_likelihood(math.exp(log_sum + step) - alpha, alpha)
            if there >= here:
                break
            step /= 2
        else:
            break
        log_sum, here = log_sum + step, there
        if abs(slope * step) < 1e-13:
            break
    return log_sum, here


def _compute_log_gamma_ratio(x: float, step: float) -> float:
    """log Gamma(x + step) - log Gamma(x), by Stirling's series without loss for large x."""
    if x < 20:
        return float(gammaln(x + step) - gammaln(x))
    rest = _compute_stirling_rest(x + step) - _compute_stirling_rest(x)
    return (x - 0.5) * math.log1p(step / x) - step + step * math.log(x + step) + rest


def _compute_stirling_rest(x: float) -> float:
    return (1 - (1 / 30 - 1 / (105 * x * x)) / (x * x)) / (12 * x)


def _compute_theta_and_alpha(log_sum: float, logit_alpha: float) -> tuple[float, float]:
    alpha = _compute_logistic(logit_alpha)
    return math.exp(log_sum) - alpha, alpha


def _compute_logistic(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def _exp_or_infinity(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf


def _invert_or_infinity(value: float) -> float:
    return 1 / value if value > 0 else math.inf


def _make_degenerate_fit(data: _Likelihood, status: str, limit: tuple[float, float] | None = None) -> Partition:
    nan = math.nan
    return Partition(nan, nan, 0.0, status, data.n, data.k, data.singles, ((nan, nan), (nan, nan)), nan, nan, limit)


def _sort_valid_frequencies(frequencies: Mapping[int, int]) -> dict[int, int]:
    for size, times in frequencies.items():
        if size < 1 or times < 1:
            raise UsageError(f"frequencies: block sizes and their numbers must be at least 1, got {size}: {times}")
    return dict(sorted(frequencies.items()))

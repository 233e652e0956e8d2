"""Bayesian t tests with the JZS prior: how strongly data speak for a difference, or against one.

Rouder, Speckman, Sun, Morey and Iverson 2009, doi:10.3758/PBR.16.2.225: a Cauchy prior of the given scale on the
standardised effect, Jeffreys' prior on the variance. The default scale, sqrt(2) / 2, is that of the R package
BayesFactor; the paper's own is 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from allonym.errors import UsageError
from allonym.serial import Serialisable

SCALE = math.sqrt(2) / 2
"""Scale of the Cauchy prior on the effect, "medium" in BayesFactor."""

_LARGEST = 709.0  # exp of more is no double


class BayesFactor(Serialisable):
    """Evidence of a t test.

    Attributes:
        log: natural logarithm of ``bf10``, finite also where the factor itself is no double; NaN where there is none.
        t: the statistic.
        df: its degrees of freedom.
        scale: of the prior.
        reason: why there is no factor; else empty.
    """

    KEYS = ("bf10", "bf01", "log10_bf10=log10", "t", "df", "scale", "reading", "reason")

    log: float
    t: float
    df: int
    scale: float
    reason: str = ""

    @property
    def bf10(self) -> float:
        """Odds for a difference against none; infinite beyond 1e307, NaN where there is none."""
        return math.inf if self.log > _LARGEST else math.exp(self.log)

    @property
    def bf01(self) -> float:
        """Odds for no difference: ``1 / bf10``."""
        return math.inf if self.log < -_LARGEST else math.exp(-self.log)

    @property
    def log10(self) -> float:
        """Logarithm of ``bf10`` to the base of ten: 1 is ten to one for a difference, -1 ten to one against it."""
        return self.log / math.log(10)

    @property
    def reading(self) -> str:
        """The factor in words: evidence beyond 3 either way, strong beyond 10 (Jeffreys 1961)."""
        if math.isnan(self.log):
            return "not measured"
        size = abs(self.log)
        if size < math.log(3):
            return "undecided"
        which = "changed" if self.log > 0 else "unchanged"
        return f"{which}, strong evidence" if size >= math.log(10) else which


def jzs(t: float, n: int, m: int = 0, *, scale: float = SCALE) -> BayesFactor:
    """Return the two-sided Bayes factor of a t statistic (Rouder et al. 2009, equation 1), by quadrature.

    Args:
        t: the statistic.
        n: pairs, or the size of the one group.
        m: size of the second group; 0: one sample or pairs.
        scale: of the Cauchy prior, above 0.

    Raises:
        UsageError: a scale of 0 or less, too few values, or a statistic that is no number.
    """
    if not scale > 0 or math.isinf(scale):
        raise UsageError(f"Bayes factor: a scale above 0 is required, got {scale:g}")
    if n < 2 or m < 0 or m == 1:
        raise UsageError(f"Bayes factor: two values at least are required, got {n}" + (f" and {m}" if m else ""))
    if not math.isfinite(t):
        raise UsageError(f"Bayes factor: a finite t is required, got {t:g}")
    size, df = (n * m / (n + m), n + m - 2) if m else (float(n), n - 1)
    return BayesFactor(
        _compute_log_effect_likelihood(t, size * scale * scale, df) - _compute_log_null_likelihood(t, df),
        t,
        df,
        scale,
    )


def compare_paired(before: Sequence[float], after: Sequence[float], *, scale: float = SCALE) -> BayesFactor:
    """Return the Bayes factor of a paired difference; t is that of ``after - before``.

    Where no pair differs, or all differ by the same amount, there is no t: the factor is NaN, with the reason.

    Raises:
        ValueError: unequal lengths.
    """
    differences = [b - a for a, b in zip(before, after, strict=True)]
    n = len(differences)
    if n < 2:
        return _make_missing_factor("two pairs are required", n - 1, scale)
    mean = math.fsum(differences) / n
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in differences) / (n - 1))
    if spread <= 1e-12 * max(abs(x) for x in differences):
        reason = "all pairs differ by the same amount" if any(differences) else "no pair differs"
        return _make_missing_factor(reason, n - 1, scale)
    return jzs(mean / (spread / math.sqrt(n)), n, scale=scale)


def compare_unpaired(first: Sequence[float], second: Sequence[float], *, scale: float = SCALE) -> BayesFactor:
    """Return the Bayes factor of two independent groups of equal variance; t is that of ``second - first``."""
    n, m = len(first), len(second)
    if n < 2 or m < 2:
        return _make_missing_factor("two values in each group are required", n + m - 2, scale)
    a, b = math.fsum(first) / n, math.fsum(second) / m
    squares = math.fsum((x - a) ** 2 for x in first) + math.fsum((x - b) ** 2 for x in second)
    spread = math.sqrt(squares / (n + m - 2) * (1 / n + 1 / m))
    if spread <= 1e-12 * max(abs(x) for x in (*first, *second)):
        return _make_missing_factor("no spread", n + m - 2, scale)
    return jzs((b - a) / spread, n, m, scale=scale)


def _make_missing_factor(reason: str, df: int, scale: float) -> BayesFactor:
    return BayesFactor(math.nan, math.nan, max(0, df), scale, reason)


def _compute_log_null_likelihood(t: float, df: int) -> float:
    """Logarithm of the marginal likelihood without an effect, up to a factor that both have in common."""
    return -(df + 1) / 2 * math.log1p(t * t / df)


def _compute_log_effect_likelihood(t: float, scaled_size: float, df: int) -> float:
    """Logarithm of the integral over g, in x = log g and divided by its peak to avoid underflow and overflow."""
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar

    def log_height(x: float) -> float:
        grown = scaled_size * math.exp(x)
        return (
            -0.5 * math.log1p(grown)
            - (df + 1) / 2 * math.log1p(t * t / ((1 + grown) * df))
            - 0.5 * math.log(2 * math.pi)
            - 0.5 * x
            - 0.5 * math.exp(-x)
        )

    low, high = -6.0, 60.0  # the prior is nothing below, and beyond no t of use has its peak
    coarse = min((low + i * (high - low) / 400 for i in range(401)), key=lambda x: -log_height(x))
    bounds = (coarse - 0.5, coarse + 0.5)
    peak = float(minimize_scalar(lambda x: -log_height(x), bounds=bounds, method="bounded").x)
    top = log_height(peak)

    def relative_height(x: float) -> float:
        return math.exp(log_height(x) - top)

    edges = [low, *(peak + d for d in (-4.0, -1.0, 0.0, 1.0, 4.0)), peak + 90]
    edges = sorted(max(low, e) for e in edges)
    total = sum(quad(relative_height, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in pairwise(edges) if a < b)
    return top + math.log(total)

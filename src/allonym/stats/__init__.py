"""Estimates with intervals, and the statistics of the papers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from allonym.serial import Serialisable

__all__ = ["BeforeAfter", "Estimate", "mean", "none"]


class Estimate(Serialisable):
    """A measured or estimated number with its interval: reports show no number without one.

    Attributes:
        value: the estimate; NaN where there is none.
        low, high: its interval, ``low <= value <= high``; both are ``value`` where it is exact.
        n: number of observations.
        method: how value and interval were computed, such as ``mean, SD over draws`` or ``exact``.
    """

    value: float
    low: float
    high: float
    n: int
    method: str

    @classmethod
    def exact(cls, value: float, n: int = 1, method: str = "exact") -> Estimate:
        """Return a number that was counted or computed, not estimated."""
        return cls(value, value, value, n, method)


class BeforeAfter(NamedTuple):
    """An estimate before anonymisation and the same after."""

    before: Estimate
    after: Estimate


def none(reason: str, n: int = 0) -> Estimate:
    """Return an estimate without a value, and the reason: what cannot be measured is never shown as 0 or 1."""
    return Estimate.exact(math.nan, n, f"none: {reason}")  # one object, so that two without a value are equal


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean of draws, with one standard deviation (n - 1) to either side; NaN of none."""
    n = len(values)
    if not n or min(values) == max(values):  # rounding would leave a spread of its own
        return Estimate.exact(values[0] if n else float("nan"), n, "mean, SD over draws")
    centre = sum(values) / n
    spread = (sum((v - centre) ** 2 for v in values) / (n - 1)) ** 0.5
    return Estimate(centre, centre - spread, centre + spread, n, "mean, SD over draws")

"""Estimates with intervals, and the statistics that the papers use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from allonym.serial import Serialisable

__all__ = ["Estimate", "mean", "none"]


@dataclass(frozen=True, slots=True)
class Estimate(Serialisable):
    """A measured or estimated number: no figure in a report stands alone.

    Attributes:
        value: the estimate; NaN where there is none.
        low, high: its interval, ``low <= value <= high``; both are ``value`` where it is exact.
        n: how many observations it rests on.
        method: how value and interval came about, e.g. ``mean, SD over draws``, ``delta method, 95 %``, ``exact``.
    """

    value: float
    low: float
    high: float
    n: int
    method: str

    @classmethod
    def exact(cls, value: float, n: int = 1) -> Estimate:
        """A number that was counted or computed, not estimated."""
        return cls(value, value, value, n, "exact")


def none(reason: str, n: int = 0) -> Estimate:
    """No value, and why: where something cannot be measured, never a made-up 0 or 1."""
    nan = float("nan")
    return Estimate(nan, nan, nan, n, f"none: {reason}")


def mean(values: Sequence[float]) -> Estimate:
    """Mean of draws, with one standard deviation (n - 1) to either side; NaN of none."""
    n = len(values)
    if not n:
        return Estimate(float("nan"), float("nan"), float("nan"), 0, "mean, SD over draws")
    if min(values) == max(values):  # rounding would leave a spread of its own
        return Estimate(values[0], values[0], values[0], n, "mean, SD over draws")
    centre = sum(values) / n
    spread = (sum((v - centre) ** 2 for v in values) / (n - 1)) ** 0.5
    return Estimate(centre, centre - spread, centre + spread, n, "mean, SD over draws")

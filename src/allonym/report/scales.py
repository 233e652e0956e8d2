"""Scales from values to positions: linear and logarithmic, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from allonym.report.numbers import format_number
from allonym.report.page import Kind
from allonym.report.plots import Axis


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``low..high`` to ``start..end``; the names of ``ticks`` are ready to print."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def __call__(self, value: float) -> float:
        """Return the position of a value; one beyond the limits lies beyond the ends."""
        a, b, v = (
            (math.log10(self.low), math.log10(self.high), math.log10(max(value, 1e-300)))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        return self.start + (v - a) / (b - a) * (self.end - self.start)


def fit_scale(axis: Axis, values: Iterable[float], start: float, end: float, count: int) -> Scale:
    """Return the scale of an axis over finite ``values``, with about ``count`` ticks and some margin."""
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(shown, default=0.0)
    high = axis.high if axis.high is not None else max(shown, default=1.0)
    if axis.log:
        low, high = (low, high) if high > low else (low / 10, high * 10)
        a, b = math.log10(low), math.log10(high)
        air = 0.03 * (b - a)
        low = low if axis.low is not None else 10 ** (a - air)
        high = high if axis.high is not None else 10 ** (b + air)
        exponents = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        every = max(1, math.ceil(len(exponents) / count))
        return Scale(
            low, high, start, end, True, tuple((10.0**e, format_number(10.0**e, "power")) for e in exponents[::every])
        )
    if high <= low:
        around = abs(low) * 0.1 or 1.0
        low, high = low - around, high + around
    air = 0.04 * (high - low)
    low = low if axis.low is not None else low - air
    high = high if axis.high is not None else high + air
    step = _choose_step(high - low, count, is_whole=axis.number == "count")
    ticks = _list_ticks(low, high, step)
    return Scale(low, high, start, end, False, tuple(zip(ticks, _format_ticks(ticks, step, axis.number), strict=True)))


def _choose_step(span: float, count: int, *, is_whole: bool) -> float:
    rough = span / max(1, count)
    rough = max(rough, 1.0) if is_whole else rough
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * m for m in ((1, 2, 5, 10) if is_whole else (1, 2, 2.5, 5, 10)) if size * m >= rough * 0.999)


def _list_ticks(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _format_ticks(ticks: Sequence[float], step: float, kind: Kind) -> list[str]:
    if kind == "share":
        step *= 100
    size = max((abs(t) for t in ticks), default=0.0)
    unit, name = next(((u, n) for u, n in ((1e9, ""), (1e6, " M"), (1e5, " k")) if size >= u), (1.0, ""))
    if kind in ("power", "p") or unit == 1e9:
        return [format_number(t, kind if unit < 1e9 else "number") for t in ticks]
    divide = {" M": 1e6, " k": 1e3}.get(name, 1.0)
    digits = _count_decimals(step / divide)
    return [f"{format_number(t / divide, kind, digits)}{name}" for t in ticks]


def _count_decimals(step: float) -> int:
    return next((d for d in range(12) if abs(step * 10**d - round(step * 10**d)) < 1e-6 * step * 10**d), 12)

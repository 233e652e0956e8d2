"""Parts of SVG: elements with escaped attributes, marks of eight shapes, titles of marks, scales with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from allonym.report.page import Axis, Facts, Kind
from allonym.report.values import format_cell, format_number
from allonym.stats import Estimate

COLOURS = 8
"""Colours of series in the style sheet: classes ``s0`` to ``s7``."""


def draw_element(name: str, body: str = "", **attributes: object) -> str:
    """Return an element. ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``; attributes that are
    None are left out."""
    text_of_attributes = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_format_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text_of_attributes}>{body}</{name}>" if body else f"<{name}{text_of_attributes}/>"


def draw_text(content: str, x: float, y: float, class_: str, anchor: str = "start", **more: object) -> str:
    """Return a line of text."""
    return draw_element(
        "text", escape(content), x=x, y=y, class_=class_, text_anchor=None if anchor == "start" else anchor, **more
    )


def get_colour_class(slot: int) -> str:
    """Return the class of a series' colour."""
    return f"s{slot % COLOURS}"


def draw_mark_outline(slot: int, x: float, y: float, radius: float) -> str:
    """Return the outline of a series' mark around (x, y): from the ninth series on, colours come with other shapes."""
    return _SHAPES[(slot + slot // COLOURS) % len(_SHAPES)](x, y, radius)


def draw_tooltip(label: str, facts: Facts) -> str:
    """Return a ``title`` with a line per fact, which the page's script turns into a tooltip."""
    lines = [label, *(f"{name}: {format_cell(value).line}" for name, value in facts)]
    return draw_element("title", escape("\n".join(line for line in lines if line)))


def get_point_value(value: float | Estimate) -> float:
    """Return a value itself, also that of an estimate."""
    return value.value if isinstance(value, Estimate) else float(value)


def format_coordinate(value: float) -> str:
    """Format a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0") if value else "0"


def format_path(points: list[tuple[float, float]]) -> str:
    """Return a line through points, as the ``d`` of a path."""
    return "M" + "L".join(f"{format_coordinate(x)} {format_coordinate(y)}" for x, y in points)


def _format_attribute(value: object) -> str:
    return format_coordinate(value) if isinstance(value, float) else str(value)


def _make_polygon_drawer(*corners: tuple[float, float]) -> Callable[[float, float, float], str]:
    def draw_polygon(x: float, y: float, r: float) -> str:
        return format_path([(x + a * r, y + b * r) for a, b in corners]) + "Z"

    return draw_polygon


def _format_circle_path(x: float, y: float, r: float) -> str:
    n = format_coordinate
    return f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0Z"


def _add_turned_quarters(*corners: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """Return the corners of a quarter, and of the three others that are turned by right angles."""
    out = [corners]
    for _ in range(3):
        out.append(tuple((-y, x) for x, y in out[-1]))
    return tuple(corner for quarter in out for corner in quarter)


_SHAPES = (
    _format_circle_path,
    _make_polygon_drawer((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    _make_polygon_drawer((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    _make_polygon_drawer((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    _make_polygon_drawer((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    _make_polygon_drawer(*_add_turned_quarters((0.38, -1.1), (0.38, -0.38), (1.1, -0.38))),
    _make_polygon_drawer((0.6, -1.05), (1.15, 0), (0.6, 1.05), (-0.6, 1.05), (-1.15, 0), (-0.6, -1.05)),
    _make_polygon_drawer(*_add_turned_quarters((0, -0.5), (0.5, -1.0), (1.0, -0.5))),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``low..high`` to ``start..end``; the names of ``ticks`` are ready to print."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def __call__(self, value: float | Estimate) -> float:
        """Return the position of a value, also that of an estimate; one beyond the limits lies beyond the ends."""
        value = get_point_value(value)
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        value = math.log10(max(value, 1e-300)) if self.log else value
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def fit_scale(axis: Axis, values: Iterable[float], start: float, end: float, count: int) -> Scale:
    """Return the scale of an axis over finite ``values``, with about ``count`` ticks and some margin."""
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(shown, default=0.1 if axis.log else 0.0)
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
    step = _choose_tick_step(high - low, count, is_whole=axis.number == "count")
    ticks = _list_ticks(low, high, step)
    return Scale(low, high, start, end, False, tuple(zip(ticks, _format_ticks(ticks, step, axis.number), strict=True)))


def _choose_tick_step(span: float, count: int, *, is_whole: bool) -> float:
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

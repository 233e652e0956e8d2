"""Pieces of SVG: elements with escaped attributes, marks of eight shapes, and what a mark says when pointed at."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from allonym.report.numbers import show
from allonym.report.page import Facts

COLOURS = 8
"""Colours of series in the style sheet: classes ``s0`` to ``s7``."""


def tag(name: str, body: str = "", **attributes: object) -> str:
    """An element. ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``; what is None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{told}>{body}</{name}>" if body else f"<{name}{told}/>"


def text(content: str, x: float, y: float, class_: str, anchor: str = "start", **more: object) -> str:
    """A line of text."""
    return tag(
        "text", escape(content), x=x, y=y, class_=class_, text_anchor=None if anchor == "start" else anchor, **more
    )


def colour(slot: int) -> str:
    """The class of a series' colour."""
    return f"s{slot % COLOURS}"


def shape(slot: int, x: float, y: float, r: float) -> str:
    """The outline of a series' mark around (x, y): from the ninth series on, colours come with other shapes."""
    return _SHAPES[(slot + slot // COLOURS) % len(_SHAPES)](x, y, r)


def said(label: str, facts: Facts) -> str:
    """What a mark says: a ``title`` of one line per fact, which the page's script turns into its tooltip."""
    lines = [label, *(f"{name}: {show(value).line}" for name, value in facts)]
    return tag("title", escape("\n".join(line for line in lines if line)))


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0") if value else "0"


def path(points: list[tuple[float, float]]) -> str:
    """A line through points, as the ``d`` of a path."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _polygon(*corners: tuple[float, float]) -> Callable[[float, float, float], str]:
    def draw(x: float, y: float, r: float) -> str:
        return path([(x + a * r, y + b * r) for a, b in corners]) + "Z"

    return draw


def _circle(x: float, y: float, r: float) -> str:
    n = number
    return f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0Z"


def _plus(x: float, y: float, r: float) -> str:
    a, b = 1.1, 0.38
    corners = [
        (b, -a),
        (b, -b),
        (a, -b),
        (a, b),
        (b, b),
        (b, a),
        (-b, a),
        (-b, b),
        (-a, b),
        (-a, -b),
        (-b, -b),
        (-b, -a),
    ]
    return path([(x + p * r, y + q * r) for p, q in corners]) + "Z"


def _cross(x: float, y: float, r: float) -> str:
    a, b = 1.0, 0.5
    corners = [(0, -b), (b, -a), (a, -b), (b, 0), (a, b), (b, a), (0, b), (-b, a), (-a, b), (-b, 0), (-a, -b), (-b, -a)]
    return path([(x + p * r, y + q * r) for p, q in corners]) + "Z"


_SHAPES = (
    _circle,
    _polygon((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    _polygon((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    _polygon((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    _polygon((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    _plus,
    _polygon((0.6, -1.05), (1.15, 0), (0.6, 1.05), (-0.6, 1.05), (-1.15, 0), (-0.6, -1.05)),
    _cross,
)

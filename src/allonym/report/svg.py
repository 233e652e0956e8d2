"""Parts of SVG: elements with escaped attributes, marks of eight shapes, and titles of marks."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from allonym.report.numbers import format_cell
from allonym.report.page import Facts

COLOURS = 8
"""Colours of series in the style sheet: classes ``s0`` to ``s7``."""


def draw_tag(name: str, body: str = "", **attributes: object) -> str:
    """Return an element. ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``; attributes that are
    None are left out."""
    text_of_attributes = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_format_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text_of_attributes}>{body}</{name}>" if body else f"<{name}{text_of_attributes}/>"


def draw_text(content: str, x: float, y: float, class_: str, anchor: str = "start", **more: object) -> str:
    """Return a line of text."""
    return draw_tag(
        "text", escape(content), x=x, y=y, class_=class_, text_anchor=None if anchor == "start" else anchor, **more
    )


def name_colour(slot: int) -> str:
    """Return the class of a series' colour."""
    return f"s{slot % COLOURS}"


def draw_shape(slot: int, x: float, y: float, r: float) -> str:
    """Return the outline of a series' mark around (x, y): from the ninth series on, colours come with other shapes."""
    return _SHAPES[(slot + slot // COLOURS) % len(_SHAPES)](x, y, r)


def draw_title(label: str, facts: Facts) -> str:
    """Return a ``title`` with a line per fact, which the page's script turns into a tooltip."""
    lines = [label, *(f"{name}: {format_cell(value).line}" for name, value in facts)]
    return draw_tag("title", escape("\n".join(line for line in lines if line)))


def format_coordinate(value: float) -> str:
    """Format a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0") if value else "0"


def draw_path(points: list[tuple[float, float]]) -> str:
    """Return a line through points, as the ``d`` of a path."""
    return "M" + "L".join(f"{format_coordinate(x)} {format_coordinate(y)}" for x, y in points)


def _format_value(value: object) -> str:
    return format_coordinate(value) if isinstance(value, float) else str(value)


def _make_polygon(*corners: tuple[float, float]) -> Callable[[float, float, float], str]:
    def draw_polygon(x: float, y: float, r: float) -> str:
        return draw_path([(x + a * r, y + b * r) for a, b in corners]) + "Z"

    return draw_polygon


def _draw_circle(x: float, y: float, r: float) -> str:
    n = format_coordinate
    return f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0Z"


def _draw_plus(x: float, y: float, r: float) -> str:
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
    return draw_path([(x + p * r, y + q * r) for p, q in corners]) + "Z"


def _draw_cross(x: float, y: float, r: float) -> str:
    a, b = 1.0, 0.5
    corners = [(0, -b), (b, -a), (a, -b), (b, 0), (a, b), (b, a), (0, b), (-b, a), (-a, b), (-b, 0), (-a, -b), (-b, -a)]
    return draw_path([(x + p * r, y + q * r) for p, q in corners]) + "Z"


_SHAPES = (
    _draw_circle,
    _make_polygon((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    _make_polygon((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    _make_polygon((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    _make_polygon((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    _draw_plus,
    _make_polygon((0.6, -1.05), (1.15, 0), (0.6, 1.05), (-0.6, 1.05), (-1.15, 0), (-0.6, -1.05)),
    _draw_cross,
)

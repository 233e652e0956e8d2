"""Charts of points and lines as SVG. Without a script the marks still say what they are; with one they can be reached
by pointer and keyboard. Sizes are in units of the picture, which scales with the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.scales import Scale, fit_scale
from allonym.report.svg import draw_path, draw_shape, draw_tag, draw_text, draw_title, name_colour
from allonym.stats import Estimate


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture, and the position of the plot in it."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


WIDE = Frame(720, 450, 58, 708, 36, 398)
SMALL = Frame(420, 310, 58, 410, 36, 256)
MANY = 400
"""Points from which on marks get smaller and lose their outline."""

_ARROWS = {
    "lower right": (1, 1, "↘"),
    "lower left": (0, 1, "↙"),
    "upper right": (1, 0, "↗"),
    "upper left": (0, 0, "↖"),
}


def draw_chart(chart: Chart, ident: str) -> str:
    """Draw a chart; ``ident`` is unique on the page and names its parts."""
    frame = SMALL if chart.size == "small" else WIDE
    x = fit_scale(chart.x, _list_axis_values(chart, 0), frame.left, frame.right, 4 if chart.size == "small" else 6)
    y = fit_scale(chart.y, _list_axis_values(chart, 1), frame.bottom, frame.top, 5 if chart.size == "small" else 6)
    body = [
        draw_tag("title", escape_text(chart.title), id=f"{ident}-t"),
        draw_tag("desc", escape_text(describe_chart(chart)), id=f"{ident}-d"),
        draw_grid(frame, x, y, chart.x, chart.y),
        _draw_better_arrow(chart, frame, x, y),
        draw_tag("clipPath", draw_tag("rect", x=frame.left - 8, y=frame.top - 8, width=frame.right - frame.left + 16,
                            height=frame.bottom - frame.top + 16), id=f"{ident}-c"),
    ]  # fmt: skip
    inside = [_draw_guides(chart, x, y)]
    inside += [_draw_curve(series, x, y) for series in chart.series]
    order = {"": 0, "hollow": 0, "frontier": 1, "chosen": 2}
    marks = [(order[p.mark], s, p) for s in chart.series for p in s.points if _has_finite_position(p)]
    marks.sort(key=lambda m: m[0])
    shrink = max(0.6, min(1.0, math.sqrt(MANY / max(1, len(marks))))) * (0.95 if chart.size == "small" else 1)
    inside += [_draw_mark(s, p, x, y, shrink) for _, s, p in marks]
    body.append(draw_tag("g", "".join(inside), clip_path=f"url(#{ident}-c)"))
    body.append(_draw_chosen_name([p for o, _, p in marks if o == 2], frame, x, y))
    return wrap_picture(
        frame,
        ident,
        "".join(body),
        f"plot{' small' if chart.size == 'small' else ''}{' many' if len(marks) > MANY else ''}",
    )


def wrap_picture(frame: Frame, ident: str, body: str, class_: str = "plot") -> str:
    """Return the ``svg`` element around a drawing whose title and description are named after ``ident``."""
    return draw_tag(
        "svg",
        body,
        class_=class_,
        id=ident,
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def escape_text(content: str) -> str:
    """Escape a text for the inside of an element; the result is never empty."""
    return content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") or " "


def describe_chart(chart: Chart) -> str:
    """Describe the chart in a sentence or two for readers who do not see it."""
    count = sum(len(s.points) for s in chart.series)
    names = ", ".join(s.name for s in chart.series if s.name)
    return f"{chart.description} {count:,} points; {chart.y.name} against {chart.x.name}. Series: {names}.".strip()


def draw_grid(frame: Frame, x: Scale, y: Scale | None, x_axis: Axis, y_axis: Axis | None) -> str:
    """Draw the axes: lines and names of ticks. Every other tick may be hidden where there is little room."""
    out = []
    for i, (value, name) in enumerate(x.ticks):
        position = x(value)
        out.append(draw_tag("line", class_="grid", x1=position, x2=position, y1=frame.top, y2=frame.bottom))
        out.append(draw_text(name, position, frame.bottom + 18, "tick below odd" if i % 2 else "tick below", "middle"))
    if y is not None and y_axis is not None:
        for value, name in y.ticks:
            position = y(value)
            out.append(draw_tag("line", class_="grid", x1=frame.left, x2=frame.right, y1=position, y2=position))
            out.append(draw_text(name, frame.left - 9, position + 4, "tick", "end"))
        out.append(draw_text(y_axis.name, 4, frame.top - 20, "axis"))
        out.append(draw_tag("line", class_="base", x1=frame.left, x2=frame.left, y1=frame.top, y2=frame.bottom))
        out.append(draw_tag("line", class_="base", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
    out.append(draw_text(x_axis.name, frame.right, frame.bottom + 40, "axis", "end"))
    return "".join(out)


def _draw_better_arrow(chart: Chart, frame: Frame, x: Scale, y: Scale) -> str:
    if not chart.better:
        return ""
    right, low, arrow = _ARROWS[chart.better]
    words = f"better {arrow}" if right else f"{arrow} better"
    x_position = frame.right - 12 if right else frame.left + 12
    height = frame.bottom - 14 if low else frame.top + 20
    chosen = [p for s in chart.series for p in s.points if p.mark == "chosen" and _has_finite_position(p)]
    if any(abs(x(read_middle(p.x)) - x_position) < 160 and abs(y(read_middle(p.y)) - height) < 40 for p in chosen):
        height = frame.top - 20  # its corner is taken: above the frame
    return draw_text(words, x_position, height, "better", "end" if right else "start")


def _draw_guides(chart: Chart, x: Scale, y: Scale) -> str:
    out = []
    for guide in chart.guides:
        points = [(x(a), y(b)) for a, b in guide.points if math.isfinite(a) and math.isfinite(b)]
        if len(points) > 1:
            out.append(
                draw_tag(
                    "path",
                    draw_tag("title", escape_text(guide.name)),
                    class_=f"guide {guide.style}",
                    d=draw_path(points),
                )
            )
    return "".join(out)


def _draw_curve(series: Series, x: Scale, y: Scale) -> str:
    points = [(x(read_middle(p.x)), y(read_middle(p.y))) for p in series.points if _has_finite_position(p)]
    if not series.line or len(points) < 2:
        return ""
    return draw_tag(
        "path", class_=f"curve {series.line} {name_colour(series.slot)}", d=draw_path(points), data_series=series.slot
    )


def _draw_mark(series: Series, point: Point, x: Scale, y: Scale, shrink: float) -> str:
    a, b = x(read_middle(point.x)), y(read_middle(point.y))
    size = {"": 3.1, "hollow": 3.7, "frontier": 4.2, "chosen": 5.6}[point.mark] * (
        1 if point.mark == "chosen" else shrink
    )
    out = ""
    if point.mark == "chosen":
        out += _draw_whiskers(point, x, y, series.slot)
        out += draw_tag("circle", class_="ring", cx=a, cy=b, r=size + 5.5, data_series=series.slot)
    bold = series.line in ("full", "dashed")
    size *= 1.25 if bold and point.mark == "" else 1
    kind = f"mark {name_colour(series.slot)} {point.mark or ('sharp' if bold else '')}".strip()
    body = draw_title(point.label or series.name, point.facts)
    return out + draw_tag("path", body, class_=kind, d=draw_shape(series.slot, a, b, size), data_series=series.slot)


def _draw_whiskers(point: Point, x: Scale, y: Scale, slot: int) -> str:
    a, b = x(read_middle(point.x)), y(read_middle(point.y))
    lines = []
    for value, across in ((point.x, True), (point.y, False)):
        if isinstance(value, Estimate) and value.low < value.high:
            ends = [(x(v), b) if across else (a, y(v)) for v in (value.low, value.high)]
            lines.append(draw_path(ends))
    return draw_tag("path", class_="whisker", d="".join(lines), data_series=slot) if lines else ""


def _draw_chosen_name(chosen: list[Point], frame: Frame, x: Scale, y: Scale) -> str:
    out = []
    for point in chosen[:1]:
        a, b = x(read_middle(point.x)), y(read_middle(point.y))
        right = a < frame.left + 0.75 * (frame.right - frame.left)
        level = b - 10 if b - 24 > frame.top else b + 20  # beside the lines that run through the mark
        out.append(draw_text("chosen", a + 12 if right else a - 12, level, "callout", "start" if right else "end"))
    return "".join(out)


def read_middle(value: float | Estimate) -> float:
    """Return a value itself, also that of an estimate."""
    return value.value if isinstance(value, Estimate) else float(value)


def _has_finite_position(point: Point) -> bool:
    return math.isfinite(read_middle(point.x)) and math.isfinite(read_middle(point.y))


def _list_axis_values(chart: Chart, which: int) -> Iterator[float]:
    for series in chart.series:
        for point in series.points:
            if _has_finite_position(point):
                yield read_middle(point.y if which else point.x)
    for guide in chart.guides:
        if guide.style != "limit":
            yield from (p[which] for p in guide.points)

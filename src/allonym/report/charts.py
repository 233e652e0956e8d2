"""Charts of points and lines as SVG. Without a script the marks still say what they are; with one they can be reached
by pointer and keyboard. Sizes are in units of the picture, which scales with the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.scales import Scale, scale
from allonym.report.svg import colour, path, said, shape, tag, text
from allonym.stats import Estimate


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture's size, and where in it the plot lies."""

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


def chart_svg(chart: Chart, ident: str) -> str:
    """The picture of a chart; ``ident`` is unique on the page and names its parts."""
    frame = SMALL if chart.size == "small" else WIDE
    x = scale(chart.x, _values(chart, 0), frame.left, frame.right, 4 if chart.size == "small" else 6)
    y = scale(chart.y, _values(chart, 1), frame.bottom, frame.top, 5 if chart.size == "small" else 6)
    body = [
        tag("title", text_of(chart.title), id=f"{ident}-t"),
        tag("desc", text_of(describe(chart)), id=f"{ident}-d"),
        grid(frame, x, y, chart.x, chart.y),
        _better(chart, frame, x, y),
        tag("clipPath", tag("rect", x=frame.left - 8, y=frame.top - 8, width=frame.right - frame.left + 16,
                            height=frame.bottom - frame.top + 16), id=f"{ident}-c"),
    ]  # fmt: skip
    inside = [_guides(chart, x, y)]
    inside += [_curve(series, x, y) for series in chart.series]
    order = {"": 0, "hollow": 0, "frontier": 1, "chosen": 2}
    marks = [(order[p.mark], s, p) for s in chart.series for p in s.points if _known(p)]
    marks.sort(key=lambda m: m[0])
    shrink = max(0.6, min(1.0, math.sqrt(MANY / max(1, len(marks))))) * (0.95 if chart.size == "small" else 1)
    inside += [_mark(s, p, x, y, shrink) for _, s, p in marks]
    body.append(tag("g", "".join(inside), clip_path=f"url(#{ident}-c)"))
    body.append(_chosen_names([p for o, _, p in marks if o == 2], frame, x, y))
    return picture(
        frame,
        ident,
        "".join(body),
        f"plot{' small' if chart.size == 'small' else ''}{' many' if len(marks) > MANY else ''}",
    )


def picture(frame: Frame, ident: str, body: str, class_: str = "plot") -> str:
    """The ``svg`` element around a drawing whose title and description are named after ``ident``."""
    return tag(
        "svg",
        body,
        class_=class_,
        id=ident,
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def text_of(content: str) -> str:
    """A text escaped for the inside of an element, never empty."""
    return content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") or " "


def describe(chart: Chart) -> str:
    """A sentence or two for readers who do not see the chart."""
    count = sum(len(s.points) for s in chart.series)
    names = ", ".join(s.name for s in chart.series if s.name)
    return f"{chart.description} {count:,} points; {chart.y.name} against {chart.x.name}. Series: {names}.".strip()


def grid(frame: Frame, x: Scale, y: Scale | None, x_axis: Axis, y_axis: Axis | None) -> str:
    """Axes: lines and names of ticks. Every other tick may be hidden where there is little room."""
    out = []
    for i, (value, name) in enumerate(x.ticks):
        at = x(value)
        out.append(tag("line", class_="grid", x1=at, x2=at, y1=frame.top, y2=frame.bottom))
        out.append(text(name, at, frame.bottom + 18, "tick below odd" if i % 2 else "tick below", "middle"))
    if y is not None and y_axis is not None:
        for value, name in y.ticks:
            at = y(value)
            out.append(tag("line", class_="grid", x1=frame.left, x2=frame.right, y1=at, y2=at))
            out.append(text(name, frame.left - 9, at + 4, "tick", "end"))
        out.append(text(y_axis.name, 4, frame.top - 20, "axis"))
        out.append(tag("line", class_="base", x1=frame.left, x2=frame.left, y1=frame.top, y2=frame.bottom))
        out.append(tag("line", class_="base", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
    out.append(text(x_axis.name, frame.right, frame.bottom + 40, "axis", "end"))
    return "".join(out)


def _better(chart: Chart, frame: Frame, x: Scale, y: Scale) -> str:
    if not chart.better:
        return ""
    right, low, arrow = _ARROWS[chart.better]
    words = f"better {arrow}" if right else f"{arrow} better"
    at = frame.right - 12 if right else frame.left + 12
    height = frame.bottom - 14 if low else frame.top + 20
    chosen = [p for s in chart.series for p in s.points if p.mark == "chosen" and _known(p)]
    if any(abs(x(middle(p.x)) - at) < 160 and abs(y(middle(p.y)) - height) < 40 for p in chosen):
        height = frame.top - 20  # its corner is taken: above the frame
    return text(words, at, height, "better", "end" if right else "start")


def _guides(chart: Chart, x: Scale, y: Scale) -> str:
    out = []
    for guide in chart.guides:
        points = [(x(a), y(b)) for a, b in guide.points if math.isfinite(a) and math.isfinite(b)]
        if len(points) > 1:
            out.append(tag("path", tag("title", text_of(guide.name)), class_=f"guide {guide.style}", d=path(points)))
    return "".join(out)


def _curve(series: Series, x: Scale, y: Scale) -> str:
    points = [(x(middle(p.x)), y(middle(p.y))) for p in series.points if _known(p)]
    if not series.line or len(points) < 2:
        return ""
    return tag("path", class_=f"curve {series.line} {colour(series.slot)}", d=path(points), data_series=series.slot)


def _mark(series: Series, point: Point, x: Scale, y: Scale, shrink: float) -> str:
    a, b = x(middle(point.x)), y(middle(point.y))
    size = {"": 3.1, "hollow": 3.7, "frontier": 4.2, "chosen": 5.6}[point.mark] * (
        1 if point.mark == "chosen" else shrink
    )
    out = ""
    if point.mark == "chosen":
        out += _whiskers(point, x, y, series.slot)
        out += tag("circle", class_="ring", cx=a, cy=b, r=size + 5.5, data_series=series.slot)
    bold = series.line in ("full", "dashed")
    size *= 1.25 if bold and point.mark == "" else 1
    kind = f"mark {colour(series.slot)} {point.mark or ('sharp' if bold else '')}".strip()
    body = said(point.label or series.name, point.facts)
    return out + tag("path", body, class_=kind, d=shape(series.slot, a, b, size), data_series=series.slot)


def _whiskers(point: Point, x: Scale, y: Scale, slot: int) -> str:
    a, b = x(middle(point.x)), y(middle(point.y))
    lines = []
    for value, across in ((point.x, True), (point.y, False)):
        if isinstance(value, Estimate) and value.low < value.high:
            ends = [(x(v), b) if across else (a, y(v)) for v in (value.low, value.high)]
            lines.append(path(ends))
    return tag("path", class_="whisker", d="".join(lines), data_series=slot) if lines else ""


def _chosen_names(chosen: list[Point], frame: Frame, x: Scale, y: Scale) -> str:
    out = []
    for point in chosen[:1]:
        a, b = x(middle(point.x)), y(middle(point.y))
        right = a < frame.left + 0.75 * (frame.right - frame.left)
        level = b - 10 if b - 24 > frame.top else b + 20  # beside the lines that run through the mark
        out.append(text("chosen", a + 12 if right else a - 12, level, "callout", "start" if right else "end"))
    return "".join(out)


def middle(value: float | Estimate) -> float:
    """The value itself, of an estimate too."""
    return value.value if isinstance(value, Estimate) else float(value)


def _known(point: Point) -> bool:
    return math.isfinite(middle(point.x)) and math.isfinite(middle(point.y))


def _values(chart: Chart, which: int) -> Iterator[float]:
    for series in chart.series:
        for point in series.points:
            if _known(point):
                yield middle(point.y if which else point.x)
    for guide in chart.guides:
        if guide.style != "limit":
            yield from (p[which] for p in guide.points)

"""Charts as SVG: points and lines, grouped horizontal bars, maps of bubbles.

Without a script the marks still say what they are; with one they can be reached by pointer and keyboard. Sizes are in
units of the picture, which scales with the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from allonym.report.page import Axis, Bar, Bars, Bubble, Bubbles, Chart, Point, Series
from allonym.report.svg import (
    Scale,
    draw_element,
    draw_mark_outline,
    draw_text,
    draw_tooltip,
    fit_scale,
    format_path,
    get_colour_class,
    get_point_value,
)
from allonym.report.values import format_cell
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
        draw_axes(frame, x, y, chart.x, chart.y),
        _draw_better_arrow(chart, frame, x, y),
        draw_element("clipPath", draw_element("rect", x=frame.left - 8, y=frame.top - 8,
                                              width=frame.right - frame.left + 16,
                                              height=frame.bottom - frame.top + 16), id=f"{ident}-c"),
    ]  # fmt: skip
    inside = [_draw_guides(chart, x, y)]
    inside += [_draw_curve(series, x, y) for series in chart.series]
    order = {"": 0, "hollow": 0, "frontier": 1, "chosen": 2}
    marks = [(order[p.mark], s, p) for s in chart.series for p in s.points if _has_finite_position(p)]
    marks.sort(key=lambda m: m[0])
    size_factor = max(0.6, min(1.0, math.sqrt(MANY / max(1, len(marks))))) * (0.95 if chart.size == "small" else 1)
    inside += [_draw_mark(s, p, x, y, size_factor) for _, s, p in marks]
    body.append(draw_element("g", "".join(inside), clip_path=f"url(#{ident}-c)"))
    body.append(_draw_chosen_callout([p for o, _, p in marks if o == 2], frame, x, y))
    class_ = f"plot{' small' if chart.size == 'small' else ''}{' many' if len(marks) > MANY else ''}"
    return wrap_picture(frame, ident, chart.title, describe_chart(chart), "".join(body), class_)


def wrap_picture(frame: Frame, ident: str, title: str, description: str, body: str, class_: str = "plot") -> str:
    """Return the ``svg`` element around a drawing, with title and description for readers who do not see it, under ids
    that begin with ``ident``."""
    named = draw_element("title", escape_text(title), id=f"{ident}-t")
    named += draw_element("desc", escape_text(description), id=f"{ident}-d")
    return draw_element(
        "svg",
        named + body,
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


def draw_axes(frame: Frame, x: Scale, y: Scale | None, x_axis: Axis, y_axis: Axis | None) -> str:
    """Draw the axes: lines and names of ticks. Every other tick may be hidden where there is little room."""
    out = []
    for i, (value, name) in enumerate(x.ticks):
        position = x(value)
        out.append(draw_element("line", class_="grid", x1=position, x2=position, y1=frame.top, y2=frame.bottom))
        out.append(draw_text(name, position, frame.bottom + 18, "tick below odd" if i % 2 else "tick below", "middle"))
    if y is not None and y_axis is not None:
        for value, name in y.ticks:
            position = y(value)
            out.append(draw_element("line", class_="grid", x1=frame.left, x2=frame.right, y1=position, y2=position))
            out.append(draw_text(name, frame.left - 9, position + 4, "tick", "end"))
        out.append(draw_text(y_axis.name, 4, frame.top - 20, "axis"))
        out.append(draw_element("line", class_="base", x1=frame.left, x2=frame.left, y1=frame.top, y2=frame.bottom))
        out.append(draw_element("line", class_="base", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
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
    if any(abs(x(p.x) - x_position) < 160 and abs(y(p.y) - height) < 40 for p in chosen):
        height = frame.top - 20  # its corner is taken: above the frame
    return draw_text(words, x_position, height, "better", "end" if right else "start")


def _draw_guides(chart: Chart, x: Scale, y: Scale) -> str:
    out = []
    for guide in chart.guides:
        points = [(x(a), y(b)) for a, b in guide.points if math.isfinite(a) and math.isfinite(b)]
        if len(points) > 1:
            out.append(_draw_guide(guide.name, guide.style, points))
    return "".join(out)


def _draw_guide(name: str, style: str, points: list[tuple[float, float]]) -> str:
    return draw_element(
        "path", draw_element("title", escape_text(name)), class_=f"guide {style}", d=format_path(points)
    )


def _draw_curve(series: Series, x: Scale, y: Scale) -> str:
    points = [(x(p.x), y(p.y)) for p in series.points if _has_finite_position(p)]
    if not series.line or len(points) < 2:
        return ""
    return draw_element(
        "path",
        class_=f"curve {series.line} {get_colour_class(series.slot)}",
        d=format_path(points),
        data_series=series.slot,
    )


def _draw_mark(series: Series, point: Point, x: Scale, y: Scale, size_factor: float) -> str:
    a, b = x(point.x), y(point.y)
    size = {"": 3.1, "hollow": 3.7, "frontier": 4.2, "chosen": 5.6}[point.mark]
    out = ""
    if point.mark != "chosen":
        size *= size_factor
    else:
        out += _draw_whiskers(point, x, y, series.slot)
        out += draw_element("circle", class_="ring", cx=a, cy=b, r=size + 5.5, data_series=series.slot)
    bold = series.line in ("full", "dashed")
    size *= 1.25 if bold and point.mark == "" else 1
    kind = f"mark {get_colour_class(series.slot)} {point.mark or ('sharp' if bold else '')}".strip()
    body = draw_tooltip(point.label or series.name, point.facts)
    return out + draw_element(
        "path", body, class_=kind, d=draw_mark_outline(series.slot, a, b, size), data_series=series.slot
    )


def _draw_whiskers(point: Point, x: Scale, y: Scale, slot: int) -> str:
    a, b = x(point.x), y(point.y)
    lines = []
    for value, across in ((point.x, True), (point.y, False)):
        if isinstance(value, Estimate) and value.low < value.high:
            ends = [(x(v), b) if across else (a, y(v)) for v in (value.low, value.high)]
            lines.append(format_path(ends))
    return draw_element("path", class_="whisker", d="".join(lines), data_series=slot) if lines else ""


def _draw_chosen_callout(points: list[Point], frame: Frame, x: Scale, y: Scale) -> str:
    out = []
    for point in points[:1]:
        a, b = x(point.x), y(point.y)
        right = a < frame.left + 0.75 * (frame.right - frame.left)
        level = b - 10 if b - 24 > frame.top else b + 20  # beside the lines that run through the mark
        out.append(draw_text("chosen", a + 12 if right else a - 12, level, "callout", "start" if right else "end"))
    return "".join(out)


def _has_finite_position(point: Point) -> bool:
    return math.isfinite(get_point_value(point.x)) and math.isfinite(get_point_value(point.y))


def _list_axis_values(chart: Chart, axis_index: int) -> Iterator[float]:
    for series in chart.series:
        for point in series.points:
            if _has_finite_position(point):
                yield get_point_value(point.y if axis_index else point.x)
    for guide in chart.guides:
        if guide.style != "limit":
            yield from (p[axis_index] for p in guide.points)


_BAR, _GAP, _NAME, _BETWEEN = 17, 5, 24, 16


def draw_bars(bars: Bars, ident: str) -> str:
    """Draw grouped bars, which start at zero."""
    height = sum(_NAME + len(g.bars) * (_BAR + _GAP) + _BETWEEN for g in bars.groups)
    frame = Frame(640, height + 58, 6, 540, 6, 6 + height)
    values = [0.0, *(get_point_value(b.value) for g in bars.groups for b in g.bars)]
    values += [b.value.high for g in bars.groups for b in g.bars if isinstance(b.value, Estimate)]
    values += [g.reference for g in bars.groups if g.reference is not None]
    values += [value for _, value in bars.guides]
    x = fit_scale(bars.axis, values, frame.left, frame.right, 6)
    zero = x(max(x.low, min(0.0, x.high)))
    body = [draw_axes(frame, x, None, bars.axis, None)]
    for name, value in bars.guides:
        body.append(_draw_guide(name, "reference", [(x(value), frame.top), (x(value), frame.bottom)]))
    said_values = []  # above everything else
    y = float(frame.top)
    for number, group in enumerate(bars.groups):
        body.append(draw_text(group.name, frame.left, y + 16, "group"))
        y += _NAME
        first = y
        for bar in group.bars:
            drawn, said_value = _draw_bar_and_value(bars, bar, number, x, zero, y)
            body.append(drawn)
            said_values.append(said_value)
            y += _BAR + _GAP
        if group.reference is not None and math.isfinite(group.reference):
            line = format_path([(x(group.reference), first - 3), (x(group.reference), y - _GAP + 3)])
            fact = (bars.reference, format_cell(group.reference, bars.axis.number).text)
            title_of_reference = draw_tooltip(f"{group.name}: {bars.reference}", (fact,))
            body.append(draw_element("path", title_of_reference, class_="tickmark", d=line, data_series=number))
        y += _BETWEEN
    body.append(draw_element("line", class_="base", x1=zero, x2=zero, y1=frame.top, y2=frame.bottom))
    return wrap_picture(frame, ident, bars.title, describe_bars(bars), "".join(body + said_values), "plot bars")


def describe_bars(bars: Bars) -> str:
    """Describe the bars for readers who do not see them."""
    names = ", ".join(g.name for g in bars.groups)
    return f"{bars.description} Bars of {bars.axis.name} for {names}.".strip()


def _draw_bar_and_value(bars: Bars, bar: Bar, group: int, x: Scale, zero: float, y: float) -> tuple[str, str]:
    value = get_point_value(bar.value)
    if not math.isfinite(value):
        return "", draw_text(f"{bar.series} –", zero + 8, y + _BAR - 4, "value")
    end, centre = x(value), y + _BAR / 2
    start, width = min(zero, end), max(abs(end - zero), 1.0)
    shown = format_cell(bar.value, bars.axis.number)
    label = draw_tooltip(f"{bars.groups[group].name}: {bar.series}", (("value", shown.line), *bar.facts))
    out = draw_element(
        "rect",
        label,
        class_=f"bar {get_colour_class(bar.slot)}",
        x=start,
        y=y,
        width=width,
        height=_BAR,
        rx=3,
        data_series=group,
    )
    right = max(zero, end)
    if isinstance(bar.value, Estimate) and bar.value.low < bar.value.high:
        a, b = x(bar.value.low), x(bar.value.high)
        right = max(right, b)
        d = format_path([(a, centre), (b, centre)]) + format_path([(a, centre - 4), (a, centre + 4)])
        out += draw_element("path", class_="whisker", d=d + format_path([(b, centre - 4), (b, centre + 4)]))
    return out, draw_text(shown.line, right + 8, y + _BAR - 4, "value")


LEVELS = 7
"""Steps of darkness: classes ``h1`` to ``h7`` of the style sheet."""

_FRAME = Frame(720, 440, 64, 656, 56, 384)
_LARGEST = 40.0
Box = tuple[float, float, float, float]


def find_darkness_step(level: float) -> int:
    """Return the step of darkness, 1 to 7, of a level between 0 and 1."""
    return 1 + min(LEVELS - 1, max(0, int(level * LEVELS))) if level == level else 1


def draw_bubbles(bubbles: Bubbles, ident: str) -> str:
    """Draw a map. One scale serves both directions, so that distances compare."""
    shown = [b for b in bubbles.bubbles if math.isfinite(b.x) and math.isfinite(b.y)]
    placed = _place_bubbles(shown)
    body = []
    for bubble, x, y, r in sorted(placed, key=lambda p: -p[3]):
        kind = f"bubble h{find_darkness_step(bubble.level)}" + (" dashed" if bubble.dashed else "")
        body.append(
            draw_element(
                "circle", draw_tooltip(bubble.label, bubble.facts), class_=kind, cx=x, cy=y, r=r, data_series=0
            )
        )
        if r >= 9:
            dark = " light" if find_darkness_step(bubble.level) > 4 else ""
            body.append(draw_text(bubble.label.split()[-1], x, y + 4, f"inside{dark}", "middle"))
    body += _draw_bubble_words(placed)
    description = f"{bubbles.description} {len(shown)} bubbles.".strip()
    return wrap_picture(_FRAME, ident, bubbles.title, description, "".join(body))


def _place_bubbles(bubbles: list[Bubble]) -> list[tuple[Bubble, float, float, float]]:
    if not bubbles:
        return []
    xs, ys = [b.x for b in bubbles], [b.y for b in bubbles]
    width, height = max(xs) - min(xs), max(ys) - min(ys)
    unit = min((_FRAME.right - _FRAME.left) / (width or 1e-9), (_FRAME.bottom - _FRAME.top) / (height or 1e-9), 1e6)
    if not width and not height:
        unit = 0.0
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    biggest = max(max(b.size for b in bubbles), 1e-9)
    cx, cy = (_FRAME.left + _FRAME.right) / 2, (_FRAME.top + _FRAME.bottom) / 2
    return [
        (
            b,
            cx + (b.x - middle_x) * unit,
            cy - (b.y - middle_y) * unit,
            max(5.0, _LARGEST * math.sqrt(max(b.size, 0) / biggest)),
        )
        for b in bubbles
    ]


def _draw_bubble_words(placed: list[tuple[Bubble, float, float, float]]) -> list[str]:
    # Big bubbles first; words go where they hide no bubble and no other words, else they are left to the tooltip.
    boxes: list[Box] = [(x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8) for _, x, y, r in placed]
    out = []
    for index, (bubble, x, y, r) in sorted(enumerate(placed), key=lambda p: -p[1][3]):
        if not bubble.words:
            continue
        wide = 5.6 * len(bubble.words)
        for start, base, anchor in (
            (x - wide / 2, y + r + 15, "middle"),
            (x - wide / 2, y - r - 7, "middle"),
            (x + r + 6, y + 4, "start"),
            (x - r - 6 - wide, y + 4, "end"),
        ):
            box = (start, base - 12, start + wide, base + 4)
            if box[0] < 4 or box[2] > _FRAME.width - 4 or box[1] < 2 or box[3] > _FRAME.height - 2:
                continue
            if any(_are_boxes_overlapping(box, other) for i, other in enumerate(boxes) if i != index):
                continue
            anchor_x = {"middle": x, "start": start, "end": start + wide}[anchor]
            out.append(draw_text(bubble.words, anchor_x, base, "words", anchor))
            boxes.append(box)
            break
    return out


def _are_boxes_overlapping(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

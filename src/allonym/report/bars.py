"""Grouped horizontal bars as SVG: a name above each group, a value behind each bar, whiskers for intervals."""

from __future__ import annotations

import math

from allonym.report.charts import Frame, draw_grid, escape_text, read_middle, wrap_picture
from allonym.report.numbers import format_cell
from allonym.report.plots import Bar, Bars
from allonym.report.scales import Scale, fit_scale
from allonym.report.svg import draw_path, draw_tag, draw_text, draw_title, name_colour
from allonym.stats import Estimate

_BAR, _GAP, _NAME, _BETWEEN = 17, 5, 24, 16


def draw_bars(bars: Bars, ident: str) -> str:
    """Draw grouped bars, which start at zero."""
    height = sum(_NAME + len(g.bars) * (_BAR + _GAP) + _BETWEEN for g in bars.groups)
    frame = Frame(640, height + 58, 6, 540, 6, 6 + height)
    values = [0.0, *(read_middle(b.value) for g in bars.groups for b in g.bars)]
    values += [b.value.high for g in bars.groups for b in g.bars if isinstance(b.value, Estimate)]
    values += [g.reference for g in bars.groups if g.reference is not None]
    values += [value for _, value in bars.guides]
    x = fit_scale(bars.axis, values, frame.left, frame.right, 6)
    zero = x(max(x.low, min(0.0, x.high)))
    title = draw_tag("title", escape_text(bars.title), id=f"{ident}-t") + draw_tag(
        "desc", escape_text(describe_bars(bars)), id=f"{ident}-d"
    )
    body = [title, draw_grid(frame, x, None, bars.axis, None)]
    for name, value in bars.guides:
        line = draw_path([(x(value), frame.top), (x(value), frame.bottom)])
        body.append(draw_tag("path", draw_tag("title", escape_text(name)), class_="guide reference", d=line))
    said_values = []  # above everything else
    y = float(frame.top)
    for number, group in enumerate(bars.groups):
        body.append(draw_text(group.name, frame.left, y + 16, "group"))
        y += _NAME
        first = y
        for bar in group.bars:
            drawn, said_value = _draw_bar(bars, bar, number, x, zero, y)
            body.append(drawn)
            said_values.append(said_value)
            y += _BAR + _GAP
        if group.reference is not None and math.isfinite(group.reference):
            line = draw_path([(x(group.reference), first - 3), (x(group.reference), y - _GAP + 3)])
            fact = (bars.reference, format_cell(group.reference, bars.axis.number).text)
            title_of_reference = draw_title(f"{group.name}: {bars.reference}", (fact,))
            body.append(draw_tag("path", title_of_reference, class_="tickmark", d=line, data_series=number))
        y += _BETWEEN
    body.append(draw_tag("line", class_="base", x1=zero, x2=zero, y1=frame.top, y2=frame.bottom))
    return wrap_picture(frame, ident, "".join(body + said_values), "plot bars")


def describe_bars(bars: Bars) -> str:
    """Describe the bars for readers who do not see them."""
    names = ", ".join(g.name for g in bars.groups)
    return f"{bars.description} Bars of {bars.axis.name} for {names}.".strip()


def _draw_bar(bars: Bars, bar: Bar, group: int, x: Scale, zero: float, y: float) -> tuple[str, str]:
    value = read_middle(bar.value)
    if not math.isfinite(value):
        return "", draw_text(f"{bar.series} –", zero + 8, y + _BAR - 4, "value")
    end, centre = x(value), y + _BAR / 2
    start, width = min(zero, end), max(abs(end - zero), 1.0)
    shown = format_cell(bar.value, bars.axis.number)
    label = draw_title(f"{bars.groups[group].name}: {bar.series}", (("value", shown.line), *bar.facts))
    out = draw_tag(
        "rect",
        label,
        class_=f"bar {name_colour(bar.slot)}",
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
        d = draw_path([(a, centre), (b, centre)]) + draw_path([(a, centre - 4), (a, centre + 4)])
        out += draw_tag("path", class_="whisker", d=d + draw_path([(b, centre - 4), (b, centre + 4)]))
    return out, draw_text(shown.line, right + 8, y + _BAR - 4, "value")

"""Grouped horizontal bars as SVG: a name above each group, a value behind each bar, whiskers for intervals."""

from __future__ import annotations

import math

from allonym.report.charts import Frame, grid, middle, picture, text_of
from allonym.report.numbers import show
from allonym.report.plots import Bar, Bars
from allonym.report.scales import Scale, scale
from allonym.report.svg import colour, path, said, tag, text
from allonym.stats import Estimate

_BAR, _GAP, _NAME, _BETWEEN = 17, 5, 24, 16


def bars_svg(bars: Bars, ident: str) -> str:
    """The picture of grouped bars; bars start at zero."""
    height = sum(_NAME + len(g.bars) * (_BAR + _GAP) + _BETWEEN for g in bars.groups)
    frame = Frame(640, height + 58, 6, 540, 6, 6 + height)
    values = [0.0, *(middle(b.value) for g in bars.groups for b in g.bars)]
    values += [b.value.high for g in bars.groups for b in g.bars if isinstance(b.value, Estimate)]
    values += [g.reference for g in bars.groups if g.reference is not None]
    values += [value for _, value in bars.guides]
    x = scale(bars.axis, values, frame.left, frame.right, 6)
    zero = x(max(x.low, min(0.0, x.high)))
    title = tag("title", text_of(bars.title), id=f"{ident}-t") + tag("desc", text_of(describe(bars)), id=f"{ident}-d")
    body = [title, grid(frame, x, None, bars.axis, None)]
    for name, value in bars.guides:
        line = path([(x(value), frame.top), (x(value), frame.bottom)])
        body.append(tag("path", tag("title", text_of(name)), class_="guide reference", d=line))
    said_values = []  # above everything else
    at = float(frame.top)
    for number, group in enumerate(bars.groups):
        body.append(text(group.name, frame.left, at + 16, "group"))
        at += _NAME
        first = at
        for bar in group.bars:
            drawn, said_value = _bar(bars, bar, number, x, zero, at)
            body.append(drawn)
            said_values.append(said_value)
            at += _BAR + _GAP
        if group.reference is not None and math.isfinite(group.reference):
            line = path([(x(group.reference), first - 3), (x(group.reference), at - _GAP + 3)])
            fact = (bars.reference, show(group.reference, bars.axis.number).text)
            told = said(f"{group.name}: {bars.reference}", (fact,))
            body.append(tag("path", told, class_="tickmark", d=line, data_series=number))
        at += _BETWEEN
    body.append(tag("line", class_="base", x1=zero, x2=zero, y1=frame.top, y2=frame.bottom))
    return picture(frame, ident, "".join(body + said_values), "plot bars")


def describe(bars: Bars) -> str:
    """A sentence for readers who do not see the bars."""
    names = ", ".join(g.name for g in bars.groups)
    return f"{bars.description} Bars of {bars.axis.name} for {names}.".strip()


def _bar(bars: Bars, bar: Bar, group: int, x: Scale, zero: float, at: float) -> tuple[str, str]:
    value = middle(bar.value)
    if not math.isfinite(value):
        return "", text(f"{bar.series} –", zero + 8, at + _BAR - 4, "value")
    end, centre = x(value), at + _BAR / 2
    left, width = min(zero, end), max(abs(end - zero), 1.0)
    shown = show(bar.value, bars.axis.number)
    told = said(f"{bars.groups[group].name}: {bar.series}", (("value", shown.line), *bar.facts))
    out = tag(
        "rect", told, class_=f"bar {colour(bar.slot)}", x=left, y=at, width=width, height=_BAR, rx=3, data_series=group
    )
    right = max(zero, end)
    if isinstance(bar.value, Estimate) and bar.value.low < bar.value.high:
        a, b = x(bar.value.low), x(bar.value.high)
        right = max(right, b)
        d = path([(a, centre), (b, centre)]) + path([(a, centre - 4), (a, centre + 4)])
        out += tag("path", class_="whisker", d=d + path([(b, centre - 4), (b, centre + 4)]))
    return out, text(shown.line, right + 8, at + _BAR - 4, "value")

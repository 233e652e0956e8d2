"""The plots of a report as Vega-Lite, for notebooks: plain dictionaries of numbers and labels, without any text of
documents.

A notebook draws a :class:`Plot` by itself; ``altair.Chart.from_dict(plot)`` makes it a chart to change further.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from allonym.errors import UsageError, hide_foreign_errors
from allonym.partfile import write_file
from allonym.report.evaluate.page import compare_page, evaluation_page
from allonym.report.page import Axis, Bar, Bars, Block, Chart, Facts, Group, Kind, Multiples, Page, Point, Series, Tabs
from allonym.report.svg import get_point_value
from allonym.report.swap import swap_page
from allonym.report.values import Plain, Values, format_cell
from allonym.serial import to_plain
from allonym.stats import Estimate

MIME = "application/vnd.vegalite.v5+json"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
"""Names the grammar; nothing is loaded from there."""

NAMES = {
    "Risk and utility of every release": "plane",
    "Chunks whose origin is guessed": "intruders",
    "Risk and utility at each setting": "grid",
    "Risk and utility side by side": "verdict",
    "Recall by label": "recall",
    "What leaks, by type": "leaks",
    "How the scores are spread": "residual",
    "Documents by probability": "document-risk",
    "Documents by place in the order": "document-risk",
    "Reliability: predicted and true rates": "reliability",
    "Risk against utility": "versions",
}
"""Titles to the names that :func:`vega` gives; a title that is not here becomes small letters and hyphens."""

_COLOURS = ("#0b62b8", "#c94f06", "#08835e", "#a83f87", "#a87400", "#2b86bd", "#6652c4", "#59616d")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
_INK, _LIMIT = "#1b1d22", "#b3261e"
_DASHES = {"frontier": [1, 0], "limit": [7, 5], "reference": [2, 4]}
_CHOSEN = "datum.mark === 'chosen'"
_DATA = {"content": "data"}
Layer = dict[str, Any]
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Result(Protocol):
    """A result with plain values: a search for a release, an evaluation, a comparison."""

    def to_dict(self) -> Mapping[str, Any]:
        """The plain values."""


class Plot(dict[str, Any]):
    """A Vega-Lite specification. It is a dictionary, so JSON and Altair take it as it is; a notebook draws it."""

    def __init__(self, spec: Mapping[str, Any] = _EMPTY) -> None:
        super().__init__(spec)

    def __repr__(self) -> str:
        return f"Plot({self.get('title')!r})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {MIME: dict(self), "text/plain": repr(self)}

    def save(self, path: str | Path) -> None:
        """Write the specification as JSON.

        Raises:
            UsageError: the name does not end in ``.json``, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".json":
            raise UsageError(f"plot {path.name}: must end in .json, got {path.suffix or 'no ending'}")
        with hide_foreign_errors(f"cannot write plot {path.name}", OSError, error=UsageError):
            text = json.dumps(self, ensure_ascii=False, allow_nan=False) + "\n"
            write_file(path, text.encode("utf-8"), makes_folders=False)


def vega(result: Result | Plain | Page) -> dict[str, Plot]:
    """Return the plots of a swap, an evaluation or a comparison by name.

    A swap has ``plane``: risk against utility with the frontier, at the population size of the choice, and at the
    others as ``plane N = 10⁶``; ``intruders``: accuracy before and after; ``grid``. An evaluation has, as far as it was
    measured, ``verdict``: risk and utility side by side; ``recall``: entities found, by label; ``leaks``, by type;
    ``residual``: the spread of residual risk; ``document-risk`` and ``reliability``; further ones after their titles. A
    comparison has ``versions``.

    Args:
        result: what :func:`allonym.swap.search`, :func:`allonym.evaluate.evaluate` or a measure of it (detection,
            residual or document risk) returned, its ``to_dict()``, or a page, of which every chart is taken.

    Raises:
        UsageError: the values are of neither.
    """
    if isinstance(result, Page):
        return dict(_name_plots(result))
    values = Values(result if isinstance(result, Mapping) else _get_plain_values(result))
    values = next((Values(measures={name: values}) for key, name in _ALONE.items() if key in values), values)
    for key, page in _PAGES.items():
        if key in values:
            plots = dict(_name_plots(page(values)))
            if key == "versions":
                return dict(zip(("versions",), plots.values(), strict=False))
            bars = _make_recall_bars(values.get_part("measures.detection"))
            return plots | ({"recall": _make_plot(_specify_bars(bars), bars.title)} if bars is not None else {})
    raise UsageError(f"these are values of no swap, evaluation or comparison: none of {', '.join(_PAGES)} is there")


_ALONE = {"levels": "detection", "total": "residual", "brier": "document_risk"}
"""What only one measure's values have, to the measure."""

_PAGES: Mapping[str, Callable[[Plain], Page]] = {
    "releases": lambda values: swap_page(values, texts=False),
    "measures": lambda values: evaluation_page(values, texts=False),
    # Of a comparison only what is side by side: each version has an evaluation of its own.
    "versions": lambda values: Page("", compare_page(values, texts=False).sections[:1]),
}


def _get_plain_values(result: Any) -> Plain:
    values = result.to_dict() if hasattr(result, "to_dict") else None
    if not isinstance(values, Mapping):
        raise UsageError(f"plots need a result with to_dict(), or its plain values, got {type(result).__name__}")
    return values


def _name_plots(page: Page) -> Iterator[tuple[str, Plot]]:
    names: set[str] = set()
    for block in (*page.lead, *page.sections):
        for title, label, spec in _specify_pictures(block, ""):
            name = NAMES.get(title) or "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
            stem = name = f"{name} {label}".strip()
            number = 2
            while name in names:
                name, number = f"{stem} {number}", number + 1
            names.add(name)
            yield name, _make_plot(spec, title + (f", {label}" if label else ""))


def _specify_pictures(block: Block, label: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield title, label of the tab unless it is the chosen one, and specification of each picture, in reading
    order."""
    if isinstance(block, Chart):
        yield block.title, label, _specify_chart(block)
    elif isinstance(block, Bars):
        yield block.title, label, _specify_bars(block)
    elif isinstance(block, Multiples):
        charts = [{"title": chart.title, **_specify_chart(chart)} for chart in block.charts]
        # Series of one name look the same in all charts of a report, so they may share a legend.
        yield block.title.partition(", N")[0], label, {"concat": charts, "columns": 3}
    elif isinstance(block, Tabs):
        for number, (name, blocks) in enumerate(block.options):
            tab = "" if number == block.chosen else f"N = {name}" if block.title.endswith(" N") else name
            for inner in blocks:
                yield from _specify_pictures(inner, f"{label} {tab}".strip())
    else:
        for inner in block.inside:
            yield from _specify_pictures(inner, label)


def _make_plot(spec: dict[str, Any], title: str) -> Plot:
    return Plot(to_plain({"$schema": SCHEMA, "title": title, **spec}))


def _make_layer(mark: dict[str, Any], encoding: dict[str, Any], where: object = None, values: object = None) -> Layer:
    """A layer of a chart: its mark and encoding, the rows that it shows, or values of its own."""
    chosen = {"transform": [{"filter": where}]} if where else {}
    return ({"data": {"values": values}} if values else {}) | chosen | {"mark": mark, "encoding": encoding}


def _specify_chart(chart: Chart) -> dict[str, Any]:
    small = chart.size == "small"
    series = tuple(s for s in chart.series if s.points)
    points = [(s, number, p) for s in series for number, p in enumerate(s.points)]
    marks = {p.mark for _, _, p in points}
    colours = _specify_series([(s.name, s.slot) for s in series])
    both = {"x": _specify_channel("x", chart.x), "y": _specify_channel("y", chart.y)}
    layers: list[Layer] = []
    for guide in chart.guides:
        colour = _LIMIT if guide.style == "limit" else _INK
        mark = {"type": "line", "color": colour, "strokeDash": _DASHES[guide.style], "opacity": 0.8, "tooltip": True}
        values = [{"x": x, "y": y, "guide": guide.name} for x, y in guide.points]
        layers.append(_make_layer(mark, both | {"tooltip": {"field": "guide"}}, values=values))
    line = both | {"order": {"field": "order", "type": "quantitative"}, "color": colours["color"]}
    for s in series:
        if s.line:
            width, opacity = (1, 0.45) if s.line == "thin" else (2, 0.9)
            dash = {"strokeDash": [6, 4]} if s.line == "dashed" else {}
            mark = {"type": "line", "strokeWidth": width, "opacity": opacity, **dash}
            layers.append(_make_layer(mark, line, {"field": "series", "equal": s.name}))
    for end, other in (("x", "y"), ("y", "x")):
        if any(isinstance(getattr(p, end), Estimate) and p.mark == "chosen" for _, _, p in points):
            ends = {end: _specify_channel(f"{end}_low", getattr(chart, end)), f"{end}2": {"field": f"{end}_high"}}
            layers.append(
                _make_layer({"type": "rule", "color": _INK, "opacity": 0.75}, ends | {other: both[other]}, _CHOSEN)
            )
    larger = [{"test": f"datum.mark === '{mark}'", "value": size} for mark, size in (("chosen", 190), ("frontier", 70))]
    encoding = both | colours | {"size": {"condition": larger, "value": 38}}
    for hollow, where in ((False, "datum.mark !== 'hollow'"), (True, "datum.mark === 'hollow'")):
        if any((mark == "hollow") == hollow for mark in marks):
            mark = {"type": "point", "filled": not hollow, "opacity": 0.85, "tooltip": _DATA}
            layers.append(_make_layer(mark, encoding, where))
    if "chosen" in marks:
        layers.append(_make_layer({"type": "point", "size": 420, "color": _INK, "strokeWidth": 1.6}, both, _CHOSEN))
    rows = [_make_point_row(*point) for point in points]
    width, height = (260, 190) if small else (560, 340)
    layer = layers or [{"mark": "point", "encoding": both}]
    return {"width": width, "height": height, "data": {"values": rows}, "layer": layer}


def _make_point_row(series: Series, number: int, point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {"series": series.name, "order": number, "mark": point.mark}
    for name, value in (("x", point.x), ("y", point.y)):
        row[name] = get_point_value(value)
        if isinstance(value, Estimate):
            row |= {f"{name}_low": value.low, f"{name}_high": value.high}
    return row | ({"label": point.label} if point.label else {}) | _format_facts(point.facts)


def _specify_bars(bars: Bars) -> dict[str, Any]:
    rows = []
    for name, bar in ((group.name, bar) for group in bars.groups for bar in group.bars):
        row = {"group": name, "series": bar.series, "value": get_point_value(bar.value)}
        ends = {"low": bar.value.low, "high": bar.value.high} if isinstance(bar.value, Estimate) else {}
        rows.append(row | ends | _format_facts(bar.facts))
    pairs = dict.fromkeys((bar.series, bar.slot) for group in bars.groups for bar in group.bars)
    place = {"y": {"field": "group", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 260}}}
    beside = {} if all(len(g.bars) < 2 for g in bars.groups) else {"yOffset": {"field": "series", "sort": None}}
    across = _specify_channel("value", bars.axis)
    colour = _specify_series(list(pairs))["color"]
    encoding = place | beside | {"x": across | {"stack": None}, "color": colour}
    layers = [_make_layer({"type": "bar", "tooltip": _DATA}, encoding)]
    if any(row.get("low") != row.get("high") for row in rows):
        limits = {"x": _specify_channel("low", bars.axis), "x2": {"field": "high"}}
        layers.append(_make_layer({"type": "rule", "color": _INK}, place | beside | limits))
    name = bars.reference or "reference"
    ticks = [(group.name, group.reference) for group in bars.groups if group.reference is not None]
    if values := [{"group": group, "value": value, name: value} for group, value in ticks]:
        mark = {"type": "tick", "color": _INK, "thickness": 2, "tooltip": _DATA}
        layers.append(_make_layer(mark, place | {"x": across}, values=values))
    for guide, value in bars.guides:
        mark = {"type": "rule", "color": _INK, "strokeDash": _DASHES["reference"], "tooltip": _DATA}
        layers.append(_make_layer(mark, {"x": across}, values=[{"value": value, "guide": guide}]))
    return {"width": 480, "data": {"values": rows}, "layer": layers}


def _make_recall_bars(detection: Values) -> Bars | None:
    """Return bars of the entities found, by label, the most frequent first."""
    labels = detection.list_rows("levels.entity.labels")
    scored = [label for label in labels if label.has_estimate("recall") and label.get("gold")]
    if not scored:
        return None
    scored.sort(key=lambda label: (-int(label["gold"]), label["name"]))
    groups = tuple(
        Group(s["name"], (Bar("entities found", s.get_estimate("recall"), 0, (("gold", int(s["gold"])),)),))
        for s in scored
    )
    return Bars("Recall by label", Axis("Share of the entities that were found", "share", 0, 1), groups)


def _specify_channel(field: str, axis: Axis) -> dict[str, Any]:
    scale: dict[str, Any] = {"zero": False} if not axis.log else {"type": "log"}
    scale |= {name: v for name, v in (("domainMin", axis.low), ("domainMax", axis.high)) if v is not None}
    drawn: dict[str, Any] = {"format": form} if (form := _FORMS.get("power" if axis.log else axis.number)) else {}
    if axis.number == "count":
        drawn["tickMinStep"] = 1
    channel = {"field": field, "type": "quantitative", "title": axis.name, "scale": scale}
    return channel | ({"axis": drawn} if drawn else {})


_FORMS: Mapping[Kind, str] = {"share": ".0%", "count": ",.0f", "power": "~e", "p": "~g"}


def _specify_series(series: list[tuple[str, int]]) -> dict[str, Any]:
    """Specify the colour of each series and, so that nobody needs to tell colours, its shape."""
    names = list(dict.fromkeys(name for name, _ in series))
    slots = dict(reversed(series))
    legend: dict[str, Any] = {"legend": None} if len(names) < 2 else {"title": None}
    out = {}
    for channel, table in (("color", _COLOURS), ("shape", _SHAPES)):
        shift = {name: slots[name] // 8 if channel == "shape" else 0 for name in names}
        scale = {"domain": names, "range": [table[(slots[name] + shift[name]) % len(table)] for name in names]}
        out[channel] = {"field": "series", "type": "nominal", "scale": scale, **legend}
    return out


def _format_facts(facts: Facts) -> dict[str, Any]:
    # A dot or a bracket in a field's name would be read as a path.
    return {name.translate(_PATH): format_cell(value).line for name, value in facts}


_PATH = str.maketrans(".[]\\'\"", "      ")

"""Releases on the risk-utility plane (P1 Figure 3), the frontier, every release as a table, and the grid of settings.

The grid shows which categories each setting of hyperparameters chooses, and its plane (P1 3.2.1, Figures 4 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from allonym.report import page
from allonym.report.sections import Folded, Paragraph, SectionSpec, ValueTable
from allonym.report.swap.clusters import SHORT
from allonym.report.swap.values import (
    Categories,
    Search,
    map_by_population,
    name_categories,
    read_categories,
    shorten_powers,
)
from allonym.report.values import (
    NAN,
    Plain,
    Values,
    format_cell,
    format_power,
    format_setting,
    has_estimate,
    read_estimate,
)
from allonym.stats import Estimate

STAND_IN = "U = exp(D / (n d))"
_LEAD = (
    "Each mark is one way to release the corpus: which categories are exchanged, and how far. A thin line joins "
    "releases that only differ in how far; the fewest swaps are at the top. To the right, texts keep more of what they "
    "speak of; further down, less of the corpus stays unique. Risk R is (2.16) with {p}, utility U is {u}."
)
_FRONTIER = """
    Exchanged      | key
    Swaps          | swaps              | count
    Chunks changed | changed            | count    | Chunks whose text changes; mean and SD over the draws
    Share          | share              | share.1
    Risk R         | judged             | number.4 | {spread}
    Utility U      | utility            | number.5 | (2.19)
    D per chunk    | distance_per_chunk | number.2 | Change of the log density per changed chunk, nats (2.17)
    Cosine         | cosine             | number.3 | Mean cosine between a changed chunk's vectors before and after
    Uniques left   | remaining          | count    | Expected number of population uniques that stay, p (s1 - m)
"""
_DOCUMENTS = """
    Documents      | found | share.1 | How much of each document the worst intruder finds who looks for whole documents
"""
_SPREAD = "(2.16), mean over the draws; interval: 95 % of the model, wider by the draws' standard deviation"
_EVERY = """
    #              | index   | count
    Exchanged      | key
    Swaps          | swaps   | count
    Chunks changed | changed | count
    Share          | share   | share.1
    Uniques m      | uniques | count    | Sample uniques of the table before the exchange that were changed
    Utility U      | utility | number.5
    D, nats        | distance | number.2
    D per chunk    | distance_per_chunk | number.3
    Cosine         | cosine  | number.3
"""
_NOTE = (
    "Mean and standard deviation over the draws; of risks, the model's 95 % interval, wider by that. "
    "A bar at the left marks the frontier, colour the chosen release."
)
_DROPPED = """
    Categories | key
    Why        | reason
"""


def _describe_risk_formulas(result: Search) -> str:
    p = "the bounded p*" if result.risk_key == "bounded" else "p of (2.15)"
    u = "(2.19)"
    if any(STAND_IN in str(flag) for release in result.list_rows("releases") for flag in release.get("flags") or ()):
        u = "exp(D / (n d)) for all of them, since the ratio of (2.19) misleads for some"
    return _LEAD.format(p=p, u=u)


def _draw_risk_utility_planes(result: Search) -> Iterator[page.Block]:
    yield _draw_population_tabs(result, result.population_sizes, draw_risk_utility_plane)


def _draw_choice_reasons(result: Search) -> Iterator[page.Block]:
    reasons = result.get("why") or ()
    if reasons:
        texts = (reasons,) if isinstance(reasons, str) else reasons
        yield page.Section("Why this release", tuple(page.Text(shorten_powers(text)) for text in texts))


def _draw_frontiers(result: Search) -> Iterator[page.Block]:
    if sizes := [size for size in result.population_sizes if result.find_frontier_indices(size)]:
        yield page.Section("The frontier", (_draw_population_tabs(result, sizes, _draw_frontier_table),))


def _draw_population_tabs(result: Search, sizes: list[float], draw: Callable[[Search, float], page.Block]) -> page.Tabs:
    """Draw a block for each population size; that of the choice shows first."""
    options = tuple((format_power(size), (draw(result, size),)) for size in sizes)
    chosen = result.shown_size
    return page.Tabs("Population size N", options, sizes.index(chosen) if chosen in sizes else 0)


def draw_risk_utility_plane(result: Search, size: float) -> page.Chart:
    """Draw the risk-utility plot at one population size: a series per set of categories."""
    risks = (
        (release, read_estimate(result.read_judged_risks(release).get(size)))
        for release in result.list_rows("releases")
    )
    shown = [(release, risk) for release, risk in risks if has_estimate(risk) and release.has_estimate("utility")]
    lift, axis = _choose_risk_scale([risk for _, risk in shown])
    frontier = result.find_frontier_indices(size)
    points: dict[Categories, list[page.Point]] = {}
    for release, risk in sorted(shown, key=lambda pair: (pair[0].get("swaps") or 0, pair[0].get("index") or 0)):
        categories, facts = read_categories(release), _list_release_facts(release, result, size)
        label = f"{name_categories(categories)}, {release.get('swaps', 0):,} swaps"
        mark = _choose_release_mark(release, result, frontier)
        points.setdefault(categories, []).append(
            page.Point(release.get_estimate("utility"), lift(risk), label, facts, mark)
        )
    series = _make_thin_series(result, {c: points[c] for c in sorted(points, key=result.colour_slots.__getitem__)})
    places = [(r.get_estimate("utility").value, lift(risk).value) for r, risk in shown if r.get("index") in frontier]
    guides = []
    if len(places) > 1:
        guides.append(page.Guide("frontier", tuple(sorted(places, key=lambda p: (min(p[0], 1.0), p[1]))), "frontier"))
    if any(release.get_estimate("utility").value > 1 for release, _ in shown):
        heights = [lift(risk).value for _, risk in shown]
        guides.append(page.Guide("U = 1; what lies beyond counts as 1", ((1.0, min(heights)), (1.0, max(heights)))))
    return page.Chart(
        "Risk and utility of every release",
        page.Axis("Utility U", "number"),
        axis,
        series,
        tuple(guides),
        f"Population size N = {format_power(size)}. Point at a mark, or press Tab and arrow keys, to see its numbers.",
        "lower right",
    )


def _make_thin_series(result: Search, points: Mapping[Categories, Sequence[page.Point]]) -> tuple[page.Series, ...]:
    """Return a series with a thin line for each set of categories."""
    return tuple(page.Series(name_categories(c), tuple(points[c]), result.colour_slots[c], "thin") for c in points)


def _choose_risk_scale(risks: Sequence[Estimate]) -> tuple[Callable[[Estimate], Estimate], page.Axis]:
    # Where nearly all sample uniques stop being unique at N, every R is close to 1: then the axis shows R - 1.
    below = max((1 - risk.value for risk in risks), default=1.0)
    if not 0 < below < 1e-3:
        return (lambda e: e), page.Axis("Risk R")
    unit = 10.0 ** math.floor(math.log10(below))

    def scale_estimate(e: Estimate) -> Estimate:
        return Estimate((e.value - 1) / unit, (e.low - 1) / unit, (e.high - 1) / unit, e.n, e.method)

    return scale_estimate, page.Axis(f"Risk R − 1, in units of {format_power(unit)}")


def _choose_release_mark(release: Values, result: Search, frontier: set[int]) -> Literal["", "frontier", "chosen"]:
    return "chosen" if result.is_chosen(release) else "frontier" if release.get("index") in frontier else ""


def _list_release_facts(release: Values, result: Search, size: float) -> page.Facts:
    """What a mark of the plane says when it is pointed at."""
    facts: list[tuple[str, page.Cell]] = [
        ("Chunks changed", release.get_estimate("changed")),
        ("Share of chunks", format_cell(release.get_estimate("share"), "share", 1).line),
        ("Uniques changed", release.get_estimate("uniques")),
        ("Utility U", release.get_estimate("utility")),
    ]
    for name, label in (("risk", "Risk R with p"), ("bounded", "Risk R with p*"), ("remaining", "Uniques left at N")):
        risks = result.read_judged_risks(release) if name == result.risk_key else map_by_population(release.get(name))
        facts.append((label, read_estimate(risks.get(size))))
    for name, label in (("distance", "D, nats"), ("distance_per_chunk", "D per changed chunk"), ("cosine", "Cosine")):
        facts.append((label, release.get_estimate(name)))
    if release.get("flags"):
        facts.append(("Remarks", ", ".join(str(flag) for flag in release["flags"])))
    return tuple((name, value) for name, value in facts if not isinstance(value, Estimate) or has_estimate(value))


def _draw_frontier_table(result: Search, size: float) -> page.Table:
    """The releases that none beats in both risk and utility, the most useful first."""
    frontier = result.find_frontier_indices(size)
    releases = [release for release in _list_releases(result, size, set()) if release.get("index") in frontier]
    releases.sort(key=lambda release: -release.get_estimate("utility").value)
    has_chosen = any(result.is_chosen(release) for release in releases)
    return ValueTable(
        f"Releases on the frontier at N = {format_power(size)}",
        lambda _: releases,
        _FRONTIER + _DOCUMENTS * any(release.has_estimate("found") for release in releases),
        "The chosen release is set off." if has_chosen else "",
        15,
    ).draw(Search({**result, "spread": _SPREAD}))


def _list_releases(result: Search, size: float, frontier: set[int]) -> list[Values]:
    """List the releases with the values that the tables show at a population size; those of ``frontier`` are marked."""
    sizes, documents = result.population_sizes, result.get_part("documents")
    lines = []
    for release in result.list_rows("releases"):
        risks, bounded, remaining = (map_by_population(release.get(name)) for name in ("risk", "bounded", "remaining"))
        cells = {
            "key": result.make_categories_key(read_categories(release)),
            "judged": result.read_judged_risks(release).get(size),
            "remaining": remaining.get(size),
            "risk": [risks.get(n) for n in sizes],
            "bounded": [bounded.get(n) for n in sizes],
            "found": documents.get_estimate(f"{release.get('index')}.identified"),
            "remark": page.Tag(", ".join(map(str, release["flags"])), "warn") if release.get("flags") else "",
            "mark": _choose_release_mark(release, result, frontier),
        }
        lines.append(Values({**release, **cells}))
    return lines


def _draw_every_release(result: Search) -> Iterator[page.Block]:
    sizes = list(enumerate(map(format_power, result.population_sizes)))
    fields = [_EVERY.rstrip()]
    fields += [f"R, N = {name} | risk.{i} | number.4 | (2.16) with p of (2.15)" for i, name in sizes]
    fields += [f"R*, N = {name} | bounded.{i} | number.4 | (2.16) with the bounded p*" for i, name in sizes]
    fields.append("Remarks | remark")
    size = result.shown_size or NAN
    releases = _list_releases(result, size, result.find_frontier_indices(size))
    table = ValueTable("", lambda _: releases, "\n".join(fields), _NOTE, 20)
    yield Folded(f"Every release ({len(releases):,})", (table,)).draw(result)


def _list_dropped_categories(result: Search) -> list[Plain]:
    return [
        {"key": result.make_categories_key(read_categories(row)), "reason": shorten_powers(row.get("reason", ""))}
        for row in result.list_rows("dropped")
    ]


releases_section = SectionSpec(
    "Risk and utility",
    "releases",
    "releases",
    (
        Paragraph(_describe_risk_formulas),
        _draw_risk_utility_planes,
        _draw_choice_reasons,
        _draw_frontiers,
        ValueTable("No candidates", _list_dropped_categories, _DROPPED, when="dropped"),
        _draw_every_release,
    ),
)


_NAMES = {
    "threshold": "threshold",
    "family": "Family",
    "clusters": "K",
    "min_weight": "min. weight",
    "population": "N",
}
_ACROSS = ("population", "threshold")
_COUNTS = {"chunks": "Chunks", "left": "Clusters left"}
_TITLE = "Risk and utility at each setting"


def _list_varied_settings(result: Search) -> list[str]:
    grid = result.list_rows("grid")
    return [name for name in _NAMES if len({format_setting(row.get(name)) for row in grid if name in row}) > 1]


def _describe_grid_choices(result: Search) -> str:
    grid = result.list_rows("grid")
    failed = sum(not row.get("converged", True) or bool(row.get("reason")) for row in grid)
    text = f"{len(grid)} settings were tried; {len(grid) - failed} of them give a choice. "
    if choices := [choice for row in grid if (choice := read_categories(row))]:
        most = max(dict.fromkeys(choices), key=choices.count)
        text += (
            "The choice is the release of the lowest risk on the frontier. "
            f"{name_categories(most)} is chosen in {choices.count(most)} of them."
        )
    return text


def _read_failure_reason(row: Values) -> str:
    return str(row.get("reason") or ("" if row.get("converged", True) else "did not converge"))


def _format_setting_value(row: Values, name: str) -> str:
    value = row.get(name)
    if name == "population" and isinstance(value, (int, float)):
        return format_power(float(value))
    if name == "family":
        return SHORT.get(str(value), str(value))
    return format_setting(value)


def _format_setting_label(row: Values, names: Sequence[str]) -> str:
    values = ((name, _format_setting_value(row, name)) for name in names)
    labels = (value if name == "family" else f"{_NAMES[name]}\u00a0=\u00a0{value}" for name, value in values)
    return ", ".join(labels) or "the setting"


def _draw_choice_matrix(result: Search) -> Iterator[page.Block]:
    grid, names = result.list_rows("grid"), _list_varied_settings(result)
    across = [name for name in names if name in _ACROSS] or names[-1:]
    down = [name for name in names if name not in across]
    columns = list(dict.fromkeys(_format_setting_label(row, across) for row in grid))
    lines = list(dict.fromkeys(_format_setting_label(row, down) for row in grid))
    cells = {(_format_setting_label(row, down), _format_setting_label(row, across)): row for row in grid}
    yield page.Matrix(
        "Categories chosen at each setting",
        tuple(columns),
        tuple((line, tuple(_draw_choice(cells.get((line, column)), result) for column in columns)) for line in lines),
        ", ".join(_NAMES[name] for name in down),
        note="A dash: no choice; point at it, or open the table below, for the reason.",
    )


def _draw_choice(row: Values | None, result: Search) -> page.Square:
    if row is None:
        return page.Square("")
    choice = read_categories(row)
    name, slot = (name_categories(choice), result.colour_slots.get(choice)) if choice else (None, None)
    return page.Square(name, None, slot, _read_failure_reason(row))


def _draw_grid_planes(result: Search) -> Iterator[page.Block]:
    grid, names = result.list_rows("grid"), _list_varied_settings(result)
    if not any(row.get("releases") for row in grid):
        return
    if "population" not in names:
        yield page.Multiples(_TITLE, _draw_setting_charts(result, grid, names))
        return
    names.remove("population")
    options = []
    for size in sorted({float(row["population"]) for row in grid}):
        charts = _draw_setting_charts(result, [row for row in grid if float(row["population"]) == size], names)
        options.append((format_power(size), (page.Multiples(f"{_TITLE}, N\u00a0=\u00a0{format_power(size)}", charts),)))
    yield page.Tabs("Population size N", tuple(options), len(options) // 2)


def _draw_setting_charts(result: Search, grid: list[Values], names: list[str]) -> tuple[page.Chart, ...]:
    charts = []
    for row in grid:
        points: dict[Categories, list[page.Point]] = {}
        for release in row.list_rows("releases"):
            categories, utility, risk = read_categories(release), release["utility"], release["risk"]
            label = f"{name_categories(categories)}, {release['swaps']:,} swaps"
            facts = (("Utility U", utility), ("Risk R", risk))
            points.setdefault(categories, []).append(page.Point(utility, risk, label, facts))
        if points:
            label, axes = _format_setting_label(row, names), (page.Axis("U"), page.Axis("R"))
            description = "Risk and utility of every release."
            charts.append(
                page.Chart(label, *axes, _make_thin_series(result, points), description=description, size="small")
            )
    return tuple(charts)


def _draw_settings_table(result: Search) -> Iterator[page.Block]:
    grid, names = result.list_rows("grid"), _list_varied_settings(result)
    fields = [f"{_NAMES[name]} | {name}" for name in names]
    fields += [f"{title} | {name} | count" for name, title in _COUNTS.items() if any(name in row for row in grid)]
    fields += ["Chosen | key", "Share of the frontier | share | share.0", "Remarks | remark"]
    table = ValueTable("", lambda values: _list_grid_settings(values, names), "\n".join(fields), shown=40)
    yield Folded("Every setting", (table,)).draw(result)


def _list_grid_settings(result: Search, names: list[str]) -> list[Plain]:
    lines: list[Plain] = []
    for row in result.list_rows("grid"):
        choice, reason = read_categories(row), _read_failure_reason(row)
        cells = {
            "key": result.make_categories_key(choice) if choice else None,
            "share": next((s["share"] for s in row.list_rows("shares") if read_categories(s) == choice), None),
            "remark": page.Tag(reason, "warn") if reason else "",
        }
        lines.append({**row, **{name: _format_setting_value(row, name) for name in names}, **cells})
    return lines


grid_section = SectionSpec(
    "Other settings",
    "grid",
    "grid",
    (Paragraph(_describe_grid_choices), _draw_choice_matrix, _draw_grid_planes, _draw_settings_table),
)

"""Releases on the risk-utility plane (P1 Figure 3), the frontier, every release as a table, and the grid of settings.

The grid shows which categories each setting of hyperparameters chooses, and its plane (P1 3.2.1, Figures 4 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from allonym.report import page
from allonym.report.sections import Folded, Paragraph, RowMark, SectionSpec, ValueTable
from allonym.report.swap.clusters import SHORT
from allonym.report.swap.values import (
    Categories,
    assign_colours,
    choose_risk_key,
    find_chosen_release,
    find_frontier,
    find_population,
    list_populations,
    map_by_population,
    mark_categories,
    name_categories,
    read_categories,
    read_risks,
    shorten_powers,
)
from allonym.report.values import (
    Plain,
    format_cell,
    format_power,
    format_setting,
    has_estimate,
    read_estimate,
    read_rows,
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


def _describe_risk_formulas(result: Plain) -> str:
    p = "the bounded p*" if choose_risk_key(result) == "bounded" else "p of (2.15)"
    u = "(2.19)"
    if any(STAND_IN in str(flag) for release in read_rows(result, "releases") for flag in release.get("flags") or ()):
        u = "exp(D / (n d)) for all of them, since the ratio of (2.19) misleads for some"
    return _LEAD.format(p=p, u=u)


def _draw_planes(result: Plain) -> Iterator[page.Block]:
    sizes = list_populations(result)
    options = tuple((format_power(size), (draw_plane(result, size),)) for size in sizes)
    yield page.Tabs("Population size N", options, _find_chosen_tab(sizes, result))


def _draw_choice_reasons(result: Plain) -> Iterator[page.Block]:
    reasons = result.get("why") or ()
    if reasons:
        texts = (reasons,) if isinstance(reasons, str) else reasons
        yield page.Section("Why this release", tuple(page.Text(shorten_powers(text)) for text in texts))


def _draw_frontiers(result: Plain) -> Iterator[page.Block]:
    sizes = [size for size in list_populations(result) if find_frontier(result, size)]
    if sizes:
        options = tuple((format_power(size), (_draw_frontier(result, size),)) for size in sizes)
        yield page.Section("The frontier", (page.Tabs("Population size N", options, _find_chosen_tab(sizes, result)),))


def _find_chosen_tab(sizes: list[float], result: Plain) -> int:
    chosen = find_population(result)
    return sizes.index(chosen) if chosen in sizes else 0


def draw_plane(result: Plain, size: float) -> page.Chart:
    """Draw the risk-utility plot at one population size: a series per set of categories."""
    slots, frontier, chosen = assign_colours(result), find_frontier(result, size), find_chosen_release(result)
    shown = [
        (release, read_risks(release, result)[size])
        for release in read_rows(result, "releases")
        if has_estimate(read_risks(release, result).get(size)) and has_estimate(release.get("utility"))
    ]
    lift, axis = _choose_risk_scale([risk for _, risk in shown])
    points: dict[Categories, list[page.Point]] = {}
    for release, risk in sorted(shown, key=lambda pair: (pair[0].get("swaps") or 0, pair[0].get("index") or 0)):
        label = f"{name_categories(read_categories(release))}, {release.get('swaps', 0):,} swaps"
        mark = _mark_release(release, chosen, frontier)
        point = page.Point(
            read_estimate(release["utility"]), lift(risk), label, _list_release_facts(release, result, size), mark
        )
        points.setdefault(read_categories(release), []).append(point)
    series = [
        page.Series(name_categories(c), tuple(points[c]), slots[c], "thin")
        for c in sorted(points, key=slots.__getitem__)
    ]
    places = [(read_estimate(r["utility"]).value, lift(risk).value) for r, risk in shown if r.get("index") in frontier]
    guides = []
    if len(places) > 1:
        guides.append(page.Guide("frontier", tuple(sorted(places, key=lambda p: (min(p[0], 1.0), p[1]))), "frontier"))
    if any(read_estimate(release["utility"]).value > 1 for release, _ in shown):
        heights = [lift(risk).value for _, risk in shown]
        guides.append(page.Guide("U = 1; what lies beyond counts as 1", ((1.0, min(heights)), (1.0, max(heights)))))
    return page.Chart(
        "Risk and utility of every release",
        page.Axis("Utility U", "number"),
        axis,
        tuple(series),
        tuple(guides),
        f"Population size N = {format_power(size)}. Point at a mark, or press Tab and arrow keys, to see its numbers.",
        "lower right",
    )


def _choose_risk_scale(risks: Sequence[Estimate]) -> tuple[Callable[[Estimate], Estimate], page.Axis]:
    # Where nearly all sample uniques stop being unique at N, every R is close to 1: then the axis shows R - 1.
    below = max((1 - risk.value for risk in risks), default=1.0)
    if not 0 < below < 1e-3:
        return (lambda e: e), page.Axis("Risk R")
    unit = 10.0 ** math.floor(math.log10(below))

    def scale_estimate(e: Estimate) -> Estimate:
        return Estimate((e.value - 1) / unit, (e.low - 1) / unit, (e.high - 1) / unit, e.n, e.method)

    return scale_estimate, page.Axis(f"Risk R − 1, in units of {format_power(unit)}")


def _mark_release(release: Plain, chosen: Plain | None, frontier: set[int]) -> RowMark:
    return "chosen" if release is chosen else "frontier" if release.get("index") in frontier else ""


def _list_release_facts(release: Plain, result: Plain, size: float) -> page.Facts:
    """What a mark of the plane says when it is pointed at."""
    facts: list[tuple[str, page.Cell]] = [
        ("Chunks changed", read_estimate(release.get("changed"))),
        ("Share of chunks", format_cell(read_estimate(release.get("share")), "share", 1).line),
        ("Uniques changed", read_estimate(release.get("uniques"))),
        ("Utility U", read_estimate(release.get("utility"))),
    ]
    for name, label in (("risk", "Risk R with p"), ("bounded", "Risk R with p*"), ("remaining", "Uniques left at N")):
        risks = read_risks(release, result) if name == choose_risk_key(result) else map_by_population(release.get(name))
        facts.append((label, read_estimate(risks.get(size))))
    for name, label in (("distance", "D, nats"), ("distance_per_chunk", "D per changed chunk"), ("cosine", "Cosine")):
        facts.append((label, read_estimate(release.get(name))))
    if release.get("flags"):
        facts.append(("Remarks", ", ".join(str(flag) for flag in release["flags"])))
    return tuple((name, value) for name, value in facts if not isinstance(value, Estimate) or has_estimate(value))


def _draw_frontier(result: Plain, size: float) -> page.Table:
    """The releases that none beats in both risk and utility, the most useful first."""
    frontier = find_frontier(result, size)
    releases = [release for release in _list_releases(result, size) if release.get("index") in frontier]
    releases.sort(key=lambda release: -read_estimate(release.get("utility")).value)
    has_chosen = any(release["mark"] == "chosen" for release in releases)
    return ValueTable(
        f"Releases on the frontier at N = {format_power(size)}",
        lambda _: releases,
        _FRONTIER,
        "The chosen release is set off." if has_chosen else "",
        15,
        lambda release: release["mark"] if release["mark"] == "chosen" else "",
    ).draw({**result, "spread": _SPREAD})


def _list_releases(result: Plain, size: float | None) -> list[Plain]:
    """List the releases with the values that the tables show at a population size."""
    slots, chosen, sizes = assign_colours(result), find_chosen_release(result), list_populations(result)
    frontier = find_frontier(result, size) if size is not None else set()
    lines: list[Plain] = []
    for release in read_rows(result, "releases"):
        risks, bounded, remaining = (map_by_population(release.get(name)) for name in ("risk", "bounded", "remaining"))
        cells = {
            "key": mark_categories(read_categories(release), slots),
            "judged": read_risks(release, result).get(size) if size is not None else None,
            "remaining": remaining.get(size) if size is not None else None,
            "risk": [risks.get(n) for n in sizes],
            "bounded": [bounded.get(n) for n in sizes],
            "remark": page.Tag(", ".join(map(str, release["flags"])), "warn") if release.get("flags") else "",
            "mark": _mark_release(release, chosen, frontier),
        }
        lines.append({**release, **cells})
    return lines


def _draw_every_release(result: Plain) -> Iterator[page.Block]:
    sizes = list(enumerate(map(format_power, list_populations(result))))
    fields = [_EVERY.rstrip()]
    fields += [f"R, N = {name} | risk.{i} | number.4 | (2.16) with p of (2.15)" for i, name in sizes]
    fields += [f"R*, N = {name} | bounded.{i} | number.4 | (2.16) with the bounded p*" for i, name in sizes]
    fields.append("Remarks | remark")
    releases = _list_releases(result, find_population(result))
    table = ValueTable("", lambda _: releases, "\n".join(fields), _NOTE, 20, lambda release: release["mark"])
    yield Folded(f"Every release ({len(releases):,})", (table,)).draw(result)


def _list_dropped_categories(result: Plain) -> list[Plain]:
    slots = assign_colours(result)
    return [
        {"key": mark_categories(read_categories(row), slots), "reason": shorten_powers(row.get("reason", ""))}
        for row in read_rows(result, "dropped")
    ]


releases_section = SectionSpec(
    "Risk and utility",
    "releases",
    "releases",
    (
        Paragraph(_describe_risk_formulas),
        _draw_planes,
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
    "k": "K",
    "min_weight": "min. weight",
    "population": "N",
}
_ACROSS = ("population", "threshold")
_COUNTS = {"chunks": "Chunks", "left": "Clusters left"}
_TITLE = "Risk and utility at each setting"


def _list_varied_settings(result: Plain) -> list[str]:
    grid = read_rows(result, "grid")
    return [name for name in _NAMES if len({format_setting(row.get(name)) for row in grid if name in row}) > 1]


def _describe_choices(result: Plain) -> str:
    grid = read_rows(result, "grid")
    failed = sum(not row.get("converged", True) or bool(row.get("reason")) for row in grid)
    text = f"{len(grid)} settings were tried; {len(grid) - failed} of them give a choice. "
    if choices := [choice for row in grid if (choice := _read_chosen_categories(row))]:
        most = max(dict.fromkeys(choices), key=choices.count)
        text += (
            "The choice is the release of the lowest risk on the frontier. "
            f"{name_categories(most)} is chosen in {choices.count(most)} of them."
        )
    return text


def _read_chosen_categories(row: Plain) -> Categories:
    return read_categories(row, "chosen") or read_categories(row)


def _read_failure_reason(row: Plain) -> str:
    return str(row.get("reason") or ("" if row.get("converged", True) else "did not converge"))


def _format_value(row: Plain, name: str) -> str:
    value = row.get(name)
    if name == "population" and isinstance(value, (int, float)):
        return format_power(float(value))
    if name == "family":
        return SHORT.get(str(value), str(value))
    return format_setting(value)


def _format_setting_label(row: Plain, names: Sequence[str]) -> str:
    values = ((name, _format_value(row, name)) for name in names)
    labels = (value if name == "family" else f"{_NAMES[name]}\u00a0=\u00a0{value}" for name, value in values)
    return ", ".join(labels) or "the setting"


def _draw_choice_matrix(result: Plain) -> Iterator[page.Block]:
    grid, slots, names = read_rows(result, "grid"), assign_colours(result), _list_varied_settings(result)
    across = [name for name in names if name in _ACROSS] or names[-1:]
    down = [name for name in names if name not in across]
    columns = list(dict.fromkeys(_format_setting_label(row, across) for row in grid))
    lines = list(dict.fromkeys(_format_setting_label(row, down) for row in grid))
    cells = {(_format_setting_label(row, down), _format_setting_label(row, across)): row for row in grid}
    yield page.Matrix(
        "Categories chosen at each setting",
        tuple(columns),
        tuple(
            (line, tuple(_draw_choice_cell(cells.get((line, column)), slots) for column in columns)) for line in lines
        ),
        ", ".join(_NAMES[name] for name in down),
        note="A dash: no choice; point at it, or open the table below, for the reason.",
    )


def _draw_choice_cell(row: Plain | None, slots: dict[Categories, int]) -> page.Square:
    if row is None:
        return page.Square("")
    choice, reason = _read_chosen_categories(row), _read_failure_reason(row)
    return page.Square(name_categories(choice) if choice else None, None, slots.get(choice) if choice else None, reason)


def _draw_grid_planes(result: Plain) -> Iterator[page.Block]:
    grid, names = read_rows(result, "grid"), _list_varied_settings(result)
    if not any(row.get("releases") for row in grid):
        return
    if "population" not in names:
        yield page.Multiples(_TITLE, _draw_setting_charts(result, grid, names))
        return
    others = [name for name in names if name != "population"]
    sizes = sorted({float(row["population"]) for row in grid})
    options = []
    for size in sizes:
        charts = _draw_setting_charts(result, [row for row in grid if float(row["population"]) == size], others)
        options.append((format_power(size), (page.Multiples(f"{_TITLE}, N\u00a0=\u00a0{format_power(size)}", charts),)))
    yield page.Tabs("Population size N", tuple(options), len(sizes) // 2)


def _draw_setting_charts(result: Plain, grid: list[Plain], names: list[str]) -> tuple[page.Chart, ...]:
    slots = assign_colours(result)
    charts = []
    for row in grid:
        points: dict[Categories, list[page.Point]] = {}
        for release in read_rows(row, "releases"):
            categories = read_categories(release)
            points.setdefault(categories, []).extend(_draw_point(release, name_categories(categories)))
        series = tuple(page.Series(name_categories(c), tuple(points[c]), slots[c], "thin") for c in points)
        if series:
            description = "Risk and utility of every release."
            label = _format_setting_label(row, names)
            charts.append(
                page.Chart(label, page.Axis("U"), page.Axis("R"), series, description=description, size="small")
            )
    return tuple(charts)


def _draw_point(release: Plain, name: str) -> Iterator[page.Point]:
    utility, risk = release.get("utility"), release.get("risk")
    if isinstance(utility, (int, float)) and isinstance(risk, (int, float)):
        facts = (("Utility U", float(utility)), ("Risk R", float(risk)))
        yield page.Point(float(utility), float(risk), f"{name}, {release.get('swaps', 0):,} swaps", facts)


def _draw_settings_table(result: Plain) -> Iterator[page.Block]:
    grid, names = read_rows(result, "grid"), _list_varied_settings(result)
    fields = [f"{_NAMES[name]} | {name}" for name in names]
    fields += [f"{title} | {name} | count" for name, title in _COUNTS.items() if any(name in row for row in grid)]
    fields += ["Chosen | key", "Share of the frontier | share | share.0", "Remarks | remark"]
    table = ValueTable("", lambda values: _list_settings(values, names), "\n".join(fields), shown=40)
    yield Folded("Every setting", (table,)).draw(result)


def _list_settings(result: Plain, names: list[str]) -> list[Plain]:
    slots = assign_colours(result)
    lines: list[Plain] = []
    for row in read_rows(result, "grid"):
        choice, reason = _read_chosen_categories(row), _read_failure_reason(row)
        cells = {
            "key": mark_categories(choice, slots) if choice else None,
            "share": _read_frontier_share(row, choice),
            "remark": page.Tag(reason, "warn") if reason else "",
        }
        lines.append({**row, **{name: _format_value(row, name) for name in names}, **cells})
    return lines


def _read_frontier_share(row: Plain, choice: Categories) -> float | None:
    if isinstance(row.get("share"), (int, float)):
        return float(row["share"])
    return next((float(s["share"]) for s in read_rows(row, "shares") if read_categories(s) == choice), None)


grid_section = SectionSpec(
    "Other settings",
    "grid",
    "grid",
    (Paragraph(_describe_choices), _draw_choice_matrix, _draw_grid_planes, _draw_settings_table),
)

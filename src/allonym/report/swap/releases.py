"""Releases on the risk-utility plane (P1 Figure 3), the frontier, and every release as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from allonym.report.numbers import format_cell, format_power
from allonym.report.page import Block, Cell, Facts, Section, Table, Tabs, Tag, Text
from allonym.report.plots import Axis, Chart, Guide, Point, Series
from allonym.report.sections import Folded, Paragraph, RowMark, SectionSpec, ValueTable
from allonym.report.swap.values import (
    Categories,
    assign_slots,
    find_chosen,
    find_frontier,
    find_population,
    list_populations,
    map_by_population,
    mark_categories,
    name_categories,
    name_risk,
    read_categories,
    read_risks,
    shorten_powers,
)
from allonym.report.values import Plain, has_estimate, list_rows, read_estimate
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


def _describe_plane(result: Plain) -> str:
    p = "the bounded p*" if name_risk(result) == "bounded" else "p of (2.15)"
    u = "(2.19)"
    if any(STAND_IN in str(flag) for release in list_rows(result, "releases") for flag in release.get("flags") or ()):
        u = "exp(D / (n d)) for all of them, since the ratio of (2.19) misleads for some"
    return _LEAD.format(p=p, u=u)


def _draw_planes(result: Plain) -> Iterator[Block]:
    sizes = list_populations(result)
    options = tuple((format_power(size), (draw_plane(result, size),)) for size in sizes)
    yield Tabs("Population size N", options, _find_tab(sizes, result))


def _draw_reasons(result: Plain) -> Iterator[Block]:
    reasons = result.get("why") or ()
    if reasons:
        texts = (reasons,) if isinstance(reasons, str) else reasons
        yield Section("Why this release", tuple(Text(shorten_powers(text)) for text in texts))


def _draw_frontiers(result: Plain) -> Iterator[Block]:
    sizes = [size for size in list_populations(result) if find_frontier(result, size)]
    if sizes:
        options = tuple((format_power(size), (_draw_frontier(result, size),)) for size in sizes)
        yield Section("The frontier", (Tabs("Population size N", options, _find_tab(sizes, result)),))


def _find_tab(sizes: list[float], result: Plain) -> int:
    chosen = find_population(result)
    return sizes.index(chosen) if chosen in sizes else 0


def draw_plane(result: Plain, size: float) -> Chart:
    """Draw the risk-utility plot at one population size: a series per set of categories."""
    slots, frontier, chosen = assign_slots(result), find_frontier(result, size), find_chosen(result)
    shown = [
        (release, read_risks(release, result)[size])
        for release in list_rows(result, "releases")
        if has_estimate(read_risks(release, result).get(size)) and has_estimate(release.get("utility"))
    ]
    lift, axis = _choose_risk_scale([risk for _, risk in shown])
    points: dict[Categories, list[Point]] = {}
    for release, risk in sorted(shown, key=lambda pair: (pair[0].get("swaps") or 0, pair[0].get("index") or 0)):
        label = f"{name_categories(read_categories(release))}, {release.get('swaps', 0):,} swaps"
        mark = _mark_release(release, chosen, frontier)
        point = Point(
            read_estimate(release["utility"]), lift(risk), label, _list_release_facts(release, result, size), mark
        )
        points.setdefault(read_categories(release), []).append(point)
    series = [
        Series(name_categories(c), tuple(points[c]), slots[c], "thin") for c in sorted(points, key=slots.__getitem__)
    ]
    places = [(read_estimate(r["utility"]).value, lift(risk).value) for r, risk in shown if r.get("index") in frontier]
    guides = []
    if len(places) > 1:
        guides.append(Guide("frontier", tuple(sorted(places, key=lambda p: (min(p[0], 1.0), p[1]))), "frontier"))
    if any(read_estimate(release["utility"]).value > 1 for release, _ in shown):
        heights = [lift(risk).value for _, risk in shown]
        guides.append(Guide("U = 1; what lies beyond counts as 1", ((1.0, min(heights)), (1.0, max(heights)))))
    return Chart(
        "Risk and utility of every release",
        Axis("Utility U", "number"),
        axis,
        tuple(series),
        tuple(guides),
        f"Population size N = {format_power(size)}. Point at a mark, or press Tab and arrow keys, to see its numbers.",
        "lower right",
    )


def _choose_risk_scale(risks: Sequence[Estimate]) -> tuple[Callable[[Estimate], Estimate], Axis]:
    # Where nearly all sample uniques stop being unique at N, every R is close to 1: then the axis shows R - 1.
    below = max((1 - risk.value for risk in risks), default=1.0)
    if not 0 < below < 1e-3:
        return (lambda e: e), Axis("Risk R")
    unit = 10.0 ** math.floor(math.log10(below))

    def scale_estimate(e: Estimate) -> Estimate:
        return Estimate((e.value - 1) / unit, (e.low - 1) / unit, (e.high - 1) / unit, e.n, e.method)

    return scale_estimate, Axis(f"Risk R − 1, in units of {format_power(unit)}")


def _mark_release(release: Plain, chosen: Plain | None, frontier: set[int]) -> RowMark:
    return "chosen" if release is chosen else "frontier" if release.get("index") in frontier else ""


def _list_release_facts(release: Plain, result: Plain, size: float) -> Facts:
    """What a mark of the plane says when it is pointed at."""
    facts: list[tuple[str, Cell]] = [
        ("Chunks changed", read_estimate(release.get("changed"))),
        ("Share of chunks", format_cell(read_estimate(release.get("share")), "share", 1).line),
        ("Uniques changed", read_estimate(release.get("uniques"))),
        ("Utility U", read_estimate(release.get("utility"))),
    ]
    for name, label in (("risk", "Risk R with p"), ("bounded", "Risk R with p*"), ("remaining", "Uniques left at N")):
        risks = read_risks(release, result) if name == name_risk(result) else map_by_population(release.get(name))
        facts.append((label, read_estimate(risks.get(size))))
    for name, label in (("distance", "D, nats"), ("distance_per_chunk", "D per changed chunk"), ("cosine", "Cosine")):
        facts.append((label, read_estimate(release.get(name))))
    if release.get("flags"):
        facts.append(("Remarks", ", ".join(str(flag) for flag in release["flags"])))
    return tuple((name, value) for name, value in facts if not isinstance(value, Estimate) or has_estimate(value))


def _draw_frontier(result: Plain, size: float) -> Table:
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
    slots, chosen, sizes = assign_slots(result), find_chosen(result), list_populations(result)
    frontier = find_frontier(result, size) if size is not None else set()
    lines: list[Plain] = []
    for release in list_rows(result, "releases"):
        risks, bounded, remaining = (map_by_population(release.get(name)) for name in ("risk", "bounded", "remaining"))
        cells = {
            "key": mark_categories(read_categories(release), slots),
            "judged": read_risks(release, result).get(size) if size is not None else None,
            "remaining": remaining.get(size) if size is not None else None,
            "risk": [risks.get(n) for n in sizes],
            "bounded": [bounded.get(n) for n in sizes],
            "remark": Tag(", ".join(map(str, release["flags"])), "warn") if release.get("flags") else "",
            "mark": _mark_release(release, chosen, frontier),
        }
        lines.append({**release, **cells})
    return lines


def _draw_every_release(result: Plain) -> Iterator[Block]:
    sizes = list(enumerate(map(format_power, list_populations(result))))
    fields = [_EVERY.rstrip()]
    fields += [f"R, N = {name} | risk.{i} | number.4 | (2.16) with p of (2.15)" for i, name in sizes]
    fields += [f"R*, N = {name} | bounded.{i} | number.4 | (2.16) with the bounded p*" for i, name in sizes]
    fields.append("Remarks | remark")
    releases = _list_releases(result, find_population(result))
    table = ValueTable("", lambda _: releases, "\n".join(fields), _NOTE, 20, lambda release: release["mark"])
    yield Folded(f"Every release ({len(releases):,})", (table,)).draw(result)


def _list_dropped(result: Plain) -> list[Plain]:
    slots = assign_slots(result)
    return [
        {"key": mark_categories(read_categories(row), slots), "reason": shorten_powers(row.get("reason", ""))}
        for row in list_rows(result, "dropped")
    ]


releases_section = SectionSpec(
    "Risk and utility",
    "releases",
    "releases",
    (
        Paragraph(_describe_plane),
        _draw_planes,
        _draw_reasons,
        _draw_frontiers,
        ValueTable("No candidates", _list_dropped, _DROPPED, when="dropped"),
        _draw_every_release,
    ),
)

"""Releases on the risk-utility plane (P1 Figure 3), the frontier, and every release as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from allonym.report.numbers import power, show
from allonym.report.page import Block, Cell, Column, Details, Facts, Row, Section, Table, Tabs, Tag, Text
from allonym.report.plots import Axis, Chart, Guide, Point, Series
from allonym.report.swap.given import (
    Plain,
    called,
    categories_of,
    chosen,
    chosen_population,
    estimate,
    frontier,
    judged,
    key,
    known,
    populations,
    readable,
    risks,
    rows,
    slots,
)
from allonym.stats import Estimate

UTILITY = Axis("Utility U", "number")
STAND_IN = "U = exp(D / (n d))"
SPREAD = "mean over the draws; interval: 95 % of the model, wider by the draws' standard deviation"


def releases_section(result: Plain) -> Section | None:
    """The plane at every population size, why the chosen release was chosen, and the frontier."""
    if not rows(result, "releases"):
        return None
    sizes = populations(result)
    at = chosen_population(result)
    first = sizes.index(at) if at in sizes else 0
    p = "the bounded p*" if judged(result) == "bounded" else "p of (2.15)"
    u = "(2.19)"
    if any(STAND_IN in str(f) for r in rows(result, "releases") for f in r.get("flags") or ()):
        u = "exp(D / (n d)) for all of them, since the ratio of (2.19) misleads for some"
    blocks: list[Block] = [
        Text(
            "Each mark is one way to release the corpus: which categories are exchanged, and how far. A thin line"
            " joins releases that only differ in how far; the fewest swaps are at the top. To the right, "
            "texts keep more of what they speak of; further down, less of the corpus stays unique. Risk R is "
            f"(2.16) with {p}, utility U is {u}."
        ),
        Tabs("Population size N", tuple((power(n), (plane(result, n),)) for n in sizes), first),
    ]
    why = result.get("why") or ()
    said = (why,) if isinstance(why, str) else why
    if said:
        blocks.append(Section("Why this release", tuple(Text(readable(w)) for w in said)))
    fronts = tuple((power(n), (front_table(result, n),)) for n in sizes if frontier(result, n))
    if fronts:
        names = [power(n) for n in sizes if frontier(result, n)]
        start = names.index(power(at)) if at is not None and power(at) in names else 0
        blocks.append(Section("The frontier", (Tabs("Population size N", fronts, start),)))
    if dropped := rows(result, "dropped"):
        body = tuple(Row((key(categories_of(d), slots(result)), readable(d.get("reason", "")))) for d in dropped)
        blocks.append(Table("No candidates", (Column("Categories"), Column("Why")), body))
    blocks.append(Details(f"Every release ({len(rows(result, 'releases')):,})", (all_table(result),)))
    return Section("Risk and utility", tuple(blocks), "releases")


def plane(result: Plain, size: float) -> Chart:
    """The risk-utility plot at one population size: a series per set of categories."""
    of = slots(result)
    front = frontier(result, size)
    best = chosen(result)
    shown = [r for r in rows(result, "releases") if known(risks(r, result).get(size)) and known(r.get("utility"))]
    lift, axis = _risk_axis([risks(r, result)[size] for r in shown])
    groups: dict[tuple[str, ...], list[Plain]] = {}
    for release in shown:
        groups.setdefault(categories_of(release), []).append(release)
    series = []
    for categories, own in groups.items():
        points = tuple(
            Point(
                estimate(r.get("utility")),
                lift(risks(r, result)[size]),
                f"{called(categories)}, {r.get('swaps', 0):,} swaps",
                facts(r, result, size),
                "chosen" if r is best else "frontier" if r.get("index") in front else "",
            )
            for r in sorted(own, key=lambda r: (r.get("swaps") or 0, r.get("index") or 0))
        )
        series.append(Series(called(categories), points, of[categories], "thin"))
    at = [(estimate(r["utility"]).value, lift(risks(r, result)[size]).value) for r in shown if r.get("index") in front]
    guides = (
        [Guide("frontier", tuple(sorted(at, key=lambda p: (min(p[0], 1.0), p[1]))), "frontier")] if len(at) > 1 else []
    )
    if any(estimate(r["utility"]).value > 1 for r in shown):
        low, high = (f(lift(risks(r, result)[size]).value for r in shown) for f in (min, max))
        guides.append(Guide("U = 1; what lies beyond counts as 1", ((1.0, low), (1.0, high))))
    return Chart(
        "Risk and utility of every release",
        UTILITY,
        axis,
        tuple(sorted(series, key=lambda s: s.slot)),
        tuple(guides),
        f"Population size N = {power(size)}. Point at a mark, or press Tab and the arrow keys, to see its numbers.",
        "lower right",
    )


def _risk_axis(values: Sequence[Estimate]) -> tuple[Callable[[Estimate], Estimate], Axis]:
    # Where nearly all sample uniques stop being unique at N, every R is close to 1: then the axis shows R - 1.
    below = max((1 - v.value for v in values), default=1.0)
    if not 0 < below < 1e-3:
        return (lambda e: e), Axis("Risk R")
    exponent = math.floor(math.log10(below))
    unit = 10.0**exponent

    def lift(e: Estimate) -> Estimate:
        return Estimate((e.value - 1) / unit, (e.low - 1) / unit, (e.high - 1) / unit, e.n, e.method)

    return lift, Axis(f"Risk R − 1, in units of {power(unit)}")


def facts(release: Plain, result: Plain, size: float) -> Facts:
    """What a mark of the plane says."""
    out: list[tuple[str, Cell]] = [
        ("Chunks changed", estimate(release.get("changed"))),
        ("Share of chunks", _percent(release.get("share"))),
        ("Uniques changed", estimate(release.get("uniques"))),
        ("Utility U", estimate(release.get("utility"))),
    ]
    for name, label in (("risk", "Risk R with p"), ("bounded", "Risk R with p*"), ("remaining", "Uniques left at N")):
        if name == judged(result) and size in risks(release, result):
            out.append((label, risks(release, result)[size]))
        elif isinstance(release.get(name), Mapping):
            found = {float(k): v for k, v in release[name].items()}
            out.append((label, estimate(found.get(size))))
    out += [
        ("D, nats", estimate(release.get("distance"))),
        ("D per changed chunk", estimate(release.get("distance_per_chunk"))),
        ("Cosine", estimate(release.get("cosine"))),
    ]
    told = [(name, value) for name, value in out if not isinstance(value, Estimate) or known(value)]
    flags = ", ".join(str(f) for f in release.get("flags") or ())
    return (*told, *((("Remarks", flags),) if flags else ()))


def front_table(result: Plain, size: float) -> Table:
    """The releases that none beats in both risk and utility, the most useful first."""
    of, best, front = slots(result), chosen(result), frontier(result, size)
    own = [r for r in rows(result, "releases") if r.get("index") in front]
    own.sort(key=lambda r: -estimate(r.get("utility")).value)
    return Table(
        f"Releases on the frontier at N = {power(size)}",
        (
            Column("Exchanged"),
            Column("Swaps", "count"),
            Column("Chunks changed", "count", None, "Chunks whose text changes; mean and SD over the draws"),
            Column("Share", "share", 1),
            Column("Risk R", "number", 4, f"(2.16), {SPREAD}"),
            Column("Utility U", "number", 5, "(2.19)"),
            Column("D per chunk", "number", 2, "Change of the log density per changed chunk, nats (2.17)"),
            Column("Cosine", "number", 3, "Mean cosine between a changed chunk's vectors before and after"),
            Column("Uniques left", "count", None, "Expected number of population uniques that stay, p (s1 - m)"),
        ),
        tuple(
            Row(
                (
                    key(categories_of(r), of),
                    r.get("swaps"),
                    estimate(r.get("changed")),
                    estimate(r.get("share")),
                    risks(r, result).get(size),
                    estimate(r.get("utility")),
                    estimate(r.get("distance_per_chunk")),
                    estimate(r.get("cosine")),
                    _at(r, "remaining", size),
                ),
                "chosen" if r is best else "",
            )
            for r in own
        ),
        "The chosen release is set off." if best in own else "",
        15,
    )


def all_table(result: Plain) -> Table:
    """Every release with its risk at every population size."""
    of, best, sizes = slots(result), chosen(result), populations(result)
    at = chosen_population(result)
    front = frontier(result, at) if at is not None else set()
    columns = (
        Column("#", "count"),
        Column("Exchanged"),
        Column("Swaps", "count"),
        Column("Chunks changed", "count"),
        Column("Share", "share", 1),
        Column("Uniques m", "count", None, "Sample uniques of the table before the exchange that were changed"),
        Column("Utility U", "number", 5),
        Column("D, nats", "number", 2),
        Column("D per chunk", "number", 3),
        Column("Cosine", "number", 3),
        *(Column(f"R, N = {power(n)}", "number", 4, "(2.16) with p of (2.15)") for n in sizes),
        *(Column(f"R*, N = {power(n)}", "number", 4, "(2.16) with the bounded p*") for n in sizes),
        Column("Remarks"),
    )
    body = tuple(
        Row(
            (
                r.get("index"),
                key(categories_of(r), of),
                r.get("swaps"),
                estimate(r.get("changed")),
                estimate(r.get("share")),
                estimate(r.get("uniques")),
                estimate(r.get("utility")),
                estimate(r.get("distance")),
                estimate(r.get("distance_per_chunk")),
                estimate(r.get("cosine")),
                *(_at(r, "risk", n) for n in sizes),
                *(_at(r, "bounded", n) for n in sizes),
                Tag(", ".join(str(f) for f in r["flags"]), "warn") if r.get("flags") else "",
            ),
            "chosen" if r is best else "frontier" if r.get("index") in front else "",
        )
        for r in rows(result, "releases")
    )
    note = (
        "Mean and standard deviation over the draws; of risks, the model's 95 % interval, wider by that. "
        "A bar at the left marks the frontier, colour the chosen release."
    )
    return Table("", columns, body, note, 20)


def _at(release: Plain, name: str, size: float) -> Estimate | None:
    found = release.get(name)
    if not isinstance(found, Mapping):
        return None
    return next((estimate(v) for k, v in found.items() if float(k) == size), None)


def _percent(value: object) -> str:
    return show(estimate(value), "share", 1).line

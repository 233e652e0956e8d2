"""The marginal tables with their Ewens-Pitman fits (P1 Table 1), over the population sizes."""

from __future__ import annotations

from allonym.report.numbers import power, write
from allonym.report.page import Block, Column, Row, Section, Table, Tag, Text
from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.swap.given import (
    Plain,
    asymptotic,
    by_population,
    called,
    categories_of,
    estimate,
    judged,
    key,
    part,
    readable,
    rows,
    slots,
)


def tables_section(result: Plain) -> Section | None:
    """Parameters with intervals, the share of population uniques at each N, and how firm the order is."""
    found = rows(result, "tables")
    if not found:
        return None
    blocks: list[Block] = [
        Text(
            "For every set of categories the chunks are counted by the entities they hold. How many cells hold a "
            "single chunk, and how the larger cells are spread, says how many of these uniques would still be "
            "unique in a population of N such texts (the Ewens-Pitman sampling formula)."
        ),
        _fits(result),
        _shares(result),
    ]
    sizes = sorted({n for t in found for n in by_population(t.get("p"))})
    if len(sizes) > 1:
        blocks.append(_curves(result))
    if told := _stability(result):
        p = "p*" if judged(result) == "bounded" else "p"
        first = f"The sets of categories, in the order of {p}, the share of their uniques that stay unique:"
        blocks.append(Section("How firm the order is", (Text(first), *(Text(s) for s in told))))
    return Section("Uniqueness", tuple(blocks), "uniqueness")


def _fits(result: Plain) -> Table:
    of = slots(result)
    columns = (
        Column("Counted by"),
        Column("θ", "number", 2, "Strength of the Ewens-Pitman formula, 95 % interval"),
        Column("α", "number", None, "Discount: near 1, new values keep coming; 95 % interval"),
        Column("s₁ / n", "share", 1, "Sample uniques, of all chunks"),
        Column("s₁", "count", None, "Cells of one chunk: sample uniques"),
        Column("s₂", "count", None, "Cells of two chunks"),
        Column("Of one value", "count", None, "Cells all of whose chunks have one protected value: they point to it"),
        Column("Cells k", "count", None, "Cells that hold any chunk"),
        Column("Chunks n", "count", None, "Chunks that are counted"),
        Column("Log-likelihood", "number", 1, "Of (2.10)"),
        Column("Fit", "text", None, "interior: the maximum lies inside; else at which edge it lies"),
    )
    body = tuple(
        Row(
            (
                key(categories_of(t), of),
                estimate(t.get("theta")),
                estimate(t.get("alpha")),
                estimate(t.get("share")),
                t.get("singles"),
                t.get("doubles"),
                t.get("alone"),
                t.get("k"),
                t.get("n"),
                t.get("log_likelihood"),
                Tag(str(t.get("status", "")), "good" if t.get("status") == "interior" else "warn"),
            )
        )
        for t in rows(result, "tables")
    )
    return Table("Marginal tables and their fit", columns, body, "Below each value: its 95 % interval.")


def _shares(result: Plain) -> Table:
    of = slots(result)
    sizes = sorted({n for t in rows(result, "tables") for n in by_population(t.get("p"))})
    which = "(2.14), their limit for large N" if asymptotic(result) else "(2.13)"
    columns = [Column("Counted by")]
    for n in sizes:
        name = power(n)
        columns += [
            Column(f"p, N = {name}", "number", None, "(2.15): population uniques over sample uniques"),
            Column(f"p*, N = {name}", "number", None, "The bounded share: chance that a sample unique is unique at N"),
            Column(f"E S₁, N = {name}", "number", None, f"Expected population uniques, {which}"),
        ]
    body = []
    for t in rows(result, "tables"):
        p, bounded, uniques = (by_population(t.get(name)) for name in ("p", "bounded", "population"))
        values = [v for n in sizes for v in (p.get(n), bounded.get(n), uniques.get(n))]
        body.append(Row((key(categories_of(t), of), *values)))
    return Table("Population uniques", tuple(columns), tuple(body), "Below each value: its 95 % interval.")


def _curves(result: Plain) -> Chart:
    of = slots(result)
    series = []
    values = [e.value for t in rows(result, "tables") for e in by_population(t.get("p")).values() if e.value > 0]
    steep = bool(values) and max(values) > 30 * min(values)
    for t in rows(result, "tables"):
        categories = categories_of(t)
        points = tuple(
            Point(
                n,
                e,
                f"{called(categories)}, N = {power(n)}",
                (("p", e), ("p*", by_population(t.get("bounded")).get(n))),
            )
            for n, e in by_population(t.get("p")).items()
        )
        series.append(Series(called(categories), points, of[categories], "full"))
    return Chart(
        "The share of uniques that stay unique, over the population size",
        Axis("Population size N", "power", log=True),
        Axis("p of (2.15)", "power", log=True) if steep else Axis("p of (2.15)", "number", 0),
        tuple(series),
        (),
        "Lines that cross change their order: which categories look riskiest depends on N then.",
    )


def _stability(result: Plain) -> list[str]:
    found = part(result, "stability")
    if said := found.get("sentences"):
        return [readable(s) for s in said]
    out = []
    if isinstance(agree := found.get("agree"), (int, float)):
        out.append(f"{write(float(agree), 'share', 0)} of the pairs stand in the same order at every population size.")
    for size, order in zip(found.get("populations") or (), found.get("orders") or (), strict=False):
        names = ", ".join(called(o) for o in order)
        out.append(f"At N = {power(float(size))}, from the highest p to the lowest: {names}.")
    return out

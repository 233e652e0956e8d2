"""The marginal tables with their Ewens-Pitman fits (P1 Table 1), over the population sizes."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import format_number, format_power
from allonym.report.page import Block, Column, Row, Section, Table, Tag, Text
from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.sections import Paragraph, SectionSpec, ValueTable
from allonym.report.swap.values import (
    assign_slots,
    is_asymptotic,
    map_by_population,
    mark_categories,
    name_categories,
    name_risk,
    read_categories,
    shorten_powers,
)
from allonym.report.values import Plain, list_rows, read_part

_LEAD = (
    "For every set of categories the chunks are counted by the entities they hold. How many cells hold a single chunk, "
    "and how the larger cells are spread, says how many of these uniques would still be unique in a population of N "
    "such texts (the Ewens-Pitman sampling formula)."
)
_INTERVALS = "Below each value: its 95 % interval."
_FITS = """
    Counted by   | key
    θ            | theta   | number.2 | Strength of the Ewens-Pitman formula, 95 % interval
    α            | alpha   | number   | Discount: near 1, new values keep coming; 95 % interval
    s₁ / n       | share   | share.1  | Sample uniques, of all chunks
    s₁           | singles | count    | Cells of one chunk: sample uniques
    s₂           | doubles | count    | Cells of two chunks
    Of one value | alone   | count    | Cells all of whose chunks have one protected value: they point to it
    Cells k      | k       | count    | Cells that hold any chunk
    Chunks n     | n       | count    | Chunks that are counted
    Log-likelihood | log_likelihood | number.1 | Of (2.10)
    Fit          | fit     |          | interior: the maximum lies inside; else at which edge it lies
"""


def _list_fits(result: Plain) -> list[Plain]:
    slots = assign_slots(result)
    return [
        {
            **table,
            "key": mark_categories(read_categories(table), slots),
            "fit": Tag(str(table.get("status", "")), "good" if table.get("status") == "interior" else "warn"),
        }
        for table in list_rows(result, "tables")
    ]


def _draw_shares(result: Plain) -> Iterator[Block]:
    slots = assign_slots(result)
    formula = "(2.14), their limit for large N" if is_asymptotic(result) else "(2.13)"
    values = {
        "p": "(2.15): population uniques over sample uniques",
        "bounded": "The bounded share: chance that a sample unique is unique at N",
        "population": f"Expected population uniques, {formula}",
    }
    names = {"p": "p", "bounded": "p*", "population": "E S₁"}
    sizes = _list_sizes(result)
    columns = [
        Column(f"{names[key]}, N = {format_power(size)}", "number", None, hint)
        for size in sizes
        for key, hint in values.items()
    ]
    body = []
    for table in list_rows(result, "tables"):
        estimates = {key: map_by_population(table.get(key)) for key in values}
        cells = (estimates[key].get(size) for size in sizes for key in values)
        body.append(Row((mark_categories(read_categories(table), slots), *cells)))
    yield Table("Population uniques", (Column("Counted by"), *columns), tuple(body), _INTERVALS)


def _list_sizes(result: Plain) -> list[float]:
    return sorted({size for table in list_rows(result, "tables") for size in map_by_population(table.get("p"))})


def _draw_curves(result: Plain) -> Iterator[Block]:
    if len(_list_sizes(result)) < 2:
        return
    slots = assign_slots(result)
    series = []
    values = []
    for table in list_rows(result, "tables"):
        categories, bounded = read_categories(table), map_by_population(table.get("bounded"))
        name, shares = name_categories(categories), map_by_population(table.get("p"))
        points = (
            Point(size, p, f"{name}, N = {format_power(size)}", (("p", p), ("p*", bounded.get(size))))
            for size, p in shares.items()
        )
        series.append(Series(name, tuple(points), slots[categories], "full"))
        values += [p.value for p in shares.values() if p.value > 0]
    is_steep = bool(values) and max(values) > 30 * min(values)
    yield Chart(
        "The share of uniques that stay unique, over the population size",
        Axis("Population size N", "power", log=True),
        Axis("p of (2.15)", "power", log=True) if is_steep else Axis("p of (2.15)", "number", 0),
        tuple(series),
        description="Lines that cross change their order: which categories look riskiest depends on N then.",
    )


def _draw_stability(result: Plain) -> Iterator[Block]:
    if sentences := tuple(_describe_stability(read_part(result, "stability"))):
        p = "p*" if name_risk(result) == "bounded" else "p"
        first = f"The sets of categories, in the order of {p}, the share of their uniques that stay unique:"
        yield Section("How firm the order is", (Text(first), *(Text(s) for s in sentences)))


def _describe_stability(stability: Plain) -> Iterator[str]:
    if sentences := stability.get("sentences"):
        yield from map(shorten_powers, sentences)
        return
    if isinstance(agree := stability.get("agree"), (int, float)):
        yield f"{format_number(float(agree), 'share', 0)} of the pairs have the same order at every population size."
    for size, order in zip(stability.get("populations") or (), stability.get("orders") or (), strict=False):
        names = ", ".join(name_categories(categories) for categories in order)
        yield f"At N = {format_power(float(size))}, from the highest p to the lowest: {names}."


uniqueness_section = SectionSpec(
    "Uniqueness",
    "uniqueness",
    "tables",
    (
        Paragraph(_LEAD),
        ValueTable("Marginal tables and their fit", _list_fits, _FITS, _INTERVALS),
        _draw_shares,
        _draw_curves,
        _draw_stability,
    ),
)

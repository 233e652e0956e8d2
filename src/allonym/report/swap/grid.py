"""The grid of hyperparameters (P1 3.2.1): which categories each setting chooses, and its plane (Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

from allonym.report.numbers import power
from allonym.report.page import Block, Cell, Column, Details, Matrix, Row, Section, Square, Table, Tabs, Tag, Text
from allonym.report.plots import Axis, Chart, Multiples, Point, Series
from allonym.report.swap.clusters import SHORT
from allonym.report.swap.given import Plain, called, categories_of, key, rows, say, slots

_NAMES = {
    "threshold": "threshold",
    "family": "Family",
    "clusters": "K",
    "k": "K",
    "min_weight": "min. weight",
    "population": "N",
}
_ACROSS = ("population", "threshold")


def grid_section(result: Plain) -> Section | None:
    """A map of choices, small planes where the releases are given, and the table of settings."""
    found = rows(result, "grid")
    if not found:
        return None
    names = [n for n in _NAMES if len({say(r.get(n)) for r in found if n in r}) > 1]
    failed = [r for r in found if not r.get("converged", True) or r.get("reason")]
    choices = [_choice(r) for r in found if _choice(r)]
    said = f"{len(found)} settings were tried; {len(found) - len(failed)} of them give a choice. "
    said += "The choice is the release of the lowest risk on the frontier. " if choices else ""
    if choices:
        most = max(dict.fromkeys(choices), key=choices.count)
        said += f"{called(most)} is chosen in {choices.count(most)} of them."
    blocks: list[Block] = [Text(said), _map(result, found, names)]
    if any(r.get("releases") for r in found):
        blocks.append(_planes(result, found, names))
    blocks.append(Details("Every setting", (_table(result, found),)))
    return Section("Other settings", tuple(blocks), "grid")


def _choice(row: Plain) -> tuple[str, ...]:
    return categories_of(row, "chosen") or categories_of(row)


def _value(row: Plain, name: str) -> str:
    value = row.get(name)
    if name == "population" and isinstance(value, (int, float)):
        return power(float(value))
    if name == "family":
        return SHORT.get(str(value), str(value))
    return say(value)


def _label(row: Plain, names: Sequence[str]) -> str:
    parts = [_value(row, n) if n == "family" else f"{_NAMES[n]}\u00a0=\u00a0{_value(row, n)}" for n in names]
    return ", ".join(parts) or "the setting"


def _map(result: Plain, found: list[Plain], names: list[str]) -> Matrix:
    of = slots(result)
    across = [n for n in names if n in _ACROSS] or names[-1:]
    down = [n for n in names if n not in across]
    columns = list(dict.fromkeys(_label(r, across) for r in found))
    lines = list(dict.fromkeys(_label(r, down) for r in found))
    cells = {(_label(r, down), _label(r, across)): r for r in found}
    return Matrix(
        "Categories chosen at each setting",
        tuple(columns),
        tuple((line, tuple(_square(cells.get((line, c)), of) for c in columns)) for line in lines),
        ", ".join(_NAMES[n] for n in down),
        "number",
        None,
        "A dash: no choice; point at it, or open the table below, for the reason.",
    )


def _square(row: Plain | None, of: dict[tuple[str, ...], int]) -> Square:
    if row is None:
        return Square("")
    choice = _choice(row)
    reason = str(row.get("reason") or ("" if row.get("converged", True) else "did not converge"))
    return Square(called(choice), None, of.get(choice), reason) if choice else Square(None, None, None, reason)


def _planes(result: Plain, found: list[Plain], names: list[str]) -> Block:
    title = "Risk and utility at each setting"
    if "population" not in names:
        return Multiples(title, _charts(result, found, names))
    rest = [n for n in names if n != "population"]
    sizes = sorted({float(r["population"]) for r in found})
    options = []
    for size in sizes:
        own = [r for r in found if float(r["population"]) == size]
        options.append((power(size), (Multiples(f"{title}, N\u00a0=\u00a0{power(size)}", _charts(result, own, rest)),)))
    return Tabs("Population size N", tuple(options), len(sizes) // 2)


def _charts(result: Plain, found: list[Plain], names: list[str]) -> tuple[Chart, ...]:
    of = slots(result)
    charts = []
    for row in found:
        groups: dict[tuple[str, ...], list[Plain]] = {}
        for r in rows(row, "releases"):
            groups.setdefault(categories_of(r), []).append(r)
        series = tuple(
            Series(
                called(c),
                tuple(
                    Point(float(r["utility"]), float(r["risk"]), f"{called(c)}, {r.get('swaps', 0):,} swaps",
                          (("Utility U", float(r["utility"])), ("Risk R", float(r["risk"]))))
                    for r in own
                    if isinstance(r.get("utility"), (int, float)) and isinstance(r.get("risk"), (int, float))
                ),
                of[c],
                "thin",
            )
            for c, own in groups.items()
        )  # fmt: skip
        if series:
            charts.append(
                Chart(
                    _label(row, names),
                    Axis("U"),
                    Axis("R"),
                    series,
                    (),
                    "Risk and utility of every release.",
                    size="small",
                )
            )
    return tuple(charts)


def _table(result: Plain, found: list[Plain]) -> Table:
    of = slots(result)
    names = [n for n in _NAMES if len({say(r.get(n)) for r in found if n in r}) > 1]
    extra = [(n, t) for n, t in (("chunks", "Chunks"), ("left", "Clusters left")) if any(n in r for r in found)]
    columns = [Column(_NAMES[n]) for n in names] + [Column(t, "count") for _, t in extra]
    columns += [Column("Chosen"), Column("Share of the frontier", "share", 0), Column("Remarks")]
    body = []
    for r in found:
        choice = _choice(r)
        reason = str(r.get("reason") or ("" if r.get("converged", True) else "did not converge"))
        cells: list[Cell] = [_value(r, n) for n in names]
        cells += [r.get(n) for n, _ in extra]
        cells += [key(choice, of) if choice else None, _share(r, choice), Tag(reason, "warn") if reason else ""]
        body.append(Row(tuple(cells)))
    return Table("", tuple(columns), tuple(body), shown=40)


def _share(row: Plain, choice: tuple[str, ...]) -> float | None:
    if isinstance(row.get("share"), (int, float)):
        return float(row["share"])
    return next((float(s["share"]) for s in rows(row, "shares") if categories_of(s) == choice), None)

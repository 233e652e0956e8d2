"""The grid of hyperparameters (P1 3.2.1): which categories each setting chooses, and its plane (Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allonym.report.numbers import format_power
from allonym.report.page import Block, Matrix, Square, Tabs, Tag
from allonym.report.plots import Axis, Chart, Multiples, Point, Series
from allonym.report.sections import Folded, Paragraph, SectionSpec, ValueTable
from allonym.report.swap.clusters import SHORT
from allonym.report.swap.values import Categories, assign_slots, mark_categories, name_categories, read_categories
from allonym.report.values import Plain, format_setting, list_rows

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


def _list_varied(result: Plain) -> list[str]:
    grid = list_rows(result, "grid")
    return [name for name in _NAMES if len({format_setting(row.get(name)) for row in grid if name in row}) > 1]


def _describe_settings(result: Plain) -> str:
    grid = list_rows(result, "grid")
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


def _read_reason(row: Plain) -> str:
    return str(row.get("reason") or ("" if row.get("converged", True) else "did not converge"))


def _format_value(row: Plain, name: str) -> str:
    value = row.get(name)
    if name == "population" and isinstance(value, (int, float)):
        return format_power(float(value))
    if name == "family":
        return SHORT.get(str(value), str(value))
    return format_setting(value)


def _format_label(row: Plain, names: Sequence[str]) -> str:
    values = ((name, _format_value(row, name)) for name in names)
    labels = (value if name == "family" else f"{_NAMES[name]}\u00a0=\u00a0{value}" for name, value in values)
    return ", ".join(labels) or "the setting"


def _draw_map(result: Plain) -> Iterator[Block]:
    grid, slots, names = list_rows(result, "grid"), assign_slots(result), _list_varied(result)
    across = [name for name in names if name in _ACROSS] or names[-1:]
    down = [name for name in names if name not in across]
    columns = list(dict.fromkeys(_format_label(row, across) for row in grid))
    lines = list(dict.fromkeys(_format_label(row, down) for row in grid))
    cells = {(_format_label(row, down), _format_label(row, across)): row for row in grid}
    yield Matrix(
        "Categories chosen at each setting",
        tuple(columns),
        tuple((line, tuple(_draw_square(cells.get((line, column)), slots) for column in columns)) for line in lines),
        ", ".join(_NAMES[name] for name in down),
        note="A dash: no choice; point at it, or open the table below, for the reason.",
    )


def _draw_square(row: Plain | None, slots: dict[Categories, int]) -> Square:
    if row is None:
        return Square("")
    choice, reason = _read_chosen_categories(row), _read_reason(row)
    return Square(name_categories(choice) if choice else None, None, slots.get(choice) if choice else None, reason)


def _draw_planes(result: Plain) -> Iterator[Block]:
    grid, names = list_rows(result, "grid"), _list_varied(result)
    if not any(row.get("releases") for row in grid):
        return
    if "population" not in names:
        yield Multiples(_TITLE, _draw_charts(result, grid, names))
        return
    others = [name for name in names if name != "population"]
    sizes = sorted({float(row["population"]) for row in grid})
    options = []
    for size in sizes:
        charts = _draw_charts(result, [row for row in grid if float(row["population"]) == size], others)
        options.append((format_power(size), (Multiples(f"{_TITLE}, N\u00a0=\u00a0{format_power(size)}", charts),)))
    yield Tabs("Population size N", tuple(options), len(sizes) // 2)


def _draw_charts(result: Plain, grid: list[Plain], names: list[str]) -> tuple[Chart, ...]:
    slots = assign_slots(result)
    charts = []
    for row in grid:
        points: dict[Categories, list[Point]] = {}
        for release in list_rows(row, "releases"):
            categories = read_categories(release)
            points.setdefault(categories, []).extend(_draw_point(release, name_categories(categories)))
        series = tuple(Series(name_categories(c), tuple(points[c]), slots[c], "thin") for c in points)
        if series:
            description = "Risk and utility of every release."
            label = _format_label(row, names)
            charts.append(Chart(label, Axis("U"), Axis("R"), series, description=description, size="small"))
    return tuple(charts)


def _draw_point(release: Plain, name: str) -> Iterator[Point]:
    utility, risk = release.get("utility"), release.get("risk")
    if isinstance(utility, (int, float)) and isinstance(risk, (int, float)):
        facts = (("Utility U", float(utility)), ("Risk R", float(risk)))
        yield Point(float(utility), float(risk), f"{name}, {release.get('swaps', 0):,} swaps", facts)


def _draw_table(result: Plain) -> Iterator[Block]:
    grid, names = list_rows(result, "grid"), _list_varied(result)
    fields = [f"{_NAMES[name]} | {name}" for name in names]
    fields += [f"{title} | {name} | count" for name, title in _COUNTS.items() if any(name in row for row in grid)]
    fields += ["Chosen | key", "Share of the frontier | share | share.0", "Remarks | remark"]
    table = ValueTable("", lambda values: _list_settings(values, names), "\n".join(fields), shown=40)
    yield Folded("Every setting", (table,)).draw(result)


def _list_settings(result: Plain, names: list[str]) -> list[Plain]:
    slots = assign_slots(result)
    lines: list[Plain] = []
    for row in list_rows(result, "grid"):
        choice, reason = _read_chosen_categories(row), _read_reason(row)
        cells = {
            "key": mark_categories(choice, slots) if choice else None,
            "share": _read_share(row, choice),
            "remark": Tag(reason, "warn") if reason else "",
        }
        lines.append({**row, **{name: _format_value(row, name) for name in names}, **cells})
    return lines


def _read_share(row: Plain, choice: Categories) -> float | None:
    if isinstance(row.get("share"), (int, float)):
        return float(row["share"])
    return next((float(s["share"]) for s in list_rows(row, "shares") if read_categories(s) == choice), None)


grid_section = SectionSpec(
    "Other settings", "grid", "grid", (Paragraph(_describe_settings), _draw_map, _draw_planes, _draw_table)
)

"""A page as Markdown, for terminals and pull requests: headings, tables, and charts in a few numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from allonym.report import page as blocks
from allonym.report.svg import get_point_value
from allonym.report.values import format_cell, format_number, list_column_decimals
from allonym.text.controls import escape_controls

ROWS = 40
"""Rows of a table that are written; a line says how many more there are."""
PASSAGES = 10
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(page: blocks.Page) -> str:
    """The page as GitHub-flavoured Markdown. What comes from data cannot end a table, open a tag or make a link."""
    parts = [f"# {_escape_text(page.title)}"]
    if page.subtitle:
        parts.append(_escape_text(page.subtitle))
    for block in (*page.lead, *page.sections):
        parts += _draw_block(block, 2)
    return "\n\n".join(p for p in parts if p) + "\n"


def _draw_block(block: blocks.Block, level: int) -> list[str]:
    return _KINDS[block.kind](block, level)


def _draw_section(block: blocks.Section, level: int) -> list[str]:
    return [f"{'#' * min(level, 6)} {_escape_text(block.title)}", *_draw_beside(block, level + 1)]


def _draw_text(block: blocks.Text, level: int) -> list[str]:
    return [_escape_text(block.text)]


def _draw_notice(block: blocks.Notice, level: int) -> list[str]:
    names = {"note": "NOTE", "warning": "WARNING", "sensitive": "CAUTION"}
    lines = [
        f"> [!{names[block.tone]}]",
        f"> {_escape_text(block.text)}",
        *(f"> - {_escape_text(i)}" for i in block.items),
    ]
    return ["\n".join(lines)]


def _draw_figures(block: blocks.Figures, level: int) -> list[str]:
    rows = []
    for f in block.figures:
        value = format_cell(f.value, f.number, f.digits).line
        if f.before is not None:
            value = f"{format_cell(f.before, f.number, f.digits).text} → {value}"
        rows.append((f.label, value, f.note))
    return [_format_table(("", "Value", ""), rows, (False, True, False))]


def _draw_table(block: blocks.Table, level: int) -> list[str]:
    kinds = [(c.number, d) for c, d in zip(block.columns, list_column_decimals(block), strict=True)]
    body = [[format_cell(v, *kind).line for v, kind in zip(r.cells, kinds, strict=True)] for r in block.rows[:ROWS]]
    for line, row in zip(body, block.rows, strict=False):
        if row.mark == "chosen":
            line[0] += " (chosen)"
    out = [_embolden(block.title)]
    out.append(_format_table([c.name for c in block.columns], body, [c.number != "text" for c in block.columns]))
    if len(block.rows) > ROWS:
        out.append(f"{len(block.rows) - ROWS:,} more rows are in the HTML and JSON reports.")
    return [*out, _escape_text(block.note)]


def _draw_chart(block: blocks.Chart, level: int) -> list[str]:
    head = f"**{_escape_text(block.title)}** ({_escape_text(block.y.name)} against {_escape_text(block.x.name)})"
    rows = []
    for series in block.series:
        xs = [value for p in series.points if (value := get_point_value(p.x)) == value]
        ys = [value for p in series.points if (value := get_point_value(p.y)) == value]
        marked = sum(p.mark == "frontier" for p in series.points)
        best = next((p.label for p in series.points if p.mark == "chosen"), "")
        ranges = _format_range(xs, block.x.number), _format_range(ys, block.y.number)
        rows.append((series.name, f"{len(series.points):,}", *ranges, str(marked or ""), best))
    names = ("Series", "Points", block.x.name, block.y.name, "Emphasised", "Chosen")
    return [head, _escape_text(block.description), _format_table(names, rows, (False, True, True, True, True, False))]


def _draw_bars(block: blocks.Bars, level: int) -> list[str]:
    rows = [
        (
            g.name,
            b.series,
            format_cell(b.value, block.axis.number).line,
            format_number(g.reference, block.axis.number) if g.reference is not None else "",
        )
        for g in block.groups
        for b in g.bars
    ]
    names = ("", "", block.axis.name, block.reference or "Reference")
    lines = "; ".join(f"{name}: {format_number(value, block.axis.number)}" for name, value in block.guides)
    table = _format_table(names, rows, (False, False, True, True))
    return [_embolden(block.title), _escape_text(block.description), _escape_text(lines), table]


def _draw_bubbles(block: blocks.Bubbles, level: int) -> list[str]:
    return [f"**{_escape_text(block.title)}**: {len(block.bubbles)} bubbles. {_escape_text(block.description)}"]


def _draw_matrix(block: blocks.Matrix, level: int) -> list[str]:
    rows = [
        (name, *(format_cell(s.value, block.number, block.digits).line for s in squares))
        for name, squares in block.rows
    ]
    table = _format_table((block.corner, *block.columns), rows, [False, *(True for _ in block.columns)])
    return [_embolden(block.title), table, _escape_text(block.note)]


def _draw_settings(block: blocks.Settings, level: int) -> list[str]:
    out = []
    for name, facts in block.groups:
        lines = [f"- {_escape_text(key)}: {_escape_text(format_cell(value).line)}" for key, value in facts]
        out += [_embolden(name), "\n".join(lines)]
    return out


def _draw_details(block: blocks.Details, level: int) -> list[str]:
    return [f"<details><summary>{_escape_text(block.title)}</summary>", *_draw_beside(block, level), "</details>"]


def _draw_beside(block: blocks.Block, level: int) -> list[str]:
    return [part for b in block.inside for part in _draw_block(b, level)]


def _draw_tabs(block: blocks.Tabs, level: int) -> list[str]:
    out = []
    for label, inside in block.options:
        out.append(
            f"*{_escape_text(block.title)}: {_escape_text(label)}*" if block.title else f"*{_escape_text(label)}*"
        )
        out += [part for b in inside for part in _draw_block(b, level)]
    return out


def _draw_multiples(block: blocks.Multiples, level: int) -> list[str]:
    return [_embolden(block.title), *_draw_beside(block, level)]


def _draw_reader(block: blocks.Reader, level: int) -> list[str]:
    out = [_embolden(block.title)]
    for p in block.passages[:PASSAGES]:
        tags = ", ".join(t.text for t in p.tags)
        out.append(f"**{_escape_text(p.title)}** {_escape_text(tags)}")
        out += [
            f"{block.heads[0]}:\n\n> {_escape_text(p.before)}",
            f"{block.heads[1]}:\n\n> {_escape_text(p.after)}",
        ]
    if len(block.passages) > PASSAGES:
        out.append(f"{len(block.passages) - PASSAGES:,} more passages are in the HTML and JSON reports.")
    return [*out, _escape_text(block.note)]


def _embolden(title: str) -> str:
    return f"**{_escape_text(title)}**" if title else ""


def _format_range(values: Sequence[float], kind: Any) -> str:
    if not values:
        return ""
    low, high = format_number(min(values), kind), format_number(max(values), kind)
    return low if low == high else f"{low} to {high}"


def _format_table(names: Iterable[str], rows: Iterable[Iterable[str]], numeric: Iterable[bool]) -> str:
    lines = [
        "| " + " | ".join(_escape_text(n) for n in names) + " |",
        "|" + "|".join("---:" if n else "---" for n in numeric) + "|",
    ]
    lines += ["| " + " | ".join(_escape_text(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def _escape_text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(escape_controls(text, lines=True).split())).replace("://", ":\\//")


_KINDS: dict[str, Callable[[Any, int], list[str]]] = {
    name.removeprefix("_draw_"): draw for name, draw in globals().items() if name.startswith("_draw_")
}
"""Kind of a block to the function of that name."""

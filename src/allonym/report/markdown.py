"""A page as Markdown, for terminals and pull requests: headings, tables, and what charts show in a few numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from allonym.report.charts import middle
from allonym.report.numbers import column_digits, show, write
from allonym.report.page import (
    Beside,
    Block,
    Details,
    Figures,
    Matrix,
    Notice,
    Page,
    Reader,
    Section,
    Settings,
    Table,
    Tabs,
    Text,
)
from allonym.report.plots import Bars, Bubbles, Chart, Multiples

ROWS = 40
"""Rows of a table that are written; a line says how many more there are."""
PASSAGES = 10
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(page: Page) -> str:
    """The page as GitHub-flavoured Markdown. What comes from data cannot end a table, open a tag or make a link."""
    parts = [f"# {_safe(page.title)}"]
    if page.subtitle:
        parts.append(_safe(page.subtitle))
    for block in (*page.lead, *page.sections):
        parts += _draw(block, 2)
    return "\n\n".join(p for p in parts if p) + "\n"


def _draw(block: Block, level: int) -> list[str]:
    return _KINDS[block.kind](block, level)


def _section(block: Section, level: int) -> list[str]:
    inside = [part for b in block.blocks for part in _draw(b, level + 1)]
    return [f"{'#' * min(level, 6)} {_safe(block.title)}", *inside]


def _text(block: Text, level: int) -> list[str]:
    return [_safe(block.text)]


def _notice(block: Notice, level: int) -> list[str]:
    names = {"note": "NOTE", "warning": "WARNING", "sensitive": "CAUTION"}
    lines = [f"> [!{names[block.tone]}]", f"> {_safe(block.text)}", *(f"> - {_safe(i)}" for i in block.items)]
    return ["\n".join(lines)]


def _figures(block: Figures, level: int) -> list[str]:
    rows = []
    for f in block.figures:
        value = show(f.value, f.number, f.digits).line
        if f.before is not None:
            value = f"{show(f.before, f.number, f.digits).text} → {value}"
        rows.append((f.label, value, f.note))
    return [_grid(("", "Value", ""), rows, (False, True, False))]


def _table(block: Table, level: int) -> list[str]:
    kinds = [(c.number, d) for c, d in zip(block.columns, column_digits(block), strict=True)]
    body = [[show(v, *kind).line for v, kind in zip(r.cells, kinds, strict=True)] for r in block.rows[:ROWS]]
    for line, row in zip(body, block.rows, strict=False):
        if row.mark == "chosen":
            line[0] += " (chosen)"
    out = [f"**{_safe(block.title)}**"] if block.title else []
    out.append(_grid([c.name for c in block.columns], body, [c.number != "text" for c in block.columns]))
    if len(block.rows) > ROWS:
        out.append(f"{len(block.rows) - ROWS:,} more rows are in the HTML and JSON reports.")
    return [*out, *([_safe(block.note)] if block.note else [])]


def _chart(block: Chart, level: int) -> list[str]:
    head = f"**{_safe(block.title)}** ({_safe(block.y.name)} against {_safe(block.x.name)})"
    rows = []
    for series in block.series:
        xs = [middle(p.x) for p in series.points if middle(p.x) == middle(p.x)]
        ys = [middle(p.y) for p in series.points if middle(p.y) == middle(p.y)]
        marked = sum(p.mark == "frontier" for p in series.points)
        best = next((p.label for p in series.points if p.mark == "chosen"), "")
        rows.append(
            (
                series.name,
                f"{len(series.points):,}",
                _span(xs, block.x.number),
                _span(ys, block.y.number),
                str(marked or ""),
                best,
            )
        )
    names = ("Series", "Points", block.x.name, block.y.name, "Emphasised", "Chosen")
    return [head, _safe(block.description), _grid(names, rows, (False, True, True, True, True, False))]


def _bars(block: Bars, level: int) -> list[str]:
    rows = [
        (
            g.name,
            b.series,
            show(b.value, block.axis.number).line,
            write(g.reference, block.axis.number) if g.reference is not None else "",
        )
        for g in block.groups
        for b in g.bars
    ]
    names = ("", "", block.axis.name, block.reference or "Reference")
    lines = "; ".join(f"{name}: {write(value, block.axis.number)}" for name, value in block.guides)
    head = [f"**{_safe(block.title)}**", _safe(block.description)]
    return [*head, *([_safe(lines)] if lines else []), _grid(names, rows, (False, False, True, True))]


def _bubbles(block: Bubbles, level: int) -> list[str]:
    return [f"**{_safe(block.title)}**: {len(block.bubbles)} bubbles. {_safe(block.description)}"]


def _matrix(block: Matrix, level: int) -> list[str]:
    rows = [(name, *(show(s.value, block.number, block.digits).line for s in squares)) for name, squares in block.rows]
    title = [f"**{_safe(block.title)}**"] if block.title else []
    numeric = [False, *(True for _ in block.columns)]
    return [*title, _grid((block.corner, *block.columns), rows, numeric), *([_safe(block.note)] if block.note else [])]


def _settings(block: Settings, level: int) -> list[str]:
    out = []
    for name, facts in block.groups:
        lines = [f"- {_safe(key)}: {_safe(show(value).line)}" for key, value in facts]
        out += ([f"**{_safe(name)}**"] if name else []) + ["\n".join(lines)]
    return out


def _details(block: Details, level: int) -> list[str]:
    inside = [part for b in block.blocks for part in _draw(b, level)]
    return [f"<details><summary>{_safe(block.title)}</summary>", *inside, "</details>"]


def _beside(block: Beside, level: int) -> list[str]:
    return [part for b in block.blocks for part in _draw(b, level)]


def _tabs(block: Tabs, level: int) -> list[str]:
    out = []
    for label, blocks in block.options:
        out.append(f"*{_safe(block.title)}: {_safe(label)}*" if block.title else f"*{_safe(label)}*")
        out += [part for b in blocks for part in _draw(b, level)]
    return out


def _multiples(block: Multiples, level: int) -> list[str]:
    return [f"**{_safe(block.title)}**", *(part for c in block.charts for part in _chart(c, level))]


def _reader(block: Reader, level: int) -> list[str]:
    out = [f"**{_safe(block.title)}**"]
    for p in block.passages[:PASSAGES]:
        tags = ", ".join(t.text for t in p.tags)
        out.append(f"**{_safe(p.title)}** {_safe(tags)}")
        out += [f"Before:\n\n> {_safe(p.before)}", f"After:\n\n> {_safe(p.after)}"]
    if len(block.passages) > PASSAGES:
        out.append(f"{len(block.passages) - PASSAGES:,} more passages are in the HTML and JSON reports.")
    return [*out, *([_safe(block.note)] if block.note else [])]


def _span(values: Sequence[float], kind: Any) -> str:
    if not values:
        return ""
    low, high = write(min(values), kind), write(max(values), kind)
    return low if low == high else f"{low} to {high}"


def _grid(names: Iterable[str], rows: Iterable[Iterable[str]], numeric: Iterable[bool]) -> str:
    lines = [
        "| " + " | ".join(_safe(n) for n in names) + " |",
        "|" + "|".join("---:" if n else "---" for n in numeric) + "|",
    ]
    lines += ["| " + " | ".join(_safe(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("://", ":\\//")


_KINDS: dict[str, Callable[[Any, int], list[str]]] = {
    "section": _section,
    "text": _text,
    "notice": _notice,
    "figures": _figures,
    "table": _table,
    "chart": _chart,
    "bars": _bars,
    "bubbles": _bubbles,
    "matrix": _matrix,
    "settings": _settings,
    "details": _details,
    "beside": _beside,
    "tabs": _tabs,
    "multiples": _multiples,
    "reader": _reader,
}

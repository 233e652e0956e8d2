"""Tables of pages: the role of each cell, by what is decided about its column.

A table is a run of rows with cells that stand below one another, see :func:`find_tables`. Its columns are looked at as
those of a sheet are, see :mod:`allonym.files.columns`. What belongs to no table is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from allonym.document import KEPT, PROSE
from allonym.files.pdf.layout import TextUnit
from allonym.files.sheets import LEAST_COLUMNS, decide_grid, has_enough_rows
from allonym.policy import Policy

_AMOUNT = re.compile(
    r"\(?[-+−]?[€$£¥]? ?(?:[1-9]\d{0,2}[ \u00a0.,'’]|[1-9]\d?([ \u00a0.,'’])\d{3}\1)\d{3}"
    r"(?:[.,]\d{1,2})?\)?(?: ?[€$£¥%])?"
)
"""An amount of up to eight digits with its thousands apart; longer ones may be telephones."""


@dataclass(slots=True)
class Cell:
    """Half-open numbers of the units of a page or file, and their left and right end on the page."""

    start: int
    end: int
    x0: float
    x1: float
    text: str = field(repr=False)


def find_cell_roles(rows: Iterable[list[Cell]], size: int, policy: Policy) -> list[str]:
    """Return the role of each unit; an empty list where the file has no table.

    Args:
        rows: the lines of all pages, see :func:`split_into_rows`.
        size: number of units of the file.
        policy: its detectors read a sample of each column.
    """
    roles: list[str] = []
    rows = list(rows)
    for row in rows:
        for cell in row if len(row) > 1 else ():
            if _AMOUNT.fullmatch(cell.text):
                roles = roles or [PROSE] * size
                roles[cell.start : cell.end] = [KEPT] * (cell.end - cell.start)
    for table in find_tables(rows):
        grid = {
            str(number): {str(column): ((cell.start, cell.end), cell.text) for column, cell in enumerate(row)}
            for number, row in enumerate(table)
        }
        for (start, end), place in decide_grid(grid, policy).places.items():
            if start < end:
                roles = roles or [PROSE] * size
                roles[start:end] = [place.role] * (end - start)
    return roles


def find_tables(lines: Iterable[list[Cell]]) -> Iterator[list[list[Cell]]]:
    """Yield the tables of at least three columns and four rows, or with known names of columns.

    All rows of one have the same number of cells.

    A row may lack cells, if those it has stand below others; its missing cells are empty.
    """
    rows: list[list[Cell]] = []
    ends: list[tuple[float, float]] = []
    for row in lines:
        fitted = _fit_into_columns(row, ends) if rows else None
        if fitted is None:
            yield from _check_size(rows)
            rows = [row] if len(row) >= LEAST_COLUMNS else []
            ends = [(cell.x0, cell.x1) for cell in row]
        else:
            rows.append(fitted)
            ends = [(min(a, cell.x0), max(b, cell.x1)) for (a, b), cell in zip(ends, fitted, strict=True)]
    yield from _check_size(rows)


def _check_size(rows: list[list[Cell]]) -> Iterator[list[list[Cell]]]:
    if rows and has_enough_rows([cell.text for cell in rows[0]], len(rows)):
        yield rows


def split_into_rows(units: Sequence[TextUnit]) -> Iterator[list[Cell]]:
    """Yield the lines of a page that run from left to right, divided into cells."""
    row: list[Cell] = []
    start, line = 0, -1
    for end in range(1, len(units) + 1):
        if end < len(units) and units[end].line == units[start].line:
            continue
        head, last = units[start], units[end - 1].first
        if row and not (head.before == "\t" and head.line == line + 1):
            yield row
            row = []
        if abs(head.first.angle) < 0.01:
            text = "".join(unit.before * (unit is not head) + unit.text for unit in units[start:end])
            row.append(Cell(start, end, head.first.x, last.x + last.width, text.strip()))
        line, start = head.line, end
    if row:
        yield row


def _fit_into_columns(row: list[Cell], ends: Sequence[tuple[float, float]]) -> list[Cell] | None:
    """Return a row with an empty cell for each column that it lacks; None where it does not fit below the others.

    Args:
        row: a line of the page, divided into cells.
        ends: left and right end of each column.
    """
    fitted: list[Cell] = []
    rest = list(row)
    for left, right in ends:
        if rest and rest[0].x0 < right and left < rest[0].x1:
            fitted.append(rest.pop(0))
        else:
            fitted.append(Cell(row[0].start, row[0].start, left, right, ""))
    is_full = not rest and 2 * sum(bool(cell.text) for cell in fitted) > len(fitted)
    return fitted if is_full else None

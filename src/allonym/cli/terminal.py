"""Output of the commands: plain aligned text in a pipe, the same with some colour on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

# Control characters become visible pictures, so that a text can neither steer the terminal nor break a table.
_VISIBLE = {c: 0x2400 + c for c in range(32)} | {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C), 0xB7)
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_LINES = {c: p for c, p in _VISIBLE.items() if c not in (9, 10)}


def on_terminal(*, stderr: bool = False) -> bool:
    """Tell whether standard output (or standard error) is a terminal."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def make_console(*, stderr: bool = False) -> Console:
    """Return a rich console that adds no colours of its own."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def escape_controls(text: str, *, lines: bool = False) -> str:
    """Make control and direction characters visible; ``lines`` keeps line ends and tabs."""
    return text.translate(_LINES if lines else _VISIBLE)


def write_output(text: str) -> None:
    """Write text to standard output as UTF-8; no line end is added or changed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def json_line(value: object) -> str:
    """Print one line of JSON; characters that the output can encode are not escaped."""
    line = json.dumps(value, ensure_ascii=False)
    return line if line.isascii() or not any("\ud800" <= c <= "\udfff" for c in line) else json.dumps(value)


def print_note(text: str, *, label: str = "note:") -> None:
    """Print one line on standard error, with ``note:``, ``error:`` or another label in front."""
    colour = "red" if label == "error:" else "yellow"
    shown = False if os.environ.get("NO_COLOR") else None
    click.echo(f"{click.style(label, fg=colour, bold=True)} {text}", err=True, color=shown)


def print_heading(text: str) -> None:
    """Print a heading above a block."""
    click.secho(text, bold=True)


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = (), wrap: int = -1
) -> None:
    """Print aligned columns. On a terminal the column ``wrap`` folds at the window's edge; in a pipe no line folds.

    Args:
        right: the columns that stand flush right, from 0.
    """
    shown = [[escape_controls(str(cell)) for cell in row] for row in rows]
    if on_terminal():
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for i, name in enumerate(head):
            grid.add_column(
                name,
                justify="right" if i in right else "left",
                no_wrap=i != wrap,
                overflow="fold",
                style="dim" if i == wrap else "",
            )
        for row in shown:
            grid.add_row(*(Text(cell) for cell in row))
        make_console().print(grid)
        return
    widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
    for row in (list(head), *shown):
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        click.echo("  ".join(cells).rstrip())

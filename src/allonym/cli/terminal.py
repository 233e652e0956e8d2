"""The terminal: aligned text and notes, input that is decoded, and the progress of long runs.

Output in a pipe is plain text; a terminal gets the same with some colour. Progress is shown on standard error, only
where that is a terminal, and only after a moment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import click

from allonym.errors import DataError, UsageError
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

PATIENCE = 0.3  # seconds before a bar appears


def is_terminal(*, stderr: bool = False) -> bool:
    """Tell whether standard output (or standard error) is a terminal."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def make_console(*, stderr: bool = False) -> Console:
    """Return a rich console that adds no colours of its own."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def write_output(text: str) -> None:
    """Write text to standard output as UTF-8; no line end is added or changed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def format_json_line(value: object) -> str:
    """Return a value as one line of JSON; characters that the output can encode are not escaped."""
    line = json.dumps(value, ensure_ascii=False)
    return line if line.isascii() or not any("\ud800" <= c <= "\udfff" for c in line) else json.dumps(value)


def print_note(text: str, *, label: str = "note:") -> None:
    """Print one line on standard error, with ``note:``, ``error:`` or another label in front.

    A line end in an error is one in a file's name: shown as a line, it could pass for another message.
    """
    is_error = label == "error:"
    colour, text = "red" if is_error else "yellow", escape_controls(text, lines=not is_error)
    shown = False if os.environ.get("NO_COLOR") else None
    click.echo(f"{click.style(label, fg=colour, bold=True)} {text}", err=True, color=shown)


def print_unread_warning(unread: Mapping[str, int], characters: int) -> None:
    """Warn of passages in languages that no detector reads, if there are any: their characters by language."""
    if unread:
        from allonym.detection.languages import describe_unread
        from allonym.detection.other_languages import advise_package

        print_note(describe_unread(unread, characters) + advise_package(unread), label="warning:")


def report_failure(message: str, code: int = 1) -> click.exceptions.Exit:
    """Print an error, and return the exception that ends the command with an exit code."""
    print_note(message, label="error:")
    return click.exceptions.Exit(code)


def report_interrupt(*, resumable: bool = True) -> click.exceptions.Exit:
    """Print that the user has interrupted the run, and return the exception that ends the command."""
    return report_failure(f"interrupted{'; run the same command with --resume to continue' if resumable else ''}", 130)


def confirm(question: str) -> None:
    """Ask a question on standard error, and go on only if the answer is yes.

    Raises:
        Exit: the answer is no.
        UsageError: nobody can answer.
    """
    try:
        answer = click.confirm(question, err=True)
    except click.exceptions.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError("nothing was done: nobody answered; --yes confirms beforehand") from None
    if not answer:
        raise report_failure("nothing was done", 130)


def print_heading(text: str) -> None:
    """Print a heading above a block."""
    click.secho(text, bold=True)


def print_labelled_values(rows: Sequence[tuple[str, object]], indent: str = "") -> None:
    """Print names, dimmed, and their values."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{indent}{click.style(name.ljust(width), dim=True)}  {escape_controls(str(value), lines=True)}")


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = (), wrap: int = -1
) -> None:
    """Print aligned columns. On a terminal the column ``wrap`` folds at the window's edge; in a pipe no line folds.

    Args:
        right: the columns that stand flush right, from 0.
    """
    shown = [[escape_controls(str(cell)) for cell in row] for row in rows]
    if is_terminal():
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for i, name in enumerate(head):
            style, justify = "dim" if i == wrap else "", "right" if i in right else "left"
            grid.add_column(name, justify=justify, no_wrap=i != wrap, overflow="fold", style=style)  # type: ignore[arg-type]
        for row in shown:
            grid.add_row(*(Text(cell) for cell in row))
        make_console().print(grid)
        return
    widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
    for row in (list(head), *shown):
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        click.echo("  ".join(cells).rstrip())


def print_stdin_note() -> None:
    """Note that standard input is read from a terminal, where the program would seem to hang."""
    if sys.stdin.isatty():
        print_note("reading from the terminal; Ctrl-D ends the text")


def read_stdin() -> bytes:
    """Read all of standard input."""
    print_stdin_note()
    return sys.stdin.buffer.read()


def decode_text(data: bytes, where: str) -> str:
    """Decode UTF-8, dropping a byte order mark and keeping line ends.

    Raises:
        DataError: the data is not UTF-8; the message names the byte's position.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8: byte {error.start} does not fit") from None


@contextmanager
def show_byte_progress(*, enabled: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function (bytes done, all bytes) that draws the bar, or None if it is not enabled or not possible."""
    with _show_bars({}, _make_byte_columns, enabled) as advance:
        yield None if advance is None else lambda count, total: advance("", count, total)


def show_stage_bars(
    names: Mapping[str, str], *, enabled: bool
) -> AbstractContextManager[Callable[[str, int, int | None], None] | None]:
    """Return a context with a function (stage, done, total) that draws one bar per stage, or with None if not enabled
    or not possible.

    ``names`` maps stages to the names that are shown.
    """
    return _show_bars(names, _make_stage_columns, enabled)


@contextmanager
def show_stage_bar(name: str, *, enabled: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function (done, total) that draws a bar with this name, or None if not enabled or not possible."""
    with show_stage_bars({}, enabled=enabled) as advance:
        yield None if advance is None else lambda count, total: advance(name, count, total)


@contextmanager
def _show_bars(
    names: Mapping[str, str], make_columns: Callable[[], Iterable[ProgressColumn]], enabled: bool
) -> Iterator[Callable[[str, int, int | None], None] | None]:
    if not (enabled and is_terminal(stderr=True)):
        yield None
        return
    from rich.progress import Progress

    began = time.monotonic()
    bars = Progress(*make_columns(), console=make_console(stderr=True), transient=True)
    tasks: dict[str, Any] = {}

    def advance_stage(stage: str, count: int, total: int | None) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(names.get(stage, stage), total=total)
        if not bars.live.is_started and time.monotonic() - began > PATIENCE:
            bars.start()
        bars.update(tasks[stage], completed=count, total=total)

    try:
        yield advance_stage
    finally:
        if bars.live.is_started:
            bars.stop()


def _make_stage_columns() -> Iterable[ProgressColumn]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    return TextColumn("{task.description:<10}"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn()


def _make_byte_columns() -> Iterable[ProgressColumn]:
    from rich import filesize
    from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.text import Text

    def format_amount(n: float) -> str:
        return filesize.decimal(int(n))

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(format_amount(task.completed) + (f" of {format_amount(task.total)}" if task.total else ""))

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{format_amount(speed)}/s" if speed else "", style="dim")

    return BarColumn(bar_width=30), TaskProgressColumn(), Amount(), Rate(), TimeRemainingColumn(compact=True)

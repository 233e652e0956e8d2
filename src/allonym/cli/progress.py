"""The progress bar of long runs: on standard error, only where that is a terminal, only after a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from allonym.cli.terminal import make_console, on_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task
    from rich.text import Text

Advance = Callable[[int, int | None], None]
PATIENCE = 0.3  # seconds before a bar appears


@contextmanager
def show_progress(*, enabled: bool) -> Iterator[Advance | None]:
    """Yield a function (bytes done, all bytes) that draws the bar, or None if it is not enabled or not possible."""
    if not (enabled and on_terminal(stderr=True)):
        yield None
        return
    began = time.monotonic()
    bar: Progress | None = None

    def advance_bar(count: int, total: int | None) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - began < PATIENCE:
                return
            bar = _make_bar()
            bar.add_task("", total=total)
            bar.start()
        bar.update(bar.task_ids[0], completed=count, total=total)

    try:
        yield advance_bar
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def show_stages(names: Mapping[str, str], *, enabled: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a function (stage, done, total) that draws one bar per stage, or None if not enabled or not possible.

    ``names`` maps stages to the names that are shown.
    """
    if not (enabled and on_terminal(stderr=True)):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    began = time.monotonic()
    bars = Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=make_console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def advance_stage(stage: str, count: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(names.get(stage, stage), total=total)
            if len(tasks) == 1 and time.monotonic() - began > PATIENCE:
                bars.start()
        if not bars.live.is_started and time.monotonic() - began > PATIENCE:
            bars.start()
        bars.update(tasks[stage], completed=count, total=total)

    try:
        yield advance_stage
    finally:
        bars.stop()


def _make_bar() -> Progress:
    from rich import filesize
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TimeRemainingColumn
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

    columns: list[ProgressColumn] = [BarColumn(bar_width=30), TaskProgressColumn(), Amount(), Rate()]
    return Progress(*columns, TimeRemainingColumn(compact=True), console=make_console(stderr=True), transient=True)

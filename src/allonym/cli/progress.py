"""The progress bar of long runs: on standard error, only where that is a terminal, only after a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from allonym.cli.terminal import console, on_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task
    from rich.text import Text

Advance = Callable[[int, int | None], None]
PATIENCE = 0.3  # seconds that a run may take without a bar


@contextmanager
def progress(*, wanted: bool) -> Iterator[Advance | None]:
    """A function (bytes done, bytes in all) that draws the bar; None where none is wanted or possible."""
    if not (wanted and on_terminal(stderr=True)):
        yield None
        return
    began = time.monotonic()
    bar: Progress | None = None

    def advance(done: int, total: int | None) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - began < PATIENCE:
                return
            bar = _bar()
            bar.add_task("", total=total)
            bar.start()
        bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def stages(names: Mapping[str, str], *, wanted: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A function (stage, done, of how many) that draws one bar per stage, under its name where ``names``
    has one; None where none is wanted or possible."""
    if not (wanted and on_terminal(stderr=True)):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    began = time.monotonic()
    bars = Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def advance(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(names.get(stage, stage), total=total)
            if len(tasks) == 1 and time.monotonic() - began > PATIENCE:
                bars.start()
        if not bars.live.is_started and time.monotonic() - began > PATIENCE:
            bars.start()
        bars.update(tasks[stage], completed=done, total=total)

    try:
        yield advance
    finally:
        bars.stop()


def _bar() -> Progress:
    from rich import filesize
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.text import Text

    def amount(n: float) -> str:
        return filesize.decimal(int(n))

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(amount(task.completed) + (f" of {amount(task.total)}" if task.total else ""))

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{amount(speed)}/s" if speed else "", style="dim")

    columns: list[ProgressColumn] = [BarColumn(bar_width=30), TaskProgressColumn(), Amount(), Rate()]
    return Progress(*columns, TimeRemainingColumn(compact=True), console=console(stderr=True), transient=True)

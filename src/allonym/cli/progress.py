"""The progress bar of long runs: on standard error, only where that is a terminal, only after a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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

"""Files that commands write: checks before the work, atomic writing, and the stages of a run that can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from allonym.cli.terminal import print_note, report_interrupt
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.report import Page


def check_report_suffix(report: Path | None) -> None:
    """Raise :class:`UsageError` if the ending of a report is not that of a format."""
    from allonym.report import FORMATS

    if report is not None and report.suffix.lower() not in FORMATS:
        raise UsageError(f"--report must end in {', '.join(FORMATS)}, got {report.suffix or 'no ending'}")


def render_page(page: Page, path: Path) -> str:
    """Return a report in the format of the file's suffix."""
    from allonym import report

    return report.render(page, report.FORMATS[path.suffix.lower()])


def check_outputs(outputs: Sequence[Path], inputs: Iterable[Path | None], overwrite: bool) -> None:
    """Raise before the work if files cannot be written.

    Args:
        outputs: files that the run writes.
        inputs: files and folders that the run reads; None stands for an input that is not named.
        overwrite: whether files that exist may be replaced.

    Raises:
        UsageError: a file exists, is named twice, is or lies in an input, or its folder is not writable.
    """
    from allonym.files.items import check_outputs_distinct, check_targets_free

    check_not_inputs(outputs, inputs)
    for path in outputs:
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if not above.is_dir():
            raise UsageError(f"{path} cannot be written: {above.name} is a file, and a folder is required there")
        if not os.access(above, os.W_OK | os.X_OK):
            raise UsageError(f"{path} cannot be written: you may not write to {above}")
    check_outputs_distinct([], outputs)
    check_targets_free([], outputs, overwrite)


def check_not_inputs(outputs: Iterable[Path], inputs: Iterable[Path | None]) -> None:
    """Raise :class:`UsageError` if an output is, or lies in, an input of the run."""
    resolved = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        real = Path(os.path.realpath(path))  # unlike resolve(), it takes a link to itself
        if resolved & {real, *real.parents}:
            raise UsageError(f"{path} is, or lies in, an input of the run, which is never changed")


def write_files(contents: Mapping[Path, str], *, private: bool = False) -> None:
    """Write files, all or none; ``private``: readable only by their owner."""
    from allonym.partfile import PartFile

    parts: list[PartFile] = []
    try:
        for path, text in contents.items():
            parts.append(part := PartFile(path, private=private))
            part.write(text.encode("utf-8", "backslashreplace"))
        for part in parts:
            part.finish()
    except BaseException:  # leave no half-written file
        for part in parts:
            part.close(remove=True)
        raise


@contextmanager
def open_stages_folder(target: Path, command: str, note: str, *, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Yield a hidden folder beside an output for the finished stages of a run; it is deleted when the run succeeds.

    Args:
        target: the output.
        command: ends the folder's name.
        note: printed after the folder's path if the run fails and stages are kept.
        resume: use the stages of an interrupted run.
        overwrite: delete the stages of an interrupted run.

    Raises:
        UsageError: stages are kept, and neither ``resume`` nor ``overwrite`` is set.
    """
    from allonym.files.state import State

    target = target.absolute()  # the name of .
    folder = target.with_name(f".{target.name}.allonym-{command}")

    def has_stages() -> bool:
        return any(folder.glob("*.json"))

    if folder.exists() and not resume:
        if not overwrite and has_stages():
            raise UsageError(f"an unfinished run lies at {folder}: --resume continues it, --overwrite begins again")
        State(folder).clear()
    target.parent.mkdir(parents=True, exist_ok=True)
    state = State(folder)
    try:
        yield folder
    except BaseException as error:  # an error or an interruption: keep what can be resumed
        if not has_stages():
            state.clear()
            raise
        if isinstance(error, KeyboardInterrupt):
            raise report_interrupt() from None
        print_note(note.format(folder))
        raise
    state.clear()

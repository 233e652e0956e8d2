"""Options that the commands of ``allonym evaluate`` share: the two versions of the texts, and the outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym import __version__
from allonym.cli.options import format_option
from allonym.cli.progress import show_stages
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.evaluate.reading import Pairs
    from allonym.report import Page
    from allonym.report.page import Kind, Section
    from allonym.stats import Estimate

_IN = click.Path(path_type=Path)
_OUT = click.Path(dir_okay=False, path_type=Path)
Command = Callable[..., Any]

seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all splits and random draws."
)


@dataclass(frozen=True, slots=True)
class Source:
    """The paths and fields of the texts, from the options of :func:`source_options`."""

    original: Path
    anonymised: Path | None
    field: tuple[str, ...]
    anonymised_field: tuple[str, ...]
    format: str | None
    metadata: Path | None

    def read(self) -> Pairs:
        """Read the texts before and after.

        Raises:
            UsageError, DataError: as :func:`allonym.evaluate.reading.read_pairs`.
        """
        from allonym.evaluate.reading import read_pairs

        return read_pairs(
            self.original,
            self.anonymised,
            field=self.field,
            anonymised_field=self.anonymised_field,
            format=self.format,
            metadata=self.metadata,
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The inputs, which are never written to."""
        return tuple(p for p in (self.original, self.anonymised, self.metadata) if p is not None)


@dataclass(frozen=True, slots=True)
class Output:
    """The files for the numbers, from the options of :func:`output_options`."""

    as_json: Path | None
    report: Path | None
    with_text: bool
    overwrite: bool
    quiet: bool

    @property
    def paths(self) -> tuple[Path, ...]:
        """The outputs."""
        return tuple(p for p in (self.as_json, self.report) if p is not None)

    def check(self, read: Iterable[Path]) -> None:
        """Raise before the work if the outputs cannot be written.

        Args:
            read: files and folders that the run reads.

        Raises:
            UsageError: as :func:`check_outputs`, or the report has an unknown ending.
        """
        from allonym.report import FORMATS

        if self.report is not None and self.report.suffix.lower() not in FORMATS:
            raise UsageError(f"--report must end in {', '.join(FORMATS)}, got {self.report.suffix or 'no ending'}")
        check_outputs(self.paths, read, self.overwrite)

    def write(
        self, data: Mapping[str, Any], page: Callable[[], Page], beside: Mapping[Path, str] | None = None
    ) -> None:
        """Write the JSON and the report if requested, all files or none.

        Args:
            data: plain values; allonym's version is put in front.
            page: returns the report; called only if one is requested.
            beside: further files and their contents, such as a queue.
        """
        from allonym import report
        from allonym.files.output import PartFile

        paths = (*(beside or {}), *self.paths)
        parts: list[PartFile] = []
        try:
            for path in paths:
                if beside and path in beside:
                    text = beside[path]
                elif path is self.as_json:
                    text = json.dumps({"allonym": __version__, **data}, ensure_ascii=False, indent=1, allow_nan=False)
                else:
                    text = report.render(page(), report.FORMATS[path.suffix.lower()])
                parts.append(part := PartFile(path))
                if self.with_text:
                    part.path.chmod(0o600)
                part.write((text.rstrip("\n") + "\n" if text else text).encode("utf-8", "backslashreplace"))
            for part in parts:
                part.finish()
        except BaseException:  # leave no half-written file
            for part in parts:
                part.close(remove=True)
            raise
        if paths and not self.quiet:
            print_note(" and ".join(map(str, paths)), label="written:")
            if self.with_text and self.paths:
                print_note("it may show original texts: protect it as you protect the corpus")

    @contextmanager
    def progress(self, name: str) -> Iterator[Callable[[int, int], None] | None]:
        """Yield a function (done, total) that draws a bar with this name, or None if not enabled or not possible."""
        with show_stages({}, enabled=not self.quiet) as advance:
            yield None if advance is None else lambda count, total: advance(name, count, total)


def check_outputs(outputs: Sequence[Path], read: Iterable[Path], overwrite: bool) -> None:
    """Raise before the work if files cannot be written.

    Args:
        outputs: files that the run writes.
        read: files and folders that the run reads.
        overwrite: whether files that exist may be replaced.

    Raises:
        UsageError: a file exists, is named twice, is or lies in an input, or its folder is not writable.
    """
    from allonym.files.items import check_free, check_separate

    inputs = {path.resolve() for path in read}
    for path in outputs:
        if inputs & {path.resolve(), *path.resolve().parents}:
            raise UsageError(f"{path} is, or lies in, an input of the run, which is never changed")
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if not above.is_dir():
            raise UsageError(f"{path} cannot be written: {above.name} is a file, and a folder is required there")
        if not os.access(above, os.W_OK | os.X_OK):
            raise UsageError(f"{path} cannot be written: you may not write to {above}")
    check_separate([], outputs)
    check_free([], outputs, overwrite)


def source_options(command: Command) -> Command:
    """Add ORIGINAL, ANONYMISED and the options for reading them. The command receives ``source``: :class:`Source`."""

    @wraps(command)
    def run_with_source(*args: Any, **options: Any) -> Any:
        if options["anonymised"] is None and not options["anonymised_field"]:
            raise click.UsageError("ANONYMISED is required, or --anonymised-field with a second field of ORIGINAL")
        return command(*args, source=Source(**{name: options.pop(name) for name in Source.__slots__}), **options)

    return with_options(
        click.argument("original", type=_IN),
        click.argument("anonymised", type=_IN, required=False),
        *reading_options,
    )(run_with_source)


reading_options = (
    click.option(
        "--field",
        multiple=True,
        metavar="NAME",
        help="Column or dotted path of the text. Repeatable; by default text, else all text.",
    ),
    click.option(
        "--anonymised-field",
        multiple=True,
        metavar="NAME",
        help="The same for ANONYMISED; without ANONYMISED, a second field of ORIGINAL.",
    ),
    format_option,
    click.option(
        "--metadata",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Table with a row per document: a column id or file, and any other columns.",
    ),
)


def training_options(*, beams: bool) -> Callable[[Command], Command]:
    """Add the options for fine-tuning; ``beams`` adds --beams, for models that write.

    The command receives ``training``.
    """

    def add_options(command: Command) -> Command:
        @wraps(command)
        def run_with_training(*args: Any, **options: Any) -> Any:
            from allonym.evaluate.finetuned import Training

            names = ("epochs", "lr", "batch", "tokens", *(("beams",) if beams else ()))
            return command(*args, training=Training(**{name: options.pop(name) for name in names}), **options)

        return with_options(*_TRAINING, *((_BEAMS,) if beams else ()))(run_with_training)

    return add_options


_TRAINING = (
    click.option("--epochs", type=click.IntRange(1), default=3, show_default=True,
                 help="With a FOLDER: number of passes over the training texts."),
    click.option("--lr", type=click.FloatRange(0, min_open=True), default=2e-5, show_default=True,
                 help="With a FOLDER: peak learning rate of AdamW."),
    click.option("--batch", type=click.IntRange(1), default=8, show_default=True,
                 help="With a FOLDER: texts per batch."),
    click.option("--tokens", type=click.IntRange(1), default=1024, show_default=True,
                 help="With a FOLDER: greatest number of tokens per text, if the network allows it."),
)  # fmt: skip
_BEAMS = click.option("--beams", type=click.IntRange(1), default=1, show_default=True,
                      help="With seq2seq:FOLDER: beams of the search.")  # fmt: skip


def output_options(command: Command) -> Command:
    """Add --json, --report, --with-text, --overwrite, --quiet. The command receives ``output``, an :class:`Output`."""

    @wraps(command)
    def run_with_output(*args: Any, **options: Any) -> Any:
        return command(*args, output=Output(**{name: options.pop(name) for name in Output.__slots__}), **options)

    return with_options(
        click.option("--json", "as_json", type=_OUT, metavar="FILE", help="Write every number, as JSON."),
        click.option(
            "--report", type=_OUT, metavar="FILE", help="Write a report: .html (self-contained), .md or .json."
        ),
        click.option("--with-text", is_flag=True, help="Include words and passages of the texts in the outputs."),
        click.option("--overwrite", is_flag=True, help="Replace existing outputs."),
        click.option("--quiet", "-q", is_flag=True, help="Show no progress and no notes."),
    )(run_with_output)


def show_estimates(rows: Iterable[tuple[str, Estimate] | tuple[str, Estimate, Kind]], head: str = "") -> None:
    """Print a table of estimates: name, value, interval and n, or the reason for a missing value."""
    from allonym.report.numbers import format_cell

    cells = []
    for name, estimate, *kind in rows:
        shown = format_cell(estimate, kind[0] if kind else "number")
        interval = estimate.method.removeprefix("none: ") if estimate.value != estimate.value else shown.interval
        cells.append(
            [
                name,
                replace_hard_spaces(shown.text),
                replace_hard_spaces(interval),
                f"{estimate.n:,}" if estimate.n else "",
            ]
        )
    print_table([head, "value", "interval", "n"], cells, right=(1, 3))


def replace_hard_spaces(text: str) -> str:
    """Replace no-break spaces in a number of a report, for a terminal."""
    return text.replace("\u00a0", " ").replace("–", "-").replace("−", "-")


def section_page(title: str, sections: Sequence[Section | None], subtitle: str = "") -> Page:
    """Return a report of one measure."""
    from allonym.report import Page

    return Page(title, tuple(s for s in sections if s is not None), subtitle)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds options, in this order."""

    def add_options(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options

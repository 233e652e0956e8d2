"""What the measures share: the texts that they read, the files that they write, and their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from allonym import __version__
from allonym.cli import options
from allonym.cli.options import COUNT, FILE, NEW_FILE, POSITIVE, argument, flag, option
from allonym.cli.outputs import check_outputs, check_report_suffix, render_page, write_files
from allonym.cli.terminal import print_note, print_table, show_stage_bar
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.cli.options import Declaration
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.reading import Pairs
    from allonym.report import Page
    from allonym.report.page import Kind
    from allonym.stats import Estimate

_SECTIONS: Mapping[str, tuple[str, str, str]] = {
    "detection": ("Detection", "detection", "detection_section"),
    "document_risk": ("Document risk", "risk", "document_risk_section"),
    "downstream": ("Downstream use", "utility", "downstream_section"),
    "generations": ("Originals in generations", "detection", "generations_section"),
    "guess_attributes": ("Attributes inferred", "intruders", "attributes_section"),
    "guess_persons": ("Persons guessed", "intruders", "people_section"),
    "hardening": ("Hardening", "risk", "hardening_section"),
    "information": ("Information loss", "utility", "information_section"),
    "linkage": ("Record linkage", "intruders", "linkage_section"),
    "people": ("Intruder study", "intruders", "people_section"),
    "red_team": ("Red team", "intruders", "red_team_section"),
    "residual": ("Residual risk", "risk", "residual_section"),
    "syntheticity": ("Syntheticity", "utility", "syntheticity_section"),
}
"""For each measure's key in the JSON: title of its report, and module and name of the report's section."""

seed_option = option("--seed", "Seed of all splits and random draws.", type=COUNT, default=0)
overwrite_option = flag("--overwrite", "Replace an existing output.")
metadata_option = option(
    "--metadata FILE", "Table with a row per document: a column id or file, and any other columns.", type=FILE
)
field_option = option("--field NAME", "Column or dotted path of the text. Repeatable.", multiple=True)
text_options = options.group_options("texts", options.TextFields, field_option, options.format_option)


class Source(NamedTuple):
    """The paths and fields of the texts before and after."""

    original: Path = argument("original", type=click.Path(path_type=Path))
    anonymised: Path | None = argument("anonymised", type=click.Path(path_type=Path), required=False)
    field: tuple[str, ...] = option(
        "--field NAME", "Column or dotted path of the text. Repeatable; by default text, else all text.", multiple=True
    )
    anonymised_field: tuple[str, ...] = option(
        "--anonymised-field NAME",
        "The same for ANONYMISED; without ANONYMISED, a second field of ORIGINAL.",
        multiple=True,
    )
    format: str | None = options.format_option
    metadata: Path | None = metadata_option

    def read_pairs(self) -> Pairs:
        """Read the texts before and after.

        Raises:
            UsageError, DataError: as :func:`allonym.evaluate.reading.read_pairs`.
        """
        from allonym.evaluate.reading import read_pairs

        return read_pairs(**self._asdict())

    @property
    def paths(self) -> tuple[Path, ...]:
        """The inputs, which are never written to."""
        return tuple(p for p in (self.original, self.anonymised, self.metadata) if p is not None)


class Output(NamedTuple):
    """The files for the numbers."""

    as_json: Path | None = option("--json FILE", "Write every number, as JSON.", name="as_json", type=NEW_FILE)
    report: Path | None = option(
        "--report FILE", "Write a report: .html (self-contained), .md or .json.", type=NEW_FILE
    )
    with_text: bool = flag("--with-text", "Include words and passages of the texts in the outputs.")
    overwrite: bool = flag("--overwrite", "Replace existing outputs.")
    quiet: bool = flag("--quiet, -q", "Show no progress and no notes.")

    @property
    def paths(self) -> tuple[Path, ...]:
        """The outputs."""
        return tuple(p for p in (self.as_json, self.report) if p is not None)

    def check_writable(self, *inputs: Path | None, queue: Path | None = None) -> None:
        """Raise before the work if the outputs cannot be written.

        Args:
            inputs: files and folders that the run reads.
            queue: a further output, JSON Lines or CSV.

        Raises:
            UsageError: as :func:`check_outputs`, or an output has an unknown ending.
        """
        check_report_suffix(self.report)
        if queue is not None and queue.suffix.lower() not in (".jsonl", ".csv"):
            raise UsageError(f"--queue must end in .jsonl or .csv, got {queue.suffix or 'no ending'}")
        check_outputs((*self.paths, *([queue] if queue else [])), inputs, self.overwrite)

    def write_reports(
        self, data: Mapping[str, Any], page: Callable[[], Page], beside: Mapping[Path, str] | None = None
    ) -> None:
        """Write the JSON and the report if requested, all files or none.

        Args:
            data: plain values; allonym's version is put in front.
            page: returns the report; called only if one is requested.
            beside: further files and their contents, such as a queue.
        """
        contents = dict(beside or {})
        if self.as_json is not None:
            shown = {"allonym": __version__, **data}
            contents[self.as_json] = json.dumps(shown, ensure_ascii=False, indent=1, allow_nan=False)
        if self.report is not None:
            contents[self.report] = render_page(page(), self.report)
        ended = {path: text.rstrip("\n") + "\n" if text else text for path, text in contents.items()}
        write_files(ended, private=self.with_text)
        if contents and not self.quiet:
            print_note(" and ".join(map(str, contents)), label="written:")
            if self.with_text and self.paths:
                print_note("it may show original texts: protect it as you protect the corpus")

    def write_measure(
        self,
        key: str,
        data: Mapping[str, Any],
        subtitle: str = "",
        *,
        shown: Mapping[str, Any] | None = None,
        beside: Mapping[Path, str] | None = None,
    ) -> None:
        """Write the numbers of one measure, and its report.

        Args:
            key: key of the measure in the JSON.
            data: plain values.
            subtitle: of the report.
            shown: the values in the report; by default, all.
            beside: as for :meth:`write_reports`.
        """
        title, module, name = _SECTIONS[key]

        def draw_page() -> Page:
            from allonym.report import Page

            section = getattr(import_module(f"allonym.report.evaluate.{module}"), name)
            drawn = section(data if shown is None else shown, texts=self.with_text)
            return Page(title, () if drawn is None else (drawn,), subtitle)

        self.write_reports({key: data}, draw_page, beside)

    def show_progress(self, name: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
        """Return a context with a function (done, total) that draws a bar, or with None if no progress is shown."""
        return show_stage_bar(name, enabled=not self.quiet)


def format_queue(rows: Sequence[Mapping[str, object]], head: Sequence[str], path: Path) -> str:
    """Return a queue for review in the format of the file's suffix: CSV or JSON Lines."""
    import csv
    import io

    if path.suffix.lower() != ".csv":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, head, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _make_source(**values: Any) -> Source:
    source = Source(**values)
    if source.anonymised is None and not source.anonymised_field:
        raise click.UsageError("ANONYMISED is required, or --anonymised-field with a second field of ORIGINAL")
    return source


source_options = options.group_options("source", _make_source, *Source._field_defaults.values())
reading_options = tuple(Source._field_defaults.values())[2:]
output_options = options.group_options("output", Output)


def training_options(*, beams: bool) -> Declaration:
    """Return a decorator that adds the options for fine-tuning; ``beams`` adds --beams, for models that write.

    The command receives ``training``.
    """

    def make_training(**values: Any) -> Training:
        from allonym.evaluate.finetuned import Training

        return Training(**values)

    return options.group_options("training", make_training, *_TRAINING, *((_BEAMS,) if beams else ()))


_TRAINING = (
    option("--epochs", "With a FOLDER: number of passes over the training texts.", type=POSITIVE, default=3),
    option(
        "--lr",
        "With a FOLDER: peak learning rate of AdamW.",
        type=click.FloatRange(0, min_open=True),
        default=2e-5,
    ),
    option("--batch", "With a FOLDER: texts per batch.", type=POSITIVE, default=8),
    option(
        "--tokens",
        "With a FOLDER: greatest number of tokens per text, if the network allows it.",
        type=POSITIVE,
        default=1024,
    ),
)
_BEAMS = option("--beams", "With seq2seq:FOLDER: beams of the search.", type=POSITIVE, default=1)


def print_estimates(rows: Iterable[tuple[str, Estimate] | tuple[str, Estimate, Kind]], head: str = "") -> None:
    """Print a table of estimates: name, value, interval and n, or the reason for a missing value."""
    cells = []
    for name, estimate, *kind in rows:
        value, interval = format_value_and_interval(estimate, kind[0] if kind else "number")
        reason = replace_hard_spaces(estimate.method.removeprefix("none: "))
        n = f"{estimate.n:,}" if estimate.n else ""
        cells.append([name, value, reason if estimate.value != estimate.value else interval, n])
    print_table([head, "value", "interval", "n"], cells, right=(1, 3))


def format_value_and_interval(
    value: Estimate | float, kind: Kind = "number", digits: int | None = None
) -> tuple[str, str]:
    """Return a number and its interval, for a terminal; the interval is empty where there is none."""
    from allonym.report.values import format_cell

    shown = format_cell(value, kind, digits)
    return replace_hard_spaces(shown.text), replace_hard_spaces(shown.interval)


def format_value(value: Estimate | float, kind: Kind = "number", digits: int | None = None) -> str:
    """Return a number, or an estimate without its interval, for a terminal."""
    return format_value_and_interval(value, kind, digits)[0]


def format_with_interval(estimate: Estimate, digits: int | None = 3) -> str:
    """Return an estimate with its interval, for a terminal."""
    return " ".join(filter(None, format_value_and_interval(estimate, "number", digits)))


def format_share_with_interval(estimate: Estimate, digits: int | None = 1) -> str:
    """Return a share in per cent with its interval, for a terminal."""
    return " ".join(filter(None, format_value_and_interval(estimate, "share", digits)))


def replace_hard_spaces(text: str) -> str:
    """Replace no-break spaces in a number of a report, for a terminal."""
    return text.replace("\u00a0", " ").replace("–", "-").replace("−", "-")

"""What the measures share: the texts that they read, the files that they write, and their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from allonym import __version__
from allonym.cli import options
from allonym.cli.options import COUNT, FILE, NEW_FILE, POSITIVE, argument, flag, option
from allonym.cli.outputs import check_outputs, check_report_suffix, render_page, write_files
from allonym.cli.terminal import print_heading, print_note, print_table, show_stage_bar
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.cli.options import Declaration
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.pairs import Pairs
    from allonym.report import Page
    from allonym.report.page import Block, Figures, Table

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

_NARROW = 9  # columns of a table whose intervals fit beside its numbers

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
            UsageError, DataError: as :func:`allonym.evaluate.pairs.read_pairs`.
        """
        from allonym.evaluate.pairs import read_pairs

        return read_pairs(**self._asdict())

    def read_background(self, path: Path | None, subject: str | None) -> list[tuple[str, str]]:
        """Read further texts with their subjects, in the fields of ORIGINAL; none without a path.

        Raises:
            UsageError, DataError: a text has no subject, or as :func:`allonym.evaluate.pairs.read_pairs`.
        """
        if path is None:
            return []
        if subject is None:
            raise UsageError("--background requires --subject")
        pairs = self._replace(original=path, anonymised=path, anonymised_field=(), metadata=None).read_pairs()
        return list(zip(pairs.original, pairs.labels(subject), strict=True))

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

    def write_reports(self, data: Mapping[str, Any], page: Page, beside: Mapping[Path, str] | None = None) -> None:
        """Write the JSON and the report if requested, all files or none.

        Args:
            data: plain values; allonym's version is put in front.
            page: the report.
            beside: further files and their contents, such as a queue.
        """
        contents = dict(beside or {})
        if self.as_json is not None:
            shown = {"allonym": __version__, **data}
            contents[self.as_json] = json.dumps(shown, ensure_ascii=False, indent=1, allow_nan=False)
        if self.report is not None:
            contents[self.report] = render_page(page, self.report)
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
        tab: str = "",
    ) -> None:
        """Write the numbers of one measure and its report, and print what the report shows in numbers.

        Args:
            key: key of the measure in the JSON.
            data: plain values.
            subtitle: of the report.
            shown: the values in the report; by default, all.
            beside: as for :meth:`write_reports`.
            tab: as for :func:`print_blocks`.
        """
        from allonym.report import Page

        title, module, name = _SECTIONS[key]
        draw_section = getattr(import_module(f"allonym.report.evaluate.{module}"), name)
        section = draw_section(data if shown is None else shown, texts=self.with_text)
        sections = () if section is None else (section,)
        self.write_reports({key: data}, Page(title, sections, subtitle), beside)
        print_blocks(sections, tab=tab, notes=not self.quiet)

    def show_progress(self, name: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
        """Return a context with a function (done, total) that draws a bar, or with None if no progress is shown."""
        return show_stage_bar(name, enabled=not self.quiet)


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


def print_blocks(blocks: Iterable[Block], *, tab: str = "", notes: bool = True) -> None:
    """Print the numbers of a report: its lead, key figures and tables, without charts and what is folded away.

    Args:
        blocks: of a page or section.
        tab: of tables that are alternatives, the one to print; by default the one that shows first.
        notes: whether notices, and what a report says in small print, are printed on standard error.
    """
    from allonym.report import page

    for block in blocks:
        if isinstance(block, page.Text):
            if block.tone == "lead":
                click.echo(replace_hard_spaces(block.text))
            elif block.tone == "muted" and notes:
                print_note(replace_hard_spaces(block.text))
        elif isinstance(block, page.Notice):
            if notes:
                print_note(replace_hard_spaces("\n  ".join((block.text, *block.items))))
        elif isinstance(block, page.Figures):
            _print_figures(block)
        elif isinstance(block, page.Table):
            _print_report_table(block)
        elif isinstance(block, page.Tabs):
            titles = [title for title, _ in block.options]
            title, inside = block.options[titles.index(tab) if tab in titles else block.chosen]
            if any(isinstance(part, page.Table) for part in inside):
                print_heading(f"{block.title}: {title}")
            print_blocks(inside, tab=tab, notes=False)
        elif isinstance(block, (page.Section, page.Beside)):
            print_blocks(block.blocks, tab=tab, notes=notes)


def _print_figures(block: Figures) -> None:
    """Print key figures, each with its interval or with the reason why there is none."""
    from allonym.report.values import format_cell

    rows = []
    for figure in block.figures:
        before, shown = (format_cell(v, figure.number, figure.digits) for v in (figure.before, figure.value))
        is_missing = shown.order is None and shown.hint
        interval = shown.hint.removeprefix("none: ") if is_missing else shown.interval
        value = shown.text if figure.before is None else f"{before.text} -> {shown.text}"
        rows.append([figure.label, *map(replace_hard_spaces, (value, interval, figure.note))])
    print_table(["", "value", "interval", ""], rows, right=(1,), wrap=3)
    click.echo()


def _print_report_table(block: Table) -> None:
    """Print a table; one of many columns without intervals, which would make its lines too long."""
    from allonym.report.values import format_cell, list_column_decimals

    kinds, decimals = [column.number for column in block.columns], list_column_decimals(block)
    rows = []
    for row in block.rows[: block.shown or None]:
        shown = [format_cell(*cell) for cell in zip(row.cells, kinds, decimals, strict=True)]
        texts = [cell.text if len(shown) > _NARROW else cell.line for cell in shown]
        rows.append(list(map(replace_hard_spaces, texts)))
    if block.title:
        print_heading(block.title)
    right = [i for i, kind in enumerate(kinds) if kind != "text"]
    print_table([column.name for column in block.columns], rows, right=right)
    more = len(block.rows) - len(rows)
    click.echo(f"{more:,} more are in the report\n" if more else "")


def replace_hard_spaces(text: str) -> str:
    """Replace no-break spaces in a number of a report, for a terminal."""
    return text.replace("\u00a0", " ").replace("–", "-").replace("−", "-")

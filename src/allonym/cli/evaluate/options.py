"""What the measures share: the texts that they read, the files that they write, and their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from allonym import __version__
from allonym.cli.options import FORMAT, METADATA, OVERWRITE, QUIET
from allonym.cli.outputs import check_outputs, check_report_suffix, render_page, write_files
from allonym.cli.terminal import print_heading, print_note, print_table, show_stage_bar
from allonym.errors import UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.pairs import Pairs
    from allonym.report import Page
    from allonym.report.page import Block, Figures, Table

_SECTIONS: Mapping[str, tuple[str, str, str]] = {
    "cards": ("A card per person", "cards", "cards_section"),
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
    "rewriting": ("Adversarial rewriting", "intruders", "rewriting_section"),
    "syntheticity": ("Syntheticity", "utility", "syntheticity_section"),
}
"""For each measure's key in the JSON: title of its report, and module and name of the report's section."""

_NARROW = 9  # columns of a table whose intervals fit beside its numbers

FIELD = declare_setting((), "column or dotted path of the text; by default text, else all text", option="NAME")
SUBJECT = declare_setting(REQUIRED, "metadata field with the subject of each text", option="KEY")
GROUP = declare_setting(
    None, "metadata field, such as fame, with groups; the intruder guesses within the text's group", option="KEY"
)
DOCUMENT = declare_setting(
    None, "metadata field with the document of which each text is a part, such as a chunk", option="KEY"
)
BACKGROUND = declare_setting(
    None,
    "public texts about candidates that intruders search; of a folder, each file's name is the candidate's unless "
    "it has --subject",
    noun="path",
    option="PATH",
)


class Original(SettingGroup):
    """The path of the texts before, and the fields of the texts before and after."""

    original: Path = declare_setting(REQUIRED, "texts before", option="<ORIGINAL>")
    anonymised: Path | None = None
    field: tuple[str, ...] = FIELD
    anonymised_field: tuple[str, ...] = declare_setting(
        (), "the same for ANONYMISED; without ANONYMISED, a second field of ORIGINAL", option="NAME"
    )
    format: str | None = FORMAT
    metadata: Path | None = METADATA

    def read_pairs(self) -> Pairs:
        """Read the texts before and after.

        Raises:
            UsageError, DataError: as :func:`allonym.evaluate.pairs.read_pairs`.
        """
        from allonym.evaluate.pairs import read_pairs

        return read_pairs(**vars(self))

    def read_background(self, path: Path | None, subject: str | None) -> list[tuple[str, str]]:
        """Read further texts with their subjects; none without a path.

        A file has them in the fields of ORIGINAL. The files of a folder are read wholly; where they have no subject,
        each is about whom it is named after.

        Raises:
            UsageError, DataError: a text has no subject, or as :func:`allonym.evaluate.pairs.read_pairs`.
        """
        from allonym.evaluate.pairs import get_metadata_value

        if path is None:
            return []
        if subject is None:
            raise UsageError("--background requires --subject")
        field = () if path.is_dir() else self.field
        there = replace(self, original=path, anonymised=path, field=field, anonymised_field=(), metadata=None)
        pairs = there.read_pairs()
        if path.is_dir() and not any(get_metadata_value(meta, subject) for meta in pairs.meta):
            return [(text, PurePath(name).stem) for text, name in zip(pairs.original, pairs.ids, strict=True)]
        return list(zip(pairs.original, pairs.labels(subject), strict=True))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The inputs, which are never written to."""
        return tuple(p for p in (self.original, self.anonymised, self.metadata) if p is not None)


class Source(Original):
    """The paths and fields of the texts before and after."""

    anonymised: Path | None = declare_setting(None, "texts after", option="<ANONYMISED>")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.anonymised is None and not self.anonymised_field:
            raise click.UsageError("ANONYMISED is required, or --anonymised-field with a second field of ORIGINAL")


class Output(SettingGroup):
    """The files for the numbers."""

    json: Path | None = declare_setting(None, "write every number, as JSON", noun="new file", option="FILE")
    report: Path | None = declare_setting(
        None, "write a report: .html (self-contained), .md or .json", noun="new file", option="FILE"
    )
    with_text: bool = declare_setting(False, "include words and passages of the texts in the outputs")
    overwrite: bool = OVERWRITE
    quiet: bool = QUIET

    @property
    def paths(self) -> tuple[Path, ...]:
        """The outputs."""
        return tuple(p for p in (self.json, self.report) if p is not None)

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
        if self.json is not None:
            shown = {"allonym": __version__, **data}
            contents[self.json] = json.dumps(shown, ensure_ascii=False, indent=1, allow_nan=False)
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


class ClassifierTraining(SettingGroup):
    """How a model that classifies is fine-tuned."""

    epochs: int = declare_setting(3, "with a FOLDER: number of passes over the training texts", low=1)
    lr: float = declare_setting(2e-5, "with a FOLDER: peak learning rate of AdamW", low=0)
    batch: int = declare_setting(8, "with a FOLDER: texts per batch", low=1)
    tokens: int = declare_setting(
        1024, "with a FOLDER: greatest number of tokens per text, if the network allows it", low=1
    )

    def make_training(self) -> Training:
        """Return the settings of :mod:`allonym.evaluate.finetuned`."""
        from allonym.evaluate.finetuned import Training

        return Training(**vars(self))


class WriterTraining(ClassifierTraining):
    """How a model that classifies or writes is fine-tuned."""

    beams: int = declare_setting(1, "with seq2seq:FOLDER: beams of the search", low=1)


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
    if not rows and block.note:
        click.echo(f"{block.note}\n")
        return
    right = [i for i, kind in enumerate(kinds) if kind != "text"]
    print_table([column.name for column in block.columns], rows, right=right)
    more = len(block.rows) - len(rows)
    click.echo(f"{more:,} more are in the report\n" if more else "")


def replace_hard_spaces(text: str) -> str:
    """Replace no-break spaces in a number of a report, for a terminal."""
    return text.replace("\u00a0", " ").replace("–", "-").replace("−", "-")

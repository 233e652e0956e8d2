"""``allonym compare``: what another tool finds in the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from allonym.cli.options import OVERWRITE, declare_policy
from allonym.cli.outputs import check_outputs, check_report_suffix, render_page, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note, print_table
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from allonym.integrations.presidio_compare import ComparedText, Coverage, Finding
    from allonym.report.page import Page


@click.group(short_help="Compare with another tool on your own text.")
def compare() -> None:
    """Compare allonym with another tool on your own text.

    \b
    Example:
      allonym compare presidio letters/
    """


@compare.command(short_help="Show the findings of allonym and Presidio side by side.")
@take_options
def presidio(
    files: tuple[Path, ...] = declare_setting(REQUIRED, "texts, files or folders", noun="path", option="<FILE>"),
    *,
    policy: str = declare_policy(),
    config: Path | None = declare_setting(
        None, "Presidio's YAML file of recognizers; by default its own recognizers", noun="file", option="FILE"
    ),
    model: str = declare_setting(
        "", "spaCy pipeline with which Presidio finds names; by default the largest English one that is installed"
    ),
    threshold: float = declare_setting(0.0, "least score of Presidio's findings that counts", low=0, high=1),
    examples: int = declare_setting(10, "findings of one of them alone that are shown", low=0),
    report: Path | None = declare_setting(
        None, "write a page with all texts side by side: .html, .md or .json", noun="new file", option="FILE"
    ),
    overwrite: bool = OVERWRITE,
) -> None:
    """Show what allonym and Presidio find in the same texts: counts by kind, and what only one of them covers.

    Presidio runs in this process, offline. Nothing is written but the report. The output shows pieces of your text.

    \b
    Examples:
      allonym compare presidio letters/
      allonym compare presidio letters/ -p policy.toml --config recognizers.yaml --report compare.html
    """
    from dataclasses import replace

    from allonym.files import read_documents
    from allonym.integrations import presidio_compare
    from allonym.policy import Policy
    from allonym.protocol import AUTO

    check_report_suffix(report)
    if report is not None:
        check_outputs([report], files, overwrite)
    loaded = Policy.load(policy)
    model = model or presidio_compare.find_spacy_model()
    analyze = presidio_compare.open_presidio(
        str(config or ""), model, "en" if loaded.language == AUTO else loaded.language, threshold
    )
    documents = (
        replace(
            document, id=document.id if file.is_dir() or document.id == file.name else f"{file.name}, {document.id}"
        )
        for file in files
        for document in read_documents(file, policy=loaded)
    )
    texts = list(presidio_compare.compare_texts(documents, loaded, analyze))
    ours, theirs = f"allonym, policy {loaded.name}", presidio_compare.describe_presidio(model)
    if not model:
        print_note("no spaCy model is installed, so Presidio finds no names; python -m spacy download en_core_web_lg")
    counts = presidio_compare.count_by_kind(texts)
    characters = sum(len(text.text) for text in texts)
    click.echo(f"{len(texts):,} text{'s' * (len(texts) != 1)}, {characters:,} characters. {ours}. {theirs}.\n")
    total = ("all", *map(sum, zip(*(row[1:] for row in counts), strict=True))) if counts else ("all", 0, 0, 0, 0)
    print_table(["kind", "allonym", "Presidio", "only allonym", "only Presidio"], [*counts, total], right=(1, 2, 3, 4))
    _print_alone("only allonym covers", [(t, t.ours) for t in texts], examples)
    _print_alone("only Presidio covers", [(t, t.theirs) for t in texts], examples)
    if report is not None:
        write_files({report: render_page(_make_page(texts, ours, theirs), report)}, private=True)
        print_note(f"{report}, with the texts", label="wrote")
    else:
        print_note("--report compare.html writes all texts side by side", label="next:")


def _print_alone(
    heading: str, texts: Sequence[tuple[ComparedText, Sequence[tuple[Finding, Coverage]]]], most: int
) -> None:
    rows = [
        (f"{text.name or 'text'}:{text.get_line(finding)}", finding.kind, " ".join(text.get_surface(finding).split()))
        for text, findings in texts
        for finding, coverage in findings
        if coverage == "alone"
    ]
    if rows and most:
        click.echo()
        click.secho(heading + (f", {most} of {len(rows):,}" if len(rows) > most else ""), bold=True)
        print_table(["place", "kind", "text"], rows[:most], wrap=2)


def _make_page(texts: Sequence[ComparedText], about_ours: str, about_theirs: str) -> Page:
    """Return a report: counts by kind, and every text twice, with the findings of either."""
    from allonym.integrations import presidio_compare
    from allonym.report import page

    counts = presidio_compare.count_by_kind(texts)
    kinds = {row.kind: slot for slot, row in enumerate(counts)}
    columns = ("kind", "allonym", "Presidio", "only allonym", "only Presidio")

    def mark(findings: Sequence[tuple[Finding, Coverage]]) -> tuple[page.Mark, ...]:
        marks, reach = [], 0
        for finding, coverage in findings:
            words = {"both": "", "part": ", the other covers a part", "alone": ", not covered by the other"}[coverage]
            style: Literal["swap", "other"] = "swap" if coverage == "alone" else "other"
            start = max(finding.start, reach)
            if start < finding.end:
                marks.append(page.Mark(start, finding.end, finding.kind + words, kinds[finding.kind], style))
                reach = finding.end
        return tuple(marks)

    passages = tuple(
        page.Passage(text.name or f"text {i}", text.text, text.text, mark(text.ours), mark(text.theirs))
        for i, text in enumerate(texts, 1)
    )
    alone = [sum(row.only_ours for row in counts), sum(row.only_theirs for row in counts)]
    figures = page.Figures(
        (
            page.Figure("only allonym covers", alone[0], "findings of which Presidio covers nothing", number="count"),
            page.Figure("only Presidio covers", alone[1], "findings of which allonym covers nothing", number="count"),
        )
    )
    table = page.Table(
        "Findings by kind",
        tuple(page.Column(name, "text" if i == 0 else "count") for i, name in enumerate(columns)),
        tuple(page.Row(tuple(row)) for row in counts),
        "Kinds have Presidio's names. A finding is not always right: read what only one of them covers.",
    )
    note = "A full line: the other covers nothing of it. Dots: it covers it, or a part. Point at it to see its kind."
    return page.Page(
        "allonym and Presidio on your texts",
        (
            page.Section("Counts", (figures, table)),
            page.Section("Texts", (page.Reader("Side by side", passages, (), note, ("allonym", "Presidio")),)),
        ),
        f"{about_ours}; {about_theirs}",
        (page.Notice("This page shows the texts. Keep it as safe as they are.", "sensitive"),),
    )

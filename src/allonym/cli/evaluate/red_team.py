"""``allonym evaluate red-team``: forms for people who try to identify somebody, and their results (P2, 4.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate.options import Output, check_outputs, output_options, section_page, seed_option
from allonym.cli.evaluate.residual import write_file
from allonym.cli.options import format_option
from allonym.cli.terminal import print_note, print_table
from allonym.errors import DataError, UnknownNameError, UsageError

_KINDS = {".md": "md", ".jsonl": "jsonl", ".csv": "csv"}


@click.group("red-team", short_help="Let people try to identify somebody (P2).")
def red_team() -> None:
    """Let a red team try to identify people: draw a sample, write forms, sum them up."""


@red_team.command("sample", short_help="Draw a sample of conversations and write forms.")
@click.argument("anonymised", type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="File for the forms: .md, .jsonl or .csv.")  # fmt: skip
@click.option(
    "-n", "--size", type=click.IntRange(1), default=200, show_default=True, help="Number of conversations (P2: 200)."
)
@click.option("--by", default="", metavar="FIELD", help="Metadata field of the strata, such as context.")
@click.option("--field", multiple=True, metavar="NAME", help="Column or dotted path of the text. Repeatable.")
@format_option
@click.option("--metadata", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Table with a row per conversation: a column id or file, and FIELD.")  # fmt: skip
@seed_option
@click.option("--overwrite", is_flag=True, help="Replace an existing output.")
def sample_command(
    anonymised: Path,
    output: Path,
    size: int,
    by: str,
    field: tuple[str, ...],
    format: str | None,
    metadata: Path | None,
    seed: int,
    overwrite: bool,
) -> None:
    """Draw a stratified sample of ANONYMISED conversations, and write a form for each.

    Marks of missed identifiers are left out, as in P2. Give every reviewer a copy of the file, have the forms filled
    in, and run: allonym evaluate red-team summary FILE...

    \b
    Example:
      allonym evaluate red-team sample safe.jsonl -o forms.md -n 200 --by context --seed 1
    """
    from collections import Counter

    from allonym.evaluate.annotated import read_annotated
    from allonym.evaluate.red_team import red_team_sample, write_forms

    kind = _choose_format(output)
    check_outputs([output], [anonymised, *([metadata] if metadata else [])], overwrite)
    documents = read_annotated(anonymised, field=field, format=format, metadata=metadata)
    forms = red_team_sample(documents, size, by=by, seed=seed)
    write_file(output, write_forms(forms, kind), private=True)
    if by:
        counts = Counter(f.stratum for f in forms)
        print_table([by, "conversations"], [[name, f"{counts[name]:,}"] for name in sorted(counts)], right=(1,))
    if len(forms) < size:
        print_note(f"there are only {len(forms):,} conversations, fewer than {size:,}; all are in the sample")
    print_note(str(output), label="written:")


@red_team.command("summary", short_help="Sum up filled forms.")
@click.argument("forms", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_options
def summary_command(forms: tuple[Path, ...], output: Output) -> None:
    """Sum up filled FORMS: shares fully anonymised, with something left, and with somebody identified.

    \b
    Example:
      allonym evaluate red-team summary ann.md ben.md --report red-team.html
    """
    from allonym.cli.reading import decode_text
    from allonym.evaluate.red_team import read_forms, red_team_summary
    from allonym.report.numbers import format_cell

    output.check(forms)
    if output.with_text:
        raise click.UsageError("--with-text is not available: a summary has no texts")
    if len({path.resolve() for path in forms}) < len(forms):
        raise UsageError("a file of forms is named twice; each counts once")
    findings = [
        finding
        for path in forms
        for finding in read_forms(decode_text(path.read_bytes(), str(path)), _choose_format(path), str(path))
    ]
    result = red_team_summary(findings)
    if not result.total.conversations:
        raise DataError(f"none of the {result.open:,} forms is filled in")

    def format_line(estimate: Any) -> str:
        return format_cell(estimate, "share", 1).line.replace("\u00a0", " ").replace("–", "-")

    head = ["", "reviewed", "fully anonymised", "something left", "somebody identified"]
    rows = [
        [s.name, f"{s.conversations:,}", format_line(s.clean), format_line(s.residual), format_line(s.identified)]
        for s in (*result.strata, result.total)
    ]
    print_table(head, rows, right=(1,))
    if result.open and not output.quiet:
        print_note(f"{result.open:,} conversations are not filled in and do not count")
    data = result.to_dict()

    def make_page() -> Any:
        from allonym.report.evaluate.red_team import red_team_section

        return section_page("Red team", [red_team_section(data)])

    output.write({"red_team": data}, make_page)


def _choose_format(path: Path) -> str:
    try:
        return _KINDS[path.suffix.lower()]
    except KeyError:
        raise UnknownNameError("ending of forms", path.suffix or "(none)", _KINDS, path.name) from None

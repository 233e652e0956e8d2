"""``allonym evaluate intruder-study``: people describe persons, and others try to identify them from the texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    check_outputs,
    output_options,
    section_page,
    seed_option,
    show_estimates,
    source_options,
)
from allonym.cli.terminal import json_line, print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.evaluate.sheets import Sheets

_FILES = click.Path(exists=True, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_KEY, _PAGES = "key.json", "pages"
_overwrite = click.option("--overwrite", is_flag=True, help="Replace existing pages and keys.")
_consent = click.option(
    "--consent", type=_FILE, metavar="FILE", help="Text of the consent that people give before they begin."
)


@click.group(name="intruder-study", short_help="Let people guess whom anonymised texts are about.")
def intruder_study() -> None:
    """Let people guess whom anonymised texts are about: make pages for a browser, and read the answers.

    \b
    Examples:
      allonym evaluate intruder-study collect study/ --pool people.csv --fictitious 10 --writers 20
      allonym evaluate intruder-study gather study/key.json answers/ -o original.jsonl
      allonym anonymize original.jsonl -o safe.jsonl
      allonym evaluate intruder-study judge original.jsonl safe.jsonl --pages judging/ --subject subject --group group
      allonym evaluate intruder-study analyse judging/key.json answers/ --report people.html
    """


@intruder_study.command(short_help="Make pages on which people describe persons.")
@click.argument("folder", metavar="OUT", type=_FOLDER)
@click.option(
    "--pool",
    type=_FILE,
    metavar="FILE",
    help="CSV of people with columns group, name and optionally link; others are facts.",
)
@click.option("--fictitious", type=click.IntRange(0), default=10, show_default=True, metavar="N",
              help="Number of fictitious people to add, from the knowledge base.")  # fmt: skip
@click.option("--writers", type=click.IntRange(1), required=True, metavar="N", help="Number of writers: one page each.")
@click.option("--each", type=click.IntRange(1), default=1, show_default=True, metavar="N",
              help="People per group on each page.")  # fmt: skip
@click.option("--least", type=click.IntRange(1), default=500, show_default=True, metavar="N",
              help="Least number of characters in a description.")  # fmt: skip
@_consent
@seed_option
@_overwrite
def collect(
    folder: Path,
    pool: Path | None,
    fictitious: int,
    writers: int,
    each: int,
    least: int,
    consent: Path | None,
    seed: int,
    overwrite: bool,
) -> None:
    """Write one page per writer to OUT/pages, and OUT/key.json.

    \b
    Example:
      allonym evaluate intruder-study collect study/ --pool people.csv --fictitious 10 --writers 20
    """
    from allonym.evaluate import profiles
    from allonym.evaluate.sheets import make_collection_sheets

    subjects = profiles.read_subjects(pool) if pool else []
    subjects += profiles.fictitious_people(fictitious, seed=seed)
    sheets = make_collection_sheets(subjects, writers, each=each, seed=seed)
    read = [path for path in (pool, consent) if path is not None]
    more = {"least": least, "consent": _read_consent(consent), "fictitious": profiles.FICTITIOUS}
    _write_pages(folder, sheets, read, overwrite, more)


@intruder_study.command(short_help="Collect the descriptions in a corpus.")
@click.argument("key", metavar="KEY", type=_FILE)
@click.argument("answers", metavar="ANSWERS...", type=_FILES, nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, metavar="FILE",
              help="JSON lines with id, text, subject and group.")  # fmt: skip
@click.option("--least", type=click.IntRange(0), default=500, show_default=True, metavar="N",
              help="Least number of characters in a description.")  # fmt: skip
@_overwrite
def gather(key: Path, answers: tuple[Path, ...], output: Path, least: int, overwrite: bool) -> None:
    """Collect saved answers, files or folders of them, in a corpus.

    \b
    Example:
      allonym evaluate intruder-study gather study/key.json answers/ -o original.jsonl
    """
    from allonym.evaluate.people import read_descriptions
    from allonym.evaluate.sheets import read_answers, read_key

    check_outputs([output], [key, *answers], overwrite)
    sheets = read_key(key)
    records = read_descriptions(sheets, read_answers(_list_answers(answers), sheets), least=least)
    _write_private(output, "".join(f"{json_line(r)}\n" for r in records))
    print_note(f"{output}, {len(records)} descriptions", label="written:")


@intruder_study.command(short_help="Make pages on which people judge anonymised texts.")
@source_options
@click.option("--pages", "folder", type=_FOLDER, required=True, metavar="OUT", help="Folder for the pages and the key.")
@click.option("--subject", required=True, metavar="KEY", help="Metadata field with the true name.")
@click.option("--group", metavar="KEY", help="Metadata field with the fame class; a judge gets texts of one class.")
@click.option("--judgements", type=click.IntRange(1), default=3, show_default=True, metavar="N",
              help="Judgements per text.")  # fmt: skip
@click.option("--judges", type=click.IntRange(1), metavar="N",
              help="Number of pages per group, instead of --judgements.")  # fmt: skip
@click.option("--per-page", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Texts per page.")
@_consent
@seed_option
@_overwrite
def judge(
    source: Source,
    folder: Path,
    subject: str,
    group: str | None,
    judgements: int,
    judges: int | None,
    per_page: int,
    consent: Path | None,
    seed: int,
    overwrite: bool,
) -> None:
    """Write one page per judge to OUT/pages, and the true names to OUT/key.json: do not show that to judges.

    Pages contain the anonymised texts only, nothing of the originals or the metadata.

    \b
    Example:
      allonym evaluate intruder-study judge original.jsonl safe.jsonl --pages judging/ --subject subject --group group
    """
    from allonym.evaluate.sheets import make_judging_sheets

    pairs = source.read()
    groups = pairs.labels(group) if group else []
    sheets = make_judging_sheets(
        pairs.ids, pairs.anonymised, pairs.labels(subject), groups,
        judgements=judgements, judges=judges, per_page=per_page, seed=seed,
    )  # fmt: skip
    read = [*source.paths, *([consent] if consent is not None else [])]
    _write_pages(folder, sheets, read, overwrite, {"consent": _read_consent(consent)})


@intruder_study.command(short_help="Evaluate the judgements: rates, agreement, revealing words.")
@click.argument("key", metavar="KEY", type=_FILE)
@click.argument("answers", metavar="ANSWERS...", type=_FILES, nargs=-1, required=True)
@click.option(
    "--aliases", type=_FILE, metavar="FILE", help="CSV without a header: the true name, and further names that count."
)
@click.option("--cut", type=click.FloatRange(0, 1, min_open=True), default=0.75, show_default=True,
              help="Least similarity of names at which a person counts as identified.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Number of n-grams in the result.")
@seed_option
@output_options
def analyse(
    key: Path, answers: tuple[Path, ...], aliases: Path | None, cut: float, top: int, seed: int, output: Output
) -> None:
    """Evaluate saved answers, files or folders of them: how often people identified the subjects.

    \b
    Example:
      allonym evaluate intruder-study analyse judging/key.json answers/ --report people.html --with-text
    """
    from allonym.evaluate import people
    from allonym.evaluate.sheets import read_answers, read_key
    from allonym.report.evaluate.people import people_section

    output.check([key, *answers])
    sheets = read_key(key)
    truths, judgements = people.read_judgements(sheets, read_answers(_list_answers(answers), sheets))
    names = read_aliases(aliases)
    result = people.people_study(truths, judgements, aliases=names, cut=cut, top=top, seed=seed)
    data = result.to_dict(texts=output.with_text)
    output.write(
        {"people": data},
        lambda: section_page("Intruder study", [people_section(data, texts=output.with_text)]),
    )
    show_people(result)


def show_people(result: Any) -> None:
    """Print the results of a judged study."""
    show_results(result.results)
    click.echo()
    show_estimates(
        [
            ("judgements per text", result.per_text),
            ("texts identified by any judge", result.found_by_any, "share"),
            ("claim and truth agree", result.agreement, "share"),
            ("the same, kappa", result.chance_corrected),
            ("correct claims", result.trusted, "share"),
            ("correct by similarity alone", result.by_chance, "share"),
            ("judges agree, alpha", result.alike),
        ],
        "agreement",
    )
    if result.unread:
        print_note(f"{result.unread} texts have no judgement and are excluded from the rates")


def show_results(results: Any) -> None:
    """Print the results of an intruder by group and for all texts; the outputs contain the subjects."""
    from allonym.cli.evaluate.options import replace_hard_spaces
    from allonym.report.numbers import format_cell, format_number

    rows = []
    for rate in (*results.groups, results.all):
        hit = format_cell(rate.identified, "share", 2)
        similarity, spread = rate.similarity.value, format_number(rate.spread, "number", 2)
        cells = (
            format_number(similarity, "number", 2),
            spread,
            hit.text,
            hit.interval,
            format_number(rate.error, "share", 2),
        )
        rows.append((rate.name or "all texts", str(rate.texts), *map(replace_hard_spaces, cells)))
    print_table(("group", "texts", "M", "SD", "identified", "interval", "SE"), rows, right=(1, 2, 3, 4, 6))
    if results.ranks:
        click.echo()
        show_estimates([(f"in {k} guesses" if k > 1 else "in 1 guess", e, "share") for k, e in results.ranks.items()])


def read_aliases(path: Path | None) -> dict[str, list[str]]:
    """Read the further names of each true name from a CSV without a header.

    Raises:
        UsageError: the file cannot be read.
    """
    import csv

    if path is None:
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise UsageError(f"cannot read {path.name}: a CSV in UTF-8 is required") from None
    return {row[0]: [name for name in row[1:] if name] for row in rows if row and row[0]}


def _write_pages(folder: Path, sheets: Sheets, read: Iterable[Path], overwrite: bool, more: Mapping[str, Any]) -> None:
    from allonym.report.intruder_study import study_page

    width = len(str(len(sheets.pages)))
    names = [folder / _PAGES / f"{sheets.task}-{i:0{width}}.html" for i in range(1, len(sheets.pages) + 1)]
    check_outputs([folder / _KEY, *names], read, overwrite)
    for i, (path, tokens) in enumerate(zip(names, sheets.pages, strict=True), 1):
        entries = [sheets.entries[token] for token in tokens]
        items = [{n: getattr(e, n) for n in ("token", "text", "subject", "group", "link", "facts")} for e in entries]
        _write_private(path, study_page(sheets.task, sheets.study, i, items, **more))
    _write_private(folder / _KEY, sheets.to_key())
    print_note(f"{len(names)} pages in {folder / _PAGES}", label="written:")
    print_note(f"{folder / _KEY} lists whom each text is about: do not share it with the pages")


def _list_answers(paths: tuple[Path, ...]) -> list[Path]:
    out: list[Path] = []
    for path in paths:
        files = (
            [p for p in sorted(path.iterdir()) if p.suffix.lower() in (".json", ".csv")] if path.is_dir() else [path]
        )
        if not files:
            raise UsageError(f"{path} contains no answers: files that end in .json or .csv")
        out += files
    return out


def _read_consent(path: Path | None) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip() if path else ""
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is not UTF-8") from None


def _write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    from allonym.files.output import PartFile

    part = PartFile(path)
    try:
        os.chmod(part.path, 0o600)
        part.write(text.encode("utf-8", "backslashreplace"))
        part.finish()
    except BaseException:
        part.close(remove=True)
        raise

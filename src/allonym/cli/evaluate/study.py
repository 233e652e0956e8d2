"""``allonym evaluate all`` and ``compare``: every measure that the inputs allow, for one version or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    reading_options,
    replace_hard_spaces,
    seed_option,
    source_options,
    with_options,
)
from allonym.cli.progress import show_stages
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

Command = Callable[..., Any]
_PATH = click.Path(exists=True, path_type=Path)


def study_options(command: Command) -> Command:
    """Add the options for the inputs of the measures beside the texts."""
    return with_options(
        click.option("--gold", type=_PATH, metavar="PATH", help="The originals with gold spans."),
        click.option("--labels", metavar="KEY", help="Metadata field for a classifier to predict, such as sentiment."),
        click.option("--subject", metavar="KEY", help="Metadata field with the subject of each text."),
        click.option(
            "--group", metavar="KEY", help="Metadata field whose values are reported separately, such as fame."
        ),
        click.option(
            "--background", type=_PATH, metavar="PATH", help="Further texts with --subject that the intruder knows."
        ),
        click.option(
            "--review-above", type=click.FloatRange(0, 1), metavar="P", help="List texts with a greater risk."
        ),
        click.option("--measure", multiple=True, metavar="NAME", help="Only this measure. Repeatable."),
        seed_option,
        click.option("--resume", is_flag=True, help="Continue an interrupted run of the same command."),
        output_options,
    )(command)


@click.command("all", short_help="Run every measure that the inputs allow, for one report.")
@source_options
@study_options
def evaluate_all(
    source: Source,
    gold: Path | None,
    labels: str | None,
    subject: str | None,
    group: str | None,
    background: Path | None,
    review_above: float | None,
    measure: tuple[str, ...],
    seed: int,
    resume: bool,
    output: Output,
) -> None:
    """Measure the risk and utility of ANONYMISED against ORIGINAL, as far as the inputs allow.

    The report gives a reason for each measure left out. Documents are paired by id, by relative path in folders, or
    else by order. Finished measures are kept beside the first output until the run ends, for --resume.

    \b
    Examples:
      allonym evaluate all raw/ safe/ --report report.html
      allonym evaluate all raw.jsonl safe.jsonl --subject company --labels sector --json numbers.json
      allonym evaluate all both.jsonl --field text --anonymised-field safe --subject meta.person
    """
    from allonym.evaluate.study import evaluate
    from allonym.report import evaluation_page

    read = [*source.paths, *(p for p in (gold, background) if p is not None)]
    settings = _gather_settings(gold, labels, subject, group, background, review_above, measure, source)
    with _open_state(output, read, resume=resume) as state:
        pairs = source.read()
        with show_stages({}, enabled=not output.quiet) as advance:
            data = evaluate(
                pairs, **settings, texts=output.with_text, seed=seed, advance=advance, state=state
            ).to_dict()
        output.write(data, lambda: evaluation_page(data, texts=output.with_text))
    _print_headlines({"": data})
    for row in data["skipped"]:
        print_note(f"{row['title']}: {row['reason']}", label="skipped:")


@click.command(short_help="Compare several anonymised versions of one corpus.")
@click.argument("original", type=_PATH)
@click.argument("version", type=_PATH, nargs=-1)
@with_options(*reading_options)
@click.option("--human", multiple=True, metavar="NAME", help="Name of a version made by people. Repeatable.")
@click.option("--names", metavar="A,B,...", help="Names of the versions; by default those of the files or fields.")
@study_options
def compare(
    original: Path,
    version: tuple[Path, ...],
    field: tuple[str, ...],
    anonymised_field: tuple[str, ...],
    format: str | None,
    metadata: Path | None,
    human: tuple[str, ...],
    names: str | None,
    gold: Path | None,
    labels: str | None,
    subject: str | None,
    group: str | None,
    background: Path | None,
    review_above: float | None,
    measure: tuple[str, ...],
    seed: int,
    resume: bool,
    output: Output,
) -> None:
    """Compare several anonymised versions of ORIGINAL, including one made by people.

    Without VERSION, each --anonymised-field of ORIGINAL is a version.

    \b
    Examples:
      allonym evaluate compare raw/ tags/ pseudonyms/ byhand/ --human byhand --report versions.html
      allonym evaluate compare all.jsonl --anonymised-field tags --anonymised-field names --subject person
    """
    from allonym.evaluate.study import compare as measured
    from allonym.report import compare_page

    sources = [Source(original, v, field, anonymised_field, format, metadata) for v in version] or [
        Source(original, None, field, (name,), format, metadata) for name in anonymised_field
    ]
    called = _name_versions(names, [p.name for p in version] or list(anonymised_field))
    read = [*dict.fromkeys(p for s in sources for p in s.paths), *(p for p in (gold, background) if p is not None)]
    settings = _gather_settings(
        gold, labels, subject, group, background, review_above, measure, Source(original, None, field, (), format, None)
    )
    with _open_state(output, read, resume=resume) as state:
        pairs = {name: source.read() for name, source in zip(called, sources, strict=True)}
        with show_stages({}, enabled=not output.quiet) as advance:
            data = measured(
                pairs, human=human, **settings, texts=output.with_text, seed=seed, advance=advance, state=state
            ).to_dict()
        output.write(data, lambda: compare_page(data, texts=output.with_text))
    _print_headlines(data["versions"])
    for row in next(iter(data["versions"].values()))["skipped"]:
        print_note(f"{row['title']}: {row['reason']}", label="skipped:")


def _name_versions(listed: str | None, files: Sequence[str]) -> list[str]:
    """Return the names of the versions, each name once."""
    names = list(files) if listed is None else [name.strip() for name in listed.split(",")]
    if len(names) != len(files):
        raise UsageError(f"--names: as many names as versions are required; got {len(names)} for {len(files)}")
    if len(set(names)) < len(names) or not all(names):
        raise UsageError("the versions must have different names: --names A,B,...")
    if len(names) < 2:
        raise UsageError("at least two versions are required: VERSION twice, or --anonymised-field twice")
    return names


def _gather_settings(
    gold: Path | None,
    labels: str | None,
    subject: str | None,
    group: str | None,
    background: Path | None,
    review_above: float | None,
    measure: Sequence[str],
    source: Source,
) -> dict[str, Any]:
    """Read the inputs of the measures beside the texts."""
    from allonym.evaluate.reading import get_metadata_value, read_pairs
    from allonym.train.records import read_records

    if background is not None and subject is None:
        raise UsageError("--background requires --subject")
    background_texts: list[tuple[str, str]] = []
    if background is not None and subject is not None:
        texts = read_pairs(background, background, field=source.field, format=source.format)
        subjects = [get_metadata_value(meta, subject) for meta in texts.meta]
        if not any(subjects):
            texts.labels(subject)
        background_texts = [
            (text, subject_of_text)
            for text, subject_of_text in zip(texts.original, subjects, strict=True)
            if subject_of_text
        ]
    return {
        "gold": None if gold is None else read_records(gold),
        "labels": labels,
        "subjects": subject,
        "groups": group,
        "background": background_texts,
        "review_above": review_above,
        "measures": measure or None,
    }


@contextmanager
def _open_state(output: Output, read: Sequence[Path], *, resume: bool) -> Iterator[Path | None]:
    """Yield the hidden folder of finished measures beside the first output, or None if nothing is written.

    The folder is deleted when the run succeeds.
    """
    from allonym.files.state import State

    output.check(read)
    if not output.paths:
        if resume:
            raise UsageError("--resume requires --json or --report: finished measures are kept beside them")
        yield None
        return
    target = output.paths[0].absolute()
    folder = target.with_name(f".{target.name}.allonym-evaluate")
    if folder.exists() and not resume:
        if not output.overwrite and any(folder.glob("*.json")):
            raise UsageError(f"an unfinished run lies at {folder}: --resume continues it, --overwrite begins again")
        State(folder).clear()
    target.parent.mkdir(parents=True, exist_ok=True)
    state = State(folder)
    try:
        yield folder
    except KeyboardInterrupt:
        if not any(folder.glob("*.json")):
            state.clear()
            raise
        print_note("interrupted; run the same command with --resume to continue", label="error:")
        raise click.exceptions.Exit(130) from None
    except BaseException:
        if any(folder.glob("*.json")):
            print_note(f"finished measures are kept in {folder}; --resume continues from there")
        else:
            state.clear()
        raise
    state.clear()


def _print_headlines(versions: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the headlines as a table with a column per version."""
    from allonym.report.evaluate.verdict import choose_number_kind
    from allonym.report.numbers import format_cell
    from allonym.report.values import read_estimate

    rows: dict[str, list[str]] = {}
    for number, version in enumerate(versions.values()):
        for line in version["headlines"]:
            cells = rows.setdefault(line["key"], [line["side"], line["name"], line["better"], *[""] * len(versions)])
            shown = format_cell(read_estimate(line["value"]), choose_number_kind(line), line["digits"])
            cells[3 + number] = replace_hard_spaces(shown.line) if shown.order is not None else "none"
    if rows:
        print_table(["side", "measure", "better", *(name or "value" for name in versions)], rows.values())

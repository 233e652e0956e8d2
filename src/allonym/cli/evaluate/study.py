"""``allonym evaluate all`` and ``compare``: every measure that the inputs allow, for one version or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source, print_blocks
from allonym.cli.options import PATH, SHARE, argument, flag, group_options, option, with_options
from allonym.cli.outputs import open_stages_folder
from allonym.cli.terminal import show_stage_bars
from allonym.errors import UsageError


class Study(NamedTuple):
    """What is measured: the inputs beside the texts, and the choice of measures."""

    gold: Path | None = option("--gold PATH", "The originals with gold spans.", type=PATH)
    labels: str | None = option("--labels KEY", "Metadata field for a classifier to predict, such as sentiment.")
    subject: str | None = option("--subject KEY", "Metadata field with the subject of each text.")
    group: str | None = option("--group KEY", "Metadata field whose values are reported separately, such as fame.")
    background: Path | None = option(
        "--background PATH", "Further texts with --subject that the intruder knows.", type=PATH
    )
    review_above: float | None = option("--review-above P", "List texts with a greater risk.", type=SHARE)
    measure: tuple[str, ...] = option("--measure NAME", "Only this measure. Repeatable.", multiple=True)
    seed: int = options.seed_option
    resume: bool = flag("--resume", "Continue an interrupted run of the same command.")

    def read_settings(self, source: Source) -> dict[str, Any]:
        """Read the inputs beside the texts, as the arguments of :func:`allonym.evaluate.study.evaluate`."""
        from allonym.train.records import read_records

        return {
            "gold": None if self.gold is None else read_records(self.gold),
            "labels": self.labels,
            "subjects": self.subject,
            "groups": self.group,
            "background": source.read_background(self.background, self.subject),
            "review_above": self.review_above,
            "measures": self.measure or None,
            "seed": self.seed,
        }


_study_options = with_options(group_options("study", Study), options.output_options)


@click.command("all", short_help="Run every measure that the inputs allow, for one report.")
@options.source_options
@_study_options
def evaluate_all(source: Source, study: Study, output: Output) -> None:
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

    settings = study.read_settings(source)
    with _open_measures_folder(study, output, source.paths) as state:
        pairs = source.read_pairs()
        with show_stage_bars({}, enabled=not output.quiet) as advance:
            result = evaluate(pairs, texts=output.with_text, advance=advance, state=state, **settings)
        data = result.to_dict()
        page = evaluation_page(data, texts=output.with_text)
        output.write_reports(data, page)
    print_blocks(page.lead, notes=not output.quiet)


def _make_source(**values: Any) -> Source:
    return Source(anonymised=None, **values)


@click.command(short_help="Compare several anonymised versions of one corpus.")
@group_options("source", _make_source, argument("original", type=PATH), *options.reading_options)
@click.argument("version", type=PATH, nargs=-1)
@option("--human NAME", "Name of a version made by people. Repeatable.", multiple=True)
@option("--names A,B,...", "Names of the versions; by default those of the files or fields.")
@_study_options
def compare(
    source: Source, version: tuple[Path, ...], human: tuple[str, ...], names: str | None, study: Study, output: Output
) -> None:
    """Compare several anonymised versions of ORIGINAL, including one made by people.

    Without VERSION, each --anonymised-field of ORIGINAL is a version.

    \b
    Examples:
      allonym evaluate compare raw/ tags/ pseudonyms/ byhand/ --human byhand --report versions.html
      allonym evaluate compare all.jsonl --anonymised-field tags --anonymised-field names --subject person
    """
    from allonym.evaluate.study import compare as measure
    from allonym.report import compare_page

    sources = [source._replace(anonymised=path) for path in version]
    sources = sources or [source._replace(anonymised_field=(name,)) for name in source.anonymised_field]
    called = _parse_version_names(names, [path.name for path in version] or list(source.anonymised_field))
    settings = study.read_settings(source)
    with _open_measures_folder(study, output, [*source.paths, *version]) as state:
        versions = {name: each.read_pairs() for name, each in zip(called, sources, strict=True)}
        settings |= {"human": human, "texts": output.with_text, "state": state}
        with show_stage_bars({}, enabled=not output.quiet) as advance:
            data = measure(versions, advance=advance, **settings).to_dict()
        page = compare_page(data, texts=output.with_text)
        output.write_reports(data, page)
    print_blocks((*page.lead, *page.sections[:1]), notes=not output.quiet)


def _parse_version_names(listed: str | None, files: Sequence[str]) -> list[str]:
    """Return the names of the versions, each name once."""
    names = list(files) if listed is None else [name.strip() for name in listed.split(",")]
    if len(names) != len(files):
        raise UsageError(f"--names: as many names as versions are required; got {len(names)} for {len(files)}")
    if len(set(names)) < len(names) or not all(names):
        raise UsageError("the versions must have different names: --names A,B,...")
    if len(names) < 2:
        raise UsageError("at least two versions are required: VERSION twice, or --anonymised-field twice")
    return names


def _open_measures_folder(study: Study, output: Output, inputs: Iterable[Path]) -> AbstractContextManager[Path | None]:
    """Return a context with the folder of finished measures, or with None if nothing is written."""
    output.check_writable(*inputs, study.gold, study.background)
    if output.paths:
        note = "finished measures are kept in {}; --resume continues from there"
        return open_stages_folder(output.paths[0], "evaluate", note, resume=study.resume, overwrite=output.overwrite)
    if study.resume:
        raise UsageError("--resume requires --json or --report: finished measures are kept beside them")
    return nullcontext()

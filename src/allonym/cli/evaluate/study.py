"""``allonym evaluate all`` and ``compare``: every measure that the inputs allow, for one version or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate.options import BACKGROUND, DOCUMENT, Original, Output, Source, print_blocks
from allonym.cli.options import RESUME, SEED
from allonym.cli.outputs import open_stages_folder
from allonym.cli.signatures import take_options
from allonym.cli.terminal import show_stage_bars
from allonym.errors import UsageError
from allonym.settings import SettingGroup, declare_setting


class Study(SettingGroup):
    """What is measured: the inputs beside the texts, and the choice of measures."""

    gold: Path | None = declare_setting(None, "the originals with gold spans", noun="path", option="PATH")
    labels: str | None = declare_setting(
        None, "metadata field for a classifier to predict, such as sentiment", option="KEY"
    )
    subject: str | None = declare_setting(None, "metadata field with the subject of each text", option="KEY")
    group: str | None = declare_setting(
        None, "metadata field whose values are reported separately, such as fame", option="KEY"
    )
    document: str | None = DOCUMENT
    background: Path | None = BACKGROUND
    review_above: float | None = declare_setting(None, "list texts with a greater risk", low=0, high=1, option="P")
    measure: tuple[str, ...] = declare_setting((), "only this measure", option="NAME")
    seed: int = SEED
    resume: bool = RESUME

    def read_settings(self, source: Original) -> dict[str, Any]:
        """Read the inputs beside the texts, as the arguments of :func:`allonym.evaluate.study.evaluate`."""
        from allonym.train.records import read_records

        return {
            "gold": None if self.gold is None else read_records(self.gold),
            "labels": self.labels,
            "subjects": self.subject,
            "groups": self.group,
            "documents": self.document,
            "background": source.read_background(self.background, self.subject),
            "review_above": self.review_above,
            "measures": self.measure or None,
            "seed": self.seed,
        }


@click.command("all", short_help="Run every measure that the inputs allow, for one report.")
@take_options
def evaluate_all(*, source: Source, study: Study, output: Output) -> None:
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


@click.command(short_help="Compare several anonymised versions of one corpus.")
@take_options
def compare(
    *,
    source: Original,
    version: tuple[Path, ...] = declare_setting((), "anonymised versions", noun="path", option="<VERSION>"),
    human: tuple[str, ...] = declare_setting((), "name of a version made by people", option="NAME"),
    names: str | None = declare_setting(
        None, "names of the versions; by default those of the files or fields", option="A,B,..."
    ),
    study: Study,
    output: Output,
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

    sources = [replace(source, anonymised=path) for path in version]
    sources = sources or [replace(source, anonymised_field=(name,)) for name in source.anonymised_field]
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

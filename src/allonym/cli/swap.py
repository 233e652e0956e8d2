"""``allonym swap``: exchange identifying entities between the documents of a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli import options
from allonym.cli.options import (
    KEY_FILE,
    METADATA,
    ORIGINALS,
    OVERWRITE,
    QUIET,
    RESUME,
    RUNNER,
    SEED,
    WORKERS,
    TextFields,
    declare_plans,
    declare_policy,
)
from allonym.cli.outputs import check_not_inputs, check_report_suffix, open_stages_folder, render_page
from allonym.cli.signatures import take_options, take_overrides
from allonym.cli.terminal import print_note, print_table, show_stage_bars
from allonym.errors import UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting
from allonym.swap.frontier import Rule
from allonym.swap.settings import Settings
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.swap import Release, Releases, Run
    from allonym.swap.run import Result


class Outputs(SettingGroup):
    """What a swap writes."""

    output: Path | None = declare_setting(
        None,
        "file or folder for the release, in the format of CORPUS; pieces of documents go to a .jsonl file",
        option="-o, --output OUT",
    )
    report: Path | None = declare_setting(
        None,
        "write a report with plots, tables and texts side by side, as one HTML page",
        noun="new file",
        option="FILE",
    )
    no_texts: bool = declare_setting(False, "with --report and --json: leave out the texts of chunks")
    json: Path | None = declare_setting(None, "write every number, as JSON", noun="new file", option="FILE")
    plans: Path | None = declare_plans("new file")
    originals: bool = ORIGINALS
    dry_run: bool = declare_setting(False, "write nothing; show the releases and the one that would be chosen")
    resume: bool = RESUME
    overwrite: bool = OVERWRITE

    def __post_init__(self) -> None:
        super().__post_init__()
        paths = [path for path in (self.output, *self.list_files_beside()) if path is not None]
        if self.dry_run and (paths or self.resume):
            raise click.UsageError(
                "--dry-run writes nothing and cannot be combined with -o, --report, --json, --plans or --resume"
            )
        if not self.dry_run and not paths:
            raise click.UsageError("an output is required: -o OUT, --report, --json or --plans; or --dry-run")
        if self.no_texts and self.report is None and self.json is None:
            raise click.UsageError("--no-texts requires --report or --json")
        if self.originals and self.plans is None:
            raise click.UsageError("--originals requires --plans")

    def list_files_beside(self) -> list[Path]:
        """Return the files that are written beside the release."""
        return [path for path in (self.report, self.json, self.plans) if path is not None]


def _parse_entity_states(text: str, policy: str) -> dict[str, str]:
    """Parse ``Organization=swap,Date=fixed``; a name without a state is swapped."""
    from allonym.policy import Policy
    from allonym.swap.categories import parse_categories

    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    states = {name.strip(): state.strip() if equals else "swap" for name, equals, state in pairs}
    return parse_categories(states, Policy.load(policy).taxonomy) if states else {}


@click.command(short_help="Exchange entities between the documents of a corpus.")
@take_options
@take_overrides(
    Settings,
    *("exchange.strategy", "read.section", "search.size", "mixture.clusters", "mixture.family", "embed.name"),
    *("search.population", "search.draws", "check.intruders", "check.frontier"),
    *("release.form", "release.part"),
)
def swap(
    source: str = declare_setting(REQUIRED, "corpus", option="<CORPUS>"),
    *,
    protect: str = declare_setting(
        REQUIRED, "metadata field to protect, such as company, author or hospital", option="KEY"
    ),
    outputs: Outputs,
    settings: str = declare_setting(
        "default",
        "settings: default, p1 (the paper's protocol), earnings, or a TOML file",
        noun="swap preset",
        option="-s, --settings, --preset NAME|FILE",
    ),
    policy: str = declare_policy(
        "swap", "policy for detection, for direct identifiers, and for entities that cannot be exchanged"
    ),
    texts: TextFields,
    metadata: Path | None = METADATA,
    rest: str = declare_setting("drop", "treatment of text outside the section", one_of=("drop", "anonymize")),
    categories: str = declare_setting(
        "", "states of categories: swap, fixed, change or free, e.g. Person=fixed", option="NAME=STATE,..."
    ),
    rule: Rule,
    check: bool = declare_setting(True, "let intruders guess KEY before and after the exchange"),
    background: Path | None = declare_setting(
        None, "further texts with KEY for the intruders to learn from", noun="path", option="PATH"
    ),
    label: str | None = declare_setting(
        None, "metadata field to predict, such as sector, as a measure of utility", option="KEY"
    ),
    grid: bool = declare_setting(
        False, "show how the chosen release depends on thresholds, clusters, family and weights"
    ),
    seed: int = SEED,
    key_file: Path | None = KEY_FILE,
    workers: int = WORKERS,
    runner: str = RUNNER,
    quiet: bool = QUIET,
    overrides: dict[str, Any],
) -> None:
    """Exchange named entities between the documents of CORPUS, so that KEY cannot be inferred from a text.

    Documents are cut into chunks on one topic. Direct identifiers are replaced, and other entities exchanged
    between chunks on the same topic with another KEY. Entities that cannot be exchanged fall back to a pseudonym, a
    general noun, or are removed. CORPUS is never changed. (Greve and Sablica 2025, arXiv 2505.21128.)

    \b
    Examples:
      allonym swap calls/ -o safe/ --protect company --report report.html
      allonym swap reviews.csv -o safe.csv --protect author --field review --workers 2
      allonym swap calls/ --protect company --preset p1 --clusters 20 --dry-run
      allonym swap calls.jsonl -o safe.jsonl --protect company --categories Person=fixed --utility-floor 0.9
      allonym swap calls/ -o passages.jsonl --protect company --form chunks
    """
    if source == "-":
        raise click.UsageError("CORPUS must be a file or a folder, not standard input")
    if ("check.intruders" in overrides or background) and not check:
        raise click.UsageError("--intruder and --background require --check")
    from allonym.report import swap_page
    from allonym.swap import Run
    from allonym.swap.run import STAGES

    changes = {
        **overrides,
        **{f"categories.{n}": state for n, state in _parse_entity_states(categories, policy).items()},
    }
    changes |= {} if check else {"check.intruders": ()}
    changes |= {"search.full": False} if "search.size" in overrides else {}
    run = Run(
        source=source,
        protect=protect,
        settings=Settings.load(settings).with_(changes),
        policy=policy,
        reading={"fields": texts.field or None, "format": texts.format, "metadata": metadata, "rest": rest},
        rule=vars(rule),
        key=options.read_key(key_file),
        seed=seed,
        workers=workers,
    )
    _check_before_work(run, outputs.report)
    if outputs.dry_run:
        run = _attach_workers(run, runner)
        with show_stage_bars(STAGES, enabled=not quiet) as advance:
            releases = run.search(None, advance)
        _print_releases(releases, *run.best(releases))
        print_note("nothing was written", label="dry run:")
        return
    inputs = [path for path in (metadata, background, key_file) if path is not None]
    inputs += [Path(name) for name in (settings, policy) if name.endswith(".toml")]
    target, beside, overwrite = outputs.output, outputs.list_files_beside(), outputs.overwrite
    is_apart = run.settings.release.form != "documents"
    _check_outputs(source, target, beside, texts.format, inputs, overwrite=overwrite, is_apart=is_apart)
    note = "the exchanges are kept in {}; --resume continues from there, also with another rule"
    with open_stages_folder(target or beside[0], "swap", note, resume=outputs.resume, overwrite=overwrite) as state:
        run = _attach_workers(run, runner)
        with show_stage_bars(STAGES, enabled=not quiet) as advance:
            releases = run.search(state, advance, label=label)
            more: dict[str, Any] = {"background": background, "label": label, "grid": grid}
            result = run.whole(releases, texts=not outputs.no_texts, state=state, advance=advance, **more)
        contents = {}
        if outputs.report is not None:
            contents[outputs.report] = render_page(swap_page(result.values), outputs.report)
        if outputs.json is not None:
            contents[outputs.json] = json.dumps(result.values, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        how: dict[str, Any] = {"plans": outputs.plans, "originals": outputs.originals, "overwrite": overwrite}
        run.write(result.releases, result.made, target, beside=contents, **how)
    if not quiet:
        _print_result(result, [path for path in (target, *beside) if path is not None])
        if contents and not outputs.no_texts:
            with_texts = " and ".join(map(str, contents))
            print_note(f"original texts are in {with_texts}: protect them as the corpus, or use --no-texts")


def _attach_workers(run: Run, runner: str) -> Run:
    """Return the run with the runner's workers, which stay until the command ends."""
    if runner == "processes":
        return run
    from allonym.scale import swap_workers

    workers = swap_workers(options.get_ray_worker_count(run.workers))
    return replace(run, spread=click.get_current_context().with_resource(workers))


def _check_before_work(run: Run, report: Path | None) -> None:
    """Raise errors that would otherwise come up only after the work."""
    from allonym.intruder import open_intruder
    from allonym.swap.embedding import embedders

    embedders.get(run.settings.embed.name, "--embedder")
    for name in run.settings.check.intruders:
        open_intruder(name, **run.intruder_options().get(name, {}))
    check_report_suffix(report)


def _check_outputs(
    source: str,
    target: Path | None,
    outputs: Sequence[Path],
    format: str | None,
    inputs: Sequence[Path],
    *,
    overwrite: bool,
    is_apart: bool,
) -> None:
    """Raise if an output exists, is named twice, or is or lies in an input of the run."""
    from allonym.files.items import check_outputs_distinct, check_targets_free, list_items

    if target is not None and is_apart:
        from allonym.swap.forms import check_target

        outputs, target = [check_target(target), *outputs], None
    items = [] if target is None else list_items(source, target, format)[0]
    if target is None and not Path(source).exists():
        raise UsageError(f"there is no file or folder {source}")
    check_not_inputs((*outputs, *(item.target for item in items if item.target is not None)), (Path(source), *inputs))
    check_outputs_distinct(items, outputs)
    check_targets_free([item.target for item in items], outputs, overwrite)


def _print_releases(releases: Releases, best: Release, why: str) -> None:
    """Show the releases of the frontier and the chosen one as a table, and why it was chosen."""
    sizes = releases.settings.search.population
    head = ["", "categories", "swaps", "chunks", "share", "utility", "cosine", *(f"risk {n:g}" for n in sizes)]
    head.append(f"left {releases.population:g}")
    front = {r.index for r in releases.frontier}
    last = {r.categories: r.index for r in releases.releases}
    rows = []
    for r in releases.releases:
        if r.index not in front and r != best and r.index != last[r.categories]:
            continue
        mark = "chosen" if r == best else "frontier" if r.index in front else ""
        counts = (f"{r.swaps:,}", f"{r.changed.value:,.0f}", f"{r.share.value:.1%}")
        utility = (f"{r.utility.value:.4f}", f"{r.cosine.value:.3f}")
        risks = (f"{releases.risk(r, n).value:.4f}" for n in sizes)
        left = f"{r.remaining[releases.population].value:,.1f}"
        rows.append([mark, " + ".join(r.categories), *counts, *utility, *risks, left])
    print_table(head, rows, right=range(2, len(head)))
    click.echo()
    click.echo(why)
    for warning in releases.warnings:
        print_note(warning)


_FALLBACKS = {
    "pseudonym": "have a pseudonym",
    "generalise": "are more general",
    "suppress": "are gone",
    "summarise": "are summarised",
    "tag": "are tags",
    "keep": "stay",
}
"""What became of entities that were not exchanged, by treatment."""


def _describe_form(result: Result) -> str:
    pieces, documents = result.made.pieces, len(result.releases.corpus.documents)
    if pieces is None:
        return count_nouns(documents, "whole document")
    counts = f"{count_nouns(len(pieces), 'piece')} of {count_nouns(documents, 'document')}"
    return f"{counts} ({result.releases.settings.release.form}), apart"


def _print_result(result: Result, paths: Sequence[Path]) -> None:
    """Show the run in a few lines, on standard error."""
    from allonym.report.panel import describe_all, describe_worst
    from allonym.report.values import Values

    releases, corpus, numbers = result.releases, result.made, result.made.numbers
    chunks, population = len(releases.corpus.chunks), releases.population
    moved, entities = sum(numbers["moved"].values()), sum(numbers["entities"].values())
    risk, left = numbers["risk"][population], numbers["remaining"][population].value
    unique = releases.candidates[corpus.release.categories].risks[population].remaining(0).value
    others = [f"{n:,} {_FALLBACKS.get(name, f'by {name}')}" for name, n in numbers["fallen"].items() if n]
    rows = [
        ("exchanged", f"{moved:,} of {entities:,} names and terms: {', '.join(corpus.release.categories)}"),
        ("the rest", ", ".join(others) or "none: all are exchanged"),
        (
            "changed",
            f"{numbers['changed']:,} of {chunks:,} chunks (passages on one topic), {numbers['words'].value:.1%} of all "
            "words",
        ),
        ("released", _describe_form(result)),
        (
            "usefulness",
            f"utility {min(numbers['utility'], 1):.2f} of 1; a changed chunk keeps {numbers['cosine']:.2f} of 1 of its "
            "meaning",
        ),
        (
            "rare chunks",
            f"the only one of their kind among {population:,.0f} texts: {unique:,.1f} before, {left:,.1f} now; "
            f"risk {risk.value:.2f} of 1 [{risk.low:.2f}, {risk.high:.2f}]",
        ),
    ]
    if panel := result.values["panel"]:
        worst = describe_worst(Values(panel), "changed chunks")
        rows[:0] = [("protection", worst), ("intruders", f"each by itself: {describe_all(Values(panel))}")]
    else:
        rows.insert(0, ("protection", "not measured: with --check, a panel of intruders guesses the changed chunks"))
    attacks = result.values["attacks"]
    if attacks:
        read = {"entities": "names and terms", "words": "all words"}
        guesses = (
            f"by {read.get(a['intruder'], a['intruder'])} "
            f"{a['before']['value']:.0%} before, {a['after']['value']:.0%} now"
            for a in attacks
        )
        rows.append(("guessed", f"chunks, by somebody who learnt on the originals: {'; '.join(guesses)}"))
    of_releases = {int(n): row["identified"]["value"] for n, row in result.values["documents"].items()}
    if elsewhere := {n: x for n, x in of_releases.items() if n != corpus.release.index and x is not None}:
        shares = (f"{releases.releases[n].swaps:,} swaps {value:.0%}" for n, value in elsewhere.items())
        rows.append(("frontier", f"documents found in other releases: {', '.join(shares)}"))
    if task := result.values["task"]:
        rows.append(
            ("task", f"{task['label']} {task['before']['value']:.2f} before, {task['learnt']['value']:.2f} after")
        )
    rows.append(("written", ", ".join(map(str, paths))))
    for name, text in rows:
        click.echo(f"{click.style(f'{name:<13}', bold=True)}{text}", err=True)
    for warning in releases.warnings:
        print_note(warning)
    if result.made.pieces is None and panel and panel["worst"].get("name") == "document":
        print_note("the chunks of a document together give it away; --form chunks releases them apart")

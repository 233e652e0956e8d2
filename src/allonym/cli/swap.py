"""``allonym swap``: exchange identifying entities between the documents of a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from allonym.cli import options
from allonym.cli.options import COUNT, FILE, NEW_FILE, PATH, POSITIVE, TextFields, flag, option
from allonym.cli.outputs import check_not_inputs, check_report_suffix, open_stages_folder, render_page
from allonym.cli.terminal import print_note, print_table, show_stage_bars
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.swap import Release, Releases, Run
    from allonym.swap.run import Result


def _complete_presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.swap.settings import presets

    return options.complete_presets_and_files(presets(), incomplete)


def _parse_entity_states(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """Parse ``Organization=swap,Date=fixed``; a name without a state is swapped."""
    out = {}
    for part in (value or "").split(","):
        if part.strip():
            name, equals, state = part.partition("=")
            out[name.strip()] = state.strip() if equals else "swap"
    return out


def _parse_population_sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(v) for v in (value or "").split(",") if v.strip())
    except ValueError:
        raise click.BadParameter("numbers such as 1e6,1e12 are required", ctx=ctx, param=param) from None


_SETTINGS = {
    "section": "read.section",
    "swap_size": "search.size",
    "full": "search.full",
    "clusters": "mixture.clusters",
    "family": "mixture.family",
    "embedder": "embed.name",
    "population": "search.population",
    "draws": "search.draws",
    "intruder": "check.intruders",
}
"""Options that set a key of the settings; the other choices are the rule that chooses a release."""


@click.command(short_help="Exchange entities between the documents of a corpus.")
@click.argument("source", metavar="CORPUS")
@option("-o, --output OUT", "File or folder for the release, in the format of CORPUS.")
@option("--protect KEY", "Metadata field to protect, such as company, author or hospital.", required=True)
@option("--report FILE", "Write a report with plots, tables and texts side by side, as one HTML page.", type=NEW_FILE)
@flag("--no-texts", "With --report and --json: leave out the texts of chunks.")
@option("--json FILE", "Write every number, as JSON.", name="as_json", type=NEW_FILE)
@option("--plan FILE", "Write the plan of each document, as JSON lines.", type=NEW_FILE)
@flag("--originals", "With --plan: include the originals, so that `allonym restore` can undo the edits.")
@option(
    "-s, --settings, --preset NAME|FILE",
    "Settings: default, p1 (the paper's protocol), earnings, or a TOML file.",
    name="settings",
    default="default",
    shell_complete=_complete_presets,
)
@option(
    "-p, --policy NAME|FILE",
    "Policy for detection, for direct identifiers, and for entities that cannot be exchanged.",
    default="swap",
)
@options.text_options
@option("--metadata FILE", "Table with a row per document: a column id or file, and the column KEY.", type=FILE)
@option("--section NAME", "Section of the documents to use: all, or presentation (of earnings calls).")
@option("--rest", "Treatment of text outside the section.", type=click.Choice(["drop", "anonymize"]), default="drop")
@option(
    "--categories NAME=STATE,...",
    "States of categories: swap, fixed, change or free, e.g. Person=fixed.",
    callback=_parse_entity_states,
)
@option("--swap-size N", "Exchange all subsets of N categories together.", type=POSITIVE)
@option("--clusters K", "Number of mixture components; 0: chosen by BIC.", type=COUNT)
@option("--family", "Distribution of the components.", type=click.Choice(["pkbd", "spcauchy", "auto"]))
@option("--embedder NAME", "Source of embeddings: encoder, lsa, sentence-transformers or openai.")
@option("--population N,...", "Population sizes for the risk, e.g. 1e6,1e12.", callback=_parse_population_sizes)
@option("--draws M", "Random sequences of exchanges per set of categories.", type=POSITIVE)
@option("--risk-cap R", "Choose the most useful release with at most this risk.", type=float)
@option("--utility-floor U", "Choose the least risky release with at least this utility.", type=float)
@option("--slope A", "Choose the release where a line risk = A * utility + b touches the frontier.", type=float)
@option("--offset B", "With --slope: fix b of the line, and choose the release nearest to it.", type=float)
@option("--check/--no-check", "Let intruders guess KEY before and after the exchange.", default=True)
@option("--intruder NAME", "Intruder for --check: entities, words or llm. Repeatable.", multiple=True)
@option("--background PATH", "Further texts with KEY for the intruders to learn from.", type=PATH)
@option("--label KEY", "Metadata field to predict, such as sector, as a measure of utility.")
@flag("--grid", "Show how the chosen release depends on thresholds, clusters, family and weights.")
@option("--seed", "Seed of the exchanges.", type=COUNT, default=0)
@options.key_option
@options.workers_option
@options.runner_option("The output is the same.")
@flag("--dry-run", "Write nothing; show the releases and the one that would be chosen.")
@flag("--resume", "Continue an interrupted run of the same command.")
@flag("--overwrite", "Replace existing outputs.")
@flag("--quiet, -q", "Show no progress, notes or summary.")
def swap(
    source: str,
    output: str | None,
    protect: str,
    settings: str,
    policy: str,
    texts: TextFields,
    metadata: Path | None,
    rest: str,
    categories: dict[str, str],
    check: bool,
    background: Path | None,
    label: str | None,
    grid: bool,
    seed: int,
    key_file: Path | None,
    plan: Path | None,
    originals: bool,
    as_json: Path | None,
    report: Path | None,
    no_texts: bool,
    workers: int,
    runner: str,
    dry_run: bool,
    resume: bool,
    overwrite: bool,
    quiet: bool,
    **choices: Any,
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
    """
    outputs = [path for path in (report, as_json, plan) if path is not None]
    if dry_run and (output is not None or outputs or resume):
        raise click.UsageError(
            "--dry-run writes nothing and cannot be combined with -o, --report, --json, --plan or --resume"
        )
    if not dry_run and output is None and not outputs:
        raise click.UsageError("an output is required: -o OUT, --report, --json or --plan; or --dry-run")
    if no_texts and report is None and as_json is None:
        raise click.UsageError("--no-texts requires --report or --json")
    if originals and plan is None:
        raise click.UsageError("--originals requires --plan")
    if choices["offset"] is not None and choices["slope"] is None:
        raise click.UsageError("--offset requires --slope")
    if source == "-":
        raise click.UsageError("CORPUS must be a file or a folder, not standard input")
    if (choices["intruder"] or background) and not check:
        raise click.UsageError("--intruder and --background require --check")
    from allonym.report import swap_page
    from allonym.swap import Run
    from allonym.swap.categories import parse_categories
    from allonym.swap.run import STAGES
    from allonym.swap.settings import Settings

    if not check:
        choices["intruder"] = ()
    elif not choices["intruder"]:
        del choices["intruder"]
    choices["full"] = None if choices["swap_size"] is None else False
    choices["population"] = choices["population"] or None
    named = {name: value for name, value in choices.items() if value is not None}
    changes: dict[str, object] = {path: named[name] for name, path in _SETTINGS.items() if name in named}
    if categories:
        changes |= {f"categories.{name}": state for name, state in parse_categories(categories).items()}
    run = Run(
        source=source,
        protect=protect,
        settings=Settings.load(settings).with_(changes),
        policy=policy,
        reading={"fields": texts.field or None, "format": texts.format, "metadata": metadata, "rest": rest},
        rule={name: value for name, value in named.items() if name not in _SETTINGS},
        key=options.read_key(key_file),
        seed=seed,
        workers=workers,
    )
    _check_before_work(run, report)
    if dry_run:
        run = _attach_workers(run, runner)
        with show_stage_bars(STAGES, enabled=not quiet) as advance:
            releases = run.search(None, advance)
        _print_releases(releases, *run.best(releases))
        print_note("nothing was written", label="dry run:")
        return
    target = None if output is None else Path(output)
    inputs = [path for path in (metadata, background, key_file) if path is not None]
    inputs += [Path(name) for name in (settings, policy) if name.endswith(".toml")]
    _check_outputs(source, target, outputs, texts.format, inputs, overwrite=overwrite)
    note = "the exchanges are kept in {}; --resume continues from there, also with another rule"
    with open_stages_folder(target or outputs[0], "swap", note, resume=resume, overwrite=overwrite) as state:
        run = _attach_workers(run, runner)
        with show_stage_bars(STAGES, enabled=not quiet) as advance:
            releases = run.search(state, advance, label=label)
            more: dict[str, Any] = {"background": background, "label": label, "grid": grid, "texts": not no_texts}
            result = run.whole(releases, state=state, advance=advance, **more)
        beside = {}
        if as_json is not None:
            beside[as_json] = json.dumps(result.values, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if report is not None:
            beside[report] = render_page(swap_page(result.values), report)
        files: dict[str, Any] = {"plans": plan, "originals": originals, "beside": beside, "overwrite": overwrite}
        run.write(result.releases, result.made, target, **files)
    if not quiet:
        _print_result(result, [path for path in (target, *outputs) if path is not None])
        if with_texts := [str(path) for path in (report, as_json) if path is not None and not no_texts]:
            print_note(
                f"original texts are in {' and '.join(with_texts)}: protect them as the corpus, or use --no-texts"
            )


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
) -> None:
    """Raise if an output exists, is named twice, or is or lies in an input of the run."""
    from allonym.files.items import check_outputs_distinct, check_targets_free, list_items

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
        rows.append([mark, " + ".join(r.categories), *counts, *utility, *risks])
    print_table(head, rows, right=range(2, len(head)))
    click.echo()
    click.echo(why)
    for warning in releases.warnings:
        print_note(warning)


def _print_result(result: Result, paths: Sequence[Path]) -> None:
    """Show the run in a few lines, on standard error."""
    releases, corpus, numbers = result.releases, result.made, result.made.numbers
    chunks, population = len(releases.corpus.chunks), releases.population
    moved, entities = sum(numbers["moved"].values()), sum(numbers["entities"].values())
    risk = numbers["risk"][population]
    fallen = [f"{n:,} stay" if name == "keep" else f"{n:,} by {name}" for name, n in numbers["fallen"].items() if n]
    above = " (counts as 1)" if numbers["utility"] > 1 else ""
    rows = [
        ("exchanged", f"{' + '.join(corpus.release.categories)}: {moved:,} of {entities:,} entities"),
        ("changed", f"{numbers['changed']:,} of {chunks:,} chunks, {numbers['words'].value:.1%} of all words"),
        ("fell back", ", ".join(fallen) or "nothing"),
        ("utility", f"{numbers['utility']:.4f}{above}; a changed chunk keeps a cosine of {numbers['cosine']:.3f}"),
        ("risk", f"1 before, {risk.value:.4f} [{risk.low:.2f}, {risk.high:.2f}] after, at N = {population:g}"),
    ]
    attacks = result.values["attacks"]
    if attacks:
        guesses = (f"{a['intruder']} {a['before']['value']:.2f} -> {a['after']['value']:.2f}" for a in attacks)
        rows.append(("guessed", "; ".join(guesses)))
    if task := result.values["task"]:
        rows.append(
            ("task", f"{task['label']} {task['before']['value']:.2f} before, {task['learnt']['value']:.2f} after")
        )
    rows.append(("written", ", ".join(map(str, paths))))
    for name, text in rows:
        click.echo(f"{click.style(f'{name:<11}', bold=True)}{text}", err=True)
    for warning in releases.warnings:
        print_note(warning)

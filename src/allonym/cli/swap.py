"""``allonym swap``: exchange identifying entities between the documents of a corpus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from allonym.cli.options import field_option, format_option, key_option, read_key
from allonym.cli.progress import show_stages
from allonym.cli.terminal import print_note, print_table
from allonym.errors import DataError, UsageError

if TYPE_CHECKING:
    from allonym.files.state import State
    from allonym.swap import Release, Releases, Run
    from allonym.swap.run import Result

_OUT = click.Path(dir_okay=False, path_type=Path)


def _complete_presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from allonym.swap.settings import presets

    names = [CompletionItem(n) for n in presets() if n.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def _parse_states(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """Parse ``Organization=swap,Date=fixed``; a name without a state is swapped."""
    out = {}
    for part in (value or "").split(","):
        if part.strip():
            name, equals, state = part.partition("=")
            out[name.strip()] = state.strip() if equals else "swap"
    return out


def _parse_sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(v) for v in (value or "").split(",") if v.strip())
    except ValueError:
        raise click.BadParameter("numbers such as 1e6,1e12 are required", ctx=ctx, param=param) from None


@click.command(short_help="Exchange entities between the documents of a corpus.")
@click.argument("source", metavar="CORPUS")
@click.option("-o", "--output", metavar="OUT", help="File or folder for the release, in the format of CORPUS.")
@click.option(
    "--protect", required=True, metavar="KEY", help="Metadata field to protect, such as company, author or hospital."
)
@click.option(
    "--report",
    type=_OUT,
    metavar="FILE",
    help="Write a report with plots, tables and texts side by side, as one HTML page.",
)
@click.option("--no-texts", is_flag=True, help="With --report and --json: leave out the texts of chunks.")
@click.option("--json", "as_json", type=_OUT, metavar="FILE", help="Write every number, as JSON.")
@click.option("--plan", type=_OUT, metavar="FILE", help="Write the plan of each document, as JSON lines.")
@click.option(
    "--originals",
    is_flag=True,
    help="With --plan: include the originals, so that `allonym restore` can undo the edits.",
)
@click.option(
    "-s",
    "--settings",
    "--preset",
    "settings",
    default="default",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=_complete_presets,
    help="Settings: default, p1 (the paper's protocol), earnings, or a TOML file.",
)
@click.option(
    "-p", "--policy", default="swap", show_default=True, metavar="NAME|FILE",
    help="Policy for detection, for direct identifiers, and for entities that cannot be exchanged.",
)  # fmt: skip
@field_option
@format_option
@click.option("--metadata", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Table with a row per document: a column id or file, and the column KEY.")  # fmt: skip
@click.option(
    "--section", metavar="NAME", help="Section of the documents to use: all, or presentation (of earnings calls)."
)
@click.option("--rest", type=click.Choice(["drop", "anonymize"]), default="drop", show_default=True,
              help="Treatment of text outside the section.")  # fmt: skip
@click.option("--categories", callback=_parse_states, metavar="NAME=STATE,...",
              help="States of categories: swap, fixed, change or free, e.g. Person=fixed.")  # fmt: skip
@click.option("--swap-size", type=click.IntRange(1), metavar="N", help="Exchange all subsets of N categories together.")
@click.option("--clusters", type=click.IntRange(0), metavar="K", help="Number of mixture components; 0: chosen by BIC.")
@click.option("--family", type=click.Choice(["pkbd", "spcauchy", "auto"]), help="Distribution of the components.")
@click.option("--embedder", metavar="NAME", help="Source of embeddings: encoder, lsa, sentence-transformers or openai.")
@click.option(
    "--population", callback=_parse_sizes, metavar="N,...", help="Population sizes for the risk, e.g. 1e6,1e12."
)
@click.option(
    "--draws", type=click.IntRange(1), metavar="M", help="Random sequences of exchanges per set of categories."
)
@click.option("--risk-cap", type=float, metavar="R", help="Choose the most useful release with at most this risk.")
@click.option(
    "--utility-floor", type=float, metavar="U", help="Choose the least risky release with at least this utility."
)
@click.option(
    "--slope",
    type=float,
    metavar="A",
    help="Choose the release where a line risk = A * utility + b touches the frontier.",
)
@click.option(
    "--offset", type=float, metavar="B", help="With --slope: fix b of the line, and choose the release nearest to it."
)
@click.option(
    "--check/--no-check", default=True, show_default=True, help="Let intruders guess KEY before and after the exchange."
)
@click.option(
    "--intruder", multiple=True, metavar="NAME", help="Intruder for --check: entities, words or llm. Repeatable."
)
@click.option("--background", type=click.Path(exists=True, path_type=Path), metavar="PATH",
              help="Further texts with KEY for the intruders to learn from.")  # fmt: skip
@click.option("--label", metavar="KEY", help="Metadata field to predict, such as sector, as a measure of utility.")
@click.option(
    "--grid", is_flag=True, help="Show how the chosen release depends on thresholds, clusters, family and weights."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the exchanges.")
@key_option
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True,
    help="Number of processes; the output does not depend on it. With --runner ray: by default one per processor.",
)  # fmt: skip
@click.option(
    "--runner", type=click.Choice(("processes", "ray")), default="processes", show_default=True,
    help="Run in processes of this machine, or on Ray: on the cluster in RAY_ADDRESS, or else on one "
    "started for this run. The output is the same.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Write nothing; show the releases and the one that would be chosen.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same command.")
@click.option("--overwrite", is_flag=True, help="Replace existing outputs.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress, notes or summary.")
def swap(
    source: str,
    output: str | None,
    protect: str,
    settings: str,
    policy: str,
    field: tuple[str, ...],
    format: str | None,
    metadata: Path | None,
    section: str | None,
    rest: str,
    categories: dict[str, str],
    swap_size: int | None,
    clusters: int | None,
    family: str | None,
    embedder: str | None,
    population: tuple[float, ...],
    draws: int | None,
    risk_cap: float | None,
    utility_floor: float | None,
    slope: float | None,
    offset: float | None,
    check: bool,
    intruder: tuple[str, ...],
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
    if offset is not None and slope is None:
        raise click.UsageError("--offset requires --slope")
    if source == "-":
        raise click.UsageError("CORPUS must be a file or a folder, not standard input")
    if (intruder or background) and not check:
        raise click.UsageError("--intruder and --background require --check")
    from allonym.swap import Run
    from allonym.swap.categories import parse_categories
    from allonym.swap.run import STAGES
    from allonym.swap.settings import Settings

    options = {
        "read.section": section,
        "search.size": swap_size,
        "search.full": None if swap_size is None else False,
        "mixture.clusters": clusters,
        "mixture.family": family,
        "embed.name": embedder,
        "search.population": population or None,
        "search.draws": draws,
        "check.intruders": () if not check else intruder or None,
    }
    changes: dict[str, object] = {name: value for name, value in options.items() if value is not None}
    if categories:
        changes |= {f"categories.{name}": state for name, state in parse_categories(categories).items()}
    rule = {"risk_cap": risk_cap, "utility_floor": utility_floor, "slope": slope, "offset": offset}
    run = Run(
        source=source,
        protect=protect,
        settings=Settings.load(settings).with_(changes),
        policy=policy,
        reading={"fields": field or None, "format": format, "metadata": metadata, "rest": rest},
        rule={name: value for name, value in rule.items() if value is not None},
        key=read_key(key_file),
        seed=seed,
        workers=workers,
    )
    _check_early(run, report)
    if dry_run:
        run = _place_run(run, runner)
        with show_stages(STAGES, enabled=not quiet) as advance:
            releases = run.search(None, advance)
        _show_releases(releases, *run.best(releases))
        print_note("nothing was written", label="dry run:")
        return
    target = None if output is None else Path(output)
    inputs = [path for path in (metadata, background, key_file) if path is not None]
    inputs += [Path(name) for name in (settings, policy) if name.endswith(".toml")]
    _check_outputs(source, target, outputs, format, inputs, overwrite=overwrite)
    state = _open_state(target or outputs[0], resume=resume, overwrite=overwrite)
    try:
        run = _place_run(run, runner)
        with show_stages(STAGES, enabled=not quiet) as advance:
            result = run.whole(
                run.search(state.folder, advance, label=label),
                background=background,
                label=label,
                grid=grid,
                texts=not no_texts,
                state=state.folder,
                advance=advance,
            )
    except KeyboardInterrupt:
        print_note("interrupted; run the same command with --resume to continue", label="error:")
        raise click.exceptions.Exit(130) from None
    except (UsageError, DataError):
        if any(state.folder.glob("*.json")):
            print_note(
                f"the exchanges are kept in {state.folder}; --resume continues from there, also with another rule"
            )
        else:
            state.clear()
        raise
    beside = {}
    if as_json is not None:
        beside[as_json] = json.dumps(result.values, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    if report is not None:
        beside[report] = _render_report(result.values, report)
    run.write(result.releases, result.made, target, plans=plan, originals=originals, beside=beside, overwrite=overwrite)
    state.clear()
    if not quiet:
        _show_result(result, [path for path in (target, *outputs) if path is not None])
        if with_texts := [str(path) for path in (report, as_json) if path is not None and not no_texts]:
            print_note(
                f"original texts are in {' and '.join(with_texts)}: protect them as the corpus, or use --no-texts"
            )


def _place_run(run: Run, runner: str) -> Run:
    """Return the run with the runner's workers, which stay until the command ends."""
    if runner == "processes":
        return run
    from allonym.scale import swap_workers

    context = click.get_current_context()
    is_set = context.get_parameter_source("workers") is not ParameterSource.DEFAULT
    return replace(run, spread=context.with_resource(swap_workers(run.workers if is_set else None)))


def _check_early(run: Run, report: Path | None) -> None:
    """Raise errors that would otherwise come up only after the work."""
    from allonym.intruder import open_intruder
    from allonym.report import FORMATS
    from allonym.swap.embedding import embedders

    embedders.get(run.settings.embed.name, "--embedder")
    for name in run.settings.check.intruders:
        open_intruder(name, **run.intruder_options().get(name, {}))
    if report is not None and report.suffix.lower() not in FORMATS:
        raise UsageError(f"--report must end in {', '.join(FORMATS)}, got {report.suffix or 'no ending'}")


def _render_report(values: Mapping[str, Any], path: Path) -> str:
    """Return the report, in the format of the file's suffix."""
    from allonym import report

    return report.render(report.swap_page(values), report.FORMATS.get(path.suffix.lower(), "html"))


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
    from allonym.files.items import check_free, check_separate, list_items

    items = [] if target is None else list_items(source, target, format)[0]
    if target is None and not Path(source).exists():
        raise UsageError(f"there is no file or folder {source}")
    protected = {path.resolve() for path in (Path(source), *inputs)}
    for path in (*outputs, *(item.target for item in items if item.target is not None)):
        if protected & {path.resolve(), *path.resolve().parents}:
            raise UsageError(f"{path} is, or lies in, an input of the run, which is never changed")
    check_separate(items, outputs)
    check_free([item.target for item in items], outputs, overwrite)


def _open_state(target: Path, *, resume: bool, overwrite: bool) -> State:
    """Return the folder of finished stages, hidden beside the first output."""
    from allonym.files.state import State

    target = target.absolute()  # the name of .
    folder = target.with_name(f".{target.name}.allonym-swap")
    if folder.exists() and not resume:
        if not overwrite:
            raise UsageError(f"an unfinished run lies at {folder}: --resume continues it, --overwrite begins again")
        State(folder).clear()
    return State(folder)


def _show_releases(releases: Releases, best: Release, why: str) -> None:
    """Show the releases of the frontier and the chosen one as a table, and why it was chosen."""
    sizes = releases.settings.search.population
    head = ["", "categories", "swaps", "chunks", "share", "utility", "cosine", *(f"risk {n:g}" for n in sizes)]
    front = {r.index for r in releases.frontier}
    last = {r.categories: r.index for r in releases.releases}
    rows = []
    for r in releases.releases:
        if r.index not in front and r != best and r.index != last[r.categories]:
            continue
        rows.append(
            [
                "chosen" if r == best else "frontier" if r.index in front else "",
                " + ".join(r.categories),
                f"{r.swaps:,}",
                f"{r.changed.value:,.0f}",
                f"{r.share.value:.1%}",
                f"{r.utility.value:.4f}",
                f"{r.cosine.value:.3f}",
                *(f"{releases.risk(r, n).value:.4f}" for n in sizes),
            ]
        )
    print_table(head, rows, right=tuple(range(2, len(head))))
    click.echo()
    click.echo(why)
    for warning in releases.warnings:
        print_note(warning)


def _show_result(result: Result, paths: Sequence[Path]) -> None:
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

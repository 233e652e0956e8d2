"""``allonym export``: anonymised training sets for language models, with a manifest (P2, section 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from allonym.cli.options import (
    chosen_policy,
    field_option,
    format_option,
    key_option,
    open_vault,
    policy_options,
    read_key,
    vault_options,
)
from allonym.cli.progress import show_stages
from allonym.cli.terminal import print_note, print_table
from allonym.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from allonym.export import Manifest, Shape

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OWN = (
    "policy label dictionary exclude_terms operating_point field format key_file vault scope secret_file secret_env "
    "secret_keyring anonymised split seed group risk_sample annotated workers overwrite quiet"
).split()


@click.group(short_help="Write training sets for language models.")
def export() -> None:
    """Write anonymised training sets in the common shapes, split by document, with a manifest beside them.

    \b
    Examples:
      allonym export chat calls.jsonl train/ --policy transcripts
      allonym export sft calls.jsonl train/ --prompt "Summarise the call." --completion summary
    """


def set_options(command: F) -> F:
    """Add SOURCE, TARGET and the options for anonymising, splitting and measuring.

    The command receives ``run``, a function that writes a training set of a given shape.
    """

    @wraps(command)
    def run_with_options(source: Path, target: Path, **options: Any) -> Any:
        set_values = {name: options.pop(name) for name in _OWN}
        return command(run=lambda shape: _write_set(source, target, shape, **set_values), **options)

    options = (
        click.argument("source", type=click.Path(exists=True, path_type=Path)),
        click.argument("target", type=click.Path(file_okay=False, path_type=Path)),
        policy_options,
        field_option,
        format_option,
        key_option,
        vault_options,
        click.option("--anonymised", type=_FILE, metavar="REPORT",
                     help="SOURCE is anonymised already; REPORT is that run's report."),
        click.option("--split", default="0.8,0.1,0.1", show_default=True, metavar="SHARES",
                     help="Shares of train, validation and test; 1: everything is train."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
                     help="Seed of the split."),
        click.option("--group", default="", metavar="FIELD",
                     help="Keep documents with the same value in one split, such as all calls of one customer."),
        click.option("--risk-sample", type=click.IntRange(0), default=200, show_default=True, metavar="N",
                     help="Documents in the second reading that looks for missed identifiers; 0: none."),
        click.option("--annotated", type=_FILE, metavar="FILE",
                     help="A sample with missed identifiers marked by people, instead of a second reading; see: "
                     "allonym evaluate residual."),
        click.option("--workers", type=click.IntRange(1), default=1, show_default=True,
                     help="Number of processes; the output does not depend on it."),
        click.option("--overwrite", is_flag=True, help="Replace an existing training set in TARGET."),
        click.option("--quiet", "-q", is_flag=True, help="Show no progress, notes or summary."),
    )  # fmt: skip
    out: Any = run_with_options
    for option in reversed(options):
        out = option(out)
    return out  # type: ignore[no-any-return]


def _parse_roles(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out = {}
    for value in values:
        name, equals, role = value.rpartition("=")
        if not (name and equals):
            raise click.BadParameter("SPEAKER=ROLE is required, such as agent=assistant", ctx=ctx, param=param)
        out[name] = role.strip().lower()
    return out


role_option = click.option(
    "--role", "roles", multiple=True, callback=_parse_roles, metavar="SPEAKER=ROLE",
    help="The role of a speaker: assistant, user, system, or - to leave out its turns. By default, of two speakers the "
    "assistant is the agent, else the one who is not the customer, else the second to speak. Repeatable.",
)  # fmt: skip


@export.command(short_help="Write conversations as messages with roles.")
@role_option
@click.option(
    "--system", default="", metavar="TEXT", help="Begin each conversation with this message of the role system."
)
@set_options
def chat(roles: dict[str, str], system: str, run: Callable[[Shape], None]) -> None:
    """Write {"messages": [{"role", "content"}, ...]} for each conversation of SOURCE into the folder TARGET.

    SOURCE contains transcripts with lines such as "Agent: Hello", or lists of turns. Consecutive turns of one role
    become one message. Turns after the assistant's last message are left out. The exit code is 1 if conversations
    were left out; quarantine.jsonl lists them with the reasons.

    \b
    Examples:
      allonym export chat calls.jsonl train/ --policy transcripts --group customer_id
      allonym export chat calls/ train/ --role action=- --system "You help customers of a shop."
    """
    from allonym.export.shapes import Chat, Roles

    run(Chat(Roles.from_names(roles), system))


@export.command(short_help="Write prompts with completions.")
@click.option(
    "--prompt", default="", metavar="TEMPLATE", help="Template of the prompt; {text} and {FIELD} are filled in."
)
@click.option(
    "--input",
    "given",
    default="{text}",
    show_default=True,
    metavar="TEMPLATE",
    help="Template of the input that the prompt refers to.",
)
@click.option("--completion", metavar="FIELD", help="Field with the completion, or a template such as {summary}.")
@click.option(
    "--tasks", type=_FILE, metavar="FILE", help="TOML file with several prompts and completions, as tables [[task]]."
)
@click.option(
    "--next-turn",
    is_flag=True,
    help="Use each turn of the assistant as a completion, and the turns before it as the input.",
)
@click.option("--history", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="With --next-turn: number of earlier turns in the input; 0: all.")  # fmt: skip
@role_option
@click.option(
    "--instruction", is_flag=True, help="Write instruction, input and output instead of prompt and completion."
)
@set_options
def sft(
    prompt: str,
    given: str,
    completion: str | None,
    tasks: Path | None,
    next_turn: bool,
    history: int,
    roles: dict[str, str],
    instruction: bool,
    run: Callable[[Shape], None],
) -> None:
    """Write {"prompt", "completion"} for each document of SOURCE into the folder TARGET.

    The text and the fields of a document are anonymised together: [PERSON_1] is the same person in the call and in
    its summary. The exit code is 1 if documents were left out; quarantine.jsonl lists them with the reasons.

    \b
    Examples:
      allonym export sft calls.jsonl train/ --prompt "Summarise the call." --completion summary
      allonym export sft calls.jsonl train/ --tasks tasks.toml --instruction --policy transcripts
      allonym export sft calls/ train/ --next-turn --history 6
    """
    from allonym.export.shapes import Prompts, Roles, Task, read_tasks

    if sum((completion is not None, tasks is not None, next_turn)) != 1:
        raise click.UsageError("one of --completion, --tasks and --next-turn is required")
    if (history or roles) and not next_turn:
        raise click.UsageError("--history and --role require --next-turn")
    if tasks is not None and prompt:
        raise click.UsageError("--prompt cannot be combined with --tasks: each task has its own prompt")
    if next_turn:
        run(Prompts((), instruction, Roles.from_names(roles), prompt, history))
        return
    if tasks is not None:
        run(Prompts(read_tasks(tasks), instruction))
        return
    assert completion is not None  # one of three
    answer = completion if "{" in completion else f"{{{completion}}}"
    name = completion.strip("{}")
    run(Prompts((Task("completion" if "{" in name or "}" in name else name, prompt, answer, given),), instruction))


def _write_set(
    source: Path,
    target: Path,
    shape: Shape,
    *,
    policy: str,
    label: tuple[str, ...],
    dictionary: tuple[tuple[str, Path], ...],
    exclude_terms: Path | None,
    operating_point: str | float | None,
    field: tuple[str, ...],
    format: str | None,
    key_file: Path | None,
    vault: str | None,
    scope: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    anonymised: Path | None,
    split: str,
    seed: int,
    group: str,
    risk_sample: int,
    annotated: Path | None,
    workers: int,
    overwrite: bool,
    quiet: bool,
) -> None:
    from allonym.export import Split, export_path

    if vault is None and (secret_file or secret_env or secret_keyring):
        raise click.UsageError("--secret-file, --secret-env and --secret-keyring require --vault")
    if anonymised is not None and vault:
        raise click.UsageError("--vault cannot be combined with --anonymised: nothing is replaced")
    chosen = chosen_policy(policy, label, dictionary, exclude_terms, operating_point)
    key = read_key(key_file)
    opened = open_vault(vault, secret_file, secret_env, secret_keyring) if vault else None
    with show_stages({}, enabled=not quiet) as advance:
        manifest = export_path(
            source,
            target,
            shape,
            chosen,
            key=key,
            vault=opened,
            scope=scope,
            anonymised=None if anonymised is None else _read_report(anonymised),
            fields=field,
            format=format,
            split=Split.parse(split, seed=seed, key=key if opened is None else opened.operator_key),
            group=group,
            risk=_measure_marked_risk(annotated)
            if annotated
            else _estimate_second_reading_risk
            if risk_sample
            else None,
            sample=risk_sample,
            workers=workers,
            overwrite=overwrite,
            progress=None if advance is None else lambda count: advance("documents", count, count),
        )
    if not quiet:
        _print_manifest(manifest, target)
    if manifest.exit_code:
        left_out = manifest.counts["left_out"]
        were = "document was" if left_out == 1 else "documents were"
        print_note(f"{left_out:,} {were} left out; see {target / 'quarantine.jsonl'}", label="error:")
        raise click.exceptions.Exit(manifest.exit_code)


def _read_report(path: Path) -> Mapping[str, Any]:
    try:
        read = json.loads(path.read_bytes())
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise UsageError(f"{path} is not a run report; allonym anonymize --report writes one")
    return read


def _estimate_second_reading_risk(original: Sequence[str], anonymised: Sequence[str]) -> Mapping[str, Any]:
    """Estimate the risk as if everything that a second reading proposes had been missed."""
    try:
        from allonym.evaluate import second_reading
    except MissingExtra as error:
        return {"none": str(error)}
    risk = second_reading(original or None, anonymised).risk()
    return {"method": "second reading, unconfirmed: an upper bound of what it can detect", **_sum_risk(risk)}


def _measure_marked_risk(path: Path) -> Callable[[Sequence[str], Sequence[str]], Mapping[str, Any]]:
    """Measure the risk from the marks of people; read before the set is written."""
    from allonym.evaluate import read_annotated, residual_risk

    risk = residual_risk(read_annotated(path))
    data = {"method": "missed identifiers that people marked in a sample (P2)", **_sum_risk(risk)}
    return lambda *_: {**data, "documents": risk.total.count}


def _sum_risk(risk: Any) -> dict[str, Any]:
    numbers = ("mean", "sd", "bound", "above", "direct")
    total = {name: getattr(risk.total, name).to_dict() for name in numbers}
    missed = {risk_type.tag: risk_type.items for risk_type in risk.types}
    return {"limit": risk.limit, **total, "passes": risk.total.passes, "missed": missed}


def _print_manifest(manifest: Manifest, target: Path) -> None:
    rows = [(name, f["examples"], f["documents"], f["units"], f["bytes"]) for name, f in manifest.files.items()]
    print_table(["file", "examples", "documents", "units", "bytes"], rows, right=(1, 2, 3, 4))
    empty = [n for n, s in zip(("train", "validation", "test"), manifest.split["shares"], strict=False)
             if s and f"{n}.jsonl" not in manifest.files]  # fmt: skip
    if empty:
        print_note(f"no document fell into {' and '.join(empty)}")
    if findings := manifest.prompts["findings"]:
        print_note(f"the policy has {findings} findings in the prompts, which are written unchanged")
    if "bound" in manifest.risk:
        low, high = manifest.risk["bound"]["value"], manifest.risk["limit"]
        lower_limit = "-" if low is None else f"{low:.2f}"
        print_note(
            f"mean + SD of {manifest.risk['documents']} documents is {lower_limit}, "
            f"and P2 requires less than {high:g}: {manifest.risk['method']}",
            label="residual risk:",
        )
    elif "none" in manifest.risk and manifest.risk["none"] != "not requested":
        print_note(f"the residual risk was not measured: {manifest.risk['none']}")
    print_note(str(target / "manifest.json"), label="written:")

"""``allonym export``: anonymised training sets for language models, with a manifest (P2, section 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from allonym.cli import options
from allonym.cli.options import COUNT, FILE, NEW_FOLDER, PATH, POSITIVE, argument, flag, option
from allonym.cli.terminal import print_note, print_table, report_failure, show_stage_bar
from allonym.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from allonym.export import Manifest, Shape


@click.group(short_help="Write training sets for language models.")
def export() -> None:
    """Write anonymised training sets in common formats, split by document, with a manifest beside them.

    \b
    Examples:
      allonym export chat calls.jsonl train/ --policy transcripts
      allonym export sft calls.jsonl train/ --prompt "Summarise the call." --completion summary
    """


class TrainingSet(NamedTuple):
    """A training set: its source, how its texts are anonymised and split, and what is measured."""

    source: Path = argument("source", type=PATH)
    target: Path = argument("target", type=NEW_FOLDER)
    choice: options.PolicyChoice = options.policy_options
    texts: options.TextFields = options.text_options
    key_file: Path | None = options.key_option
    vault: options.VaultChoice = options.vault_options
    anonymised: Path | None = option(
        "--anonymised REPORT", "SOURCE is anonymised already; REPORT is that run's report.", type=FILE
    )
    split: str = option(
        "--split SHARES", "Shares of train, validation and test; 1: everything is train.", default="0.8,0.1,0.1"
    )
    seed: int = option("--seed", "Seed of the split.", type=COUNT, default=0)
    group: str = option(
        "--group FIELD",
        "Keep documents with the same value in one split, such as all calls of one customer.",
        default="",
    )
    risk_sample: int = option(
        "--risk-sample N",
        "Documents in the second reading that looks for missed identifiers; 0: none.",
        type=COUNT,
        default=200,
    )
    annotated: Path | None = option(
        "--annotated FILE",
        "A sample with missed identifiers marked by people, instead of a second reading; see: allonym evaluate "
        "residual.",
        type=FILE,
    )
    workers: int = option(
        "--workers", "Number of processes; the output does not depend on it.", type=POSITIVE, default=1
    )
    overwrite: bool = flag("--overwrite", "Replace an existing training set in TARGET.")
    quiet: bool = flag("--quiet, -q", "Show no progress, notes or summary.")

    def write(self, shape: Shape) -> None:
        """Write the training set with examples of a shape, and its manifest."""
        from allonym.export import Split, export_path

        if self.anonymised is not None and self.vault.where:
            raise click.UsageError("--vault cannot be combined with --anonymised: nothing is replaced")
        policy = self.choice.load_policy()
        key = options.read_key(self.key_file)
        vault = self.vault.open_vault()
        risk = _estimate_second_reading_risk if self.risk_sample else None
        with show_stage_bar("documents", enabled=not self.quiet) as advance:
            manifest = export_path(
                self.source,
                self.target,
                shape,
                policy,
                key=key,
                vault=vault,
                scope=self.vault.scope,
                anonymised=None if self.anonymised is None else _read_run_report(self.anonymised),
                fields=self.texts.field,
                format=self.texts.format,
                split=Split.parse(self.split, seed=self.seed, key=key if vault is None else vault.operator_key),
                group=self.group,
                risk=_make_marked_risk_measure(self.annotated) if self.annotated else risk,
                sample=self.risk_sample,
                workers=self.workers,
                overwrite=self.overwrite,
                progress=None if advance is None else lambda count: advance(count, count),
            )
        if not self.quiet:
            _print_manifest(manifest, self.target)
        if manifest.exit_code:
            left_out = manifest.counts["left_out"]
            were = "document was" if left_out == 1 else "documents were"
            raise report_failure(
                f"{left_out:,} {were} left out; see {self.target / 'quarantine.jsonl'}", manifest.exit_code
            )


_set_options = options.group_options("training_set", TrainingSet)


def _parse_roles(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    out = {}
    for value in values:
        name, equals, role = value.rpartition("=")
        if not (name and equals):
            raise click.BadParameter("SPEAKER=ROLE is required, such as agent=assistant", ctx=ctx, param=param)
        out[name] = role.strip().lower()
    return out


_role_option = option(
    "--role SPEAKER=ROLE",
    "The role of a speaker: assistant, user, system, or - to leave out its turns. By default, of two speakers "
    "the assistant is the agent, else the one who is not the customer, else the second to speak. Repeatable.",
    name="roles",
    multiple=True,
    callback=_parse_roles,
)


@export.command(short_help="Write conversations as messages with roles.")
@_role_option
@option("--system TEXT", "Begin each conversation with this message of the role system.", default="")
@_set_options
def chat(roles: dict[str, str], system: str, training_set: TrainingSet) -> None:
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

    training_set.write(Chat(Roles.from_names(roles), system))


@export.command(short_help="Write prompts with completions.")
@option("--prompt TEMPLATE", "Template of the prompt; {text} and {FIELD} are filled in.", default="")
@option("--input TEMPLATE", "Template of the input that the prompt refers to.", name="given", default="{text}")
@option("--completion FIELD", "Field with the completion, or a template such as {summary}.")
@option("--tasks FILE", "TOML file with several prompts and completions, as tables [[task]].", type=FILE)
@flag("--next-turn", "Use each turn of the assistant as a completion, and the turns before it as the input.")
@option("--history N", "With --next-turn: number of earlier turns in the input; 0: all.", type=COUNT, default=0)
@_role_option
@flag("--instruction", "Write instruction, input and output instead of prompt and completion.")
@_set_options
def sft(
    prompt: str,
    given: str,
    completion: str | None,
    tasks: Path | None,
    next_turn: bool,
    history: int,
    roles: dict[str, str],
    instruction: bool,
    training_set: TrainingSet,
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
        training_set.write(Prompts((), instruction, Roles.from_names(roles), prompt, history))
        return
    if tasks is not None:
        training_set.write(Prompts(read_tasks(tasks), instruction))
        return
    assert completion is not None  # one of three
    answer = completion if "{" in completion else f"{{{completion}}}"
    name = completion.strip("{}")
    task = Task("completion" if "{" in name or "}" in name else name, prompt, answer, given)
    training_set.write(Prompts((task,), instruction))


def _read_run_report(path: Path) -> Mapping[str, Any]:
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
    return {"method": "second reading, unconfirmed: an upper bound of what it can detect", **_describe_risk(risk)}


def _make_marked_risk_measure(path: Path) -> Callable[[Sequence[str], Sequence[str]], Mapping[str, Any]]:
    """Measure the risk from the marks of people; read before the set is written."""
    from allonym.evaluate import read_annotated, residual_risk

    risk = residual_risk(read_annotated(path))
    data = {"method": "missed identifiers that people marked in a sample (P2)", **_describe_risk(risk)}
    return lambda *_: {**data, "documents": risk.total.count}


def _describe_risk(risk: Any) -> dict[str, Any]:
    numbers = ("mean", "sd", "bound", "above", "direct")
    total = {name: getattr(risk.total, name).to_dict() for name in numbers}
    missed = {risk_type.tag: risk_type.items for risk_type in risk.types}
    return {"limit": risk.limit, **total, "passes": risk.total.passes, "missed": missed}


def _print_manifest(manifest: Manifest, target: Path) -> None:
    rows = [(name, f["examples"], f["documents"], f["units"], f["bytes"]) for name, f in manifest.files.items()]
    print_table(["file", "examples", "documents", "units", "bytes"], rows, right=(1, 2, 3, 4))
    shares = zip(("train", "validation", "test"), manifest.split["shares"], strict=False)
    empty = [name for name, share in shares if share and f"{name}.jsonl" not in manifest.files]
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

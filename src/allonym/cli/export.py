"""``allonym export``: anonymised training sets for language models, with a manifest (P2, section 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import (
    KEY_FILE,
    OVERWRITE,
    QUIET,
    SEED,
    WORKERS,
    PolicyChoice,
    TextFields,
    VaultChoice,
    read_key,
)
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note, print_table, report_failure, show_stage_bar
from allonym.errors import MissingExtra, UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting
from allonym.text.words import count_nouns

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


class TrainingSet(SettingGroup):
    """A training set: its source, how its texts are anonymised and split, and what is measured."""

    source: Path = declare_setting(REQUIRED, "texts", noun="path", option="<SOURCE>")
    target: Path = declare_setting(REQUIRED, "folder to write", noun="new folder", option="<TARGET>")
    choice: PolicyChoice = PolicyChoice()
    texts: TextFields = TextFields()
    key_file: Path | None = KEY_FILE
    vault: VaultChoice = VaultChoice()
    anonymised: Path | None = declare_setting(
        None, "SOURCE is anonymised already; REPORT is that run's report", noun="file", option="REPORT"
    )
    split: str = declare_setting(
        "0.8,0.1,0.1", "shares of train, validation and test; 1: everything is train", option="SHARES"
    )
    seed: int = SEED
    group: str = declare_setting(
        "",
        "keep documents with the same value of this field in one split, such as all calls of one customer",
        option="KEY",
    )
    risk_sample: int = declare_setting(
        200, "documents in the second reading that looks for missed identifiers; 0: none", low=0, option="N"
    )
    annotated: Path | None = declare_setting(
        None,
        "sample with missed identifiers marked by people, in place of a second reading; see: allonym evaluate residual",
        noun="file",
        option="FILE",
    )
    workers: int = WORKERS
    overwrite: bool = OVERWRITE
    quiet: bool = QUIET

    def write(self, shape: Shape) -> None:
        """Write the training set with examples of a shape, and its manifest."""
        from allonym.export import Split, export_path

        if self.anonymised is not None and self.vault.where:
            raise click.UsageError("--vault cannot be combined with --anonymised: nothing is replaced")
        policy = self.choice.load_policy()
        key = read_key(self.key_file)
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


ROLE = declare_setting(
    {},
    "the role of a speaker: assistant, user, system, or - to leave out its turns. By default, of two speakers the "
    "assistant is the agent, else the one who is not the customer, else the second to speak",
    option="SPEAKER=ROLE",
)


@export.command(short_help="Write conversations as messages with roles.")
@take_options
def chat(
    *,
    role: Mapping[str, str] = ROLE,
    system: str = declare_setting("", "begin each conversation with this message of the role system", option="TEXT"),
    training_set: TrainingSet,
) -> None:
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

    training_set.write(Chat(Roles.from_names(role), system))


@export.command(short_help="Write prompts with completions.")
@take_options
def sft(
    *,
    prompt: str = declare_setting("", "template of the prompt; {text} and {FIELD} are filled in", option="TEMPLATE"),
    input: str = declare_setting("{text}", "template of the input that the prompt refers to", option="TEMPLATE"),
    completion: str | None = declare_setting(
        None, "field with the completion, or a template such as {summary}", option="FIELD"
    ),
    tasks: Path | None = declare_setting(
        None, "TOML file with several prompts and completions, as tables [[task]]", noun="file", option="FILE"
    ),
    next_turn: bool = declare_setting(
        False, "use each turn of the assistant as a completion, and the turns before it as the input"
    ),
    history: int = declare_setting(
        0, "with --next-turn: number of earlier turns in the input; 0: all", low=0, option="N"
    ),
    role: Mapping[str, str] = ROLE,
    instruction: bool = declare_setting(False, "write instruction, input and output instead of prompt and completion"),
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
    if (history or role) and not next_turn:
        raise click.UsageError("--history and --role require --next-turn")
    if tasks is not None and prompt:
        raise click.UsageError("--prompt cannot be combined with --tasks: each task has its own prompt")
    if next_turn:
        training_set.write(Prompts((), instruction, Roles.from_names(role), prompt, history))
        return
    if tasks is not None:
        training_set.write(Prompts(read_tasks(tasks), instruction))
        return
    assert completion is not None  # one of three
    answer = completion if "{" in completion else f"{{{completion}}}"
    name = completion.strip("{}")
    task = Task("completion" if "{" in name or "}" in name else name, prompt, answer, input)
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
    data = {"method": "missed identifiers that people marked in a sample", **_describe_risk(risk)}
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
        documents = count_nouns(manifest.risk["documents"], "document")
        score = "too few to tell" if low is None else f"{low:.2f}"
        print_note(
            f"{score} in {documents}, mean and standard deviation; less than {high:g} counts as low "
            f"({manifest.risk['method']})",
            label="residual risk:",
        )
    elif "none" in manifest.risk and manifest.risk["none"] != "not requested":
        print_note(f"the residual risk was not measured: {manifest.risk['none']}")
    print_note(str(target / "manifest.json"), label="written:")

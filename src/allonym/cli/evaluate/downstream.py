"""``allonym evaluate downstream``: the quality of models trained on anonymised texts, tested on originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    replace_hard_spaces,
    section_page,
    seed_option,
    show_estimates,
    source_options,
    training_options,
)
from allonym.cli.terminal import print_heading, print_table
from allonym.errors import DataError

if TYPE_CHECKING:
    from allonym.evaluate.downstream import Downstream
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.reading import Pairs

_NAMES = {"f1": "F1 (macro)", "accuracy": "accuracy", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


@click.command(short_help="Train on anonymised, test on original texts; find leaks in outputs.")
@source_options
@click.option("--task", "tasks", multiple=True, metavar="FIELD=KIND",
              help="A field to predict, with the kind of task: classify or summarise. Repeatable.")  # fmt: skip
@click.option("--calls", is_flag=True, help="The four tasks of P2: call_purpose, call_outcome, action_item, summary.")
@click.option("--model", default="linear", show_default=True, metavar="NAME",
              help="linear (words), encoder (sentence vectors; slower), or a model to fine-tune: finetune:FOLDER (BERT "
                   "and similar) to classify, seq2seq:FOLDER (BART and similar) to summarise.",
              )  # fmt: skip
@training_options(beams=True)
@click.option("--repeats", type=click.IntRange(2), help="Number of splits; by default 20 to classify, 5 to summarise.")
@click.option(
    "--test", type=click.FloatRange(0.01, 0.9), default=0.2, show_default=True, help="Share of the test part."
)
@click.option("--outputs", type=click.Path(exists=True, path_type=Path), metavar="PATH",
              help="Outputs of a model, with the ids of ORIGINAL: search them for its direct identifiers.")  # fmt: skip
@click.option("--outputs-field", metavar="NAME", help="Text field of --outputs; by default text, else all text.")
@click.option("-p", "--policy", default="default", show_default=True, metavar="NAME|FILE",
              help="With --outputs: policy that detects the identifiers of ORIGINAL.")  # fmt: skip
@click.option("--across", is_flag=True, help="With --outputs: search each output for the identifiers of all texts.")
@seed_option
@output_options
def downstream(
    source: Source,
    tasks: tuple[str, ...],
    calls: bool,
    model: str,
    training: Training,
    repeats: int | None,
    test: float,
    outputs: Path | None,
    outputs_field: str | None,
    policy: str,
    across: bool,
    seed: int,
    output: Output,
) -> None:
    """Train on ANONYMISED and on ORIGINAL texts, on the same splits, and test both models on other originals.

    Fields of ORIGINAL's records are the targets: labels to predict, or summaries to write. If ANONYMISED has a text
    of its own for a field, such as an anonymised summary, the anonymised model is trained on that.

    \b
    Examples:
      allonym evaluate downstream calls.jsonl anonymised.jsonl --task purpose=classify --task summary=summarise
      allonym evaluate downstream calls.jsonl anonymised.jsonl --calls --report downstream.html
      allonym evaluate downstream calls.jsonl anonymised.jsonl --task summary=summarise --model seq2seq:bart/
      allonym evaluate downstream calls.jsonl anonymised.jsonl --outputs summaries_of_our_model.jsonl
    """
    fields = _parse_tasks(tasks, calls)
    if not fields and outputs is None:
        raise click.UsageError("--task FIELD=KIND, --calls or --outputs is required")
    output.check([*source.paths, *([outputs] if outputs is not None else [])])
    from allonym.evaluate.downstream import MODELS
    from allonym.evaluate.finetuned import CLASSIFIER, WRITER, check_model

    check_model(model, MODELS, (CLASSIFIER, WRITER), "--model")
    pairs = source.read()
    values: dict[str, Any] = {}
    result = (
        _measure_downstream(source, pairs, fields, model, training, repeats, test, seed, output) if fields else None
    )
    if result is not None:
        values |= result.to_dict()
    leaks = None
    if outputs is not None:
        from allonym.evaluate.outputs import output_leaks
        from allonym.evaluate.reading import read_pairs

        written = read_pairs(
            source.original, outputs, field=source.field or None, anonymised_field=outputs_field, format=source.format
        )
        with output.progress("looking") as advance:
            leaks = output_leaks(
                written.anonymised, written.original, policy=policy, across=across, seed=seed, advance=advance
            )
        values["leaks"] = leaks.to_dict(texts=output.with_text)

    def make_page() -> Any:
        from allonym.report.evaluate.downstream import downstream_section

        section = downstream_section(values, texts=output.with_text)
        return section_page("Downstream use", (section,), f"{len(pairs):,} texts, seed {seed}")

    output.write({"downstream": values}, make_page)
    if result is not None:
        _print_downstream(result)
    if leaks is not None:
        print_heading("direct identifiers in outputs")
        show_estimates(
            [
                ("outputs that contain one", leaks.outputs, "share"),
                ("identifiers in outputs", leaks.identifiers, "share"),
                *((name, value, "share") for name, value in leaks.types.items()),
            ]
        )


def _parse_tasks(tasks: Sequence[str], calls: bool) -> dict[str, str]:
    """Return the kind of task of each field."""
    from allonym.evaluate.downstream import CALLS, KINDS

    out = dict(CALLS) if calls else {}
    for task in tasks:
        name, equals, kind = task.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.BadParameter(f"FIELD={' or FIELD='.join(KINDS)} is required, got {task!r}", param_hint="--task")
        out[name] = kind
    return out


def _measure_downstream(
    source: Source, pairs: Pairs, fields: Mapping[str, str], model: str, training: Training,
    repeats: int | None, test: float, seed: int, output: Output,
) -> Downstream:  # fmt: skip
    from allonym.evaluate.downstream import downstream as measure

    written = [name for name, kind in fields.items() if kind == "summarise"]
    targets: dict[str, Sequence[Any]] = {}
    for name, kind in fields.items():
        if not any(name in meta for meta in pairs.meta):
            pairs.labels(name)  # its message lists the fields
        values = [_convert_value(meta.get(name), kind) for meta in pairs.meta]
        if not any(values):
            raise DataError(f"task {name!r}: no record has a value to {kind}")
        targets[name] = values
    theirs = _read_references(source, pairs, written)
    with output.progress("learning") as advance:
        return measure(
            pairs.original, pairs.anonymised, targets, fields,
            anonymised_targets=theirs, model=model, training=training,
            repeats=repeats, test=test, seed=seed, advance=advance,
        )  # fmt: skip


def _read_references(source: Source, pairs: Pairs, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the references in the records of ANONYMISED."""
    if source.anonymised is None or not names:
        return {}
    from allonym.evaluate.reading import read_pairs

    field = source.anonymised_field or source.field or None
    other = read_pairs(source.anonymised, source.anonymised, field=field, format=source.format)
    by_id = dict(zip(other.ids, other.meta, strict=True))
    out = {
        name: [_convert_value(by_id[i].get(name), "summarise") if i in by_id else None for i in pairs.ids]
        for name in names
    }
    return {name: values for name, values in out.items() if any(values)}


def _convert_value(value: object, kind: str) -> Any:
    if kind == "classify":
        return str(value) if isinstance(value, (str, int)) else None
    if isinstance(value, (list, tuple)):
        return [v for v in value if isinstance(v, str)] or None
    return value if isinstance(value, str) else None


def _print_downstream(result: Downstream) -> None:
    from allonym.report.numbers import format_cell

    rows = []
    for name, task in result.tasks.items():
        for measure, score in task.scores.items():
            if score.original.value != score.original.value:
                rows.append([name, _NAMES[measure], "-", "-", "-", score.original.method.removeprefix("none: ")])
                continue
            a, b, d = (format_cell(e, "share", 1) for e in (score.original, score.anonymised, score.difference))
            rows.append([name, _NAMES[measure], *map(replace_hard_spaces, (a.text, b.text, d.text, d.interval))])
    print_table(["task", "measure", "originals", "anonymised", "difference", "interval"], rows, right=(2, 3, 4))

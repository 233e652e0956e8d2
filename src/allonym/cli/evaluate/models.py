"""``allonym evaluate downstream`` and ``generations``: models trained on anonymised texts, and what they leak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source
from allonym.cli.options import FILE, PATH, SHARE, TextFields, VaultChoice, flag, option, vault_options
from allonym.cli.terminal import report_failure
from allonym.errors import DataError

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs
    from allonym.vault import Digests


@click.command(short_help="Train on anonymised, test on original texts; find leaks in outputs.")
@options.source_options
@option(
    "--task FIELD=KIND",
    "A field to predict, with the kind of task: classify or summarise. Repeatable.",
    name="tasks",
    multiple=True,
)
@flag("--calls", "The four tasks of P2: call_purpose, call_outcome, action_item, summary.")
@option(
    "--model NAME",
    "linear (words), encoder (sentence vectors; slower), or a model to fine-tune: finetune:FOLDER (BERT and "
    "similar) to classify, seq2seq:FOLDER (BART and similar) to summarise.",
    default="linear",
)
@options.training_options(beams=True)
@option("--repeats", "Number of splits; by default 20 to classify, 5 to summarise.", type=click.IntRange(2))
@option("--test", "Share of the test part.", type=click.FloatRange(0.01, 0.9), default=0.2)
@option(
    "--outputs PATH", "Outputs of a model, with the ids of ORIGINAL: search them for its direct identifiers.", type=PATH
)
@option("--outputs-field NAME", "Text field of --outputs; by default text, else all text.")
@option("-p, --policy NAME|FILE", "With --outputs: policy that detects the identifiers of ORIGINAL.", default="default")
@flag("--across", "With --outputs: search each output for the identifiers of all texts.")
@options.seed_option
@options.output_options
def downstream(
    source: Source,
    tasks: tuple[str, ...],
    calls: bool,
    outputs: Path | None,
    outputs_field: str | None,
    policy: str,
    across: bool,
    seed: int,
    output: Output,
    **settings: Any,
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
    kinds = _parse_tasks(tasks, calls)
    if not kinds and outputs is None:
        raise click.UsageError("--task FIELD=KIND, --calls or --outputs is required")
    output.check_writable(*source.paths, outputs)
    from allonym.evaluate.downstream_use import MODELS
    from allonym.evaluate.downstream_use import downstream as measure
    from allonym.evaluate.finetuned import CLASSIFIER, WRITER, check_model_available

    check_model_available(settings["model"], MODELS, (CLASSIFIER, WRITER), "--model")
    pairs = source.read_pairs()
    values: dict[str, Any] = {}
    result = leaks = None
    if kinds:
        targets = _read_targets(pairs, kinds)
        references = _read_references(source, pairs, [name for name, kind in kinds.items() if kind == "summarise"])
        settings |= {"anonymised_targets": references, "seed": seed}
        with output.show_progress("learning") as advance:
            result = measure(pairs.original, pairs.anonymised, targets, kinds, advance=advance, **settings)
        values |= result.to_dict()
    if outputs is not None:
        from allonym.evaluate.generated_originals import output_leaks

        other_field = (outputs_field,) if outputs_field else ()
        written = source._replace(anonymised=outputs, anonymised_field=other_field, metadata=None).read_pairs()
        texts = (written.anonymised, written.original)
        with output.show_progress("looking") as advance:
            leaks = output_leaks(*texts, policy=policy, across=across, seed=seed, advance=advance)
        values["leaks"] = leaks.to_dict(texts=output.with_text)
    output.write_measure("downstream", values, f"{len(pairs):,} texts, seed {seed}")


def _parse_tasks(tasks: Sequence[str], calls: bool) -> dict[str, str]:
    """Return the kind of task of each field."""
    from allonym.evaluate.downstream_use import CALLS, KINDS

    out = dict(CALLS) if calls else {}
    for task in tasks:
        name, equals, kind = task.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise click.BadParameter(f"FIELD={' or FIELD='.join(KINDS)} is required, got {task!r}", param_hint="--task")
        out[name] = kind
    return out


def _read_targets(pairs: Pairs, kinds: Mapping[str, str]) -> dict[str, Sequence[Any]]:
    """Return the targets in the records of ORIGINAL, for each task."""
    targets: dict[str, Sequence[Any]] = {}
    for name, kind in kinds.items():
        if not any(name in meta for meta in pairs.meta):
            pairs.labels(name)  # its message lists the fields
        targets[name] = [_convert_target(meta.get(name), kind) for meta in pairs.meta]
        if not any(targets[name]):
            raise DataError(f"task {name!r}: no record has a value to {kind}")
    return targets


def _read_references(source: Source, pairs: Pairs, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the references in the records of ANONYMISED."""
    if source.anonymised is None or not names:
        return {}
    other = source._replace(
        original=source.anonymised, field=source.anonymised_field or source.field, anonymised_field=(), metadata=None
    ).read_pairs()
    by_id = dict(zip(other.ids, other.meta, strict=True))
    out = {
        name: [_convert_target(by_id[i].get(name), "summarise") if i in by_id else None for i in pairs.ids]
        for name in names
    }
    return {name: values for name, values in out.items() if any(values)}


def _convert_target(value: object, kind: str) -> Any:
    if kind == "classify":
        return str(value) if isinstance(value, (str, int)) else None
    if isinstance(value, (list, tuple)):
        return [v for v in value if isinstance(v, str)] or None
    return value if isinstance(value, str) else None


@click.command(short_help="Search a model's outputs for originals, by digests (P2).")
@click.argument("outputs", type=PATH)
@option("--digests FILE", "File with digests of the originals; see: allonym vault digests.", type=FILE)
@vault_options
@option("--baseline FILE", "Outputs of a model that never saw the data, to estimate matches by chance.", type=PATH)
@options.text_options
@option("--label LABEL", "Only originals with this label or one below it. Repeatable.", multiple=True)
@option(
    "--common ZIPF",
    "Count words of at least this Zipf frequency separately; 4: ten per million words.",
    type=click.FloatRange(3, 9),
    default=4.0,
)
@option("--language CODE", "Language of the word frequencies.", default="en")
@option(
    "--fail SHARE",
    "Exit with 1 if a larger share of the outputs contains an original; 0: if any does.",
    name="fail_above",
    type=SHARE,
)
@options.output_options
def generations(
    outputs: Path,
    digests: Path | None,
    vault: VaultChoice,
    baseline: Path | None,
    texts: TextFields,
    label: tuple[str, ...],
    fail_above: float | None,
    output: Output,
    **settings: Any,
) -> None:
    """Search OUTPUTS of a model for originals, also in other case, in part, shortened or with one letter changed.

    The search needs keyed digests, not the originals, and shows positions, never text. Common words and single
    initials are counted separately. The exit code is 1 only with --fail.

    \b
    Examples:
      allonym evaluate generations outputs.jsonl --field completion --digests calls.digests
      allonym evaluate generations outputs.jsonl --digests calls.digests --baseline before.jsonl --report leaks.html
      allonym evaluate generations outputs.jsonl --vault calls.vault --secret-file calls.key --fail 0
    """
    from allonym.evaluate.generated_originals import generations as search

    if (digests is None) == (vault.where is None):
        raise click.UsageError("one of --digests and --vault is required")
    if digests is not None and vault.scope:
        raise click.UsageError("--scope requires --vault")
    if output.with_text:
        raise click.UsageError("--with-text is not available: only positions in the outputs are shown")
    output.check_writable(outputs, baseline, digests)
    originals = _load_digests(digests, vault)
    with output.show_progress("outputs") as advance:
        result = search(
            _read_ids_and_texts(outputs, texts),
            originals,
            baseline=None if baseline is None else (text for _, text in _read_ids_and_texts(baseline, texts)),
            labels=[name.upper() for name in label],
            advance=None if advance is None else lambda count: advance(count, count),
            **settings,
        )
    output.write_measure("generations", result.to_dict())
    share = result.all.outputs.value
    if fail_above is not None and share > fail_above:
        raise report_failure(f"{share:.2%} of the outputs contain an original, more than {fail_above:g} of them")


def _load_digests(file: Path | None, vault: VaultChoice) -> Digests:
    from allonym.vault import read_digests

    if file is not None:
        return read_digests(file)
    assert vault.where is not None  # checked
    with vault.secret.open_vault(vault.where) as opened:
        return opened.digests(vault.scope or None)


def _read_ids_and_texts(source: Path, texts: TextFields) -> Iterator[tuple[str, str]]:
    for document in texts.read_documents(source):
        yield document.id, "\n".join(document.part_texts())

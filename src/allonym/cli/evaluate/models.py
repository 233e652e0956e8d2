"""``allonym evaluate downstream`` and ``generations``: models trained on anonymised texts, and what they leak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import Output, Source, WriterTraining
from allonym.cli.options import SEED, TextFields, VaultChoice, declare_policy
from allonym.cli.signatures import take_options
from allonym.cli.terminal import report_failure
from allonym.errors import DataError
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs
    from allonym.vault import Digests


@click.command(short_help="Train on anonymised, test on original texts; find leaks in outputs.")
@take_options
def downstream(
    *,
    source: Source,
    task: tuple[str, ...] = declare_setting(
        (), "a field to predict, with the kind of task: classify or summarise", option="FIELD=KIND"
    ),
    calls: bool = declare_setting(
        False, "the four tasks of Gardiner et al. 2024: call_purpose, call_outcome, action_item, summary"
    ),
    model: str = declare_setting(
        "linear",
        "linear (words), encoder (sentence vectors; slower), or a model to fine-tune: finetune:FOLDER (BERT and "
        "similar) to classify, seq2seq:FOLDER (BART and similar) to summarise",
        option="NAME",
    ),
    training: WriterTraining,
    repeats: int | None = declare_setting(None, "number of splits; by default 20 to classify, 5 to summarise", low=2),
    test: float = declare_setting(0.2, "share of the test part", low=0.01, high=0.9),
    outputs: Path | None = declare_setting(
        None,
        "outputs of a model, with the ids of ORIGINAL: search them for its direct identifiers",
        noun="path",
        option="PATH",
    ),
    outputs_field: str | None = declare_setting(
        None, "text field of --outputs; by default text, else all text", option="NAME"
    ),
    policy: str = declare_policy(says="with --outputs: policy that detects the identifiers of ORIGINAL"),
    across: bool = declare_setting(False, "with --outputs: search each output for the identifiers of all texts"),
    seed: int = SEED,
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
    kinds = _parse_tasks(task, calls)
    if not kinds and outputs is None:
        raise click.UsageError("--task FIELD=KIND, --calls or --outputs is required")
    output.check_writable(*source.paths, outputs)
    from allonym.evaluate.downstream_use import MODELS
    from allonym.evaluate.downstream_use import downstream as measure
    from allonym.evaluate.finetuned import CLASSIFIER, WRITER, check_model_available

    check_model_available(model, MODELS, (CLASSIFIER, WRITER), "--model")
    pairs = source.read_pairs()
    values: dict[str, Any] = {}
    result = leaks = None
    if kinds:
        targets = _read_targets(pairs, kinds)
        references = _read_references(source, pairs, [name for name, kind in kinds.items() if kind == "summarise"])
        settings: dict[str, Any] = {"model": model, "training": training.make_training(), "repeats": repeats}
        settings |= {"test": test, "anonymised_targets": references, "seed": seed}
        with output.show_progress("learning") as advance:
            result = measure(pairs.original, pairs.anonymised, targets, kinds, advance=advance, **settings)
        values |= result.to_dict()
    if outputs is not None:
        from allonym.evaluate.generated_originals import output_leaks

        other_field = (outputs_field,) if outputs_field else ()
        written = replace(source, anonymised=outputs, anonymised_field=other_field, metadata=None).read_pairs()
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
    field = source.anonymised_field or source.field
    other = replace(source, original=source.anonymised, field=field, anonymised_field=(), metadata=None).read_pairs()
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


@click.command(short_help="Search a model's outputs for originals, by digests.")
@take_options
def generations(
    outputs: Path = declare_setting(REQUIRED, "outputs of the model", noun="path", option="<OUTPUTS>"),
    *,
    digests: Path | None = declare_setting(
        None, "file with digests of the originals; see: allonym vault digests", noun="file", option="FILE"
    ),
    vault: VaultChoice,
    baseline: Path | None = declare_setting(
        None, "outputs of a model that never saw the data, to estimate matches by chance", noun="path", option="FILE"
    ),
    texts: TextFields,
    label: tuple[str, ...] = declare_setting(
        (), "only originals with this label or one below it", noun="label", option="LABEL"
    ),
    common: float = declare_setting(
        4.0,
        "count words of at least this Zipf frequency separately; 4: ten per million words",
        low=3,
        high=9,
        option="ZIPF",
    ),
    language: str = declare_setting("en", "language of the word frequencies", option="CODE"),
    fail: float | None = declare_setting(
        None,
        "exit with 1 if a larger share of the outputs contains an original; 0: if any does",
        low=0,
        high=1,
        option="SHARE",
    ),
    output: Output,
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
            common=common,
            language=language,
            advance=None if advance is None else lambda count: advance(count, count),
        )
    output.write_measure("generations", result.to_dict())
    share = result.all.outputs.value
    if fail is not None and share > fail:
        raise report_failure(f"{share:.2%} of the outputs contain an original, more than {fail:g} of them")


def _load_digests(file: Path | None, vault: VaultChoice) -> Digests:
    from allonym.vault import read_digests

    if file is not None:
        return read_digests(file)
    assert vault.where is not None  # checked
    with vault.secret.open_vault(vault.where) as opened:
        return opened.digests(vault.scope or None)


def _read_ids_and_texts(source: Path, texts: TextFields) -> Iterator[tuple[str, str]]:
    for document in texts.read_documents(source):
        yield document.id, document.drop_field_names().text

"""Build a model folder from corpora, or train a tagger further, as P3 proposes: people annotate or correct, it learns.

A new tagger is trained, exported and calibrated; its operating points are chosen. A few dozen annotated documents alone
would make a trained network forget other labels. So training on them mixes them with template text that has every label
(rehearsal: Robins 1995, doi:10.1080/09540099550039318), and the final weights are interpolated between the old and the
new ones (Wortsman et al. 2022, arXiv:2109.01903). Temperature and operating points stay the same: a few documents are
too few to choose them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError
from allonym.models.tagger import TaggerModel, read_description
from allonym.models.tags import LABELS
from allonym.models.windows import Window
from allonym.models.words import WordPiece
from allonym.partfile import write_file
from allonym.train import points
from allonym.train.corpus import (
    Recipe,
    Source,
    generate_synthetic_examples,
    get_source_name,
    load_corpus,
    make_training_lists,
)
from allonym.train.examples import Example, list_annotated_labels, make_example
from allonym.train.export import make_encoder_graph, make_tagger_graph, read_tagger, save_onnx_model, write_tagger
from allonym.train.fit import Options, Sources, fit, make_windows
from allonym.train.gate import fit_gate
from allonym.train.labelmap import LabelFinder, find_targets
from allonym.train.network import Encoder, Tagger
from allonym.train.score import Report

Record = Mapping[str, Any]
_REHEARSED = 0.5  # words of template text for each annotated word
_LEAST_REHEARSED = 100  # texts
_MOST_GATED = 250_000  # words to which a gate is fitted
_MOST_JUDGED = 15_000  # words of each kind of text by which operating points are chosen
_WAY = 0.85  # share of the way from the old weights to the new ones


def build_models_from_recipe(
    recipe: Recipe,
    data: Path,
    out: Path,
    start: Path,
    *,
    options: Mapping[str, Any] | None = None,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Build the tagger and the sentence encoder of a recipe.

    Args:
        recipe: sources and options.
        data: folder of the corpora.
        out: folder for the models; ``work`` in it holds checkpoints.
        start: folder with ``config.json``, ``model.safetensors`` and ``vocab.txt`` of an uncased BERT; or of a tagger,
            with which the recipe's last stage alone runs. A tagger's sentence encoder is copied.
        options: options that override the recipe's.
        report: called with the measures of each epoch.
        resume: continue from the checkpoint.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        UsageError: ``start`` is a tagger, and the recipe has no last stage.
        DataError: a file of the recipe is missing or broken, or ``start`` cannot be read.
    """
    is_tagger = (start / "tagger.json").exists()
    if is_tagger and not recipe.finish:
        raise UsageError(f"recipe {recipe.name} has no last stage [finish], which alone runs from a tagger")
    corpora = list(load_corpus(recipe, data, "train"))
    dev = _load_dev_examples(recipe, data)
    chosen = {**recipe.options, **(options or {})}
    run: dict[str, Any] = {"encoder": start, "report": report, "resume": resume}
    if is_tagger:
        model, _ = read_tagger(start, Options.of(chosen).dropout)
    else:
        sources = [(source.repeat, examples) for source, examples in corpora]
        model = _fit(sources, dev, out / "work", options=Options.of(chosen), **run)
    if recipe.finish:
        model = _fit_last_stage(model, recipe, corpora, dev, out, chosen, run)
    about = {"name": recipe.name, "language": "en", "licence": recipe.licence}
    write_tagger(model, LABELS, start / "vocab.txt", out, about, by_chance=is_tagger)
    if not is_tagger:
        save_onnx_model(make_encoder_graph(Encoder.read(start, 0.0, shapes=False).eval()), out / "encoder.onnx")
    elif (encoder := start / "encoder.onnx").exists():
        write_file(out / "encoder.onnx", encoder.read_bytes())
    if dev:
        calibrate_model(out, dev)
        add_gate(out, [example for _, examples in corpora for example in examples])
    return calibrate_model(out, dev)


Corpora = Sequence[tuple[Source, list[Example]]]


def _fit_last_stage(
    model: Tagger,
    recipe: Recipe,
    corpora: Corpora,
    dev: Sequence[Example],
    out: Path,
    options: Mapping[str, Any],
    run: Mapping[str, Any],
) -> Tagger:
    settings = dict(recipe.finish)
    share, way = settings.pop("share"), settings.pop("way", 1.0)
    before = _copy_weights(model)
    sources = [(share * s.repeat if s.finish is None else s.finish, examples) for s, examples in corpora]
    late = Options.of({**options, **settings})
    _fit(sources, dev, out / "work" / "finish", options=late, start=model, choose_epoch=False, **run)
    return _move_weights(model, before, way)


def _copy_weights(model: Tagger) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _move_weights(model: Tagger, before: Mapping[str, Any], way: float) -> Tagger:
    """Set the weights that lie this share of the way from those before to the present ones (Wortsman et al. 2022)."""
    model.load_state_dict({name: before[name].lerp(value, way) for name, value in model.state_dict().items()})
    return model


def build_tagger_from_records(
    train: Sequence[Record],
    dev: Sequence[Record],
    out: Path,
    *,
    encoder: Path,
    options: Options,
    language: str = "en",
    label_map: LabelFinder = find_targets,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a new tagger on records, and write the model to ``out``.

    Args:
        train: records as of :func:`allonym.train.records.read_jsonl`. ``meta.labels`` lists the labels that were looked
            for; without it, these are all labels of such records of the same source. Unmarked text is negative for
            these labels only.
        dev: records for choosing the best epoch and for calibration; if empty, the last epoch is used, uncalibrated.
        out: folder for the model; ``work`` in it holds checkpoints.
        encoder: folder with ``config.json``, ``model.safetensors`` and ``vocab.txt`` of an uncased BERT.
        options: options of the trainer.
        language: code of the text's language.
        label_map: the label map.
        report: called after each epoch.
        resume: continue from the checkpoint.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        DataError: a label of the records is unknown to the label map, or none maps to a label of the tagger.
    """
    annotated, dev_set = _make_train_and_dev_examples(train, dev, label_map)
    about = {"name": out.name, "language": language, "licence": ""}
    model = _fit(
        [(1.0, annotated)], dev_set, out / "work", encoder=encoder, options=options, report=report, resume=resume
    )
    write_tagger(model, LABELS, encoder / "vocab.txt", out, about)
    return calibrate_model(out, dev_set)


def _fit(sources: Sources, dev: Sequence[Example], out: Path, **training: Any) -> Tagger:
    return fit(sources, dev, out, lists=make_training_lists(), **training)


def calibrate_on_recipe(folder: Path, recipe: Recipe, data: Path) -> dict[str, Any]:
    """Calibrate a model folder on the documents that the recipe keeps for it.

    Args:
        folder: the model; its ``tagger.json`` is written anew.
        recipe: the sources.
        data: folder of the corpora.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        DataError: the folder is not a tagger, a file of the recipe is missing or broken, or it keeps no documents.
    """
    if not (dev := _load_dev_examples(recipe, data)):
        raise DataError(f"recipe {recipe.name}: no source keeps documents for calibration")
    return calibrate_model(folder, dev)


def _load_dev_examples(recipe: Recipe, data: Path) -> list[Example]:
    return [example for _, examples in load_corpus(recipe, data, "dev") for example in examples]


def calibrate_model(folder: Path, dev: Sequence[Example]) -> dict[str, Any]:
    """Set the temperature and the operating points of a model folder, using text that it was not trained on.

    Without such text, nothing changes. Otherwise ``points`` in ``tagger.json`` holds the thresholds of each point, and
    ``measured`` the shares of :func:`allonym.train.points.measure_operating_points`.
    """
    about = read_description(folder)
    if dev:
        judged = points.compute_word_logits(TaggerModel(folder), _choose_examples(dev))
        temperature = points.fit_temperature(judged)
        about.pop("sure", None)  # of earlier versions
        about["temperature"] = temperature
        about["points"] = points.choose_operating_points(judged, LABELS, temperature)
        about["measured"] = points.measure_operating_points(judged, LABELS, temperature, about["points"])
        write_file(folder / "tagger.json", (json.dumps(about, indent=2) + "\n").encode("utf-8"))
    return about


def _choose_examples(dev: Sequence[Example]) -> list[Example]:
    """Choose examples of each kind of text at random, up to a number of words of each."""
    words: Counter[str] = Counter()
    out = []
    for example in random.Random(0).sample(list(dev), len(dev)):
        if words[example.source] < _MOST_JUDGED:
            words[example.source] += len(example.words)
            out.append(example)
    return out


def add_gate(folder: Path, examples: Sequence[Example], layer: int = 2) -> None:
    """Give the tagger of a folder a gate, which stops words that surely are outside of entities; one there is replaced.

    Calibrate the tagger before, because its lowest operating point tells which words matter, and again afterwards.

    Args:
        folder: of a calibrated tagger.
        examples: text of all kinds, of which 250,000 words are used at most; annotations do not matter.
        layer: number of layers below the gate.

    Raises:
        DataError: the folder is not a tagger, or the text has too few words that may be in an entity.
    """
    model, about = read_tagger(folder, 0.0)
    pieces = WordPiece.read(folder / "vocab.txt")
    windows: list[Window] = []
    words = 0
    for example in random.Random(0).sample(list(examples), len(examples)):
        windows += [piece.window for piece in make_windows(example, pieces)]
        words += len(example.words)
        if words >= _MOST_GATED:
            break
    least = min(float(table["*"]) for table in about["points"].values())
    gate = fit_gate(model, windows, layer=layer, temperature=about["temperature"], least=least)
    save_onnx_model(make_tagger_graph(model, gate=gate), folder / "tagger.onnx")


def train_tagger_further(
    train: Sequence[Record],
    dev: Sequence[Record],
    out: Path,
    *,
    base: Path,
    options: Options,
    label_map: LabelFinder = find_targets,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a tagger further on a few records, and write the model to ``out``.

    Args:
        train, out, label_map, report, resume: see :func:`build_tagger_from_records`.
        dev: records for the report of each epoch; a few are too few to choose one, so the last epoch is used.
        base: folder of the tagger to start from.
        options: options of the trainer, over :data:`allonym.train.fit.FURTHER`.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        DataError: as for :func:`build_tagger_from_records`, or ``base`` has other labels.
    """
    annotated, dev_set = _make_train_and_dev_examples(train, dev, label_map)
    model, about = read_tagger(base, options.dropout)
    if tuple(about["labels"]) != LABELS:
        raise DataError(f"{base}: the tagger has other labels; start from a tagger of this version")
    size = sum(len(example.words) for example in annotated)
    rehearsed = _generate_rehearsal_examples(int(size * _REHEARSED))
    before = _copy_weights(model)
    sources = [(1.0, annotated), (1.0, rehearsed)]
    run: dict[str, Any] = {"options": options, "report": report, "resume": resume}
    _fit(sources, dev_set, out / "work", encoder=base, start=model, choose_epoch=False, **run)
    _move_weights(model, before, _WAY)
    replaced = ("format", "labels", "parts", "name", "trained_on", "measured")
    settings = {name: value for name, value in about.items() if name not in replaced}
    summary = {"name": out.name, **settings, "base": about.get("name", base.name)}
    summary["trained_on"] = {"records": len(train), "words": size, "rehearsed": len(rehearsed)}
    return write_tagger(model, LABELS, base / "vocab.txt", out, summary, by_chance=True)


def _make_train_and_dev_examples(
    train: Sequence[Record], dev: Sequence[Record], label_map: LabelFinder
) -> tuple[list[Example], list[Example]]:
    bare = [record for record in (*train, *dev) if _get_reviewed_labels(record) is None]
    used = {(span["label"], get_source_name(record)) for record in bare for span in record["spans"]}
    if unknown := sorted({label for label, source in used if label_map(label, source) == frozenset()}):
        raise DataError(
            f"the tagger has no label {', '.join(unknown)}; give a label map that says for each which labels of the "
            f'tagger it stands for, as {unknown[0]} = ["ORGANIZATION"], or {unknown[0]} = [] to leave its spans out '
            f"(labels of the tagger: {', '.join(LABELS)}); the backend spacy can learn labels of your own"
        )
    annotated_labels = _list_annotated_labels(train, train, label_map)
    if not any(annotated_labels) and not any(list_annotated_labels([r], get_source_name(r), label_map) for r in train):
        raise DataError("no label of the training records maps to a label of the tagger; give a label map")
    dev_labels = _list_annotated_labels(dev, train, label_map)
    return _make_examples(train, annotated_labels, label_map), _make_examples(dev, dev_labels, label_map)


def _list_annotated_labels(
    records: Sequence[Record], train: Sequence[Record], label_map: LabelFinder
) -> list[frozenset[str]]:
    """Return for each record the labels for which its unmarked text is negative: those that its source annotates.

    A source that is not in ``train`` annotates what all of them do.
    """
    bare: dict[str, list[Record]] = {}
    for record in train:
        if _get_reviewed_labels(record) is None:
            bare.setdefault(get_source_name(record), []).append(record)
    counted = {name: list_annotated_labels(source_records, name, label_map) for name, source_records in bare.items()}
    everywhere = frozenset[str]().union(*counted.values())
    out = []
    for record in records:
        name, labels = get_source_name(record), _get_reviewed_labels(record)
        targets = (target for label in labels or () for target in label_map(label, name) or ())
        out.append(counted.get(name, everywhere) if labels is None else frozenset(targets))
    return out


def _get_reviewed_labels(record: Record) -> list[str] | None:
    labels = record.get("meta", {}).get("labels")
    return [label for label in labels if isinstance(label, str)] if isinstance(labels, (list, tuple)) else None


def _make_examples(
    records: Sequence[Record], annotated_labels: Iterable[frozenset[str]], label_map: LabelFinder
) -> list[Example]:
    lists = make_training_lists()
    return [
        make_example(r, get_source_name(r), labels, label_map, lists)
        for r, labels in zip(records, annotated_labels, strict=True)
    ]


def _generate_rehearsal_examples(words: int) -> list[Example]:
    """Generate template texts of at least ``words`` words in total."""
    out, count = [], 0
    for example in generate_synthetic_examples(max(_LEAST_REHEARSED, words // 10), 3):
        out.append(example)
        count += len(example.words)
        if count >= words and len(out) >= _LEAST_REHEARSED:
            break
    return out

"""Build a model folder from corpora: train, export, calibrate, choose operating points, measure and document."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError
from allonym.models.tagger import TaggerModel
from allonym.models.tags import LABELS
from allonym.train import points
from allonym.train.corpus import Recipe, get_source_name, load_corpus, make_training_lists
from allonym.train.corrupt import Noise
from allonym.train.examples import Example, list_annotated_labels, make_example
from allonym.train.export import make_encoder_graph, save_onnx_model, write_tagger
from allonym.train.fit import Options, fit
from allonym.train.labelmap import LabelFinder, find_targets
from allonym.train.network import Encoder
from allonym.train.score import Report

Record = Mapping[str, Any]
_SPEECH = Noise(lower=0, speech=1, upper=0, swap=0, spell=0)


def build_models_from_recipe(
    recipe: Recipe,
    data: Path,
    out: Path,
    *,
    encoder: Path,
    options: Mapping[str, Any] | None = None,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Build the tagger and the sentence encoder of a recipe.

    Args:
        recipe: sources and options.
        data: folder of the corpora.
        out: folder for the model; ``work`` in it holds checkpoints.
        encoder: folder with ``config.json``, ``model.safetensors`` and ``vocab.txt`` of an uncased BERT.
        options: options that override the recipe's.
        report: called with the measures of each epoch.
        resume: continue from the checkpoint.

    Returns:
        The contents of ``tagger.json``.
    """
    chosen = Options.of({**recipe.options, **(options or {})})
    sources = [(source.repeat, examples) for source, examples in load_corpus(recipe, data, "train")]
    dev = [e for _, examples in load_corpus(recipe, data, "dev") for e in examples]
    about = {"name": recipe.name, "language": "en", "licence": recipe.licence}
    lists = make_training_lists()
    model = fit(sources, dev, out / "work", encoder=encoder, options=chosen, lists=lists, report=report, resume=resume)
    write_tagger(model, LABELS, encoder / "vocab.txt", out, about)
    summary = calibrate_model(out, dev)
    save_onnx_model(make_encoder_graph(Encoder.read(encoder, 0.0, shapes=False).eval()), out / "encoder.onnx")
    return summary


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
    """Train a tagger on records in our JSONL shape; each corpus among them (``meta.source``) has its own label set.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        DataError: no label of the records maps to a label of the tagger.
    """
    annotated_labels = {
        name: list_annotated_labels([r for r in train if get_source_name(r) == name], name, label_map)
        for name in map(get_source_name, train)
    }
    if not any(annotated_labels.values()):
        raise DataError("no label of the training records maps to a label of the tagger; give a label map")
    lists = make_training_lists()

    def make_examples(records: Sequence[Record]) -> list[Example]:
        named = ((record, get_source_name(record)) for record in records)
        every = frozenset(LABELS)
        return [make_example(r, name, annotated_labels.get(name, every), label_map, lists) for r, name in named]

    about = {"name": out.name, "language": language, "licence": ""}
    sources, dev_set = [(1.0, make_examples(train))], make_examples(dev)
    model = fit(
        sources, dev_set, out / "work", encoder=encoder, options=options, lists=lists, report=report, resume=resume
    )
    write_tagger(model, LABELS, encoder / "vocab.txt", out, about)
    return calibrate_model(out, dev_set)


def calibrate_model(folder: Path, dev: Sequence[Example], most: int = 4000) -> dict[str, Any]:
    """Set the temperature and the operating points of a model folder, using text that it was not trained on."""
    about: dict[str, Any] = json.loads((folder / "tagger.json").read_text("utf-8"))
    if dev:
        some = random.Random(0).sample(list(dev), min(most, len(dev)))
        judged = points.compute_word_logits(TaggerModel(folder), some, (None, _SPEECH))
        about["temperature"] = points.fit_temperature(judged)
        about["points"] = points.choose_operating_points(judged, LABELS, about["temperature"])
        about["sure"] = dict(points.SURE)
        (folder / "tagger.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    return about

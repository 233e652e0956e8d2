"""A common interface to the training backends: the embedded tagger, spaCy's CNN and MITIE.

Each has its options, a trainer that writes a model folder from records, and a loader that returns a function from texts
to spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from allonym.detection.tagger import join_name_parts
from allonym.errors import UnknownNameError, UsageError, hide_foreign_errors, require_extra
from allonym.models.runtime import HERE
from allonym.models.tags import NAME_PARTS
from allonym.train.labelmap import LabelFinder, find_targets, map_unified_labels, relabel_spans, unify_labels
from allonym.train.records import Record, list_spans
from allonym.train.score import Predict, Report, Score, score_texts

_MODULES = {"tagger": "fit", "spacy": "spacy_backend", "mitie": "mitie_backend"}
BACKENDS = tuple(_MODULES)

_HUB = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of a training beside the backend's options.

    Attributes:
        encoder: of a new tagger: a folder with ``config.json``, ``model.safetensors`` and ``vocab.txt`` of an uncased
            BERT, or its name on the Hugging Face hub, which is then downloaded.
        base: where there is no encoder, the tagger to train further: a shipped one, by default english, or a folder.
        language: code of the text's language.
        label_map: maps the labels of the corpora.
        own_labels: spaCy and MITIE learn the labels of the corpora, unmapped.
    """

    encoder: str = ""
    base: str = ""
    language: str = "en"
    label_map: LabelFinder = find_targets
    own_labels: bool = False


def get_options_type(backend: str) -> type[Any]:
    """Return the dataclass of a backend's options.

    Raises:
        UnknownNameError: no such backend.
        MissingExtra: an optional package is not installed.
    """
    if backend not in _MODULES:
        raise UnknownNameError("backend", backend, BACKENDS)
    return cast("type[Any]", _import_module(_MODULES[backend]).Options)


def _import_module(name: str) -> Any:
    with require_extra("training the tagger", "train"):
        return import_module(f"allonym.train.{name}")


def make_options(backend: str, settings: Mapping[str, Any], *, further: bool = False) -> Any:
    """Return a backend's options. Values may be strings from a command line.

    Args:
        further: of the tagger: use the defaults for training a tagger further.

    Raises:
        UnknownNameError: the backend has no such option.
        UsageError: a value does not have the option's type.
    """
    kind = get_options_type(backend)
    field_types = {f.name: type(f.default) for f in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in field_types:
            raise UnknownNameError(f"option of {backend}", name, field_types)
        values[name] = _convert_option_value(field_types[name], value, f"{backend} option {name}")
    return kind(**{**_import_module("fit").FURTHER, **values} if further and backend == "tagger" else values)


def _convert_option_value(kind: type, value: Any, where: str) -> Any:
    try:
        if kind is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        if kind is int and isinstance(value, float) and not value.is_integer():
            raise ValueError
        return kind(value)
    except (ValueError, KeyError, TypeError):
        expected_type = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, kind.__name__)
        raise UsageError(f"{where}: {expected_type} is required, got {value!r}") from None


def train(
    backend: str,
    records: Sequence[Record],
    dev: Sequence[Record],
    out: Path,
    *,
    options: Any,
    setup: Setup,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a backend on records with the labels of their corpora, and write the model to ``out``.

    Without an encoder, the tagger ``setup.base`` is trained further.

    Args:
        options: of :func:`make_options`.
        report: called after each epoch with its measures.
        resume: continue an interrupted run.

    Returns:
        The backend's summary of the run.
    """
    if backend == "tagger":
        build = _import_module("build")
        if setup.encoder:
            start = {"encoder": find_encoder_folder(setup.encoder), "language": setup.language}
            run = partial(build.build_tagger_from_records, label_map=setup.label_map, **start)
        else:
            base = find_base_folder(setup.base)
            run = partial(build.train_tagger_further, label_map=setup.label_map, base=base)
    else:
        if not setup.own_labels:
            records, dev = unify_labels(records, setup.label_map), unify_labels(dev, setup.label_map)
        run = _import_module(_MODULES[backend]).fit
    return cast("dict[str, Any]", run(records, dev, out, options=options, report=report, resume=resume))


def load(backend: str, folder: Path) -> Predict:
    """Load the model that :func:`train` wrote to ``folder``. The tagger uses its balanced operating point."""
    if backend != "tagger":
        return cast(Predict, _import_module(_MODULES[backend]).load(folder))
    from allonym.detection.tagger import extract_spans
    from allonym.models.tagger import TaggerModel

    model = TaggerModel(folder)
    bars = dict.fromkeys(model.labels, 0.5)
    return lambda texts: [extract_spans(text, model(text), model.labels, bars) for text in texts]


def score_predictor(predict: Predict, records: Sequence[Record], setup: Setup) -> Score:
    """Score a model on records with the labels of their corpora, in one set of labels for all backends.

    If the corpus has only whole names, the name parts of a model count as one name.
    """
    gold = list(records) if setup.own_labels else unify_labels(records, setup.label_map)
    covered_labels = map_unified_labels(records, setup.label_map)
    predicted = predict([record["text"] for record in gold])
    rows = []
    for record, spans in zip(gold, predicted, strict=True):
        if not setup.own_labels:
            parts = any(part in covered_labels for part in NAME_PARTS)
            spans = relabel_spans(spans if parts else join_name_parts(record["text"], spans), covered_labels)
        rows.append((record["text"], list_spans(record), spans))
    return score_texts(rows)


def find_base_folder(name: str) -> Path:
    """Return the folder of the tagger to train further: a shipped tagger by name, by default english, or a folder.

    Raises:
        UnknownNameError: there is neither.
    """
    name = name or "english"
    if Path(name).is_dir():
        return Path(name)
    shipped = sorted(p.parent.name for p in HERE.glob("*/tagger.json"))
    if name not in shipped:
        raise UnknownNameError("tagger", name, shipped, "--base")
    return HERE / name


def find_encoder_folder(name: str) -> Path:
    """Return the folder of an encoder: a local one, or the download of the hub's client.

    Raises:
        UsageError: no encoder is named, or it is neither a folder nor a name on the hub.
        MissingExtra: the hub's client is not installed.
    """
    if not name:
        raise UsageError("a recipe requires --encoder: the folder of an uncased BERT, or its name on the hub")
    folder = Path(name)
    if folder.is_dir():
        return folder
    if not _HUB.fullmatch(name) or folder.is_absolute():
        raise UsageError(f"--encoder {name}: no such folder, and no name on the hub such as owner/model")
    with require_extra("an encoder from the hub", "train"):
        from huggingface_hub import snapshot_download
    with hide_foreign_errors(f"--encoder {name}: cannot be downloaded from the hub", error=UsageError):
        return Path(snapshot_download(name, allow_patterns=["config.json", "model.safetensors", "vocab.txt"]))

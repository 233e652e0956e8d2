"""Train a tagger further on reviewed documents, as P3 proposes: people correct, and the model learns.

A few dozen documents alone would make the network forget other labels. So training mixes them with template text that
has every label (rehearsal: Robins 1995, doi:10.1080/09540099550039318), and the final weights are interpolated between
the old and the new ones (Wortsman et al. 2022, arXiv:2109.01903). Temperature and operating points stay the same: a
few documents are too few to choose them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UnknownNameError
from allonym.models.runtime import HERE
from allonym.models.tags import LABELS
from allonym.train.build import Record
from allonym.train.corpus import get_source_name, make_training_lists
from allonym.train.examples import Example, list_annotated_labels, make_example
from allonym.train.export import read_tagger, write_tagger
from allonym.train.fit import Options, fit
from allonym.train.labelmap import LabelFinder, find_targets
from allonym.train.score import Report
from allonym.train.synthetic import generate_texts

_CALM = {"epochs": 10, "lr": 1e-4, "head_lr": 5e-4, "batch": 1024, "average": 0.99, "swap": 0.1}
_REHEARSED = 0.5  # words of template text for each word of a review
_LEAST_REHEARSED = 100  # texts
_WAY = 0.85  # share of the way from the old weights to the new ones


def find_base_folder(name: str) -> Path:
    """Return the folder of the tagger to start from: a shipped tagger by name, or a folder.

    Raises:
        UnknownNameError: there is neither.
    """
    if Path(name).is_dir():
        return Path(name)
    shipped = sorted(p.parent.name for p in HERE.glob("*/tagger.json"))
    if name not in shipped:
        raise UnknownNameError("tagger", name, shipped, "--base")
    return HERE / name


def make_review_options(settings: dict[str, Any]) -> Options:
    """Return options for training on reviews; the defaults are more cautious than for a new tagger.

    Raises:
        UnknownNameError: there is no such option.
    """
    return Options.of({**_CALM, **settings})


def train_on_reviews(
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
    """Train a tagger further on reviewed documents, and write the model to ``out``.

    Args:
        train: records as of :func:`allonym.train.records.read_jsonl`. ``meta.labels`` lists the labels that were
            reviewed; without it, these are all labels of such records of the same source. Unmarked text is negative
            for these labels only.
        dev: records for choosing the best epoch; if empty, the last epoch is used.
        out: folder for the model; ``work`` in it holds checkpoints.
        base: folder of the tagger to start from.
        options: of :func:`make_review_options`.
        label_map: the label map.
        report: called after each epoch.
        resume: continue from the checkpoint.

    Returns:
        The contents of ``tagger.json``.

    Raises:
        DataError: no label of the records maps to a label of the tagger, or ``base`` has other labels.
    """
    annotated_labels = _list_annotated_labels(train, train, label_map)
    if not any(annotated_labels) and not any(list_annotated_labels([r], get_source_name(r), label_map) for r in train):
        raise DataError("no label of the reviewed documents maps to a label of the tagger; give a label map")
    model, about = read_tagger(base, options.dropout)
    if tuple(about["labels"]) != LABELS:
        raise DataError(f"{base}: the tagger has other labels; start from a tagger of this version")
    reviewed = _make_examples(train, annotated_labels, label_map)
    dev_set = _make_examples(dev, _list_annotated_labels(dev, train, label_map), label_map)
    size = sum(len(example.words) for example in reviewed)
    rehearsed = _generate_rehearsal_examples(int(size * _REHEARSED))
    work = out / "work"
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    sources, lists = [(1.0, reviewed), (1.0, rehearsed)], make_training_lists()
    fit(sources, dev_set, work, encoder=base, options=options, lists=lists, report=report, resume=resume, start=model)
    model.load_state_dict({name: before[name].lerp(value, _WAY) for name, value in model.state_dict().items()})
    replaced = ("format", "labels", "parts", "name", "reviews")
    settings = {name: value for name, value in about.items() if name not in replaced}
    summary = {"name": out.name, **settings, "base": about.get("name", base.name)}
    summary["reviews"] = {"documents": len(train), "words": size, "rehearsed": len(rehearsed)}
    write_tagger(model, LABELS, base / "vocab.txt", out, summary)
    written: dict[str, Any] = json.loads((out / "tagger.json").read_text("utf-8"))
    return written


def _list_annotated_labels(
    records: Sequence[Record], train: Sequence[Record], label_map: LabelFinder
) -> list[frozenset[str]]:
    """Return for each record the labels for which its unmarked text is negative, separately for each source."""
    bare: dict[str, list[Record]] = {}
    for record in train:
        if _get_reviewed_labels(record) is None:
            bare.setdefault(get_source_name(record), []).append(record)
    counted = {name: list_annotated_labels(source_records, name, label_map) for name, source_records in bare.items()}
    out = []
    for record in records:
        name, labels = get_source_name(record), _get_reviewed_labels(record)
        targets = (target for label in labels or () for target in label_map(label, name) or ())
        out.append(frozenset(counted.get(name, ()) if labels is None else targets))
    return out


def _get_reviewed_labels(record: Record) -> list[str] | None:
    labels = record.get("meta", {}).get("labels")
    return [label for label in labels if isinstance(label, str)] if isinstance(labels, (list, tuple)) else None


def _make_examples(
    records: Sequence[Record], annotated_labels: Sequence[frozenset[str]], label_map: LabelFinder
) -> list[Example]:
    lists = make_training_lists()
    return [
        make_example(r, get_source_name(r), labels, label_map, lists)
        for r, labels in zip(records, annotated_labels, strict=True)
    ]


def _generate_rehearsal_examples(words: int) -> list[Example]:
    """Generate template texts of at least ``words`` words in total."""
    lists, out, count = make_training_lists(), [], 0
    for record in generate_texts(max(_LEAST_REHEARSED, words // 10), 3):
        out.append(make_example(record, "synthetic", frozenset(LABELS), lambda label, _: frozenset([label]), lists))
        count += len(out[-1].words)
        if count >= words and len(out) >= _LEAST_REHEARSED:
            break
    return out

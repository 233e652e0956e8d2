"""The MITIE backend: support vector machines over word features, the best method of P5 (section 2.1, Table 3).

MITIE needs a word feature file, ``total_word_feature_extractor.dat``, learnt from much plain text by two-step CCA
(Dhillon et al. 2012, arXiv:1206.6403). It is given by path, or built here with MITIE's program ``wordrep``, which the
PyPI package ``mitie`` does not include. The model file contains the feature file, and so a list of the words of the
text behind the features.

Words are those of :mod:`allonym.models.words`, in training and in use. MITIE chooses its settings itself, by
cross-validation.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allonym.document import Interval, Span
from allonym.errors import DataError, UsageError, hide_foreign_errors, require_extra
from allonym.models.words import split_words
from allonym.scratch import open_scratch_folder
from allonym.train.records import Record, list_spans, select_outermost_spans
from allonym.train.score import Predict, Report, score_model

MODEL = "ner_model.dat"
FEATURES = "total_word_feature_extractor.dat"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the trainer.

    Attributes:
        features: path of a word feature file; empty: build it with ``wordrep``.
        text: a folder of plain text files to build it from; empty: the training text alone, which is little.
        wordrep: path of the program; empty: search the PATH.
        beta: weight of recall against precision when MITIE chooses its settings; 1: equal.
        threads: of the trainer; 0: one per core.
    """

    features: str = ""
    text: str = ""
    wordrep: str = ""
    beta: float = 0.5
    threads: int = 0


def import_mitie() -> Any:
    """Import mitie; raise :class:`MissingExtra` if it is not installed."""
    with require_extra("MITIE", "mitie"):
        import mitie
    return mitie


def fit(
    train: Sequence[Record],
    dev: Sequence[Record],
    out: Path,
    *,
    options: Options,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a model and write it to ``out/ner_model.dat``.

    Args:
        train: training records. Of overlapping spans the longest is used; spans are extended to whole words.
        dev: records for the report; MITIE itself does not use them.
        report: called once, with the whole run as epoch 1: precision, recall and f1 on ``dev``.
        resume: keep a feature file that an interrupted run has built in ``out``; the training itself starts again.

    Returns:
        ``labels``, ``words`` and ``features``, the feature file.

    Raises:
        DataError: no record has a span, or the feature file is invalid.
        UsageError: there is neither a feature file nor ``wordrep`` to build one.
    """
    mitie = import_mitie()
    features = _find_or_build_features(train, out, options, resume=resume)
    with hide_foreign_errors(f"{features}: not a MITIE word feature file"):
        trainer = mitie.ner_trainer(str(features))
    trainer.num_threads = options.threads or os.cpu_count() or 1
    trainer.beta = options.beta
    labels: set[str] = set()
    count = 0
    for record in train:
        borders = split_words(record["text"])
        if not borders:
            continue
        instance = mitie.ner_training_instance([record["text"][a:b] for a, b in borders])
        for first, last, label in _align_spans_to_words(record, borders):
            instance.add_entity(range(first, last), label)
            labels.add(label)
        trainer.add(instance)
        count += len(borders)
    if not labels:
        raise DataError("no training data: no record has a span")
    with _suppress_library_output():
        model = trainer.train()
    out.mkdir(parents=True, exist_ok=True)
    model.save_to_disk(str(out / MODEL))
    counts = score_model(_make_predictor(model), dev).strict
    report({"epoch": 1, "epochs": 1, "words": count, **counts.to_dict()})
    summary = {"labels": sorted(labels), "words": count, "features": str(features)}
    return {"epochs": 1, "best": 1, "f1": counts.f1, **summary}


def load(path: Path | str) -> Predict:
    """Load a trained model, a file or the folder of :func:`fit`, as a function from texts to spans.

    Raises:
        DataError: it is not a MITIE model.
    """
    mitie = import_mitie()
    file = Path(path) / MODEL if Path(path).is_dir() else Path(path)
    with hide_foreign_errors(f"{file}: not a MITIE named entity model"):
        return _make_predictor(mitie.named_entity_extractor(str(file)))


def _make_predictor(model: Any) -> Predict:
    return lambda texts: [_predict_spans(model, text) for text in texts]


def _predict_spans(model: Any, text: str) -> list[Span]:
    borders = split_words(text)
    if not borders:
        return []
    entities = model.extract_entities([text[a:b] for a, b in borders])
    return [Span(borders[r[0]][0], borders[r[-1]][1], label, 1.0, "mitie") for r, label, _ in entities]


def _align_spans_to_words(record: Record, borders: Sequence[Interval]) -> Iterator[tuple[int, int, str]]:
    """Return first word, word after the last, and label of each entity; no word is in two entities."""
    position = 0
    for span in select_outermost_spans(list_spans(record)):
        inside = [i for i in range(position, len(borders)) if borders[i][0] < span.end and borders[i][1] > span.start]
        if inside:
            yield inside[0], inside[-1] + 1, span.label
            position = inside[-1] + 1


def _find_or_build_features(train: Sequence[Record], out: Path, options: Options, *, resume: bool) -> Path:
    if options.features:
        path = Path(options.features)
        if not path.is_file():
            raise DataError(f"{path}: the word feature file does not exist")
        return path
    built = out / FEATURES
    if resume and built.is_file():
        return built
    program = shutil.which(options.wordrep or "wordrep")
    if program is None:
        where = f"{options.wordrep} is not a program" if options.wordrep else "no program wordrep is on the PATH"
        raise UsageError(
            f"MITIE needs a word feature file: give {FEATURES} with --set features=PATH (English and Spanish ones "
            "come with MITIE's releases, a Polish one with the paper), or build one with MITIE's program wordrep: "
            f"compile tools/wordrep of its source with cmake and give it with --set wordrep=PATH; {where}"
        )
    return build_features(program, built, Path(options.text) if options.text else None, train)


def build_features(program: str, target: Path, folder: Path | None, train: Sequence[Record]) -> Path:
    """Run ``wordrep -e`` over a folder of text files, or over the training text, and keep the feature file.

    Raises:
        DataError: wordrep fails; its output is not shown, since it may quote the text.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_scratch_folder() as scratch:
        source = folder
        if source is None:
            source = scratch / "text"
            source.mkdir()
            text = "\n\n".join(record["text"] for record in train)
            (source / "train.txt").write_text(text, encoding="utf-8")
        work = scratch / "work"
        work.mkdir()
        process = subprocess.run([program, "-e", str(source.resolve())], cwd=work, capture_output=True, check=False)
        if process.returncode or not (work / FEATURES).is_file():
            raise DataError(f"{program} -e made no {FEATURES} (exit code {process.returncode})")
        shutil.move(work / FEATURES, target)
    return target


@contextlib.contextmanager
def _suppress_library_output() -> Iterator[None]:
    """Suppress the library's output on standard output, which is for the result of the command."""
    sys.stdout.flush()
    stdout_copy = os.dup(1)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        yield
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(stdout_copy, 1)
        os.close(stdout_copy)
        os.close(sink)

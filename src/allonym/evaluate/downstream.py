"""Downstream use: the performance of a model that learnt from anonymised texts on original ones (P4 section 4.1, Table
3).

Two models of one kind learn from the same texts, one from the originals and one from their anonymised version; both
are judged on the same other texts, which are originals. Labelled fields are classified (F1), written ones summarised
(ROUGE). :data:`CALLS` are the four tasks of P2 (section 5.2) as such a table, for any records with these fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.classification import (
    MODELS,
    average_splits,
    explain_obstacle,
    find_most_frequent_class,
    measure_macro_f1,
    open_learner,
    split_stratified,
)
from allonym.evaluate.finetuned import CLASSIFIER, WRITER, Training, Writer, check_model, derive_seed, describe_model
from allonym.evaluate.pairs import check_lengths
from allonym.serial import Serialisable
from allonym.stats import Estimate, none

KINDS = ("classify", "summarise")
"""``classify``: a field with a label, F1 and accuracy; ``summarise``: one with a text or several, ROUGE-1, -2, -L."""
CALLS: Mapping[str, str] = MappingProxyType(
    {"action_item": "summarise", "summary": "summarise", "call_purpose": "classify", "call_outcome": "classify"}
)
"""P2's four tasks."""
_FINE_TUNED: Mapping[str, str] = MappingProxyType({CLASSIFIER: "classify", WRITER: "summarise"})
REPEATS: Mapping[str, int] = MappingProxyType({"classify": 20, "summarise": 5})
TEST = 0.2
_MEASURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"classify": ("f1", "accuracy"), "summarise": ("rouge1", "rouge2", "rougeL")}
)

Target = str | Sequence[str] | None
Targets = Mapping[str, Sequence[Target]]


@dataclass(frozen=True, slots=True)
class Score(Serialisable):
    """One measure of one task, all 0 to 1, mean over splits.

    Attributes:
        original, anonymised: of models that learnt from originals, from anonymised texts; judged on originals.
        difference: anonymised minus original, split by split: below 0, learning from anonymised texts costs.
    """

    original: Estimate
    anonymised: Estimate
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Task(Serialisable):
    """One task.

    Attributes:
        kind: one of :data:`KINDS`.
        texts: how many have a target; classes: of a classification, else 0; repeats: splits.
        scores: by measure: ``f1`` (macro) and ``accuracy``, or ``rouge1``, ``rouge2``, ``rougeL``.
        floor, ceiling: the same measures without learning: of always saying the most frequent class, or of a text's
            first sentences; and of the sentences that are greedily best for the references. Empty where there is none:
            a model that writes has no ceiling.
    """

    kind: str
    texts: int
    classes: int
    repeats: int
    scores: Mapping[str, Score]
    floor: Mapping[str, Estimate]
    ceiling: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Downstream(Serialisable):
    """All tasks by the name of their field, and the model; of a fine-tuned one its training, without the path of its
    folder."""

    model: str
    tasks: Mapping[str, Task]


def downstream(
    original: Sequence[str],
    anonymised: Sequence[str],
    targets: Targets,
    tasks: Mapping[str, str],
    *,
    anonymised_targets: Targets | None = None,
    model: str = "linear",
    training: Training | None = None,
    repeats: int | None = None,
    test: float = TEST,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> Downstream:
    """Compare training on anonymised texts with training on originals, tested on originals.

    Args:
        original, anonymised: the same texts in the same order.
        targets: field to one target per text: a label, or a reference text or several; texts without one (None, empty)
            are left out of the task.
        tasks: field to its kind, one of :data:`KINDS`.
        anonymised_targets: what goes with the anonymised texts, such as anonymised summaries; fields that are missing
            there, and labels, are those of ``targets``.
        model: one of :data:`MODELS`; or, as in P4, ``finetune:`` and the folder of a pretrained encoder such as BERT,
            to classify, ``seq2seq:`` and that of an encoder-decoder such as BART, to summarise. These are fine-tuned
            for each split and version: minutes to hours each.
        training: how that is done; None: three epochs, learning rate 2e-5, batches of 8.
        repeats: splits; None: 20 to classify, 5 to summarise.
        test: share of the texts that is tested on, between 0 and 1.
        seed: of the splits.
        advance: called with splits done and in all.

    Returns:
        Estimates without a value, with the reason, where a task cannot be learnt and tested.

    Raises:
        DataError: unequal lengths, no texts, a target of another type, or a folder without such a network.
        UsageError: no task, too few repeats, a share that leaves nothing on one side, no such folder, or a model that
            is not for this kind of task.
        UnknownNameError: no such field, kind or model.
        MissingExtra: a model to fine-tune without torch or transformers.
    """
    check_lengths(original, anonymised)
    if not tasks:
        raise UsageError("downstream: a task is required, such as {'purpose': 'classify', 'summary': 'summarise'}")
    check_model(model, MODELS, tuple(_FINE_TUNED), "downstream")
    if repeats is not None and repeats < 2:
        raise UsageError(f"downstream: two repeats at least are required, got {repeats}")
    if not 0 < test < 1:
        raise UsageError(f"downstream: test must be between 0 and 1, got {test:g}")
    for name, kind in tasks.items():
        if kind not in KINDS:
            raise UnknownNameError("kind of task", kind, KINDS, f"task {name!r}")
        for prefix, able in _FINE_TUNED.items():
            if model.startswith(prefix) and kind != able:
                raise UsageError(f"downstream: {prefix}FOLDER is for tasks to {able}, but task {name!r} is to {kind}")
        if name not in targets:
            raise UnknownNameError("field", name, sorted(targets), "downstream")
        check_lengths(original, anonymised, targets[name])
    counts = {name: repeats or REPEATS[kind] for name, kind in tasks.items()}
    results: dict[str, Task] = {}
    finished, total = 0, sum(counts.values())
    for name, kind in tasks.items():

        def report(splits: int, finished: int = finished) -> None:
            if advance is not None:
                advance(finished + splits, total)

        target_values = _read_targets(targets[name], kind, name)
        others = (anonymised_targets or {}).get(name) if kind == "summarise" else None
        if others is not None:
            check_lengths(original, anonymised, others)
        learnt = target_values if others is None else _read_targets(others, kind, name)
        indices = [i for i in range(len(target_values)) if target_values[i] and learnt[i]]
        texts = [[version[i] for i in indices] for version in (original, anonymised)]
        references = [[column[i] for i in indices] for column in (target_values, learnt)]
        experiment = _Experiment(texts, references, model, training, counts[name], test, seed, report)
        results[name] = experiment.classify() if kind == "classify" else experiment.summarise()
        finished += counts[name]
        report(0, finished)
    return Downstream(describe_model(model, training), results)


def _read_targets(values: Sequence[Target], kind: str, name: str) -> list[tuple[str, ...]]:
    return [_read_target(value, kind, name, number) for number, value in enumerate(values, 1)]


def _read_target(value: object, kind: str, name: str, number: int) -> tuple[str, ...]:
    """Return a label or references; empty where there is none."""
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return ()
    if kind == "classify":
        if isinstance(value, (str, int)):
            return (str(value).strip(),) if str(value).strip() else ()
        raise DataError(f"task {name!r}: text {number}: a label is required, got {type(value).__name__}")
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(v, str) for v in several):
        raise DataError(f"task {name!r}: text {number}: a text or a list of texts is required")
    return tuple(v for v in several if v.strip())


@dataclass(frozen=True, slots=True)
class _Experiment:
    """One task: the texts and targets of both versions, and how models learn and are judged."""

    texts: Sequence[list[str]]
    targets: Sequence[list[tuple[str, ...]]]
    model: str
    training: Training | None
    repeats: int
    test: float
    seed: int
    report: Callable[[int], None]

    def classify(self) -> Task:
        """Judge classifiers that learnt each version on the originals of the test side."""
        labels = [target[0] for target in self.targets[0]]
        sizes = Counter(labels)
        if reason := explain_obstacle(sizes):
            return _make_missing_task("classify", len(labels), len(sizes), reason)
        y = np.unique(labels, return_inverse=True)[1]
        learner = open_learner(self.model, self.texts, self.training, self.seed)
        rng = np.random.default_rng(self.seed)
        scores, floor = np.empty((self.repeats, 2, 2)), np.empty((self.repeats, 2))
        ratio = 0.0
        for r in range(self.repeats):
            train, tested = split_stratified(y, self.test, rng)
            ratio = len(tested) / len(train)
            for version in (0, 1):
                scores[r, version] = _score_classes(y[tested], learner.predict(train, y[train], tested, version))
            floor[r] = _score_classes(y[tested], np.full(len(tested), find_most_frequent_class(y[train])))
            self.report(r + 1)
        names = _MEASURES["classify"]
        floors = {name: average_splits(floor[:, i], ratio) for i, name in enumerate(names)}
        return Task("classify", len(y), len(sizes), self.repeats, _estimate_scores(scores, names, ratio), floors, {})

    def summarise(self) -> Task:
        """Judge summaries by models that learnt each version on the originals of the test side."""
        from allonym.evaluate.summarising import Summariser, average_length, measure_rouge

        originals, references = self.texts[0], self.targets[0]
        n = len(originals)
        if n < 4:
            return _make_missing_task("summarise", n, 0, "four texts with a reference at least are required")
        length = average_length(references)
        is_written = self.model.startswith(WRITER)
        writer = _WrittenSummaries(self) if is_written else _ExtractedSummaries(self, length)
        first = Summariser().fit([], [], length)

        def judge(summaries: Sequence[str], tested: list[int]) -> Any:
            pairs = zip(summaries, tested, strict=True)
            return np.mean([measure_rouge(summary, references[i]) for summary, i in pairs], axis=0)

        rng = np.random.default_rng(self.seed)
        count = min(n - 2, max(1, round(self.test * n)))
        scores, ends = np.empty((self.repeats, 2, 3)), np.zeros((self.repeats, 2, 3))
        for r in range(self.repeats):
            order = rng.permutation(n)
            tested, train = np.sort(order[:count]).tolist(), np.sort(order[count:]).tolist()
            for version in (0, 1):
                scores[r, version] = judge(writer.summarise(version, train, tested), tested)
            ends[r, 0] = judge([first.summarise(writer.texts[i]) for i in tested], tested)
            if isinstance(writer, _ExtractedSummaries):
                ends[r, 1] = judge([writer.extract_best(i) for i in tested], tested)
            self.report(r + 1)
        ratio = count / (n - count)
        names = _MEASURES["summarise"]
        floor, ceiling = (
            {name: average_splits(ends[:, end, i], ratio) for i, name in enumerate(names)} for end in (0, 1)
        )
        estimates = _estimate_scores(scores, names, ratio)
        return Task("summarise", n, 0, self.repeats, estimates, floor, {} if is_written else ceiling)


class _WrittenSummaries:
    """Summaries that a fine-tuned network writes."""

    def __init__(self, experiment: _Experiment) -> None:
        from allonym.evaluate.summarising import split_sentences

        self.texts = [split_sentences(text, model=experiment.model) for text in experiment.texts[0]]
        self._experiment = experiment
        self._writer = Writer(experiment.model, experiment.training)

    def summarise(self, version: int, train: list[int], tested: list[int]) -> list[str]:
        texts, targets = self._experiment.texts, self._experiment.targets
        learnt = [texts[version][i] for i in train], [targets[version][i] for i in train]
        return self._writer.write_summaries(
            *learnt, [texts[0][i] for i in tested], derive_seed(self._experiment.seed, train)
        )


class _ExtractedSummaries:
    """Summaries of sentences of the text."""

    def __init__(self, experiment: _Experiment, length: int) -> None:
        from allonym.evaluate.summarising import select_best_sentences, split_sentences

        self._model, self._seed, self._length = experiment.model, experiment.seed, length
        self._versions = [
            [split_sentences(text, model=self._model) for text in version] for version in experiment.texts
        ]
        self._best = [
            [select_best_sentences(text, references, length) for text, references in zip(version, targets, strict=True)]
            for version, targets in zip(self._versions, experiment.targets, strict=True)
        ]
        self.texts = self._versions[0]

    def summarise(self, version: int, train: list[int], tested: list[int]) -> list[str]:
        from allonym.evaluate.summarising import Summariser

        texts, best = self._versions[version], self._best[version]
        summariser = Summariser(self._model, self._seed)
        model = summariser.fit([texts[i] for i in train], [best[i] for i in train], self._length)
        return [model.summarise(self.texts[i]) for i in tested]

    def extract_best(self, i: int) -> str:
        """Return the sentences of an original that together are most like its references."""
        return " ".join(self.texts[i].sentences[k] for k in sorted(self._best[0][i]))


def _score_classes(truth: Any, predicted: Any) -> tuple[float, float]:
    """Return the mean F1 over the classes that occur, and the share that is right."""
    return measure_macro_f1(truth, predicted), float((truth == predicted).mean())


def _estimate_scores(scores: Any, names: Sequence[str], ratio: float) -> dict[str, Score]:
    """Return scores from an array (repeats, version, measure)."""
    columns = ((name, scores[:, 0, i], scores[:, 1, i]) for i, name in enumerate(names))
    return {
        name: Score(*(average_splits(values, ratio) for values in (old, new, new - old))) for name, old, new in columns
    }


def _make_missing_task(kind: str, texts: int, classes: int, reason: str) -> Task:
    missing = none(reason, texts)
    scores = {name: Score(missing, missing, missing) for name in _MEASURES[kind]}
    return Task(kind, texts, classes, 0, scores, {}, {})

"""Downstream use: the performance of a model that learnt from anonymised texts on original ones (P4 section 4.1, Table
3).

Two models of one kind learn from the same texts, one from the originals and one from their anonymised version; both
are judged on the same other texts, which are originals. Labelled fields are classified (F1), written ones summarised
(ROUGE). :data:`CALLS` are the four tasks of P2 (section 5.2) as such a table, for any records with these fields.

Utility loss: how much worse a classifier performs on anonymised texts than on originals (P3 3.1.2.1).

Both versions are learnt and judged apart, on the same splits: trained on originals and tested on originals, trained on
anonymised and tested on anonymised. What a model that learnt from anonymised texts is worth on originals is another
question, that of :func:`downstream`. Both use the same classifiers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.finetuned import (
    CLASSIFIER,
    WRITER,
    Classifier,
    Training,
    Writer,
    check_model_available,
    derive_split_seed,
    describe_model,
)
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress, shift_progress
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average

KINDS = ("classify", "summarise")
"""``classify``: a field with a label, F1 and accuracy; ``summarise``: one with a text or several, ROUGE-1, -2, -L."""
CALLS: Mapping[str, str] = MappingProxyType(
    {"action_item": "summarise", "summary": "summarise", "call_purpose": "classify", "call_outcome": "classify"}
)
"""P2's four tasks."""
_FINE_TUNED: Mapping[str, str] = MappingProxyType({CLASSIFIER: "classify", WRITER: "summarise"})
REPEATS: Mapping[str, int] = MappingProxyType({"classify": 20, "summarise": 5})
UTILITY_REPEATS = 20
TEST = 0.2
_MEASURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"classify": ("f1", "accuracy"), "summarise": ("rouge1", "rouge2", "rougeL")}
)

Target = str | Sequence[str] | None
Targets = Mapping[str, Sequence[Target]]
Texts = Sequence[list[str]]
References = Sequence[list[tuple[str, ...]]]
"""Texts, and their labels or reference texts, of both versions: originals and anonymised texts."""


class Score(Serialisable):
    """One measure of one task, all 0 to 1, mean over splits.

    Attributes:
        original, anonymised: of models that learnt from originals, from anonymised texts; judged on originals.
        difference: anonymised minus original, split by split: below 0, learning from anonymised texts costs.
    """

    original: Estimate
    anonymised: Estimate
    difference: Estimate


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
    advance: Advance | None = None,
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
    check_model_available(model, MODELS, tuple(_FINE_TUNED), "downstream")
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
        target_values = _read_targets(targets[name], kind, name)
        others = (anonymised_targets or {}).get(name) if kind == "summarise" else None
        if others is not None:
            check_lengths(original, anonymised, others)
        learnt = target_values if others is None else _read_targets(others, kind, name)
        indices = [i for i in range(len(target_values)) if target_values[i] and learnt[i]]
        texts = [[version[i] for i in indices] for version in (original, anonymised)]
        references = [[column[i] for i in indices] for column in (target_values, learnt)]
        experiment = (_ClassificationExperiment if kind == "classify" else _SummaryExperiment)(
            texts, references, model, training, seed
        )
        step = shift_progress(advance, finished, total)
        results[name] = _run_experiment(experiment, counts[name], test, step)
        finished += counts[name]
        if advance is not None:
            advance(finished, total)
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


def _run_experiment(
    experiment: _ClassificationExperiment | _SummaryExperiment, repeats: int, test_share: float, advance: Advance | None
) -> Task:
    """Let models learn the texts and targets of both versions on random splits, and judge them on originals."""
    kind, n, classes, names = experiment.kind, experiment.size, experiment.classes, _MEASURES[experiment.kind]
    if experiment.obstacle:
        missing = none(experiment.obstacle, n)
        return Task(kind, n, classes, 0, {name: Score(missing, missing, missing) for name in names}, {}, {})
    experiment.open_model()
    rng = np.random.default_rng(experiment.seed)
    scores, ends = np.empty((repeats, 2, len(names))), np.zeros((repeats, 2, len(names)))
    ratio = 0.0
    for r in iterate_with_progress(range(repeats), advance, repeats):
        train, tested = experiment.split(test_share, rng)
        ratio = len(tested) / len(train)
        scores[r] = [experiment.train_and_score(version, train, tested) for version in (0, 1)]
        ends[r] = experiment.score_floor_and_ceiling(train, tested)
    old, new = scores[:, 0], scores[:, 1]
    original, anonymised, change, floor, ceiling = (
        {name: average_over_splits(values[:, i], ratio) for i, name in enumerate(names)}
        for values in (old, new, new - old, ends[:, 0], ends[:, 1])
    )
    estimates = {name: Score(original[name], anonymised[name], change[name]) for name in names}
    return Task(kind, n, classes, repeats, estimates, floor, ceiling if experiment.has_ceiling else {})


class _ClassificationExperiment:
    """Classifiers that learn the labels of texts, one for each version."""

    kind, has_ceiling = "classify", False

    def __init__(self, texts: Texts, targets: References, model: str, training: Training | None, seed: int) -> None:
        self.seed = seed
        labels = [target[0] for target in targets[0]]
        sizes = Counter(labels)
        self.size, self.classes, self.obstacle = len(labels), len(sizes), explain_obstacle(sizes)
        self._y = np.unique(labels, return_inverse=True)[1]
        self._open_learner = partial(open_learner, model, texts, training, seed)

    def open_model(self) -> None:
        self._learner = self._open_learner()

    def split(self, test: float, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return the indices of texts to learn from and to test on."""
        return split_stratified(self._y, test, rng)

    def train_and_score(self, version: int, train: Any, tested: Any) -> Any:
        """Return the measures of a model that learnt from a version."""
        return _measure_macro_f1_and_accuracy(
            self._y[tested], self._learner.train_and_predict(train, self._y[train], tested, version)
        )

    def score_floor_and_ceiling(self, train: Any, tested: Any) -> Any:
        """Return the measures of floor and ceiling; zeros where there is none."""
        frequent = np.full(len(tested), find_most_frequent_class(self._y[train]))
        return _measure_macro_f1_and_accuracy(self._y[tested], frequent), (0, 0)


class _SummaryExperiment:
    """Summaries that a fine-tuned network writes, or of sentences of the text; methods as of a classification."""

    kind, classes = "summarise", 0

    def __init__(self, texts: Texts, targets: References, model: str, training: Training | None, seed: int) -> None:
        self.seed, self.size, self.has_ceiling = seed, len(texts[0]), not model.startswith(WRITER)
        self.obstacle = "four texts with a reference at least are required" if self.size < 4 else ""
        self._texts, self._targets, self._model, self._training = texts, targets, model, training

    def open_model(self) -> None:
        from allonym.evaluate.summarising import average_reference_length, make_sentence_text, select_best_sentences

        self._length = average_reference_length(self._targets[0])
        versions = self._texts if self.has_ceiling else self._texts[:1]
        self._sentences = [[make_sentence_text(text, model=self._model) for text in version] for version in versions]
        if self.has_ceiling:
            pairs = (zip(*version, strict=True) for version in zip(self._sentences, self._targets, strict=True))
            self._best = [[select_best_sentences(*pair, self._length) for pair in version] for version in pairs]
        else:
            self._writer = Writer(self._model, self._training)

    def split(self, test: float, rng: np.random.Generator) -> tuple[Any, Any]:
        count, order = min(self.size - 2, max(1, round(test * self.size))), rng.permutation(self.size)
        return np.sort(order[count:]).tolist(), np.sort(order[:count]).tolist()

    def train_and_score(self, version: int, train: Any, tested: Any) -> Any:
        if self.has_ceiling:
            texts, best = self._sentences[version], self._best[version]
            return self._score_rouge(
                self._extract_summaries([texts[i] for i in train], [best[i] for i in train], tested), tested
            )
        learnt = [self._texts[version][i] for i in train]
        references, judged = [self._targets[version][i] for i in train], [self._texts[0][i] for i in tested]
        summaries = self._writer.train_and_summarise(learnt, references, judged, derive_split_seed(self.seed, train))
        return self._score_rouge(summaries, tested)

    def score_floor_and_ceiling(self, train: Any, tested: Any) -> Any:
        floor = self._score_rouge(self._extract_summaries([], [], tested), tested)
        if not self.has_ceiling:
            return floor, (0, 0, 0)
        texts, best = self._sentences[0], self._best[0]
        return floor, self._score_rouge(
            [" ".join(texts[i].sentences[k] for k in sorted(best[i])) for i in tested], tested
        )

    def _extract_summaries(self, learnt: list[Any], best: list[list[int]], tested: Sequence[int]) -> list[str]:
        """Return summaries of sentences by a model that learnt from texts and their best sentences."""
        from allonym.evaluate.summarising import Summariser

        model = Summariser(self._model, self.seed).fit(learnt, best, self._length)
        return [model.summarise(self._sentences[0][i]) for i in tested]

    def _score_rouge(self, summaries: Sequence[str], tested: Sequence[int]) -> Any:
        """Return the means of ROUGE-1, -2 and -L against the references of the tested texts."""
        from allonym.evaluate.summarising import measure_rouge

        pairs = zip(summaries, tested, strict=True)
        return np.mean([measure_rouge(summary, self._targets[0][i]) for summary, i in pairs], axis=0)


def _measure_macro_f1_and_accuracy(truth: Any, predicted: Any) -> tuple[float, float]:
    """Return the mean F1 over the classes that occur, and the share that is right."""
    return measure_macro_f1(truth, predicted), float((truth == predicted).mean())


class Utility(Serialisable):
    """What :func:`utility_loss` measures.

    Attributes:
        model: the classifier; a fine-tuned one with how it was trained, without the way to its folder.
        texts, classes, repeats: how many; texts are those with a label.
        by_group: whether whole groups are held out, such as the subjects of the texts; else single texts are.
        before, after: accuracy on originals and on anonymised texts, mean over the repeats.
        loss: accuracy before minus after, of the same split: above 0, anonymised texts are worse. In shares: 0.0084 is
            P3's 0.84 points.
        macro_before, macro_after, macro_loss: the same of the macro F1.
        chance: accuracy of always saying the most frequent class.
        random_loss: the loss in random splits of single texts, as in P3, where whole groups are held out otherwise: a
            classifier may know a group from other texts. No value without groups, nor of a fine-tuned model.
    """

    DERIVED = ("reading",)

    model: str
    texts: int
    classes: int
    repeats: int
    by_group: bool
    before: Estimate
    after: Estimate
    loss: Estimate
    macro_before: Estimate
    macro_after: Estimate
    macro_loss: Estimate
    chance: Estimate
    random_loss: Estimate

    @property
    def reading(self) -> str:
        """The loss in words; an interval that includes 0 shows no loss."""
        if math.isnan(self.loss.value):
            return self.loss.method
        points = f"{100 * self.loss.value:+.2f} points [{100 * self.loss.low:+.2f}, {100 * self.loss.high:+.2f}]"
        if self.loss.low <= 0 <= self.loss.high:
            return f"loss {points}: the interval includes 0, so a loss is neither shown nor ruled out up to its end"
        return f"loss {points}: anonymised texts are {'worse' if self.loss.value > 0 else 'better'}"


def utility_loss(
    original: Sequence[str],
    anonymised: Sequence[str],
    labels: Sequence[str | None],
    *,
    groups: Sequence[str] | None = None,
    model: str = "linear",
    training: Training | None = None,
    repeats: int = UTILITY_REPEATS,
    test: float = TEST,
    seed: int = 0,
    advance: Advance | None = None,
) -> Utility:
    """Measure the accuracy of a classifier before and after, on the same random splits.

    Args:
        original, anonymised: the same texts in the same order.
        labels: class of each; texts with None or an empty label are left out.
        groups: such as authors; no group is on both sides of a split. None: each text for itself, and every class is
            split in the same proportion.
        model: one of :data:`MODELS`, or ``finetune:`` and the folder of a pretrained encoder such as BERT or RoBERTa,
            which is fine-tuned for each split and version as in P3 and P4: minutes to hours each.
        training: how that is fine-tuned; None: three epochs, learning rate 2e-5, batches of 8.
        repeats: splits; 20 and more for an interval worth reading.
        test: share of the texts (of the groups) that is tested on, between 0 and 1.
        seed: of the splits.
        advance: called with splits done and splits in all.

    Returns:
        Estimates without a value, with the reason, where there is one class only or a class is too small to split.

    Raises:
        DataError: unequal lengths, no texts, or the folder holds no encoder.
        UsageError: fewer than two repeats, a share that leaves nothing on one side, or no such folder.
        UnknownNameError: no such model.
        MissingExtra: ``finetune:`` without torch or transformers.
    """
    check_lengths(original, anonymised, labels, groups)
    check_model_available(model, MODELS, (CLASSIFIER,), "utility loss")
    if repeats < 2:
        raise UsageError(f"utility loss: two repeats at least are required, got {repeats}")
    if not 0 < test < 1:
        raise UsageError(f"utility loss: test must be between 0 and 1, got {test:g}")
    labelled = [i for i, label in enumerate(labels) if label not in (None, "")]
    names, y = np.unique([str(labels[i]) for i in labelled], return_inverse=True)
    sizes = Counter(y.tolist())
    owners = None if groups is None else np.unique([str(groups[i]) for i in labelled], return_inverse=True)[1]
    reason = explain_obstacle(sizes)
    if not reason and owners is not None and len(set(owners.tolist())) < 4:
        reason = "four groups at least are required"
    name = describe_model(model, training)
    if reason:
        missing = none(reason, len(labelled))
        return Utility(name, len(labelled), len(names), 0, owners is not None, *(missing for _ in range(8)))
    versions = [[texts[i] for i in labelled] for texts in (original, anonymised)]
    learners = [open_learner(model, [version], training, seed) for version in versions]
    rng = np.random.default_rng(seed)
    scores = np.empty((repeats, 2, 2))
    ratios: list[float] = []
    for r in iterate_with_progress(range(repeats), advance, repeats):
        train, tested = split_stratified(y, test, rng) if owners is None else _split_groups(y, owners, test, rng)
        ratios.append(len(tested) / len(train))
        for version, learner in enumerate(learners):
            predicted = learner.train_and_predict(train, y[train], tested)
            scores[r, version] = float((predicted == y[tested]).mean()), measure_macro_f1(y[tested], predicted)
    ratio = float(np.mean(ratios))
    estimates = [
        average_over_splits(values, ratio)
        for before, after in (scores[:, :, 0].T, scores[:, :, 1].T)
        for values in (before, after, before - after)
    ]
    estimates.append(Estimate.exact(max(sizes.values()) / len(labelled), len(labelled)))
    random_loss = none("single texts are held out already" if owners is None else "a model is fine-tuned")
    if owners is not None and not model.startswith(CLASSIFIER):
        options: dict[str, Any] = {"model": model, "repeats": repeats, "test": test, "seed": seed}
        random_loss = utility_loss(original, anonymised, labels, **options).loss
    estimates.append(random_loss)
    return Utility(name, len(labelled), len(names), repeats, owners is not None, *estimates)


def _split_groups(y: Ints, owners: Ints, test_share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return indices to learn from and to test on, by whole groups, with at least two classes to learn from."""
    groups = int(owners.max()) + 1
    count = min(groups - 1, max(1, round(test_share * groups)))
    for _ in range(100):
        tested = np.isin(owners, rng.permutation(groups)[:count])
        if len(np.unique(y[~tested])) > 1:
            return np.flatnonzero(~tested), np.flatnonzero(tested)
    raise DataError("utility loss: classes and groups go together, so that no split leaves two classes to learn from")


MODELS = ("linear", "encoder")
"""Classifiers: ``linear`` is a linear support vector machine on TF-IDF of words and pairs of words; ``encoder`` a
logistic regression on vectors of the embedded sentence encoder. ``finetune:FOLDER`` beside them is a pretrained
encoder (:mod:`allonym.evaluate.finetuned`)."""

Ints = NDArray[np.int64]


class Learner(Protocol):
    """Features of all texts of all versions, computed once; a fresh model for each split."""

    def train_and_predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        """Learn texts of a version with classes ``y``, and predict the classes of texts of the first version."""


def open_learner(model: str, versions: Sequence[Sequence[str]], training: Training | None, seed: int) -> Learner:
    """Open the learner of a model of :data:`MODELS` or ``finetune:FOLDER``; all versions hold the same texts."""
    if model.startswith(CLASSIFIER):
        return Classifier(model, training, versions, seed)
    return _WordLearner(versions) if model == "linear" else _VectorLearner(versions)


class _WordLearner:
    """TF-IDF of words and pairs of words; vocabulary and weights of the training side only."""

    def __init__(self, versions: Sequence[Sequence[str]]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._size = len(versions[0])
        try:
            texts = [text for version in versions for text in version]
            self._counts = CountVectorizer(ngram_range=(1, 2)).fit_transform(texts).tocsr()
        except ValueError:  # its way to say that there are no words
            self._counts = None

    def train_and_predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.svm import LinearSVC

        if self._counts is None:
            return np.full(len(test), find_most_frequent_class(y), np.int64)
        learnt = self._counts[train + version * self._size]
        columns = np.flatnonzero(learnt.getnnz(axis=0) >= min(2, len(train)))
        columns = columns if len(columns) else np.arange(learnt.shape[1])
        weights = TfidfTransformer(sublinear_tf=True)
        model = LinearSVC(random_state=0).fit(weights.fit_transform(learnt[:, columns]), y)
        return np.asarray(model.predict(weights.transform(self._counts[test][:, columns])), np.int64)


class _VectorLearner:
    """Vectors of the embedded sentence encoder, a logistic regression on them."""

    def __init__(self, versions: Sequence[Sequence[str]]) -> None:
        from allonym.models.encoder import encode

        self._size = len(versions[0])
        self._rows = encode([text for version in versions for text in version])

    def train_and_predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=10.0, max_iter=1000).fit(self._rows[train + version * self._size], y)
        return np.asarray(model.predict(self._rows[test]), np.int64)


def find_most_frequent_class(y: Ints) -> int:
    """Return the most frequent class, the first of several."""
    return int(Counter(y.tolist()).most_common(1)[0][0])


def explain_obstacle(sizes: Counter[Any]) -> str:
    """Return why classes of these sizes cannot be learnt and tested; empty where they can."""
    if not sizes:
        return "no text has a label"
    if len(sizes) < 2:
        return "one class only"
    return "a class has one text only, so it cannot be learnt and tested" if min(sizes.values()) < 2 else ""


def split_stratified(y: Ints, test_share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return indices to learn from and to test on: the same share of each class, and at least one on each side."""
    tested = np.zeros(len(y), bool)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        tested[rng.permutation(members)[: min(len(members) - 1, max(1, round(test_share * len(members))))]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def measure_macro_f1(truth: Ints, predicted: Ints) -> float:
    """Return the mean F1 over the classes that occur in the truth."""
    scores = []
    for label in np.unique(truth).tolist():
        right = int(((truth == label) & (predicted == label)).sum())
        scores.append(2 * right / (int((truth == label).sum()) + int((predicted == label).sum())))
    return math.fsum(scores) / len(scores)


def average_over_splits(values: Any, test_to_train: float) -> Estimate:
    """Return the mean over random splits, with an interval that allows for their overlap.

    Splits share texts, so their plain standard error is far too small: the variance is multiplied by 1 / k + test /
    train in place of 1 / k (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).

    Args:
        values: one per split.
        test_to_train: size of the test side over that of the training side.
    """
    numbers = [float(v) for v in values]
    mean = average(numbers)
    if len(numbers) < 2:
        return mean
    half = (mean.high - mean.low) / 2 * math.sqrt(1 + len(numbers) * test_to_train)
    method = "mean over splits, corrected t, 95%"
    return Estimate(mean.value, mean.value - half, mean.value + half, len(numbers), method)

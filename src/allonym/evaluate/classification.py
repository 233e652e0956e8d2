"""Utility loss: how much worse a classifier performs on anonymised texts than on originals (P3 3.1.2.1).

Both versions are learnt and judged apart, on the same splits: trained on originals and tested on originals, trained on
anonymised and tested on anonymised. What a model that learnt from anonymised texts is worth on originals is another
question, see :mod:`allonym.evaluate.downstream`. Both use the classifiers of this module.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError
from allonym.evaluate.finetuned import (
    CLASSIFIER,
    Classifier,
    Training,
    check_model_available,
    derive_split_seed,
    describe_model,
)
from allonym.evaluate.pairs import check_lengths, iterate_with_progress
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average

REPEATS = 20
TEST = 0.2


class Utility(Serialisable):
    """What :func:`utility_loss` measures.

    Attributes:
        model: the classifier; a fine-tuned one with how it was trained, without the way to its folder.
        texts, classes, repeats: how many; texts are those with a label.
        before, after: accuracy on originals and on anonymised texts, mean over the repeats.
        loss: accuracy before minus after, of the same split: above 0, anonymised texts are worse. In shares: 0.0084 is
            P3's 0.84 points.
        macro_before, macro_after, macro_loss: the same of the macro F1.
        chance: accuracy of always saying the most frequent class.
    """

    DERIVED = ("reading",)

    model: str
    texts: int
    classes: int
    repeats: int
    before: Estimate
    after: Estimate
    loss: Estimate
    macro_before: Estimate
    macro_after: Estimate
    macro_loss: Estimate
    chance: Estimate

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
    repeats: int = REPEATS,
    test: float = TEST,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
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
        return Utility(name, len(labelled), len(names), 0, *(missing for _ in range(7)))
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
    return Utility(name, len(labelled), len(names), repeats, *estimates)


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
        return _NetworkLearner(Classifier(model, training), versions, seed)
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


class _NetworkLearner:
    """A pretrained encoder, fine-tuned for each split."""

    def __init__(self, classifier: Classifier, versions: Sequence[Sequence[str]], seed: int) -> None:
        self._classifier = classifier
        self._rows = [classifier.tokenise(version) for version in versions]
        self._seed = seed

    def train_and_predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        learnt, judged = [self._rows[version][i] for i in train], [self._rows[0][i] for i in test]
        return self._classifier.train_and_predict(learnt, y, judged, derive_split_seed(self._seed, train))


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


def average_over_splits(values: Any, test_to_train: float, level: float = 0.95) -> Estimate:
    """Return the mean over random splits, with an interval that allows for their overlap.

    Splits share texts, so their plain standard error is far too small: the variance is multiplied by 1 / k + test /
    train in place of 1 / k (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).

    Args:
        values: one per split.
        test_to_train: size of the test side over that of the training side.
        level: of the interval.
    """
    numbers = [float(v) for v in values]
    mean = average(numbers, level)
    if len(numbers) < 2:
        return mean
    half = (mean.high - mean.low) / 2 * math.sqrt(1 + len(numbers) * test_to_train)
    method = f"mean over splits, corrected t, {level:.0%}"
    return Estimate(mean.value, mean.value - half, mean.value + half, len(numbers), method)

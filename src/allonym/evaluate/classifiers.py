"""Classifiers of texts that learn one version of them and judge the same or another, split by split."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allonym.evaluate.finetuned import CLASSIFIER, Classifier, Training, derive_seed
from allonym.stats import Estimate
from allonym.stats.samples import average

MODELS = ("linear", "encoder")
"""Classifiers: ``linear`` is a linear support vector machine on TF-IDF of words and pairs of words; ``encoder`` a
logistic regression on vectors of the embedded sentence encoder. ``finetune:FOLDER`` beside them is a pretrained
encoder (:mod:`allonym.evaluate.finetuned`)."""

Ints = NDArray[np.int64]


class Learner(Protocol):
    """Features of all texts of all versions, computed once; a fresh model for each split."""

    def predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
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

    def predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
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

    def predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=10.0, max_iter=1000).fit(self._rows[train + version * self._size], y)
        return np.asarray(model.predict(self._rows[test]), np.int64)


class _NetworkLearner:
    """A pretrained encoder, fine-tuned for each split."""

    def __init__(self, classifier: Classifier, versions: Sequence[Sequence[str]], seed: int) -> None:
        self._classifier = classifier
        self._rows = [classifier.read(version) for version in versions]
        self._seed = seed

    def predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        learnt, judged = [self._rows[version][i] for i in train], [self._rows[0][i] for i in test]
        return self._classifier.predict(learnt, y, judged, derive_seed(self._seed, train))


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


def split_stratified(y: Ints, test: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return indices to learn from and to test on: the same share of each class, and at least one on each side."""
    tested = np.zeros(len(y), bool)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        tested[rng.permutation(members)[: min(len(members) - 1, max(1, round(test * len(members))))]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def measure_macro_f1(truth: Ints, predicted: Ints) -> float:
    """Return the mean F1 over the classes that occur in the truth."""
    scores = []
    for label in np.unique(truth).tolist():
        right = int(((truth == label) & (predicted == label)).sum())
        scores.append(2 * right / (int((truth == label).sum()) + int((predicted == label).sum())))
    return math.fsum(scores) / len(scores)


def average_splits(values: Any, ratio: float, level: float = 0.95) -> Estimate:
    """Return the mean over random splits, with an interval that allows for their overlap.

    Splits share texts, so their plain standard error is far too small: the variance is multiplied by 1 / k + test /
    train in place of 1 / k (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).

    Args:
        values: one per split.
        ratio: size of the test side over that of the training side.
        level: of the interval.
    """
    numbers = [float(v) for v in values]
    mean = average(numbers, level)
    if len(numbers) < 2:
        return mean
    half = (mean.high - mean.low) / 2 * math.sqrt(1 + len(numbers) * ratio)
    method = f"mean over splits, corrected t, {level:.0%}"
    return Estimate(mean.value, mean.value - half, mean.value + half, len(numbers), method)

"""Utility loss: how much worse a classifier does on anonymised texts than on originals (P3 3.1.2.1).

Both versions are learnt and judged apart, on the same splits: trained on originals and tested on originals, trained on
anonymised and tested on anonymised. What a model that learnt from anonymised texts is worth on originals is another
question, see :mod:`allonym.evaluate.downstream`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError
from allonym.evaluate.finetuned import CLASSIFIER, Classifier, Training, check_model, described, seed_of
from allonym.evaluate.pairs import checked
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average

__all__ = ["MODELS", "Utility", "resampled", "utility_loss"]

REPEATS = 20
TEST = 0.2
MODELS = ("linear", "encoder")
"""Classifiers: ``linear`` is a linear support vector machine on TF-IDF of words and pairs of words; ``encoder`` a
logistic regression on vectors of the embedded sentence encoder. ``finetune:FOLDER`` beside them is a pretrained
encoder (:mod:`allonym.evaluate.finetuned`)."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
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


class _Learner(Protocol):
    """Features of all texts of one version, computed once; a fresh model for each split."""

    def predict(self, train: Ints, y: Ints, test: Ints) -> Ints: ...


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
    """Accuracy of a classifier before and after, on the same random splits.

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
    checked(original, anonymised, labels, *([groups] if groups is not None else []))
    check_model(model, MODELS, (CLASSIFIER,), "utility loss")
    if repeats < 2:
        raise UsageError(f"utility loss: two repeats at least are required, got {repeats}")
    if not 0 < test < 1:
        raise UsageError(f"utility loss: test must be between 0 and 1, got {test:g}")
    kept = [i for i, label in enumerate(labels) if label not in (None, "")]
    names = sorted({str(labels[i]) for i in kept})
    place = {name: k for k, name in enumerate(names)}
    y = np.array([place[str(labels[i])] for i in kept], np.int64)
    sizes = Counter(y.tolist())
    if reason := _unfit(len(kept), sizes, groups, kept):
        missing = none(reason, len(kept))
        return Utility(described(model, training), len(kept), len(names), 0, *(missing for _ in range(7)))
    owner = None if groups is None else np.unique([str(groups[i]) for i in kept], return_inverse=True)[1]
    learners = [_learner(model, [texts[i] for i in kept], training, seed) for texts in (original, anonymised)]
    rng = np.random.default_rng(seed)
    scores = np.empty((repeats, 2, 2))
    sides: list[int] = []
    for r in range(repeats):
        train, held = _split(y, owner, test, rng)
        sides.append(len(held))
        for version, learner in enumerate(learners):
            said = learner.predict(train, y[train], held)
            scores[r, version] = float((said == y[held]).mean()), _macro(y[held], said)
        if advance is not None:
            advance(r + 1, repeats)
    ratio = float(np.mean([s / (len(kept) - s) for s in sides]))

    def of(measure: int) -> tuple[Estimate, Estimate, Estimate]:
        first, second = scores[:, 0, measure], scores[:, 1, measure]
        return resampled(first, ratio), resampled(second, ratio), resampled(first - second, ratio)

    most = Estimate.exact(max(sizes.values()) / len(kept), len(kept))
    return Utility(described(model, training), len(kept), len(names), repeats, *of(0), *of(1), most)


def resampled(values: Any, ratio: float, level: float = 0.95) -> Estimate:
    """The mean over random splits, with the interval that allows for their overlap.

    Splits share texts, so their plain standard error is far too small: the variance is multiplied by 1 / k + test /
    train in place of 1 / k (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).

    Args:
        values: one per split.
        ratio: size of the test side over that of the training side.
        level: of the interval.
    """
    found = [float(v) for v in values]
    plain = average(found, level)
    if len(found) < 2:
        return plain
    wider = math.sqrt(1 + len(found) * ratio)
    half = (plain.high - plain.low) / 2 * wider
    return Estimate(
        plain.value, plain.value - half, plain.value + half, len(found), f"mean over splits, corrected t, {level:.0%}"
    )


def _unfit(n: int, sizes: Counter[int], groups: Sequence[str] | None, kept: Sequence[int]) -> str:
    if not n:
        return "no text has a label"
    if len(sizes) < 2:
        return "one class only"
    if min(sizes.values()) < 2:
        return "a class has one text only, so it cannot be learnt and tested"
    if groups is not None and len({groups[i] for i in kept}) < 4:
        return "four groups at least are required"
    return ""


def _split(y: Ints, owner: Ints | None, test: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Indices to learn from and to test on; stratified, or by whole groups with two classes at least to learn from."""
    held = np.zeros(len(y), bool)
    if owner is None:
        for k in np.unique(y):
            own = np.flatnonzero(y == k)
            take = min(len(own) - 1, max(1, round(test * len(own))))
            held[rng.permutation(own)[:take]] = True
        return np.flatnonzero(~held), np.flatnonzero(held)
    n = int(owner.max()) + 1
    take = min(n - 1, max(1, round(test * n)))
    for _ in range(100):
        held = np.isin(owner, rng.permutation(n)[:take])
        if len(np.unique(y[~held])) > 1:
            return np.flatnonzero(~held), np.flatnonzero(held)
    raise DataError("utility loss: classes and groups go together, so that no split leaves two classes to learn from")


def _learner(model: str, texts: Sequence[str], training: Training | None, seed: int) -> _Learner:
    if model.startswith(CLASSIFIER):
        return _Finetuned(Classifier(model, training), texts, seed)
    return _Linear(texts) if model == "linear" else _Encoder(texts)


class _Linear:
    """TF-IDF of words and pairs of words; vocabulary and weights of the training side only."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        try:
            self._counts = CountVectorizer(ngram_range=(1, 2)).fit_transform(texts).tocsr()
        except ValueError:  # its way to say that there are no words
            self._counts = None

    def predict(self, train: Ints, y: Ints, test: Ints) -> Ints:
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.svm import LinearSVC

        if self._counts is None:
            return np.full(len(test), Counter(y.tolist()).most_common(1)[0][0], np.int64)
        known = self._counts[train]
        often = np.flatnonzero(known.getnnz(axis=0) >= min(2, len(train)))
        often = often if len(often) else np.arange(known.shape[1])
        weights = TfidfTransformer(sublinear_tf=True)
        x = weights.fit_transform(known[:, often])
        fitted = LinearSVC(random_state=0).fit(x, y)
        return np.asarray(fitted.predict(weights.transform(self._counts[test][:, often])), np.int64)


class _Encoder:
    """Vectors of the embedded sentence encoder, a logistic regression on them."""

    def __init__(self, texts: Sequence[str]) -> None:
        from allonym.models.encoder import encode

        self._rows = encode(texts)

    def predict(self, train: Ints, y: Ints, test: Ints) -> Ints:
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(C=10.0, max_iter=1000).fit(self._rows[train], y)
        return np.asarray(fitted.predict(self._rows[test]), np.int64)


class _Finetuned:
    """A pretrained encoder, fine-tuned for each split."""

    def __init__(self, classifier: Classifier, texts: Sequence[str], seed: int) -> None:
        self._classifier = classifier
        self._rows = classifier.read(texts)
        self._seed = seed

    def predict(self, train: Ints, y: Ints, test: Ints) -> Ints:
        learnt, asked = ([self._rows[i] for i in side] for side in (train, test))
        return self._classifier.predict(learnt, y, asked, seed_of(self._seed, train))


def _macro(truth: Ints, said: Ints) -> float:
    """Mean F1 over the classes that occur on the test side."""
    scores = []
    for k in np.unique(truth).tolist():
        right = int(((truth == k) & (said == k)).sum())
        scores.append(2 * right / (int((truth == k).sum()) + int((said == k).sum())))
    return math.fsum(scores) / len(scores)

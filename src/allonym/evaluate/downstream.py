"""Downstream use: what a model that learns from anonymised texts is worth on original ones (P4 section 4.1, Table 3).

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
from allonym.evaluate.classification import resampled
from allonym.evaluate.finetuned import (
    CLASSIFIER,
    WRITER,
    Classifier,
    Training,
    Writer,
    check_model,
    described,
    seed_of,
)
from allonym.evaluate.pairs import checked
from allonym.serial import Serialisable
from allonym.stats import Estimate, none

__all__ = ["CALLS", "KINDS", "MODELS", "Downstream", "Score", "Task", "downstream"]

KINDS = ("classify", "summarise")
"""``classify``: a field with a label, F1 and accuracy; ``summarise``: one with a text or several, ROUGE-1, -2, -L."""
CALLS: Mapping[str, str] = MappingProxyType(
    {"action_item": "summarise", "summary": "summarise", "call_purpose": "classify", "call_outcome": "classify"}
)
"""P2's four tasks."""
MODELS = ("linear", "encoder")
"""``linear``: on words, ``encoder``: on vectors of the embedded sentence encoder. Beside them ``finetune:FOLDER`` for
tasks to classify and ``seq2seq:FOLDER`` for tasks to summarise (:mod:`allonym.evaluate.finetuned`)."""
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
    """All tasks, by their field's name, and the kind of model; a fine-tuned one with how, without its folder's path."""

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
    """Train on anonymised texts and test on originals, against training on originals.

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
    checked(original, anonymised)
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
        checked(original, anonymised, targets[name])
    often = {name: repeats or REPEATS[kind] for name, kind in tasks.items()}
    whole, done = sum(often.values()), 0
    out: dict[str, Task] = {}
    for name, kind in tasks.items():
        started = done

        def step(n: int, started: int = started) -> None:
            if advance is not None:
                advance(started + n, whole)

        own = [_target(t, kind, name, i) for i, t in enumerate(targets[name], 1)]
        given = (anonymised_targets or {}).get(name)
        theirs = own
        if kind == "summarise" and given is not None:
            checked(original, anonymised, given)
            theirs = [_target(t, kind, name, i) for i, t in enumerate(given, 1)]
        kept = [i for i, (a, b) in enumerate(zip(own, theirs, strict=True)) if a and b]
        run = _classified if kind == "classify" else _summarised
        out[name] = run(
            [original[i] for i in kept],
            [anonymised[i] for i in kept],
            [own[i] for i in kept],
            [theirs[i] for i in kept],
            model, training, often[name], test, seed, step,
        )  # fmt: skip
        done += often[name]
        step(often[name])
    return Downstream(described(model, training), out)


def _target(value: object, kind: str, name: str, number: int) -> tuple[str, ...]:
    """A label or references; empty where there is none."""
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


def _classified(
    old: list[str], new: list[str], own: list[tuple[str, ...]], _: object, model: str, training: Training | None,
    repeats: int, test: float, seed: int, step: Callable[[int], None],
) -> Task:  # fmt: skip
    labels = [t[0] for t in own]
    sizes = Counter(labels)
    reason = (
        "no text has a label" if not labels
        else "one class only" if len(sizes) < 2
        else "a class has one text only, so it cannot be learnt and tested" if min(sizes.values()) < 2
        else ""
    )  # fmt: skip
    if reason:
        return _nothing("classify", len(labels), len(sizes), reason)
    y = np.unique(labels, return_inverse=True)[1]
    features = _features(old, new, model, training, seed)
    rng = np.random.default_rng(seed)
    found = np.empty((repeats, 2, 2))
    floor = np.empty((repeats, 2))
    held = np.zeros(0, np.int64)
    for r in range(repeats):
        train, held = _stratified(y, test, rng)
        for version in (0, 1):
            found[r, version] = _f1_and_accuracy(y[held], features(version, train, y[train], held))
        most = Counter(y[train].tolist()).most_common(1)[0][0]
        floor[r] = _f1_and_accuracy(y[held], np.full(len(held), most))
        step(r + 1)
    ratio = len(held) / (len(y) - len(held))
    names = _MEASURES["classify"]
    return Task(
        "classify", len(y), len(sizes), repeats, _scores(found, names, ratio),
        {n: resampled(floor[:, i], ratio) for i, n in enumerate(names)}, {},
    )  # fmt: skip


def _features(
    old: list[str], new: list[str], model: str, training: Training | None, seed: int
) -> Callable[[int, Any, Any, Any], Any]:
    """A function (version learnt from, train, classes of train, test) to the classes of the test side's originals."""
    n = len(old)
    if model.startswith(CLASSIFIER):
        classifier = Classifier(model, training)
        versions = classifier.read(old), classifier.read(new)

        def by_network(version: int, train: Any, y: Any, test: Any) -> Any:
            learnt, asked = [versions[version][i] for i in train], [versions[0][i] for i in test]
            return classifier.predict(learnt, y, asked, seed_of(seed, train))

        return by_network
    if model == "encoder":
        from sklearn.linear_model import LogisticRegression

        from allonym.models.encoder import encode

        vectors = encode([*old, *new])

        def by_vectors(version: int, train: Any, y: Any, test: Any) -> Any:
            return LogisticRegression(C=10.0, max_iter=1000).fit(vectors[train + version * n], y).predict(vectors[test])

        return by_vectors
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.svm import LinearSVC

    try:
        counts = CountVectorizer(ngram_range=(1, 2)).fit_transform([*old, *new]).tocsr()
    except ValueError:  # its way to say that there are no words
        counts = None

    def by_words(version: int, train: Any, y: Any, test: Any) -> Any:
        known = counts[train + version * n] if counts is not None else None
        often = np.flatnonzero(known.getnnz(axis=0) >= min(2, len(train))) if known is not None else ()
        if known is None or not len(often):
            return np.full(len(test), Counter(y.tolist()).most_common(1)[0][0])
        weights = TfidfTransformer(sublinear_tf=True)
        fitted = LinearSVC(random_state=0).fit(weights.fit_transform(known[:, often]), y)
        return fitted.predict(weights.transform(counts[test][:, often]))

    return by_words


def _stratified(y: Any, test: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Places to learn from and to test on; of each class the same share, and one at least on each side."""
    held = np.zeros(len(y), bool)
    for k in np.unique(y):
        own = np.flatnonzero(y == k)
        held[rng.permutation(own)[: min(len(own) - 1, max(1, round(test * len(own))))]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _f1_and_accuracy(truth: Any, said: Any) -> tuple[float, float]:
    """Mean F1 over the classes that occur, and the share that is right."""
    each = [2 * ((truth == k) & (said == k)).sum() / ((truth == k).sum() + (said == k).sum()) for k in np.unique(truth)]
    return float(np.mean(each)), float((truth == said).mean())


def _summarised(
    old: list[str], new: list[str], own: list[tuple[str, ...]], theirs: list[tuple[str, ...]], model: str,
    training: Training | None, repeats: int, test: float, seed: int, step: Callable[[int], None],
) -> Task:  # fmt: skip
    from allonym.evaluate.summarising import Summariser, oracle, read, rouge, words_of

    n = len(old)
    if n < 4:
        return _nothing("summarise", n, 0, "four texts with a reference at least are required")
    length = words_of(own)
    writer = Writer(model, training) if model.startswith(WRITER) else None
    texts = [[read(t, model=model) for t in version] for version in ((old,) if writer else (old, new))]
    best = [] if writer else [
        [oracle(t, refs, length) for t, refs in zip(version, references, strict=True)]
        for version, references in zip(texts, (own, theirs), strict=True)
    ]  # fmt: skip

    def summaries(version: int, train: list[int], held: list[int]) -> list[str]:
        if writer is not None:
            learnt_from, references = ((old, own), (new, theirs))[version]
            return writer.summaries(
                [learnt_from[i] for i in train], [references[i] for i in train], [old[i] for i in held],
                seed_of(seed, train),
            )  # fmt: skip
        learnt = Summariser(model, seed).fit(
            [texts[version][i] for i in train], [best[version][i] for i in train], length
        )
        return [learnt.summary(texts[0][i]) for i in held]

    def judged(told: Sequence[str], held: list[int]) -> Any:
        return np.mean([rouge(t, own[i]) for t, i in zip(told, held, strict=True)], axis=0)

    rng = np.random.default_rng(seed)
    take = min(n - 2, max(1, round(test * n)))
    found = np.empty((repeats, 2, 3))
    ends = np.zeros((repeats, 2, 3))
    for r in range(repeats):
        order = rng.permutation(n)
        held, train = np.sort(order[:take]).tolist(), np.sort(order[take:]).tolist()
        for version in (0, 1):
            found[r, version] = judged(summaries(version, train, held), held)
        first = Summariser().fit([], [], length)
        ends[r, 0] = judged([first.summary(texts[0][i]) for i in held], held)
        if writer is None:
            ends[r, 1] = judged([" ".join(texts[0][i].sentences[k] for k in sorted(best[0][i])) for i in held], held)
        step(r + 1)
    ratio = take / (n - take)
    names = _MEASURES["summarise"]
    floor, ceiling = ({m: resampled(ends[:, e, i], ratio) for i, m in enumerate(names)} for e in (0, 1))
    return Task("summarise", n, 0, repeats, _scores(found, names, ratio), floor, {} if writer else ceiling)


def _scores(found: Any, names: Sequence[str], ratio: float) -> dict[str, Score]:
    """Scores from an array (repeats, version, measure)."""
    return {
        name: Score(
            resampled(found[:, 0, i], ratio),
            resampled(found[:, 1, i], ratio),
            resampled(found[:, 1, i] - found[:, 0, i], ratio),
        )
        for i, name in enumerate(names)
    }


def _nothing(kind: str, texts: int, classes: int, reason: str) -> Task:
    nan = none(reason, texts)
    return Task(kind, texts, classes, 0, {name: Score(nan, nan, nan) for name in _MEASURES[kind]}, {}, {})

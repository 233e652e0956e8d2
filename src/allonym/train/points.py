"""Calibration and operating points, chosen on text that is used neither for training nor for testing.

An operating point is named by the share of the words of names that it covers. What that costs is measured beside it:
the share of the letters and digits outside of names that it covers too, for each kind of text.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allonym.detection.tagger import sum_wanted_chances
from allonym.models.tagger import TaggerModel
from allonym.train.corrupt import Noise, corrupt_example
from allonym.train.examples import ALL, BEGIN, INSIDE, Example, O
from allonym.train.labelmap import find_targets

COVERED: Mapping[str, float] = {"high-recall": 0.99, "balanced": 0.98, "high-precision": 0.95}
"""Share of the words of names that each operating point covers."""

NAME_LABELS = frozenset().union(*(find_targets(label) or () for label in ("PER", "ORG", "LOC", "MISC")))
"""Labels of names: people, organisations, places, and other names, such as products, events, works and origins."""

SOFT = ("PRODUCT EVENT WORK_OF_ART AWARD LAW ORIGIN LANGUAGE OCCUPATION DATE TIME AGE MONEY QUANTITY").split()
"""Labels with thresholds of their own: they have no clear borders, and the threshold of names would cover half a
sentence."""

_BETA: Mapping[str, float] = {"high-recall": 2.0, "balanced": 1.0, "high-precision": 0.5}
_USUAL: Mapping[str, float] = {"high-recall": 0.25, "balanced": 0.5, "high-precision": 0.75}
"""Thresholds of a soft label that text by people has too seldom."""
OFF = frozenset({"OTHER_IDENTIFYING_ATTRIBUTE"})
"""Labels without a threshold, for which a policy has to set a number: in sixty marked texts none of their 88 words had
to be covered."""
_FEWEST = 50  # words with a soft label by which its threshold is chosen
_LOWEST, _HIGHEST = 0.01, 0.97  # thresholds
_RECOGNISER = Noise(lower=0, speech=1, upper=0, swap=0, spell=0)
_FEWEST_NAMES, _FEWEST_LETTERS = 50, 2000  # words of names, and letters outside of them, from which shares are told
TEMPLATES = "templates"
"""Kind of text that was made from templates. It is measured, but easier than what people write: no aim."""
SPEECH = "all of them in small letters without marks"
"""Kind of text of all examples of other kinds, as from a speech recogniser. It is measured, but no aim."""


@dataclass(frozen=True, slots=True, repr=False)
class Judged:
    """Words for which the annotation decides whether they belong to an entity.

    Attributes:
        logits: float32 ``(words, tags)``.
        allowed: int64 ``(words,)``, bit masks of :mod:`allonym.train.examples`.
        is_outside: bool ``(words,)``, whether the word stands outside of all spans.
        size: int64 ``(words,)``, letters and digits.
        source: kind of text of each word, as an index into ``names``.
        names: the kinds of text.
    """

    logits: Any
    allowed: Any
    is_outside: Any
    size: Any
    source: Any
    names: tuple[str, ...]


def compute_word_logits(model: TaggerModel, examples: Iterable[Example]) -> Judged:
    """Return the logits of every decided word of ``examples``, as they are and as from a speech recogniser."""
    from allonym.train.fit import make_windows

    rows: list[tuple[Any, ...]] = []
    names: dict[str, int] = {}
    for example in examples:
        shown_as = {example.source: example}
        if example.source != TEMPLATES:
            shown_as[SPEECH] = corrupt_example(example, _RECOGNISER, (), (), random.Random(0))
        for name, shown in shown_as.items():
            number = names.setdefault(name, len(names))
            outside = Counter(mask for mask in shown.allowed if mask & O).most_common(1)
            sizes = [sum(map(str.isalnum, word)) for word in shown.words]
            for piece in make_windows(shown, model.pieces):
                marks = np.asarray(piece.allowed, np.int64)
                is_decided = marks != ALL
                if is_decided.any():
                    size = np.asarray(sizes[piece.window.first : piece.window.last])[is_decided]
                    is_outside = marks[is_decided] == (outside[0][0] if outside else O)
                    logits = model.logits(piece.window)[0][is_decided]
                    rows.append((logits, marks[is_decided], is_outside, size, np.full(len(size), number)))
    logits, allowed, is_outside, size, source = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Judged(logits, allowed, is_outside, size, source, tuple(names))


def fit_temperature(judged: Judged) -> float:
    """Return the divisor of the logits that calibrates probabilities (Guo et al. 2017, arXiv:1706.04599)."""
    bits = (judged.allowed[:, None] >> np.arange(judged.logits.shape[1])) & 1 == 1

    def loss(value: float) -> float:
        z = judged.logits / value
        every = np.logaddexp.reduce(z, axis=1)
        right = np.logaddexp.reduce(np.where(bits, z, -1e4), axis=1)
        return float((every - right).mean())

    low, high = 0.5, 4.0
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(18):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return round((low + high) / 2, 3)


def choose_operating_points(
    judged: Judged, labels: Sequence[str], temperature: float
) -> dict[str, dict[str, float | None]]:
    """Return the thresholds of each point: ``"*"`` for all labels, one for each of ``SOFT``, and None for ``OFF``.

    Soft labels come first: each has the threshold with the best F-score on the words of texts that annotate it; recall
    counts twice as much as precision at ``high-recall`` and half as much at ``high-precision``. Then ``"*"`` is the
    highest threshold at which the point covers its share of the words of names. Text as people wrote it decides.
    """
    as_written = [n for n, name in enumerate(judged.names) if name not in (TEMPLATES, SPEECH)]
    aimed = _select_words(judged, np.isin(judged.source, as_written) & (judged.size > 0))
    chances = _compute_chances(aimed, temperature)
    mass = np.exp(chances[:, 1::2]) + np.exp(chances[:, 2::2])
    is_name = select_name_words(aimed)
    out: dict[str, dict[str, float | None]] = {}
    for point, share in COVERED.items():
        soft = {
            label: _choose_soft_threshold(aimed, mass[:, i], label, point)
            for i, label in enumerate(labels)
            if label in SOFT
        }
        _, evidence = sum_wanted_chances(chances, labels, soft)
        rest, _ = sum_wanted_chances(chances, labels, {label: 1.0 for label in labels if label not in OFF.union(soft)})
        enough = np.where(evidence < 1, rest / np.maximum(1 - evidence, 1e-9), np.inf)[is_name]
        ranked = np.sort(enough)[::-1]
        threshold = ranked[math.ceil(share * len(ranked)) - 1] if len(ranked) else 0.5
        out[point] = {"*": _round_down(float(np.clip(threshold, _LOWEST, _HIGHEST))), **soft, **dict.fromkeys(OFF)}
    return out


def measure_operating_points(
    judged: Judged, labels: Sequence[str], temperature: float, points: Mapping[str, Mapping[str, float | None]]
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return for each point and kind of text two shares, 0 to 1: ``covered`` and ``needless``.

    ``covered`` is that of the words of names which the point covers, ``needless`` that of the letters and digits
    outside of names which it covers as a name. None where a kind of text has too few of them to tell.
    """
    chances = _compute_chances(judged, temperature)
    likeliest = (np.exp(chances[:, 1::2]) + np.exp(chances[:, 2::2])).argmax(axis=1)
    is_called_name = np.isin(likeliest, [i for i, label in enumerate(labels) if label in NAME_LABELS])
    is_name = select_name_words(judged)
    out: dict[str, dict[str, dict[str, float | None]]] = {}
    for point, table in points.items():
        thresholds = {label: table.get(label, table["*"]) for label in labels}
        present = {label: threshold for label, threshold in thresholds.items() if threshold is not None}
        _, evidence = sum_wanted_chances(chances, labels, present)
        is_covered = evidence >= 1
        out[point] = {}
        for name in sorted(judged.names, key=lambda name: (name == SPEECH, name)):
            here = judged.source == judged.names.index(name)
            outside = judged.size * (here & judged.is_outside)
            covered, needless = here & is_name & is_covered, outside * (is_covered & is_called_name)
            out[point][name] = {
                "covered": _divide(covered.sum(), (here & is_name).sum(), _FEWEST_NAMES),
                "needless": _divide(needless.sum(), outside.sum(), _FEWEST_LETTERS),
            }
    return out


def select_name_words(judged: Judged) -> Any:
    """Return which words can have labels of names alone, and hold a letter or digit."""
    names = sum(BEGIN[label] | INSIDE[label] for label in NAME_LABELS)
    return (judged.allowed & ~names == 0) & (judged.size > 0)


def _select_words(judged: Judged, wanted: Any) -> Judged:
    columns = (judged.logits, judged.allowed, judged.is_outside, judged.size, judged.source)
    logits, allowed, is_outside, size, source = (column[wanted] for column in columns)
    return Judged(logits, allowed, is_outside, size, source, judged.names)


def _compute_chances(judged: Judged, temperature: float) -> Any:
    z = judged.logits.astype(np.float64) / temperature
    return z - np.logaddexp.reduce(z, axis=1)[:, None]


def _choose_soft_threshold(judged: Judged, chance: Any, label: str, point: str) -> float:
    """Return the threshold of a label with the best F-score on words that surely have it or surely have not."""
    label_bits = BEGIN[label] | INSIDE[label]
    has_label = judged.allowed & ~label_bits == 0
    if has_label.sum() < _FEWEST:
        return _USUAL[point]
    is_decided = has_label | (judged.allowed & label_bits == 0)
    order = np.argsort(-chance[is_decided], kind="stable")
    ranked, right = chance[is_decided][order], has_label[is_decided][order]
    beta = _BETA[point]
    score = (1 + beta**2) * np.cumsum(right) / (beta**2 * right.sum() + np.arange(1, len(right) + 1))
    best = int(np.argmax(score))
    middle = ranked[best : best + 2].mean()
    return _round_down(float(np.clip(middle, _LOWEST, _HIGHEST)))


def _round_down(threshold: float) -> float:
    return math.floor(threshold * 1000) / 1000


def _divide(part: Any, whole: Any, fewest: int) -> float | None:
    return round(float(part) / float(whole), 4) if whole >= fewest else None

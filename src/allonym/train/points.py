"""Calibration and operating points, chosen on text that is used neither for training nor for testing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allonym.models.tagger import TaggerModel
from allonym.train.corrupt import Noise, corrupt_example
from allonym.train.examples import ALL, Example

TARGETS: Mapping[str, float] = {"high-recall": 0.988, "high-precision": 0.95}
"""Recall and precision of words at which the operating points aim."""

_SOFT = "OCCUPATION AGE DATE TIME MONEY QUANTITY PRODUCT EVENT WORK_OF_ART AWARD LAW ORIGIN LANGUAGE"
SOFT: Mapping[str, float] = {
    **dict.fromkeys(_SOFT.split(), 0.25),
    "OTHER_IDENTIFYING_ATTRIBUTE": 0.5,
}
"""Thresholds of these labels at ``high-recall``."""

SURE: Mapping[str, float] = {"balanced": 0.5, "high-precision": 0.88}
"""Threshold of the label's probability at these points, in addition to that of the entity."""

LOWEST, HIGHEST = 0.03, 0.97


@dataclass(frozen=True, slots=True, repr=False)
class Judged:
    """Words for which the annotation decides whether they belong to an entity.

    Attributes:
        logits: float32 ``(words, tags)``.
        allowed: int64 ``(words,)``, bit masks of :mod:`allonym.train.examples`.
        source: corpus of each word, as an index into ``names``.
        names: the corpora.
    """

    logits: Any
    allowed: Any
    source: Any
    names: tuple[str, ...]


def compute_word_logits(
    model: TaggerModel, examples: Iterable[Example], noises: Sequence[Noise | None] = (None,)
) -> Judged:
    """Return the logits of every decided word of ``examples``, once for each kind of noise."""
    import random

    from allonym.train.fit import make_windows

    logits, allowed, source = [], [], []
    names: dict[str, int] = {}
    for example in examples:
        for noise in noises:
            shown = corrupt_example(example, noise, (), (), random.Random(0)) if noise else example
            number = names.setdefault(example.source + (" noisy" if noise else ""), len(names))
            for piece in make_windows(shown, model.pieces):
                marks = np.asarray(piece.allowed, np.int64)
                is_annotated = marks != ALL
                if is_annotated.any():
                    logits.append(model.logits(piece.window)[0][is_annotated])
                    allowed.append(marks[is_annotated])
                    source.append(np.full(int(is_annotated.sum()), number))
    return Judged(np.concatenate(logits), np.concatenate(allowed), np.concatenate(source), tuple(names))


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


def choose_operating_points(judged: Judged, labels: Sequence[str], temperature: float) -> dict[str, dict[str, float]]:
    """Return the thresholds of each operating point, ``"*"`` for all labels and one for each label that differs.

    ``high-recall`` is the highest threshold with the required recall of words, ``high-precision`` the lowest with the
    required precision, and ``balanced`` has the best F1 of words, with a wrong label counting as an error. Corpora have
    equal weight. Soft identifiers in plain words have no clear borders, and the threshold of names would cover half a
    sentence, so high-recall is higher for ``SOFT``.
    """
    z = judged.logits.astype(np.float64) / temperature
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    inside, kind = 1 - p[:, 0], (p[:, 1::2] + p[:, 2::2]).argmax(axis=1)
    entity = judged.allowed & 1 == 0
    # a word that may have labels that its corpus does not annotate says nothing about false findings
    fits = (judged.allowed[:, None] >> np.arange(1, judged.logits.shape[1])) & 1 == 1
    is_decided = entity | ~np.take_along_axis(fits, 2 * kind[:, None], axis=1)[:, 0]
    weight = np.zeros(len(inside))
    for number in range(len(judged.names)):
        here = judged.source == number
        weight[here] = 1.0 / max(1, int(here.sum()))
    grid = np.r_[np.arange(LOWEST, 0.5, 0.01), np.arange(0.5, HIGHEST, 0.01)]
    either = fits[:, 0::2] | fits[:, 1::2]
    right = entity & np.take_along_axis(either, kind[:, None], axis=1)[:, 0]
    recalls, precisions, scores = [], [], []
    for g in grid:
        above, all_entities = weight * (inside >= g), (weight * entity).sum()
        covered, decided = (above * entity).sum(), (above * is_decided).sum()
        recalls.append(covered / all_entities)
        precisions.append(covered / max(1e-12, decided))
        scores.append(2 * (above * right).sum() / (decided + all_entities))
    high_recall = max(grid[np.array(recalls) >= TARGETS["high-recall"]], default=LOWEST)
    high_precision = min(grid[np.array(precisions) >= TARGETS["high-precision"]], default=HIGHEST)
    return {
        "high-recall": {"*": round(float(min(high_recall, 0.4)), 3), **SOFT},
        "balanced": {"*": round(float(grid[int(np.argmax(scores))]), 3)},
        "high-precision": {"*": round(float(max(high_precision, 0.6)), 3)},
    }

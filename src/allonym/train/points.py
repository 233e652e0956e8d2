"""Calibration and operating points, chosen on text that was neither trained on nor is judged on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allonym.models.tagger import TaggerModel
from allonym.models.windows import Window
from allonym.models.wordpiece import WordPiece
from allonym.train.corrupt import Noise, corrupt_example
from allonym.train.examples import ALL, Example

TARGETS: Mapping[str, float] = {"high-recall": 0.988, "high-precision": 0.95}
"""Share of entity words covered, and share of covered words that are entity words, that the points aim at."""

SOFT: Mapping[str, float] = {
    "OCCUPATION": 0.25,
    "AGE": 0.25,
    "DATE": 0.25,
    "TIME": 0.25,
    "MONEY": 0.25,
    "QUANTITY": 0.25,
    "PRODUCT": 0.25,
    "EVENT": 0.25,
    "WORK_OF_ART": 0.25,
    "AWARD": 0.25,
    "LAW": 0.25,
    "ORIGIN": 0.25,
    "LANGUAGE": 0.25,
    "OTHER_IDENTIFYING_ATTRIBUTE": 0.5,
}
"""Chances that findings of these labels need at ``high-recall``."""

SURE: Mapping[str, float] = {"balanced": 0.5, "high-precision": 0.88}
"""Chance that the label must be right, beside the chance that there is an entity, at these points."""

LOWEST, HIGHEST = 0.03, 0.97


@dataclass(frozen=True, slots=True, repr=False)
class Judged:
    """Words of which the annotation tells whether they belong to an entity.

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


def judge(model: TaggerModel, examples: Iterable[Example], noises: Sequence[Noise | None] = (None,)) -> Judged:
    """The network's logits for every judged word of ``examples``, once for each kind of noise."""
    import random

    from allonym.train.fit import make_windows

    pieces: WordPiece = model.pieces
    logits, allowed, source = [], [], []
    names: dict[str, int] = {}
    for example in examples:
        for noise in noises:
            shown = corrupt_example(example, noise, (), (), random.Random(0)) if noise else example
            number = names.setdefault(example.source + (" noisy" if noise else ""), len(names))
            for piece in make_windows(shown, pieces):
                n = len(piece.heads)
                window = Window(0, n, 0, n, tuple(piece.ids), tuple(piece.shapes), tuple(piece.heads))
                marks = np.asarray(piece.allowed, np.int64)
                is_annotated = marks != ALL
                if is_annotated.any():
                    logits.append(model.logits(window)[0][is_annotated])
                    allowed.append(marks[is_annotated])
                    source.append(np.full(int(is_annotated.sum()), number))
    return Judged(np.concatenate(logits), np.concatenate(allowed), np.concatenate(source), tuple(names))


def temperature(judged: Judged) -> float:
    """What the logits are divided by so that chances are true on average (Guo et al. 2017, arXiv:1706.04599)."""
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


def choose(judged: Judged, labels: Sequence[str], heat: float) -> dict[str, dict[str, float]]:
    """Operating points: name to the chance that a finding needs, ``"*"`` for all labels and one for each that differs.

    ``high-recall`` is the highest chance at which the wanted share of entity words is covered, ``high-precision`` the
    lowest at which the wanted share of what is covered belongs to entities, and ``balanced`` has the best F1 of words,
    a wrong label counting as an error. Corpora count alike. Soft identifiers in plain words have no clear borders: what
    is sought at any price for names would there cover half of a sentence, so for ``SOFT`` high-recall is not as low.
    """
    inside, kind = chances(judged.logits, heat)
    entity = judged.allowed & 1 == 0
    # a word that may be one of several labels which the corpus does not annotate tells nothing about false findings
    fits = (judged.allowed[:, None] >> np.arange(1, judged.logits.shape[1])) & 1 == 1
    is_decided = entity | ~np.take_along_axis(fits, 2 * kind[:, None], axis=1)[:, 0]
    weight = np.zeros(len(inside))
    for number in range(len(judged.names)):
        here = judged.source == number
        weight[here] = 1.0 / max(1, int(here.sum()))
    grid = np.r_[np.arange(LOWEST, 0.5, 0.01), np.arange(0.5, HIGHEST, 0.01)]
    covered = [float((weight * (inside >= g) * entity).sum() / (weight * entity).sum()) for g in grid]
    precise = [
        float((weight * (inside >= g) * entity).sum() / max(1e-12, (weight * (inside >= g) * is_decided).sum()))
        for g in grid
    ]
    high_recall = max((g for g, c in zip(grid, covered, strict=True) if c >= TARGETS["high-recall"]), default=LOWEST)
    high_precision = min(
        (g for g, p in zip(grid, precise, strict=True) if p >= TARGETS["high-precision"]), default=HIGHEST
    )
    either = fits[:, 0::2] | fits[:, 1::2]
    right = entity & np.take_along_axis(either, kind[:, None], axis=1)[:, 0]
    scores = []
    for g in grid:
        hit = float((weight * (inside >= g) * right).sum())
        scores.append(2 * hit / float((weight * ((inside >= g) & is_decided)).sum() + (weight * entity).sum()))
    return {
        "high-recall": {"*": round(float(min(high_recall, 0.4)), 3), **SOFT},
        "balanced": {"*": round(float(grid[int(np.argmax(scores))]), 3)},
        "high-precision": {"*": round(float(max(high_precision, 0.6)), 3)},
    }


def chances(logits: Any, heat: float) -> tuple[Any, Any]:
    """The chance that a word belongs to an entity, and the number of its most likely label."""
    z = logits.astype(np.float64) / heat
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    return 1 - p[:, 0], (p[:, 1::2] + p[:, 2::2]).argmax(axis=1)

"""Measures the small taggers of other languages: operating points, cover by language, strict F1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

OPEN = -100
"""The tag of words that a corpus leaves open."""
_POINTS = {"high-recall": 0.08, "balanced": 0.06, "high-precision": 0.02}
_LEAST_COVERED, _AT = 0.9, "high-recall"
_FEWEST = 300  # words of names that a figure needs

Read = Callable[[str, str], tuple[list[tuple[int, int]], Any]]
"""From a text and its language to the places of its words and their chances, as the taggers
of :mod:`allonym.models.wordtagger` give them."""


@dataclass(slots=True)
class Sentence:
    """A text with the tag of each word: 0 for none, ``OPEN`` where the corpus does not say."""

    language: str
    source: str
    text: str
    borders: list[tuple[int, int]]
    tags: list[int]
    document: str = ""


def judge_words(read: Read, sentences: Sequence[Sentence]) -> tuple[Any, Any, Any, Any]:
    """Judge words: arrays of their chance to be in a name, letters, whether they are, and the name's number or -1."""
    chances, sizes, is_name, names = [], [], [], []
    name = -1
    for sentence in sentences:
        _, table = read(sentence.text, sentence.language)
        for n, tag in enumerate(sentence.tags):
            word = sentence.text[slice(*sentence.borders[n])]
            if tag == OPEN:
                continue
            name += tag % 2
            chances.append(1 - table[n, 0])
            sizes.append(len(word) if word.isalnum() else 0)
            is_name.append(tag > 0)
            names.append(name if tag else -1)
    return np.array(chances), np.array(sizes), np.array(is_name, bool), np.array(names)


def choose_threshold(judged: tuple[Any, Any, Any, Any], needless: float) -> float:
    """The lowest chance at which at most a share of the letters outside of names is covered."""
    chances, sizes, is_name, _ = judged
    outside = chances[~is_name], sizes[~is_name]
    order = np.argsort(-outside[0])
    covered = np.cumsum(outside[1][order]) / max(1, outside[1].sum())
    last = int(np.searchsorted(covered, needless, "right"))
    return max(0.0005, float(outside[0][order][min(last, len(order) - 1)]))


def measure_cover(judged: tuple[Any, Any, Any, Any], threshold: float) -> dict[str, float]:
    """Shares: name words covered, names wholly missed, and letters outside of names covered."""
    chances, sizes, is_name, names = judged
    hit = chances > threshold
    real = is_name & (sizes > 0)
    everything, touched = set(names[real].tolist()), set(names[real & hit].tolist())
    return {
        "covered": round(float(hit[real].mean()), 4),
        "missed": round(1 - len(touched) / max(1, len(everything)), 4),
        "needless": round(float((sizes * hit)[~is_name].sum() / max(1, sizes[~is_name].sum())), 4),
        "words": int(real.sum()),
    }


def measure_strict_f1(read: Read, sentences: Sequence[Sentence]) -> float:
    """F1 of names with exact borders and kind, of the best row of tags; words that a corpus leaves open count not."""
    right = predicted = gold = 0
    for sentence in sentences:
        tags = np.array(sentence.tags)
        guess = np.where(tags == OPEN, 0, choose_tags(read(sentence.text, sentence.language)[1]))
        a, b = _list_names(np.where(tags == OPEN, 0, tags)), _list_names(guess)
        right, predicted, gold = right + len(a & b), predicted + len(b), gold + len(a)
    return round(2 * right / max(1, predicted + gold), 4)


def choose_tags(chances: Any) -> Any:
    """Choose the likeliest row of tags, taken as independent, in which a name goes on only behind its beginning.

    Args:
        chances: of O, B and I of each label ``(words, 1 + 2 * labels)``.
    """
    scores = np.log(chances + 1e-9)
    count = scores.shape[1]
    follows = np.zeros((count, count))  # of a tag and the next one
    for inside in range(2, count, 2):
        follows[:, inside] = -np.inf
        follows[inside - 1 : inside + 1, inside] = 0
    best, ways = np.append(0.0, np.full(count - 1, -np.inf)), []  # a text begins as behind O
    for row in scores:
        every = best[:, None] + follows
        ways.append(every.argmax(0))
        best = every.max(0) + row
    out = np.zeros(len(scores), int)
    tag = int(best.argmax())
    for n in range(len(scores) - 1, -1, -1):
        out[n], tag = tag, ways[n][tag]
    return out


def _list_names(tags: Any) -> set[tuple[int, int, int]]:
    out: set[tuple[int, int, int]] = set()
    start = kind = 0
    for n, tag in enumerate([*tags.tolist(), 0]):
        if kind and (tag == 0 or tag % 2 or (tag + 1) // 2 != kind):
            out.add((start, n, kind))
            kind = 0
        if tag and not kind:
            start, kind = n, (tag + 1) // 2
    return out


def measure_model(
    model: Read, dev: Sequence[Sentence], test: Sequence[Sentence], beside: Sequence[Sentence]
) -> dict[str, Any]:
    """Choose operating points on the dev parts, and measure them by language on the test parts and other corpora."""
    read = lru_cache(maxsize=None)(model)
    points: dict[str, dict[str, float]] = {name: {} for name in _POINTS}
    measured: dict[str, Any] = {}
    for code in sorted({s.language for s in test}):
        judged = judge_words(read, [s for s in dev if s.language == code])
        for name, needless in _POINTS.items():
            points[name][code] = round(choose_threshold(judged, needless), 4)
        groups = {"test": [s for s in test if s.language == code]}
        for sentence in (*groups["test"], *(s for s in beside if s.language == code)):
            groups.setdefault(sentence.source, []).append(sentence)
        for group, sentences in groups.items():
            figures: dict[str, Any] = {"strict_f1": measure_strict_f1(read, sentences)}
            judged = judge_words(read, sentences)
            figures |= {name: measure_cover(judged, points[name][code]) for name in _POINTS}
            measured.setdefault(code, {})[group] = figures
    earned = [
        code
        for code, groups in measured.items()
        if groups["test"][_AT]["words"] >= _FEWEST
        and groups["test"][_AT]["covered"] >= _LEAST_COVERED
        and groups["test"][_AT]["needless"] <= 0.09
    ]
    return {"points": points, "measured": measured, "languages": earned}

"""How far annotators of the same texts agree: Cohen's kappa, Krippendorff's alpha, and F1 of one against the other.

Units of kappa and alpha are words with the class of their span, or none. Cohen 1960, doi:10.1177/001316446002000104;
Krippendorff 2011, https://repository.upenn.edu/asc_papers/43 (nominal data); F1 as Hripcsak and Rothschild 2005,
doi:10.1197/jamia.M1733, which needs no number of true negatives. Intervals are drawn over documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from allonym.evaluate.matching import (
    Finding,
    Mention,
    find_covering_indices,
    list_overlapping_pairs,
    list_word_spans,
    select_disjoint_mentions,
)
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.resampling import Draws


class Agreement(Serialisable):
    """Agreement of annotators: 1 is full agreement; kappa and alpha are 0 for chance agreement, and negative below it.

    Attributes:
        annotators: how many there are; documents: how many of them have more than one.
        alpha: Krippendorff's, over words and classes.
        mask: the same over whether a word is in a span at all.
        kappa: Cohen's, the mean over pairs of annotators, weighted by the words that they share.
        strict: F1 of spans with the same borders and class; overlap: that share a character, of the same class.
    """

    annotators: int
    documents: int
    alpha: Estimate
    mask: Estimate
    kappa: Estimate
    strict: Estimate
    overlap: Estimate


def count_coincidences(units: Sequence[Sequence[int]], class_count: int) -> Any:
    """Return Krippendorff's coincidence matrix of units, each with the values that it received; units with fewer than
    two values add nothing.

    Args:
        units: the values, from 0 to ``classes - 1``, of each unit.
        class_count: how many values there are.
    """
    out = np.zeros((class_count, class_count))
    for values in units:
        if len(values) > 1:
            counts = np.bincount(values, minlength=class_count).astype(float)
            out += (np.outer(counts, counts) - np.diag(counts)) / (len(values) - 1)
    return out


def compute_krippendorff_alpha(table: Any) -> Any:
    """Return Krippendorff's alpha of coincidence matrices ``(..., c, c)``; NaN where only one value occurs."""
    table = np.asarray(table, float)
    agreeing = np.trace(table, axis1=-2, axis2=-1)
    totals = table.sum(axis=-1)
    n = totals.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (n * n - (totals * totals).sum(axis=-1)) / (n - 1)
        return np.where(expected > 0, 1 - (n - agreeing) / expected, np.nan)


def compute_cohen_kappa(table: Any) -> Any:
    """Return Cohen's kappa of tables ``(..., c, c)`` of two raters' values; NaN where chance agreement is complete."""
    return _compute_kappa_from_margins(_sum_diagonal_and_margins(np.asarray(table, float)))


def _sum_diagonal_and_margins(table: Any) -> Any:
    """Return the sums that kappa needs of a table: of the diagonal, of each row, of each column."""
    diagonal = np.trace(table, axis1=-2, axis2=-1)[..., None]
    return np.concatenate([diagonal, table.sum(axis=-1), table.sum(axis=-2)], axis=-1)


def _compute_kappa_from_margins(margins: Any) -> Any:
    size = margins.shape[-1] // 2
    rows, columns = margins[..., 1 : 1 + size], margins[..., 1 + size :]
    n = rows.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = margins[..., 0] / n
        chance = (rows * columns).sum(axis=-1) / (n * n)
        return np.where(chance < 1, (observed - chance) / (1 - chance), np.nan)


def measure_agreement(
    texts: Sequence[str],
    readings: Sequence[Mapping[str, Sequence[Mention]]],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Agreement | None:
    """Measure the agreement of annotators; None where no text has two.

    Args:
        texts: the texts.
        readings: of each text, annotator to mentions.
        draws, seed: of the intervals.
    """
    shared_by = [i for i, marks_by in enumerate(readings) if len(marks_by) > 1]
    if not shared_by:
        return None
    classes = {
        name: i
        for i, name in enumerate(sorted({m.name for marks_by in readings for r in marks_by.values() for m in r}))
    }
    none = len(classes)
    size = none + 1
    pairs = sorted({pair for i in shared_by for pair in combinations(sorted(readings[i]), 2)})
    n = len(shared_by)
    labels, hidden = np.zeros((n, size, size)), np.zeros((n, 2, 2))
    margins, spans = np.zeros((n, len(pairs), 2 * size + 1)), np.zeros((n, 3))
    column_of = {pair: k for k, pair in enumerate(pairs)}
    words = 0
    for row, i in enumerate(shared_by):
        places = list_word_spans(texts[i])
        words += len(places)
        marks_by = {name: select_disjoint_mentions(readings[i][name]) for name in sorted(readings[i])}
        values = {
            name: [classes[marks[k].name] if k >= 0 else none for k in find_covering_indices(places, marks)]
            for name, marks in marks_by.items()
        }
        units = list(zip(*values.values(), strict=True))
        labels[row] = count_coincidences(units, size)
        hidden[row] = count_coincidences([[int(v != none) for v in unit] for unit in units], 2)
        for first, second in combinations(marks_by, 2):
            table = np.zeros((size, size))
            np.add.at(table, (values[first], values[second]), 1)
            margins[row, column_of[first, second]] = _sum_diagonal_and_margins(table)
            spans[row] += _count_shared_spans(marks_by[first], marks_by[second])
    drawn = Draws(n, draws=draws, seed=seed)
    pooled = drawn.sums(spans)
    drawn_margins = drawn.sums(margins)
    by_pair, weight = _compute_kappa_from_margins(drawn_margins), drawn_margins[:, :, 1 : 1 + size].sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(by_pair * weight, axis=1) / np.where(np.isnan(by_pair), 0, weight).sum(axis=1)
        strict, overlap = pooled[:, 1] / pooled[:, 0], pooled[:, 2] / pooled[:, 0]
    one_value, number = "only one class was ever given", int(pooled[0, 0])
    return Agreement(
        len({name for marks_by in readings for name in marks_by}),
        n,
        drawn.estimate(compute_krippendorff_alpha(drawn.sums(labels)), words, one_value),
        drawn.estimate(compute_krippendorff_alpha(drawn.sums(hidden)), words, one_value),
        drawn.estimate(mean, words, one_value),
        drawn.estimate(strict, number, "no span"),
        drawn.estimate(overlap, number, "no span"),
    )


def _count_shared_spans(first: Sequence[Mention], second: Sequence[Mention]) -> tuple[int, int, int]:
    """Count the spans of both, and those that the other has too, strictly and by overlap; F1 is their ratio."""
    as_found = [Finding(m.start, m.end, m.name) for m in second]
    exact = {(m.start, m.end, m.name) for m in first} & {(m.start, m.end, m.name) for m in second}
    same = [(i, k) for i, k, _ in list_overlapping_pairs(first, as_found) if first[i].name == second[k].name]
    return len(first) + len(second), 2 * len(exact), len({i for i, _ in same}) + len({k for _, k in same})

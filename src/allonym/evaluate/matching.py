"""Findings compared with the gold, one text at a time: counts that add up over texts and annotators.

Both sides are made disjoint first: of spans that overlap the longest counts. Marks of punctuation are no tokens, and
whether they are covered does not matter.

token    words, by the label of the span that shares a character with them
strict   spans with the same borders and label
overlap  a gold span is found where a finding of its label shares a character with it; a finding is right likewise
entity   a gold referent is found where findings of its label cover every mention of it; a name that was found is right
         where all its places lie in gold spans of its label

How far annotators of the same texts agree: Cohen's kappa, Krippendorff's alpha, and F1 of one against the other.

Units of kappa and alpha are words with the class of their span, or none. Cohen 1960, doi:10.1177/001316446002000104;
Krippendorff 2011, https://repository.upenn.edu/asc_papers/43 (nominal data); F1 as Hripcsak and Rothschild 2005,
doi:10.1197/jamia.M1733, which needs no number of true negatives. Intervals are drawn over documents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from allonym.document import Interval, Span, merge_intervals, subtract_intervals
from allonym.evaluate.classes import NAME_PARTS, Classes
from allonym.evaluate.pairs import group_items
from allonym.models.words import split_words
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import Draws
from allonym.text.fold import fold_surface
from allonym.train.records import select_outermost_spans

LEVELS = ("token", "strict", "overlap", "entity")
GOLD_HIT, GOLD, FOUND_HIT, FOUND = range(4)
NONE = "none"
"""The row and the column of the confusion matrix for what is in no span."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A gold span: its position, class, referent (an id, else its folded text), and kind of identifier."""

    start: int
    end: int
    name: str
    entity: str = field(default="", repr=False)
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding and its class among those of the gold; ``beyond`` where the gold has no such class; without a name
    where its type is not known."""

    start: int
    end: int
    name: str
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The classes as numbers: those of the gold, then those that only findings have; the last row is for any type."""

    gold: tuple[str, ...]
    beyond: tuple[str, ...]

    @property
    def class_numbers(self) -> Mapping[str, int]:
        """Class to its number."""
        return {name: i for i, name in enumerate((*self.gold, *self.beyond))}

    @property
    def any_class_row(self) -> int:
        """The number of the row for any type, and of no span in the confusion matrix."""
        return len(self.gold) + len(self.beyond)


def list_word_spans(text: str) -> list[Interval]:
    """List the words of a text, without punctuation marks."""
    return [(a, b) for a, b in split_words(text) if text[a].isalnum()]


def find_covering_indices(words: Sequence[Interval], spans: Sequence[Mention | Finding]) -> list[int]:
    """Return for each word the index of the first span that shares a character with it; -1 for none.

    Args:
        words: words, in order.
        spans: sorted and disjoint.
    """
    out = []
    index = 0
    for start, end in words:
        while index < len(spans) and spans[index].end <= start:
            index += 1
        out.append(index if index < len(spans) and spans[index].start < end else -1)
    return out


def list_overlapping_pairs(gold: Sequence[Mention], findings: Sequence[Finding]) -> list[tuple[int, int, int]]:
    """List (mention, finding, shared characters) of all that share any; both are sorted and disjoint."""
    out = []
    first = 0
    for i, mention in enumerate(gold):
        while first < len(findings) and findings[first].end <= mention.start:
            first += 1
        index = first
        while index < len(findings) and findings[index].start < mention.end:
            out.append((i, index, min(mention.end, findings[index].end) - max(mention.start, findings[index].start)))
            index += 1
    return out


def map_findings_to_classes(
    text: str, findings: Iterable[Span], gold: Sequence[Mention], classes: Classes, source: str = ""
) -> list[Finding]:
    """Return findings in the classes of the gold.

    One that may belong to several classes, or that tells no type, takes that of the mention with which it shares
    most, if it may; first and last names side by side become one where the gold does not part them.
    """
    spans = select_outermost_spans(findings)
    plain = [Finding(s.start, s.end, "") for s in spans]
    fits = [classes.map_found_label(s.label, source) if s.label else () for s in spans]
    best: dict[int, tuple[int, str]] = {}
    for i, k, size in list_overlapping_pairs(gold, plain):
        if (not spans[k].label or gold[i].name in fits[k]) and size > best.get(k, (0, ""))[0]:
            best[k] = size, gold[i].name
    out: list[Finding] = []
    before: Span | None = None
    for k, span in enumerate(spans):
        beyond = classes.name_class_beyond_gold(span.label) if span.label else ""
        name = best[k][1] if k in best else (*fits[k], beyond)[0]
        if (
            before is not None
            and {before.label, span.label} <= NAME_PARTS
            and out[-1].name == name
            and classes.joins_name_parts(name)
            and not text[before.end : span.start].strip(" \t.")
        ):
            out[-1] = Finding(out[-1].start, span.end, name)
        else:
            out.append(Finding(span.start, span.end, name, bool(span.label) and name not in classes.names))
        before = span
    return out


def select_disjoint_mentions(mentions: Iterable[Mention]) -> list[Mention]:
    """Select the longest of mentions that overlap, then the first."""
    selected: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m.start - m.end, m.start, m.name)):
        index = bisect_left(selected, mention.start, key=lambda m: m.start)
        free = index == len(selected) or mention.end <= selected[index].start
        if free and (not index or selected[index - 1].end <= mention.start):
            selected.insert(index, mention)
    return selected


def has_uncovered_characters(text: str, places: Iterable[Interval], cover: Sequence[Interval]) -> bool:
    """Whether a letter or digit of any of the spans is not covered; ``cover`` is sorted and disjoint."""
    gaps = (gap for place in places for gap in subtract_intervals(place, cover))
    return any(text[i].isalnum() for gap in gaps for i in range(*gap))


@dataclass(slots=True)
class Tally:
    """Counts of one text: per level ``(classes + 1, 4)`` of gold found, gold, right findings, findings; and what was
    taken for what, gold in rows, ``(classes + 1,) * 2``, by words and by spans."""

    levels: dict[str, Any]
    confusion: dict[str, Any]

    @classmethod
    def empty(cls, names: ClassNames) -> Tally:
        """Return a tally without counts."""
        size = names.any_class_row + 1
        return cls(
            {level: np.zeros((size, 4), np.int64) for level in LEVELS},
            {unit: np.zeros((size, size), np.int64) for unit in ("token", "span")},
        )


class _Sides:
    """One text as one annotator sees it: mentions and findings with the numbers of their classes.

    Attributes:
        rows: of the mentions; columns: of the findings, None where their type is not known.
        touched: findings that share a character with a mention.
        counted: whether each finding counts for any type.
        overlaps: see :func:`list_overlapping_pairs`.
        top: the row for any type.
    """

    def __init__(
        self, text: str, gold: Sequence[Mention], findings: Sequence[Finding], names: ClassNames, count_beyond: bool
    ) -> None:
        self.text, self.gold, self.findings = text, gold, findings
        self.number, self.top = names.class_numbers, names.any_class_row
        self.rows = [self.number[m.name] for m in gold]
        self.columns = [self.number.get(f.name) for f in findings]
        self.overlaps = list_overlapping_pairs(gold, findings)
        self.touched = {k for _, k, _ in self.overlaps}
        self.counted = [count_beyond or not f.beyond or k in self.touched for k, f in enumerate(findings)]


def add_counts(
    into: Tally,
    text: str,
    gold: Sequence[Mention],
    findings: Sequence[Finding],
    names: ClassNames,
    *,
    count_beyond: bool,
) -> None:
    """Add the counts of one text as one annotator sees it.

    Args:
        into: what to add to.
        gold, findings: sorted and disjoint.
        names: the classes.
        count_beyond: whether a finding counts for any type although the gold has no such class and nothing there.
    """
    sides = _Sides(text, gold, findings, names, count_beyond)
    for level in ("strict", "overlap"):
        for row in sides.rows:
            into.levels[level][row, GOLD] += 1
        for column in sides.columns:
            _increase_cells(into.levels[level], column, FOUND)
    _add_word_counts(sides, into.levels["token"], into.confusion["token"])
    _add_strict_counts(sides, into.levels["strict"])
    _add_overlap_counts(sides, into.levels["overlap"], into.confusion["span"])
    _add_entity_counts(sides, into.levels["entity"])


def _increase_cells(table: Any, row: int | None, columns: int | tuple[int, ...], n: int = 1) -> None:
    """Add ``n`` to cells of a row; nothing where the row is None, of a class that the gold has not."""
    if row is not None:
        table[row, columns] += n


def _add_word_counts(sides: _Sides, table: Any, confusion: Any) -> None:
    places = list_word_spans(sides.text)
    covers = (find_covering_indices(places, spans) for spans in (sides.gold, sides.findings))
    for (i, k), n in Counter(zip(*covers, strict=True)).items():
        row, column = sides.rows[i] if i >= 0 else None, sides.columns[k] if k >= 0 else None
        confusion[sides.top if row is None else row, sides.top if column is None else column] += n
        _increase_cells(table, row, GOLD, n)
        _increase_cells(table, column, FOUND, n)
        if row == column:
            _increase_cells(table, row, (GOLD_HIT, FOUND_HIT), n)
        both = i >= 0 and k >= 0
        table[sides.top] += (n * both, n * (i >= 0), n * both, n * (both or (k >= 0 and sides.counted[k])))


def _add_strict_counts(sides: _Sides, table: Any) -> None:
    row_at = {(m.start, m.end): row for m, row in zip(sides.gold, sides.rows, strict=True)}
    table[sides.top, (GOLD, FOUND)] += (len(sides.gold), sum(sides.counted))
    for finding, column in zip(sides.findings, sides.columns, strict=True):
        if (row := row_at.get((finding.start, finding.end))) is not None:
            table[sides.top, (GOLD_HIT, FOUND_HIT)] += 1
            if row == column:
                table[row, (GOLD_HIT, FOUND_HIT)] += 1


def _add_overlap_counts(sides: _Sides, table: Any, confusion: Any) -> None:
    right = [(i, k) for i, k, _ in sides.overlaps if sides.rows[i] == sides.columns[k]]
    best: dict[int, tuple[int, bool, int]] = {}
    for i, k, size in sides.overlaps:
        best[i] = max(best.get(i, (0, False, 0)), (size, sides.rows[i] == sides.columns[k], -k))
    for i, row in enumerate(sides.rows):
        column = sides.columns[-best[i][2]] if i in best else None
        confusion[row, sides.top if column is None else column] += 1
    for k, column in enumerate(sides.columns):
        if k not in sides.touched:
            confusion[sides.top, sides.top if column is None else column] += 1
    for i in {i for i, _ in right}:
        table[sides.rows[i], GOLD_HIT] += 1
    for k in {k for _, k in right}:
        _increase_cells(table, sides.columns[k], FOUND_HIT)
    table[sides.top] += (len(best), len(sides.gold), len(sides.touched), sum(sides.counted))


def _add_entity_counts(sides: _Sides, table: Any) -> None:
    text, number = sides.text, sides.number
    gold_by_name, found_by_name = _merge_intervals_by_class(sides.gold), _merge_intervals_by_class(sides.findings)
    everything = merge_intervals((m.start, m.end) for m in sides.gold)
    cover = merge_intervals((f.start, f.end) for f in sides.findings)
    for mentions in group_referents(text, sides.gold).values():
        name, places = mentions[0].name, [(m.start, m.end) for m in mentions]
        hit = not has_uncovered_characters(text, places, found_by_name.get(name, []))
        table[number[name]] += (hit, 1, 0, 0)
        table[sides.top] += (not has_uncovered_characters(text, places, cover), 1, 0, 0)
    by_type: dict[tuple[str, str], list[Interval]] = {}
    by_text: dict[str, list[Interval]] = {}
    for finding, counts in zip(sides.findings, sides.counted, strict=True):
        place, surface = (finding.start, finding.end), fold_surface(text[finding.start : finding.end])
        by_type.setdefault((finding.name, surface), []).append(place)
        if counts:
            by_text.setdefault(surface, []).append(place)
    for (name, _), places in by_type.items():
        _increase_cells(table, number.get(name), FOUND)
        if not has_uncovered_characters(text, places, gold_by_name.get(name, [])):
            _increase_cells(table, number.get(name), FOUND_HIT)
    for places in by_text.values():
        table[sides.top] += (0, 0, not has_uncovered_characters(text, places, everything), 1)


def group_referents(text: str, gold: Iterable[Mention]) -> dict[tuple[str, str], list[Mention]]:
    """Group mentions by referent: by its id, else by class and folded text."""

    def find_referent(mention: Mention) -> tuple[str, str]:
        if mention.entity:
            return "", mention.entity
        return mention.name, fold_surface(text[mention.start : mention.end])

    return group_items(gold, find_referent)


def _merge_intervals_by_class(spans: Iterable[Mention | Finding]) -> dict[str, list[Interval]]:
    spans_of = group_items(spans, lambda span: span.name).items()
    return {name: merge_intervals((span.start, span.end) for span in members) for name, members in spans_of}


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

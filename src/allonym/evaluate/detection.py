"""How well identifiers were found, against what people marked: precision, recall, F1, leaks (P3, P4 4.2, P5, TAB).

Counts are taken once per document and add up over documents and annotators, so every interval comes from one set of
bootstrap draws over documents. Where the texts are repeated or cut into passages, documents are what ``doc_id`` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allonym.document import Span
from allonym.errors import DataError
from allonym.evaluate import leaks as leaking
from allonym.evaluate import tab as benchmark
from allonym.evaluate.agreement import Agreement, agreement
from allonym.evaluate.classes import Classes, Compare, Map
from allonym.evaluate.found import found_between
from allonym.evaluate.leaks import Leaks
from allonym.evaluate.matching import (
    FOUND,
    FOUND_HIT,
    GOLD,
    GOLD_HIT,
    LEVELS,
    NONE,
    Mention,
    Names,
    Tally,
    disjoint,
    settled,
    tally,
)
from allonym.evaluate.pairs import checked
from allonym.evaluate.tab import TabScores, Weights, unigram_bits
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.resampling import Draws
from allonym.train.records import Mark, Record

__all__ = ["Confusion", "Detection", "Level", "Scores", "detection"]

Ratios = tuple[Any, Any, Any]
"""Precision, recall and F1 of all texts and of each draw, ``(1 + draws, ...)``."""


@dataclass(frozen=True, slots=True)
class Scores(Serialisable):
    """Precision, recall and F1 from 0 to 1, and how many gold items and findings they rest on."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    gold: int
    found: int


@dataclass(frozen=True, slots=True)
class Level(Serialisable):
    """The scores at one level.

    Attributes:
        labels: per class of the gold, and of findings beyond it where these count.
        micro: all of them together; macro: the mean over the classes that have a value; weighted: the same, weighted
            by how often the gold has them.
        any: whatever the type: found or not.
    """

    labels: Mapping[str, Scores]
    micro: Scores
    macro: Scores
    weighted: Scores
    any: Scores


@dataclass(frozen=True, slots=True)
class Confusion(Serialisable):
    """What was taken for what: counts, gold in ``rows``, findings in ``columns``; ``none`` is last in both.

    Of spans, each gold one counts for the finding with which it shares most; findings that touch no gold are in the
    last row.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Detection(Serialisable):
    """What :func:`detection` tells.

    Attributes:
        texts, documents: how many there are.
        annotators: how many marked the texts.
        compare: by which labels, see :class:`allonym.evaluate.classes.Classes`.
        typed: whether the findings tell their types; without, precision, F1 and confusion by type cannot be told.
        levels: ``token``, ``strict``, ``overlap``, ``entity``; see :mod:`allonym.evaluate.matching`.
        confusion: by ``token`` and ``span``; empty without types.
        leaks: P4's false negative rates.
        tab: the measures of the Text Anonymization Benchmark.
        agreement: of the annotators, where a text has several.
        beyond: labels of findings for which the gold has no class, and how many findings have each.
        beyond_counts: whether those count as wrong findings, else as neither right nor wrong.
        unmapped: labels of the gold that mean nothing in the taxonomy, and how many spans have each; only findings
            with the same label fit them.
        left_out: gold spans that do not count, by label: those of labels that the label map leaves out, and what the
            annotators say must not be masked.
        seed: of the draws.
    """

    texts: int
    documents: int
    annotators: int
    compare: str
    typed: bool
    levels: Mapping[str, Level]
    confusion: Mapping[str, Confusion]
    leaks: Leaks
    tab: TabScores
    agreement: Agreement | None
    beyond: Mapping[str, int] = field(default_factory=dict)
    beyond_counts: bool = False
    unmapped: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0


def detection(
    original: Sequence[str],
    anonymised: Sequence[str] | None = None,
    *,
    gold: Sequence[Record],
    predicted: Sequence[Iterable[Span]] | None = None,
    compare: Compare = "gold",
    label_map: Map | None = None,
    count_beyond: bool = False,
    weights: Weights | None = None,
    language: str = "en",
    draws: int = 1000,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> Detection:
    """Measure findings against gold spans.

    Args:
        original: the texts that the gold was marked in.
        anonymised: what became of them; without ``predicted`` the findings are told from it by alignment
            (:func:`allonym.evaluate.found.found_between`), with it only the leaks by text are.
        gold: the record of each text, as :func:`allonym.train.records.read_records` reads it; a record's
            ``annotations`` are averaged micro.
        predicted: the findings in each text, with labels of the taxonomy or of any scheme.
        compare: ``gold``, by the gold's labels; ``group``, by the tops of the taxonomy; ``exact``, as written. A
            finding that touches no gold span and may belong to several of its labels counts against the narrowest, so
            where labels differ in their role only (patient, doctor) group them or map them.
        label_map: what labels of the gold or of findings mean in the taxonomy, ``()`` to leave spans of the gold out.
        count_beyond: whether findings of types that the gold does not have are wrong; else they count only where
            they touch a gold span.
        weights: of masked words, for the benchmark's weighted precision; by default bits by frequency.
        language: of those frequencies.
        draws, seed: of the intervals.
        advance: called with (done, of).

    Raises:
        DataError: unequal lengths, no texts, a gold that is of another text, or neither findings nor anonymised texts.
        UnknownNameError: a label of the map that the taxonomy does not have.
    """
    n = checked(original, original if anonymised is None else anonymised, gold)
    for number, (text, record) in enumerate(zip(original, gold, strict=True), 1):
        if record["text"] != text:
            raise DataError(f"text {number}: the gold is of another text")
    if predicted is None:
        if anonymised is None:
            raise DataError("findings or anonymised texts are required to measure detection")
        predicted = found_between(original, anonymised)
    checked(original, original, predicted)
    marked = _Marked(gold, compare, label_map)
    found = [list(spans) for spans in predicted]
    for number, (text, spans) in enumerate(zip(original, found, strict=True), 1):
        if any(span.end > len(text) for span in spans):
            raise DataError(f"text {number}: a finding ends beyond the text of {len(text)} characters")
    labels = Counter(span.label for spans in found for span in spans)
    classes, document, documents = marked.classes, *_documents(gold)
    beyond = {label: k for label, k in sorted(labels.items()) if label and not classes.of_found(label)}
    names = Names(classes.names, tuple(sorted({classes.beyond(label) for label in beyond} - {*classes.names})))
    scale = weights or unigram_bits(language)
    counted = Tally.empty(names)
    levels = {level: np.zeros((documents, names.any + 1, 4), np.int64) for level in LEVELS}
    left = np.zeros((documents, names.any, 5), np.int64)
    masked = np.zeros((documents, 22))
    for i, text in enumerate(original):
        own = Tally.empty(names)
        for mentions in marked.counted[i].values():
            outer = disjoint(mentions)
            fitted = settled(text, found[i], outer, classes, marked.sources[i])
            tally(own, text, outer, fitted, names, count_beyond=count_beyond)
            after = None if anonymised is None else anonymised[i]
            left[document[i]] += leaking.counts(text, outer, fitted, names.number, after)
        masked[document[i]] += benchmark.counts(
            text, list(marked.all[i].values()), [(s.start, s.end) for s in found[i]], scale
        )
        for level in LEVELS:
            levels[level][document[i]] += own.levels[level]
        for unit, table in own.confusion.items():
            counted.confusion[unit] += table
        if advance is not None:
            advance(i + 1, n)
    drawn = Draws(documents, draws=draws, seed=seed)
    typed = "" not in labels
    return Detection(
        texts=n,
        documents=documents,
        annotators=len({who for own in marked.all for who in own}),
        compare=compare,
        typed=typed,
        levels={level: _level(levels[level], drawn, names, typed, count_beyond) for level in LEVELS},
        confusion={unit: _confusion(table, names) for unit, table in counted.confusion.items()} if typed else {},
        leaks=leaking.rates(left, drawn, names.gold, after=anonymised is not None),
        tab=benchmark.scores(
            masked,
            drawn,
            weights="given" if weights else f"bits by frequency in {language} (wordfreq)",
            kinds=marked.kinds,
            entities=marked.entities,
        ),
        agreement=agreement(original, marked.counted, draws=draws, seed=seed),
        beyond=beyond,
        beyond_counts=count_beyond,
        unmapped=marked.unmapped,
        left_out=marked.left_out,
        seed=seed,
    )


class _Marked:
    """The gold in its classes: per text and annotator all mentions, and those that count for what was found."""

    def __init__(self, gold: Sequence[Record], compare: Compare, label_map: Map | None) -> None:
        self.sources = [str(record["meta"].get("source", "")) for record in gold]
        raw = [record.get("annotations") or {"": record["spans"]} for record in gold]
        every = [(mark, at) for own, at in zip(raw, self.sources, strict=True) for who in own for mark in own[who]]
        wanted = [(mark["label"], at) for mark, at in every if mark.get("kind") != "none"]
        self.classes = Classes(wanted, compare, label_map)
        self.all: list[dict[str, list[Mention]]] = []
        self.counted: list[dict[str, list[Mention]]] = []
        out: Counter[str] = Counter()
        for own, at in zip(raw, self.sources, strict=True):
            told = {who: [(self._mention(mark, at), mark.get("kind") == "none") for mark in own[who]] for who in own}
            self.all.append({who: [m for m, _ in told[who] if m.name] for who in sorted(told)})
            self.counted.append({who: [m for m, no in told[who] if m.name and not no] for who in sorted(told)})
            out.update(
                mark["label"]
                for who in own
                for mark, (m, no) in zip(own[who], told[who], strict=True)
                if no or not m.name
            )
        self.left_out = dict(sorted(out.items()))
        unmapped = Counter(mark["label"] for mark, _ in every if mark["label"] in self.classes.unmapped)
        self.unmapped = dict(sorted(unmapped.items()))
        self.kinds = _told_by([bool(mark.get("kind")) for mark, _ in every], "taxonomy")
        self.entities = _told_by([bool(mark.get("entity")) for mark, _ in every], "surface")

    def _mention(self, mark: Mark, source: str) -> Mention:
        name = self.classes.of_gold(mark["label"], source)
        kind = mark.get("kind") or self.classes.kind(mark["label"], source)
        return Mention(mark["start"], mark["end"], name, mark.get("entity", ""), kind)


def _told_by(told: Sequence[bool], otherwise: str) -> str:
    return "gold" if told and all(told) else "both" if any(told) else otherwise


def _documents(gold: Sequence[Record]) -> tuple[list[int], int]:
    """The number of each text's document, and how many there are."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(record["doc_id"], len(numbers)) for record in gold], len(numbers)


def _confusion(table: Any, names: Names) -> Confusion:
    """Rows of the gold's classes and none, columns of all classes and none."""
    rows = [*range(len(names.gold)), names.any]
    counts = tuple(tuple(int(v) for v in table[row]) for row in rows)
    return Confusion((*names.gold, NONE), (*names.gold, *names.beyond, NONE), counts)


def _level(table: Any, drawn: Draws, names: Names, typed: bool, count_beyond: bool) -> Level:
    sums = drawn.sums(table)
    size = names.any if count_beyond else len(names.gold)
    each, pooled, whatever = sums[:, :size], sums[:, :size].sum(axis=1), sums[:, names.any]
    precision, recall, f1 = _ratios(each)
    weight = each[:, :, GOLD]
    gold, found = int(pooled[0, GOLD]), int(pooled[0, FOUND])

    def scores(measured: Ratios, gold: int, found: int, *, typed: bool = typed, shares: bool = True) -> Scores:
        p, r, f = measured
        untold = "the findings tell no types"
        return Scores(
            drawn.estimate(p, found, "nothing was found", share=shares) if typed else none(untold, found),
            drawn.estimate(r, gold, "no gold span", share=shares),
            drawn.estimate(f, gold + found, "neither gold nor findings") if typed else none(untold, gold + found),
            gold,
            found,
        )

    labels = {
        name: scores((precision[:, i], recall[:, i], f1[:, i]), int(each[0, i, GOLD]), int(each[0, i, FOUND]))
        for i, name in enumerate((*names.gold, *names.beyond)[:size])
    }
    even = np.ones_like(weight)
    return Level(
        labels,
        scores(_ratios(pooled), gold, found),
        scores((_mean(precision, even), _mean(recall, even), _mean(f1, even)), gold, found, shares=False),
        scores((_mean(precision, weight), _mean(recall, weight), _mean(f1, weight)), gold, found, shares=False),
        scores(_ratios(whatever), int(whatever[0, GOLD]), int(whatever[0, FOUND]), typed=True),
    )


def _ratios(table: Any) -> Ratios:
    """Precision, recall and F1 of counts ``(..., 4)``; NaN where there is nothing to divide by."""
    gold, found = table[..., GOLD], table[..., FOUND]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = table[..., FOUND_HIT] / found, table[..., GOLD_HIT] / gold
        f1 = 2 * precision * recall / (precision + recall)
    nothing_right = (table[..., FOUND_HIT] == 0) | (table[..., GOLD_HIT] == 0)
    return precision, recall, np.where(gold + found == 0, np.nan, np.where(nothing_right, 0.0, f1))


def _mean(values: Any, weights: Any) -> Any:
    """Weighted mean over the classes, ``(draws, classes)``, of those that have a value."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(there, values * weights, 0).sum(axis=1) / np.where(there, weights, 0).sum(axis=1)

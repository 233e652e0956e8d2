"""Detection measured against annotations by people: precision, recall, F1, leaks (P3, P4 4.2, P5, TAB).

Counts are taken once per document and add up over documents and annotators, so every interval comes from one set of
bootstrap draws over documents. Where the texts are repeated or cut into passages, documents are what ``doc_id`` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from allonym.document import Span
from allonym.errors import DataError
from allonym.evaluate import leaks as leaking
from allonym.evaluate.classes import Classes, Compare, Map
from allonym.evaluate.findings import found_between
from allonym.evaluate.leaks import Leaks, TabScores, Weights, unigram_bits
from allonym.evaluate.matching import (
    FOUND,
    FOUND_HIT,
    GOLD,
    GOLD_HIT,
    LEVELS,
    NONE,
    Agreement,
    ClassNames,
    Mention,
    Tally,
    add_counts,
    map_findings_to_classes,
    measure_agreement,
    select_disjoint_mentions,
)
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import Draws
from allonym.train.records import Mark, Record

Ratios = tuple[Any, Any, Any]
"""Precision, recall and F1 of all texts and of each draw, ``(1 + draws, ...)``."""


class Scores(Serialisable):
    """Precision, recall and F1 from 0 to 1, and how many gold items and findings they rest on."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    gold: int
    found: int


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


class Confusion(Serialisable):
    """Counts of gold labels by the labels that were found, gold in ``rows``, findings in ``columns``; ``none`` is last
    in both.

    Of spans, each gold one counts for the finding with which it shares most; findings that touch no gold are in the
    last row.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


class Detection(Serialisable):
    """The result of :func:`detection`.

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
    advance: Advance | None = None,
) -> Detection:
    """Measure findings against gold spans.

    Args:
        original: the texts that the gold was marked in.
        anonymised: what became of them; without ``predicted`` the findings are told from it by alignment
            (:func:`allonym.evaluate.findings.found_between`), with it only the leaks by text are.
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
    n = check_lengths(original, original if anonymised is None else anonymised, gold)
    for number, (text, record) in enumerate(zip(original, gold, strict=True), 1):
        if record["text"] != text:
            raise DataError(f"text {number}: the gold is of another text")
    if predicted is None:
        if anonymised is None:
            raise DataError("findings or anonymised texts are required to measure detection")
        predicted = found_between(original, anonymised)
    check_lengths(original, original, predicted)
    marked = _Gold(gold, compare, label_map)
    findings = [list(spans) for spans in predicted]
    for number, (text, spans) in enumerate(zip(original, findings, strict=True), 1):
        if any(span.end > len(text) for span in spans):
            raise DataError(f"text {number}: a finding ends beyond the text of {len(text)} characters")
    labels = Counter(span.label for spans in findings for span in spans)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(record["doc_id"] for record in gold))}
    classes, document, documents = marked.classes, [numbers[record["doc_id"]] for record in gold], len(numbers)
    beyond = {label: k for label, k in sorted(labels.items()) if label and not classes.map_found_label(label)}
    names = ClassNames(
        classes.names, tuple(sorted({classes.name_class_beyond_gold(label) for label in beyond} - {*classes.names}))
    )
    scale = weights or unigram_bits(language)
    counted = Tally.empty(names)
    levels = {level: np.zeros((documents, names.any_class_row + 1, 4), np.int64) for level in LEVELS}
    leaks = np.zeros((documents, names.any_class_row, 5), np.int64)
    masked = np.zeros((documents, 22))
    for i, text in enumerate(iterate_with_progress(original, advance, n)):
        text_tally = Tally.empty(names)
        for mentions in marked.counted[i].values():
            outer = select_disjoint_mentions(mentions)
            fitted = map_findings_to_classes(text, findings[i], outer, classes, marked.sources[i])
            add_counts(text_tally, text, outer, fitted, names, count_beyond=count_beyond)
            after = None if anonymised is None else anonymised[i]
            leaks[document[i]] += leaking.count_leaks(text, outer, fitted, names.class_numbers, after)
        masked[document[i]] += leaking.count_masked_identifiers(
            text, list(marked.all[i].values()), [(s.start, s.end) for s in findings[i]], scale
        )
        for level in LEVELS:
            levels[level][document[i]] += text_tally.levels[level]
        for unit, table in text_tally.confusion.items():
            counted.confusion[unit] += table
    drawn = Draws(documents, draws=draws, seed=seed)
    typed = "" not in labels
    return Detection(
        texts=n,
        documents=documents,
        annotators=len({annotator for text_tally in marked.all for annotator in text_tally}),
        compare=compare,
        typed=typed,
        levels={level: _estimate_level(levels[level], drawn, names, typed, count_beyond) for level in LEVELS},
        confusion={unit: _build_confusion(table, names) for unit, table in counted.confusion.items()} if typed else {},
        leaks=leaking.estimate_leaks(leaks, drawn, names.gold, after=anonymised is not None),
        tab=leaking.estimate_tab_scores(
            masked,
            drawn,
            weights="given" if weights else f"bits by frequency in {language} (wordfreq)",
            kinds=marked.kinds,
            entities=marked.entities,
        ),
        agreement=measure_agreement(original, marked.counted, draws=draws, seed=seed),
        beyond=beyond,
        beyond_counts=count_beyond,
        unmapped=marked.unmapped,
        left_out=marked.left_out,
        seed=seed,
    )


class _Gold:
    """The gold in its classes: all mentions per text and annotator, and those that count as findings to be made."""

    def __init__(self, gold: Sequence[Record], compare: Compare, label_map: Map | None) -> None:
        self.sources = [str(record["meta"].get("source", "")) for record in gold]
        raw = [record.get("annotations") or {"": record["spans"]} for record in gold]
        every = [
            (mark, source)
            for annotation, source in zip(raw, self.sources, strict=True)
            for annotator in annotation
            for mark in annotation[annotator]
        ]
        counted_labels = [(mark["label"], source) for mark, source in every if not _is_exempt(mark)]
        self.classes = Classes(counted_labels, compare, label_map)
        self.all: list[dict[str, list[Mention]]] = []
        self.counted: list[dict[str, list[Mention]]] = []
        out: Counter[str] = Counter()
        for annotation, source in zip(raw, self.sources, strict=True):
            pairs = {
                annotator: [(mark, self._make_mention(mark, source)) for mark in annotation[annotator]]
                for annotator in sorted(annotation)
            }
            self.all.append({name: [m for _, m in marks if m.name] for name, marks in pairs.items()})
            self.counted.append(
                {name: [m for mark, m in marks if m.name and not _is_exempt(mark)] for name, marks in pairs.items()}
            )
            out.update(mark["label"] for marks in pairs.values() for mark, m in marks if _is_exempt(mark) or not m.name)
        self.left_out = dict(sorted(out.items()))
        unmapped = Counter(mark["label"] for mark, _ in every if mark["label"] in self.classes.unmapped)
        self.unmapped = dict(sorted(unmapped.items()))
        self.kinds = _describe_origin([bool(mark.get("kind")) for mark, _ in every], "taxonomy")
        self.entities = _describe_origin([bool(mark.get("entity")) for mark, _ in every], "surface")

    def _make_mention(self, mark: Mark, source: str) -> Mention:
        name = self.classes.map_gold_label(mark["label"], source)
        kind = mark.get("kind") or self.classes.find_identifier_kind(mark["label"], source)
        return Mention(mark["start"], mark["end"], name, mark.get("entity", ""), kind)


def _is_exempt(mark: Mark) -> bool:
    """Whether the annotators say that a span need not be masked."""
    return mark.get("kind") == "none"


def _describe_origin(is_from_gold: Sequence[bool], otherwise: str) -> str:
    """Return ``gold`` where all values are the gold's, ``both`` where some are, else ``otherwise``."""
    return "gold" if is_from_gold and all(is_from_gold) else "both" if any(is_from_gold) else otherwise


def _build_confusion(table: Any, names: ClassNames) -> Confusion:
    """Return the confusion of the gold's classes and none (rows) with all classes and none (columns)."""
    rows = [*range(len(names.gold)), names.any_class_row]
    counts = tuple(tuple(int(v) for v in table[row]) for row in rows)
    return Confusion((*names.gold, NONE), (*names.gold, *names.beyond, NONE), counts)


def _estimate_level(table: Any, drawn: Draws, names: ClassNames, typed: bool, count_beyond: bool) -> Level:
    sums = drawn.sums(table)
    size = names.any_class_row if count_beyond else len(names.gold)
    each, pooled, whatever = sums[:, :size], sums[:, :size].sum(axis=1), sums[:, names.any_class_row]
    precision, recall, f1 = _score_precision_recall_f1(each)
    weight = each[:, :, GOLD]
    gold, findings = int(pooled[0, GOLD]), int(pooled[0, FOUND])

    def make_scores(measured: Ratios, gold: int, findings: int, *, typed: bool = typed, shares: bool = True) -> Scores:
        p, r, f = measured
        untold = "the findings tell no types"
        return Scores(
            drawn.estimate(p, findings, "nothing was found", share=shares) if typed else none(untold, findings),
            drawn.estimate(r, gold, "no gold span", share=shares),
            drawn.estimate(f, gold + findings, "neither gold nor findings") if typed else none(untold, gold + findings),
            gold,
            findings,
        )

    labels = {
        name: make_scores((precision[:, i], recall[:, i], f1[:, i]), int(each[0, i, GOLD]), int(each[0, i, FOUND]))
        for i, name in enumerate((*names.gold, *names.beyond)[:size])
    }

    def average_scores(weights: Any) -> Scores:
        means = [_average_over_classes(values, weights) for values in (precision, recall, f1)]
        return make_scores((means[0], means[1], means[2]), gold, findings, shares=False)

    return Level(
        labels,
        make_scores(_score_precision_recall_f1(pooled), gold, findings),
        average_scores(np.ones_like(weight)),
        average_scores(weight),
        make_scores(_score_precision_recall_f1(whatever), int(whatever[0, GOLD]), int(whatever[0, FOUND]), typed=True),
    )


def _score_precision_recall_f1(table: Any) -> Ratios:
    """Return precision, recall and F1 of counts ``(..., 4)``; NaN where there is nothing to divide by."""
    gold, findings = table[..., GOLD], table[..., FOUND]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = table[..., FOUND_HIT] / findings, table[..., GOLD_HIT] / gold
        f1 = 2 * precision * recall / (precision + recall)
    nothing_right = (table[..., FOUND_HIT] == 0) | (table[..., GOLD_HIT] == 0)
    return precision, recall, np.where(gold + findings == 0, np.nan, np.where(nothing_right, 0.0, f1))


def _average_over_classes(values: Any, weights: Any) -> Any:
    """Return the weighted mean over the classes, ``(draws, classes)``, that have a value."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(there, values * weights, 0).sum(axis=1) / np.where(there, weights, 0).sum(axis=1)

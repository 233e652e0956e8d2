"""Scores of predictions against gold spans: by word for each B- and I- tag, as in P5's Table 3, and by whole span.

Pure functions over gold spans, predicted spans and words. Counts are additive, so parts of a corpus can be scored
separately. Both sides are made disjoint first: of overlapping spans the longest counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allonym.document import Interval, Span
from allonym.models.words import split_words
from allonym.train.records import Record, list_spans, select_outermost_spans

MEASURES = ("precision", "recall", "f1")

Predict = Callable[[Sequence[str]], list[list[Span]]]
"""A trained model: from texts to the spans of each."""

Report = Callable[[dict[str, Any]], None]
"""Called with the measures of each epoch of a training."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of true positives (``hit``), false positives (``extra``) and false negatives (``missed``)."""

    hit: int = 0
    extra: int = 0
    missed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.hit + other.hit, self.extra + other.extra, self.missed + other.missed)

    @property
    def precision(self) -> float:
        """Share of findings that are right, from 0 to 1; 0 without findings."""
        return self.hit / (self.hit + self.extra) if self.hit + self.extra else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold that was found, from 0 to 1; 0 without gold."""
        return self.hit / (self.hit + self.missed) if self.hit + self.missed else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both; 0 if nothing is right."""
        return 2 * self.hit / (2 * self.hit + self.extra + self.missed) if self.hit else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return precision, recall and F1."""
        return {name: getattr(self, name) for name in MEASURES}


@dataclass(frozen=True, slots=True)
class Score:
    """Counts over some texts.

    Attributes:
        words: number of words.
        right: number of words with the right tag, including ``O``.
        overlap: number of words of gold spans that some finding covers, with whatever label.
        tags: per tag other than ``O``, such as ``B-PER``, its counts over words.
        spans: per label, counts over whole spans; a hit has the same start, end and label (strict).
    """

    words: int = 0
    right: int = 0
    overlap: int = 0
    tags: Mapping[str, Counts] = field(default_factory=dict)
    spans: Mapping[str, Counts] = field(default_factory=dict)

    def __add__(self, other: Score) -> Score:
        return Score(
            self.words + other.words,
            self.right + other.right,
            self.overlap + other.overlap,
            _add_counts(self.tags, other.tags),
            _add_counts(self.spans, other.spans),
        )

    @property
    def accuracy(self) -> float:
        """Share of the words with the right tag; 0 without words."""
        return self.right / self.words if self.words else 0.0

    @property
    def span_cover(self) -> float:
        """Share of the words of gold spans that some finding covers, with whatever label; 0 without any."""
        gold = self.micro.hit + self.micro.missed
        return self.overlap / gold if gold else 0.0

    @property
    def needless(self) -> float:
        """Share of the words outside of gold spans that some finding covers; 0 without any."""
        outside = self.words - self.micro.hit - self.micro.missed
        return (self.micro.hit + self.micro.extra - self.overlap) / outside if outside else 0.0

    @property
    def micro(self) -> Counts:
        """Sum of the counts of all tags."""
        return sum(self.tags.values(), Counts())

    @property
    def strict(self) -> Counts:
        """Sum of the counts of all spans."""
        return sum(self.spans.values(), Counts())

    def macro(self, measure: str) -> float:
        """Return the mean of ``precision``, ``recall`` or ``f1`` over the tags in the gold; 0 without tags."""
        values = [getattr(c, measure) for c in self.tags.values() if c.hit + c.missed]
        return sum(values) / len(values) if values else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, for a report in JSON."""
        return {
            "words": self.words,
            "accuracy": self.accuracy,
            "covered": self.span_cover,
            "needless": self.needless,
            "macro": {m: self.macro(m) for m in MEASURES},
            "micro": _summarise_counts(self.micro),
            "strict": _summarise_counts(self.strict),
            "tags": {tag: _summarise_counts(self.tags[tag]) for tag in _sort_tags(self.tags)},
            "spans": {label: _summarise_counts(self.spans[label]) for label in sorted(self.spans)},
        }


def _add_counts(a: Mapping[str, Counts], b: Mapping[str, Counts]) -> dict[str, Counts]:
    return {name: a.get(name, Counts()) + b.get(name, Counts()) for name in sorted({*a, *b})}


def _summarise_counts(counts: Counts) -> dict[str, float]:
    return {**counts.to_dict(), "gold": counts.hit + counts.missed, "found": counts.hit + counts.extra}


def _sort_tags(tags: Iterable[str]) -> list[str]:
    return sorted(tags, key=lambda tag: (tag[2:], tag[0]))


def tag_words(borders: Sequence[Interval], spans: Iterable[Span]) -> list[str]:
    """Return the BIO tag of each word. A word belongs to the first disjoint span that shares a character with it.

    >>> tag_words([(0, 3), (4, 9), (10, 13)], [Span(0, 9, "PER")])
    ['B-PER', 'I-PER', 'O']
    """
    outer_spans = select_outermost_spans(spans)
    out: list[str] = []
    begun = -1
    position = 0
    for start, end in borders:
        while position < len(outer_spans) and outer_spans[position].end <= start:
            position += 1
        if position == len(outer_spans) or outer_spans[position].start >= end:
            out.append("O")
        else:
            out.append(("I-" if begun == position else "B-") + outer_spans[position].label)
            begun = position
    return out


def score_spans(gold: Iterable[Span], predicted: Iterable[Span], borders: Sequence[Interval]) -> Score:
    """Score one text.

    Args:
        gold: the gold spans.
        predicted: the findings.
        borders: the half-open offsets of the words.
    """
    gold, predicted = select_outermost_spans(gold), select_outermost_spans(predicted)
    right, predicted_tags = tag_words(borders, gold), tag_words(borders, predicted)
    tags = _count_matches_by_label(enumerate(right), enumerate(predicted_tags))
    pairs = list(zip(right, predicted_tags, strict=True))
    same, overlap = sum(a == b for a, b in pairs), sum("O" not in pair for pair in pairs)
    exact, exact_predicted = ([((s.start, s.end), s.label) for s in spans] for spans in (gold, predicted))
    return Score(len(borders), same, overlap, tags, _count_matches_by_label(exact, exact_predicted))


def _count_matches_by_label(gold: Iterable[tuple[Any, str]], predicted: Iterable[tuple[Any, str]]) -> dict[str, Counts]:
    """Count right, extra and missed items of each label except ``O``."""
    right, other = set(gold), set(predicted)
    hit, extra, missed = (Counter(name for _, name in some) for some in (right & other, other - right, right - other))
    return {n: Counts(hit[n], extra[n], missed[n]) for n in sorted({*hit, *extra, *missed} - {"O"})}


def score_texts(texts: Iterable[tuple[str, Iterable[Span], Iterable[Span]]]) -> Score:
    """Score several texts, given as (text, gold, predicted)."""
    total = Score()
    for text, gold, predicted in texts:
        total += score_spans(gold, predicted, split_words(text))
    return total


def score_model(predict: Predict, records: Sequence[Record]) -> Score:
    """Score a model on records with its own labels."""
    predicted = predict([record["text"] for record in records])
    return score_texts((r["text"], list_spans(r), spans) for r, spans in zip(records, predicted, strict=True))


def tabulate_scores(scores: Mapping[str, Score]) -> tuple[list[str], list[list[str]]]:
    """Return the head and rows of P5's Table 3 for several models, shares of words covered, and strict F1 per label.

    Recall, precision and F1 are means over the tags of the gold (macro; P5 does not say how it averages). A cell is
    ``-`` if neither the gold nor the model has the tag.
    """
    measures: dict[str, Callable[[Score], float]] = {
        "accuracy": lambda s: s.accuracy,
        "recall": lambda s: s.macro("recall"),
        "precision": lambda s: s.macro("precision"),
        "F1": lambda s: s.macro("f1"),
        "F1, all words together": lambda s: s.micro.f1,
        "F1, whole spans": lambda s: s.strict.f1,
        "words of spans covered": lambda s: s.span_cover,
        "other words covered": lambda s: s.needless,
    }
    rows = [[name, *(f"{measure(s):.4f}" for s in scores.values())] for name, measure in measures.items()]
    for tag in _sort_tags({tag for s in scores.values() for tag in s.tags}):
        rows.append([f"F1 {tag}", *(_format_f1(s.tags.get(tag)) for s in scores.values())])
    for label in sorted({label for s in scores.values() for label in s.spans}):
        rows.append([f"F1 whole {label}", *(_format_f1(s.spans.get(label)) for s in scores.values())])
    return ["measure", *scores], rows


def _format_f1(counts: Counts | None) -> str:
    return "-" if counts is None else f"{counts.f1:.4f}"

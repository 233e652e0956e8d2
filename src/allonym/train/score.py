"""Scores of predictions against gold spans: by word for each B- and I- tag, as in P5's Table 3, and by whole span.

Pure functions over gold spans, predicted spans and words. Counts are additive, so parts of a corpus can be scored
separately. Both sides are made disjoint first: of overlapping spans the longest counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allonym.document import Interval, Span
from allonym.models.words import split_words
from allonym.train.records import keep_outermost


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


@dataclass(frozen=True, slots=True)
class Score:
    """Counts over some texts.

    Attributes:
        words: number of words.
        right: number of words with the right tag, including ``O``.
        tags: per tag other than ``O``, such as ``B-PER``, its counts over words.
        spans: per label, counts over whole spans; a hit has the same start, end and label (strict).
    """

    words: int = 0
    right: int = 0
    tags: Mapping[str, Counts] = field(default_factory=dict)
    spans: Mapping[str, Counts] = field(default_factory=dict)

    def __add__(self, other: Score) -> Score:
        return Score(
            self.words + other.words,
            self.right + other.right,
            _add_counts(self.tags, other.tags),
            _add_counts(self.spans, other.spans),
        )

    @property
    def accuracy(self) -> float:
        """Share of the words with the right tag; 0 without words."""
        return self.right / self.words if self.words else 0.0

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
            "macro": {m: self.macro(m) for m in ("precision", "recall", "f1")},
            "micro": _summarise_counts(self.micro),
            "strict": _summarise_counts(self.strict),
            "tags": {tag: _summarise_counts(self.tags[tag]) for tag in _sort_tags(self.tags)},
            "spans": {label: _summarise_counts(self.spans[label]) for label in sorted(self.spans)},
        }


def _add_counts(a: Mapping[str, Counts], b: Mapping[str, Counts]) -> dict[str, Counts]:
    return {name: a.get(name, Counts()) + b.get(name, Counts()) for name in sorted({*a, *b})}


def _summarise_counts(counts: Counts) -> dict[str, float]:
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "gold": counts.hit + counts.missed,
        "found": counts.hit + counts.extra,
    }


def _sort_tags(tags: Iterable[str]) -> list[str]:
    return sorted(tags, key=lambda tag: (tag[2:], tag[0]))


def tag_words(borders: Sequence[Interval], spans: Iterable[Span]) -> list[str]:
    """Return the BIO tag of each word. A word belongs to the first disjoint span that shares a character with it.

    >>> tag_words([(0, 3), (4, 9), (10, 13)], [Span(0, 9, "PER")])
    ['B-PER', 'I-PER', 'O']
    """
    outer_spans = keep_outermost(spans)
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
    gold, predicted = keep_outermost(gold), keep_outermost(predicted)
    right, predicted_tags = tag_words(borders, gold), tag_words(borders, predicted)
    exact_gold, whole_found = _make_span_set(gold), _make_span_set(predicted)
    tags: Counter[tuple[str, str]] = Counter()
    for gold_tag, got in zip(right, predicted_tags, strict=True):
        if gold_tag == got:
            tags[gold_tag, "hit"] += 1
        else:
            tags[gold_tag, "missed"] += 1
            tags[got, "extra"] += 1
    spans: Counter[tuple[str, str]] = Counter()
    spans.update((label, "hit") for _, _, label in exact_gold & whole_found)
    spans.update((label, "missed") for _, _, label in exact_gold - whole_found)
    spans.update((label, "extra") for _, _, label in whole_found - exact_gold)
    same = sum(a == b for a, b in zip(right, predicted_tags, strict=True))
    return Score(len(borders), same, _count_table(tags), _count_table(spans))


def _make_span_set(spans: Iterable[Span]) -> set[tuple[int, int, str]]:
    return {(span.start, span.end, span.label) for span in spans}


def _count_table(table: Counter[tuple[str, str]]) -> dict[str, Counts]:
    names = sorted({name for name, _ in table} - {"O"})
    return {n: Counts(table[n, "hit"], table[n, "extra"], table[n, "missed"]) for n in names}


def score_texts(texts: Iterable[tuple[str, Iterable[Span], Iterable[Span]]]) -> Score:
    """Score several texts, given as (text, gold, predicted)."""
    total = Score()
    for text, gold, predicted in texts:
        total += score_spans(gold, predicted, split_words(text))
    return total


def tabulate_scores(scores: Mapping[str, Score]) -> tuple[list[str], list[list[str]]]:
    """Return the head and rows of P5's Table 3 for several models, followed by strict F1 per label.

    Recall, precision and F1 are means over the tags of the gold (macro; P5 does not say how it averages). A cell is
    ``-`` if neither the gold nor the model has the tag.
    """
    names = list(scores)
    rows: list[list[str]] = [
        ["accuracy", *(f"{scores[n].accuracy:.4f}" for n in names)],
        ["recall", *(f"{scores[n].macro('recall'):.4f}" for n in names)],
        ["precision", *(f"{scores[n].macro('precision'):.4f}" for n in names)],
        ["F1", *(f"{scores[n].macro('f1'):.4f}" for n in names)],
        ["F1, all words together", *(f"{scores[n].micro.f1:.4f}" for n in names)],
        ["F1, whole spans", *(f"{scores[n].strict.f1:.4f}" for n in names)],
    ]
    for tag in _sort_tags({tag for s in scores.values() for tag in s.tags}):
        rows.append([f"F1 {tag}", *(_format_counts(scores[n].tags.get(tag)) for n in names)])
    for label in sorted({label for s in scores.values() for label in s.spans}):
        rows.append([f"F1 whole {label}", *(_format_counts(scores[n].spans.get(label)) for n in names)])
    return ["measure", *names], rows


def _format_counts(counts: Counts | None) -> str:
    return f"{counts.f1:.4f}" if counts is not None else "-"

"""Findings compared with the gold, one text at a time: counts that add up over texts and annotators.

Both sides are made disjoint first: of spans that overlap the longest counts. Marks of punctuation are no tokens, and
whether they are covered does not matter.

token    words, by the label of the span that shares a character with them
strict   spans with the same borders and label
overlap  a gold span is found where a finding of its label shares a character with it; a finding is right likewise
entity   a gold referent is found where findings of its label cover every mention of it; a name that was found is right
         where all its places lie in gold spans of its label
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allonym.document import Interval, Span, merge_intervals, subtract_intervals
from allonym.evaluate.classes import NAME_PARTS, Classes
from allonym.models.words import split_words
from allonym.text.fold import fold_surface
from allonym.train.records import keep_outermost

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
class Found:
    """A finding and its class among those of the gold; ``beyond`` where the gold has no such class; without a name
    where its type is not known."""

    start: int
    end: int
    name: str
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Names:
    """The classes as numbers: those of the gold, then those that only findings have; the last row is for any type."""

    gold: tuple[str, ...]
    beyond: tuple[str, ...]

    @property
    def number(self) -> Mapping[str, int]:
        """Class to its number."""
        return {name: i for i, name in enumerate((*self.gold, *self.beyond))}

    @property
    def any(self) -> int:
        """The number of the row for any type, and of no span in the confusion matrix."""
        return len(self.gold) + len(self.beyond)


def list_word_spans(text: str) -> list[Interval]:
    """List the words of a text, without punctuation marks."""
    return [(a, b) for a, b in split_words(text) if text[a].isalnum()]


def find_covering_spans(places: Sequence[Interval], spans: Sequence[Mention | Found]) -> list[int]:
    """Return for each word the index of the first span that shares a character with it; -1 for none.

    Args:
        places: words, in order.
        spans: sorted and disjoint.
    """
    out = []
    index = 0
    for start, end in places:
        while index < len(spans) and spans[index].end <= start:
            index += 1
        out.append(index if index < len(spans) and spans[index].start < end else -1)
    return out


def list_overlaps(gold: Sequence[Mention], findings: Sequence[Found]) -> list[tuple[int, int, int]]:
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


def classify_findings(
    text: str, findings: Iterable[Span], gold: Sequence[Mention], classes: Classes, source: str = ""
) -> list[Found]:
    """Return findings in the classes of the gold.

    One that may belong to several classes, or that tells no type, takes that of the mention with which it shares
    most, if it may; first and last names side by side become one where the gold does not part them.
    """
    spans = keep_outermost(findings)
    plain = [Found(s.start, s.end, "") for s in spans]
    best: dict[int, tuple[int, str]] = {}
    for i, k, size in list_overlaps(gold, plain):
        fits = classes.map_finding(spans[k].label, source) if spans[k].label else ()
        if (not spans[k].label or gold[i].name in fits) and size > best.get(k, (0, ""))[0]:
            best[k] = size, gold[i].name
    out: list[Found] = []
    before: Span | None = None
    for k, span in enumerate(spans):
        fits = classes.map_finding(span.label, source) if span.label else ()
        name = (
            best[k][1]
            if k in best
            else fits[0]
            if fits
            else classes.name_class_beyond_gold(span.label)
            if span.label
            else ""
        )
        if (
            before is not None
            and {before.label, span.label} <= NAME_PARTS
            and out[-1].name == name
            and classes.joins_name_parts(name)
            and not text[before.end : span.start].strip(" \t.")
        ):
            out[-1] = Found(out[-1].start, span.end, name)
        else:
            out.append(Found(span.start, span.end, name, bool(span.label) and name not in classes.names))
        before = span
    return out


def select_disjoint(mentions: Iterable[Mention]) -> list[Mention]:
    """Select the longest of mentions that overlap, then the first."""
    selected: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m.start - m.end, m.start, m.name)):
        index = bisect_left(selected, mention.start, key=lambda m: m.start)
        free = index == len(selected) or mention.end <= selected[index].start
        if free and (not index or selected[index - 1].end <= mention.start):
            selected.insert(index, mention)
    return selected


def select_touching(place: Interval, cover: Sequence[Interval]) -> Sequence[Interval]:
    """Select those of ``cover``, which is sorted and disjoint, that share a character with a span."""
    first = bisect_right(cover, place[0], key=lambda c: c[1])
    return cover[first : bisect_left(cover, place[1], first, key=lambda c: c[0])]


def has_uncovered(text: str, places: Iterable[Interval], cover: Sequence[Interval]) -> bool:
    """Whether a letter or digit of any of the spans is not covered; ``cover`` is sorted and disjoint."""
    return any(
        text[i].isalnum()
        for place in places
        for a, b in subtract_intervals(place, select_touching(place, cover))
        for i in range(a, b)
    )


@dataclass(slots=True)
class Tally:
    """Counts of one text: per level ``(classes + 1, 4)`` of gold found, gold, right findings, findings; and what was
    taken for what, gold in rows, ``(classes + 1,) * 2``, by words and by spans."""

    levels: dict[str, Any]
    confusion: dict[str, Any]

    @classmethod
    def empty(cls, names: Names) -> Tally:
        """Return a tally without counts."""
        size = names.any + 1
        return cls(
            {level: np.zeros((size, 4), np.int64) for level in LEVELS},
            {unit: np.zeros((size, size), np.int64) for unit in ("token", "span")},
        )


def add_counts(
    into: Tally, text: str, gold: Sequence[Mention], findings: Sequence[Found], names: Names, *, count_beyond: bool
) -> None:
    """Add the counts of one text as one annotator sees it.

    Args:
        into: what to add to.
        gold, findings: sorted and disjoint.
        names: the classes.
        count_beyond: whether a finding counts for any type although the gold has no such class and nothing there.
    """
    number, top = names.number, names.any
    overlaps = list_overlaps(gold, findings)
    touched = {k for _, k, _ in overlaps}
    counted = [count_beyond or not f.beyond or k in touched for k, f in enumerate(findings)]
    _count_tokens(into, text, gold, findings, number, top, counted)
    _count_strict(into.levels["strict"], gold, findings, number, top, counted)
    _count_overlaps(into, gold, findings, number, top, counted, overlaps)
    _count_entities(into.levels["entity"], text, gold, findings, number, top, counted)


def _increase(table: Any, row: int | None, column: int, n: int = 1) -> None:
    if row is not None:
        table[row, column] += n


def _count_tokens(
    into: Tally, text: str, gold: Sequence[Mention], findings: Sequence[Found], number: Mapping[str, int], top: int,
    counted: Sequence[bool],
) -> None:  # fmt: skip
    table, matrix = into.levels["token"], into.confusion["token"]
    places = list_word_spans(text)
    pairs = Counter(zip(find_covering_spans(places, gold), find_covering_spans(places, findings), strict=True))
    for (i, k), n in pairs.items():
        expected = number[gold[i].name] if i >= 0 else None
        got = number.get(findings[k].name) if k >= 0 else None
        matrix[top if expected is None else expected, top if got is None else got] += n
        _increase(table, expected, GOLD, n)
        _increase(table, got, FOUND, n)
        if expected is not None and expected == got:
            _increase(table, expected, GOLD_HIT, n)
            _increase(table, got, FOUND_HIT, n)
        both = i >= 0 and k >= 0
        table[top] += (n * both, n * (i >= 0), n * both, n * (both or (k >= 0 and counted[k])))


def _count_strict(
    table: Any, gold: Sequence[Mention], findings: Sequence[Found], number: Mapping[str, int], top: int,
    counted: Sequence[bool],
) -> None:  # fmt: skip
    name_at = {(m.start, m.end): m.name for m in gold}
    for mention in gold:
        _increase(table, number[mention.name], GOLD)
    table[top, GOLD] += len(gold)
    for k, finding in enumerate(findings):
        name = name_at.get((finding.start, finding.end))
        _increase(table, number.get(finding.name), FOUND)
        table[top, FOUND] += counted[k]
        if name is not None:
            table[top, (GOLD_HIT, FOUND_HIT)] += 1
            if name == finding.name:
                table[number[name], (GOLD_HIT, FOUND_HIT)] += 1


def _count_overlaps(
    into: Tally, gold: Sequence[Mention], findings: Sequence[Found], number: Mapping[str, int], top: int,
    counted: Sequence[bool], overlaps: Sequence[tuple[int, int, int]],
) -> None:  # fmt: skip
    table, matrix = into.levels["overlap"], into.confusion["span"]
    right = [(i, k) for i, k, _ in overlaps if gold[i].name == findings[k].name]
    best: dict[int, tuple[int, bool, int]] = {}
    for i, k, size in overlaps:
        best[i] = max(best.get(i, (0, False, 0)), (size, gold[i].name == findings[k].name, -k))
    touched, hit = {k for _, k, _ in overlaps}, {k for _, k in right}
    for i, mention in enumerate(gold):
        row = number[mention.name]
        matrix[row, number.get(findings[-best[i][2]].name, top) if i in best else top] += 1
        table[row, GOLD] += 1
        table[top] += (i in best, 1, 0, 0)
    for i in {i for i, _ in right}:
        table[number[gold[i].name], GOLD_HIT] += 1
    for k, finding in enumerate(findings):
        column = number.get(finding.name)
        _increase(table, column, FOUND)
        if k in hit:
            _increase(table, column, FOUND_HIT)
        if k not in touched:
            matrix[top, top if column is None else column] += 1
        table[top] += (0, 0, k in touched, counted[k])


def _count_entities(
    table: Any, text: str, gold: Sequence[Mention], findings: Sequence[Found], number: Mapping[str, int], top: int,
    counted: Sequence[bool],
) -> None:  # fmt: skip
    gold_by_name = _group_by_name(gold)
    found_by_name = _group_by_name(findings)
    everything = merge_intervals((m.start, m.end) for m in gold)
    cover = merge_intervals((f.start, f.end) for f in findings)
    for mentions in group_referents(text, gold).values():
        name = mentions[0].name
        places = [(m.start, m.end) for m in mentions]
        _increase(table, number[name], GOLD)
        if not has_uncovered(text, places, found_by_name.get(name, [])):
            _increase(table, number[name], GOLD_HIT)
        table[top] += (not has_uncovered(text, places, cover), 1, 0, 0)
    by_type: dict[tuple[str, str], list[Interval]] = {}
    by_text: dict[str, list[Interval]] = {}
    for k, finding in enumerate(findings):
        place, surface = (finding.start, finding.end), fold_surface(text[finding.start : finding.end])
        by_type.setdefault((finding.name, surface), []).append(place)
        if counted[k]:
            by_text.setdefault(surface, []).append(place)
    for (name, _), places in by_type.items():
        _increase(table, number.get(name), FOUND)
        if not has_uncovered(text, places, gold_by_name.get(name, [])):
            _increase(table, number.get(name), FOUND_HIT)
    for places in by_text.values():
        table[top] += (0, 0, not has_uncovered(text, places, everything), 1)


def group_referents(text: str, gold: Iterable[Mention]) -> dict[tuple[str, str], list[Mention]]:
    """Group mentions by referent: by its id, else by class and folded text."""
    out: dict[tuple[str, str], list[Mention]] = {}
    for mention in gold:
        key = (
            ("", mention.entity) if mention.entity else (mention.name, fold_surface(text[mention.start : mention.end]))
        )
        out.setdefault(key, []).append(mention)
    return out


def _group_by_name(spans: Iterable[Mention | Found]) -> dict[str, list[Interval]]:
    out: dict[str, list[Interval]] = {}
    for span in spans:
        out.setdefault(span.name, []).append((span.start, span.end))
    return {name: merge_intervals(places) for name, places in out.items()}

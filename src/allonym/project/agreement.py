"""How far two reviewers agree on what both looked at, and what is left to identify after their reviews.

Pressing Done is no evidence of a look: words that a reviewer has not opened, marked or decided on have no value from
this reviewer, and are counted as unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from allonym.document import Interval, Span, merge_intervals, subtract_intervals
from allonym.project.readings import LeakMark, apply_reading, is_same_reading, list_seen_intervals, make_marked
from allonym.project.seats import SEATS, Reviewed, UserReading, are_both_reviewers_done, list_settled_readings
from allonym.serial import Serialisable

if TYPE_CHECKING:
    from allonym.evaluate.matching import Agreement


P = TypeVar("P", Span, LeakMark)


class LabelAgreement(Serialisable):
    """How many spans with a label both reviewers have, with the same borders, and how many only one of them has."""

    label: str
    both: int
    one: int


class Looked(Serialisable):
    """How many words, or findings, of the documents that both are done with were looked at by both reviewers, by one
    of them, and by nobody."""

    by_both: int
    by_one: int
    by_nobody: int


class ReviewResult(Serialisable):
    """The results of a project's reviews, as numbers and tags only.

    Attributes:
        documents: that both reviewers are done with.
        same: of these, those on which both said the same, and looked at every word.
        words, findings: what was looked at.
        spans: agreement on all that identifies, findings included, over the words that both looked at; None: none.
        marks: agreement on what was missed, alone: the harder test, since the findings, which both were shown, do
            not help.
        by_label: agreement by label, the most disputed first, of the stretches that both looked at.
        residual: P2's Table 4 of the settled documents; None: none is settled.
    """

    documents: int
    same: int
    words: Looked
    findings: Looked
    spans: Agreement | None
    marks: Agreement | None
    by_label: tuple[LabelAgreement, ...]
    residual: Mapping[str, Any] | None


def measure_reviews(reviewed: Sequence[Reviewed]) -> ReviewResult:
    """Measure the agreement and the residual risk of a project's reviews.

    Args:
        reviewed: documents with their readings by seat.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import residual_risk
    from allonym.evaluate.matching import Mention, list_word_spans, measure_agreement

    finished = [(item, seats) for item, seats in reviewed if are_both_reviewers_done(seats)]
    words, findings = Counter[int](), Counter[int]()
    texts: list[str] = []
    spans: list[dict[str, list[Mention]]] = []
    marks: list[dict[str, list[Mention]]] = []
    agreed, disputed = Counter[str](), Counter[str]()
    same = 0
    for item, seats in finished:
        text, readings = item.document.text, {n: seats[n].reading for n in SEATS}
        looks_by = {n: list_seen_intervals(readings[n]) for n in SEATS}
        places = list_word_spans(text)
        looks = [count_lookers(place, looks_by) for place in places]
        words.update(looks)
        findings.update(count_lookers((s.start, s.end), looks_by) for s in item.spans)
        is_whole = all(n == len(SEATS) for n in looks)
        same += is_whole and is_same_reading(readings[1], readings[2], text, item.spans)
        texts.append(blank_out_unseen(text, [place for place, n in zip(places, looks, strict=True) if n == len(SEATS)]))
        by_reading = {n: apply_reading(readings[n], text, item.spans) for n in SEATS}
        common = {n: _select_common(by_reading[n], looks_by) for n in SEATS}
        spans.append({str(n): [Mention(s.start, s.end, s.label) for s in common[n]] for n in SEATS})
        missed = {n: _select_common(readings[n].marks, looks_by) for n in SEATS}
        marks.append({str(n): [Mention(m.start, m.end, f"{m.kind} {m.label}") for m in missed[n]] for n in SEATS})
        _count_by_label(common, agreed, disputed)
    has_words = [bool(text.strip()) for text in texts]
    agreements = [
        measure_agreement(
            [text for text, is_kept in zip(texts, has_words, strict=True) if is_kept],
            [row for row, is_kept in zip(rows, has_words, strict=True) if is_kept],
        )
        for rows in (spans, marks)
    ]
    marked = [make_marked(reading, item.id, item.document.text) for item, _, reading in list_settled_readings(reviewed)]
    risk = residual_risk(marked).to_dict() if marked else None
    labels = sorted({*agreed, *disputed}, key=lambda name: (-disputed[name], -agreed[name], name))
    return ReviewResult(
        documents=len(finished),
        same=same,
        words=Looked(words[2], words[1], words[0]),
        findings=Looked(findings[2], findings[1], findings[0]),
        spans=agreements[0],
        marks=agreements[1],
        by_label=tuple(LabelAgreement(name, agreed[name], disputed[name]) for name in labels),
        residual={name: risk[name] for name in ("limit", "total", "types", "histogram")} if risk else None,
    )


def count_lookers(place: Interval, looks_by: Mapping[int, Sequence[Interval]]) -> int:
    """Return how many reviewers looked at the whole of a stretch.

    >>> count_lookers((3, 5), {1: [(0, 9)], 2: [(0, 4)]})
    1
    """
    return sum(not any(True for _ in subtract_intervals(place, intervals)) for intervals in looks_by.values())


def count_unseen_words(text: str, seats: Mapping[int, UserReading]) -> int:
    """Return how many words of a document at least one of its two reviewers has not looked at."""
    from allonym.models.words import split_words

    looks_by = {n: list_seen_intervals(seats[n].reading) if n in seats else [] for n in SEATS}
    places = [(a, b) for a, b in split_words(text) if text[a].isalnum()]
    return sum(count_lookers(place, looks_by) < len(SEATS) for place in places)


def _select_common(items: Sequence[P], looks_by: Mapping[int, Sequence[Interval]]) -> list[P]:
    return [item for item in items if count_lookers((item.start, item.end), looks_by) == len(SEATS)]


def blank_out_unseen(text: str, kept: Sequence[Interval]) -> str:
    """Return a text of the same length in which all but some stretches is blank."""
    pieces, position = [], 0
    for start, end in merge_intervals(kept):
        pieces += [" " * (start - position), text[start:end]]
        position = end
    return "".join((*pieces, " " * (len(text) - position)))


def _count_by_label(common: Mapping[int, Sequence[Span]], agreed: Counter[str], disputed: Counter[str]) -> None:
    first, second = ({(s.start, s.end, s.label) for s in common[n]} for n in SEATS)
    agreed.update(label for *_, label in first & second)
    disputed.update(label for *_, label in first ^ second)

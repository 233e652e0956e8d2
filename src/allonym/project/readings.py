"""Readings of a document: what one reviewer says about it, and of which stretches there is evidence of a look.

Marks are P2's (section 4.1): a whole identifier was missed, a part of one, or what reveals a speaker's organisation or
product. All offsets are half-open code points of the original text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from allonym.document import Interval, Span, merge_intervals, subtract_intervals
from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.marking import Mark, Marked
from allonym.labels import TAXONOMY
from allonym.resolve import resolve

SOURCE = "review"
_SPEAKER = "_SPEAKER"
_LARGEST_GAP = 2  # characters between a part that was missed and the part that was found, at most


@dataclass(frozen=True, slots=True, order=True)
class LeakMark:
    """A stretch that should have been replaced: ``missed`` wholly, a ``partial`` rest, or what tells a ``speaker``."""

    start: int
    end: int
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class FindingDecision:
    """A reviewer's verdict on a finding, which start, end and label identify.

    Attributes:
        verdict: ``accept``, ``reject``, ``relabel`` or ``resize``.
        new_label: of a finding that is relabelled, and optionally of one that is resized.
        new_start, new_end: of a finding that is resized.
    """

    start: int
    end: int
    label: str
    verdict: str
    new_label: str | None = None
    new_start: int | None = None
    new_end: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """All marks and decisions of one reviewer on a document. Findings without a decision count as accepted.

    Attributes:
        marks, decisions: sorted.
        opened: what the reviewer opened, as sorted, disjoint intervals of the text. What was marked or decided counts
            as seen without being here, see :func:`list_seen_intervals`.
    """

    marks: tuple[LeakMark, ...] = field(default=(), repr=False)
    decisions: tuple[FindingDecision, ...] = field(default=(), repr=False)
    opened: tuple[Interval, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is None is left out."""
        decisions = [{k: v for k, v in asdict(d).items() if v is not None} for d in self.decisions]
        opened = {"opened": [list(interval) for interval in self.opened]} if self.opened else {}
        return {"marks": [asdict(mark) for mark in self.marks], "decisions": decisions, **opened}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reading:
        """Read what :meth:`to_dict` returned."""
        marks = tuple(LeakMark(**mark) for mark in values.get("marks", ()))
        decisions = tuple(FindingDecision(**decision) for decision in values.get("decisions", ()))
        return cls(marks, decisions, tuple((start, end) for start, end in values.get("opened", ())))


def list_seen_intervals(reading: Reading) -> list[Interval]:
    """Return the stretches of which there is evidence that the reviewer looked at them: opened, marked or decided."""
    return merge_intervals(
        [*reading.opened, *((m.start, m.end) for m in reading.marks), *((d.start, d.end) for d in reading.decisions)]
    )


def get_label_with_speaker(mark: LeakMark) -> str:
    """Return the label of a marked stretch: of a speaker's organisation ``ORGANIZATION_SPEAKER``."""
    speaks = mark.kind == "speaker" and not mark.label.endswith(_SPEAKER)
    return mark.label + _SPEAKER if speaks else mark.label


def make_checked_reading(
    marks: Iterable[LeakMark],
    decisions: Iterable[FindingDecision],
    text: str,
    findings: Sequence[Span],
    opened: Iterable[Interval] = (),
) -> Reading:
    """Make a sorted reading, and check that it is sound for its text.

    Raises:
        DataError: offsets outside of the text, marks that overlap or hold only what is replaced already, a decision on
            what is no finding, or two on one finding.
        UnknownNameError: a label that the taxonomy does not have.
    """
    reading = Reading(
        tuple(sorted(marks)),
        tuple(sorted(decisions, key=lambda d: (d.start, d.end, d.label))),
        tuple(merge_intervals(opened)),
    )
    for start, end in reading.opened:
        if not 0 <= start < end <= len(text):
            raise DataError(f"opened: 0 <= start < end <= {len(text)} is required, got {start} and {end}")
    _check_decisions(reading.decisions, text, findings)
    for mark, following in pairwise(reading.marks):
        if following.start < mark.end:
            raise DataError(
                f"marks must be disjoint, got {mark.start}..{mark.end} and {following.start}..{following.end}"
            )
    covered = merge_intervals((span.start, span.end) for span in _apply_decisions(reading.decisions, findings))
    starts, ends = [start for start, _ in covered], [end for _, end in covered]
    for number, mark in enumerate(reading.marks):
        where = f"marks[{number}]"
        _check_offsets(text, mark.start, mark.end, where)
        TAXONOMY.get(mark.label, where)
        if get_label_with_speaker(mark) not in TAXONOMY:
            speakers = [label.name.removesuffix(_SPEAKER) for label in TAXONOMY if label.name.endswith(_SPEAKER)]
            raise UnknownNameError("label of what tells a speaker", mark.label, speakers, where)
        near = covered[bisect_right(ends, mark.start) : bisect_left(starts, mark.end)]
        if not any(text[start:end].strip() for start, end in subtract_intervals((mark.start, mark.end), near)):
            raise DataError(f"{where}: {mark.start}..{mark.end} is replaced already; decide on the finding instead")
    return reading


def _check_decisions(decisions: Sequence[FindingDecision], text: str, findings: Sequence[Span]) -> None:
    keys = {(s.start, s.end, s.label) for s in findings}
    for number, decision in enumerate(decisions):
        where = f"decisions[{number}]"
        if (decision.start, decision.end, decision.label) not in keys:
            raise DataError(f"{where}: a finding of this document is required, got {decision.start}..{decision.end}")
        if decision.verdict == "relabel" and decision.new_label is None:
            raise DataError(f"{where}: new_label is required to relabel")
        if decision.new_label is not None:
            TAXONOMY.get(decision.new_label, where)
        if decision.verdict == "resize":
            _check_offsets(text, decision.new_start, decision.new_end, where)
    for a, b in pairwise(decisions):
        if (a.start, a.end, a.label) == (b.start, b.end, b.label):
            raise DataError(f"decisions: one for each finding is required, got two on {a.start}..{a.end}")


def apply_reading(reading: Reading, text: str, findings: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans that identify by a reading: disjoint, sorted. A missed part joins the part that was found."""
    spans = _apply_decisions(reading.decisions, findings)
    marks = [(m.kind == "partial", Span(m.start, m.end, get_label_with_speaker(m), 1.0, SOURCE)) for m in reading.marks]
    last = max((i for i, (partial, _) in enumerate(marks, 1) if partial), default=0)
    if last:
        families: dict[str, _RelatedFindings] = {}
        for span in sorted(spans):
            families.setdefault(TAXONOMY.get_family(span.label), _RelatedFindings()).add_finding(span)
        for partial, mark in marks[:last]:
            family = families.setdefault(TAXONOMY.get_family(mark.label), _RelatedFindings())
            if partial:
                family.join_part(mark, text)
            else:
                family.add_finding(mark)
        spans = sorted(span for family in families.values() for span in family.spans)
    return resolve([*spans, *(mark for _, mark in marks[last:])])


def make_marked(reading: Reading, document_id: str, text: str) -> Marked:
    """Return the marks in the form that P2's scores are computed from."""
    marks = [
        Mark(m.start, m.end, get_label_with_speaker(m), m.kind == "partial", confirmed=True, source=SOURCE)
        for m in reading.marks
    ]
    return Marked(document_id, text, tuple(sorted(marks)))


def score_residual_risk(reading: Reading, document_id: str, text: str) -> int:
    """Return P2's score of the marks, in points. Runs in a worker."""
    from allonym.evaluate import score_conversation

    return score_conversation(make_marked(reading, document_id, text)).score


def is_same_reading(first: Reading, second: Reading, text: str, findings: Sequence[Span]) -> bool:
    """Whether two readings have the same marks and result in the same spans with the same labels."""
    spans = [[(s.start, s.end, s.label) for s in apply_reading(r, text, findings)] for r in (first, second)]
    return first.marks == second.marks and spans[0] == spans[1]


def _apply_decisions(decisions: Sequence[FindingDecision], findings: Sequence[Span]) -> list[Span]:
    by_finding = {(d.start, d.end, d.label): d for d in decisions}
    spans = []
    for span in findings:
        decision = by_finding.get((span.start, span.end, span.label))
        if decision is None or decision.verdict == "accept":
            spans.append(span)
        elif decision.verdict != "reject":
            start, end = span.start, span.end
            if decision.verdict == "resize" and decision.new_start is not None and decision.new_end is not None:
                start, end = decision.new_start, decision.new_end
            spans.append(Span(start, end, decision.new_label or span.label, 1.0, SOURCE))
    return spans


class _RelatedFindings:
    """Findings with related labels, sorted, and for each the furthest end of those up to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._reach: list[int] = []

    def add_finding(self, span: Span) -> None:
        """Insert a finding."""
        index = bisect_right(self.spans, span)
        self.spans.insert(index, span)
        self._reach.insert(index, max(span.end, self._reach[index - 1] if index else 0))
        for later in range(index + 1, len(self._reach)):
            if self._reach[later] >= span.end:
                break
            self._reach[later] = span.end

    def join_part(self, part: Span, text: str) -> None:
        """Insert a part, as one with the findings that it touches."""
        before = text[max(0, part.start - _LARGEST_GAP) : part.start][::-1]
        first = last = bisect_left(self._reach, part.start - _count_leading_joinable_characters(before))
        # The first that the part touches comes first in it, so all after it are touched up to the first beyond a gap.
        while last < len(self.spans):
            span = self.spans[last]
            if span.start > part.end + _count_leading_joinable_characters(text[part.end : part.end + _LARGEST_GAP]):
                break
            label = next(name for name in TAXONOMY.lineage(span.label) if TAXONOMY.within(part.label, name))
            part = Span(min(part.start, span.start), max(part.end, span.end), label, 1.0, SOURCE)
            last += 1
        self.spans[first:last], self._reach[first:last] = [part], [part.end]


def _count_leading_joinable_characters(chars: str) -> int:
    """Return how many of the characters, from the first on, may stand between a part and what it joins."""
    return next((i for i, c in enumerate(chars) if c.isalnum() or c == "\n"), len(chars))


def _check_offsets(text: str, start: int | None, end: int | None, where: str) -> None:
    if start is None or end is None or not 0 <= start < end <= len(text):
        raise DataError(f"{where}: 0 <= start < end <= {len(text)} is required, got {start} and {end}")
    if not text[start:end].strip():
        raise DataError(f"{where}: {start}..{end} holds blanks alone")

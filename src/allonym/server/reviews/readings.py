"""What one reviewer said about one document: marks of what was missed, decisions on what was found, and what they make.

Marks are P2's (section 4.1): a whole identifier was missed, a part of one, or what tells a speaker's organisation or
product. All offsets are half-open code points of the original text.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from allonym.document import Span, merge, subtract
from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.marking import Mark, Marked
from allonym.labels import TAXONOMY
from allonym.train.records import outermost

KINDS = ("missed", "partial", "speaker")
VERDICTS = ("accept", "reject", "relabel", "resize")
SOURCE = "review"
_SPEAKER = "_SPEAKER"
_BESIDE = 2  # characters between a part that was missed and the part that was found, at most


@dataclass(frozen=True, slots=True, order=True)
class Missed:
    """A stretch that should not have stayed: one of ``KINDS``, with a label of the taxonomy."""

    start: int
    end: int
    kind: str
    label: str

    @property
    def full_label(self) -> str:
        """The label of what stands there: of a speaker's organisation ``ORGANIZATION_SPEAKER``."""
        speaks = self.kind == "speaker" and not self.label.endswith(_SPEAKER)
        return self.label + _SPEAKER if speaks else self.label


@dataclass(frozen=True, slots=True, order=True)
class Decision:
    """What a reviewer said of a finding, which ``start``, ``end`` and ``label`` name as it was found.

    Attributes:
        verdict: one of ``VERDICTS``.
        new_label: of a finding with another label; also with ``resize``.
        new_start, new_end: of a finding with other borders.
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
    """All that one reviewer said about a document. Findings without a decision count as accepted."""

    marks: tuple[Missed, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def to_json(self) -> str:
        """One line."""
        return json.dumps({"marks": [asdict(m) for m in self.marks], "decisions": [asdict(d) for d in self.decisions]})

    @classmethod
    def from_json(cls, line: str) -> Reading:
        """What :meth:`to_json` wrote."""
        read = json.loads(line)
        return cls(tuple(Missed(**m) for m in read["marks"]), tuple(Decision(**d) for d in read["decisions"]))


def reading_of(
    marks: Iterable[Mapping[str, Any]], decisions: Iterable[Mapping[str, Any]], text: str, found: Sequence[Span]
) -> Reading:
    """A reading, sorted, and known to be sound for its text.

    Raises:
        DataError: offsets outside of the text, marks that overlap or hold only what is replaced already, a decision on
            what was not found, or two on one finding.
        UnknownNameError: a label that the taxonomy does not have.
    """
    said = tuple(sorted(Missed(m["start"], m["end"], m["kind"], m["label"]) for m in marks))
    decided = tuple(sorted((Decision(**d) for d in decisions), key=lambda d: (d.start, d.end, d.label)))
    known = {(s.start, s.end, s.label) for s in found}
    for number, decision in enumerate(decided):
        where = f"decisions[{number}]"
        if (decision.start, decision.end, decision.label) not in known:
            raise DataError(f"{where}: a finding of this document is required, got {decision.start}..{decision.end}")
        if decision.verdict == "relabel" and decision.new_label is None:
            raise DataError(f"{where}: new_label is required to relabel")
        if decision.new_label is not None:
            TAXONOMY.get(decision.new_label, where)
        if decision.verdict == "resize":
            _within(text, decision.new_start, decision.new_end, where)
    for a, b in pairwise(decided):
        if (a.start, a.end, a.label) == (b.start, b.end, b.label):
            raise DataError(f"decisions: one for each finding is required, got two on {a.start}..{a.end}")
    for one, other in pairwise(said):
        if other.start < one.end:
            raise DataError(f"marks must be disjoint, got {one.start}..{one.end} and {other.start}..{other.end}")
    kept = merge((s.start, s.end) for s in _kept(decided, found))
    starts, ends = [a for a, _ in kept], [b for _, b in kept]
    for number, mark in enumerate(said):
        where = f"marks[{number}]"
        _within(text, mark.start, mark.end, where)
        TAXONOMY.get(mark.label, where)
        if mark.full_label not in TAXONOMY:
            speakers = [label.name.removesuffix(_SPEAKER) for label in TAXONOMY if label.name.endswith(_SPEAKER)]
            raise UnknownNameError("label of what tells a speaker", mark.label, speakers, where)
        near = kept[bisect_right(ends, mark.start) : bisect_left(starts, mark.end)]
        if not any(text[a:b].strip() for a, b in subtract((mark.start, mark.end), near)):
            raise DataError(f"{where}: {mark.start}..{mark.end} is replaced already; decide on the finding instead")
    return Reading(said, decided)


def settled(reading: Reading, text: str, found: Sequence[Span]) -> tuple[Span, ...]:
    """What identifies in the text by this reading: disjoint, sorted. A missed part joins the part that was found."""
    spans = _kept(reading.decisions, found)
    marks = [(m.kind == "partial", Span(m.start, m.end, m.full_label, 1.0, SOURCE)) for m in reading.marks]
    last = max((i for i, (partial, _) in enumerate(marks, 1) if partial), default=0)
    if last:
        families: dict[str, _Family] = {}
        for span in sorted(spans):
            families.setdefault(TAXONOMY.lineage(span.label)[-1], _Family()).add(span)
        for partial, made in marks[:last]:
            family = families.setdefault(TAXONOMY.lineage(made.label)[-1], _Family())
            if partial:
                family.join(made, text)
            else:
                family.add(made)
        spans = sorted(span for family in families.values() for span in family.spans)
    return tuple(outermost([*spans, *(made for _, made in marks[last:])]))


def missed(reading: Reading, id: str, text: str) -> Marked:
    """The marks in the form that P2's scores are taken of."""
    marks = [
        Mark(m.start, m.end, m.full_label, m.kind == "partial", confirmed=True, source=SOURCE) for m in reading.marks
    ]
    return Marked(id, text, tuple(sorted(marks)))


def residual(reading: Reading, id: str, text: str) -> int:
    """P2's score of the marks, in points: runs in a worker."""
    from allonym.evaluate import score_conversation

    return score_conversation(missed(reading, id, text)).score


def agree(one: Reading, other: Reading, text: str, found: Sequence[Span]) -> bool:
    """Whether two readings say the same: the same stretches with the same labels, and the same marks."""
    alike = [(s.start, s.end, s.label) for s in settled(one, text, found)]
    return one.marks == other.marks and alike == [(s.start, s.end, s.label) for s in settled(other, text, found)]


def _kept(decisions: Sequence[Decision], found: Sequence[Span]) -> list[Span]:
    said = {(d.start, d.end, d.label): d for d in decisions}
    out = []
    for span in found:
        decision = said.get((span.start, span.end, span.label))
        if decision is None or decision.verdict == "accept":
            out.append(span)
        elif decision.verdict != "reject":
            start, end = span.start, span.end
            if decision.verdict == "resize" and decision.new_start is not None and decision.new_end is not None:
                start, end = decision.new_start, decision.new_end
            out.append(Span(start, end, decision.new_label or span.label, 1.0, SOURCE))
    return out


class _Family:
    """Findings whose labels are related, sorted, and how far those up to each of them reach."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._reach: list[int] = []

    def add(self, span: Span) -> None:
        """Put one in."""
        at = bisect_right(self.spans, span)
        self.spans.insert(at, span)
        self._reach.insert(at, max(span.end, self._reach[at - 1] if at else 0))
        for later in range(at + 1, len(self._reach)):
            if self._reach[later] >= span.end:
                break
            self._reach[later] = span.end

    def join(self, part: Span, text: str) -> None:
        """Put a part in, as one with the findings that it touches."""
        before = text[max(0, part.start - _BESIDE) : part.start][::-1]
        first = last = bisect_left(self._reach, part.start - _gap(before))
        # The first that the part touches comes first in it, so all after it are touched up to the first beyond a gap.
        while last < len(self.spans):
            span = self.spans[last]
            if span.start > part.end + _gap(text[part.end : part.end + _BESIDE]):
                break
            label = next(name for name in TAXONOMY.lineage(span.label) if TAXONOMY.within(part.label, name))
            part = Span(min(part.start, span.start), max(part.end, span.end), label, 1.0, SOURCE)
            last += 1
        self.spans[first:last], self._reach[first:last] = [part], [part.end]


def _gap(chars: str) -> int:
    """How many of the characters, from the first on, may stand between a part and what it joins."""
    return next((i for i, c in enumerate(chars) if c.isalnum() or c == "\n"), len(chars))


def _within(text: str, start: int | None, end: int | None, where: str) -> None:
    if start is None or end is None or not 0 <= start < end <= len(text):
        raise DataError(f"{where}: 0 <= start < end <= {len(text)} is required, got {start} and {end}")
    if not text[start:end].strip():
        raise DataError(f"{where}: {start}..{end} holds blanks alone")

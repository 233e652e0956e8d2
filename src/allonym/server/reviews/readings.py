"""What one reviewer said about one document: marks of what was missed, decisions on what was found, and what they make.

Marks are P2's (section 4.1): a whole identifier was missed, a part of one, or what tells a speaker's organisation or
product. All offsets are half-open code points of the original text.
"""

from __future__ import annotations

import json
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
    kept = merge((s.start, s.end) for s in _kept(decided, found))
    for number, mark in enumerate(said):
        where = f"marks[{number}]"
        _within(text, mark.start, mark.end, where)
        TAXONOMY.get(mark.label, where)
        if mark.full_label not in TAXONOMY:
            speakers = [label.name.removesuffix(_SPEAKER) for label in TAXONOMY if label.name.endswith(_SPEAKER)]
            raise UnknownNameError("label of what tells a speaker", mark.label, speakers, where)
        if not any(text[a:b].strip() for a, b in subtract((mark.start, mark.end), kept)):
            raise DataError(f"{where}: {mark.start}..{mark.end} is replaced already; decide on the finding instead")
    for one, other in pairwise(said):
        if other.start < one.end:
            raise DataError(f"marks must be disjoint, got {one.start}..{one.end} and {other.start}..{other.end}")
    return Reading(said, decided)


def settled(reading: Reading, text: str, found: Sequence[Span]) -> tuple[Span, ...]:
    """What identifies in the text by this reading: disjoint, sorted. A missed part joins the part that was found."""
    spans = _kept(reading.decisions, found)
    for mark in reading.marks:
        made = Span(mark.start, mark.end, mark.full_label, 1.0, SOURCE)
        if mark.kind == "partial":
            made, spans = _joined(made, spans, text)
        spans.append(made)
    return tuple(outermost(spans))


def missed(reading: Reading, id: str, text: str) -> Marked:
    """The marks in the form that P2's scores are taken of."""
    marks = [
        Mark(m.start, m.end, m.full_label, m.kind == "partial", confirmed=True, source=SOURCE) for m in reading.marks
    ]
    return Marked(id, text, tuple(sorted(marks)))


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


def _joined(part: Span, spans: list[Span], text: str) -> tuple[Span, list[Span]]:
    """The part with the findings of its family that it touches, and the other findings."""
    rest = []
    for span in sorted(spans):
        first, last = (part, span) if part.start < span.start else (span, part)
        between = text[first.end : last.start]
        beside = len(between) <= _BESIDE and not any(map(str.isalnum, between)) and "\n" not in between
        if beside and TAXONOMY.related(span.label, part.label):
            label = next(name for name in TAXONOMY.lineage(span.label) if TAXONOMY.within(part.label, name))
            part = Span(min(part.start, span.start), max(part.end, span.end), label, 1.0, SOURCE)
        else:
            rest.append(span)
    return part, rest


def _within(text: str, start: int | None, end: int | None, where: str) -> None:
    if start is None or end is None or not 0 <= start < end <= len(text):
        raise DataError(f"{where}: 0 <= start < end <= {len(text)} is required, got {start} and {end}")
    if not text[start:end].strip():
        raise DataError(f"{where}: {start}..{end} holds blanks alone")

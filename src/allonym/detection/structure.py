"""Structure first, then words: what a part of a document is decides who reads it, and what counts there.

Models read prose alone. Rules and lists read everything. A part that is one identifier, such as a cell in a
column of names, is one finding, whatever its words look like.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from allonym.detection.languages import Passage
from allonym.document import (
    CAPTION,
    KEPT,
    PROSE,
    TECHNICAL,
    Document,
    Interval,
    Reach,
    Span,
    merge_intervals,
    subtract_intervals,
    trim_blanks,
)
from allonym.policy import Policy

Stretch = TypeVar("Stretch", Span, Passage)

COLUMN = "column"
"""Source of the findings that are whole parts."""

_LEAST_VALUE = 4
"""Least number of characters of the value of a cell that is looked for in technical text."""


@dataclass(frozen=True, slots=True)
class Prose:
    """The prose of a document as a document of its own.

    Attributes:
        document: the parts that are prose, each after the words that lead to it.
        starts: where each piece begins in it, and ``places`` where it stands in the whole document.
    """

    document: Document
    starts: list[int] = field(repr=False)
    places: list[Interval] = field(repr=False)

    def restore_offsets(self, spans: Iterable[Stretch]) -> Iterator[Stretch]:
        """Yield spans or passages with their offsets in the whole document; one over two pieces becomes two."""
        for span in spans:
            i = bisect_right(self.starts, span.start) - 1
            while i < len(self.starts) and self.starts[i] < span.end:
                start, end = self.places[i]
                shift = start - self.starts[i]
                a, b = max(start, span.start + shift), min(end, span.end + shift)
                if a < b:
                    yield replace(span, start=a, end=b)
                i += 1


def cut_prose(document: Document, policy: Policy) -> Prose | None:
    """Return the prose of a document; None where the document is prose as a whole, or a conversation."""
    if not document.roles or document.turns or not any(_is_no_prose(role, policy) for role in document.roles):
        return None
    pieces: list[str] = []
    starts: list[int] = []
    places: list[Interval] = []
    length = before = 0
    for (_, end), role in zip(document.parts, document.roles, strict=True):
        if not _is_no_prose(role, policy):
            if places and places[-1][1] == before:
                places[-1] = (places[-1][0], end)  # a name may run over several parts
            else:
                starts.append(length)
                places.append((before, end))
            pieces.append(document.text[before:end])
            length += end - before
        before = end
    return Prose(Document(document.id, "".join(pieces), document.meta), starts, places)


def _is_no_prose(role: str, policy: Policy) -> bool:
    return role in (TECHNICAL, KEPT) or (role not in (PROSE, CAPTION) and policy.looks_for(role))


def apply_structure(document: Document, policy: Policy, candidates: list[Span]) -> list[Span]:
    """Return the candidates that count where they stand, and the parts that are findings as a whole.

    A candidate over the border of such a part, or of one that is kept, counts only for what lies outside: cells are
    read one by one.
    """
    if not document.roles:
        return candidates
    findings: list[Span] = []
    unchanged: list[Interval] = []
    for (a, b), role in zip(document.parts, document.roles, strict=True):
        if role in (KEPT, CAPTION):
            unchanged.append((a, b))
        elif role not in (PROSE, TECHNICAL) and policy.looks_for(role):
            is_next_run = findings and document.text[findings[-1].end : a] in ("", " ")  # of the same cell
            if is_next_run and findings[-1].label == role:
                a = findings.pop().start
            if a < b:
                findings.append(Span(a, b, role, 1.0, COLUMN))
    merged = merge_intervals(unchanged)
    whole_reach, unchanged_reach = Reach((s.start, s.end) for s in findings), Reach(merged)
    closed = merge_intervals([*merged, *((s.start, s.end) for s in findings)])
    direct = _list_direct_labels(policy)
    text = document.text
    findings = [_trim_span(text, span) for span in findings if text[span.start : span.end].strip()]
    for span in candidates:
        if whole_reach.contains(span.start, span.end):
            continue
        if unchanged_reach.contains(span.start, span.end):
            if span.label in direct:
                findings.append(span)
            continue
        if not whole_reach.touches(span.start, span.end) and not unchanged_reach.touches(span.start, span.end):
            findings.append(span)
            continue
        rests = subtract_intervals((span.start, span.end), closed)
        findings += (_trim_span(text, replace(span, start=a, end=b)) for a, b in rests if text[a:b].strip())
    return [*findings, *_find_values_in_technical_parts(document, findings)]


def _find_values_in_technical_parts(document: Document, findings: list[Span]) -> Iterator[Span]:
    """Yield the technical parts that are the value of a cell: a text in a formula that counts a customer's rows."""
    text = document.text
    if TECHNICAL not in document.roles:
        return
    cells = (span for span in findings if span.source == COLUMN and len(span) >= _LEAST_VALUE)
    labels = {text[span.start : span.end]: span.label for span in cells}
    for (a, b), role in zip(document.parts, document.roles, strict=True):
        if role == TECHNICAL and text[a:b].strip() in labels:
            yield _trim_span(text, Span(a, b, labels[text[a:b].strip()], 1.0, COLUMN))


def _trim_span(text: str, span: Span) -> Span:
    start, end = trim_blanks(text, span.start, span.end)
    return replace(span, start=start, end=end)


@lru_cache(maxsize=64)
def _list_direct_labels(policy: Policy) -> frozenset[str]:
    return frozenset(label.name for label in policy.taxonomy if label.kind == "direct")

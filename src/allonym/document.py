"""Documents, conversations and spans: the immutable data that everything else works on.

All offsets are half-open and count code points of ``Document.text``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType

Interval = tuple[int, int]

_EMPTY: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A labelled stretch of a text. It holds no text, so that no log can leak any.

    Attributes:
        start: first code point, from 0.
        end: one past the last code point; greater than ``start``.
        label: a label of the taxonomy.
        score: confidence from 0 to 1.
        source: which detector and rule found it, e.g. ``rules:us-ssn+context(social security)``.

    Spans order by (start, end, label, score, source), so ties are settled the same way everywhere.
    """

    start: int
    end: int
    label: str
    score: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a span needs 0 <= start < end, got {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        """Return whether the two share at least one code point."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Entity:
    """One referent of a document and all its mentions: the unit of replacement and of recall.

    Attributes:
        key: canonical form of its name, the same for the same name in every document. Hidden from ``repr``.
        label: the label that its replacement follows.
        spans: its mentions, sorted and disjoint.
    """

    key: str = field(repr=False)
    label: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: where its text stands, and where its speaker label stands, if it has one."""

    start: int
    end: int
    speaker: Interval | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A text with an id, metadata, and optionally parts and turns.

    Attributes:
        id: names the record in reports and quarantine files; never derived from the text.
        text: the whole text. Hidden from ``repr``, as is ``meta``.
        meta: further facts about the document, e.g. per-document name lists. Read only.
        parts: where the pieces of the source stand in ``text`` (fields of a record, cells, runs); what lies
            between two parts is a separator. Empty: the text is one part.
        turns: a conversation's turns, in order.
    """

    id: str
    text: str
    meta: Mapping[str, object] = field(default_factory=lambda: _EMPTY)
    parts: tuple[Interval, ...] = ()
    turns: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a document's text is a str, got {type(self.text).__name__}")
        object.__setattr__(self, "meta", MappingProxyType(dict(self.meta)))

    def __repr__(self) -> str:
        turns = f", {len(self.turns)} turns" if self.turns else ""
        return f"Document({len(self.text)} characters{turns})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Document, (self.id, self.text, dict(self.meta), self.parts, self.turns))

    @classmethod
    def from_parts(
        cls, id: str, parts: Sequence[str], meta: Mapping[str, object] = _EMPTY, separators: Sequence[str] | str = "\n"
    ) -> Document:
        """Join pieces of one source into a document, so that they share entities and numbering.

        ``separators`` is one string put between all parts, or one string after each part.
        """
        if not isinstance(separators, str) and len(separators) != len(parts):
            raise ValueError(f"{len(parts)} parts need as many separators, got {len(separators)}")
        pieces: list[str] = []
        places: list[Interval] = []
        position = 0
        if isinstance(separators, str):
            separators = [separators] * (len(parts) - 1) + [""]
        for part, after in zip(parts, separators, strict=False):
            places.append((position, position + len(part)))
            pieces += (part, after)
            position += len(part) + len(after)
        return cls(id, "".join(pieces), meta, tuple(places))

    @classmethod
    def conversation(
        cls, id: str, turns: Iterable[tuple[str | None, str]], meta: Mapping[str, object] = _EMPTY
    ) -> Document:
        """Build a conversation from (speaker, text) pairs; each turn becomes a line ``speaker: text``.

        The parts are, per turn, the speaker label (where there is one) and the text.
        """
        pieces: list[str] = []
        parts: list[Interval] = []
        built: list[Turn] = []
        position = 0
        for speaker, text in turns:
            label: Interval | None = None
            if speaker:
                label = (position, position + len(speaker))
                parts.append(label)
                pieces += (speaker, ": ")
                position += len(speaker) + 2
            end = position + len(text)
            built.append(Turn(position, end, label))
            parts.append((position, end))
            pieces += (text, "\n")
            position = end + 1
        if pieces:
            pieces.pop()
        return cls(id, "".join(pieces), meta, tuple(parts), tuple(built))

    def part_texts(self) -> tuple[str, ...]:
        """Return the parts' texts; the whole text where the document has no parts."""
        return tuple(self.text[a:b] for a, b in self.parts) if self.parts else (self.text,)


def merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals as sorted, disjoint, non-touching intervals.

    >>> merge([(4, 6), (0, 2), (1, 3), (6, 7)])
    [(0, 3), (4, 7)]
    """
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            if end > out[-1][1]:
                out[-1] = (out[-1][0], end)
        elif end > start:
            out.append((start, end))
    return out


def subtract_intervals(interval: Interval, covered: Sequence[Interval]) -> Iterator[Interval]:
    """Yield the parts of ``interval`` outside the sorted, disjoint intervals ``covered``.

    >>> list(subtract((0, 10), [(2, 3), (5, 12)]))
    [(0, 2), (3, 5)]
    """
    position, end = interval
    first = bisect_right(covered, position, key=itemgetter(1))
    for i in range(first, len(covered)):
        start, stop = covered[i]
        if start >= end:
            break
        if start > position:
            yield position, start
        position = max(position, stop)
    if position < end:
        yield position, end

"""Documents, conversations and spans: the immutable data that everything else works on.

All offsets are half-open and count code points of ``Document.text``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import overload

Interval = tuple[int, int]

_EMPTY: Mapping[str, object] = MappingProxyType({})

PROSE, CAPTION, TECHNICAL, KEPT = "", "caption", "technical", "kept"
"""Roles of parts. Prose is read by every detector; technical text (formulas, attributes, names of styles) by rules and
lists only. Of a caption (the name of a sheet) only direct identifiers count; of a kept value (a number, a category)
only those that rules or lists find."""

DATES_OF = "\0dates of"
"""Key of ``Document.meta`` that names a collection whose documents have their dates moved alike, such as a mailbox."""


FIRST_SALT = "0"
"""How the salts of people in a vault begin until somebody is erased from it."""
NAMESAKE = " #"
"""Stands in the key of an entity before a number, where the register of people has others of the same name."""


class Intervals(Sequence[Interval]):
    """Half-open intervals, kept as bare numbers, since a page has one for each letter; equal to a tuple of the same."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[int]) -> None:
        """Take the start and end of each, one after the other."""
        self._numbers = array("q", numbers)

    def __len__(self) -> int:
        return len(self._numbers) // 2

    def __iter__(self) -> Iterator[Interval]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, strict=True)

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Interval, ...]: ...
    def __getitem__(self, index: int | slice) -> Interval | tuple[Interval, ...]:
        places = range(0, len(self._numbers), 2)[index]
        if isinstance(places, range):
            return tuple((self._numbers[place], self._numbers[place + 1]) for place in places)
        return self._numbers[places], self._numbers[places + 1]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, Intervals) else other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


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
        names: of a person whom a register knows: the fullest name, then others. Hidden from ``repr``.
        salt: of such a person, for the choice of a pseudonym. Hidden from ``repr``.
    """

    key: str = field(repr=False)
    label: str
    spans: tuple[Span, ...]
    names: tuple[str, ...] = field(default=(), repr=False)
    salt: str = field(default="", repr=False)


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
        roles: what each part is: ``PROSE``, ``CAPTION``, ``TECHNICAL``, ``KEPT``, or the label of what the whole part
            identifies. Empty: all is prose.
        fields: the name of the column or field that each part is the value of. Empty: they have none.
    """

    id: str
    text: str
    meta: Mapping[str, object] = field(default_factory=lambda: _EMPTY)
    parts: Sequence[Interval] = ()
    turns: tuple[Turn, ...] = ()
    roles: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a document's text is a str, got {type(self.text).__name__}")
        object.__setattr__(self, "meta", MappingProxyType(dict(self.meta)))

    def __repr__(self) -> str:
        turns = f", {len(self.turns)} turns" if self.turns else ""
        return f"Document({len(self.text)} characters{turns})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Document, (self.id, self.text, dict(self.meta), self.parts, self.turns, self.roles, self.fields))

    @classmethod
    def from_parts(
        cls,
        id: str,
        parts: Sequence[str],
        meta: Mapping[str, object] = _EMPTY,
        separators: Sequence[str] | str = "\n",
        roles: Iterable[str] = (),
    ) -> Document:
        """Join pieces of one source into a document, so that they share entities and numbering.

        ``separators`` is one string put between all parts, or one string after each part; ``roles`` tells what each
        part is.
        """
        if isinstance(separators, str):
            separators = [*[separators] * (len(parts) - 1), ""][: len(parts)]
        if len(separators) != len(parts):
            raise ValueError(f"{len(parts)} parts need as many separators, got {len(separators)}")
        numbers = array("q")
        start = 0
        for part, separator in zip(parts, separators, strict=True):
            end = start + len(part)
            numbers.append(start)
            numbers.append(end)
            start = end + len(separator)
        text = "".join(chain.from_iterable(zip(parts, separators, strict=True)))
        return cls(id, text, meta, Intervals(numbers), roles=tuple(roles))

    @classmethod
    def conversation(
        cls, id: str, turns: Iterable[tuple[str | None, str]], meta: Mapping[str, object] = _EMPTY
    ) -> Document:
        """Build a conversation from (speaker, text) pairs; each turn becomes a line ``speaker: text``.

        The parts are, per turn, the speaker label (where there is one) and the text.
        """
        lines = list(turns)
        pieces: list[tuple[str, str]] = []
        for speaker, text in lines:
            pieces += [(speaker, ": "), (text, "\n")] if speaker else [(text, "\n")]
        separators = [separator for _, separator in pieces[:-1]] + [""] * bool(pieces)
        document = cls.from_parts(id, [piece for piece, _ in pieces], meta, separators)
        intervals = iter(document.parts)
        built = []
        for speaker, _ in lines:
            label = next(intervals) if speaker else None
            built.append(Turn(*next(intervals), label))
        return replace(document, turns=tuple(built))

    def part_texts(self) -> tuple[str, ...]:
        """Return the parts' texts; the whole text where the document has no parts."""
        return tuple(self.text[a:b] for a, b in self.parts) if self.parts else (self.text,)

    def drop_field_names(self) -> Document:
        """Return the same parts without names of fields between them, each on a line of its own.

        What only blanks separate stays as it is: the runs of a paragraph, the letters of a page.
        """
        gaps = [self.text[a:b] for (_, a), (b, _) in pairwise(self.parts)]
        separators = [gap if not gap or gap.isspace() else "\n" for gap in gaps]
        return Document.from_parts(self.id, self.part_texts(), self.meta, [*separators, ""])


def merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals as sorted, disjoint, non-touching intervals.

    >>> merge_intervals([(4, 6), (0, 2), (1, 3), (6, 7)])
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

    >>> list(subtract_intervals((0, 10), [(2, 3), (5, 12)]))
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


def clip_intervals(intervals: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """Return what the sorted, disjoint ``intervals`` cover of ``start:end``."""
    first = bisect_right(intervals, start, key=itemgetter(1))
    last = bisect_left(intervals, end, key=itemgetter(0))
    return [(max(start, a), min(end, b)) for a, b in intervals[first:last]]


def splice_text(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other words in some of its places.

    Args:
        text: the text.
        changes: (start, end, new words), sorted and disjoint.
    """
    parts, position = [], 0
    for start, end, new in changes:
        parts += [text[position:start], new]
        position = end
    return "".join((*parts, text[position:]))


def trim_blanks(text: str, start: int, end: int) -> Interval:
    """Return the borders of ``text[start:end]`` without blanks and line ends at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


class Reach:
    """How far a set of intervals reaches from any position. Building it sorts them; a question takes a bisection."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        borders = sorted(intervals)
        self._starts = [start for start, _ in borders]
        self._ends = list(accumulate((end for _, end in borders), max))

    def find_furthest_end(self, position: int) -> int:
        """Return the furthest end of the intervals that start at or before ``position``; 0 where none does."""
        count = bisect_right(self._starts, position)
        return self._ends[count - 1] if count else 0

    def contains(self, start: int, end: int) -> bool:
        """Return whether one of the intervals holds all of ``start:end``."""
        return self.find_furthest_end(start) >= end

    def touches(self, start: int, end: int) -> bool:
        """Return whether one of the intervals shares a character with ``start:end``."""
        return self.find_furthest_end(end - 1) > start

"""The parts of a report: a page of sections of immutable blocks, drawn as HTML, as Markdown or as JSON.

A new kind of block is a dataclass here, a macro of its ``kind`` in ``templates/blocks.html`` and a function in
:mod:`allonym.report.markdown`; charts are drawn by :mod:`allonym.report.charts` and :mod:`allonym.report.vega`. Blocks
hold plain values; how numbers are written is settled in one place, :mod:`allonym.report.values`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from allonym.serial import Serialisable
from allonym.stats import Estimate

Tone = Literal["", "good", "bad", "warn", "muted"]
Kind = Literal["text", "number", "count", "share", "p", "power"]
"""How a column or an axis is written: ``power`` as a power of ten, ``p`` as a p value; see :mod:`.values`."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A word in a small frame."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A text behind the mark and colour that a series has in the charts of the page."""

    text: str
    slot: int


Cell = str | int | float | bool | Estimate | Tag | Key | None
Facts = tuple[tuple[str, Cell], ...]
"""Names and values, in the order of showing."""


class Block(Serialisable):
    """Anything that stands on a page."""

    @property
    def kind(self) -> str:
        """The name of the class in small letters, which names what draws it."""
        return type(self).__name__.lower()

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Plain values for JSON: the kind, and the fields by name."""
        return {"block": self.kind, **Serialisable.to_dict(self, texts)}

    @property
    def inside(self) -> tuple[Block, ...]:
        """The blocks that this one holds."""
        return getattr(self, "blocks", ())

    def walk(self) -> Iterator[Block]:
        """This block and all that it holds, in reading order."""
        yield self
        for block in self.inside:
            yield from block.walk()


class Section(Block):
    """A heading and what belongs under it; sections in sections get smaller headings. ``anchor`` names it in links."""

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""


class Text(Block):
    """A paragraph."""

    text: str
    tone: Literal["", "lead", "muted"] = ""


class Notice(Block):
    """A notice that the reader must not miss, with a list of particulars where there are any."""

    text: str
    tone: Literal["note", "warning", "sensitive"] = "note"
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One key figure: its name, its value, and a line on how to read it.

    ``before`` is shown in front of the value, with an arrow, where a figure has changed.
    """

    label: str
    value: Cell
    note: str = ""
    number: Kind = "number"
    digits: int | None = None
    tone: Tone = ""
    before: Cell = None


class Figures(Block):
    """Key figures side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, how its values are written, and what it means in a sentence."""

    name: str
    number: Kind = "text"
    digits: int | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Cells in the order of the columns; ``mark`` sets the row apart."""

    cells: tuple[Cell, ...]
    mark: Literal["", "frontier", "chosen"] = ""


class Table(Block):
    """A table that can be sorted, and filtered where it is long. ``shown`` rows show at first; 0: all."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    shown: int = 0


@dataclass(frozen=True, slots=True)
class Square:
    """A cell of a matrix: its value, how dark it is (0 to 1), or which series' colour it has."""

    value: Cell
    level: float | None = None
    slot: int | None = None
    hint: str = ""


class Matrix(Block):
    """A table whose cells are coloured: a confusion matrix, a heat table, a map of choices."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Square, ...]], ...]
    corner: str = ""
    number: Kind = "number"
    digits: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a passage that is set off; ``label`` shows when it is pointed at. Sorted and disjoint."""

    start: int
    end: int
    label: str
    slot: int = 0
    style: Literal["swap", "other"] = "swap"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text before and after. ``traits`` are what the reader's filters choose by, ``orders`` what it sorts by."""

    title: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    marks_before: tuple[Mark, ...] = field(default=(), repr=False)
    marks_after: tuple[Mark, ...] = field(default=(), repr=False)
    tags: tuple[Tag, ...] = ()
    facts: Facts = ()
    traits: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, float] = field(default_factory=dict)


class Reader(Block):
    """Passages before and after, side by side, a few at a time. ``keys`` explain the colours of the marks.

    ``heads`` stand above the two sides.
    """

    title: str
    passages: tuple[Passage, ...]
    keys: tuple[Key, ...] = ()
    note: str = ""
    heads: tuple[str, str] = ("Before", "After")


class Settings(Block):
    """Names and values, in named groups."""

    groups: tuple[tuple[str, Facts], ...]


class Details(Block):
    """Blocks that stay folded until somebody opens them."""

    title: str
    blocks: tuple[Block, ...]


class Tabs(Block):
    """Alternatives of which one shows at a time; ``chosen`` is the first to show. Print shows all."""

    title: str
    options: tuple[tuple[str, tuple[Block, ...]], ...]
    chosen: int = 0

    @property
    def inside(self) -> tuple[Block, ...]:
        """The blocks that this one holds."""
        return tuple(b for _, blocks in self.options for b in blocks)


class Beside(Block):
    """Blocks next to each other where there is room."""

    blocks: tuple[Block, ...]


class Page(Serialisable):
    """A whole report.

    Attributes:
        title, subtitle: what it is about.
        lead: what stands before the first section.
        footer: who made it; empty: allonym and its version.
    """

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""
    lead: tuple[Block, ...] = ()
    footer: str = ""

    def to_json(self) -> str:
        """:meth:`to_dict` as indented JSON with a final line end."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"

    def blocks(self) -> Iterator[Block]:
        """Every block, also those inside others, in reading order."""
        for block in (*self.lead, *self.sections):
            yield from block.walk()


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its name, how its values are written, and what of it is shown; without limits, what the points need."""

    name: str
    number: Kind = "number"
    low: float | None = None
    high: float | None = None
    log: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart. Estimates are drawn with their intervals where the point is emphasised.

    Attributes:
        label: what it is; facts: what else to say about it when it is pointed at.
        mark: ``chosen`` is ringed, ``frontier`` drawn in full, ``hollow`` as an outline.
    """

    x: float | Estimate
    y: float | Estimate
    label: str = ""
    facts: Facts = ()
    mark: Literal["", "frontier", "chosen", "hollow"] = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour and mark. ``slot`` numbers both, so that a series looks the same in every chart.

    ``line`` joins the points in their order: ``thin`` behind them, ``full`` as a curve; ``dashed`` breaks it.
    """

    name: str
    points: tuple[Point, ...]
    slot: int = 0
    line: Literal["", "thin", "full", "dashed"] = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """A line that is not data: the frontier, a limit, the diagonal of a reliability plot."""

    name: str
    points: tuple[tuple[float, float], ...]
    style: Literal["frontier", "limit", "reference"] = "reference"


class Chart(Block):
    """Points and lines over two axes.

    Attributes:
        description: what a reader who does not see it should know.
        better: the corner to aim for, e.g. ``lower right``; an arrow points there.
        size: ``small`` for many beside each other.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    guides: tuple[Guide, ...] = ()
    description: str = ""
    better: Literal["", "lower right", "upper right", "lower left", "upper left"] = ""
    size: Literal["wide", "small"] = "wide"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a group."""

    series: str
    value: float | Estimate
    slot: int = 0
    facts: Facts = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The bars of one thing, and a value to compare them with."""

    name: str
    bars: tuple[Bar, ...]
    reference: float | None = None


class Bars(Block):
    """Horizontal bars in groups, with intervals; ``reference`` names the tick across each group's bars.

    ``guides`` are names and values of lines across all bars.
    """

    title: str
    axis: Axis
    groups: tuple[Group, ...]
    reference: str = ""
    description: str = ""
    note: str = ""
    guides: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Bubble:
    """A thing on a map: where, how big, how dark (0 to 1), with a short label inside and a longer one beside it."""

    x: float
    y: float
    size: float
    level: float
    label: str
    words: str = ""
    facts: Facts = ()
    dashed: bool = False


class Bubbles(Block):
    """A map of bubbles. ``levels`` are the values that the lightest and the darkest colour stand for."""

    title: str
    bubbles: tuple[Bubble, ...]
    size_name: str
    level_name: str
    levels: tuple[float, float]
    description: str = ""
    note: str = ""


class Multiples(Block):
    """Small charts beside each other, with one legend."""

    title: str
    charts: tuple[Chart, ...]
    note: str = ""

    @property
    def inside(self) -> tuple[Block, ...]:
        """The blocks that this one holds."""
        return self.charts

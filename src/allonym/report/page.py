"""The parts of a report: a page of sections of immutable blocks, drawn as HTML, as Markdown or as JSON.

A new kind of block is a dataclass here, a macro of its ``kind`` in ``templates/blocks.html`` and a function in
:mod:`allonym.report.markdown`. Blocks hold plain values; how numbers are written is settled in one place,
:mod:`allonym.report.numbers`. Charts are in :mod:`allonym.report.plots`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from allonym.serial import Serialisable
from allonym.stats import Estimate

Tone = Literal["", "good", "bad", "warn", "muted"]
Kind = Literal["text", "number", "count", "share", "p", "power"]
"""How a column or an axis is written: ``power`` as a power of ten, ``p`` as a p value; see :mod:`.numbers`."""


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


@dataclass(frozen=True, slots=True)
class Block(Serialisable):
    """Anything that stands on a page. ``kind`` names what draws it."""

    kind: ClassVar[str] = ""

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


@dataclass(frozen=True, slots=True)
class Section(Block):
    """A heading and what belongs under it; sections in sections get smaller headings. ``anchor`` names it in links."""

    kind: ClassVar[str] = "section"
    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Text(Block):
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str
    tone: Literal["", "lead", "muted"] = ""


@dataclass(frozen=True, slots=True)
class Notice(Block):
    """A notice that the reader must not miss, with a list of particulars where there are any."""

    kind: ClassVar[str] = "notice"
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


@dataclass(frozen=True, slots=True)
class Figures(Block):
    """Key figures side by side."""

    kind: ClassVar[str] = "figures"
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


@dataclass(frozen=True, slots=True)
class Table(Block):
    """A table that can be sorted, and filtered where it is long. ``shown`` rows show at first; 0: all."""

    kind: ClassVar[str] = "table"
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


@dataclass(frozen=True, slots=True)
class Matrix(Block):
    """A table whose cells are coloured: a confusion matrix, a heat table, a map of choices."""

    kind: ClassVar[str] = "matrix"
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


@dataclass(frozen=True, slots=True)
class Reader(Block):
    """Passages before and after, side by side, a few at a time. ``keys`` explain the colours of the marks."""

    kind: ClassVar[str] = "reader"
    title: str
    passages: tuple[Passage, ...]
    keys: tuple[Key, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Settings(Block):
    """Names and values, in named groups."""

    kind: ClassVar[str] = "settings"
    groups: tuple[tuple[str, Facts], ...]


@dataclass(frozen=True, slots=True)
class Details(Block):
    """Blocks that stay folded until somebody opens them."""

    kind: ClassVar[str] = "details"
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Tabs(Block):
    """Alternatives of which one shows at a time; ``chosen`` is the first to show. Print shows all."""

    kind: ClassVar[str] = "tabs"
    title: str
    options: tuple[tuple[str, tuple[Block, ...]], ...]
    chosen: int = 0

    @property
    def inside(self) -> tuple[Block, ...]:
        """The blocks that this one holds."""
        return tuple(b for _, blocks in self.options for b in blocks)


@dataclass(frozen=True, slots=True)
class Beside(Block):
    """Blocks next to each other where there is room."""

    kind: ClassVar[str] = "beside"
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
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

"""Blocks that are drawn: charts, bars, maps of bubbles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from allonym.report.page import Block, Facts, Kind
from allonym.stats import Estimate


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


@dataclass(frozen=True, slots=True)
class Chart(Block):
    """Points and lines over two axes.

    Attributes:
        description: what a reader who does not see it should know.
        better: the corner to aim for, e.g. ``lower right``; an arrow points there.
        size: ``small`` for many beside each other.
    """

    kind: ClassVar[str] = "chart"
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


@dataclass(frozen=True, slots=True)
class Bars(Block):
    """Horizontal bars in groups, with intervals; ``reference`` names the tick across each group's bars.

    ``guides`` are names and values of lines across all bars.
    """

    kind: ClassVar[str] = "bars"
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


@dataclass(frozen=True, slots=True)
class Bubbles(Block):
    """A map of bubbles. ``levels`` are the values that the lightest and the darkest colour stand for."""

    kind: ClassVar[str] = "bubbles"
    title: str
    bubbles: tuple[Bubble, ...]
    size_name: str
    level_name: str
    levels: tuple[float, float]
    description: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Multiples(Block):
    """Small charts beside each other, with one legend."""

    kind: ClassVar[str] = "multiples"
    title: str
    charts: tuple[Chart, ...]
    note: str = ""

    @property
    def inside(self) -> tuple[Block, ...]:
        """The blocks that this one holds."""
        return self.charts

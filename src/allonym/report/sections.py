"""Sections as data: each part names what it shows and where the result holds it; :class:`SectionSpec` draws them all.

Columns of tables, key figures and bars are written as tables themselves, one in a line::

    name | source | kind and digits | note | when

A source is a path into the result or the row (:func:`allonym.report.values.get_nested_value`); the kind is one of
:data:`allonym.report.page.Kind`, with digits as in ``share.1``; what is empty at the end may be left out. A field with
``when`` is left out where that path has no value; ``texts`` before the path asks for words of documents to be allowed.
A part that needs more than paths is a function of the result, which yields blocks and stands among the parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from allonym.report import page
from allonym.report.values import Plain, Source, Template, Values, get_nested_value, read_cell


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a result: a column of a table, a key figure, or a bar, whose ``digits`` are its colour."""

    name: str
    source: str
    kind: page.Kind = "text"
    digits: int | None = None
    note: str = ""
    when: str = ""


def parse_fields(table: str) -> tuple[Field, ...]:
    """Parse the fields of a table.

    Raises:
        ValueError: if a line has no source, more than five cells, or an unknown kind.
    """
    return tuple(_parse_field(line) for line in table.splitlines() if line.strip())


def _parse_field(line: str) -> Field:
    name, source, form, note, when, *rest = [*(cell.strip() for cell in line.split("|")), "", "", "", ""][:9]
    kind, _, digits = form.partition(".")
    if not source or any(rest) or kind not in ("", *get_args(page.Kind)):
        raise ValueError(f"report: a field is 'name | source | kind.digits | note | when', got {line.strip()!r}")
    return Field(name, source, kind or "text", int(digits) if digits else None, note, when)  # type: ignore[arg-type]


def select_fields(table: str, result: Values, texts: bool = False) -> tuple[Field, ...]:
    """Select the fields that have something to show."""

    def is_shown(condition: str) -> bool:
        path = condition.removeprefix("texts ")
        return not path or ((texts or path == condition) and result.has_value(path))

    return tuple(f for f in parse_fields(table) if is_shown(f.when))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(ABC):
    """A part of a section.

    Attributes:
        when: the part is left out where this source has no value, or 0, or nothing in it.
        texts: whether it shows words of documents; then it is left out unless they may show.
    """

    when: Source = ""
    texts: bool = False

    @abstractmethod
    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """Return the part's block; ``texts`` says whether words of documents may show."""


Parts = tuple[Part | Callable[[Any], Iterable[page.Block]], ...]


@dataclass(frozen=True, slots=True)
class Paragraph(Part):
    """A paragraph from a template."""

    text: Template
    tone: Literal["", "lead", "muted"] = ""

    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """See the base class."""
        return page.Text(result.fill_template(self.text), self.tone)


@dataclass(frozen=True, slots=True)
class Warn(Part):
    """A notice from a template."""

    text: Template
    tone: Literal["note", "warning", "sensitive"] = "note"

    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """See the base class."""
        return page.Notice(result.fill_template(self.text), self.tone)


@dataclass(frozen=True, slots=True)
class KeyFigures(Part):
    """Key figures side by side. Names and notes are templates; ``tones`` colours figures by name.

    ``before`` holds the sources of earlier values, by name, for figures that have changed.
    """

    fields: str
    tones: Mapping[str, Callable[[Values], page.Tone]] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)

    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """See the base class."""
        figures = []
        for f in select_fields(self.fields, result, texts):
            tone = self.tones[f.name](result) if f.name in self.tones else ""
            before = read_cell(result, self.before[f.name]) if f.name in self.before else None
            label, note = result.fill_template(f.name), result.fill_template(f.note)
            figures.append(page.Figure(label, read_cell(result, f.source), note, f.kind, f.digits, tone, before))
        return page.Figures(tuple(figures))


@dataclass(frozen=True, slots=True)
class ValueTable(Part):
    """A table with a row for each row of the result; title, names of columns and notes are templates.

    Attributes:
        rows: where the rows are, or paths of values with their names; ``mark`` in a row sets it apart.
        fields: the columns; their sources are paths in a row.
        shown: how many rows show at first; 0: all.
    """

    title: Template
    rows: Source | Mapping[str, str]
    fields: Template
    note: Template = ""
    shown: int = 0

    def draw(self, result: Values, texts: bool = False) -> page.Table:
        """See the base class."""
        table = self.fields if isinstance(self.fields, str) else self.fields(result)
        fields = select_fields(table, result, texts)
        columns = tuple(
            page.Column(result.fill_template(f.name), f.kind, f.digits, result.fill_template(f.note)) for f in fields
        )
        rows = ((row, get_nested_value(row, "mark")) for row in result.list_rows(self.rows))
        body = (page.Row(tuple(read_cell(row, f.source) for f in fields), mark or "") for row, mark in rows)
        return page.Table(
            result.fill_template(self.title), columns, tuple(body), result.fill_template(self.note), self.shown
        )


@dataclass(frozen=True, slots=True)
class BarChart(Part):
    """Bars in groups, a group for each row of the result.

    Attributes:
        rows: where the groups are; a group's name is under ``name``.
        bars: the bars of each group, with the number of their colour: ``name | source | .1``.
        reference: source in the row of the tick across each group's bars, and ``reference_name`` what it is.
    """

    title: Template
    axis: page.Axis
    rows: Source
    bars: str
    reference: str = ""
    reference_name: str = ""
    description: Template = ""
    note: str = ""
    guides: tuple[tuple[str, float], ...] = ()

    def draw(self, result: Values, texts: bool = False) -> page.Bars:
        """See the base class."""
        groups = []
        fields = select_fields(self.bars, result, texts)
        for row in result.list_rows(self.rows):
            bars = tuple(page.Bar(f.name, row.get_estimate(f.source), f.digits or 0) for f in fields)
            groups.append(page.Group(str(row.get("name") or ""), bars, row.find_number(self.reference)))
        title = result.fill_template(self.title)
        texts_beside = self.reference_name, result.fill_template(self.description), self.note
        return page.Bars(title, self.axis, tuple(groups), *texts_beside, self.guides)


@dataclass(frozen=True, slots=True)
class Folded(Part):
    """Parts that stay folded until somebody opens them; ``below`` is where the result has their values."""

    title: Template
    parts: Parts
    below: str = ""

    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """See the base class."""
        values = result.get_part(self.below) if self.below else result
        return page.Details(result.fill_template(self.title), tuple(draw_parts(self.parts, values, texts=texts)))


@dataclass(frozen=True, slots=True)
class PartsInRow(Part):
    """Parts next to each other where there is room."""

    parts: Parts

    def draw(self, result: Values, texts: bool = False) -> page.Block:
        """See the base class."""
        return page.Beside(tuple(draw_parts(self.parts, result, texts=texts)))


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """A section of a report; called with a result it draws the section.

    Attributes:
        title: template of the heading.
        anchor: its name in links.
        needs: there is no section where this source has no value.
        parts: what it shows, in this order.
        derive: returns values that the parts need besides those of the result.
    """

    title: Template
    anchor: Template
    needs: Source
    parts: Parts
    derive: Callable[[Any], Plain] = lambda result: {}

    def __call__(self, result: Plain, *, texts: bool = False) -> page.Section | None:
        """Draw the section; None where the result has nothing to show.

        Args:
            result: plain values, as the ``to_dict()`` of the measure's result returns them.
            texts: whether words of documents may show, where the values hold them.
        """
        values = result if isinstance(result, Values) else Values(result)
        if not values.has_value(self.needs):
            return None
        values = type(values)({**values, **self.derive(values)})
        blocks = tuple(draw_parts(self.parts, values, texts=texts))
        return page.Section(values.fill_template(self.title), blocks, values.fill_template(self.anchor))


def make_verdict_colour(path: str) -> Callable[[Values], page.Tone]:
    """Return a function that chooses the colour of a verdict: good, bad, or neither where there is none."""

    def choose_colour(result: Values) -> page.Tone:
        verdict = result.get_value(path)
        return "good" if verdict else "bad" if verdict is False else ""

    return choose_colour


def draw_parts(parts: Parts, result: Values, *, texts: bool = False) -> Iterator[page.Block]:
    """Yield the blocks of parts that have something to show."""
    for part in parts:
        if not isinstance(part, Part):
            yield from part(result)
        elif (texts or not part.texts) and (not part.when or result.has_value(part.when)):
            yield part.draw(result, texts)

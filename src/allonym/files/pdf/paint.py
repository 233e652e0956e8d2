"""Set replacements in the place of text, in its size and colour.

Where possible their line is set anew, see :mod:`allonym.files.pdf.lines`. Where it is not, as on pages that are
pictures, they are painted into the gap, as large as there is room.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pikepdf

from allonym.files.pdf.content import Content, Glyph, GlyphPlace
from allonym.files.pdf.fonts import measure_text_width
from allonym.files.pdf.layout import TextUnit
from allonym.files.pdf.lines import LineSetter, make_short_forms
from allonym.files.pdf.redact import Insert, Operation

LEAST_SIZE = 7.0
"""Font height in points below which no replacement is set, unless the text itself is smaller."""

LEAST_SCALE = 0.75
"""Least share of its usual width to which a text is compressed."""

BEGINS, GOES_ON = 1, 2
"""What a unit is in which a replacement begins, and one that it takes in further."""


@dataclass(slots=True)
class Gap:
    """The units that a replacement removes from one line."""

    units: list[TextUnit] = field(repr=False)

    @property
    def first(self) -> Glyph:
        """Its first character."""
        return self.units[0].first

    @property
    def width(self) -> float:
        """Its length in the page's units."""
        first, last = self.first, self.units[-1].first
        return math.hypot(last.x + last.dx - first.x, last.y + last.dy - first.y)


@dataclass(slots=True)
class Patch:
    """A replacement and the gaps of its edit."""

    text: str = field(repr=False)
    gaps: list[Gap]

    @property
    def widest(self) -> Gap:
        """The gap in whose place the replacement is set."""
        return max(self.gaps, key=lambda gap: gap.width)


def mark_changes(texts: Sequence[str], parts: Sequence[str]) -> bytes:
    """Return a byte for each unit, from its text and its new one: ``BEGINS``, ``GOES_ON``, or 0 where it stays."""
    out = bytearray()
    mark = 0
    for text, part in zip(texts, parts, strict=True):
        mark = 0 if part == text else BEGINS if part or not mark else GOES_ON
        out.append(mark)
    return bytes(out)


def clean_replacement(part: str) -> str:
    """Return a replacement as it is set: on one line."""
    return " ".join(part.split())


def make_patches(units: Sequence[TextUnit], parts: Sequence[str], marks: bytes) -> list[Patch]:
    """Return one patch for each replaced stretch of units; ``marks`` tells where it begins and goes on."""
    out: list[Patch] = []
    before: TextUnit | None = None
    for unit, part, mark in zip(units, parts, marks, strict=True):
        if not mark:
            continue
        if mark == BEGINS:
            out.append(Patch(clean_replacement(part), []))
            before = None
        if before is not None and unit.line == before.line and unit.first.page == before.first.page:
            out[-1].gaps[-1].units.append(unit)
        else:
            out[-1].gaps.append(Gap([unit]))
        before = unit
    return out


class Painter:
    """Makes the inserts of streams, and the operators that paint over pages.

    Attributes:
        inserts: inserts in place of removed characters.
        ops: operators that paint over a page, by page.
        fonts: required standard fonts, by stream or page.
        moves: the characters that move, see :class:`~allonym.files.pdf.lines.LineSetter`.

    Args:
        content: all that the file shows.
        texts: all replacements, in the order of the text.
        boxes: left, bottom, right and top of each page.
        over: the pages that are only painted over.
    """

    def __init__(
        self,
        content: Content,
        texts: Iterable[str],
        boxes: Sequence[tuple[float, float, float, float]],
        over: Container[int],
    ) -> None:
        self._boxes, self._over = boxes, over
        self._closed = {key for key, form in content.forms.items() if "/Resources" not in form.thing}
        self._texts = dict.fromkeys(texts)
        self._short_forms = make_short_forms(text for text in self._texts if text)
        self._setter = LineSetter(boxes, content.edges, self._is_fixed, self._short_forms)
        self.moves = self._setter.moves
        self._kept: dict[int, list[Glyph]] = {}
        self.inserts: dict[GlyphPlace, Insert] = {}
        self.fonts: dict[Any, set[str]] = defaultdict(set)
        self.ops: dict[int, list[Operation]] = defaultdict(list)

    def list_shortened(self) -> list[tuple[str, str]]:
        """Return the short forms in use, each with what it stands for, in the order of the text."""
        return [(self._short_forms[text], text) for text in self._texts if text in self._setter.shortened]

    def paint_replacements(
        self, units: Sequence[TextUnit], patches: Sequence[Patch], kept_glyphs: Iterable[Glyph]
    ) -> None:
        """Set replacements: with their lines, where these can be set anew, else into the room there is.

        Args:
            units: all of some pages.
            patches: the replacements in them.
            kept_glyphs: the remaining characters, which must not be painted over.
        """
        self._setter.open_pages(units)
        gone = frozenset(id(unit) for patch in patches for gap in patch.gaps for unit in gap.units)
        texts: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
        gaps: dict[int, Gap] = {}
        for patch in patches:
            for gap in patch.gaps:
                texts.setdefault((gap.first.page, gap.units[0].line), {})
            gap = patch.widest
            if patch.text:
                texts[gap.first.page, gap.units[0].line][id(gap.units[0])] = patch.text
                gaps[id(gap.units[0])] = gap
        in_place: list[tuple[Gap, str]] = []
        for (page, line), by_unit in texts.items():
            can_insert = all(self._can_insert_at(gaps[key].first) for key in by_unit)
            if not can_insert or not self._setter.can_set_line(page, line):
                in_place += ((gaps[key], text) for key, text in by_unit.items())
                continue
            for unit, text, width, move in self._setter.set_line(page, line, by_unit, gone):
                glyph = unit.first
                if measure_text_width(text, glyph.style):
                    self._insert_text_into_stream(glyph, text, glyph.style, glyph.size, width)
                else:
                    self._paint_black_box(glyph, width, move)
        if in_place:
            self._paint_in_place(in_place, kept_glyphs)

    def close_page(self, number: int) -> None:
        """Forget what is set into the content stream of a page."""
        for places in (self.moves, self.inserts):
            for place in [place for place in places if place[0] == ("page", number)]:
                del places[place]

    def _is_fixed(self, glyph: Glyph) -> bool:
        return glyph.setting is None or glyph.stream in self._closed or glyph.page in self._over

    def _can_insert_at(self, glyph: Glyph) -> bool:
        return not self._is_fixed(glyph) and glyph.width >= 1e-6 and abs(glyph.back) >= 1e-6

    def _paint_in_place(self, replacements: Sequence[tuple[Gap, str]], kept_glyphs: Iterable[Glyph]) -> None:
        """Paint replacements into gaps, without overlaps; what follows a gap stays."""
        self._kept = defaultdict(list)
        for glyph in kept_glyphs:
            if glyph.text and not glyph.text.isspace() and (not glyph.plane or glyph.page in self._over):
                self._kept[glyph.page].append(glyph)
        for gap, _ in replacements:
            self._kept[gap.first.page].append(gap.first)
        for gap, text in replacements:
            self._paint_into_gap(gap, text)

    def _paint_into_gap(self, gap: Gap, full_text: str) -> None:
        """Paint a replacement as large as there is room, or its short form, or else a box."""
        first, style = gap.first, gap.first.style
        for text in (full_text, self._short_forms[full_text]):
            wide = measure_text_width(text, style)
            if not wide or not 0.1 < first.size < 1000:
                continue
            room = max(gap.width, self._measure_free_width(gap, wide * first.size))
            size = max(min(first.size, room / (wide * LEAST_SCALE)), min(first.size, LEAST_SIZE))
            scale = min(1.0, room / (wide * size))
            if scale < LEAST_SCALE:
                continue
            if text != full_text:
                self._setter.shortened.add(full_text)
            if self._can_insert_at(first):
                self._insert_text_into_stream(first, text, style, size, wide * size * scale)
            else:
                self._paint_text_over_page(first, text, style, size, scale)
            return
        self._paint_black_box(first, gap.width)

    def _insert_text_into_stream(self, glyph: Glyph, text: str, style: str, size: float, width: float) -> None:
        """Set a text of this size and width into the stream, in place of a character that takes inserts."""
        setting = glyph.setting
        assert setting is not None
        # The page's units in one unit of the text, along the line.
        unit = glyph.width / (abs(glyph.back) * setting.size / 1000 * setting.scale)
        high = setting.size * size / glyph.size
        scale = width / (measure_text_width(text, style) * high * unit)
        state = ((100 * scale, 100 * setting.scale, "Tz"), (0.0, setting.char, "Tc"), (0.0, setting.word, "Tw"))
        changed = [(value, usual, op) for value, usual, op in state if value != usual]
        operations: list[Operation] = [
            ([pikepdf.Name(f"/Allonym{style}"), high], "Tf"),
            *(([value], op) for value, _, op in changed),
            ([pikepdf.String(text.encode("cp1252"))], "Tj"),
            ([pikepdf.Name(setting.font), setting.size], "Tf"),
            *(([usual], op) for _, usual, op in changed),
        ]
        back = 1000 * (width / unit) / (setting.size * setting.scale)
        self.inserts[glyph.place] = (operations, back)
        self.fonts[glyph.stream].add(style)

    def _measure_free_width(self, gap: Gap, width_needed: float) -> float:
        """Measure the room after a gap: to the next character on the line, or the page's margin."""
        first = gap.first
        if first.width <= 1e-6:
            return gap.width
        ex, ey = first.dx / first.width, first.dy / first.width
        right = gap.units[0].right
        free = min(width_needed, right) if right > 0 else width_needed
        for other in self._kept[first.page]:
            if other is first:
                continue
            along = (other.x - first.x) * ex + (other.y - first.y) * ey
            across = -(other.x - first.x) * ey + (other.y - first.y) * ex
            if along >= gap.width - 0.3 * first.size and -0.9 * other.size < across < 0.9 * first.size:
                free = min(free, along - 0.3 * first.size)
        left, bottom, right, top = self._boxes[first.page]
        edges = (right, first.x, ex), (left, first.x, ex), (top, first.y, ey), (bottom, first.y, ey)
        for edge, position, step in edges:
            if abs(step) > 0.01 and (edge - position) / step > 0:
                free = min(free, (edge - position) / step - 12)
        return max(gap.width, free)

    def _is_hidden(self, glyph: Glyph) -> bool:
        return bool(glyph.plane) and glyph.page not in self._over

    def _paint_text_over_page(self, glyph: Glyph, text: str, style: str, size: float, scale: float) -> None:
        if self._is_hidden(glyph):
            return
        self.fonts["page", glyph.page].add(style)
        colour = glyph.colour or (0.0,)
        self.ops[glyph.page] += (
            ([], "BT"),
            (colour, {1: "g", 3: "rg", 4: "k"}[len(colour)]),
            ([pikepdf.Name(f"/Allonym{style}"), size], "Tf"),
            ([100 * scale], "Tz"),
            ([*_make_rotation_matrix(glyph), glyph.x, glyph.y], "Tm"),
            ([pikepdf.String(text.encode("cp1252"))], "Tj"),
            ([], "ET"),
        )

    def _paint_black_box(self, glyph: Glyph, width: float, move: float = 0.0) -> None:
        """Paint a box from a character on; ``move``: from so far along its line."""
        if self._is_hidden(glyph):
            return
        size = max(glyph.size, 0.1)
        self.ops[glyph.page] += (
            ([], "q"),
            ([0], "g"),
            ([*_make_rotation_matrix(glyph), glyph.x, glyph.y], "cm"),
            ([move, -0.2 * size, max(width, 0.5), 0.95 * size], "re"),
            ([], "f"),
            ([], "Q"),
        )


def _make_rotation_matrix(glyph: Glyph) -> tuple[float, float, float, float]:
    cos, sin = math.cos(glyph.angle), math.sin(glyph.angle)
    return cos, sin, -sin, cos


def make_standard_font(pdf: Any, font_name: str) -> Any:
    """Return a standard font as an object of the file."""
    return pdf.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.Font,
            Subtype=pikepdf.Name.Type1,
            BaseFont=pikepdf.Name(f"/{font_name}"),
            Encoding=pikepdf.Name.WinAnsiEncoding,
        )
    )


LEGEND_FONT = "Helvetica"


def list_legend_pages(short_forms: Sequence[tuple[str, str]], width: float, height: float) -> Iterator[list[Operation]]:
    """Yield the operations of pages that list short forms and what they stand for."""
    size, step, margin = 10.0, 14.0, min(56.0, 0.1 * width)
    column = max(measure_text_width(short, LEGEND_FONT) for short, _ in short_forms) * size + 12
    count = max(1, int((height - 2 * margin) / step))
    for first in range(0, len(short_forms), count):
        operations: list[Operation] = [([], "BT"), ([pikepdf.Name(f"/Allonym{LEGEND_FONT}"), size], "Tf")]
        for row, texts in enumerate(short_forms[first : first + count]):
            for x, text in zip((margin, margin + column), texts, strict=True):
                shown = pikepdf.String(text.encode("cp1252", "replace"))
                operations += (([1, 0, 0, 1, x, height - margin - row * step], "Tm"), ([shown], "Tj"))
        yield [*operations, ([], "ET")]

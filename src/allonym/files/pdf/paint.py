"""Paint replacements in the place of text, as large as there is room.

They are set in the stream of the text, in its position and colour. If that is not possible, as on pages that are
pictures, they are painted over the page.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import pikepdf

from allonym.files.pdf.content import Glyph
from allonym.files.pdf.fonts import measure_text_width
from allonym.files.pdf.layout import TextUnit
from allonym.files.pdf.redact import Insert, Operation

LEAST_SIZE = 4.0
"""Font height in points below which a box is painted instead."""

LEAST_SCALE = 0.5
"""Least share of its usual width to which a text is compressed."""


@dataclass(slots=True)
class Gap:
    """A gap in a line: its first character, its length, its characters, and the distance to the end of the lines of
    the paragraph or column (0: unknown)."""

    first: Glyph
    width: float
    glyphs: list[Glyph] = field(repr=False)
    right: float = 0.0


@dataclass(slots=True)
class Patch:
    """A replacement and the gaps of its edit."""

    text: str = field(repr=False)
    gaps: list[Gap]


def make_patches(units: Sequence[TextUnit], parts: Sequence[str]) -> list[Patch]:
    """Return one patch for each replaced stretch of units."""
    out: list[Patch] = []
    going = False
    line = -1
    for unit, part in zip(units, parts, strict=True):
        if part == unit.text:
            going = False
            continue
        if part or not going:
            out.append(Patch(part, []))
            line = -1
        patch = out[-1]
        end = unit.glyphs[0]
        if unit.line == line and end.page == patch.gaps[-1].first.page:
            gap = patch.gaps[-1]
            gap.width = math.hypot(end.x + end.dx - gap.first.x, end.y + end.dy - gap.first.y)
            gap.glyphs += unit.glyphs
        else:
            patch.gaps.append(Gap(end, end.width, list(unit.glyphs), unit.right))
        going, line = True, unit.line
    return out


class Painter:
    """Makes the inserts of streams, and the operators that paint over pages.

    Attributes:
        inserts: inserts by stream and position.
        ops: operators that paint over a page, by page.
        fonts: required standard fonts, by stream or page.

    Args:
        kept_glyphs: the remaining characters, which must not be painted over.
        boxes: left, bottom, right and top of each page.
        over: the pages that are only painted over.
        closed: the streams that cannot have inserts.
    """

    def __init__(
        self,
        kept_glyphs: Sequence[Glyph],
        boxes: Sequence[tuple[float, float, float, float]],
        over: Container[int],
        closed: Container[Any],
    ) -> None:
        self._kept: dict[int, list[Glyph]] = defaultdict(list)
        for glyph in kept_glyphs:
            if glyph.text and not glyph.text.isspace() and (not glyph.plane or glyph.page in over):
                self._kept[glyph.page].append(glyph)
        self._boxes, self._over, self._closed = boxes, over, closed
        self.inserts: dict[Any, dict[tuple[int, int, int], Insert]] = defaultdict(dict)
        self.fonts: dict[Any, set[str]] = defaultdict(set)
        self.ops: dict[int, list[Operation]] = defaultdict(list)

    def paint_patches(self, patches: Sequence[Patch]) -> None:
        """Paint replacements without overlaps."""
        for patch in patches:
            for gap in patch.gaps if patch.text else ():
                self._kept[gap.first.page].append(gap.first)
        for patch in patches:
            self._paint_patch(patch)

    def _paint_patch(self, patch: Patch) -> None:
        """Paint a replacement into the first gap with enough room, else into the widest, or else paint a box."""
        text = " ".join(patch.text.split())
        if not text or not patch.gaps:
            return
        style = patch.gaps[0].first.style
        wide = measure_text_width(text, style)
        best = (-1.0, patch.gaps[0], 0.0)
        for gap in patch.gaps:
            needed, room = wide * gap.first.size, gap.width
            if not needed or room / needed < 0.8:
                room = self._measure_free_width(gap, needed)
            share = room / needed if needed else 0.0
            if share > best[0]:
                best = (share, gap, room)
            if share >= 0.8:
                break
        share, gap, room = best
        # The reduction is shared between height and width.
        squeeze = min(1.0, math.sqrt(share)) if share < 1 else 1.0
        first = gap.first
        size = first.size * (squeeze if share < 0.8 else 1.0)
        scale = room / (wide * size) if 0 < share < 1 else 1.0
        if wide <= 0 or size < LEAST_SIZE or scale < LEAST_SCALE or not 0.1 < first.size < 1000:
            self._paint_black_box(gap)
            return
        scale = min(1.0, scale)
        if first.page in self._over or not self._insert_text_into_stream(first, text, style, size, wide * size * scale):
            self._paint_text_over_page(first, text, style, size, scale)

    def _insert_text_into_stream(self, glyph: Glyph, text: str, style: str, size: float, width: float) -> bool:
        """Set a text of this size and width into the stream; return false if that is not possible."""
        setting = glyph.setting
        if setting is None or glyph.stream in self._closed or abs(glyph.back) < 1e-6 or glyph.width < 1e-6:
            return False
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
        self.inserts[glyph.stream][glyph.op, glyph.item, glyph.start] = (operations, back)
        self.fonts[glyph.stream].add(style)
        return True

    def _measure_free_width(self, gap: Gap, width_needed: float) -> float:
        """Measure the room after a gap: to the next character on the line, or the page's margin."""
        first = gap.first
        if first.width <= 1e-6:
            return gap.width
        ex, ey = first.dx / first.width, first.dy / first.width
        free = min(width_needed, gap.right) if gap.right > 0 else width_needed
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

    def _paint_black_box(self, gap: Gap) -> None:
        first = gap.first
        if self._is_hidden(first):
            return
        size = max(first.size, 0.1)
        self.ops[first.page] += (
            ([], "q"),
            ([0], "g"),
            ([*_make_rotation_matrix(first), first.x, first.y], "cm"),
            ([0, -0.2 * size, max(gap.width, 0.5), 0.95 * size], "re"),
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

"""Pages in reading order, packed: an open page has objects for each character, so few are open at a time."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from allonym.files.pdf.content import Glyph, pack_glyphs, unpack_glyphs
from allonym.files.pdf.layout import TextUnit, order_glyphs_for_reading
from allonym.files.pdf.tables import Cell, split_into_rows

_get_row = attrgetter("text", "before", "line", "right")


@dataclass(slots=True)
class Page:
    """A page.

    Attributes:
        glyphs: its characters, in the order in which they are drawn.
        units: the same in reading order.
        others: its replacement texts that differ from their characters.
    """

    glyphs: list[Glyph] = field(repr=False)
    units: list[TextUnit] = field(repr=False)
    others: list[TextUnit] = field(repr=False)

    @classmethod
    def order_glyphs(cls, glyphs: list[Glyph], actual_texts: Sequence[str]) -> Page:
        """Return the page with these characters; see :func:`~allonym.files.pdf.layout.order_glyphs_for_reading`."""
        return cls(glyphs, *order_glyphs_for_reading(glyphs, actual_texts))

    def pack(self) -> PackedPage:
        """Return the page as few bytes."""
        places = {id(glyph): place for place, glyph in enumerate(self.glyphs)}
        rows = [(*_get_row(u), [places[id(glyph)] for glyph in u.glyphs]) for u in (*self.units, *self.others)]
        columns = pickle.dumps(list(zip(*rows, strict=True)), pickle.HIGHEST_PROTOCOL)
        return PackedPage(
            [unit.text for unit in self.units],
            [unit.before for unit in self.units],
            [unit.text for unit in self.others],
            list(split_into_rows(self.units)),
            pack_glyphs(self.glyphs),
            zlib.compress(columns, 1),
        )


@dataclass(frozen=True, slots=True)
class PackedPage:
    """A packed page.

    Attributes:
        texts: the texts of its units.
        gaps: what stands before each.
        others: its replacement texts that differ from their characters.
        rows: its lines, divided into cells, whose units count from 0.
    """

    texts: list[str] = field(repr=False)
    gaps: list[str] = field(repr=False)
    others: list[str] = field(repr=False)
    rows: list[list[Cell]] = field(repr=False)
    _glyphs: bytes = field(repr=False)
    _columns: bytes = field(repr=False)

    def unpack(self) -> Page:
        """Return the page."""
        glyphs = unpack_glyphs(self._glyphs)
        units = [
            TextUnit(text, [glyphs[place] for place in places], before, line, right)
            for text, before, line, right, places in zip(*pickle.loads(zlib.decompress(self._columns)), strict=True)
        ]
        return Page(glyphs, units[: len(self.texts)], units[len(self.texts) :])

"""A page as PDF, for boards that sign on paper: headings, paragraphs, notices and tables, without charts.

The same page gives the same bytes. The fonts are the PDF's own, so that letters they lack are written in their nearest
Latin form, or as a question mark.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from allonym import __version__
from allonym.errors import MissingExtra
from allonym.report import page as blocks
from allonym.report.values import format_cell, list_column_decimals
from allonym.text.controls import escape_controls
from allonym.text.fold import to_ascii_letters

_WIDTH = 482.0  # points between the margins of A4
_GREY, _SHADE = "#555555", "#f3f1ea"


def pdf(page: blocks.Page) -> bytes:
    """Draw the page as PDF, on A4.

    Raises:
        MissingExtra: reportlab is not installed.
    """
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.platypus import SimpleDocTemplate
    except ImportError as error:
        raise MissingExtra("a report as PDF", "evaluate") from error
    drawer = _Drawer()
    out = io.BytesIO()
    margin = (A4[0] - _WIDTH) / 2
    document = SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=margin,
        rightMargin=margin,
        topMargin=50,
        bottomMargin=50,
        title=page.title,
        invariant=1,
    )
    story = [drawer.draw_text(page.title, "Title")]
    if page.subtitle:
        story.append(drawer.draw_text(page.subtitle, "Small"))
    for block in (*page.lead, *page.sections):
        story += drawer.draw_block(block, 1)
    footer = page.footer or f"Made by allonym {__version__}."

    def draw_footer(canvas: Any, template: Any) -> None:
        canvas.setFont("Helvetica", 7.5)
        canvas.setFillColor(_GREY)
        canvas.drawString(margin, 28, _write_latin(f"{footer} Page {template.page}"))

    document.build(story, onFirstPage=draw_footer, onLaterPages=draw_footer)
    return out.getvalue()


def _write_latin(text: str) -> str:
    """Return a text in the letters of Windows Latin, which the PDF's own fonts have."""
    letters = (c if c.encode("cp1252", "ignore") else to_ascii_letters(c) for c in escape_controls(text))
    return "".join(letters).encode("cp1252", "replace").decode("cp1252")


class _Drawer:
    """Draws blocks as what reportlab flows over pages."""

    def __init__(self) -> None:
        from reportlab.lib.styles import ParagraphStyle

        def make_style(name: str, size: float, **more: Any) -> Any:
            return ParagraphStyle(name, fontName="Helvetica", fontSize=size, leading=1.35 * size, **more)

        bold = {"fontName": "Helvetica-Bold"}
        styles = (
            make_style("Body", 9.5, spaceAfter=5),
            make_style("Lead", 11, spaceAfter=7),
            make_style("Small", 8, textColor=_GREY, spaceAfter=4),
            make_style("Cell", 8.5),
            ParagraphStyle("Title", **bold, fontSize=19, leading=24, spaceAfter=8),
            ParagraphStyle("H1", **bold, fontSize=12.5, leading=16, spaceBefore=9, spaceAfter=3, keepWithNext=1),
            ParagraphStyle("H2", **bold, fontSize=10, leading=13, spaceBefore=5, spaceAfter=2, keepWithNext=1),
            ParagraphStyle("Head", **bold, fontSize=8.5, leading=11),
        )
        self._styles = {style.name: style for style in styles}

    def draw_text(self, text: str, style: str = "Body") -> Any:
        from reportlab.platypus import Paragraph

        return Paragraph(escape(_write_latin(text)), self._styles[style])

    def draw_block(self, block: blocks.Block, level: int) -> list[Any]:
        return list(self._draw_parts(block, level))

    def _draw_parts(self, block: blocks.Block, level: int) -> Iterator[Any]:
        if isinstance(block, blocks.Section | blocks.Details):
            yield self.draw_text(block.title, "H1" if level == 1 else "H2")
            for part in block.blocks:
                yield from self._draw_parts(part, level + 1)
        elif isinstance(block, blocks.Text):
            yield self.draw_text(block.text, {"lead": "Lead", "muted": "Small"}.get(block.tone, "Body"))
        elif isinstance(block, blocks.Notice):
            lines = [self.draw_text(block.text), *(self.draw_text(f"\u2022 {item}", "Cell") for item in block.items)]
            yield self._draw_table([[lines]], [_WIDTH], is_shaded=True)
        elif isinstance(block, blocks.Table):
            yield from self._draw_table_block(block)
        elif isinstance(block, blocks.Figures):
            rows = [(f.label, format_cell(f.value, f.number, f.digits).line, f.note) for f in block.figures]
            yield self._draw_table(
                [[self.draw_text(str(cell), "Cell") for cell in row] for row in rows], [150, 90, 242]
            )
        elif isinstance(block, blocks.Settings):
            for name, facts in block.groups:
                if name:
                    yield self.draw_text(name, "H2")
                cells = [[self.draw_text(str(cell), "Cell") for cell in fact] for fact in facts]
                yield self._draw_table(cells, [150, 332])
        elif block.inside:
            for part in block.inside:
                yield from self._draw_parts(part, level)
        else:
            yield self.draw_text("A chart stands here in the report as HTML.", "Small")

    def _draw_table_block(self, block: blocks.Table) -> Iterator[Any]:
        if block.title:
            yield self.draw_text(block.title, "H2")
        digits = list_column_decimals(block)
        rows = [[self.draw_text(column.name, "Head") for column in block.columns]]
        for row in block.rows:
            cells = zip(row.cells, block.columns, digits, strict=True)
            rows.append(
                [self.draw_text(format_cell(c, k.number, d).line if c != "" else "", "Cell") for c, k, d in cells]
            )
        is_counted = [column.number != "text" for column in block.columns]
        narrow = 70.0
        wide = (_WIDTH - narrow * sum(is_counted)) / max(1, len(is_counted) - sum(is_counted))
        yield self._draw_table(rows, [narrow if is_number else wide for is_number in is_counted])
        if block.note:
            yield self.draw_text(block.note, "Small")

    def _draw_table(self, rows: Sequence[Sequence[Any]], widths: Sequence[float], *, is_shaded: bool = False) -> Any:
        from reportlab.platypus import Table

        commands: list[tuple[Any, ...]] = [("VALIGN", (0, 0), (-1, -1), "TOP")]
        if is_shaded:
            commands.append(("BACKGROUND", (0, 0), (-1, -1), _SHADE))
        else:
            commands.append(("LINEBELOW", (0, 0), (-1, -1), 0.4, "#cccccc"))
            commands += [("TOPPADDING", (0, 0), (-1, -1), 2), ("BOTTOMPADDING", (0, 0), (-1, -1), 3)]
        table = Table([list(row) for row in rows], colWidths=list(widths), style=commands, spaceBefore=2, spaceAfter=6)
        table.hAlign = "LEFT"
        return table

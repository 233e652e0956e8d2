# ruff: noqa: E501 - content streams are clearer on one line
"""Pages of PDFs with names in every layout, seen and unseen, and what pages are made with."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pikepdf
import reportlab
from pikepdf import Array, Dictionary, Name, String
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, SimpleDocTemplate, Table

SECRETS = ("Ada Brook", "Cyd Dale", "Wilhelmina Farrow", "ada.brook@example.com", "212-555-0142", "536-22-1234")
"""What stands in the files and must be gone from the results."""

PROSE = (
    "Dr. Ada Brook met Cyd Dale at noon and they spoke for an hour about the offer. The first of them, who had brought "
    "flowers, later wrote to ada.brook@example.com and called 212-555-0142 to confirm it. Nobody else was there, except "
    "for Wilhelmina Farrow, whose file has the number 536-22-1234. The office stayed closed until the fifth floor had "
    "been refitted; on Friday Cyd Dale left first. "
)
VERA = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"


def canvas(made: Callable[[Canvas], None], size: tuple[float, float] = A4, **more: Any) -> bytes:
    """A file drawn on a canvas, its last page ended; the same bytes each time."""
    out = io.BytesIO()
    drawing = Canvas(out, pagesize=size, invariant=1, **more)
    made(drawing)
    drawing.save()
    return out.getvalue()


def lines(c: Canvas, texts: Sequence[str], x: float = 72, y: float = 760, step: float = 16) -> None:
    for text in texts:
        c.drawString(x, y, text)
        y -= step


def changed(data: bytes, change: Callable[[pikepdf.Pdf], None]) -> bytes:
    """A file after a change of its objects."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        change(pdf)
        pdf.save(out, static_id=True)
    return out.getvalue()


def bare(content: bytes, fonts: dict[str, Any] | None = None, **page: Any) -> bytes:
    """A file of one page with this content."""
    pdf = pikepdf.new()
    pdf.add_blank_page(page_size=(595, 842))
    helvetica = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica, Encoding=Name.WinAnsiEncoding)
    pdf.pages[0].obj.Resources = Dictionary(Font=Dictionary({"/F1": helvetica, **(fonts or {})}))
    pdf.pages[0].obj.Contents = pdf.make_stream(content)
    for key, value in page.items():
        pdf.pages[0].obj[f"/{key}"] = value
    out = io.BytesIO()
    pdf.save(out, static_id=True)
    return out.getvalue()


def flow(story: Sequence[Any]) -> bytes:
    out = io.BytesIO()
    SimpleDocTemplate(out, pagesize=A4, invariant=1).build(list(story))
    return out.getvalue()


def _vera() -> str:
    if "Vera" not in pdfmetrics.getRegisteredFontNames():
        pdfmetrics.registerFont(TTFont("Vera", str(VERA)))
    return "Vera"


# Text and its layout


def letter_page() -> bytes:
    def made(c: Canvas) -> None:
        c.setTitle("Letter to Ada Brook")
        c.setAuthor("Cyd Dale")
        c.setFont("Times-Roman", 12)
        lines(
            c,
            [
                "Dear Ada Brook,",
                "",
                "thank you for your call from 212-555-0142 last week. We spoke about Cyd Dale, whose",
            ],
        )
        lines(c, ["number is 536-22-1234. Write to ada.brook@example.com.", "", "Yours, Wilhelmina Farrow"], y=712)

    return canvas(made)


def table() -> bytes:
    rows = [
        ["Name", "Phone", "SSN", "Mail"],
        ["Ada Brook", "212-555-0142", "536-22-1234", "ada.brook@example.com"],
        ["Cyd Dale", "-", "-", "-"],
        ["Wilhelmina Farrow", "closed", "may", "none"],
    ]
    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("BACKGROUND", (0, 0), (-1, 0), colors.lightgrey)]
    return flow([Table(rows, style=grid)])


def two_columns() -> bytes:
    out = io.BytesIO()
    document = BaseDocTemplate(out, pagesize=A4, invariant=1)
    frames = [Frame(54, 60, 230, 700), Frame(312, 60, 230, 700)]

    def heading(c: Canvas, _: Any) -> None:
        c.setFont("Helvetica-Bold", 16)
        c.drawCentredString(297, 790, "The case of Ada Brook and Cyd Dale")

    document.addPageTemplates(PageTemplate(frames=frames, onPage=heading))
    style = ParagraphStyle("j", fontName="Times-Roman", fontSize=10, leading=12, alignment=TA_JUSTIFY)
    document.build([Paragraph(PROSE * 10, style)])
    return out.getvalue()


def ligatures() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont(_vera(), 12)
        lines(
            c,
            ["The \ufb01rst of\ufb01ce of Ada Brook had \ufb02owers.", "Stof\ufb01el Wilhelmina Farrow \ufb01led it."],
        )

    return canvas(made)


def rotated() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont("Helvetica", 14)
        c.drawString(72, 760, "Upright: Cyd Dale was here.")
        for angle, x, y in ((90, 100, 200), (30, 250, 300), (180, 500, 150), (270, 520, 700)):
            c.saveState()
            c.translate(x, y)
            c.rotate(angle)
            c.drawString(0, 0, "Turned: Ada Brook, 212-555-0142, was here.")
            c.restoreState()

    return canvas(made)


def turned_page() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        pdf.pages[0].obj.Rotate = 90

    return changed(letter_page(), change)


def hyphenation() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont("Times-Roman", 12)
        lines(
            c,
            [
                "At the end of the long line that fills this page stands the name of Wilhel-",
                "mina Farrow, and the next line that fills the page ends with that of Ada",
                "Brook, who wrote it. The address is ada.brook@example.com, and a well-",
                "known phrase is parted, too.",
            ],
        )

    return canvas(made)


def kerning() -> bytes:
    return bare(
        b"BT /F1 12 Tf 72 700 Td [(D) 20 (r. A) -15 (d) 30 (a) -278 (Br) 12 (o) -8 (o) (k) -300 (met C) 40 (yd) "
        b"-250 (Da) 10 (le)] TJ 0 -20 Td (5) Tj (3) Tj (6-2) Tj (2-1) Tj (234) Tj ET"
    )


def letter_by_letter() -> bytes:
    pieces = []
    for y, text in ((700, "Ada Brook met Cyd Dale."), (680, "Number 536-22-1234.")):
        placed = [(72 + 8 * i, c) for i, c in enumerate(text)]
        for x, c in sorted(placed, key=lambda p: (p[0] * 7919) % 101):
            if c != " ":
                pieces.append(f"BT /F1 12 Tf 1 0 0 1 {x} {y} Tm <{ord(c):02x}> Tj ET")
    return bare("\n".join(pieces).encode("ascii"))


def spaced_out() -> bytes:
    return bare(b"BT /F1 12 Tf 6 Tc 72 700 Td (Ada Brook) Tj 0 -24 Td 3 Tc 10 Tw 150 Tz (met Cyd Dale twice) Tj ET")


def operators() -> bytes:
    return bare(
        b"BT /F1 12 Tf 14 TL 72 700 Td (Ada) Tj (Brook was here.) ' 2 1 (Cyd Dale, too.) \" T* <41646120> Tj (Brook) Tj ET"
    )


def wide_font() -> bytes:
    def made(c: Canvas) -> None:
        pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
        c.setFont(_vera(), 12)
        c.drawString(72, 700, "Gr\u00fc\u00dfe von Ada Brook, \u20ac 5, \u0416.")
        c.setFont("HeiseiMin-W3", 14)
        c.drawString(72, 670, "\u6771\u4eac Cyd Dale \u5927\u962a")

    return canvas(made)


def scaled() -> bytes:
    return bare(
        b"q 0.1 0 0 0.1 0 0 cm BT /F1 1 Tf 120 0 0 120 720 7000 Tm (Ada Brook met Cyd Dale) Tj ET Q\nq 1 0 0.3 1 0 0 cm BT /F1 14 Tf 72 650 Td (slanted Ada Brook) Tj ET"
    )


def coloured() -> bytes:
    def made(c: Canvas) -> None:
        c.setFillColorRGB(0.1, 0.2, 0.5)
        c.rect(60, 680, 400, 80, fill=1)
        c.setFillColorRGB(1, 1, 1)
        c.setFont("Helvetica-Bold", 18)
        c.drawString(72, 710, "Ada Brook, Chief of Cyd Dale")
        c.setFillColorCMYK(0, 1, 1, 0)
        c.setFont("Courier", 12)
        c.drawString(72, 650, "SSN 536-22-1234")

    return canvas(made)


# Text that is not seen


def invisible() -> bytes:
    return bare(
        b"BT /F1 12 Tf 72 700 Td (Shown text.) Tj 3 Tr 0 -20 Td (Ada Brook is hidden) Tj 7 Tr 0 -20 Td (Cyd Dale) Tj ET"
    )


def tiny_and_white() -> bytes:
    return bare(
        b"BT /F1 12 Tf 72 700 Td (Shown text of the page.) Tj 1 g 0 -2 Td (Ada Brook) Tj /F1 0.5 Tf 0 -10 Td (Cyd Dale) Tj ET "
        b"q 0 0 10 10 re W n BT /F1 12 Tf 0 g 300 300 Td (536-22-1234) Tj ET Q BT /F1 12 Tf -500 -500 Td (Wilhelmina Farrow) Tj ET"
    )


def covered_by_boxes() -> bytes:
    return bare(b"BT /F1 12 Tf 72 700 Td (Name: Ada Brook) Tj ET 0 g 105 695 80 16 re f")


def drawn_twice() -> bytes:
    one = b"BT /F1 14 Tf %s 700 Td (Ada Brook met Cyd Dale) Tj ET "
    return bare(one % b"72" + one % b"72.4" + one % b"72.8")


def hidden_layers() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        layers = [pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String(n))) for n in ("Shown", "Notes of Ada Brook")]
        pdf.Root.OCProperties = Dictionary(
            OCGs=Array(layers), D=Dictionary(OFF=Array([layers[1]]), Order=Array(layers), Name=String("for Cyd Dale"))
        )
        page = pdf.pages[0].obj
        page.Resources.Properties = Dictionary(L0=layers[0], L1=layers[1])
        page.Contents = pdf.make_stream(
            b"/OC /L0 BDC BT /F1 12 Tf 72 700 Td (Shown: Cyd Dale) Tj ET EMC\n"
            b"/OC /L1 BDC BT /F1 12 Tf 72 699 Td (Hidden: Ada Brook) Tj ET EMC"
        )

    return changed(bare(b""), change)


def actual_text() -> bytes:
    return bare(
        b"BT /F1 12 Tf 72 700 Td /Span <</ActualText (Ada Brook)>> BDC (A. B.) Tj EMC ( met ) Tj "
        b"/Span <</Alt (Cyd Dale) /E (536-22-1234)>> BDC (C. D.) Tj EMC /P /Ada#20Brook BDC (.) Tj EMC ET "
        b"% a comment about Ada Brook\n/Ada#20Brook <</N (Cyd Dale)>> DP"
    )

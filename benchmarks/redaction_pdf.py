# ruff: noqa: E501 - content streams are clearer on one line
"""PDFs of our own making, each with another way to hide a name: made, redacted, read back, drawn before and after.

    python benchmarks/redaction_pdf.py [--pictures FOLDER] [--only NAME]

Prints a row for each and, last, a line of JSON. With ``--pictures`` the pages are drawn side by side as PNG files.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pikepdf
import reportlab
from pikepdf import Array, Dictionary, Name, String
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4, letter
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, SimpleDocTemplate, Spacer, Table

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


# What lies beside the page


def form() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont("Helvetica", 12)
        lines(c, ["Application", "Name:", "Consent:"], step=40)
        field = {"borderStyle": "inset", "forceBorder": True}
        c.acroForm.textfield(
            name="name of Ada Brook",
            tooltip="Ada Brook",
            value="Ada Brook",
            x=150,
            y=712,
            width=200,
            height=22,
            **field,
        )
        c.acroForm.checkbox(name="consent", tooltip="Cyd Dale agrees", checked=True, x=150, y=676, size=18)
        c.acroForm.choice(
            name="who", tooltip="who", value="Cyd Dale", options=["Cyd Dale", "Wilhelmina Farrow"], x=150, y=630,
            width=160, height=22,
        )  # fmt: skip

    return canvas(made)


def form_without_looks() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        for note in pdf.pages[0].obj.Annots:
            if "/AP" in note:
                del note["/AP"]
        pdf.Root.AcroForm.XFA = Array([String("datasets"), pdf.make_stream(b"<xfa><name>Ada Brook</name></xfa>")])

    return changed(form(), change)


def notes() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        look = pdf.make_stream(b"0.9 1 0.6 rg 0 0 160 40 re f BT 0 g /F1 11 Tf 4 15 Td (Note by Ada Brook) Tj ET")
        look.Type, look.Subtype, look.BBox = Name.XObject, Name.Form, Array([0, 0, 160, 40])
        look.Resources = Dictionary(Font=pdf.pages[0].obj.Resources.Font)
        sticky = Dictionary(
            Type=Name.Annot, Subtype=Name.Text, Rect=[300, 700, 320, 720], Contents=String("Ask Ada Brook")
        )
        pdf.pages[0].obj.Annots = Array(
            [
                pdf.make_indirect(sticky),
                pdf.make_indirect(
                    Dictionary(
                        Type=Name.Annot, Subtype=Name.FreeText, Rect=[72, 600, 232, 640], Contents=String("Note by Ada Brook"),
                        T=String("Cyd Dale"), AP=Dictionary(N=look), DA=String("/F1 11 Tf"), F=4,
                    )
                ),
                pdf.make_indirect(
                    Dictionary(Type=Name.Annot, Subtype=Name.Popup, Rect=[0, 0, 9, 9], Contents=String("Cyd Dale"))
                ),
                pdf.make_indirect(
                    Dictionary(
                        Type=Name.Annot, Subtype=Name.Highlight, Rect=[72, 690, 200, 712], Contents=String("Ada Brook!"),
                        QuadPoints=[72, 712, 200, 712, 72, 690, 200, 690], C=[1, 1, 0],
                    )
                ),
            ]
        )  # fmt: skip

    return changed(bare(b"BT /F1 12 Tf 72 700 Td (A page about Cyd Dale.) Tj ET"), change)


def links() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont("Helvetica", 12)
        c.drawString(72, 700, "Write to us, or go to page two.")
        c.linkURL("mailto:ada.brook@example.com?subject=Ada%20Brook", (72, 695, 150, 715))
        c.linkURL("https://example.org/people/Wilhelmina%20Farrow", (160, 695, 200, 715))
        c.linkAbsolute("", "Ada Brook", (200, 695, 300, 715))
        c.showPage()
        c.bookmarkPage("Ada Brook")
        c.drawString(72, 700, "Page two.")

    return canvas(made)


def bookmarks() -> bytes:
    def made(c: Canvas) -> None:
        c.drawString(72, 700, "The first chapter.")
        c.bookmarkPage("one")
        c.addOutlineEntry("Chapter of Ada Brook", "one", 0)
        c.bookmarkPage("more")
        c.addOutlineEntry("About Cyd Dale, 536-22-1234", "more", 1)
        c.showPage()
        c.drawString(72, 700, "The second chapter.")
        c.bookmarkPage("two")
        c.addOutlineEntry("Nobody", "two", 0)
        c.showPage()

    def change(pdf: pikepdf.Pdf) -> None:
        pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(S=Name.D, P=String("Ada Brook "))]))

    return changed(canvas(made), change)


def metadata() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        with pdf.open_metadata() as xmp:
            xmp["dc:title"] = "About Ada Brook"
            xmp["dc:creator"] = ["Cyd Dale"]
        pdf.docinfo["/Keywords"] = "Ada Brook, 536-22-1234"
        pdf.docinfo["/Company"] = "Wilhelmina Farrow"
        page = pdf.pages[0].obj
        page.PieceInfo = Dictionary(App=Dictionary(Private=Dictionary(Who=String("Ada Brook"))))
        page.Thumb = pdf.make_stream(b"Ada Brook", Width=3, Height=3, ColorSpace=Name.DeviceGray, BitsPerComponent=8)
        page.Metadata = pdf.make_stream(b"<x>Cyd Dale</x>", Type=Name.Metadata, Subtype=Name.XML)
        pdf.Root.Lang = String("Ada Brook")
        pdf.Root.AA = Dictionary(WC=Dictionary(S=Name.JavaScript, JS=String("app.alert('Ada Brook')")))
        pdf.trailer.ID = Array([String("Ada Brook"), String("Cyd Dale")])

    return changed(letter_page(), change)


def attachments() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        pdf.attachments["Ada Brook.txt"] = b"The file of Ada Brook, 536-22-1234"
        pdf.Root.Names.JavaScript = Dictionary(
            Names=Array([String("Ada Brook"), Dictionary(S=Name.JavaScript, JS=String("1"))])
        )

    return changed(letter_page(), change)


def revisions() -> bytes:
    """An earlier revision with other names, then an incremental update that draws the page anew."""
    first = canvas(lambda c: lines(c, ["Draft: Wilhelmina Farrow, 536-22-1234"]), pageCompression=0)
    with pikepdf.open(io.BytesIO(first)) as pdf:
        number, size = pdf.pages[0].obj.Contents.objgen[0], int(pdf.trailer.Size)
        root = pdf.Root.objgen[0]
        font = next(iter(pdf.pages[0].obj.Resources.Font.keys())).encode()
    content = b"BT " + font + b" 12 Tf 72 700 Td (Final: Cyd Dale agrees.) Tj ET"
    at = len(first) + 1
    new = b"\n%d 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n" % (number, len(content), content)
    before = int(first.rsplit(b"startxref", 1)[1].split()[0])
    xref = at + len(new) - 1
    new += b"xref\n%d 1\n%010d 00000 n \ntrailer\n<</Size %d /Root %d 0 R /Prev %d>>\nstartxref\n%d\n%%%%EOF\n" % (
        number, at, size, root, before, xref,
    )  # fmt: skip
    return first + new


def nested_forms() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        def make(content: bytes, **things: Any) -> Any:
            stream = pdf.make_stream(content)
            stream.Type, stream.Subtype, stream.BBox = Name.XObject, Name.Form, Array([0, 0, 595, 842])
            stream.Resources = Dictionary(Font=pdf.pages[0].obj.Resources.Font, XObject=Dictionary(**things))
            return stream

        inner = make(b"BT /F1 10 Tf 10 10 Td (Ada Brook, page head) Tj ET")
        outer = make(b"q 1 0 0 1 50 780 cm /In Do Q BT /F1 10 Tf 300 790 Td (by Cyd Dale) Tj ET", In=inner)
        unused = make(b"BT /F1 10 Tf 10 10 Td (Wilhelmina Farrow) Tj ET")
        tile = pdf.make_stream(b"BT /F1 8 Tf 2 2 Td (Ada Brook) Tj ET")
        tile.Type, tile.PatternType, tile.PaintType, tile.TilingType = Name.Pattern, 1, 1, 1
        tile.BBox, tile.XStep, tile.YStep = Array([0, 0, 60, 14]), 60, 14
        tile.Resources = Dictionary(Font=pdf.pages[0].obj.Resources.Font)
        pdf.add_blank_page(page_size=(595, 842))
        for page in pdf.pages:
            page.obj.Resources = Dictionary(
                Font=pdf.pages[0].obj.Resources.Font,
                XObject=Dictionary(Head=outer, Old=unused),
                Pattern=Dictionary(P1=tile),
            )
            page.obj.Contents = pdf.make_stream(
                b"/Head Do BT /F1 12 Tf 72 700 Td (The body of the page.) Tj ET /Pattern cs /P1 scn 72 500 200 100 re f"
            )

    return changed(bare(b""), change)


def type3() -> bytes:
    def change(pdf: pikepdf.Pdf) -> None:
        shapes = {}
        text = "Ada Brok"
        names = {c: f"c{i}" for i, c in enumerate(dict.fromkeys(text))}
        for i, name in enumerate(names.values()):
            shapes[f"/{name}"] = pdf.make_stream(b"600 0 0 0 500 700 d1 %d 0 %d 700 re f" % (20 * i, 300 + 10 * i))
        rows = "\n".join(f"<{i + 65:02x}> <{ord(c):04x}>" for i, c in enumerate(names))
        told = f"begincmap 1 begincodespacerange <00> <ff> endcodespacerange {len(names)} beginbfchar\n{rows}\nendbfchar endcmap"
        font = Dictionary(
            Type=Name.Font, Subtype=Name.Type3, FontBBox=[0, 0, 600, 700], FontMatrix=[Decimal("0.001"), 0, 0, Decimal("0.001"), 0, 0],
            CharProcs=Dictionary(shapes), FirstChar=65, LastChar=65 + len(names) - 1, Widths=[600] * len(names),
            Encoding=Dictionary(Type=Name.Encoding, Differences=Array([65, *(Name(f"/{n}") for n in names.values())])),
            ToUnicode=pdf.make_stream(told.encode("ascii")),
        )  # fmt: skip
        pdf.pages[0].obj.Resources.Font.T3 = pdf.make_indirect(font)
        code = {c: chr(65 + i) for i, c in enumerate(names)}
        shown = "".join(code[c] for c in "Ada Brook")
        pdf.pages[0].obj.Contents = pdf.make_stream(
            b"BT /F1 12 Tf 72 700 Td (Signed: ) Tj /T3 12 Tf (%s) Tj ET" % shown.encode("ascii")
        )

    return changed(bare(b""), change)


def packed() -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(form())) as pdf:
        pdf.save(
            out,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
            compress_streams=True,
            linearize=True,
            static_id=True,
        )
    return out.getvalue()


def no_password() -> bytes:
    """Encrypted, but anybody may open it."""
    return canvas(
        lambda c: lines(c, ["Ada Brook may not be copied.", "Cyd Dale said so."]),
        encrypt=StandardEncryption("", ownerPassword="owner", canCopy=0),
    )


def illustrated() -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (300, 120), (200, 220, 255))
    ImageDraw.Draw(picture).text((10, 50), "Badge of Ada Brook", fill=(0, 0, 0))

    def made(c: Canvas) -> None:
        lines(c, ["A page with a picture of a badge.", "It belongs to Ada Brook."])
        c.drawImage(ImageReader(picture), 72, 560, 200, 80)
        lines(c, ["Text goes on below, for Cyd Dale."], y=540)

    return canvas(made)


def _scan() -> Any:
    """A page as a scanner sees it, with the boxes of its words in pixels."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (1240, 1754), (250, 248, 244))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(str(VERA), 34)
    words = []
    for row, text in enumerate(["Dear Ada Brook,", "please call 212-555-0142 before noon.", "Cyd Dale"]):
        x, y = 150.0, 200 + 60 * row
        for word in text.split():
            wide = draw.textlength(word, font=font)
            draw.text((x, y), word, font=font, fill=(20, 20, 30))
            words.append((word, x, y, x + wide, y + 40, row))
            x += wide + 12
    return picture, words


def scan() -> bytes:
    picture, _ = _scan()
    return canvas(lambda c: c.drawImage(ImageReader(picture), 0, 0, *A4), A4)


def searchable_scan() -> bytes:
    """As an OCR leaves it: the picture, and its text unseen."""
    picture, words = _scan()

    def made(c: Canvas) -> None:
        c.drawImage(ImageReader(picture), 0, 0, *A4)
        scale = A4[0] / 1240
        for word, x0, _, x1, y1, _ in words:
            text = c.beginText(x0 * scale, A4[1] - (y1 - 8) * scale)
            text.setTextRenderMode(3)
            text.setFont("Helvetica", 34 * scale)
            text.setHorizScale(100 * (x1 - x0) * scale / c.stringWidth(word, "Helvetica", 34 * scale))
            text.textOut(word)
            c.drawText(text)

    return canvas(made, A4)


def browser() -> bytes | None:
    """A web page as Chromium prints it; None where there is none."""
    command = shutil.which("chromium") or shutil.which("google-chrome")
    if command is None:
        return None
    page = (
        "<html lang='en'><head><title>Ada Brook</title></head><body style='font-family: sans-serif'><h1>About Ada Brook</h1>"
        f"<div style='columns: 2'><p style='text-align: justify; hyphens: auto'>{PROSE * 3}</p></div>"
        "<table border=1><tr><th>Name<th>Phone</tr><tr><td>Cyd Dale<td>212-555-0142</tr></table>"
        "<p style='color: white; background: navy; padding: 1em'>Wilhelmina <b>Farrow</b>, <i>536-22-1234</i></p>"
        "<a href='mailto:ada.brook@example.com'>Mail</a></body></html>"
    )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        call = [command, "--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={target}", source.as_uri()]
        subprocess.run(call, capture_output=True, check=False, timeout=120)
        return target.read_bytes() if target.exists() else None


def office() -> bytes | None:
    """A Word document as LibreOffice exports it, with bookmarks and tags; None where there is none."""
    command = shutil.which("soffice")
    if command is None:
        return None
    import docx

    document = docx.Document()
    document.core_properties.author, document.core_properties.title = "Cyd Dale", "Ada Brook"
    document.add_heading("The file of Ada Brook", 1)
    document.add_paragraph(PROSE)
    sheet = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        (c for row in sheet.rows for c in row.cells), ("Name", "Mail", "Cyd Dale", "ada.brook@example.com"), strict=True
    ):
        cell.text = text
    document.add_paragraph("Wilhelmina Farrow", style="List Bullet")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "file.docx"
        document.save(str(source))
        call = [
            command,
            f"-env:UserInstallation=file://{folder}/profile",
            "--headless",
            "--convert-to",
            "pdf",
            "--outdir",
            folder,
            str(source),
        ]
        subprocess.run(call, capture_output=True, check=False, timeout=180)
        target = source.with_suffix(".pdf")
        return target.read_bytes() if target.exists() else None


def long_report() -> bytes:
    style = getSampleStyleSheet()["BodyText"]
    story: list[Any] = []
    for chapter in range(1, 9):
        story += [Paragraph(f"Chapter {chapter}: Ada Brook", getSampleStyleSheet()["Heading1"])]
        story += [Paragraph(PROSE, style), Spacer(1, 12)] * 6
    return flow(story)


def us_letter_small() -> bytes:
    def made(c: Canvas) -> None:
        c.setFont("Helvetica", 5)
        lines(c, ["Small print: Ada Brook, Cyd Dale, 212-555-0142", "and 536-22-1234 in five points"], step=7)
        c.setFont("Helvetica", 40)
        lines(c, ["Ada Brook"], y=600)

    return canvas(made, letter)


DOCUMENTS: dict[str, Callable[[], bytes | None]] = {
    f.__name__: f
    for f in (
        letter_page, table, two_columns, ligatures, rotated, turned_page, hyphenation, kerning, letter_by_letter,
        spaced_out, operators, wide_font, scaled, coloured, invisible, tiny_and_white, covered_by_boxes, drawn_twice,
        hidden_layers, actual_text, form, form_without_looks, notes, links, bookmarks, metadata, attachments, revisions,
        nested_forms, type3, packed, no_password, illustrated, searchable_scan, browser, office, long_report,
        us_letter_small,
    )
}  # fmt: skip
"""Name to what makes the file; None where a program is missing. ``scan`` is refused, so it is not among them."""


def leaks(data: bytes) -> list[str]:
    """Which secrets, or words of them, any reader of the result still finds."""
    from allonym.files.verify import find_leftovers

    wanted = [*SECRETS, "Brook", "Wilhelmina", "Farrow"]
    return [wanted[one.index] for one in find_leftovers(data, "pdf", wanted, "")]


def draw(before: bytes, after: bytes, target: Path) -> None:
    """The first page of both, side by side."""
    import pypdfium2
    from PIL import Image

    pages = []
    for data in (before, after):
        file = pypdfium2.PdfDocument(data)
        pages.append(file[0].render(scale=1.0, may_draw_forms=True).to_pil().convert("RGB"))
    wide = Image.new("RGB", (sum(p.width for p in pages) + 10, max(p.height for p in pages)), (120, 120, 120))
    wide.paste(pages[0], (0, 0))
    wide.paste(pages[1], (pages[0].width + 10, 0))
    wide.save(target)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=Path, help="folder for the pages before and after")
    parser.add_argument("--only", action="append", help="names of files; by default all")
    options = parser.parse_args(argv)
    from allonym.files import anonymize_path
    from allonym.policy import Policy

    print(f"{'file':22} {'pages':>5} {'edits':>5} {'leaks':>5} {'s':>6}")
    total = {"files": 0, "missing": 0, "refused": 0, "leaks": 0}
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.toml"
        names = ", ".join(f'"{s}"' for s in SECRETS[:3])
        policy.write_text(f'extends = "default"\n[dictionary]\nPERSON = [{names}]\n', encoding="utf-8")
        loaded = Policy.load(policy)
        for name in options.only or DOCUMENTS:
            data = DOCUMENTS[name]()
            if data is None:
                total["missing"] += 1
                print(f"{name:22} the program that makes it is missing")
                continue
            source, target = Path(folder) / f"{name}.pdf", Path(folder) / f"{name}-safe.pdf"
            source.write_bytes(data)
            began = time.perf_counter()
            total["files"] += 1
            try:
                report = anonymize_path(source, target, loaded)
            except ValueError as error:
                total["refused"] += 1
                print(f"{name:22} refused: {error}")
                continue
            seconds = time.perf_counter() - began
            made = target.read_bytes()
            found = leaks(made)
            total["leaks"] += len(found)
            with pikepdf.open(io.BytesIO(made)) as pdf:
                count = len(pdf.pages)
            edits = sum(report.operators.values())
            print(f"{name:22} {count:5} {edits:5} {len(found):5} {seconds:6.2f} {' | '.join(found)}")
            if options.pictures:
                draw(data, made, options.pictures / f"{name}.png")
    print(json.dumps(total))
    return 1 if total["leaks"] or total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())

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
from pikepdf import Array, Dictionary, Name, String
from reportlab.lib.pagesizes import A4, letter
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Spacer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pdf_pages import (
    PROSE,
    SECRETS,
    VERA,
    actual_text,
    bare,
    canvas,
    changed,
    coloured,
    covered_by_boxes,
    drawn_twice,
    flow,
    hidden_layers,
    hyphenation,
    invisible,
    kerning,
    letter_by_letter,
    letter_page,
    ligatures,
    lines,
    operators,
    rotated,
    scaled,
    spaced_out,
    table,
    tiny_and_white,
    turned_page,
    two_columns,
    wide_font,
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
    from allonym.files.verify import find_leftovers_in_file

    wanted = [*SECRETS, "Brook", "Wilhelmina", "Farrow"]
    return [wanted[one.index] for one in find_leftovers_in_file(data, "pdf", wanted, "")]


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

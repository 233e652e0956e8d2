"""Pages that are pictures: their text is read by OCR and painted over in the pixels.

A page with an invisible text of an earlier OCR (such as ``ocrmypdf``) is read by that text. A page without one needs a
reader from the table :data:`allonym.registry.ocr`, or is refused.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pikepdf
import pypdfium2

from allonym.errors import DataError, UsageError
from allonym.files.pdf.content import Content, Glyph
from allonym.files.pdf.layout import TextUnit

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 200
"""Resolution of a page as a picture, for OCR and for writing, in dots per inch."""

LARGE = 0.5
"""Least share of a page covered by pictures at which it may be a scan."""

FEW = 24
"""Greatest number of letters of text on a scan beside its picture, such as a page number or a stamp."""

DRAWN = 150
"""Least number of lines and areas on a page without letters at which its letters may be drawn."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word read by OCR: its text, its box in pixels from the top left corner, and the number of its line."""

    text: str = field(repr=False)
    left: float
    top: float
    right: float
    bottom: float
    line: int = 0


OcrReader = Callable[["Image"], Iterable[Word]]

"""Returns the words of a page in reading order. By name in :data:`allonym.registry.ocr`, the hook for other engines."""


def run_tesseract(image: Image) -> Iterator[Word]:
    """Return the words that the command ``tesseract`` reads in its default languages.

    Raises:
        UsageError: the command is not installed.
        DataError: it failed.
    """
    command = shutil.which("tesseract")
    if command is None:
        raise UsageError("the OCR tesseract needs the command tesseract, which is not installed")
    data = io.BytesIO()
    image.save(data, "PNG", dpi=(DPI, DPI))
    process = subprocess.run([command, "-", "-", "tsv"], input=data.getvalue(), capture_output=True, check=False)
    if process.returncode:
        raise DataError(f"tesseract failed with code {process.returncode}")
    lines: dict[tuple[str, ...], int] = {}
    table = io.StringIO(process.stdout.decode("utf-8", "replace"))
    for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        if row.get("level") == "5" and text:
            line = lines.setdefault((row["block_num"], row["par_num"], row["line_num"]), len(lines))
            left, top = float(row["left"]), float(row["top"])
            yield Word(text, left, top, left + float(row["width"]), top + float(row["height"]), line)


def get_visible_page_box(page: Any) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of the visible part of a page, in its units."""
    box = [float(v) for v in page.cropbox]
    return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])


def compute_shown_page_geometry(page: Any) -> tuple[pikepdf.Matrix, float, float]:
    """Return the matrix from the shown page (from its bottom left corner) to its units, and its width and height."""
    x0, y0, x1, y1 = get_visible_page_box(page)
    turn = int(page.obj.get("/Rotate", page.get("/Rotate", 0)) or 0) % 360
    if turn == 90:
        return pikepdf.Matrix(0, 1, -1, 0, x1, y0), y1 - y0, x1 - x0
    if turn == 180:
        return pikepdf.Matrix(-1, 0, 0, -1, x1, y1), x1 - x0, y1 - y0
    if turn == 270:
        return pikepdf.Matrix(0, -1, 1, 0, x0, y1), y1 - y0, x1 - x0
    return pikepdf.Matrix(1, 0, 0, 1, x0, y0), x1 - x0, y1 - y0


def measure_picture_coverage(pdf: Any, content: Content) -> dict[int, float]:
    """Return the share of each page that pictures cover, counting overlaps twice."""
    out: dict[int, float] = defaultdict(float)
    for picture in content.pictures:
        left, bottom, right, top = get_visible_page_box(pdf.pages[picture.page])
        a, b, c, d = picture.box()
        area = max(0.0, min(c, right) - max(a, left)) * max(0.0, min(d, top) - max(b, bottom))
        out[picture.page] += area / max(1e-6, (right - left) * (top - bottom))
    return out


def find_scanned_pages(pdf: Any, content: Content) -> dict[int, bool]:
    """Return the pages that are pictures, each with whether it has an invisible text."""
    letters = [g for g in content.glyphs if g.text is None or g.text.isalnum()]
    shown = Counter(g.page for g in letters if not g.plane)
    unseen = Counter(g.page for g in letters if g.plane)
    shares = measure_picture_coverage(pdf, content)
    out: dict[int, bool] = {}
    for page in range(len(pdf.pages)):
        pictured = shares[page] >= LARGE and shown[page] <= max(FEW, unseen[page] // 4)
        drawn = content.shapes[page] >= DRAWN and not shown[page] and not unseen[page]
        if pictured or drawn:
            out[page] = unseen[page] > 0 and not drawn
    return out


def render_pages(pdf: Any, numbers: Iterable[int]) -> Iterator[tuple[int, Image]]:
    """Yield pages by number as pictures at ``DPI``, as shown."""
    data = io.BytesIO()
    pdf.save(data)
    with closing(cast(Any, pypdfium2.PdfDocument(data.getvalue()))) as file:
        for number in numbers:
            page = file[number]
            width, height = page.get_size()
            # A very large page does not need more dots than a sheet of paper.
            scale = min(DPI / 72, 8000 / max(width, height, 1.0))
            yield number, page.render(scale=scale).to_pil().convert("RGB")


def read_words_by_ocr(image: Image, ocr: OcrReader, page: Any, page_number: int, first_line: int) -> list[TextUnit]:
    """Return the words that OCR reads on a page, as units with their positions."""
    matrix, width, height = compute_shown_page_geometry(page)
    sx, sy = width / image.width, height / image.height
    rotation = pikepdf.Matrix(*matrix.shorthand[:4], 0, 0)
    out: list[TextUnit] = []
    before: Word | None = None
    for word in ocr(image):
        if not word.text:
            continue
        corner = (word.left * sx, height - (word.bottom - 0.2 * (word.bottom - word.top)) * sy)
        high = (word.bottom - word.top) * sy
        x, y = matrix.transform(corner)
        dx, dy = rotation.transform(((word.right - word.left) * sx, 0))
        ux, uy = rotation.transform((0, high))
        glyph = Glyph(
            word.text, None, 0, 0, 0, 0, 0.0, x, y, dx, dy, ux, uy, page_number, "", "Helvetica", (0.0,), -1
        )  # fmt: skip
        gap = "\n\n" if before is None else " " if before.line == word.line else "\n"
        out.append(TextUnit(word.text, [glyph], gap, first_line + word.line, True))
        before = word
    return out


def paint_over_glyphs(image: Image, glyphs: Sequence[Glyph], page: Any) -> Image:
    """Return the picture of a page with white boxes over the characters."""
    from PIL import ImageDraw

    matrix, width, height = compute_shown_page_geometry(page)
    back = matrix.inverse()
    sx, sy = image.width / width, image.height / height
    draw = ImageDraw.Draw(image)
    for g in glyphs:
        xs, ys = [], []
        for along, up in ((0.0, -0.3), (1.0, -0.3), (0.0, 1.0), (1.0, 1.0)):
            x, y = back.transform((g.x + along * g.dx + up * g.ux, g.y + along * g.dy + up * g.uy))
            xs.append(x * sx)
            ys.append((height - y) * sy)
        draw.rectangle((min(xs) - 2, min(ys) - 2, max(xs) + 2, max(ys) + 2), fill=(255, 255, 255))
    return image


def make_picture_stream(pdf: Any, image: Image, page: Any) -> tuple[Any, pikepdf.Matrix]:
    """Return the picture as an image of the file, and the matrix that puts it over the page."""
    data = io.BytesIO()
    image.save(data, "JPEG", quality=80)
    stream = pikepdf.Stream(pdf, data.getvalue())
    stream.Type, stream.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
    stream.Width, stream.Height, stream.BitsPerComponent = image.width, image.height, 8
    stream.ColorSpace, stream.Filter = pikepdf.Name.DeviceRGB, pikepdf.Name.DCTDecode
    matrix, width, height = compute_shown_page_geometry(page)
    return stream, pikepdf.Matrix(width, 0, 0, height, 0, 0) @ matrix

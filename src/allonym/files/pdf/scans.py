"""Pages that are pictures: their text is read by OCR and painted over in the pixels.

A page with an invisible text of an earlier OCR (such as ``ocrmypdf``) is read by that text. A page without one, with
one that does not lie over its words, or with a font that does not tell its letters, needs a reader from the table
:data:`allonym.registry.ocr`, or is refused.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pikepdf
import pypdfium2

from allonym.files.ocr import DPI, OcrReader, Word
from allonym.files.pdf.content import Content, Glyph
from allonym.files.pdf.fonts import measure_text_width
from allonym.files.pictures import GREY

if TYPE_CHECKING:
    from PIL.Image import Image

LARGE = 0.5
"""Least share of a page covered by pictures at which it may be a scan."""

FEW = 24
"""Greatest number of letters of text on a scan beside its picture, such as a page number or a stamp.

A picture in which OCR reads no more is no scan of a text.
"""

OCR_PLANE = "recognised"
"""The plane of characters that OCR read, see :class:`~allonym.files.pdf.content.Glyph`."""

LETTER = 0.8
"""Greatest width by which a box is extended to cover a letter that it would cut, in heights of the box."""

INK = 80
"""Least difference of ink from the lightest shade around it, of 255."""

MIN_GAPS, GAPS_IN_PLACE = 5, 0.85
"""Least number of gaps between words by which a text is judged, and least share of them that are blank in its picture.

Texts of five OCR programs in 21 scans had at least .99, or at most .60 where lines were laid in a font of one width.
"""

PAGE_PICTURE = "/AllonymPage"
"""The name of a page's picture in its resources."""

DRAWN = 150
"""Least number of lines and areas on a page without letters at which its letters may be drawn."""


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
    shown, unseen = content.shown, content.unseen
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


def is_text_misplaced(image: Image, glyphs: Sequence[Glyph], page: Any) -> bool:
    """Tell whether the invisible text of a scan does not lie over its words, so that boxes would miss them.

    A text with few gaps between words is said to be misplaced, since it cannot be judged.
    """
    import numpy as np

    grey = np.asarray(image.convert("L"))
    gaps = blank_gaps = 0
    shown = [g for g in glyphs if g.text and not g.text.isspace()]
    for before, after in pairwise(shown):
        em = before.size
        start = before.x + before.dx
        if not 0.2 * em < after.x - start < 3 * em or abs(after.y - before.y) > 0.3 * em or abs(before.dy) > 0.1 * em:
            continue
        corners = [(start - 0.1 * em, after.y), (after.x + 0.1 * em, after.y + 0.65 * em)]
        left, top, right, bottom = (max(0, round(v)) for v in _convert_to_pixels(image, corners, page))
        band = grey[top:bottom, left:right]
        if band.size:
            around = grey[max(0, top - 5) : bottom + 5, max(0, left - 20) : right + 20]
            inked_columns = (band < float(around.max()) - INK).mean(axis=0) > 0.04
            blanks = "".join("x" if ink else " " for ink in inked_columns).split("x")
            gaps += 1
            blank_gaps += max(map(len, blanks)) >= 0.13 * em * (right - left) / (corners[1][0] - corners[0][0])
    return gaps < MIN_GAPS or blank_gaps < GAPS_IN_PLACE * gaps


def read_glyphs_by_ocr(image: Image, ocr: OcrReader, page: Any, page_number: int) -> list[Glyph]:
    """Return the characters that OCR reads on a page, with their positions; those within a word are estimates."""
    matrix, width, height = compute_shown_page_geometry(page)
    sx, sy = width / image.width, height / image.height
    rotation = pikepdf.Matrix(*matrix.shorthand[:4], 0, 0)
    out: list[Glyph] = []
    before: Word | None = None
    for number, word in enumerate(ocr(image)):
        cos, sin = math.cos(word.angle), math.sin(word.angle)
        high, wide = word.bottom - word.top, word.right - word.left
        # From the centre of the box to the baseline, at its left end.
        along, down = -wide / 2, 0.25 * high
        x = (word.left + word.right) / 2 + along * cos - down * sin
        y = (word.top + word.bottom) / 2 + along * sin + down * cos
        texts = list(word.text)
        if before is not None and before.line == word.line and texts:
            gap = max(0.0, word.left - before.right)
            texts.insert(0, " ")
        parts = [max(0.2, measure_text_width(c, "Helvetica") or 0.6) for c in word.text]
        steps = [part * wide / sum(parts) for part in parts]
        if len(texts) > len(steps):
            x, y = x - gap * cos, y - gap * sin
            steps.insert(0, gap)
        ux, uy = rotation.transform((0.8 * high * sin * sx, 0.8 * high * cos * sy))
        for index, (text, step) in enumerate(zip(texts, steps, strict=True)):
            dx, dy = rotation.transform((step * cos * sx, -step * sin * sy))
            origin = matrix.transform((x * sx, height - y * sy))
            out.append(
                Glyph(
                    text, (OCR_PLANE, page_number), number, index, 0, 0, 0.0, *origin, dx, dy, ux, uy, page_number,
                    OCR_PLANE, "Helvetica", (0.0,), -1,
                )
            )  # fmt: skip
            x, y = x + step * cos, y + step * sin
        before = word
    return out


def paint_over_glyphs(image: Image, glyphs: Sequence[Glyph], page: Any) -> Image:
    """Return the picture of a page with white boxes over the characters.

    Positions within a word that OCR read are estimates, so a box also covers a letter that it would cut.
    """
    import numpy as np
    from PIL import ImageDraw

    grey = np.asarray(image.convert("L"))
    draw = ImageDraw.Draw(image)
    for g in glyphs:
        corners = [
            (g.x + along * g.dx + up * g.ux, g.y + along * g.dy + up * g.uy) for along in (0, 1) for up in (-0.3, 1.0)
        ]
        left, top, right, bottom = _convert_to_pixels(image, corners, page)
        box = [max(0, round(left) - 2), max(0, round(top) - 2), round(right) + 2, round(bottom) + 2]
        if g.plane == OCR_PLANE:
            # A turned line is covered as its upright box is, which touches other lines: only its middle counts.
            inset = (box[3] - box[1]) // 5
            band = grey[box[1] + inset : box[3] - inset]
            box[0], box[2] = _extend_to_blank_columns(band, box[0], box[2], round(LETTER * (bottom - top)))
        draw.rectangle((box[0], box[1], box[2], box[3]), fill=(255, 255, 255))
    return image


def _extend_to_blank_columns(band: Any, left: int, right: int, most: int) -> tuple[int, int]:
    """Move the ends of a box outwards to columns without ink, at most by ``most`` pixels; they are shades of grey."""
    if not band.size:
        return left, right
    light = float(band.max())
    has_ink = (band < light - INK).any(axis=0)
    first, last = max(0, left - most), min(len(has_ink) - 1, right + most)
    while left > first and has_ink[left]:
        left -= 1
    while right < last and has_ink[right]:
        right += 1
    return left, right


def paint_boxes(image: Image, boxes: Iterable[tuple[float, float, float, float]], page: Any) -> None:
    """Paint grey boxes, given by left, bottom, right and top, over the picture of a page."""
    from PIL import ImageDraw

    for left, bottom, right, top in boxes:
        place = _convert_to_pixels(image, [(left, bottom), (right, top)], page)
        ImageDraw.Draw(image).rectangle(place, fill=(GREY, GREY, GREY))


def _convert_to_pixels(
    image: Image, points: Sequence[tuple[float, float]], page: Any
) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of points of a page in its picture."""
    matrix, width, height = compute_shown_page_geometry(page)
    back = matrix.inverse()
    sx, sy = image.width / width, image.height / height
    shown = [back.transform(point) for point in points]
    xs, ys = [x * sx for x, _ in shown], [(height - y) * sy for _, y in shown]
    return min(xs), min(ys), max(xs), max(ys)


def make_picture_stream(pdf: Any, image: Image, page: Any, is_lossless: bool) -> tuple[Any, pikepdf.Matrix]:
    """Return the picture as an image of the file, and the matrix that puts it over the page."""
    if is_lossless:
        stream = pikepdf.Stream(pdf, image.tobytes())
    else:
        data = io.BytesIO()
        image.save(data, "JPEG", quality=80)
        stream = pikepdf.Stream(pdf, data.getvalue())
        stream.Filter = pikepdf.Name.DCTDecode
    stream.Type, stream.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
    stream.Width, stream.Height, stream.BitsPerComponent = image.width, image.height, 8
    stream.ColorSpace = pikepdf.Name.DeviceRGB
    matrix, width, height = compute_shown_page_geometry(page)
    return stream, pikepdf.Matrix(width, 0, 0, height, 0, 0) @ matrix

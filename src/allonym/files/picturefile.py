"""Pictures (PNG, JPEG): their text is read by OCR, painted over, and replaced; nothing but the pixels is kept.

What cameras and programs note beside the pixels is left out. The result is read again by the same OCR; if that can
still read a covered text, the picture is refused. What the OCR misses stays in the picture: look at it.
"""

from __future__ import annotations

import io
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

from allonym.errors import DataError, RefusedContent, hide_foreign_errors, require_extra
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk, Tally

MAX_PIXELS = 60_000_000
"""Greatest number of pixels of a picture; it is unpacked in memory."""

LEGEND_MARGIN = 20
"""Pixels below a legend, which is set below a picture with short forms."""


def _parse_picture(chunk: Chunk, job: Job, kind: str) -> ParsedChunk:
    from allonym.files.ocr import find_ocr_reader

    if not job.policy.ocr:
        raise RefusedContent('a picture needs OCR; name one in the policy, such as ocr = "rapidocr"')
    with require_extra("A picture", "ocr"):
        if find_ocr_reader(job.policy.ocr) is None:
            raise ImportError(name="rapidocr")
        from allonym.files.pdf.editor import parse_pdf
    pdf, size = _wrap_picture_into_pdf(chunk.data)
    # The picture is the document: what OCR reads is painted over, and a picture with few letters is kept.
    shown = replace(job, policy=job.policy.with_(images="keep"))
    (draft,) = parse_pdf(Chunk(pdf), shown, is_lossless=True).pieces
    assert isinstance(draft, Draft)

    def render_picture(parts: tuple[str, ...]) -> bytes:
        return _render_pdf_as_picture(draft.render(parts), size, kind)

    picture = replace(draft, render=render_picture, verify=f"{_NAMES[kind]}+{job.policy.ocr}", repair=None)
    return ParsedChunk([picture], tally=Tally(treated=Counter({"pictures read by OCR": 1})))


def _wrap_picture_into_pdf(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """Return a PDF with one page that is this picture, upright, and the picture's size in pixels."""
    import pikepdf
    from PIL import Image, ImageOps

    from allonym.files.ocr import DPI

    with hide_foreign_errors("the picture cannot be read"):
        image: Any = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        if image.width * image.height > MAX_PIXELS:
            raise DataError(f"the picture has more than {MAX_PIXELS} pixels")
        image = ImageOps.exif_transpose(image)
        if image.has_transparency_data:
            white = Image.new("RGBA", image.size, (255, 255, 255, 255))
            image = Image.alpha_composite(white, image.convert("RGBA"))
        image = image.convert("RGB")
    pdf = pikepdf.new()
    width, height = image.width * 72 / DPI, image.height * 72 / DPI
    page = pdf.add_blank_page(page_size=(width, height))
    stream = pdf.make_stream(image.tobytes())
    stream.Type, stream.Subtype, stream.ColorSpace = map(pikepdf.Name, ("/XObject", "/Image", "/DeviceRGB"))
    stream.Width, stream.Height, stream.BitsPerComponent = image.width, image.height, 8
    page.obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im=stream))
    page.obj.Contents = pdf.make_stream(f"q {width:.4f} 0 0 {height:.4f} 0 0 cm /Im Do Q".encode())
    out = io.BytesIO()
    pdf.save(out, deterministic_id=True)
    return out.getvalue(), image.size


def _render_pdf_as_picture(pdf: bytes, size: tuple[int, int], kind: str) -> bytes:
    """Return the first page as a picture of this size in pixels, with the legend of further pages below it."""
    import pypdfium2
    from PIL import Image, ImageChops

    with closing(cast(Any, pypdfium2.PdfDocument(pdf))) as file:
        scale = max(size) / max(file[0].get_size())
        image, *legends = (page.render(scale=scale).to_pil().convert("RGB") for page in file)
    shown = [image.resize(size) if image.size != size else image]
    for legend in legends:
        _, _, _, bottom = ImageChops.invert(legend).getbbox() or (0, 0, 0, 0)
        shown.append(legend.crop((0, 0, size[0], bottom + LEGEND_MARGIN)))
    joined = Image.new("RGB", (size[0], sum(picture.height for picture in shown)), (255, 255, 255))
    y = 0
    for picture in shown:
        joined.paste(picture, (0, y))
        y += picture.height
    out = io.BytesIO()
    joined.save(out, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return out.getvalue()


_NAMES = {"PNG": "png", "JPEG": "jpg"}
PNG, JPEG = (Format(name, partial(_parse_picture, kind=kind)) for kind, name in _NAMES.items())

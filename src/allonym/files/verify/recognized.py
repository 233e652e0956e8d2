"""Read pictures, and pages that are pictures, with an OCR."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from allonym.errors import UnknownNameError
from allonym.files.ocr import DPI, OcrReader, find_ocr_reader

if TYPE_CHECKING:
    from PIL.Image import Image


def read_recognized_texts(data: bytes, ocr: str) -> Iterator[tuple[str, str]]:
    """Return (place, text) of a picture, or of the pages of a PDF that are little more than a picture.

    Args:
        data: a PDF, or a picture that Pillow reads.
        ocr: name of the OCR.

    Raises:
        UnknownNameError: there is no such OCR.
    """
    reader = find_ocr_reader(ocr)
    if reader is None:
        raise UnknownNameError("OCR", ocr, ())
    if not data.startswith(b"%PDF-"):
        from PIL import Image

        yield "the picture", _read_lines(Image.open(io.BytesIO(data)).convert("RGB"), reader)
        return
    import pypdfium2

    with closing(cast(Any, pypdfium2.PdfDocument(data))) as file:
        for number in range(len(file)):
            page = file[number]
            if not _is_picture(page):
                continue
            width, height = page.get_size()
            scale = min(DPI / 72, 8000 / max(width, height, 1.0))
            yield f"picture of page {number + 1}", _read_lines(page.render(scale=scale).to_pil().convert("RGB"), reader)


def _is_picture(page: Any) -> bool:
    """Return whether a picture covers half of a page."""
    import pypdfium2.raw

    width, height = page.get_size()
    for thing in page.get_objects([pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]):
        left, bottom, right, top = thing.get_bounds()
        if (right - left) * (top - bottom) >= 0.5 * width * height:
            return True
    return False


def _read_lines(image: Image, reader: OcrReader) -> str:
    lines = groupby(reader(image), key=lambda word: word.line)
    return "\n".join(" ".join(word.text for word in words) for _, words in lines)

"""Cover texts in a written PDF or picture wherever they can still be read, also in the pictures of its pages."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

import pikepdf

from allonym.errors import hide_foreign_errors
from allonym.files.ocr import OcrReader, Word, find_ocr_reader
from allonym.files.pdf import scans
from allonym.files.pdf.objects import open_pdf
from allonym.files.pictures import GREY
from allonym.files.record import Chunk, Draft, Job, ParsedChunk
from allonym.files.repair import compile_texts
from allonym.plan import Edit, apply_edits_to_parts

if TYPE_CHECKING:
    from PIL.Image import Image

_MARGIN = 2
"""Pixels by which a box is larger than its word."""


@hide_foreign_errors("the result cannot be repaired")
def cover_texts_in_pdf(
    data: bytes, replacements: Mapping[str, str], job: Job, parse: Callable[[Chunk, Job], ParsedChunk]
) -> bytes:
    """Replace texts, and their words that identify, on the pages of a PDF, and paint over them in pages as pictures.

    Args:
        data: the PDF.
        replacements: texts with their replacements; case, and what separates words, are ignored.
        job: the settings.
        parse: reads a PDF as one draft.
    """
    pattern, cover_match = compile_texts(replacements)
    (draft,) = parse(Chunk(data), replace(job, policy=job.policy.with_(images="keep", ocr=""))).pieces
    assert isinstance(draft, Draft)
    document = draft.document
    edits = [Edit(*match.span(), cover_match(match), "") for match in pattern.finditer(document.text)]
    if edits:
        data = draft.render(tuple(apply_edits_to_parts(document.text, document.parts, edits)))
    ocr = find_ocr_reader(job.policy.ocr)
    return data if ocr is None else _paint_over_texts(data, replacements, ocr)


def _paint_over_texts(data: bytes, replacements: Mapping[str, str], ocr: OcrReader) -> bytes:
    with open_pdf(data) as pdf:
        pictures = {n: p for n, page in enumerate(pdf.pages) if (p := _find_page_picture(page)) is not None}
        for number, shown in scans.render_pages(pdf, pictures) if pictures else ():
            boxes = list(find_boxes_of_texts(shown, replacements, ocr))
            if not boxes:
                continue
            image = pikepdf.PdfImage(pictures[number]).as_pil_image().convert("RGB").resize(shown.size)
            paint_boxes(image, boxes)
            is_lossless = "/Filter" not in pictures[number] or pictures[number].Filter != pikepdf.Name.DCTDecode
            stream, _ = scans.make_picture_stream(pdf, image, pdf.pages[number], is_lossless)
            pdf.pages[number].obj.Resources.XObject[scans.PAGE_PICTURE] = pdf.make_indirect(stream)
        pdf.remove_unreferenced_resources()
        out = io.BytesIO()
        pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    return out.getvalue()


def _find_page_picture(page: Any) -> Any:
    resources = page.obj.get("/Resources")
    return None if resources is None else resources.get("/XObject", {}).get(scans.PAGE_PICTURE)


Box = tuple[float, float, float, float]


def find_boxes_of_texts(image: Image, replacements: Mapping[str, str], ocr: OcrReader) -> Iterator[Box]:
    """Yield the upright boxes, in pixels, of the words of texts that OCR reads in a picture."""
    pattern, _ = compile_texts(replacements)
    words = list(ocr(image))
    for _, line in groupby(words, key=lambda word: word.line):
        row = list(line)
        starts = list(accumulate((len(word.text) + 1 for word in row), initial=0))
        for match in pattern.finditer(" ".join(word.text for word in row)):
            for word, start in zip(row, starts, strict=False):
                if start < match.end() and match.start() < start + len(word.text):
                    yield _measure_box(word)


def _measure_box(word: Word) -> Box:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    wide, high = (word.right - word.left) / 2, (word.bottom - word.top) / 2
    cos, sin = abs(math.cos(word.angle)), abs(math.sin(word.angle))
    dx, dy = wide * cos + high * sin + _MARGIN, wide * sin + high * cos + _MARGIN
    return x - dx, y - dy, x + dx, y + dy


def paint_boxes(image: Image, boxes: list[Box]) -> None:
    """Paint grey boxes over a picture."""
    from PIL import ImageDraw

    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill=(GREY, GREY, GREY))

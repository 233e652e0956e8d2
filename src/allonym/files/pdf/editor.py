"""A PDF being anonymised: its text, and the same file with other texts."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any, cast

import pikepdf

from allonym import registry
from allonym.document import Document
from allonym.errors import RefusedContent, hide_foreign_errors
from allonym.files.pdf import scans
from allonym.files.pdf.clean import clean_pdf_and_list_slots
from allonym.files.pdf.content import Content, Glyph
from allonym.files.pdf.layout import order_glyphs_for_reading
from allonym.files.pdf.objects import open_pdf
from allonym.files.pdf.paint import Painter, make_patches, make_standard_font
from allonym.files.pdf.redact import encode_operations, group_glyphs_by_stream, rewrite_content_stream
from allonym.files.pictures import strip_picture_metadata
from allonym.files.record import Chunk, Draft, Job, ParsedChunk, Tally

_BROKEN = "the PDF is broken, or made in a way that is not read"


@hide_foreign_errors(_BROKEN)
def parse_pdf(chunk: Chunk, job: Job) -> ParsedChunk:
    """Return a PDF as one document."""
    file = _PdfFile(chunk.data, job)
    units = [*file.units, *file.others]
    texts = [u.text for u in units] + [s.text for s in file.slots]
    # The text before the first part is not a separator.
    gaps = [u.before for u in units] + ["\n"] * len(file.slots)
    document = Document.from_parts("", texts, separators=[*gaps[1:], ""] if texts else [])
    picture_count = sum(p.page not in file.scans for p in file.content.pictures)
    treatment = "pictures kept" if job.policy.images == "keep" else "pictures left out"
    tally = Tally(treated=Counter({treatment: picture_count} if picture_count else {}))
    return ParsedChunk([Draft(document, file.render_with_texts, verify="pdf")], tally=tally)


class _PdfFile:
    """A PDF being anonymised: its text, and a function that writes it with other texts."""

    def __init__(self, data: bytes, job: Job) -> None:
        policy = job.policy
        self._images = policy.images
        self._standard_fonts: dict[str, Any] = {}
        self.pdf = open_pdf(data)
        self.slots, hidden = clean_pdf_and_list_slots(self.pdf)
        self.content = Content(self.pdf, hidden)
        if self._images == "keep":
            _strip_jpeg_metadata(self.pdf)
        self.scans = scans.find_scanned_pages(self.pdf, self.content) if policy.images == "remove" or policy.ocr else {}
        bare = [page for page, text_pages in self.scans.items() if not text_pages]
        if bare and not policy.ocr:
            more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
            raise RefusedContent(
                f"page {bare[0] + 1}{more}: a scan, which needs OCR first, for example with ocrmypdf; or name an OCR "
                'in the policy, such as ocr = "tesseract"'
            )
        self.units, self.others = order_glyphs_for_reading(self.content.glyphs, self.content.spans)
        if bare:
            ocr = cast(scans.OcrReader, registry.ocr.get(policy.ocr))
            for number, image in scans.render_pages(self.pdf, bare):
                line = self.units[-1].line + 1 if self.units else 0
                self.units += scans.read_words_by_ocr(image, ocr, self.pdf.pages[number], number, line)

    @hide_foreign_errors(_BROKEN)
    def render_with_texts(self, parts: tuple[str, ...]) -> bytes:
        """Return the file with other texts. It can be called only once."""
        first, last = len(self.units), len(self.units) + len(self.others)
        new = parts if last + len(self.slots) else ()
        patches = make_patches(self.units, new[:first])
        gone: list[Glyph] = [g for patch in patches for gap in patch.gaps for g in gap.glyphs]
        for unit, part in zip(self.others, new[first:last], strict=True):
            if part != unit.text:
                gone += unit.glyphs
        for slot, part in zip(self.slots, new[last:], strict=True):
            if part != slot.text:
                slot.set(part)
        lost = {(g.stream, g.op, g.item, g.start) for g in gone}
        kept_glyphs = [g for g in self.content.glyphs if (g.stream, g.op, g.item, g.start) not in lost]
        closed = {k for k, s in self.content.sources.items() if s.thing is not None and "/Resources" not in s.thing}
        painter = Painter(
            kept_glyphs, [scans.get_visible_page_box(page) for page in self.pdf.pages], self.scans, closed
        )
        painter.paint_patches(patches)
        pictures = {
            number: scans.paint_over_glyphs(image, [g for g in gone if g.page == number], self.pdf.pages[number])
            for number, image in (scans.render_pages(self.pdf, self.scans) if self.scans else ())
        }
        by_stream = group_glyphs_by_stream(g for g in gone if g.stream is not None)
        for key, source in self.content.sources.items():
            data = rewrite_content_stream(
                source, by_stream.get(key, {}), painter.inserts[key], self._choose_picture_treatment(key)
            )
            if source.thing is None:
                number = key[1]
                self._rebuild_page(number, self.pdf.pages[number], data, painter, pictures.get(number))
                continue
            source.thing.write(data)
            if "/Resources" in source.thing:
                if self._choose_picture_treatment(key) != "keep":
                    _remove_images(source.thing.Resources.get("/XObject", {}))
                self._add_standard_fonts(source.thing.Resources, painter.fonts[key])
        out = io.BytesIO()
        with hide_foreign_errors("the PDF cannot be written", pikepdf.PdfError, RuntimeError):
            self.pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
        return out.getvalue()

    def _choose_picture_treatment(self, stream_key: Any) -> str:
        """Decide how to treat the pictures that a content stream draws."""
        if any(p.stream == stream_key and p.page in self.scans for p in self.content.pictures):
            return "drop"
        return "keep" if self._images == "keep" else "box"

    def _rebuild_page(self, number: int, page: Any, body: bytes, painter: Painter, scan: Any) -> None:
        page_resources: Any = page.obj.get("/Resources", page.get("/Resources"))
        resources = pikepdf.Dictionary(page_resources) if page_resources is not None else pikepdf.Dictionary()
        self._add_standard_fonts(resources, painter.fonts["page", number])
        xobjects = pikepdf.Dictionary(cast(Any, resources.get("/XObject", {})))
        if self._choose_picture_treatment(("page", number)) != "keep":
            _remove_images(xobjects)
        under = b""
        if scan is not None:
            stream, matrix = scans.make_picture_stream(self.pdf, scan, page)
            xobjects["/AllonymPage"] = self.pdf.make_indirect(stream)
            numbers = " ".join(f"{v:.4f}" for v in matrix.shorthand)
            under = f"q {numbers} cm /AllonymPage Do Q\n".encode("ascii")
        resources.XObject = xobjects
        page.obj.Resources = resources
        over = encode_operations(painter.ops[number])
        page.obj.Contents = self.pdf.make_stream(under + b"q\n" + body + b"\nQ\n" + over)

    def _add_standard_fonts(self, resources: Any, styles: set[str]) -> None:
        if not styles:
            return
        fonts = pikepdf.Dictionary(resources.get("/Font", {}))
        for style in sorted(styles):
            if style not in self._standard_fonts:
                self._standard_fonts[style] = make_standard_font(self.pdf, style)
            fonts[f"/Allonym{style}"] = self._standard_fonts[style]
        resources.Font = fonts


def _strip_jpeg_metadata(pdf: Any) -> None:
    """Remove the metadata of JPEG pictures: places, times, names, previews."""
    for thing in pdf.objects:
        if isinstance(thing, pikepdf.Stream) and thing.get("/Filter") in ("/DCTDecode", ["/DCTDecode"]):
            stripped_data = strip_picture_metadata(thing.read_raw_bytes())
            if stripped_data is None:
                raise RefusedContent("a picture is not a complete JPEG, so its metadata cannot be removed")
            thing.write(stripped_data, filter=pikepdf.Name.DCTDecode, decode_parms=cast(Any, thing.get("/DecodeParms")))


def _remove_images(xobjects: Any) -> None:
    for name in list(xobjects.keys()):
        if xobjects[name].get("/Subtype") == "/Image":
            del xobjects[name]

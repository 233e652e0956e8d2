"""A PDF being anonymised: its text, and the same file with other texts."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pikepdf

from allonym.document import PROSE, Document
from allonym.errors import RefusedContent, hide_foreign_errors, write_install_command
from allonym.files.ocr import OcrReader, find_ocr_reader
from allonym.files.pdf import scans
from allonym.files.pdf.clean import clean_pdf_and_list_slots
from allonym.files.pdf.content import Content
from allonym.files.pdf.layout import find_unreadable_pages, order_glyphs_for_reading
from allonym.files.pdf.objects import open_pdf
from allonym.files.pdf.paint import LEGEND_FONT, Painter, list_legend_pages, make_patches, make_standard_font
from allonym.files.pdf.redact import encode_operations, group_glyphs_by_stream, rewrite_content_stream
from allonym.files.pdf.tables import find_cell_roles
from allonym.files.pictures import strip_picture_metadata
from allonym.files.record import Chunk, Draft, Job, ParsedChunk, Tally

if TYPE_CHECKING:
    from PIL.Image import Image

_BROKEN = "the PDF is broken, or made in a way that is not read"


@hide_foreign_errors(_BROKEN)
def parse_pdf(chunk: Chunk, job: Job, *, is_lossless: bool = False) -> ParsedChunk:
    """Return a PDF as one document; ``is_lossless``: pages that become pictures keep every pixel, and are larger."""
    file = _PdfFile(chunk.data, job, is_lossless)
    units = [*file.units, *file.others]
    texts = [u.text for u in units] + [s.text for s in file.slots]
    # The text before the first part is not a separator.
    gaps = [u.before for u in units] + ["\n"] * len(file.slots)
    roles = find_cell_roles(file.units, job.policy)
    roles += [PROSE] * (len(texts) - len(roles)) if roles else []
    document = Document.from_parts("", texts, separators=[*gaps[1:], ""] if texts else [], roles=roles)
    picture_count = sum(p.page not in file.scans for p in file.content.pictures)
    treatment = "pictures kept" if job.policy.images == "keep" else "pictures left out"
    tally = Tally(treated=Counter({treatment: picture_count} if picture_count else {}))
    if file.recognized:
        tally.treated["pages read by OCR"] = len(file.recognized)
    verify = f"pdf+{job.policy.ocr}" if file.recognized else "pdf"
    return ParsedChunk([Draft(document, file.render_with_texts, verify=verify)], tally=tally)


class _PdfFile:
    """A PDF being anonymised: its text, and a function that writes it with other texts."""

    def __init__(self, data: bytes, job: Job, is_lossless: bool) -> None:
        policy = job.policy
        self._is_lossless = is_lossless
        self._images = policy.images
        self._standard_fonts: dict[str, Any] = {}
        self.pdf = open_pdf(data)
        self.slots, hidden = clean_pdf_and_list_slots(self.pdf)
        self.content = Content(self.pdf, hidden)
        if self._images == "keep":
            _strip_jpeg_metadata(self.pdf)
        ocr = find_ocr_reader(policy.ocr)
        self.scans = scans.find_scanned_pages(self.pdf, self.content) if policy.images == "remove" or ocr else {}
        self.recognized: set[int] = set()
        self.units, self.others = order_glyphs_for_reading(self.content.glyphs, self.content.spans)
        self._recognize_pages_without_text(ocr, policy.ocr)

    def _recognize_pages_without_text(self, ocr: OcrReader | None, name: str) -> None:
        """Read pages whose text is unknown by OCR; they become pictures, and nothing else of them remains."""
        unread = self.content.unread | dict.fromkeys(
            find_unreadable_pages(self.units), "has text in a font without a mapping to letters"
        )
        bare = [page for page, text_pages in self.scans.items() if not text_pages]
        scanned = dict.fromkeys(bare, "is a scan, or a drawing of letters")
        reasons = dict(sorted((unread | scanned).items()))
        if not reasons:
            return
        if ocr is None:
            page, reason = next(iter(reasons.items()))
            more = f" ({len(reasons) - 1} more pages like it)" if len(reasons) > 1 else ""
            advice = write_install_command("ocr") if name else 'name an OCR in the policy, such as ocr = "rapidocr"'
            raise RefusedContent(f"page {page + 1} {reason}{more}; its text needs OCR: {advice}; or use ocrmypdf first")
        self.recognized = set(reasons)
        self.content.glyphs = [g for g in self.content.glyphs if g.page not in reasons]
        for number, image in self._render_pages(reasons):
            self.content.glyphs += scans.read_glyphs_by_ocr(image, ocr, self.pdf.pages[number], number)
        self.units, self.others = order_glyphs_for_reading(self.content.glyphs, self.content.spans)

    def _render_pages(self, numbers: Iterable[int]) -> Iterator[tuple[int, Image]]:
        """Yield pages as pictures; the pictures on pages that are no scans are grey, unless the policy keeps them."""
        for number, image in scans.render_pages(self.pdf, numbers) if numbers else ():
            if self._images != "keep" and number not in self.scans:
                boxes = [p.box() for p in self.content.pictures if p.page == number]
                scans.paint_boxes(image, boxes, self.pdf.pages[number])
            yield number, image

    @hide_foreign_errors(_BROKEN)
    def render_with_texts(self, parts: tuple[str, ...]) -> bytes:
        """Return the file with other texts. It can be called only once."""
        first, last = len(self.units), len(self.units) + len(self.others)
        new = parts if last + len(self.slots) else ()
        patches = make_patches(self.units, new[:first])
        gone = [g for patch in patches for gap in patch.gaps for unit in gap.units for g in unit.glyphs]
        for unit, part in zip(self.others, new[first:last], strict=True):
            if part != unit.text:
                gone += unit.glyphs
        for slot, part in zip(self.slots, new[last:], strict=True):
            if part != slot.text:
                slot.set(part)
        over = sorted(self.scans.keys() | self.recognized)
        boxes = [scans.get_visible_page_box(page) for page in self.pdf.pages]
        painter = Painter(self.content, self.units, patches, boxes, over)
        lost = {g.place for g in gone}
        painter.paint_replacements(g for g in self.content.glyphs if g.place not in lost)
        pictures = {
            number: scans.paint_over_glyphs(image, [g for g in gone if g.page == number], self.pdf.pages[number])
            for number, image in self._render_pages(over)
        }
        moved = (g for g in self.content.glyphs if g.place in painter.moves)
        by_stream = group_glyphs_by_stream(chain(gone, moved))
        for number in self.recognized:
            self._rebuild_page(number, self.pdf.pages[number], None, painter, pictures[number])
        for key, source in self.content.sources.items():
            if source.thing is None and key[1] in self.recognized:
                continue
            treatment = self._choose_picture_treatment(key)
            changed = by_stream.get(key, {})
            data = rewrite_content_stream(source, changed, lost, painter.moves, painter.inserts, treatment)
            if source.thing is None:
                number = key[1]
                self._rebuild_page(number, self.pdf.pages[number], data, painter, pictures.get(number))
                continue
            source.thing.write(data)
            if "/Resources" in source.thing:
                if treatment != "keep":
                    _remove_images(source.thing.Resources.get("/XObject", {}))
                self._add_standard_fonts(source.thing.Resources, painter.fonts[key])
        self._add_legend(painter.list_shortened())
        out = io.BytesIO()
        with hide_foreign_errors("the PDF cannot be written", pikepdf.PdfError, RuntimeError):
            self.pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
        return out.getvalue()

    def _choose_picture_treatment(self, stream_key: Any) -> str:
        """Decide how to treat the pictures that a content stream draws."""
        if any(p.stream == stream_key and p.page in self.scans for p in self.content.pictures):
            return "drop"
        return "keep" if self._images == "keep" else "box"

    def _rebuild_page(self, number: int, page: Any, body: bytes | None, painter: Painter, scan: Any) -> None:
        """Write a page from its new content, and the picture below it; without content, the picture is all of it."""
        page_resources: Any = page.obj.get("/Resources", page.get("/Resources")) if body is not None else None
        resources = pikepdf.Dictionary(page_resources) if page_resources is not None else pikepdf.Dictionary()
        self._add_standard_fonts(resources, painter.fonts["page", number])
        xobjects = pikepdf.Dictionary(cast(Any, resources.get("/XObject", {})))
        if self._choose_picture_treatment(("page", number)) != "keep":
            _remove_images(xobjects)
        under = b""
        if scan is not None:
            stream, matrix = scans.make_picture_stream(self.pdf, scan, page, self._is_lossless)
            xobjects[scans.PAGE_PICTURE] = self.pdf.make_indirect(stream)
            numbers = " ".join(f"{v:.4f}" for v in matrix.shorthand)
            under = f"q {numbers} cm {scans.PAGE_PICTURE} Do Q\n".encode("ascii")
        resources.XObject = xobjects
        page.obj.Resources = resources
        over = encode_operations(painter.ops[number])
        page.obj.Contents = self.pdf.make_stream(under + b"q\n" + (body or b"") + b"\nQ\n" + over)

    def _add_legend(self, short_forms: Sequence[tuple[str, str]]) -> None:
        """Add pages that tell what short forms stand for."""
        if not short_forms:
            return
        box = scans.get_visible_page_box(self.pdf.pages[0])
        width, height = box[2] - box[0], box[3] - box[1]
        for operations in list_legend_pages(short_forms, width, height):
            page = self.pdf.add_blank_page(page_size=(width, height))
            resources = pikepdf.Dictionary()
            self._add_standard_fonts(resources, {LEGEND_FONT})
            page.obj.Resources = resources
            page.obj.Contents = self.pdf.make_stream(encode_operations(operations))

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

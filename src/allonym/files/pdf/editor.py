"""A PDF being anonymised: its text, and the same file with other texts."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pikepdf

from allonym.document import PROSE, Document
from allonym.errors import RefusedContent, hide_foreign_errors, write_install_command
from allonym.files.ocr import OcrReader, find_ocr_reader
from allonym.files.pdf import scans
from allonym.files.pdf.clean import clean_pdf_and_list_slots
from allonym.files.pdf.content import Content, Glyph, GlyphPlace
from allonym.files.pdf.layout import TextUnit, has_unreadable_words
from allonym.files.pdf.objects import open_pdf
from allonym.files.pdf.pages import PackedPage, Page
from allonym.files.pdf.paint import (
    BEGINS,
    GOES_ON,
    LEGEND_FONT,
    Painter,
    clean_replacement,
    list_legend_pages,
    make_patches,
    make_standard_font,
    mark_changes,
)
from allonym.files.pdf.redact import (
    GlyphsByString,
    encode_operations,
    group_glyphs_by_stream,
    merge_glyphs,
    rewrite_content_stream,
)
from allonym.files.pdf.repair import cover_texts_in_pdf
from allonym.files.pdf.tables import Cell, find_cell_roles
from allonym.files.pictures import strip_picture_metadata
from allonym.files.record import Chunk, Draft, Job, ParsedChunk, Tally
from allonym.policy import Policy

if TYPE_CHECKING:
    from PIL.Image import Image

_BROKEN = "the PDF is broken, or made in a way that is not read"


@hide_foreign_errors(_BROKEN)
def parse_pdf(chunk: Chunk, job: Job, *, is_lossless: bool = False) -> ParsedChunk:
    """Return a PDF as one document; ``is_lossless``: pages that become pictures keep every pixel, and are larger."""
    file = _PdfFile(chunk.data, job, is_lossless)
    texts, gaps, roles = file.read_units(job.policy)
    texts += [slot.text for slot in file.slots]
    gaps += ["\n"] * len(file.slots)
    roles += [PROSE] * (len(texts) - len(roles)) if roles else []
    # The text before the first part is not a separator.
    document = Document.from_parts("", texts, separators=[*gaps[1:], ""] if texts else [], roles=roles)
    picture_count = sum(p.page not in file.scans for p in file.content.pictures)
    treatment = "pictures kept" if job.policy.images == "keep" else "pictures left out"
    tally = Tally(treated=Counter({treatment: picture_count} if picture_count else {}))
    if file.recognized:
        tally.treated["pages read by OCR"] = len(file.recognized)
    verify = f"pdf+{job.policy.ocr}" if file.recognized else "pdf"
    repair = partial(cover_texts_in_pdf, job=job, parse=parse_pdf)
    return ParsedChunk([Draft(document, file.render_with_texts, verify=verify, repair=repair)], tally=tally)


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
        self.pages: dict[int, PackedPage] = {}
        unread: dict[int, str] = {}
        self.frames: dict[Any, set[int]] = defaultdict(set)
        for number, glyphs in self.content.read_pages():
            self._note_pictures_over_text(number, glyphs)
            page = Page.order_glyphs(glyphs, self.content.spans)
            self.pages[number] = page.pack()
            if has_unreadable_words(page.units):
                unread[number] = "has text in a font without a mapping to letters"
        self.pages = dict(sorted(self.pages.items()))
        if self._images == "keep":
            _strip_jpeg_metadata(self.pdf)
        ocr = find_ocr_reader(policy.ocr)
        self.scans = scans.find_scanned_pages(self.pdf, self.content) if policy.images == "remove" or ocr else {}
        bare = [page for page, text_pages in self.scans.items() if not text_pages]
        unread |= dict.fromkeys(bare, "is a scan, or a drawing of letters")
        unread |= dict.fromkeys(self._list_misplaced_texts(), "is a scan with a text that does not lie over its words")
        self.recognized = self._recognize_pages(self.content.unread | unread, ocr, policy.ocr)

    def _note_pictures_over_text(self, number: int, glyphs: Sequence[Glyph]) -> None:
        """Note the transparent pictures of a page that lie over its text, which a grey box would hide."""
        for picture in self.content.pictures:
            if picture.page == number and picture.is_transparent:
                left, bottom, right, top = picture.box()
                if any(left < g.x < right and bottom < g.y < top and not g.plane for g in glyphs):
                    self.frames[picture.stream].add(picture.op)

    def _list_misplaced_texts(self) -> list[int]:
        """Return the scans with an invisible text that does not lie over the words."""
        numbers = [number for number, has_text in self.scans.items() if has_text]
        return [
            number
            for number, image in (scans.render_pages(self.pdf, numbers) if numbers else ())
            if scans.is_text_misplaced(image, self.pages[number].unpack().glyphs, self.pdf.pages[number])
        ]

    def _recognize_pages(self, reasons: Mapping[int, str], ocr: OcrReader | None, name: str) -> set[int]:
        """Read pages whose text is unknown by OCR; they become pictures, and nothing else of them remains."""
        numbers = sorted(reasons)
        if numbers and ocr is None:
            more = f" ({len(reasons) - 1} more pages like it)" if len(reasons) > 1 else ""
            advice = write_install_command("ocr") if name else 'name an OCR in the policy, such as ocr = "rapidocr"'
            where = f"page {numbers[0] + 1} {reasons[numbers[0]]}{more}"
            raise RefusedContent(f"{where}; its text needs OCR: {advice}; or use ocrmypdf first")
        for number, image in self._render_pages(numbers):
            assert ocr is not None
            self.pages[number] = Page.order_glyphs(self._read_by_ocr(number, image, ocr), ()).pack()
        return set(numbers)

    def _read_by_ocr(self, number: int, image: Image, ocr: OcrReader) -> list[Glyph]:
        """Return the characters of a page that OCR reads; pictures that show hardly any text are no scan of a text."""
        page = self.pdf.pages[number]
        boxes = [p.box() for p in self.content.pictures if p.page == number] if number in self.scans else []
        try:
            glyphs = scans.read_glyphs_by_ocr(image, ocr, page, number)
        except RefusedContent:
            if self._images == "keep" or len(boxes) < 2:
                raise
            glyphs = []
        if self._images == "keep" or not boxes or sum((g.text or "").isalnum() for g in glyphs) > scans.FEW:
            return glyphs
        del self.scans[number]
        scans.paint_boxes(image, boxes, page)
        return scans.read_glyphs_by_ocr(image, ocr, page, number)

    def _open_page(self, number: int, before: int) -> Page:
        """Return a page, in front of which stand so many units."""
        page = self.pages[number].unpack()
        if before and page.units:
            page.units[0].before = "\n\n"
        return page

    def read_units(self, policy: Policy) -> tuple[list[str], list[str], list[str]]:
        """Return the text of each unit, what stands before it, and its role; no roles where the file has no table."""
        texts: list[str] = []
        gaps: list[str] = []
        others: list[str] = []
        rows: list[list[Cell]] = []
        for page in self.pages.values():
            for cell in chain.from_iterable(page.rows):
                cell.start, cell.end = cell.start + len(gaps), cell.end + len(gaps)
            rows += page.rows
            gaps += ["\n\n", *page.gaps[1:]][: len(page.gaps)]
            texts += page.texts
            others += page.others
        roles = find_cell_roles(rows, len(gaps), policy)
        return [*texts, *others], [*gaps, *["\n"] * len(others)], roles

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
        texts = [text for page in self.pages.values() for text in page.texts]
        first = len(texts)
        last = first + sum(len(page.others) for page in self.pages.values())
        new = parts if last + len(self.slots) else ()
        for slot, part in zip(self.slots, new[last:], strict=True):
            if part != slot.text:
                slot.set(part)
        marks = mark_changes(texts, new[:first])
        replacements = (clean_replacement(part) for part, mark in zip(new, marks, strict=False) if mark == BEGINS)
        over = sorted(self.scans.keys() | self.recognized)
        boxes = [scans.get_visible_page_box(page) for page in self.pdf.pages]
        painter = Painter(self.content, replacements, boxes, over)
        pictures = self._render_pages(over)
        lost: set[GlyphPlace] = set()
        changed: dict[Any, GlyphsByString] = {key: {} for key in self.content.forms}
        for group in self._list_joined_pages(marks, first):
            gone, by_stream = self._set_pages(group, new, marks, painter)
            lost |= {glyph.place for glyph in gone}
            for number in group:
                scan = next(pictures)[1] if number in over else None
                if scan is not None:
                    scans.paint_over_glyphs(scan, [g for g in gone if g.page == number], self.pdf.pages[number])
                self._write_page(number, by_stream.get(("page", number), {}), lost, painter, scan)
                painter.close_page(number)
            for key in changed.keys() & by_stream.keys():
                merge_glyphs(changed[key], by_stream[key])
            lost = {place for place in lost if place[0] in changed}
        for key, form in self.content.forms.items():
            treatment = self._choose_picture_treatment(key)
            data = rewrite_content_stream(
                form, changed[key], lost, painter.moves, painter.inserts, treatment, self.frames[key]
            )
            form.thing.write(data)
            if "/Resources" in form.thing:
                if treatment != "keep":
                    _remove_images(form.thing.Resources.get("/XObject", {}))
                self._add_standard_fonts(form.thing.Resources, painter.fonts[key])
        self._add_legend(painter.list_shortened())
        out = io.BytesIO()
        with hide_foreign_errors("the PDF cannot be written", pikepdf.PdfError, RuntimeError):
            self.pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate)
        return out.getvalue()

    def _list_joined_pages(self, marks: bytes, first: int) -> Iterator[dict[int, tuple[slice, slice]]]:
        """Yield the pages that a replacement joins, mostly one: number to the places of its units and of its others.

        Args:
            marks: what becomes of each unit.
            first: the place of the first of the others.
        """
        joined: dict[int, tuple[slice, slice]] = {}
        end = 0
        for number, page in self.pages.items():
            if joined and marks[end : end + 1] != bytes([GOES_ON]):
                yield joined
                joined = {}
            joined[number] = slice(end, end + len(page.texts)), slice(first, first + len(page.others))
            end, first = joined[number][0].stop, joined[number][1].stop
        yield joined

    def _set_pages(
        self, group: Mapping[int, tuple[slice, slice]], parts: Sequence[str], marks: bytes, painter: Painter
    ) -> tuple[list[Glyph], Mapping[Any, GlyphsByString]]:
        """Set the replacements of some pages; return the characters they remove, and these with those that move."""
        units: list[TextUnit] = []
        gone: list[Glyph] = []
        glyphs: list[Glyph] = []
        for number, (place, others) in group.items():
            page = self._open_page(number, place.start)
            units += page.units
            glyphs += page.glyphs
            for unit, part in zip(page.others, parts[others], strict=True):
                if part != unit.text:
                    gone += unit.glyphs
        places = slice(next(iter(group.values()))[0].start, place.stop)
        patches = make_patches(units, parts[places], marks[places])
        gone = [*(g for patch in patches for gap in patch.gaps for unit in gap.units for g in unit.glyphs), *gone]
        lost = {glyph.place for glyph in gone}
        painter.paint_replacements(units, patches, (g for g in glyphs if g.place not in lost))
        return gone, group_glyphs_by_stream(chain(gone, (g for g in glyphs if g.place in painter.moves)))

    def _choose_picture_treatment(self, stream_key: Any) -> str:
        """Decide how to treat the pictures that a content stream draws."""
        if any(p.stream == stream_key and p.page in self.scans for p in self.content.pictures):
            return "drop"
        return "keep" if self._images == "keep" else "box"

    def _write_page(
        self, number: int, changed: GlyphsByString, lost: Container[GlyphPlace], painter: Painter, scan: Image | None
    ) -> None:
        """Write a page from its new content, and the picture below it; what OCR read is only its picture."""
        page = self.pdf.pages[number]
        body: bytes | None = None
        if number not in self.recognized:
            source = self.content.read_page_stream(number)
            treatment = self._choose_picture_treatment(("page", number))
            frames = self.frames["page", number]
            body = rewrite_content_stream(source, changed, lost, painter.moves, painter.inserts, treatment, frames)
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

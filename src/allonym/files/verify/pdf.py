"""Independent readers of a PDF: PDFium's text, pdfminer.six's text, and all strings in the file."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from allonym.errors import hide_foreign_errors, require_extra

with require_extra("PDF", "pdf"):
    import pikepdf
    import pypdfium2
    from pdfminer.converter import TextConverter
    from pdfminer.layout import LAParams
    from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
    from pdfminer.pdfpage import PDFPage

WORD_GAP = -120
"""Least displacement in a TJ array that separates two words, in thousandths of the font's height."""

_HEX = re.compile(rb"<([0-9A-Fa-f\s]{4,})>")
_LITERAL = re.compile(rb"\(([^()\\]{3,})\)")
_FONT_PROGRAMS = ("/Type1C", "/CIDFontType0C", "/OpenType")
"""Kinds of font programs without lengths of their parts; those with lengths are told by these."""

_RESOURCES = ("/Font", "/XObject", "/ExtGState", "/ColorSpace", "/Pattern", "/Shading", "/Properties")


def read_pdfium_texts(data: bytes) -> Iterator[tuple[str, str]]:
    """Return (place, text) of what PDFium shows: each page, the metadata, the bookmarks, the names of attachments.

    Raises:
        DataError: PDFium cannot open the file.
    """
    with hide_foreign_errors("PDFium cannot open the PDF", pypdfium2.PdfiumError):
        file = pypdfium2.PdfDocument(data)
    try:
        for number in range(len(file)):
            page = file[number]
            text = page.get_textpage()
            yield f"page {number + 1}", text.get_text_range()
            text.close()
            page.close()
        yield "metadata", "\n".join(file.get_metadata_dict().values())
        yield "bookmarks", "\n".join(str(mark.get_title()) for mark in file.get_toc())
        for number in range(file.count_attachments()):
            yield "attachments", file.get_attachment(number).get_name()
    finally:
        file.close()


def read_pdfminer_texts(data: bytes) -> Iterator[tuple[str, str]]:
    """Return the text of each page as pdfminer.six extracts it.

    Raises:
        DataError: pdfminer.six cannot read the file.
    """
    with hide_foreign_errors("pdfminer.six cannot read the PDF"):
        resources = PDFResourceManager()
        for number, page in enumerate(PDFPage.get_pages(io.BytesIO(data))):
            out = io.StringIO()
            device = TextConverter(resources, out, laparams=LAParams(all_texts=True))
            PDFPageInterpreter(resources, device).process_page(page)
            yield f"page {number + 1}", out.getvalue()


def read_raw_strings(data: bytes) -> Iterator[tuple[str, str]]:
    """Return all strings: in content operators, in objects, in names of resources, in other streams.

    Strings of objects are read as text, with signs such as ``%20`` resolved.

    Raises:
        DataError: the file cannot be opened.
    """
    with _open_pdf(data) as pdf:
        pages = {page.obj.Contents.objgen: n for n, page in enumerate(pdf.pages) if "/Contents" in page.obj}
        strings: list[str] = []
        for thing in pdf.objects:
            if not isinstance(thing, pikepdf.Stream):
                _collect_strings(thing, strings, 0)
                continue
            _collect_strings(thing.stream_dict, strings, 0)
            if thing.objgen in pages:
                yield f"content of page {pages[thing.objgen] + 1}", _read_content_text(thing)
            elif thing.get("/Subtype") == "/Form" or "/PatternType" in thing:
                yield "content of a form", _read_content_text(thing)
            elif _may_hold_text(thing):
                for text in _read_stream_texts(thing):
                    yield "a stream", text
        _collect_strings(pdf.trailer, strings, 0)
        yield "objects", "\n".join(strings)


def read_object_strings_bytewise(data: bytes) -> Iterator[tuple[str, str]]:
    """Return the strings of objects again, byte by byte. They are counted separately from :func:`read_raw_strings`.

    Raises:
        DataError: the file cannot be opened.
    """
    strings: list[str] = []
    with _open_pdf(data) as pdf:
        for thing in (*pdf.objects, pdf.trailer):
            inner = thing.stream_dict if isinstance(thing, pikepdf.Stream) else thing
            _collect_strings(inner, strings, 0, bytewise=True)
    yield "objects", "\n".join(strings)


@contextmanager
def _open_pdf(data: bytes) -> Iterator[Any]:
    """Return the open file; errors show only their type."""
    kinds = (pikepdf.PdfError, ValueError, TypeError, RuntimeError, LookupError)
    message = "the PDF cannot be read back"
    with hide_foreign_errors(message, *kinds), pikepdf.open(io.BytesIO(data), suppress_warnings=True) as pdf:
        yield pdf


def _read_content_text(stream: Any) -> str:
    lines: list[str] = []
    for instruction in pikepdf.parse_content_stream(stream):
        words: list[str] = []
        for operand in instruction.operands:
            items = list(operand) if isinstance(operand, pikepdf.Array) else [operand]
            for item in items:
                if isinstance(item, pikepdf.String):
                    words.append(_decode_codes(bytes(item)))
                elif isinstance(item, pikepdf.Dictionary):
                    _collect_strings(item, words, 0)
                elif words and not isinstance(item, pikepdf.Object) and float(item) < WORD_GAP:
                    words.append(" ")
        if words:
            lines.append("".join(words))
    return "\n".join(lines)


def _decode_codes(data: bytes) -> str:
    """Return the codes of a string as letters: of two bytes each if every other byte is mostly zero."""
    is_wide = len(data) % 2 == 0 and 2 * data[::2].count(0) > len(data) // 2
    return data.decode("utf-16-be", "replace") if is_wide else data.decode("latin-1")


def _collect_strings(thing: Any, out: list[str], depth: int, bytewise: bool = False) -> None:
    """Collect the strings inside an object and the names of resources, without following references."""
    if depth > 50:
        raise ValueError("objects lie too deep in one another")
    if isinstance(thing, pikepdf.String):
        out.append(bytes(thing).decode("latin-1") if bytewise else unquote(str(thing)))
    elif isinstance(thing, pikepdf.Array):
        for item in thing:
            if not getattr(item, "is_indirect", False):
                _collect_strings(item, out, depth + 1, bytewise)
    elif isinstance(thing, pikepdf.Dictionary):
        for key, value in thing.items():
            if key in _RESOURCES and isinstance(value, pikepdf.Dictionary):
                out += [name[1:] for name in value.keys()]  # noqa: SIM118
            if not getattr(value, "is_indirect", False):
                _collect_strings(value, out, depth + 1, bytewise)


def _may_hold_text(stream: Any) -> bool:
    if stream.get("/Type") in ("/ObjStm", "/XRef") or stream.get("/Subtype") in ("/Image", *_FONT_PROGRAMS):
        return False
    return not {"/Length1", "/Length2", "/Alternate"} & set(stream.keys())


def _read_stream_texts(stream: Any) -> Iterator[str]:
    """Return the text of a stream of another kind: markup as it is, otherwise each string separately.

    A character map has a string for each character; together they are not a text.
    """
    data = stream.read_bytes()
    if data.lstrip()[:1] == b"<" and b"</" in data:
        yield data.decode("utf-8", "replace")
        return
    for hex_match in set(_HEX.findall(data)):
        digits = hex_match.translate(None, b" \t\r\n\f").decode("ascii")
        decoded = bytes.fromhex(digits[: len(digits) // 2 * 2])
        for text in (decoded.decode("utf-16-be", "ignore"), decoded.decode("latin-1")):
            if len(text) > 2:
                yield text
    for hex_match in _LITERAL.findall(data):
        yield hex_match.decode("latin-1")

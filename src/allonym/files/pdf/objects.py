"""A PDF opened with care: encryption, bombs and broken files are refused; its packages are an extra."""

from __future__ import annotations

import io
import logging
import zlib
from typing import Any

from allonym.errors import DataError, MissingExtra, RefusedContent
from allonym.files.record import MAX_WHOLE, check_ratio

MAX_OBJECTS = 2_000_000
MAX_PAGES = 20_000
MAX_DEPTH = 20
"""How deep objects and forms may lie in one another."""


def import_pikepdf() -> Any:
    """The module pikepdf; :class:`MissingExtra` where one of the packages for PDF is not installed."""
    try:
        import pdfminer.pdffont  # noqa: F401
        import pikepdf
        import pypdfium2  # noqa: F401
    except ImportError:
        raise MissingExtra("PDF", "pdf") from None
    for name in ("pdfminer", "pikepdf", "pypdfium2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # their warnings may quote the file
    return pikepdf


def open_pdf(data: bytes) -> Any:
    """The file as a ``pikepdf.Pdf``, decrypted where its password is empty.

    Raises:
        RefusedContent: it needs a password.
        DataError: it is no PDF, is damaged, or unpacks beyond measure.
    """
    pikepdf = import_pikepdf()
    if b"%PDF-" not in data[:1024]:
        raise DataError("not a PDF: it does not begin with %PDF-")
    try:
        pdf = pikepdf.open(io.BytesIO(data), suppress_warnings=True)
    except pikepdf.PasswordError:
        raise RefusedContent("an encrypted PDF cannot be treated; save it without its password first") from None
    except (pikepdf.PdfError, RuntimeError, ValueError, RecursionError) as error:
        raise DataError(f"not a PDF that can be read ({type(error).__name__})") from None
    try:
        if len(pdf.objects) > MAX_OBJECTS or len(pdf.pages) > MAX_PAGES:
            raise DataError(f"the PDF has more than {MAX_OBJECTS} objects or {MAX_PAGES} pages")
        _check_size(pdf, len(data))
    except DataError:
        raise
    except (pikepdf.PdfError, RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(f"the PDF is damaged ({type(error).__name__})") from None
    return pdf


def _check_size(pdf: Any, size: int) -> None:
    """Refuse what unpacks beyond measure before anything does."""
    pikepdf = import_pikepdf()
    total = 0
    for thing in pdf.objects:
        if not isinstance(thing, pikepdf.Stream) or thing.get("/Subtype") == "/Image":
            continue
        raw = thing.read_raw_bytes()
        filters = thing.get("/Filter", pikepdf.Array())
        names = [str(f) for f in filters] if isinstance(filters, pikepdf.Array) else [str(filters)]
        for name in names:
            if name not in ("/FlateDecode", "/Fl"):
                break
            unpacker = zlib.decompressobj()
            try:
                raw = unpacker.decompress(raw, MAX_WHOLE)
            except zlib.error:
                break  # qpdf reads what it can of damaged data, which is no more than this
            if unpacker.unconsumed_tail:
                raise DataError(f"a part of the PDF unpacks to more than {MAX_WHOLE} bytes")
        total += len(raw)
        check_ratio(size, total)
        if total > MAX_WHOLE:
            raise DataError(f"the PDF unpacks to more than {MAX_WHOLE} bytes")


def key_of(thing: Any) -> tuple[int, int]:
    """What tells an indirect object from others; (0, 0) for direct ones."""
    number, generation = thing.objgen
    return number, generation


def to_miner(thing: Any, depth: int = 0) -> Any:
    """A pikepdf object as pdfminer has it, everything in it direct."""
    import pikepdf
    from pdfminer.pdftypes import PDFStream
    from pdfminer.psparser import LIT

    if depth > 8:
        return None
    if isinstance(thing, pikepdf.Name):
        return LIT(str(thing)[1:])
    if isinstance(thing, pikepdf.String):
        return bytes(thing)
    if isinstance(thing, pikepdf.Array):
        return [to_miner(item, depth + 1) for item in thing]
    if isinstance(thing, pikepdf.Stream):
        skipped = ("/Filter", "/DecodeParms", "/Length")
        attributes = {k[1:]: to_miner(v, depth + 1) for k, v in thing.items() if k not in skipped}
        return PDFStream(attributes, thing.read_bytes())
    if isinstance(thing, pikepdf.Dictionary):
        left = ("/Parent", "/CharProcs", "/Resources")
        return {k[1:]: to_miner(v, depth + 1) for k, v in thing.items() if k not in left}
    if thing is None or isinstance(thing, bool | int):
        return thing
    return float(thing)

"""Open a PDF safely: encrypted files, bombs and broken files are refused. The packages are an extra."""

from __future__ import annotations

import base64
import io
import logging
import zlib
from collections.abc import Sequence
from typing import Any

import pikepdf
from pdfminer.pdftypes import PDFStream
from pdfminer.psparser import LIT

from allonym.errors import DataError, RefusedContent, hide_foreign_errors
from allonym.files.record import MAX_WHOLE, check_compression_ratio

MAX_OBJECTS = 2_000_000
MAX_PAGES = 20_000
MAX_DEPTH = 20
"""Greatest depth of nested objects and forms."""


for _name in ("pdfminer", "pikepdf", "pypdfium2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)  # their warnings may quote the file


def open_pdf(data: bytes) -> Any:
    """Open a file as a ``pikepdf.Pdf``, decrypted if its password is empty.

    Raises:
        RefusedContent: the file needs a password.
        DataError: it is not a PDF, is damaged, or unpacks to too much.
    """
    if b"%PDF-" not in data[:1024]:
        raise DataError("not a PDF: it does not begin with %PDF-")
    with hide_foreign_errors("not a PDF that can be read", pikepdf.PdfError, RuntimeError, ValueError, RecursionError):
        try:
            pdf = pikepdf.open(io.BytesIO(data), suppress_warnings=True)
        except pikepdf.PasswordError:
            raise RefusedContent("an encrypted PDF cannot be treated; save it without its password first") from None
    kinds = (pikepdf.PdfError, RuntimeError, ValueError, TypeError, LookupError, AttributeError)
    with hide_foreign_errors("the PDF is damaged", *kinds):
        if len(pdf.objects) > MAX_OBJECTS or len(pdf.pages) > MAX_PAGES:
            raise DataError(f"the PDF has more than {MAX_OBJECTS} objects or {MAX_PAGES} pages")
        _check_unpacked_size(pdf, len(data))
    return pdf


def _check_unpacked_size(pdf: Any, packed_size: int) -> None:
    """Refuse a file that unpacks to too much, before unpacking."""
    total = 0
    for thing in pdf.objects:
        if not isinstance(thing, pikepdf.Stream):
            continue
        if thing.get("/Subtype") == "/Image" and "/Width" in thing and "/Height" in thing:
            continue  # a picture, which is not unpacked; one without a width may be disguised content
        names = thing.get("/Filter", pikepdf.Array())
        filters = [str(n) for n in names] if isinstance(names, pikepdf.Array) else [str(names)]
        total += measure_unpacked_size(thing.read_raw_bytes(), filters)
        check_compression_ratio(packed_size, total)
        if total > MAX_WHOLE:
            raise DataError(f"the PDF unpacks to more than {MAX_WHOLE} bytes")


def measure_unpacked_size(raw: bytes, filters: Sequence[str]) -> int:
    """Return the greatest size of a stream with these filters in bytes.

    Raises:
        DataError: it is more than ``MAX_WHOLE``.
    """
    most = len(raw)
    for index, name in enumerate(filters):
        if name in ("/FlateDecode", "/Fl"):
            raw = _inflate_data(raw)
        elif name in ("/ASCII85Decode", "/A85", "/ASCIIHexDecode", "/AHx"):
            raw = _decode_ascii_filter(raw, name)
        elif name in ("/RunLengthDecode", "/RL", "/LZWDecode", "/LZW"):
            runs = name.startswith("/R")
            most = max(most, 64 * len(raw) if runs else max(_measure_lzw_unpacked_size(raw, e) for e in (0, 1)))
            if most > MAX_WHOLE:
                raise DataError(f"a part of the PDF unpacks to more than {MAX_WHOLE} bytes")
            if index + 1 < len(filters):
                raise RefusedContent(f"a part of the PDF is packed twice, with {name[1:]} first")
        else:
            break  # filters of pictures, which are not unpacked
        most = max(most, len(raw))
    return most


def _inflate_data(raw: bytes) -> bytes:
    """Unpack data with zlib, up to the damaged part, as qpdf does."""
    unpacker = zlib.decompressobj()
    out = bytearray()
    while raw and not unpacker.eof:
        try:
            block = unpacker.decompress(raw, 1 << 16)
        except zlib.error:
            break
        out += block
        if len(out) > MAX_WHOLE:
            raise DataError(f"a part of the PDF unpacks to more than {MAX_WHOLE} bytes")
        raw = unpacker.unconsumed_tail
    return bytes(out)


def _decode_ascii_filter(raw: bytes, filter_name: str) -> bytes:
    plain = bytes(raw).translate(None, b" \t\r\n\f\v\0")
    try:
        if filter_name in ("/ASCIIHexDecode", "/AHx"):
            digits = plain.partition(b">")[0]
            return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
        return base64.a85decode(plain.removeprefix(b"<~").partition(b"~")[0])
    except ValueError:
        raise DataError(f"a part of the PDF does not fit its filter {filter_name[1:]}") from None


def _measure_lzw_unpacked_size(raw: bytes, early_change: int) -> int:
    """Return the unpacked size of LZW data from the lengths of the table's entries."""
    lengths: list[int] = []
    size = before = bit_buffer = bits = 0
    for byte in raw:
        bit_buffer, bits = bit_buffer << 8 | byte, bits + 8
        width = min(12, (258 + early_change + len(lengths)).bit_length())
        if bits < width:
            continue
        bits -= width
        code, bit_buffer = bit_buffer >> bits, bit_buffer & ((1 << bits) - 1)
        if code == 256:
            lengths, before = [], 0
        elif code != 257:
            entry = code - 258
            now = 1 if entry < 0 else lengths[entry] if entry < len(lengths) else before + 1
            if before and len(lengths) < 4096:
                lengths.append(before + 1)
            size, before = size + now, now
    return size


def get_object_key(thing: Any) -> tuple[int, int]:
    """Return the key of an indirect object; (0, 0) for direct ones."""
    number, generation = thing.objgen
    return number, generation


def convert_to_pdfminer(thing: Any, depth: int = 0) -> Any:
    """Convert a pikepdf object to pdfminer's types, with all references resolved."""
    if depth > 8:
        return None
    if isinstance(thing, pikepdf.Name):
        return LIT(str(thing)[1:])
    if isinstance(thing, pikepdf.String):
        return bytes(thing)
    if isinstance(thing, pikepdf.Array):
        return [convert_to_pdfminer(item, depth + 1) for item in thing]
    if isinstance(thing, pikepdf.Stream):
        skipped = ("/Filter", "/DecodeParms", "/Length")
        attributes = {k[1:]: convert_to_pdfminer(v, depth + 1) for k, v in thing.items() if k not in skipped}
        return PDFStream(attributes, thing.read_bytes())
    if isinstance(thing, pikepdf.Dictionary):
        skipped_keys = ("/Parent", "/CharProcs", "/Resources")
        return {k[1:]: convert_to_pdfminer(v, depth + 1) for k, v in thing.items() if k not in skipped_keys}
    if thing is None or isinstance(thing, bool | int):
        return thing
    return float(thing)

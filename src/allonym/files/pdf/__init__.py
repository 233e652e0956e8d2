"""PDF: text is removed from the page content and its line set anew with the replacement; the rest of the page is kept.

Text is read as it is laid out: columns, tables, words split at line ends, forms, notes, hidden layers. Replaced text is
removed from the file, not hidden under a box. Metadata, attachments, thumbnails, comments, scripts, structure and
earlier revisions are removed. Pictures become grey boxes unless you choose otherwise. Several readers then read the
result; if any of them can still read a replaced text, the file is refused. Where a replacement has no room a short form
such as ``[P6]`` stands, and a last page explains it. Scans, and pages whose fonts do not tell their letters, are read
by OCR (extra ``ocr``) and become pictures.
"""

from __future__ import annotations

from allonym.errors import require_extra
from allonym.files.record import Chunk, Format, Job, ParsedChunk


def _parse_pdf(chunk: Chunk, job: Job) -> ParsedChunk:
    with require_extra("PDF", "pdf"):
        import pikepdf  # noqa: F401

        from allonym.files.pdf.editor import parse_pdf
    return parse_pdf(chunk, job)


PDF = Format("pdf", _parse_pdf)

"""The formats, by suffix or by name."""

from __future__ import annotations

from pathlib import PurePath
from typing import cast

from allonym.errors import DataError, UnknownNameError
from allonym.files.record import Format
from allonym.registry import Registry

readers = Registry(
    "reader",
    {
        "txt": "allonym.files.text:TEXT",
        "md": "allonym.files.text:MARKDOWN",
        "jsonl": "allonym.files.jsonrecords:JSONL",
        "json": "allonym.files.jsonrecords:JSON",
        "csv": "allonym.files.table:CSV",
        "tsv": "allonym.files.table:TSV",
        "parquet": "allonym.files.parquet:PARQUET",
        "html": "allonym.files.markup:HTML",
        "eml": "allonym.files.mail:EML",
        "msg": "allonym.files.msg:MSG",
        "mbox": "allonym.files.mail:MBOX",
        "ics": "allonym.files.calendars:ICS",
        "vcf": "allonym.files.calendars:VCF",
        "docx": "allonym.files.docx:DOCX",
        "xlsx": "allonym.files.xlsx:XLSX",
        "pptx": "allonym.files.pptx:PPTX",
        "odt": "allonym.files.odf:ODT",
        "ods": "allonym.files.odf:ODS",
        "odp": "allonym.files.odf:ODP",
        "pdf": "allonym.files.pdf:PDF",
        "png": "allonym.files.picturefile:PNG",
        "jpg": "allonym.files.picturefile:JPEG",
        "xml": "allonym.files.structured:XML",
        "yaml": "allonym.files.structured:YAML",
        "ipynb": "allonym.files.structured:IPYNB",
        "rtf": "allonym.files.rtf:RTF",
        "zip": "allonym.files.archive:ZIP",
        "epub": "allonym.files.archive:EPUB",
        "doc": "allonym.files.legacy:DOC",
        "xls": "allonym.files.legacy:XLS",
        "ppt": "allonym.files.legacy:PPT",
        "srt": "allonym.files.text:SRT",
        "vtt": "allonym.files.text:VTT",
    },
)
"""Formats, see :class:`allonym.files.record.Format`."""

SUFFIXES = {
    "text": "txt",
    "markdown": "md",
    "ndjson": "jsonl",
    "jsonlines": "jsonl",
    "tab": "tsv",
    "pq": "parquet",
    "htm": "html",
    "xhtml": "html",
    "jpeg": "jpg",
    "ical": "ics",
    "vcard": "vcf",
    **dict.fromkeys(
        "log env toml ini cfg conf properties py js ts java c h cpp cs go rs rb php sh sql rst tex".split(), "txt"
    ),
    "yml": "yaml",
    "ott": "odt",
    "ots": "ods",
    "otp": "odp",
    **dict.fromkeys(("docm", "dotx", "dotm"), "docx"),
    **dict.fromkeys(("xlsm", "xltx", "xltm"), "xlsx"),
    **dict.fromkeys(("pptm", "ppsx", "ppsm", "potx", "potm"), "pptx"),
}
"""Suffixes other than the formats' own names."""

MEDIA_TYPES = {
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "eml": "message/rfc822",
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
    "gz": "application/gzip",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "rtf": "application/rtf",
    "epub": "application/epub+zip",
    "ics": "text/calendar",
    "vcf": "text/vcard",
    "xml": "application/xml",
    "parquet": "application/vnd.apache.parquet",
}
"""Media types of files by suffix."""


def get_format(name: str) -> Format:
    """Return the format called ``name``; raises :class:`UnknownNameError` with near matches."""
    lower = name.lower().lstrip(".")
    return cast(Format, readers.get(SUFFIXES.get(lower, lower)))


def format_of(name: str, format: str | None = None) -> tuple[Format, bool]:
    """Return the format for a file's name, and whether the file is packed with gzip (``.gz``).

    ``format`` overrides the suffix.

    Raises:
        DataError: no format has this suffix.
    """
    path = PurePath(name)
    packed = path.suffix.lower() == ".gz"
    if format:
        return get_format(format), packed
    inner = PurePath(path.stem) if packed else path
    suffix = (inner.suffix or (inner.name if inner.name.startswith(".") else "")).lower().lstrip(".")
    try:
        return get_format(suffix), packed
    except UnknownNameError:
        pass
    format_names = ", ".join(readers.names())
    what = f"the suffix .{suffix}" if suffix else "files without suffix"
    raise DataError(f"no format for {what}; --format NAME (format=... in Python) sets one of: {format_names}")

"""A file that a person works with: its texts, and the file again with plans applied. Nothing of it is kept.

All of this runs in a worker, for a limited time and with limited memory: other people's files may be made to harm.
"""

from __future__ import annotations

import io
import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any

from allonym.batch import RECORD_ERRORS
from allonym.document import Document
from allonym.errors import DataError, PlanMismatch, RequestError, hide_foreign_errors, require_extra
from allonym.files.formats import format_of
from allonym.files.record import Chunk, Draft, Failure, Job, ParsedChunk, render_and_verify_draft
from allonym.plan import Plan, apply_parts
from allonym.policy import Policy
from allonym.server.wire import texts as wire
from allonym.server.wire.base import Place

FORMATS = (
    "txt", "md", "docx", "pdf", "jsonl", "json", "csv", "tsv", "html", "eml", "xlsx", "srt", "vtt", "pptx", "odt",
    "ods", "odp", "rtf", "epub", "ics", "vcf", "xml", "yaml", "ipynb",
)  # fmt: skip
"""The formats that are read and written."""

MOST_DOCUMENTS = 10_000
MOST_PAGES = 2_000
SECONDS = 30.0
MEMORY = 1 << 30
"""Bytes that a worker may use for a file, beyond those that it used before."""


def read_file_texts(data: bytes, file_name: str, max_chars: int) -> wire.FileTexts:
    """Read the texts of a file: runs in a worker.

    Args:
        data: the file.
        file_name: its name; the suffix says the format.
        max_chars: characters that all its texts may have.

    Raises:
        DataError: the file cannot be read, or not safely.
        RequestError: it holds too much (413).
    """
    with limit_resources():
        kind, chunks = _parse_file_chunks(data, file_name)
        documents = _list_documents(chunks)
    if len(documents) > MOST_DOCUMENTS or sum(len(d.text) for d in documents) > max_chars:
        raise RequestError(
            f"a file has at most {max_chars} characters and {MOST_DOCUMENTS} records here; send a larger one as a job",
            413,
            "TooLarge",
        )
    for number, document in enumerate(documents, 1):
        try:
            document.text.encode()
        except UnicodeEncodeError:
            raise DataError(f"record {number} holds half a surrogate pair, which is no text") from None
    if kind == "pdf" and not any(document.text.strip() for document in documents):
        raise DataError("the PDF holds no text; a scanned one has to go through text recognition first")
    ids = _list_ids_or_numbers(documents)
    texts = [_make_file_text(id, document) for id, document in zip(ids, documents, strict=True)]
    return wire.FileTexts(name=file_name, format=kind, saveable=True, documents=texts)


def _make_file_text(document_id: str, document: Document) -> wire.FileText:
    turns = []
    for turn in document.turns:
        speaker = Place(start=turn.speaker[0], end=turn.speaker[1]) if turn.speaker else None
        turns.append(wire.FileTurn(start=turn.start, end=turn.end, speaker=speaker))
    return wire.FileText(id=document_id, text=document.text, turns=turns or None)


def apply_plans_to_file(data: bytes, file_name: str, plans: Mapping[str, Plan]) -> bytes:
    """Apply each document's plan and return the file: runs in a worker.

    Args:
        data, file_name: as for :func:`read_file_texts`.
        plans: by the document's id, for all documents of the file.

    Raises:
        RefusedContent: the format cannot be written, or the result still holds a text that a plan covers.
        PlanMismatch: a plan is missing, is for no document of the file, or for another text.
        DataError: the file cannot be read.
    """
    with limit_resources():
        _, chunks = _parse_file_chunks(data, file_name)
        ids = _list_ids_or_numbers(_list_documents(chunks))
        missing = sum(id not in plans for id in ids)
        if missing or len(plans) > len(ids):
            raise PlanMismatch(f"the file has {len(ids)} documents, and {len(ids) - missing} of {len(plans)} plans fit")
        remaining = iter(ids)
        return b"".join(_apply_plans_to_chunk(parsed, remaining, plans) for parsed in chunks)


def get_readable_format_name(file_name: str) -> str:
    """The name of the format that a file's suffix asks for.

    Raises:
        DataError: the format is none of ``FORMATS``, or the file is packed.
    """
    if PurePosixPath(file_name).suffix.lower() == ".gz":
        raise DataError("a packed file is not read here; unpack it, or send it as a job")
    kind, _ = format_of(file_name)
    if kind.name not in FORMATS:
        raise DataError(f"{kind.name} is not read here, send it as a job; read here: {', '.join(FORMATS)}")
    return kind.name


def _parse_file_chunks(data: bytes, file_name: str) -> tuple[str, list[ParsedChunk]]:
    """Return the name of the file's format, and its chunks."""
    kind, _ = format_of(f"file.{get_readable_format_name(file_name)}")
    job = Job(Policy.load("default"))
    parsed_chunks: list[ParsedChunk] = []
    line = 0
    with hide_foreign_errors(f"the file cannot be read as {kind.name}", *RECORD_ERRORS):
        if kind.name == "pdf":
            _check_pdf_page_count(data)
        single = [Chunk(data, end=len(data))]
        for chunk in kind.chunks(io.BytesIO(data), job, max(1, len(data)), 0) if kind.chunks else single:
            parsed = kind.parse(chunk, job)
            for piece in parsed.pieces:
                if isinstance(piece, Failure):
                    raise DataError(f"{kind.unit} {line + piece.line}: {piece.reason}")
            parsed_chunks.append(parsed)
            line += parsed.lines
    return kind.name, parsed_chunks


def _check_pdf_page_count(data: bytes) -> None:
    with require_extra("PDF", "pdf"):
        from allonym.files.pdf.objects import open_pdf
    with open_pdf(data) as pdf:
        if len(pdf.pages) > MOST_PAGES:
            raise RequestError(
                f"a PDF has at most {MOST_PAGES} pages here; send a longer one as a job", 413, "TooLarge"
            )


def _list_documents(chunks: list[ParsedChunk]) -> list[Document]:
    pieces = (piece for parsed in chunks for piece in parsed.pieces)
    return [piece.document for piece in pieces if isinstance(piece, Draft) and piece.counted]


def _list_ids_or_numbers(documents: list[Document]) -> list[str]:
    """The documents' own ids where all have one and no two the same; else their numbers, from 1."""
    ids = [document.id for document in documents]
    return ids if all(ids) and len(set(ids)) == len(ids) else [str(n) for n in range(1, len(ids) + 1)]


def _apply_plans_to_chunk(parsed: ParsedChunk, ids: Iterator[str], plans: Mapping[str, Plan]) -> bytes:
    written: list[bytes | None] = []
    for piece in parsed.pieces:
        if isinstance(piece, bytes):
            written.append(piece)
        elif isinstance(piece, Draft) and piece.counted:
            plan = plans[next(ids)]
            edits = ((edit.start, edit.end, edit.replacement) for edit in plan.edits)
            written.append(render_and_verify_draft(piece, apply_parts(piece.document, plan), edits))
        elif isinstance(piece, Draft):
            written.append(piece.render(piece.document.part_texts()))
    return parsed.join_pieces(written)


@contextmanager
def limit_resources(seconds: float = SECONDS, memory_bytes: int = MEMORY) -> Iterator[None]:
    """Stop a block that takes longer, or more memory. It runs in the main thread of a worker.

    Raises:
        DataError: the block was stopped.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = used + memory_bytes
    before = signal.signal(signal.SIGALRM, _raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except _Late:
        raise DataError(f"reading the file takes longer than {seconds:g} s; send it as a job") from None
    except MemoryError:
        raise DataError("reading the file takes too much memory") from None
    finally:
        signal.signal(signal.SIGALRM, before)


class _Late(BaseException):
    """The timer went off. It is no ``Exception``, so that no package catches it by accident."""


def _raise_timeout(signal_number: int, frame: FrameType | None) -> Any:
    raise _Late

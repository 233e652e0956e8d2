"""A file that a person works with: its texts, and the file again with plans carried out. Nothing of it is kept.

All of this runs in a worker, for a bounded time and with a bounded memory: other people's files may be made to hurt.
"""

from __future__ import annotations

import io
import logging
import resource
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any

from allonym.batch import RECORD_ERRORS
from allonym.document import Document, Turn
from allonym.errors import DataError, MissingExtra, PlanMismatch, RefusedContent, RequestError
from allonym.files.formats import format_of
from allonym.files.record import Chunk, Draft, Failure, Job, Parsed, rendered
from allonym.plan import Plan, apply_parts
from allonym.policy import Policy

FORMATS = ("txt", "md", "docx", "pdf", "jsonl", "json", "csv", "tsv", "html", "eml", "xlsx", "srt", "vtt")
"""What is read; all but ``pdf`` is written too."""

MOST_BYTES = 32 << 20
"""Of a file. Larger ones are treated as a job."""

MOST_DOCUMENTS = 10_000
MOST_PAGES = 2_000
SECONDS = 30.0
MEMORY = 1 << 30
"""Bytes that a worker may take for a file, beyond those that it had."""


@dataclass(frozen=True, slots=True)
class Text:
    """One document of a file: its id, unique within the file, its text, and its turns where it is a conversation."""

    id: str
    text: str = field(repr=False)
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Texts:
    """What a file holds."""

    format: str
    saveable: bool
    documents: tuple[Text, ...]


def read(data: bytes, name: str, most: int) -> Texts:
    """The texts of a file: runs in a worker.

    Args:
        data: the file.
        name: its name; the suffix says the format.
        most: characters that all its texts may have.

    Raises:
        DataError: the file cannot be read, or not safely.
        RequestError: it holds too much (413).
    """
    with bounded():
        if suffix(name) == "pdf":
            return Texts("pdf", False, (Text("1", _pdf_text(data, most)),))
        kind, chunks = _parsed(data, name)
        documents = [piece.document for _, drafts in chunks for piece in drafts]
    if len(documents) > MOST_DOCUMENTS or sum(len(d.text) for d in documents) > most:
        raise RequestError(
            f"a file has at most {most} characters and {MOST_DOCUMENTS} records here; send a larger one as a job",
            413,
            "TooLarge",
        )
    for number, document in enumerate(documents, 1):
        try:
            document.text.encode()
        except UnicodeEncodeError:
            raise DataError(f"record {number} holds half a surrogate pair, which is no text") from None
    ids = _ids(documents)
    return Texts(kind, True, tuple(Text(i, d.text, d.turns) for i, d in zip(ids, documents, strict=True)))


def carried_out(data: bytes, name: str, plans: Mapping[str, Plan]) -> bytes:
    """The file with each document's plan carried out: runs in a worker.

    Args:
        data, name: as for :func:`read`.
        plans: by the document's id, for all documents of the file.

    Raises:
        RefusedContent: the format cannot be written, or what was written still holds a text that a plan covers.
        PlanMismatch: a plan is missing, is for no document of the file, or for another text.
        DataError: the file cannot be read.
    """
    with bounded():
        if suffix(name) == "pdf":
            raise RefusedContent("a PDF is read, not written; save its text as TXT")
        _, chunks = _parsed(data, name)
        ids = _ids([piece.document for _, drafts in chunks for piece in drafts])
        missing = sum(one not in plans for one in ids)
        if missing or len(plans) > len(ids):
            raise PlanMismatch(f"the file has {len(ids)} documents, and {len(ids) - missing} of {len(plans)} plans fit")
        names = iter(ids)
        return b"".join(_written(parsed, names, plans) for parsed, _ in chunks)


def suffix(name: str) -> str:
    """The format that a file's name asks for.

    Raises:
        DataError: none of ``FORMATS``, or it is packed.
    """
    last = PurePosixPath(name).suffix.lower().lstrip(".")
    if last == "pdf":
        return last
    if last == "gz":
        raise DataError("a packed file is not read here; unpack it, or send it as a job")
    kind, _ = format_of(name)
    if kind.name not in FORMATS:
        raise DataError(f"{kind.name} is not read here, send it as a job; read here: {', '.join(FORMATS)}")
    return kind.name


def _parsed(data: bytes, name: str) -> tuple[str, list[tuple[Parsed, list[Draft]]]]:
    """The file's format, and its chunks taken apart with the drafts in each."""
    kind, _ = format_of(f"file.{suffix(name)}")
    job = Job(Policy.load("default"))
    out: list[tuple[Parsed, list[Draft]]] = []
    line = 0
    try:
        whole = [Chunk(data, end=len(data))]
        chunks = whole if kind.chunks is None else kind.chunks(io.BytesIO(data), job, max(1, len(data)), 0)
        for chunk in chunks:
            parsed = kind.parse(chunk, job)
            for piece in parsed.pieces:
                if isinstance(piece, Failure):
                    raise DataError(f"{kind.unit} {line + piece.line}: {piece.reason}")
            out.append((parsed, [piece for piece in parsed.pieces if isinstance(piece, Draft) and piece.counted]))
            line += parsed.lines
    except (DataError, RequestError):
        raise
    except RECORD_ERRORS as error:
        raise DataError(f"the file cannot be read as {kind.name}: {type(error).__name__}") from None
    return kind.name, out


def _ids(documents: list[Document]) -> list[str]:
    """The documents' own ids where all have one and no two the same; else their numbers, from 1."""
    own = [document.id for document in documents]
    return own if all(own) and len(set(own)) == len(own) else [str(n) for n in range(1, len(own) + 1)]


def _written(parsed: Parsed, ids: Iterator[str], plans: Mapping[str, Plan]) -> bytes:
    out: list[bytes | None] = []
    for piece in parsed.pieces:
        if isinstance(piece, Draft):
            document = piece.document
            if not piece.counted:
                out.append(piece.render(document.part_texts()))
                continue
            plan = plans[next(ids)]
            parts = apply_parts(document, plan)
            out.append(rendered(piece, parts, [(e.start, e.end) for e in plan.edits if e.start < e.end]))
        elif isinstance(piece, bytes):
            out.append(piece)
    return parsed.join(out) if parsed.join else b"".join(piece for piece in out if piece is not None)


def _pdf_text(data: bytes, most: int) -> str:
    """The text of a PDF's pages. What is drawn, scanned or attached is no text, and not read."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        raise MissingExtra("reading PDF", "server") from None
    if not data.startswith(b"%PDF-"):
        raise DataError("not a PDF file")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)  # its warnings may quote the file
    pages: list[str] = []
    size = 0
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            raise RefusedContent("an encrypted PDF is not read")
        if len(reader.pages) > MOST_PAGES:
            raise RequestError(f"a PDF has at most {MOST_PAGES} pages here", 413, "TooLarge")
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            size += len(pages[-1])
            if size > most:
                raise RequestError(f"a file has at most {most} characters of text here", 413, "TooLarge")
    except (DataError, RequestError):
        raise
    except (PyPdfError, OSError, AttributeError, AssertionError, *RECORD_ERRORS) as error:
        raise DataError(f"the PDF is broken, or made in a way that is not read: {type(error).__name__}") from None
    text = "\n\n".join(page for page in pages if page)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # fonts may name half a pair
    if not text:
        raise DataError("the PDF holds no text; a scanned one has to go through text recognition first")
    return text


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Ends what takes longer, or more memory: for the one thread of a worker.

    Raises:
        DataError: it did.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = taken + memory
    before = signal.signal(signal.SIGALRM, _late)
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
    """Raised by the clock; no ``except Exception`` of a package takes it for its own."""


def _late(signal_number: int, frame: FrameType | None) -> Any:
    raise _Late

"""Files within files: a file of any format as one draft of the file that holds it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from allonym.document import PROSE, Document, Turn
from allonym.errors import RefusedContent
from allonym.files.record import (
    Chunk,
    Draft,
    Failure,
    Format,
    Job,
    ParsedChunk,
    Tally,
    list_changed_words,
    render_and_verify_draft,
)


def join_documents(documents: Sequence[Document], before: Iterable[str]) -> Document:
    """Return one document of all parts of others, so that they share entities; ``before`` each stands a separator.

    Terms that their metadata lists hold for the whole document.
    """
    texts: list[str] = []
    parts: list[tuple[int, int]] = []
    turns: list[Turn] = []
    roles: list[str] = []
    meta: dict[str, object] = {}
    start = 0
    for document, separator in zip(documents, before, strict=True):
        lead = separator if texts else ""
        start += len(lead)
        intervals = document.parts or ((0, len(document.text)),)
        parts += ((a + start, b + start) for a, b in intervals)
        roles += document.roles or [PROSE] * len(intervals)
        for turn in document.turns:
            speaker = turn.speaker and (turn.speaker[0] + start, turn.speaker[1] + start)
            turns.append(Turn(turn.start + start, turn.end + start, speaker))
        for key, value in document.meta.items():
            meta[key] = [meta[key], value] if key in meta else value
        texts += (lead, document.text)
        start += len(document.text)
    return Document("", "".join(texts), meta, tuple(parts), tuple(turns), tuple(roles))


def take_parts(upcoming: Iterator[str], document: Document) -> tuple[str, ...]:
    """Return the next new parts, as many as a document needs."""
    return tuple(islice(upcoming, len(document.parts) or 1))


def parse_embedded_file(data: bytes, kind: Format, job: Job, tally: Tally) -> Draft:
    """Return a file of any format as one draft; what its parts are is counted in ``tally``.

    Raises:
        DataError: it cannot be read as a whole, or has content that cannot be treated.
    """
    job = replace(job, fields=())
    chunks: Iterable[Chunk] = [Chunk(data, end=len(data))]
    if kind.chunks is not None:
        chunks = kind.chunks(io.BytesIO(data), job, max(len(data), 1), 0)
    parsed = [kind.parse(chunk, job) for chunk in chunks]
    pieces = [piece for chunk in parsed for piece in chunk.pieces]
    for piece in pieces:
        if isinstance(piece, Failure):
            raise RefusedContent(f"{kind.unit} {piece.line}: {piece.reason}")
    for chunk in parsed:
        tally.add(chunk.tally)
    drafts = [piece for piece in pieces if isinstance(piece, Draft)]
    document = join_documents([draft.document for draft in drafts], ["\n"] * len(drafts))
    return Draft(document, lambda parts: _write_chunks(parsed, kind, parts))


def _write_chunks(parsed: Sequence[ParsedChunk], kind: Format, parts: Sequence[str]) -> bytes:
    upcoming = iter(parts)
    stream = io.BytesIO()
    writer = kind.writer(stream) if kind.writer is not None else None
    for chunk in parsed:
        written: list[bytes | None] = []
        for piece in chunk.pieces:
            if isinstance(piece, Draft):
                mine = take_parts(upcoming, piece.document)
                written.append(render_and_verify_draft(piece, mine, list_changed_words(piece.document, mine)))
            elif isinstance(piece, bytes):
                written.append(piece)
        (writer or stream).write(chunk.join_pieces(written))
    if writer is not None:
        writer.write_end()
    return stream.getvalue()

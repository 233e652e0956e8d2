"""Plain text and Markdown: each file is a document; a transcript with ``Name: text`` lines is a conversation."""

from __future__ import annotations

from allonym.detect.turns import add_turns
from allonym.document import Document
from allonym.files.encoding import decode_file
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk


def read_transcript(text: str, id: str = "") -> Document:
    """Return a document with exactly this text, and with turns if it is a transcript of ``Name: text`` lines."""
    return add_turns(Document(id, text))


def _parse_text(chunk: Chunk, job: Job) -> ParsedChunk:
    text, encoding = decode_file(chunk.data)
    return ParsedChunk([Draft(read_transcript(text), lambda parts: encoding.encode_file(parts[0]))])


TEXT = Format("txt", _parse_text)
MARKDOWN = Format("md", _parse_text)

"""Plain text and Markdown: each file is a document; a transcript with ``Name: text`` lines is a conversation."""

from __future__ import annotations

from dataclasses import replace

from allonym.detect.turns import find_turns
from allonym.document import Document
from allonym.files.encoding import decode_file
from allonym.files.record import Chunk, Draft, Format, Job, Parsed


def read_transcript(text: str, id: str = "") -> Document:
    """Return a document with exactly this text, and with turns if it is a transcript of ``Name: text`` lines."""
    document = Document(id, text)
    turns = find_turns(text)
    return replace(document, turns=turns) if turns else document


def _parse_text(chunk: Chunk, job: Job) -> Parsed:
    text, encoding = decode_file(chunk.data)
    return Parsed([Draft(read_transcript(text), lambda parts: encoding.encode_file(parts[0]))])


TEXT = Format("txt", _parse_text)
MARKDOWN = Format("md", _parse_text)

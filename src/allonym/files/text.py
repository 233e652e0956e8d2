"""Plain text and Markdown: a file is a document; a transcript with ``Name: text`` lines is a conversation."""

from __future__ import annotations

import re
from dataclasses import replace

from allonym.document import Document, Turn
from allonym.files.encoding import decode
from allonym.files.record import Chunk, Draft, Format, Job, Parsed

_SPEAKER = re.compile(r"^[ \t]*([^\W\d_][\w .'’()-]{0,39}?)[ \t]*:(?=[ \t]|$)", re.MULTILINE)
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
MIN_TURNS = 2
MIN_SHARE = 0.6


def find_turns(text: str) -> tuple[Turn, ...]:
    """The turns of a transcript; empty where fewer than two, or under 60 % of the non-empty lines, begin ``Name:``."""
    if ":" not in text:
        return ()
    marks = list(_SPEAKER.finditer(text))
    if len(marks) < MIN_TURNS or len(marks) < MIN_SHARE * sum(1 for _ in _LINE.finditer(text)):
        return ()
    turns = []
    for i, mark in enumerate(marks):
        end = marks[i + 1].start() if i + 1 < len(marks) else len(text)
        start = mark.end()
        while start < end and text[start] in " \t":
            start += 1
        while end > start and text[end - 1] in " \t\r\n":
            end -= 1
        turns.append(Turn(start, end, mark.span(1)))
    return tuple(turns)


def read_transcript(text: str, id: str = "") -> Document:
    """A document with exactly this text, and with turns where it is a transcript of ``Name: text`` lines."""
    document = Document(id, text)
    turns = find_turns(text)
    return replace(document, turns=turns) if turns else document


def _parse(chunk: Chunk, job: Job) -> Parsed:
    text, encoding = decode(chunk.data)

    def render(parts: tuple[str, ...]) -> bytes:
        return encoding.mark + encoding.encode(parts[0])

    return Parsed([Draft(read_transcript(text), render)])


TEXT = Format("txt", _parse)
MARKDOWN = Format("md", _parse)

"""SRT and WebVTT: the cues of a file form one document; times, numbers and styling stay.

``<v Name>`` tags and ``Name:`` prefixes are speakers. Notes, titles and named cues are text like any other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from allonym.detect.turns import find_turns
from allonym.files.encoding import decode
from allonym.files.record import Chunk, Draft, Format, Job, Parsed
from allonym.files.segments import Segment, same, splice, to_document

_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->")
_LINE = re.compile(r"[^\r\n]*")
_TAG = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+(?P<voice>[^>]*)>|</?[a-zA-Z][^<>]*>|<[\d:.]+>|</?[a-z]>|\{\\[^}]*\}")
_NUMBER = re.compile(r"[ \t]*\d*[ \t]*")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def segments(text: str, web: bool) -> Iterator[Segment]:
    """The texts of a subtitle file, in order."""
    code, read = (_escape, html.unescape) if web else (same, same)
    gap = "\n"
    first = True
    for match in _LINE.finditer(text):
        start, end = match.span()
        if start == end:
            continue
        line = match.group()
        begins, first = first, False
        if _TIMES.match(line) or _NUMBER.fullmatch(line):
            continue
        if web and begins and line.startswith("WEBVTT"):
            start += len("WEBVTT")
        at = start
        for tag in _TAG.finditer(text, start, end):
            if tag.start() > at:
                yield Segment(at, tag.start(), read(text[at : tag.start()]), code, gap)
                gap = ""
            if tag["voice"]:
                a, b = tag.span("voice")
                yield Segment(a, b, read(text[a:b]), code, "\n", speaker=True)
                gap = ": "
            at = tag.end()
        if at < end:
            yield Segment(at, end, read(text[at:end]), code, gap)
        gap = "\n"


def _parse(chunk: Chunk, job: Job, web: bool) -> Parsed:
    text, encoding = decode(chunk.data)
    found = list(segments(text, web))
    document = to_document(found)
    if not document.turns:
        document = replace(document, turns=find_turns(document.text))

    def render(parts: tuple[str, ...]) -> bytes:
        return encoding.mark + encoding.encode(splice(text, found, parts if found else ()))

    return Parsed([Draft(document, render)])


SRT = Format("srt", partial(_parse, web=False))
VTT = Format("vtt", partial(_parse, web=True))

"""SRT and WebVTT: the cues of a file form one document; times, numbers and styling are kept.

``<v Name>`` tags and ``Name:`` prefixes are read as speakers. Notes, titles and named cues are read like other text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from allonym.detect.turns import find_turns
from allonym.files.encoding import decode_file
from allonym.files.record import Chunk, Draft, Format, Job, Parsed
from allonym.files.segments import Segment, keep_text, splice_segments, to_document

_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->")
_LINE = re.compile(r"[^\r\n]*")
_TAG = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+(?P<voice>[^>]*)>|</?[a-zA-Z][^<>]*>|<[\d:.]+>|</?[a-z]>|\{\\[^}]*\}")
_NUMBER = re.compile(r"[ \t]*\d*[ \t]*")


def _escape_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def find_segments(text: str, web: bool) -> Iterator[Segment]:
    """Return the texts of a subtitle file, in order."""
    code, read = (_escape_text, html.unescape) if web else (keep_text, keep_text)
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
        position = start
        for tag in _TAG.finditer(text, start, end):
            if tag.start() > position:
                yield Segment(position, tag.start(), read(text[position : tag.start()]), code, gap)
                gap = ""
            if tag["voice"]:
                a, b = tag.span("voice")
                yield Segment(a, b, read(text[a:b]), code, "\n", speaker=True)
                gap = ": "
            position = tag.end()
        if position < end:
            yield Segment(position, end, read(text[position:end]), code, gap)
        gap = "\n"


def _parse_subtitles(chunk: Chunk, job: Job, web: bool) -> Parsed:
    text, encoding = decode_file(chunk.data)
    segments = list(find_segments(text, web))
    document = to_document(segments)
    if not document.turns:
        document = replace(document, turns=find_turns(document.text))

    def render_subtitles(parts: tuple[str, ...]) -> bytes:
        return encoding.mark + encoding.encode(splice_segments(text, segments, parts if segments else ()))

    return Parsed([Draft(document, render_subtitles)])


SRT = Format("srt", partial(_parse_subtitles, web=False))
VTT = Format("vtt", partial(_parse_subtitles, web=True))

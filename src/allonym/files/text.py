"""Plain text, Markdown and subtitles: each file is a document, with turns if it names speakers.

A transcript with ``Name: text`` lines is a conversation. The cues of an SRT or WebVTT file form one document; times,
numbers and styling are kept. ``<v Name>`` tags and ``Name:`` prefixes are read as speakers. Notes, titles and named
cues are read like other text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial

from allonym.detection.turns import add_turns
from allonym.document import Document
from allonym.files.encoding import count_encoding, decode_file
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk
from allonym.files.segments import Segment, parse_segments

_TIME = r"[ \t]*(?:\d+:)?\d+:\d+[.,]\d+"
_TIMES = re.compile(
    rf"{_TIME}[ \t]*-->{_TIME}(?:[ \t]+(?:[XY][12]:\d+|(?:line|position|size|align|vertical):[\w.,%-]+)(?!\S))*[ \t]*"
)
_LINE = re.compile(r"[^\r\n]*")
_TAG = re.compile(
    r"""<v(?:\.[\w-]*)*[ \t]++(?P<voice>[^<>]*)>
    | </?(?i:b|i|u|s|em|strong|c|v|ruby|rt|lang|font)(?:\.[\w-]*)*
      (?:[ \t]+(?:[a-z]{2,3}(?:-\w{2,8})*|(?i:color|face|size)=(?:"[\w\ #,-]*"|'[\w\ #,-]*'|[\w#-]+)))*[ \t]*/?>
    | <[\d:.]+> | \{(?:\\[a-zA-Z]{1,4}+[\d&(),.A-F-]*+)+\}""",
    re.X,
)
"""What is no text: tags that subtitles have, with the attributes that these have, and codes such as ``{\\an8}``."""
_NUMBER = re.compile(r"[ \t]*\d*[ \t]*")


def read_transcript(text: str, id: str = "") -> Document:
    """Return a document with exactly this text, and with turns if it is a transcript of ``Name: text`` lines."""
    return add_turns(Document(id, text))


def _parse_text(chunk: Chunk, job: Job) -> ParsedChunk:
    text, encoding = decode_file(chunk.data)
    draft = Draft(read_transcript(text), lambda parts: encoding.encode_file(parts[0]))
    return ParsedChunk([draft], tally=count_encoding(encoding))


TEXT = Format("txt", _parse_text)
MARKDOWN = Format("md", _parse_text)


def find_subtitle_segments(text: str, is_webvtt: bool) -> Iterator[Segment]:
    """Return the texts of a subtitle file, in order."""
    code, read = (partial(html.escape, quote=False), html.unescape) if is_webvtt else (str, str)
    gap = "\n"
    first = True
    for match in _LINE.finditer(text):
        start, end = match.span()
        if start == end:
            continue
        line = match.group()
        begins, first = first, False
        if _NUMBER.fullmatch(line):
            continue
        if times := _TIMES.match(line):
            start += times.end()
        if is_webvtt and begins and line.startswith("WEBVTT"):
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


_parse_subtitles = partial(parse_segments, transcript=True)
SRT = Format("srt", partial(_parse_subtitles, find_segments=partial(find_subtitle_segments, is_webvtt=False)))
VTT = Format("vtt", partial(_parse_subtitles, find_segments=partial(find_subtitle_segments, is_webvtt=True)))

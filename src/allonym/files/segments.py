"""Segments: pieces of text inside a source with other syntax, and text files that consist of them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from allonym.detection.turns import find_turns
from allonym.document import PROSE, Document, Turn, splice_text
from allonym.files.encoding import Encoding, count_encoding, decode_file
from allonym.files.record import Chunk, Draft, Job, ParsedChunk, Tally

Change = tuple[int, int, str]
"""Half-open offsets in a text, and what takes the place."""

_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
"""A reference as :func:`html.unescape` reads it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text in a source.

    Attributes:
        start, end: half-open offsets in the source.
        text: its text without escapes.
        encode: escapes a text for this segment; by default it stays as it is.
        has_references: whether the source writes characters as references of HTML, such as ``&eacute;``.
        before: the separator from the previous segment, as a reader sees it.
        speaker: whether it names the speaker of the segments up to the next speaker.
        role: as in :class:`~allonym.document.Document`.
        fixed: what is written in any case, such as a grey picture; None: the anonymised text.
    """

    start: int
    end: int
    text: str = field(repr=False)
    encode: Callable[[str], str] = field(default=str, repr=False)
    before: str = "\n"
    speaker: bool = False
    role: str = PROSE
    fixed: str | None = field(default=None, repr=False)
    has_references: bool = False


def to_document(segments: Sequence[Segment]) -> Document:
    """Return a document whose parts are the segments, in order, with a turn for each speaker."""
    separators = [s.before for s in segments[1:]] + [""] if segments else []
    texts, roles = [s.text for s in segments], [s.role for s in segments]
    document = Document.from_parts("", texts, separators=separators, roles=roles)
    heads = [i for i, s in enumerate(segments) if s.speaker]
    if not heads:
        return document
    turns = []
    for head, last in pairwise([*heads, len(segments)]):
        speaker_part = document.parts[head]
        spoken = document.parts[head + 1 : last] or (speaker_part[1:] + speaker_part[1:],)
        turns.append(Turn(spoken[0][0], spoken[-1][1], speaker_part))
    return replace(document, turns=tuple(turns))


def splice_segments(
    source: str, segments: Sequence[Segment], parts: Sequence[str], edits: Sequence[Sequence[Change]] = ()
) -> str:
    """Return the source with the segments' new texts; unchanged segments keep their characters.

    ``edits``: for each segment, the changes of its text that give the new one, where they are known. Outside of them
    references stay as they are written.
    """
    several = edits or [()] * len(segments)
    rows = sorted(zip(segments, parts, several, strict=bool(segments)), key=lambda row: row[0].start)
    changed = (
        (s.start, s.end, _encode_part(source, s, part, changes) if s.fixed is None else s.fixed)
        for s, part, changes in rows
        if part != s.text or s.fixed is not None
    )
    return splice_text(source, changed)


def _encode_part(source: str, segment: Segment, part: str, changes: Sequence[Change]) -> str:
    """Return a segment's new text as it stands in the source."""
    raw = source[segment.start : segment.end]
    # A bare sign of markup is safe only where nothing follows that could close it.
    if not segment.has_references or "<" in raw:
        return segment.encode(part)
    position = 0
    places = [0]  # the offset in the source of each offset in the text; -1: where no change may begin or end
    for match in _REFERENCE.finditer(raw):
        places += range(position + 1, match.start() + 1)
        if length := len(html.unescape(match.group())):  # a control character is read as nothing
            # What follows an open reference would become part of it.
            places += [-1] * (length - 1) + [match.end() if match.group().endswith(";") else -1]
        position = match.end()
    places += range(position + 1, len(raw) + 1)
    if len(places) != len(segment.text) + 1 or any(places[a] < 0 or places[b] < 0 for a, b, _ in changes):
        return segment.encode(part)
    written = splice_text(raw, ((places[a], places[b], segment.encode(new)) for a, b, new in changes))
    return written if html.unescape(written) == part else segment.encode(part)


def divide_changes(document: Document, edits: Iterable[Change]) -> list[list[Change]]:
    """Return the changes of each part of a document, by offsets in the part; those across borders are left out."""
    ordered, index = sorted(edits), 0
    out: list[list[Change]] = []
    for start, end in document.parts:
        while index < len(ordered) and ordered[index][0] < start:
            index += 1
        out.append([])
        while index < len(ordered) and ordered[index][1] <= end:
            a, b, new = ordered[index]
            out[-1].append((a - start, b - start, new))
            index += 1
    return out


def parse_segments(
    chunk: Chunk,
    job: Job,
    find_segments: Callable[[str], Iterable[Segment]],
    *,
    transcript: bool = False,
    is_markup: bool = False,
    encoding: Encoding | None = None,
) -> ParsedChunk:
    """Return a text file as one document of its segments; ``transcript``: look for ``Name: text`` lines too.

    ``is_markup``: letters that its encoding lacks are written as references. ``encoding``: of the file; None: it is
    detected.
    """
    tally = Tally()
    if encoding is None:
        text, encoding = decode_file(chunk.data)
        encoding = replace(encoding, is_markup=is_markup)
        tally.add(count_encoding(encoding))
    else:
        text = encoding.decode(chunk.data)
    segments = list(find_segments(text))
    document = to_document(segments)
    if transcript and not document.turns:
        document = replace(document, turns=find_turns(document.text))

    def render_segments(parts: tuple[str, ...], edits: Sequence[Change] = ()) -> bytes:
        return encoding.encode_file(splice_segments(text, segments, parts, divide_changes(document, edits)))

    if pictures := sum(bool(s.fixed) for s in segments):
        tally.treated["pictures left out"] += pictures
    return ParsedChunk([Draft(document, render_segments, takes_edits=True)], tally=tally)

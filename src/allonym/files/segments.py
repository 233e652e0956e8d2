"""Segments: pieces of text inside a source with other syntax, and text files that consist of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from allonym.detection.turns import find_turns
from allonym.document import PROSE, Document, Turn, splice_text
from allonym.files.encoding import Encoding, count_encoding, decode_file
from allonym.files.record import Chunk, Draft, Job, ParsedChunk, Tally


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text in a source.

    Attributes:
        start, end: half-open offsets in the source.
        text: its text without escapes.
        encode: escapes a text for this segment; by default it stays as it is.
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


def splice_segments(source: str, segments: Sequence[Segment], parts: Sequence[str]) -> str:
    """Return the source with the segments' new texts; unchanged segments keep their characters."""
    pairs = sorted(zip(segments, parts, strict=bool(segments)), key=lambda pair: pair[0].start)
    changed = (
        (s.start, s.end, s.encode(part) if s.fixed is None else s.fixed)
        for s, part in pairs
        if part != s.text or s.fixed is not None
    )
    return splice_text(source, changed)


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

    def render_segments(parts: tuple[str, ...]) -> bytes:
        return encoding.encode_file(splice_segments(text, segments, parts))

    if pictures := sum(bool(s.fixed) for s in segments):
        tally.treated["pictures left out"] += pictures
    return ParsedChunk([Draft(document, render_segments)], tally=tally)

"""Which part of a document is chunked: all of it, an earnings call's presentation, what stands between two markers.

P1 3.1.1 keeps the management's presentation and drops the questions and answers, which are alike in no two calls.
Others add sections with ``sections.register(name, function)``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, cast

import re2

from allonym.batch import MAX_NAMED
from allonym.detect.scan import compile_pattern, find_matches
from allonym.document import Document, Interval, Turn, merge
from allonym.errors import DataError, UsageError
from allonym.registry import Registry
from allonym.swap.chunking import sentences

Sectioner = Callable[[Document], Sequence[Interval] | None]
"""A document to the stretches of it that are chunked, sorted and disjoint; None where it found no place to cut."""

sections = Registry(
    "section",
    {"all": "allonym.swap.sections:everything", "presentation": "allonym.swap.sections:presentation"},
)
"""Sections by name; functions as :data:`Sectioner`."""

BETWEEN = ">>>"
"""Stands between two patterns in one string."""

_REMARKS = 1500  # code points of a speech that is part of a presentation
_INSTRUCTIONS = 700  # code points before a marker that belong to the same announcement
_SOON = 400  # code points after an invitation within which questions must be spoken of again
_LAST = 4  # sentences at the end of a speech in which the questions are opened


@dataclass(frozen=True, slots=True)
class Speech:
    """What one speaker says at a time; ``speaker`` is the name, number or role that the source gives, if any. It is
    hidden from ``repr``."""

    start: int
    end: int
    speaker: str = field(default="", repr=False)


def sectioner(section: str | tuple[str, str] | Sectioner) -> Sectioner:
    """The function behind a name, a pair of RE2 patterns (from, to), or a function.

    Of a pair, which as one string is written ``FROM >>> TO``, the section is from where the first pattern matches to
    where, after that, the second does; an empty pattern is the beginning or the end.

    Raises:
        UnknownNameError: no such section.
        UsageError: a pattern is none.
    """
    if isinstance(section, str) and BETWEEN in section:
        begin, _, end = (piece.strip() for piece in section.partition(BETWEEN))
        section = (begin, end)
    if isinstance(section, str):
        return cast(Sectioner, sections.get(section))
    if callable(section):
        return section
    if len(section) != 2 or not all(isinstance(p, str) for p in section):
        raise UsageError("a section is a name, a function, or two patterns: where it begins, where it ends")
    for pattern in section:
        try:
            compile_pattern(pattern)
        except re2.error as error:
            raise UsageError(f"a section's pattern is not valid RE2: {error.args[0]!r}") from None
    begin, end = section

    def between(document: Document) -> Sequence[Interval] | None:
        text = document.text
        start = next((m[0][0] for m in find_matches(compile_pattern(begin), text)), None) if begin else 0
        if start is None:
            return None
        stop = (
            next((m[0][0] for m in find_matches(compile_pattern(end), text) if m[0][0] > start), None)
            if end
            else len(text)
        )
        return None if stop is None else clipped(everything(document), start, stop)

    return between


def check_section(document: Document, found: Sequence[Interval]) -> tuple[Interval, ...]:
    """What a section function returned, where it can be one.

    Raises:
        DataError: the intervals are not sorted, disjoint, and within the text.
    """
    at = 0
    for a, b in found:
        if not at <= a < b <= len(document.text):
            raise DataError(f"a section must be sorted, disjoint and within its text; the interval {a}..{b} is not")
        at = b
    return tuple((int(a), int(b)) for a, b in found)


def clipped(stretches: Sequence[Interval], start: int, end: int) -> tuple[Interval, ...]:
    """What of the stretches lies in ``start..end``."""
    return tuple((max(a, start), min(b, end)) for a, b in stretches if max(a, start) < min(b, end))


def everything(document: Document) -> tuple[Interval, ...]:
    """All running text: the turns of a conversation with what stands between, and parts that are no short fields; of
    short fields alone the longest."""
    text, parts = document.text, document.parts
    if not parts:
        return ((0, len(text)),) if text.strip() else ()
    said = (0, 0)
    if document.turns:
        said = (min(map(_begin, document.turns)), max(t.end for t in document.turns))
    apart = [p for p in parts if not (said[0] <= p[0] and p[1] <= said[1])]
    told = [said] if len(apart) < len(parts) else []
    running = [p for p in apart if is_running(document, p)]
    if not told and not running:
        running = [max(apart, key=lambda p: (p[1] - p[0], -p[0]))]
    return tuple(merge(p for p in (*running, *told) if text[slice(*p)].strip()))


def _begin(turn: Turn) -> int:
    return min(turn.start, turn.speaker[0]) if turn.speaker else turn.start


def is_running(document: Document, part: Interval) -> bool:
    """Whether a part is text, not a field such as a name or a category: it is long, or no field's name stands before
    it."""
    a, b = part
    text = document.text
    return b - a > MAX_NAMED or "\n" in text[a:b] or text[max(0, a - 2) : a] != ": "


def speeches(document: Document) -> tuple[Speech, ...]:
    """The turns of a document: those it has, those that ``meta["turns"]`` tells by offsets, or its lines."""
    text = document.text
    if document.turns:
        return tuple(Speech(_begin(t), t.end, text[slice(*t.speaker)] if t.speaker else "") for t in document.turns)
    running = everything(document)
    if not running:
        return ()
    start, end = max(running, key=lambda s: s[1] - s[0])
    told = _told(document.meta.get("turns"), start, end)
    if told:
        return told
    out: list[Speech] = []
    for a, b in running:
        at = a
        for line in text[a:b].splitlines(keepends=True):
            if line.strip():
                out.append(Speech(at, at + len(line.rstrip())))
            at += len(line)
    return tuple(out)


def _told(turns: object, start: int, end: int) -> tuple[Speech, ...]:
    out: list[Speech] = []
    at = start
    for turn in turns if isinstance(turns, (list, tuple)) else ():
        if not isinstance(turn, Mapping):
            return ()
        a, b, who = turn.get("start"), turn.get("end"), turn.get("role") or turn.get("speaker")
        if not (isinstance(a, int) and isinstance(b, int) and at <= a + start <= b + start <= end):
            return ()
        if a < b:
            out.append(Speech(a + start, b + start, "" if who is None else str(who)))
        at = b + start
    return tuple(out)


@cache
def _patterns(section: str) -> Mapping[str, Any]:
    rows = tomllib.loads(files("allonym.swap").joinpath("sections.toml").read_text(encoding="utf-8"))[section]
    return {name: compile_pattern("(?i)" + "|".join(f"(?:{p})" for p in patterns)) for name, patterns in rows.items()}


def _says(name: str, text: str) -> bool:
    return next(find_matches(_patterns("presentation")[name], text), None) is not None


def presentation(document: Document) -> tuple[Interval, ...] | None:
    """What is said in an earnings call before the questions; None where no place is found at which they begin.

    Told by the roles of speakers, where they are named, else by what is said: "our first question comes from", "to ask
    a question, press star one", "we will now take your questions", "thank you for taking my question".
    """
    said = speeches(document)
    cut = _asked(document.text, said)
    return None if cut is None else clipped(everything(document), 0, cut)


def _asked(text: str, said: Sequence[Speech]) -> int | None:
    """Where the questions begin."""
    operators = [bool(s.speaker) and _says("operators", s.speaker) for s in said]
    for i, speech in enumerate(said):
        if speech.speaker and i and _says("analysts", speech.speaker):
            while i > 1 and operators[i - 1]:
                i -= 1
            return said[i].start
    for i, at in _hints(text, said):
        speech = said[i]
        if at < 0:
            return said[i + 1].start if i + 1 < len(said) else speech.end
        return at if at - speech.start > _INSTRUCTIONS // 2 else speech.start
    return None


def _hints(text: str, said: Sequence[Speech]) -> Iterator[tuple[int, int]]:
    """(speech, where in it) of each sign that the questions begin; -1: with the speech after it."""
    for i, speech in enumerate(said):
        tiles = sentences(text, speech.start, speech.end)
        for n, (a, b) in enumerate(tiles):
            sentence = text[a:b]
            if not _says("about", sentence) or _says("later", sentence):
                continue
            if a - said[0].start < _REMARKS:
                if _says("first", sentence):
                    yield i, a
                continue
            if _says("begins", sentence) or (a - speech.start < _INSTRUCTIONS and i and _says("asks", sentence)):
                yield i, a
            elif n >= len(tiles) - _LAST and _says("opens", sentence):
                soon = text[speech.end : speech.end + _SOON]
                if not soon.strip() or _says("about", soon):
                    yield i, -1

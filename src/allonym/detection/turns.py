"""Turns of a transcript: lines that begin with their speaker, as in ``Pam: Is Jim there?``."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Document, Interval, Turn

_LABEL = r"([^\W\d_][\w .'’()-]{0,39}?)[ \t]*:(?=[ \t]|$)"
_SPEAKER = re.compile(rf"^[ \t]*{_LABEL}", re.MULTILINE)
_FIELD = re.compile(rf"(?:^[ \t]*|(?<=[ \t]{{3}})|(?<=\t)|(?<=\| )){_LABEL}", re.MULTILINE)
"""A label at the start of a line, or of a cell within it."""
_WORD = re.compile(r"[^\W\d_]+")
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
_FIELDS = read_word_list("form_fields")
_ROLES = read_word_list("roles")
_FUNCTION = read_word_list("function_words")
FAMILY_NAMES = frozenset("day key place price street".split())
"""Names of fields that are family names as well."""
MIN_TURNS = 2
MIN_SHARE = 0.6


def find_turns(text: str) -> tuple[Turn, ...]:
    """Find the turns of a transcript; empty where the text is no transcript.

    A transcript has at least two turns, at least 60 % of its non-empty lines begin with ``Name:``, and most of these
    names are not fields of a form, such as ``Phone:`` or ``Chief complaint:``. A field inside a transcript begins a
    turn without a speaker.
    """
    if text.count(":") < MIN_TURNS or "\n" not in text:
        return ()
    marks = list(_SPEAKER.finditer(text))
    if len(marks) < MIN_TURNS or len(marks) < MIN_SHARE * sum(1 for _ in _LINE.finditer(text)):
        return ()
    names = {mark[1].lower() for mark in marks}
    if 2 * sum(name in _FIELDS or name.split()[-1] in _FIELDS for name in names) > len(names):
        return ()
    turns = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=True):
        turn = text[mark.end() : end].lstrip(" \t")
        start = end - len(turn)
        speaker = None if _names_only_field(mark[1].lower()) else mark.span(1)
        turns.append(Turn(start, start + len(turn.rstrip(" \t\r\n")), speaker))
    return tuple(turns)


def find_field_names(text: str) -> tuple[Interval, ...]:
    """Find the names of fields at the starts of lines and cells, such as ``Chief complaint`` before a colon.

    A label of words that no list knows as a name is one too, where it stands in the text once, beside other labels: a
    speaker has more turns.
    """
    if ":" not in text:
        return ()
    marks = list(_FIELD.finditer(text))
    counts = Counter(mark[1] for mark in marks)
    return tuple(
        mark.span(1)
        for mark in marks
        if _names_only_field(mark[1].lower()) or (len(counts) > 1 and counts[mark[1]] == 1 and is_heading(mark[1]))
    )


def is_heading(label: str) -> bool:
    """Tell whether the words of a label are in dictionaries, and neither roles nor the name of anybody."""
    words = set(_WORD.findall(label.lower()))
    has_abbreviation = not label.isupper() and any(map(str.isupper, _WORD.findall(label)))
    return (
        bool(words)
        and not has_abbreviation
        and words <= (_FIELDS | _FUNCTION | read_dictionary()) - _ROLES - FAMILY_NAMES
    )


def _names_only_field(label: str) -> bool:
    """Tell whether a label in lower case is the name of a field for sure, and neither a role nor the name of a person.

    One word at least is known from forms, and all others are ordinary: "Ada Price" and "Price" may be people.
    """
    words = set(_WORD.findall(label))
    if not words & (_FIELDS - FAMILY_NAMES) or words & (_ROLES | FAMILY_NAMES):
        return False
    return words <= _FIELDS | _FUNCTION | read_dictionary()


def add_turns(document: Document) -> Document:
    """Add the turns of each part that is a transcript; a document that has turns already is returned unchanged."""
    text = document.text
    if document.turns or text.count(":") < MIN_TURNS or "\n" not in text:
        return document
    turns = []
    for a, b in document.parts or ((0, len(text)),):
        for turn in find_turns(text[a:b]):
            speaker = turn.speaker and (turn.speaker[0] + a, turn.speaker[1] + a)
            turns.append(Turn(turn.start + a, turn.end + a, speaker))
    return replace(document, turns=tuple(turns)) if turns else document

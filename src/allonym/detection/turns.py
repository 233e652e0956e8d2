"""Turns of a transcript: lines that begin with their speaker, as in ``Pam: Is Jim there?``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from allonym.detection.listed_names import is_typical_name
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Document, Interval, Turn

_LABEL = r"([^\W\d_][\w .'’()-]{0,39}?)[ \t]*:(?=[ \t]|$)"
_CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?"
_STAMP = rf"(?:\[?(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},? )?{_CLOCK}(?:\]:?| -)?[ \t]+)?"
"""The time before a speaker, as chats have it: ``[10:02:11]``, ``12/03/2024, 10:02 -``."""
_SPEAKER = re.compile(rf"^[ \t]*{_STAMP}{_LABEL}", re.MULTILINE)
_FIELD = re.compile(rf"(?:^[ \t]*|(?<=[ \t]{{3}})|(?<=\t)|(?<=\| )){_LABEL}", re.MULTILINE)
"""A label at the start of a line, or of a cell within it."""
_WORD = re.compile(r"[^\W\d_]+")
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
_FIELDS = read_word_list("form_fields")
_ROLES = read_word_list("roles")
_FUNCTION = read_word_list("function_words")
_LOG_LEVELS = frozenset("debug info notice warn warning error critical fatal trace".split())
FAMILY_NAMES = frozenset("day key place price street".split())
"""Names of fields that are family names as well."""
_FORM_FIELDS = 3
"""Fields from which on a text is a form where fewer labels come again: speakers have more turns."""
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
    if not _LOG_LEVELS.isdisjoint(names):
        return ()
    fields = sum(name in _FIELDS or name.split()[-1] in _FIELDS for name in names)
    if 2 * fields > len(names) or (fields >= _FORM_FIELDS and len(marks) - len(names) < fields):
        return ()
    turns = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=True):
        turn = text[mark.end() : end].lstrip(" \t")
        start = end - len(turn)
        speaker = None if _names_only_field(mark[1].lower()) else mark.span(1)
        turns.append(Turn(start, start + len(turn.rstrip(" \t\r\n")), speaker))
    return tuple(turns)


def find_inner_turns(text: str) -> tuple[Turn, ...]:
    """Find the turns of a transcript that other text surrounds, as a title, tables and headers do in a Word file.

    It reaches from the first line that begins with ``Name:`` to the last one; see :func:`find_turns`.
    """
    marks = list(_SPEAKER.finditer(text))
    if len(marks) < MIN_TURNS:
        return ()
    start, last = marks[0].start(), marks[-1].end()
    end = text.find("\n", last)
    return tuple(
        Turn(turn.start + start, turn.end + start, turn.speaker and (turn.speaker[0] + start, turn.speaker[1] + start))
        for turn in find_turns(text[start : end if end >= 0 else len(text)])
    )


def find_field_names(text: str) -> tuple[Interval, ...]:
    """Find the names of fields at the starts of lines and cells, such as ``Chief complaint`` before a colon.

    A label of words that no list knows as a name is one too, where it stands in the text once, beside other labels: a
    speaker has more turns.
    """
    if ":" not in text:
        return ()
    marks = list(_FIELD.finditer(text))
    headings = select_headings(Counter(mark[1] for mark in marks))
    return tuple(mark.span(1) for mark in marks if mark[1] in headings or _names_only_field(mark[1].lower()))


def select_headings(counts: Mapping[str, int]) -> frozenset[str]:
    """Select the labels that stand in a text once, beside others, and whose words are in dictionaries.

    Roles are none, nor what is somebody's name. Where another label is a name, the text is a conversation, and "Storm"
    speaks in it.

    Args:
        counts: each label of the text, and how often it stands there.
    """
    if len(counts) < 2 or any(_is_name(label) for label in counts):
        return frozenset()
    return frozenset(label for label, count in counts.items() if count == 1 and _has_heading_words(label))


def _is_name(label: str) -> bool:
    """Whether a label is a name that no dictionary has as a word."""
    words = _WORD.findall(label.lower())
    return 1 <= len(words) <= 3 and all(is_typical_name(word) and word not in _read_field_words() for word in words)


def _has_heading_words(label: str) -> bool:
    words = set(_WORD.findall(label.lower()))
    has_abbreviation = not label.isupper() and any(map(str.isupper, _WORD.findall(label)))
    if not words or has_abbreviation or not words <= _read_field_words() or words & (_ROLES | FAMILY_NAMES):
        return False
    return len(words) > 1 or not any(map(is_typical_name, words))


@cache
def _read_field_words() -> frozenset[str]:
    return _FIELDS | _FUNCTION | read_dictionary()


def _names_only_field(label: str) -> bool:
    """Tell whether a label in lower case is the name of a field for sure, and neither a role nor the name of a person.

    One word at least is known from forms, and all others are ordinary: "Ada Price" and "Price" may be people.
    """
    words = set(_WORD.findall(label))
    if not words & (_FIELDS - FAMILY_NAMES) or words & (_ROLES | FAMILY_NAMES):
        return False
    return words <= _read_field_words()


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

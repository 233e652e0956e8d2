"""From the name of a number to its value: directly, over a clause, in the answer to a question, or before the name.

Every function reads at most :data:`REACH` characters after a name, so that time grows with the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from allonym.detection.values import Code, read_code, read_date, read_lone_word, read_password, read_phrase
from allonym.detection.words import read_word_list
from allonym.document import Interval

REACH = 170
"""Characters after a name in which its value may begin."""
CLAUSE_REACH = 80
"""The same within one clause."""
LONGEST = 20
"""Characters of a value that may stand before what marks it as one, as in "IV K 233/14"."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the table: its words, what it calls, and how it must be written to do so."""

    noun: str
    label: str
    score: float
    kind: str
    role: Literal["short", "alone", "with_number", "near"]


@dataclass(frozen=True, slots=True)
class Call:
    """A place where a name stands, with or without a number word, or a number word without a name.

    Attributes:
        gap: characters from its end to the next place that may be a value.
        follows_value: whether there is such a place shortly before it.
    """

    start: int
    end: int
    name: Name | None
    number_word: str
    gap: int
    follows_value: bool

    @property
    def is_bare(self) -> bool:
        """Whether the name needs a number word and has none."""
        return self.name is not None and self.name.role == "with_number" and not self.number_word


def _join_words(name: str) -> str:
    return "|".join(term.replace("'", "['’]") for term in sorted(read_word_list(name), key=len, reverse=True))


_FILLER = rf"(?:{_join_words('number_fillers').replace('_', ' ')})\b"
_SIGNS = r"[ \t]*(?:[_.…]{2,}[ \t]*|[:=,(\[|>\"“‘'\-–—_][ \t]*){0,3}"
_LINK = re.compile(
    rf"(?:['’]s\b)?(?:[ \t]*\([A-Za-z /.]{{1,24}}\))?{_SIGNS}(?:\n[ \t]*){{0,2}}#?"
    rf"(?:{_FILLER}[ \t,.:;=…\"“‘'(#]*){{0,4}}",
    re.IGNORECASE,
)
_ANSWER = re.compile(rf"[\"“]?(?:{_FILLER}[ \t,.:;=…\"“‘'(#]*){{0,5}}#?", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:\b(?:is|was|are|were|as|under|with|reads|says|like|number|no|['’]s)\b|[:,(–—])[ \t]*[\"“‘'(#]?"
    rf"(?:{_FILLER}[ \t,:=\"“‘'(#]*){{0,3}}",
    re.IGNORECASE,
)
_PIECE = re.compile(
    r"[^\n?!.\d]{0,80}(?:[?!.…]+[\"”’]?(?:\s{1,4}|$)|\s*\n\s*)"
    r"(?:> ?)?(?:[^\W\d_][\w.'’ ()\-]{0,30}:[ \t]*|[QA][.:][ \t]+)?"
)
_ASKS = re.compile(
    r"\b(?:read|give|tell|confirm|take|have|need|get|enter|provide|spell|wants?|say|quote|send|wh?at['’]?s?|which|know"
    r"|last)\b",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\d|\b(?:double|triple|treble|zero|oh|nought|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|twenty|first|second|third|[a-z]+th|as in)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\b(?:is|was|are|were|['’]s)\b|[:=]", re.IGNORECASE)
_STOP = re.compile(r"[.!?;](?:\s|$)|\n")
_BACK = re.compile(
    r"[\"”’')\]]{0,2},? (?:as|is|was|for|being|to be) (?:(?:the|your|our|my|an?|its|his|her|their) )?(?:[a-z]+ ){0,2}$",
    re.IGNORECASE,
)
_WORD_BEFORE = re.compile(r"([^\W\d_][\w'’\-]*)[ \n]$")
_BEFORE_CODE = read_word_list("function_words") | {"", "digit"}


def _has_cue(text: str, start: int) -> bool:
    """Whether a digit or a word for one stands near after ``start``."""
    return _CUE.search(text, start, start + REACH) is not None


def find_word_before(text: str, start: int) -> str:
    """The word before ``start`` in lower case, a blank between; empty where there is none."""
    match = _WORD_BEFORE.search(text, max(0, start - 30), start)
    return match[1].lower() if match else ""


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def read_direct_code(text: str, start: int) -> tuple[Code | None, str]:
    """The code directly after ``start``, and what links it."""
    end = _skip(_LINK, text, start)
    return read_code(text, end), text[start:end]


def read_called_code(text: str, call: Call) -> Code | None:
    """The code that a name with or without a number word calls."""
    is_attached = bool(call.number_word)
    if call.is_bare:
        return _read_code_beside(text, call)
    code = None
    if call.gap < CLAUSE_REACH + LONGEST:
        code, link = read_direct_code(text, call.end)
        if code is not None and (link or is_attached) and _counts_directly(text, call, code, link):
            return code
        code = read_code_after_clause(text, call.end, is_attached)
    if code is None and call.gap < REACH and (is_attached or "?" in text[call.end : call.end + REACH]):
        code = read_code_of_answer(text, call, is_attached)
    return code or (_read_code_before(text, call) if call.follows_value else None)


def _counts_directly(text: str, call: Call, code: Code, link: str) -> bool:
    if code.is_plain(text):
        return True
    if call.number_word:
        line = text[text.rfind("\n", 0, call.start) + 1 : call.start]
        return code.is_called(text) and ("\n" not in link or not line.strip(" \t>-*•"))
    return call.name is not None and call.name.role == "short" and code.letters > 0 and code.groups > 1


def _read_code_beside(text: str, call: Call) -> Code | None:
    """The code right beside a name that seldom calls one without a number word: it has letters or signs."""
    start = call.end
    while start < call.end + 3 and text[start : start + 1] in (" ", ":", "\t"):
        start += 1
    first = text[start : start + 1]
    is_sign = start > call.end and (first.isdigit() or first.isupper() or first == "#")
    code = read_code(text, start) if is_sign and call.gap < LONGEST else None
    if code is None or code.is_spoken:
        return None
    is_whole = text[code.start : code.end].isdigit() and code.is_plain(text)
    return code if is_whole or code.is_strict(text) else None


def read_code_after_clause(text: str, start: int, is_attached: bool, least: int = 0) -> Code | None:
    """The code after a clause that belongs to its name: "they sent me, RB558120934GB".

    After "is" it must look like a code, or have ``least`` digits; elsewhere it must be one for sure.
    """
    reach = start + (CLAUSE_REACH if is_attached else CLAUSE_REACH // 2)
    stop = _STOP.search(text, start, reach)
    for link in _CLAUSE.finditer(text, start, stop.start() if stop else reach):
        if any(map(str.isdigit, text[start : link.end()])):
            return None
        code = read_code(text, link.end())
        if code is not None:
            is_equated = is_attached and _COPULA.search(link[0]) is not None
            if code.is_strict(text) or (is_equated and (code.digits >= least if least else code.is_plain(text))):
                return code
    return None


def _find_answers(text: str, call: Call) -> Iterator[Interval]:
    """Where the next sentences or turns begin, and where what opens an answer ("Sure, it's ") ends."""
    position = call.end
    for _ in range(3):
        piece = _PIECE.match(text, position, call.end + REACH)
        if piece is None:
            return
        position = piece.end()
        yield position, _skip(_ANSWER, text, position)


def read_code_of_answer(text: str, call: Call, is_attached: bool) -> Code | None:
    """The code that begins one of the next sentences, after a question or a request for it, or after "It is"."""
    for position, start in _find_answers(text, call):
        is_question = "?" in text[call.end : position]
        code = read_code(text, start)
        if code is None:
            code = read_code_after_clause(text, position, False) if is_question else None
            if code is not None and (is_attached or code.is_spoken):
                return code
            continue
        if is_question and is_attached and code.is_said(text):
            return code
        asks = is_question or _ASKS.search(text, max(0, call.start - 60), position)
        if code.is_strict(text) and (asks or _COPULA.search(text, position, start)):
            return code
    return None


def _read_code_before(text: str, call: Call) -> Code | None:
    """The code before its name: "KX44-0917 as the payment reference"."""
    floor = max(0, call.start - 90)
    back = _BACK.search(text[floor : call.start])
    if back is None:
        return None
    end = floor + back.start()
    for start in range(max(0, end - 30), end):
        if text[start].isalnum() and (not start or not text[start - 1].isalnum()):
            code = read_code(text, start)
            if code is not None and code.end == end and code.is_plain(text):
                return code
    return None


def read_short_code(text: str, call: Call) -> Interval | None:
    """A code of three digits at least that opens something; "the code" by itself needs "is" or a question."""
    if not _has_cue(text, call.end) or (call.is_bare and find_word_before(text, call.start) not in _BEFORE_CODE):
        return None
    code, link = read_direct_code(text, call.end)
    is_sure = not call.is_bare or _COPULA.search(link) or (code is not None and code.letters and code.is_strict(text))
    if code is not None and code.digits >= 3 and is_sure:
        return code.start, code.end
    code = read_code_after_clause(text, call.end, True, 4) or read_code_of_answer(text, call, True)
    if code is None and not call.is_bare:
        code = _read_code_before(text, call)
    return (code.start, code.end) if code is not None and code.digits + code.letters >= 4 else None


_PASSWORD_LINK = re.compile(
    r"[\"'”]?(?: (?:for|to|on|of)(?: [a-z\-]{1,20}){1,4}?)?"
    r"(?:[ \t]*(?P<sign>[:=]|=>|->)[ \t]*"
    r"|(?P<is>\s+(?:is|was|to|set to|changed to|reset to|now|lautet|ist|still|currently|will be|should be)\b"
    r"(?:[ \t]+(?:is|was|to|set to|changed to|now|still|currently|just|:))*:?[ \t]+|['’]s[ \t]+)"
    r")",
    re.IGNORECASE,
)
_PASSWORD_BESIDE = re.compile(r"[\"'”]?(?:[ \t]*,[ \t]*|[ \t]+)")


def read_secret_word(text: str, call: Call) -> Interval | None:
    """A password or pass phrase; a name that needs a number word needs ``:`` or ``=`` here."""
    link = _PASSWORD_LINK.match(text, call.end)
    if call.is_bare and (link is None or not link["sign"]):
        return None
    place = None
    if link is not None:
        place = read_password(text, link.end(), "sign" if link["sign"] else "is")
        place = place or (read_phrase(text, link.end()) if link["is"] else None)
    place = place or read_password(text, _skip(_PASSWORD_BESIDE, text, call.end), "")
    answers = (read_password(text, start, "") for _, start in _find_answers(text, call))
    return place or next(filter(None, answers), None)


def read_answer_word(text: str, call: Call) -> Interval | None:
    """A word that answers a question of security, after "is" or in a turn of its own."""
    end = _skip(_LINK, text, call.end)
    place = read_password(text, end, "sign") if _COPULA.search(text, call.end, end) else None
    answers = (read_lone_word(text, start) for _, start in _find_answers(text, call))
    return place or next(filter(None, answers), None)


_BORN_LINK = re.compile(
    r"(?:\.)?(?:[ \t]*\([A-Za-z /.]{1,16}\))?[ \t]*[:=,(]?[ \t]*(?:\n[ \t]*)?"
    r"(?:(?:is|was|on|in|the|am|of|about|around|'s|’s)\b[ \t:,]*){0,4}",
    re.IGNORECASE,
)
_ABBREVIATED = re.compile(r"\. ?\d")


def read_birth_date(text: str, call: Call) -> Interval | None:
    """A day or a year; the letter in "b. 4 May 1960" belongs to it."""
    is_letter = call.end - call.start == 1
    if not _has_cue(text, call.end) or (is_letter and not _ABBREVIATED.match(text, call.end)):
        return None
    place = read_date(text, _skip(_BORN_LINK, text, call.end))
    if place is not None:
        return (call.start, place[1]) if is_letter else place
    for position, start in _find_answers(text, call):
        place = read_date(text, start) if "?" in text[call.end : position] else None
        if place is not None:
            return place
    return None


READERS: dict[str, Callable[[str, Call], Interval | None]] = {
    "short code": read_short_code,
    "password": read_secret_word,
    "word": read_answer_word,
    "date": read_birth_date,
}
"""Kind of value to what reads it; a code, of which several may be listed, is read by :func:`read_called_code`."""

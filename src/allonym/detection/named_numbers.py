"""Numbers, dates and secrets that the words before them call by name: "order no. 4471-22", "my password is ...".

A phrase has three parts: a name of ``tables/named_numbers.toml``, what links it to its value (:mod:`.links`), and the
value (:mod:`.values`). The nearest name before a value decides its label; names without a label say that a number is
none of ours. "The number", "no." and "ref." alone take the label of what they are the number of.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from allonym.detection.links import (
    CLAUSE_REACH,
    LONGEST,
    REACH,
    READERS,
    Call,
    Name,
    find_word_before,
    read_called_code,
    read_code_after_clause,
    read_code_of_answer,
    read_direct_code,
)
from allonym.detection.scan import compile_pattern, find_matches
from allonym.detection.values import Code, read_code, read_date
from allonym.detection.words import read_word_list
from allonym.document import Document, Interval, Span
from allonym.errors import PolicyError
from allonym.pattern import PatternRule


@cache
def read_names() -> dict[str, Name]:
    """Read the names of the table by their words.

    Raises:
        PolicyError: a name is listed twice.
    """
    table = files("allonym").joinpath("detection", "tables", "named_numbers.toml")
    names: dict[str, Name] = {}
    for row in tomllib.loads(table.read_text(encoding="utf-8"))["name"]:
        for role in ("short", "alone", "with_number", "near"):
            for entry in row.get(role, "").split(";"):
                noun = " ".join(entry.split())
                if noun in names:
                    raise PolicyError(f"named_numbers.toml: {noun} is listed twice")
                if noun:
                    names[noun] = Name(noun, row["label"], row["score"], row.get("kind", "code"), role)
    return names


_NUMBER_WORD = (
    r"(?:(?:numbers?|nos?|nrs?|num|ids?|identifiers?|identification|codes?|refs?|references?|nummern?|numero|número"
    r"|numéro)\b\.?|[#№])"
)
_APPOSED = r",? (?:with |bearing |under |has )?(?:the |a |its )?"  # as in "the annuity with number 5501/773-A"
_ATTACHED = rf"(?:(?:(?:['’]s|\.)?[\s_\-]?\(?|{_APPOSED}){_NUMBER_WORD})"
_CODE_BESIDE = r"(?:[ :\t]{1,3}| is | was )(?:#|(?-i:[A-Z]){1,6}[\-/ ]?)?[0-9]"
_LOOSE = (
    r"nos?[.:]|nr[.:]|№|numbers?\b|numbered\b|refs?\b\.?|references?\b|quot(?:e|ing)\b"
    r"|(?:registered|logged|filed|recorded|lodged|listed) under\b|docketed (?:at|as|under)\b"
)
_LOOSE_WORD = re.compile(_LOOSE, re.IGNORECASE)
_PARTS = re.compile(rf"(.+?)(?:({_ATTACHED}{{1,3}})|{_CODE_BESIDE})", re.IGNORECASE | re.DOTALL)
_ASKED = re.compile(r"[^.?!\n\d]{0,50}\b([a-z]+)[^.?!\n\d]{0,12}\?", re.IGNORECASE)
_COURT_FORM = re.compile(r"\d{1,2}[-–]\d{2,6}|\d{2,6}/\d{2,4}")
_AND = re.compile(
    r"(?:,? (?:and|or|&) (?:the (?:new|other|second|old)(?: one)? (?:is |as )?)?|, ?| / )(?:nos?\. ?|#)?", re.IGNORECASE
)
_NO_NOUN = read_word_list("function_words") | frozenset(
    "bearing called given got gave numbered per quote quoting said see under vide with".split()
)
_NEAR = 70  # characters between what a number is the number of and "the number"
_LISTED = 40
_WEAK = 0.6

Value = tuple[int, int, str, float, str]
"""Start, end, label, score, and the words of the name that called it."""


def find_named_values(
    document: Document, seeds: Sequence[Interval], can_count: Callable[[str, float], bool]
) -> list[Span]:
    """Find the values in a document that names call, at most one at each position. A speaker ("Customer:") calls none.

    Args:
        document: the document.
        seeds: the matches of :func:`compile_seeds`.
        can_count: whether a label counts at a score.
    """
    text = document.text
    speakers = {turn.speaker[0] for turn in document.turns if turn.speaker is not None}
    values: dict[int, Value] = {}
    owner: Call | None = None
    for call in _find_calls(text, sorted(seeds)):
        if call.start in speakers and not call.number_word:
            continue
        for value in _read_values(text, call, owner):
            values[value[0]] = value
        if call.name is not None and call.name.kind == "code" and not call.is_bare:
            owner = call
    return [
        Span(start, end, label, score, f"rules:named-number+context({noun})")
        for start, end, label, score, noun in values.values()
        if label and can_count(label, score)
    ]


_DIGIT = rf"(?:{'|'.join(sorted(read_word_list('digits')))})"
_SIGN = "(?:dash|hyphen|slash|stroke)"
_SEEDS = (
    r"[0-9]{2,} [0-9]{2,}|[0-9]{5,}|[A-Z]{1,6}[\-/. ]?[0-9]{3,}|[A-Z]+[0-9][A-Z0-9]{3,}|[0-9][A-Z][A-Z0-9]{3,}",
    r"[0-9]+[A-Z]{0,5}(?:[\-/_.‐‑–]| - )[A-Z]{0,5}[\-/]?[0-9][0-9A-Z]|[0-9]{2,}(?:[\-/][A-Z]|[A-Z]{1,4}[/\-][0-9])",
    r"[0-9],? [0-9],? [0-9],? [0-9]|[A-Z],? [A-Z0-9],? [0-9]|[0-9] [A-Z][A-Za-z]+ [0-9]+/",
    rf"(?i:\b{_NUMBER_WORD}[\s:=#(\[\"“‘'_]{{0,8}}(?:(?:is|was|are|were) +)?[\"“(#]?(?:[A-Z]{{1,5}}[\-/ ]?)?[0-9])",
    r"\?[^?0-9]*[0-9]{4}",
    r"[#№] ?[A-Z]{0,5}-?[0-9]{2}",
    rf"[0-9],? {_SIGN},? [0-9]|(?i:\b{_DIGIT}\b[ ,.\-]{{1,2}}(?:{_DIGIT}|{_SIGN})\b|\b[A-Z],? as in\b)",
)
"""What every value holds or follows; names are looked for only near it, since most of them call nothing."""
_BEFORE_SEED, _AFTER_SEED = 200, 60
_BEFORE_NAME = 110
_LONGEST_WORD = 64  # letters of a word that may be a name
_WORD_END = re.compile(r"[\W_]")


@cache
def compile_seeds() -> PatternRule:
    """What every value holds or follows, as a rule."""
    words = [_write_pattern(name) for name in read_names().values() if name.kind != "code" and len(name.noun) > 1]
    pattern = "|".join((*_SEEDS, rf"(?i:\b(?:{'|'.join(words)}|b\. ?[0-9]))"))
    return PatternRule("named-number", "GENERIC_ID", pattern, boundary="none", family="named_numbers")


@cache
def _compile_names() -> Any:
    """Compile all names, without groups: with them RE2 takes ten times as long.

    A name that needs a number word, or has no label, counts beside a number word or a code only.
    """
    names = sorted(read_names().values(), key=lambda name: len(name.noun), reverse=True)
    ready = "|".join(_write_pattern(name) for name in names if _calls_alone(name))
    others = "|".join(_write_pattern(name) for name in names if name.role != "near")
    attached = rf"{_ATTACHED}{{1,3}}"
    return compile_pattern(rf"(?i)\b(?:(?:{others})(?:{attached}|{_CODE_BESIDE})|(?:{ready})\b|{_LOOSE})")


def _calls_alone(name: Name) -> bool:
    return bool(name.label) and (name.kind != "code" or name.role in ("short", "alone"))


@cache
def _compile_near_names() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(n.noun for n in read_names().values() if n.role == 'near')})\b", re.IGNORECASE)


def _write_pattern(name: Name) -> str:
    noun = name.noun
    pattern = "".join({" ": r"[\s\-]", "'": "['’]"}.get(c, re.escape(c)) for c in noun.rstrip("."))
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return f"{pattern[:-1]}(?:y|ies)"
    return f"{pattern}s?" if noun[-1].isalpha() and noun[-1] != "s" and len(noun) > 2 else pattern


def _find_regions(seeds: Iterable[Interval]) -> Iterator[Interval]:
    """The regions of a text in which names may call something, disjoint and sorted."""
    start = end = 0
    for first, last in seeds:
        if first - _BEFORE_SEED > end:
            if end:
                yield start, end
            start = first - _BEFORE_SEED
        end = last + _AFTER_SEED
    if end:
        yield start, end


def _find_word_border(text: str, offset: int, stop: int) -> int:
    """The beginning of the word at an offset; the end, up to ``stop``, of one that is longer than any name."""
    first = offset
    while first and text[first - 1].isalnum() and text[first].isalnum():
        first -= 1
        if offset - first > _LONGEST_WORD:
            end = _WORD_END.search(text, offset, stop)
            return stop if end is None else end.start()
    return first


def _find_calls(text: str, seeds: Sequence[Interval]) -> Iterator[Call]:
    """The names near seeds, with and without number words."""
    i = 0
    for middle, last in _find_regions(seeds):
        first = _find_word_border(text, middle, last)
        region = text[first:last]
        for ((start, end),) in find_matches(_compile_names(), region):
            name, number, size = _read_surface(region[start:end])
            if name is None and not number:
                continue
            start += first
            end = start + size
            end += name is not None and name.noun[-1] == "." == text[end : end + 1] and not number
            while i < len(seeds) and seeds[i][1] <= end:
                i += 1
            gap = seeds[i][0] - end if i < len(seeds) else len(text)
            yield Call(start, end, name, number, gap, i > 0 and seeds[i - 1][0] > start - _BEFORE_NAME)


@lru_cache(maxsize=4096)  # they hold words of the table and a digit at most
def _read_surface(surface: str) -> tuple[Name | None, str, int]:
    """The name in a match of the names' pattern, its number word, and the characters of both."""
    name = _look_up_name(surface, False)
    if name is not None or _LOOSE_WORD.fullmatch(surface):
        return name, "" if name is not None else surface.lower(), len(surface)
    parts = _PARTS.fullmatch(surface)
    if parts is None:
        return None, "", 0
    number = (parts[2] or "").lower()
    return _look_up_name(parts[1], bool(number)), number, len(parts[1]) + len(number)


def _look_up_name(surface: str, is_attached: bool) -> Name | None:
    names = read_names()
    words = " ".join(surface.replace("’", "'").split())
    small = words.lower()
    forms = [words, small, *[words.upper()] * is_attached, f"{small}."]
    for form in (small, small.replace("-", " ")):
        forms += [form, f"{form[:-3]}y" if form.endswith("ies") else form.removesuffix("s")]
    return next((names[form] for form in forms if form in names), None)


def _find_owner(text: str, call: Call, owner: Call | None) -> Name | None:
    """The name before a number word alone that tells what it is the number of."""
    line = text[max(0, call.start - _NEAR, text.rfind("\n", 0, call.start) + 1) : call.start]
    near = list(_compile_near_names().finditer(line))
    if owner is not None and owner.end >= call.start - (len(line) - near[-1].end() if near else len(line)):
        return owner.name
    return read_names()[near[-1][0].lower()] if near else None


def _read_values(text: str, call: Call, owner: Call | None) -> Iterator[Value]:
    name = call.name
    if name is None:
        yield from _read_loose_number(text, call, owner)
    elif name.kind == "code":
        score = _WEAK if call.is_bare else name.score
        yield from _list_codes(text, read_called_code(text, call), name.label, score, name.noun)
    else:
        place = READERS[name.kind](text, call)
        while place is not None:
            yield (*place, name.label, name.score, name.noun)
            joint = _AND.match(text, place[1]) if name.kind == "date" else None
            place = read_date(text, joint.end()) if joint else None


def _list_codes(text: str, code: Code | None, label: str, score: float, noun: str) -> Iterator[Value]:
    """A code, and those of the same form that are listed after it."""
    for _ in range(_LISTED):
        if code is None:
            return
        yield code.start, code.end, label, score, noun
        joint = _AND.match(text, code.end)
        further = read_code(text, joint.end()) if joint and not code.is_spoken else None
        if further is None or further.is_spoken or (further.letters > 0) != (code.letters > 0):
            return
        code = further if further.is_plain(text) else None


def _read_loose_number(text: str, call: Call, last: Call | None) -> Iterator[Value]:
    """What "no.", "the number" or "ref." without a name calls; ``last`` is the last name before it."""
    word = call.number_word
    is_number, is_reference = word.startswith("number"), not word.startswith(("n", "№"))
    code = None
    if call.gap < CLAUSE_REACH + LONGEST:
        code, link = read_direct_code(text, call.end)
        if code is None or not link or "\n" in link or not code.is_called(text):
            code = read_code_after_clause(text, call.end, False) if is_number or is_reference else None
    if code is None and is_number and call.gap < REACH:
        question = _ASKED.match(text, call.end)
        name = read_names().get(question[1].lower()) if question else None
        if name is not None and name.role == "near":
            yield from _list_codes(text, read_code_of_answer(text, call, True), name.label, name.score, name.noun)
        return
    if code is None or (word.startswith("quot") and not code.is_strict(text)):
        return
    owner = _find_owner(text, call, last)
    noun = find_word_before(text, call.start)
    if noun in _NO_NOUN or (owner is not None and owner.role == "near" and owner.noun == noun):
        noun = ""
    if word.startswith("no") and not noun and _COURT_FORM.fullmatch(text, code.start, code.end):
        yield from _list_codes(text, code, "CASE_NUMBER", 0.8, "no")
    elif owner is not None and (not noun or is_reference):
        if not is_number or code.is_plain(text):
            yield from _list_codes(text, code, owner.label, owner.score, owner.noun)
    elif is_reference:
        if code.digits + code.letters >= 4 and code.digits >= 2:
            yield from _list_codes(text, code, "GENERIC_ID", 0.65, "reference")
    elif not noun:
        if code.letters and code.is_strict(text) and code.start - call.end < 3:
            yield code.start, code.end, "GENERIC_ID", _WEAK, "number"
    elif code.is_strict(text) or (code.digits >= 4 and word.startswith("no")):
        yield from _list_codes(text, code, "GENERIC_ID", _WEAK, "number")

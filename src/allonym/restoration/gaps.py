"""Rules for the characters between, before and after the words of a rewritten replacement."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from allonym.restoration.forms import ADDRESS, CLOSING, OPENING, TAG, Form
from allonym.text.inflection import AFTER_APOSTROPHE
from allonym.text.words import LETTERS

LONGEST_GAP = 24
_IN_TAGS = frozenset(" \t\n\r_-–—‐‑.:#\"'“”„‟‘’‚‛«»‹›`´*~/|=\u00a0\u2009\u202f\u3000")
PLAIN_SIGNS = str.maketrans(
    dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛‹›`´′ʼ＇", "'") | dict.fromkeys("–—‐‑−‑", "-") | {"…": "..."}
)
"""Quotes, apostrophes and dashes of typography to those of ASCII, for ``str.translate``."""

_LOSABLE = frozenset(".,'\"&()-/")
_QUOTE_MARKS = re.compile(r"\r?\n[ \t]*(?:[>|#][ \t]?){1,4}")
"""Prefixes that mail programs and lists put at the beginning of a line."""

_APOSTROPHES = ("'", "’", "ʼ")
_ELIDED = frozenset("l d j m t s n c qu dell all un".split())
_MATE = dict(zip(OPENING, CLOSING, strict=True))
_MATES = {closer: opener for opener, closer in _MATE.items()}
_QUOTES = frozenset("\"'“”„‟‘’‚‛«»‹›`´")
LOOK_ROUND = 80
"""Greatest distance between the brackets of a pair, in characters."""


@lru_cache(maxsize=8192)
def find_gap_rule(pattern: str, surface: str, kind: str) -> str | None:
    """The rule that lets ``surface`` stand for the gap ``pattern``; empty if they are equal, None if no rule does."""
    if pattern == surface:
        return ""
    surface = _QUOTE_MARKS.sub("\n", surface)
    if len(surface) > LONGEST_GAP or surface.replace("\r\n", "\n").count("\n") > 1:
        return None
    a, b = pattern.translate(PLAIN_SIGNS), surface.translate(PLAIN_SIGNS)
    signs, other = a.strip(), b.strip()
    if kind == TAG:
        if not set(surface) <= _IN_TAGS or len(surface) > 10:
            return None
        return "quotes" if a == b else "spacing" if signs == other else "signs"
    if kind == ADDRESS:
        if signs != other:
            return None
        return "spacing" if "\n" in b or signs == "@" or a.split() == b.split() == [] else None
    if signs == other:
        if a == b:
            return "signs"
        if signs == "" or "\n" in b or len(a.split()) <= 1:
            return "spacing"
        return None
    if not signs and other in ("-", "_", ".") and b == other:
        return "joined"
    if signs == "-" and not other:
        return "spacing"
    if not other and set(signs) <= _LOSABLE:
        return "signs"
    if signs and other and set(signs) <= _LOSABLE and set(other) <= set(signs):
        return "signs"
    return None


class Reach(NamedTuple):
    """The span of a tag around its words.

    Attributes:
        start, end: the tag.
        rule: how it differs from the known tag; empty if it does not.
    """

    start: int
    end: int
    rule: str = ""


def find_tag_reach(form: Form, text: str, start: int, end: int, infix: str) -> Reach | None:
    """Return the span of a tag whose words are at ``start`` to ``end``; None if they are not a tag.

    Signs around a complete tag are never part of it: not a second pair of brackets (``[[PERSON_1]]``), not round
    brackets around a tag that lost its own, not marks between brackets and words. They may belong to the text
    (``[Doctor] What?``).

    Args:
        infix: the gap before the last of its words.
    """
    head, tail = form.head, form.tail
    if text.startswith(tail, end) and text.endswith(head, 0, start) and start >= len(head):
        a, b = start - len(head), end + len(tail)
        if head and head[-1] in OPENING and tail and tail[-1] in CLOSING:
            return Reach(a, b)
        if not head and not tail and not _is_like_tag(form, text[start:end], infix):
            return None
        return Reach(a, b) if _is_separate(form, text, a, b) else None
    before, after = _find_outer_sign(text, start, -1), _find_outer_sign(text, end, 1)
    opener, closer = text[before : before + 1], text[after : after + 1]
    bracketed = any(c in OPENING for c in head) or any(c in CLOSING for c in tail)
    own_openers = {sign for sign in head if sign in OPENING and sign != "("}
    # After a line end it marks a quoted line.
    own_closer = closer if closer in tail and closer != ")" and "\n" not in text[end:after] else ""
    if bracketed and opener in _MATE and _MATE[opener] == closer and opener != "(":
        a, b = before, after + 1
        is_own_opener = opener in head
        for _ in range(head.count(opener) - 1 if is_own_opener else 0):
            if text[a - 1 : a] == opener and text[b : b + 1] == closer and a > 0:
                a, b = a - 1, b + 1
        inner = text[a:start] + text[end:b]
        marks = {c for c in inner if not c.isspace()} - {*head, *tail, opener, closer}
        if '"' in tail:
            marks -= _QUOTES
        if not marks and (is_own_opener or len("".join(inner.split())) == 2):
            spaced = any(map(str.isspace, inner))
            return Reach(a, b, "spacing" if spaced else "" if is_own_opener and text[a:start] == head else "brackets")
    elif bracketed and opener in own_openers and _is_bracket_unclosed(text, after, opener):
        reach = Reach(before, _skip_quotes(text, end, tail, infix), "brackets")
        return reach if _is_separate(form, text, before, end) else None
    elif bracketed and own_closer in _MATES and not _is_bracket_opened_before(text, start, own_closer):
        return Reach(start, after + 1, "brackets") if _is_separate(form, text, start, after + 1) else None
    a, b = start, _skip_quotes(text, end, tail, infix)
    if not _is_separate(form, text, a, b) or not _is_like_tag(form, text[start:end], infix):
        return None
    return Reach(a, b, "brackets" if bracketed else "")


def _skip_quotes(text: str, end: int, tail: str, infix: str) -> int:
    """Return the offset after the tag's closing quotation marks, at most as many as in ``infix``."""
    most = sum(c in _QUOTES for c in infix) if tail[:1] in _QUOTES and tail else 0
    while most and end < len(text) and text[end] in _QUOTES:
        end, most = end + 1, most - 1
    return end


def _find_outer_sign(text: str, place: int, step: int) -> int:
    """Return the offset of the next sign beyond at most three spaces and quotation marks."""
    position = place if step > 0 else place - 1
    for _ in range(3):
        if 0 <= position < len(text) and (text[position] in " \u00a0\n" or text[position] in _QUOTES):
            position += step
    return position if 0 <= position < len(text) else len(text)


def is_bracket_undecided(form: Form, text: str, start: int, end: int) -> bool:
    """Tell whether a bracket before a tag may still be closed after the end of the text."""
    place = _find_outer_sign(text, start, -1)
    opener = text[place : place + 1]
    if opener not in _MATE or opener not in form.head or end + LOOK_ROUND <= len(text):
        return False
    return _MATE[opener] not in text[end:]


def _is_bracket_unclosed(text: str, end: int, opener: str) -> bool:
    """Tell whether the bracket before a tag is not closed nearby, so that it is part of the tag."""
    closer = _MATE[opener]
    ahead = text[end : end + LOOK_ROUND]
    place = ahead.find(closer)
    return place < 0 or 0 <= ahead.find(opener) < place


def _is_bracket_opened_before(text: str, start: int, closer: str) -> bool:
    """Tell whether the bracket after a tag was opened before it, so that it is not part of the tag."""
    opener = _MATES[closer]
    behind = text[max(0, start - LOOK_ROUND) : start]
    place = behind.rfind(opener)
    return place >= 0 and behind.rfind(closer) < place


def _is_separate(form: Form, text: str, start: int, end: int) -> bool:
    """Tell whether a tag without brackets is not part of a longer word or number."""
    first, last = text[start], text[end - 1]
    before, after = text[start - 1 : start], text[end : end + 1]
    if first.isalnum():
        if before == "_" or before.isalnum():
            stripped = text[max(0, start - 8) : start].rstrip("_")
            if before != "_" or stripped[-1:].isalnum():
                return False
    elif first not in OPENING and before == first:
        return False
    if last.isalnum():
        if after.isalnum():
            return False
        follows = text[end + 1 : end + 2]
        if after and after in "_.-,:/" and follows.isdigit() and form.keys[-1].isdigit():
            return False
        if after == "_" and follows.isalnum():
            return False
    elif last not in CLOSING and last not in _QUOTES and after == last:
        return False
    return True


def _is_like_tag(form: Form, surface: str, infix: str) -> bool:
    """Tell whether words without brackets are a tag, and not prose such as ``person 1``."""
    last = form.keys[-1]
    if len(last) >= 6 and not last.isalpha():
        return True
    if any(c in "_:#" for c in infix):
        return True
    if len(form.keys) == 1 or not infix:
        return surface == "".join(form.words) or not form.head
    if "\n" in infix:
        return False
    if len(form.keys[0]) > 3 and surface[:1].isupper():  # "Person 1": the planner avoids tags that occur in the source
        return True
    return all(w in surface for w in form.words) and any(len(w) > 1 and w.isupper() for w in form.words)


def is_separate_name(text: str, start: int, end: int, plainly: bool) -> bool:
    """Tell whether a name is not part of a longer word, address or identifier.

    Args:
        plainly: whether it is the replacement itself, letter by letter.
    """
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if before == "_" and (text[max(0, start - 8) : start].rstrip("_")[-1:] or " ").isalnum():
        return False
    follows = text[end + 1 : end + 2]
    if after == "_" and (text[end : end + 8].lstrip("_")[:1] or " ").isalnum():
        return False
    if before in _APOSTROPHES and end - start < 3 and (text[start - 2 : start - 1].isalpha() or end - start < 2):
        return False
    if text[start].isdigit() and before and before in ".," and text[start - 2 : start - 1].isdigit():
        return False
    if text[end - 1].isdigit() and after and after in ".," and follows.isdigit():
        return False
    if plainly:
        return True
    if before and before in ".@/\\=" and text[start - 2 : start - 1].isalnum():
        return False
    if before in _APOSTROPHES and text[start - 2 : start - 1].isalnum():
        elided = text[max(0, start - 4) : start - 1].split()[-1:]
        if not elided or elided[0].lower() not in _ELIDED:
            return False
    if before == "-" and text[start - 2 : start - 1].isalpha() and start > 1:
        return False
    if after in ("@", "/", "\\", "=") and after and follows.isalnum():
        return False
    if after == "." and follows.isalnum() and not follows.isupper():
        return False
    if after in _APOSTROPHES and follows.isalpha():
        tail = LETTERS.match(text, end + 1)
        return tail is not None and (len(tail[0]) <= 2 or tail[0].lower() in AFTER_APOSTROPHE)
    return True


def is_separate_address(text: str, start: int, end: int) -> bool:
    """Tell whether an e-mail or web address is not part of a longer one."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if before and before in ".+-_%@" and start > 1 and text[start - 2].isalnum():
        return False
    return not (after and after in ".-_@" and text[end + 1 : end + 2].isalnum())


def is_separate_number(text: str, start: int, end: int) -> bool:
    """Tell whether a number or code is not part of a longer one."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if before.isalnum() or after.isalnum():
        return False
    precedes, follows = text[start - 2] if start > 1 else "", text[end + 1 : end + 2]
    if before and before in ".,-/_" and (precedes.isdigit() or (before in "-_/" and precedes.isalnum())):
        return False
    return not (after and after in ".,-/_:" and (follows.isdigit() or (after in "-_/" and follows.isalnum())))

"""Find encrypted mentions, also in other letter case, without brackets, or with breaks inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from allonym.replace.keyed import TOKEN, decrypt_token
from allonym.restore.hits import Match
from allonym.restore.view import escape_like

if TYPE_CHECKING:
    from allonym.restore.scan import Scan

Opener = Callable[[str, str], "str | None"]
"""Returns the original of a label and a code; None if the key does not fit."""

LONGEST = 2**16
_BASE32 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567")
_MARK = re.compile(r"\s{0,3}:\s{0,3}[eE]1\s{0,3}:\s{0,3}")
_UNIT = 16
_TRIES = 24


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted mention, with offsets in the view.

    Attributes:
        code: the code in capitals, without breaks.
        plain: the original; None if it is not known.
        bracketed: whether it has its brackets.
        rule: how it was recognised.
    """

    start: int
    end: int
    label: str
    code: str = field(repr=False)
    plain: str | None = field(repr=False)
    bracketed: bool
    rule: str


def make_opener(key: bytes | str) -> Opener:
    """Return a function that decrypts with a key."""

    def open_code(label: str, code: str) -> str | None:
        match = TOKEN.fullmatch(f"[{label}:e1:{code}]")
        return None if match is None else decrypt_token(match, key)

    return open_code


def _length_fits(size: int) -> bool:
    """Tell whether ``size`` characters of base 32 can be a code: at least two blocks of 16 bytes."""
    nbytes = size * 5 // 8
    return nbytes >= 2 * _UNIT and nbytes % _UNIT == 0 and (nbytes * 8 + 4) // 5 == size


def read_sealed(scan: Scan, word_index: int) -> Sealed | None:
    """Return the encrypted mention whose label begins with word ``word_index``, or None.

    Without brackets, the code ends with the longest run of words that can be decrypted.
    """
    text = scan.text
    start = scan.starts[word_index]
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None
    end_label = word_index
    while end_label + 1 < scan.count and scan.gaps[end_label + 1] == "_":
        end_label += 1
    label = text[start : scan.ends[end_label]]
    mark = _MARK.match(text, scan.ends[end_label])
    if mark is None or len(label) > 64:
        if not scan.final and len(text) - scan.ends[end_label] < 12 and _may_begin_mark(text[scan.ends[end_label] :]):
            scan.short = True
        return None
    position = begin = mark.end()
    code: list[str] = []
    stops: list[tuple[int, int]] = []  # (number of characters, end offset), at the ends of words
    while position < len(text) and position - begin < LONGEST:
        c = text[position]
        if c in _BASE32:
            code.append(c)
            position += 1
            if position == len(text) or not text[position].isalnum():
                stops.append((len(code), position))
        elif c.isspace() or (c == "-" and text[position + 1 : position + 2].isspace()):
            position += 1
        else:
            break
    if position == len(text) and not scan.final and position - begin < LONGEST:
        scan.short = True
        return None
    code_text = "".join(code).upper()
    open_bracket = text[start - 1 : start] == "[" or (text[start - 2 : start] == "[ ")
    low = start - 2 if text[start - 2 : start] == "[ " else start - 1
    if position < len(text) and text[position] == "]" and code_text:
        bracketed = open_bracket
        plain = _open_sealed(scan, label, code_text)
        if plain is not None or (bracketed and len(code_text) >= 26):
            tidy = bracketed and position - begin == len(code_text) and low == start - 1 and mark[0].lower() == ":e1:"
            rule = "encrypted" if tidy else "encrypted+spacing" if bracketed else "encrypted+brackets"
            return Sealed(low if bracketed else start, position + 1, label, code_text, plain, bracketed, rule)
    tries = 0
    for count, place in reversed(stops[:256]):
        if not _length_fits(count) or tries == _TRIES:
            continue
        tries += 1
        plain = _open_sealed(scan, label, code_text[:count])
        if plain is not None:
            return Sealed(
                low if open_bracket else start, place, label, code_text[:count], plain, False, "encrypted+brackets"
            )
    return None


def find_sealed_match(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match the encrypted mention whose label begins with a word; it is decrypted, or left if that is not possible."""
    sealed = read_sealed(scan, word_index)
    if sealed is None or sealed.start < covered_until:
        return None
    form = scan.index.sealed.get(sealed.code)
    b = scan.view.get_text_end(sealed.end)
    a = scan.view.find_beginning(scan.view.get_text_start(sealed.start), b, f"[{sealed.label}:e1:{sealed.code}]")
    kinds = scan.view.list_escapes(a, b)
    plain = form.target if form is not None else sealed.plain
    row = form.row if form is not None else -1
    if plain is None:
        why = "encrypted mentions could not be decrypted: they were changed or have another key"
        return Match(a, b, None, "encrypted", sealed.label, row, why=why) if form or sealed.bracketed else None
    rule = "exact" if form is not None and scan.view.raw[a:b] == form.text else sealed.rule
    rules = [rule, *(k for k, _ in kinds if k != rule)]
    return Match(a, b, escape_like(plain, kinds), "+".join(rules), sealed.label, row)


def _open_sealed(scan: Scan, label: str, code: str) -> str | None:
    form = scan.index.sealed.get(code)
    if form is not None:
        return form.target
    return None if scan.opener is None else scan.opener(label, code)


def _may_begin_mark(rest: str) -> bool:
    """Tell whether the end of a text may begin the mark of an encrypted mention."""
    tight = "".join(rest.split()).lower()
    return ":e1:".startswith(tight)

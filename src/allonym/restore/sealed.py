"""Encrypted mentions as they come back: in other letters, without brackets, with breaks inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from allonym.replace.keyed import TOKEN, unseal
from allonym.restore.hits import Match
from allonym.restore.view import escaped

if TYPE_CHECKING:
    from allonym.restore.scan import Scan

Opener = Callable[[str, str], "str | None"]
"""Label and code to what they stand for; None where the key does not fit."""

LONGEST = 2**16
_BASE32 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567")
_MARK = re.compile(r"\s{0,3}:\s{0,3}[eE]1\s{0,3}:\s{0,3}")
_UNIT = 16
_TRIES = 24


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted mention that was found, in places of the view.

    Attributes:
        code: capital, without breaks.
        plain: what it stands for; None where that is not known.
        bracketed: whether it has its brackets.
        rule: how it was known.
    """

    start: int
    end: int
    label: str
    code: str = field(repr=False)
    plain: str | None = field(repr=False)
    bracketed: bool
    rule: str


def opener(key: bytes | str) -> Opener:
    """Opens with a key."""

    def opened(label: str, code: str) -> str | None:
        match = TOKEN.fullmatch(f"[{label}:e1:{code}]")
        return None if match is None else unseal(match, key)

    return opened


def _length_fits(size: int) -> bool:
    """Whether so many characters of base 32 can be a code: blocks of 16 bytes, two at least."""
    nbytes = size * 5 // 8
    return nbytes >= 2 * _UNIT and nbytes % _UNIT == 0 and (nbytes * 8 + 4) // 5 == size


def sealed_at(scan: Scan, i: int) -> Sealed | None:
    """The encrypted mention whose label begins with word ``i``; None where there is none.

    Where the brackets are gone, the code ends with the longest run of words that can be opened.
    """
    text = scan.text
    start = scan.starts[i]
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None
    end_label = i
    while end_label + 1 < scan.count and scan.gaps[end_label + 1] == "_":
        end_label += 1
    label = text[start : scan.ends[end_label]]
    mark = _MARK.match(text, scan.ends[end_label])
    if mark is None or len(label) > 64:
        if not scan.final and len(text) - scan.ends[end_label] < 12 and _may_become(text[scan.ends[end_label] :]):
            scan.short = True
        return None
    at = begin = mark.end()
    code: list[str] = []
    stops: list[tuple[int, int]] = []  # (how many characters, where they end), at the ends of words
    while at < len(text) and at - begin < LONGEST:
        c = text[at]
        if c in _BASE32:
            code.append(c)
            at += 1
            if at == len(text) or not text[at].isalnum():
                stops.append((len(code), at))
        elif c.isspace() or (c == "-" and text[at + 1 : at + 2].isspace()):
            at += 1
        else:
            break
    if at == len(text) and not scan.final and at - begin < LONGEST:
        scan.short = True
        return None
    whole = "".join(code).upper()
    open_bracket = text[start - 1 : start] == "[" or (text[start - 2 : start] == "[ ")
    low = start - 2 if text[start - 2 : start] == "[ " else start - 1
    if at < len(text) and text[at] == "]" and whole:
        bracketed = open_bracket
        plain = _opened(scan, label, whole)
        if plain is not None or (bracketed and len(whole) >= 26):
            tidy = bracketed and at - begin == len(whole) and low == start - 1 and mark[0].lower() == ":e1:"
            rule = "encrypted" if tidy else "encrypted+spacing" if bracketed else "encrypted+brackets"
            return Sealed(low if bracketed else start, at + 1, label, whole, plain, bracketed, rule)
    tries = 0
    for count, place in reversed(stops[:256]):
        if not _length_fits(count) or tries == _TRIES:
            continue
        tries += 1
        plain = _opened(scan, label, whole[:count])
        if plain is not None:
            return Sealed(
                low if open_bracket else start, place, label, whole[:count], plain, False, "encrypted+brackets"
            )
    return None


def sealed_match(scan: Scan, i: int, done: int) -> Match | None:
    """The encrypted mention whose label begins with word ``i``, decrypted, or left where that is not possible."""
    found = sealed_at(scan, i)
    if found is None or found.start < done:
        return None
    form = scan.index.sealed.get(found.code)
    b = scan.view.end(found.end)
    a = scan.view.begins(scan.view.start(found.start), b, f"[{found.label}:e1:{found.code}]")
    kinds = scan.view.kinds(a, b)
    plain = form.target if form is not None else found.plain
    row = form.row if form is not None else -1
    if plain is None:
        why = "encrypted mentions that this key does not open or that were changed"
        return Match(a, b, None, "encrypted", found.label, row, why=why) if form or found.bracketed else None
    rule = "exact" if form is not None and scan.view.raw[a:b] == form.text else found.rule
    rules = [rule, *(k for k, _ in kinds if k != rule)]
    return Match(a, b, escaped(plain, kinds), "+".join(rules), found.label, row)


def _opened(scan: Scan, label: str, code: str) -> str | None:
    form = scan.index.sealed.get(code)
    if form is not None:
        return form.target
    return None if scan.opener is None else scan.opener(label, code)


def _may_become(rest: str) -> bool:
    """Whether the end of a text can be the beginning of an encrypted mention's mark."""
    tight = "".join(rest.split()).lower()
    return ":e1:".startswith(tight)

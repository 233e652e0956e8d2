"""New codes of a given shape: keyed, plausible in their parts, with a check digit that the detectors accept.

``shapes.tsv`` has a row for each form of a label: ``when`` is a regular expression that the code (capitals and digits
without separators) must match from its start, whose groups stay as they are; ``shape`` says what each character
becomes; ``valid`` names the validator of :mod:`allonym.checksums`. In a shape

- ``9`` is a digit, ``A`` a letter, ``*`` a digit or a letter as it was, ``h`` a hexadecimal digit, ``=`` stays;
- ``%`` is a digit that stays odd or even (it tells the sex), ``[...]`` one of a set: of the same kind as it was where
  the set has such, so ``[0]`` is always a zero;
- ``?`` is a check digit or letter: all are tried;
- ``YYYY``, ``YY``, ``MM``, ``DD`` are parts of a birth date: a year up to three away, any month and day, with the
  offsets that some countries add for the century or the sex;
- ``{n}`` repeats, ``+`` repeats to the end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

from allonym.checksums import validator
from allonym.replace.cast import Ledger
from allonym.replace.digits import Surface

DRAWS = 400
"""Codes that are drawn at most until a validator accepts one."""

_DIGITS, _LETTERS, _HEX = string.digits, string.ascii_uppercase, "0123456789ABCDEF"
_TOKEN = re.compile(r"(\[[^\]]+\]|YYYY|YY|MM|DD|[9A*=?%h])(?:\{([0-9]+)\}|(\+))?")
_DATE_PARTS = {"YYYY": 4, "YY": 2, "MM": 2, "DD": 2}


class Shape(NamedTuple):
    """A row of the table.

    Attributes:
        when: what a code must match from its start; its groups stay.
        tokens: kind of each character; the last one again and again where ``open``.
        open: whether longer codes have this shape.
        valid: the validator's name, or empty.
    """

    when: re.Pattern[str]
    tokens: tuple[str, ...]
    open: bool
    valid: str


ANY = Shape(re.compile(""), ("*",), True, "")
"""Letters become letters, digits digits."""


class Draws:
    """A keyed stream of numbers for one choice."""

    def __init__(self, ledger: Ledger, kind: str, key: str, attempt: int) -> None:
        self._next: Callable[[int], int] = lambda i: ledger.number(kind, f"{key}\0{attempt}", i)
        self._count = self._value = self._room = 0

    def below(self, n: int) -> int:
        """A number from 0 to ``n - 1``; ``n`` is at most 2**32."""
        if self._room < 1 << 32:
            self._value, self._room = self._next(self._count), 1 << 64
            self._count += 1
        self._value, out = divmod(self._value, n)
        self._room //= n
        return out

    def pick(self, pool: Sequence[str]) -> str:
        """One of a pool that must not be empty."""
        return pool[self.below(len(pool))]


@cache
def _table() -> dict[str, tuple[Shape, ...]]:
    rows: dict[str, list[Shape]] = {}
    text = files("allonym").joinpath("replace", "shapes.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        label, when, shape, valid = [*line.split("\t"), "", ""][:4]
        tokens, open_end = _tokens(shape)
        rows.setdefault(label, []).append(Shape(re.compile(when), tokens, open_end, valid))
    return {label: tuple(found) for label, found in rows.items()}


def _tokens(shape: str) -> tuple[tuple[str, ...], bool]:
    out: list[str] = []
    at = 0
    open_end = False
    while at < len(shape):
        match = _TOKEN.match(shape, at)
        if match is None or open_end:
            raise ValueError(f"shapes.tsv: {shape!r} is no shape, from {at} on")
        token, count, more = match.groups()
        if token[0] == "[":
            token = _characters(token[1:-1])
        if token in _DATE_PARTS:
            out += [token] * _DATE_PARTS[token]
        else:
            out += [token] * int(count or 1)
        open_end = bool(more)
        at = match.end()
    return tuple(out), open_end


def _characters(inside: str) -> str:
    """``[`` and the characters of a set such as ``A-FX2``, ranges written out."""
    return "[" + re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), inside)


def shapes(lineage: Sequence[str]) -> tuple[Shape, ...]:
    """The shapes of a label: of the nearest of its ancestors that has any."""
    table = _table()
    return next((table[name] for name in lineage if name in table), ())


def shape_of(surface: Surface, lineage: Sequence[str]) -> Shape:
    """The shape of a code: the first that fits and whose validator, if it has one, accepts it.

    Where no validator accepts it, the first that fits; where none does, :data:`ANY`.
    """
    code = surface.code
    fitting = [s for s in shapes(lineage) if _fits(code, s)]
    for found in fitting:
        if not found.valid or validator(found.valid)(surface.plain(code)):
            return found
    return fitting[0] if fitting else ANY


def _fits(code: str, shape: Shape) -> bool:
    size = len(shape.tokens)
    if not (len(code) >= size if shape.open else len(code) == size) or not shape.when.match(code):
        return False
    for char, token in zip(code, shape.tokens, strict=False):
        if token in ("9", "%", "YY", "YYYY", "MM", "DD") and not char.isdigit():
            return False
        if token == "A" and not char.isalpha():
            return False
    return True


def drawn(surface: Surface, shape: Shape, draws: Draws) -> str | None:
    """Another code of that shape, which the shape's validator accepts; None where :data:`DRAWS` draws found none."""
    code = surface.code
    tokens = shape.tokens
    if len(tokens) < len(code):
        tokens += tokens[-1:] * (len(code) - len(tokens))
    check = validator(shape.valid) if shape.valid else None
    match = shape.when.match(code)
    kept = {i for g in range(1, shape.when.groups + 1) if match for i in range(*match.span(g))}
    tried = [i for i, token in enumerate(tokens) if token == "?" and i not in kept]
    if not kept.issuperset(range(len(code))):
        for _ in range(DRAWS if check or tried else 8):
            new = _draw(code, tokens, shape.open, kept, draws)
            for ending in product(*(_kind(code[i]) for i in tried)):
                for i, char in zip(tried, ending, strict=True):
                    new[i] = char
                out = "".join(new)
                if out != code and (check is None or check(surface.plain(out))):
                    return out
    return None


def _draw(code: str, tokens: Sequence[str], open_end: bool, kept: set[int], draws: Draws) -> list[str]:
    out = list(code)
    years = 1 + draws.below(3)
    i = 0
    while i < len(code):
        token = tokens[i]
        if i in kept or token in ("=", "?"):
            i += 1
        elif token in _DATE_PARTS:
            size = _DATE_PARTS[token]
            out[i : i + size] = _date_part(token, code[i : i + size], years, draws)
            i += size
        else:
            out[i] = draws.pick(_choices(token, code, i, open_end))
            i += 1
    return out


@lru_cache(maxsize=512)
def _set(token: str, kind: str) -> str:
    if token[0] == "[":
        return "".join(c for c in token[1:] if c in kind) or token[1:]
    return {"9": _DIGITS, "A": _LETTERS, "h": _HEX}.get(token, kind)


def _choices(token: str, code: str, at: int, open_end: bool) -> str:
    char = code[at]
    if token == "%":
        return "02468" if char in "02468" else "13579"
    out = _set(token, _kind(char))
    if open_end and char.isdigit() and out == _DIGITS and not code[at - 1 : at].isdigit():
        rest = re.match(r"[0-9]+", code[at:])
        if char == "0" and rest and len(rest[0]) > 3:
            return "0"  # what is padded stays padded
        return _DIGITS[1:]
    if open_end and char == "0" and set(re.split(r"[^0-9]", code[:at])[-1]) == {"0"}:
        rest = re.match(r"[0-9]+", code[at:])
        if rest and len(rest[0]) > 3:
            return "0"
    return out


def _kind(char: str) -> str:
    return _DIGITS if char.isdigit() else _LETTERS


def _date_part(token: str, was: str, years: int, draws: Draws) -> str:
    value = int(was)
    if token[0] == "Y":
        century = value % 100
        later = century + years < 100 and (century < 20 or century > 30) and draws.below(2)
        earlier = value - years if century >= years else value + years
        return f"{value + years if later else earlier:0{len(was)}}"
    most, steps = (12, (20, 40, 50, 60, 80)) if token == "MM" else (28, (40, 50, 60))
    offset = next((s for s in reversed(steps) if s < value <= s + (31 if token == "DD" else 12)), 0)
    return f"{offset + 1 + draws.below(most):02}"

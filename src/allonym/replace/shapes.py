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
from itertools import product
from typing import NamedTuple

from allonym.checksums import get_validator
from allonym.replace.cast import Ledger
from allonym.replace.digits import Code
from allonym.replace.tables import read_tsv

DRAWS = 400
"""The most codes that are drawn until a validator accepts one."""

DIGITS, LETTERS, _HEX = string.digits, string.ascii_uppercase, "0123456789ABCDEF"
_TOKEN = re.compile(r"(\[[^\]]+\]|YYYY|YY|MM|DD|[9A*=?%h])(?:\{([0-9]+)\}|(\+))?")
_DATE_PARTS = {"YYYY": 4, "YY": 2, "MM": 2, "DD": 2}


class Shape(NamedTuple):
    """A row of the table.

    Attributes:
        when: what a code must match from its start; its groups stay.
        tokens: kind of each character; the last one is repeated where ``open``.
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

    def draw_number_below(self, n: int) -> int:
        """Return a number from 0 to ``n - 1``; ``n`` is at most 2**32."""
        if self._room < 1 << 32:
            self._value, self._room = self._next(self._count), 1 << 64
            self._count += 1
        self._value, out = divmod(self._value, n)
        self._room //= n
        return out

    def pick_element(self, pool: Sequence[str]) -> str:
        """Return an element of a pool that must not be empty."""
        return pool[self.draw_number_below(len(pool))]

    def draw_digit_string(self, count: int) -> str:
        """Return this many digits."""
        return "".join(str(self.draw_number_below(10)) for _ in range(count))


@cache
def _read_shapes() -> dict[str, tuple[Shape, ...]]:
    out: dict[str, tuple[Shape, ...]] = {}
    for row in read_tsv("shapes.tsv"):
        label, when, shape, valid = [*row, "", ""][:4]
        tokens, open_end = _parse_shape(shape)
        out[label] = (*out.get(label, ()), Shape(re.compile(when), tokens, open_end, valid))
    return out


def _parse_shape(shape: str) -> tuple[tuple[str, ...], bool]:
    out: list[str] = []
    position = 0
    open_end = False
    while position < len(shape):
        match = _TOKEN.match(shape, position)
        if match is None or open_end:
            raise ValueError(f"shapes.tsv: {shape!r} is no shape, from {position} on")
        token, count, more = match.groups()
        if token[0] == "[":
            token = _expand_ranges(token[1:-1])
        out += [token] * _DATE_PARTS.get(token, int(count or 1))
        open_end = bool(more)
        position = match.end()
    return tuple(out), open_end


def _expand_ranges(inside: str) -> str:
    """Return ``[`` and the characters of a set such as ``A-FX2``, ranges written out."""
    return "[" + re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), inside)


def find_shape(code: Code, lineage: Sequence[str]) -> Shape:
    """Return the shape of a code: the first that fits and whose validator, if it has one, accepts it.

    The shapes are those of the nearest ancestor of the label that has any. Where no validator accepts the code, it is
    the first that fits; where none does, :data:`ANY`.
    """
    table = _read_shapes()
    shapes = next((table[name] for name in lineage if name in table), ())
    fitting = [s for s in shapes if _fits_shape(code.characters, s)]
    text = code.write_with_separators(code.characters)
    valid = (s for s in fitting if not s.valid or get_validator(s.valid)(text))
    return next(valid, fitting[0] if fitting else ANY)


def _fits_shape(code: str, shape: Shape) -> bool:
    size = len(shape.tokens)
    if not (len(code) >= size if shape.open else len(code) == size) or not shape.when.match(code):
        return False
    for char, token in zip(code, shape.tokens, strict=False):
        if token in ("9", "%", *_DATE_PARTS) and not char.isdigit():
            return False
        if token == "A" and not char.isalpha():
            return False
    return True


def draw_shape(code: Code, shape: Shape, draws: Draws) -> str | None:
    """Return another code of that shape, which its validator accepts; None where :data:`DRAWS` draws gave none."""
    old = code.characters
    tokens = shape.tokens
    if len(tokens) < len(old):
        tokens += tokens[-1:] * (len(old) - len(tokens))
    check = get_validator(shape.valid) if shape.valid else None
    match = shape.when.match(old)
    fixed = {i for g in range(1, shape.when.groups + 1) if match for i in range(*match.span(g))}
    checks = [i for i, token in enumerate(tokens) if token == "?" and i not in fixed]
    if not fixed.issuperset(range(len(old))):
        for _ in range(DRAWS if check or checks else 8):
            new = _draw_characters(old, tokens, shape.open, fixed, draws)
            for ending in product(*(_get_character_alphabet(old[i]) for i in checks)):
                for i, char in zip(checks, ending, strict=True):
                    new[i] = char
                out = "".join(new)
                if out != old and (check is None or check(code.write_with_separators(out))):
                    return out
    return None


def _draw_characters(code: str, tokens: Sequence[str], open_end: bool, fixed: set[int], draws: Draws) -> list[str]:
    out = list(code)
    years = 1 + draws.draw_number_below(3)
    i = 0
    while i < len(code):
        token = tokens[i]
        size = _DATE_PARTS.get(token, 1)
        if i in fixed or token in ("=", "?"):
            size = 1
        elif token in _DATE_PARTS:
            out[i : i + size] = _draw_date_part(token, code[i : i + size], years, draws)
        else:
            out[i] = draws.pick_element(_list_choices(token, code, i, open_end))
        i += size
    return out


@lru_cache(maxsize=512)
def _list_characters(token: str, alphabet: str) -> str:
    if token[0] == "[":
        return "".join(c for c in token[1:] if c in alphabet) or token[1:]
    return {"9": DIGITS, "A": LETTERS, "h": _HEX}.get(token, alphabet)


def _list_choices(token: str, code: str, index: int, open_end: bool) -> str:
    """Return the characters that a place may get; the first of an open number is not 0, unless it is padded."""
    char = code[index]
    if token == "%":
        return "02468" if char in "02468" else "13579"
    out = _list_characters(token, _get_character_alphabet(char))
    if not open_end:
        return out
    starts_number = char.isdigit() and out == DIGITS and not code[index - 1 : index].isdigit()
    zeros_before = set(re.split(r"[^0-9]", code[:index])[-1]) == {"0"}
    if char == "0" and (starts_number or zeros_before):
        rest = re.match(r"[0-9]+", code[index:])
        if rest and len(rest[0]) > 3:
            return "0"  # what is padded stays padded
    return DIGITS[1:] if starts_number else out


def _get_character_alphabet(char: str) -> str:
    return DIGITS if char.isdigit() else LETTERS


def _draw_date_part(token: str, old: str, years: int, draws: Draws) -> str:
    value = int(old)
    if token[0] == "Y":
        century = value % 100
        later = century + years < 100 and (century < 20 or century > 30) and draws.draw_number_below(2)
        earlier = value - years if century >= years else value + years
        return f"{value + years if later else earlier:0{len(old)}}"
    most, steps = (12, (20, 40, 50, 60, 80)) if token == "MM" else (28, (40, 50, 60))
    offset = next((s for s in reversed(steps) if s < value <= s + (31 if token == "DD" else 12)), 0)
    return f"{offset + 1 + draws.draw_number_below(most):02}"

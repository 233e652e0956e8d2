"""Reads the letters and digits of numbers and codes, and draws others: keyed, plausible, in the same shape.

Separators, grouping, case and script stay: ``(212) 555-0143``, ``４１１１``, ``five five five, double one``.

``shapes.tsv`` has a row for each form of a label: ``when`` is a regular expression that the code (capitals and digits
without separators) must match from its start, whose groups stay as they are; ``shape`` says what each character
becomes; ``valid`` names the validator of :mod:`allonym.checksums`, which the detectors use. In a shape

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
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from allonym.checksums import get_validator
from allonym.document import splice_text
from allonym.replace.cast import Ledger
from allonym.replace.tables import read_tsv
from allonym.replace.wording import ONES, capitalise_like

_DIGIT_WORDS = {word: str(i) for i, word in enumerate(ONES[:10])}
_SPOKEN = {**_DIGIT_WORDS, "oh": "0", "o": "0", "nought": "0", "naught": "0", "niner": "9"}
_MISHEARD = {"for": "4", "to": "2", "too": "2", "won": "1", "ate": "8"}
_PAIRS = {**{word: str(10 + i) for i, word in enumerate(ONES[10:])}, "hundred": "00"}
_TIMES = {"double": 2, "triple": 3, "treble": 3}
_DIGITS = {**_PAIRS, **_MISHEARD, **_SPOKEN}
_SIGNS = ("dash", "hyphen", "slash", "stroke")
_SPOKEN_TOKEN = re.compile(r"[A-Za-z]+|[0-9]")
_DIGIT_WORD = re.compile(rf"(?i)\b(?:{'|'.join((*_SPOKEN, *_SIGNS))})\b")

_JOINT = re.compile(r"(?<= )of(?= )")
"""The word of "318 of 2022", which is no part of the code."""

PlacedCharacters = tuple[int, int, str]
"""Start, end, and the letters and digits that stand there: capitals, ASCII digits."""


@dataclass(frozen=True, slots=True)
class Code:
    """A number or code as it is written in a text.

    Attributes:
        text: as it is written. Hidden from ``repr``, as are the slots.
        slots: where its letters and digits stand; a spoken ``double five`` is one slot of two digits.
    """

    text: str = field(repr=False)
    slots: tuple[PlacedCharacters, ...] = field(repr=False)

    @property
    def is_spoken(self) -> bool:
        """Whether words stand for some of its digits."""
        return any(end - start > 1 for start, end, _ in self.slots)

    @property
    def characters(self) -> str:
        """Its letters and digits alone, as capitals and ASCII digits."""
        return "".join(slot[2] for slot in self.slots)

    def add_separators(self, characters: str) -> str:
        """Return other characters with the separators of this code, for validators; without them where it is spoken."""
        if self.is_spoken:
            return characters
        return splice_text(self.text, ((a, b, c) for (a, b, _), c in zip(self.slots, characters, strict=True)))

    def replace_characters(self, characters: str) -> str:
        """Return the text with other characters, as many as it has, in the case and script of the old ones.

        Raises:
            ValueError: they are more or fewer.
        """
        if len(characters) != sum(len(slot[2]) for slot in self.slots):
            raise ValueError("a code of another length does not fit this surface")
        upper = any(c.isupper() for c in self.text) and not any(c.islower() for c in self.text)
        changes, used = [], 0
        for start, end, old in self.slots:
            new = characters[used : used + len(old)]
            used += len(old)
            surface = self.text[start:end]
            is_spoken = end - start > 1
            new = _write_spoken_digits(surface, new) if is_spoken else _write_like_old_character(surface, new, upper)
            changes.append((start, end, new))
        return splice_text(self.text, changes)


def read_code(text: str, *, spoken: bool = True) -> Code:
    """Read the letters and digits of a text. With ``spoken``, words for digits count where no other words stand."""
    slots = tuple(_read_spoken_characters(text)) if spoken and _DIGIT_WORD.search(text) else ()
    if not slots:
        joints = {i for match in _JOINT.finditer(text) for i in range(*match.span())}
        slots = tuple(slot for slot in _read_written_characters(text) if slot[0] not in joints)
    return Code(text, slots)


def _read_written_characters(text: str) -> Iterator[PlacedCharacters]:
    if text.isascii():
        yield from ((i, i + 1, c.upper()) for i, c in enumerate(text) if c.isalnum())
        return
    for i, c in enumerate(text):
        digit = unicodedata.decimal(c, None)
        if digit is not None:
            yield i, i + 1, str(digit)
        elif c.isalpha():
            folded = unicodedata.normalize("NFKD", c)[0].upper()
            yield i, i + 1, folded if len(folded) == 1 and folded.isascii() and folded.isalpha() else c


def _read_spoken_characters(text: str) -> Iterator[PlacedCharacters]:
    tokens = [token for token in _SPOKEN_TOKEN.finditer(text) if token[0].lower() not in _SIGNS]
    words = (token[0] for token in tokens if token[0].isalpha() and not (len(token[0]) == 1 and token[0].isupper()))
    if any(word.lower() not in _DIGITS.keys() | _TIMES.keys() for word in words):
        return
    start, times = -1, 1
    for token in tokens:
        word = token[0].lower()
        if word in _TIMES:
            start, times = token.start(), _TIMES[word]
            continue
        yield (start if times > 1 else token.start()), token.end(), _DIGITS.get(word, word) * times
        times = 1


def _write_like_old_character(old: str, new: str, upper: bool) -> str:
    if new.isdigit() and new.isascii():
        digit = unicodedata.decimal(old, None)
        return new if digit is None or old.isascii() else chr(ord(old) - digit + int(new))
    if old.isalpha():
        return new.lower() if old.islower() else new.upper()
    return new if upper else new.lower()


def _write_spoken_digits(old: str, digits: str) -> str:
    """Return digits in words, as an old surface has them: ``oh`` or ``zero``, ``double five``."""
    first = old.split()[0]
    zero = "oh" if re.search(r"(?i)\boh?\b", old) else "zero"
    names = [zero if d == "0" else ONES[int(d)] for d in digits]
    repeated = first.lower() in _TIMES and len(set(digits)) == 1
    return capitalise_like(f"{first} {names[0]}" if repeated else " ".join(names), old)


DRAWS = 400
"""The most codes that are drawn until a validator accepts one."""

DIGITS, LETTERS, _HEX = string.digits, string.ascii_uppercase, "0123456789ABCDEF"
_SHAPE_TOKEN = re.compile(r"(\[[^\]]+\]|YYYY|YY|MM|DD|[9A*=?%h])(?:\{([0-9]+)\}|(\+))?")
_RANGE = re.compile(r"([^\[])-(.)")
_DATE_PARTS = {"YYYY": 4, "YY": 2, "MM": 2, "DD": 2}


class Shape(NamedTuple):
    """A row of the table.

    Attributes:
        when: what a code must match from its start; its groups stay.
        symbols: kind of each character; the last one is repeated where ``open``.
        open: whether longer codes have this shape.
        valid: the validator's name, or empty.
    """

    when: re.Pattern[str]
    symbols: tuple[str, ...]
    open: bool
    valid: str


ANY = Shape(re.compile(""), ("*",), True, "")
"""Letters become letters, digits digits."""


class Draws:
    """A keyed stream of numbers for one ``attempt`` at a choice."""

    def __init__(self, ledger: Ledger, kind: str, key: str, attempt: int) -> None:
        self.attempt = attempt
        self._next: Callable[[int], int] = lambda i: ledger.draw_number(kind, f"{key}\0{attempt}", i)
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
        symbols, open_end = _parse_shape(shape)
        out[label] = (*out.get(label, ()), Shape(re.compile(when), symbols, open_end, valid))
    return out


def _parse_shape(shape: str) -> tuple[tuple[str, ...], bool]:
    out: list[str] = []
    position = 0
    open_end = False
    while position < len(shape):
        match = _SHAPE_TOKEN.match(shape, position)
        if match is None or open_end:
            raise ValueError(f"shapes.tsv: {shape!r} is no shape, from {position} on")
        symbol, count, more = match.groups()
        if symbol[0] == "[":  # "[A-FX2]" becomes "[ABCDEFX2"
            symbol = _RANGE.sub(lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), symbol[:-1])
        out += [symbol] * _DATE_PARTS.get(symbol, int(count or 1))
        open_end = bool(more)
        position = match.end()
    return tuple(out), open_end


def find_shape(code: Code, lineage: Sequence[str]) -> Shape:
    """Return the shape of a code: the first that fits and whose validator, if it has one, accepts it.

    The shapes are those of the nearest ancestor of the label that has any. Where no validator accepts the code, it is
    the first that fits; where none does, :data:`ANY`.
    """
    table = _read_shapes()
    shapes = next((table[name] for name in lineage if name in table), ())
    fitting = [s for s in shapes if _fits_shape(code.characters, s)]
    text = code.add_separators(code.characters)
    valid = (s for s in fitting if not s.valid or get_validator(s.valid)(text))
    return next(valid, fitting[0] if fitting else ANY)


def _fits_shape(code: str, shape: Shape) -> bool:
    size = len(shape.symbols)
    if not (len(code) >= size if shape.open else len(code) == size) or not shape.when.match(code):
        return False
    for char, symbol in zip(code, shape.symbols, strict=False):
        if symbol in ("9", "%", *_DATE_PARTS) and not char.isdigit():
            return False
        if symbol == "A" and not char.isalpha():
            return False
    return True


def draw_shaped_code(code: Code, shape: Shape, draws: Draws) -> str | None:
    """Return another code of that shape, which its validator accepts; None where :data:`DRAWS` draws gave none."""
    old = code.characters
    symbols = shape.symbols
    if len(symbols) < len(old):
        symbols += symbols[-1:] * (len(old) - len(symbols))
    check = get_validator(shape.valid) if shape.valid else None
    match = shape.when.match(old)
    fixed = {i for g in range(1, shape.when.groups + 1) if match for i in range(*match.span(g))}
    checks = [i for i, symbol in enumerate(symbols) if symbol == "?" and i not in fixed]
    if not fixed.issuperset(range(len(old))):
        for _ in range(DRAWS if check or checks else 8):
            new = _draw_characters(old, symbols, shape.open, fixed, draws)
            for ending in product(*(_get_character_alphabet(old[i]) for i in checks)):
                for i, char in zip(checks, ending, strict=True):
                    new[i] = char
                out = "".join(new)
                if out != old and (check is None or check(code.add_separators(out))):
                    return out
    return None


def _draw_characters(code: str, symbols: Sequence[str], open_end: bool, fixed: set[int], draws: Draws) -> list[str]:
    out = list(code)
    years = 1 + draws.draw_number_below(3)
    i = 0
    while i < len(code):
        symbol = symbols[i]
        size = _DATE_PARTS.get(symbol, 1)
        if i in fixed or symbol in ("=", "?"):
            size = 1
        elif symbol in _DATE_PARTS:
            out[i : i + size] = _draw_date_part(symbol, code[i : i + size], years, draws)
        else:
            out[i] = draws.pick_element(_list_replacement_characters(symbol, code, i, open_end))
        i += size
    return out


@lru_cache(maxsize=512)
def _list_symbol_characters(symbol: str, alphabet: str) -> str:
    if symbol[0] == "[":
        return "".join(c for c in symbol[1:] if c in alphabet) or symbol[1:]
    return {"9": DIGITS, "A": LETTERS, "h": _HEX}.get(symbol, alphabet)


def _list_replacement_characters(symbol: str, code: str, index: int, open_end: bool) -> str:
    """Return the characters that a place may get; the first of an open number is not 0, unless it is padded."""
    char = code[index]
    if symbol == "%":
        return "02468" if char in "02468" else "13579"
    out = _list_symbol_characters(symbol, _get_character_alphabet(char))
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


def _draw_date_part(symbol: str, old: str, years: int, draws: Draws) -> str:
    value = int(old)
    if symbol[0] == "Y":
        century = value % 100
        later = century + years < 100 and (century < 20 or century > 30) and draws.draw_number_below(2)
        earlier = value - years if century >= years else value + years
        return f"{value + years if later else earlier:0{len(old)}}"
    most, steps = (12, (20, 40, 50, 60, 80)) if symbol == "MM" else (28, (40, 50, 60))
    offset = next((s for s in reversed(steps) if s < value <= s + (31 if symbol == "DD" else 12)), 0)
    return f"{offset + 1 + draws.draw_number_below(most):02}"


def draw_digits(ledger: Ledger, kind: str, key: str, old: str, attempt: int = 0) -> str:
    """Return as many other digits; four that look like a year of birth are one again."""
    number = ledger.draw_number(f"{kind} digits", key, attempt)
    if len(old) == 4 and old[:2] in ("19", "20"):
        new = str(1955 + number % 55)
    else:
        if len(old) < 19:
            new = str(number % 10 ** len(old)).zfill(len(old))
        else:
            new = "".join(str(ledger.draw_number(f"{kind} digit {i}", key, attempt) % 10) for i in range(len(old)))
        if old[0] != "0" and new[0] == "0":
            new = "123456789"[number % 9] + new[1:]
    return new if new != old else new[:-1] + str((int(new[-1]) + 1 + number % 9) % 10)


def draw_similar_code(ledger: Ledger, old: str, attempt: int = 0) -> str:
    """Return a code of the same shape: digits for digits, letters for letters, hexadecimal for hexadecimal."""
    bare = [c for c in old if c.isalnum()]
    hexadecimal = len(bare) > 7 and all(c in string.hexdigits for c in bare)
    letters = "abcdef" if hexadecimal else string.ascii_lowercase
    out = list(old)
    for i, char in enumerate(old):
        if char.isalnum():
            alphabet = DIGITS if char.isdigit() else letters.upper() if char.isupper() else letters
            out[i] = alphabet[ledger.draw_number(f"address code {i}", old, attempt) % len(alphabet)]
    return "".join(out)

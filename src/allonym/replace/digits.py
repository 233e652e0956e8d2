"""Reading the letters and digits of a number or code however it is written, and writing others in their places.

Separators, grouping, case and script stay: ``(212) 555-0143``, ``４１１１``, ``five five five, double one``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

_SAID = {"zero": "0", "oh": "0", "o": "0", "nought": "0", "naught": "0", "one": "1", "two": "2", "three": "3"}
_SAID |= {"four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "niner": "9"}
_MISHEARD = {"for": "4", "to": "2", "too": "2", "won": "1", "ate": "8"}
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_PAIRS = {**{word: str(10 + i) for i, word in enumerate(_TEENS)}, "hundred": "00"}
_TIMES = {"double": 2, "triple": 3, "treble": 3}
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]")
_DIGIT_WORD = re.compile(rf"(?i)\b(?:{'|'.join(_SAID)})\b")

Slot = tuple[int, int, str]
"""Start, end, and the letters and digits that stand there: capitals, ASCII digits."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A number or code as it stands in a text.

    Attributes:
        text: as it is written. Hidden from ``repr``, as are the slots.
        slots: where its letters and digits stand; a spoken ``double five`` is one slot of two digits.
    """

    text: str = field(repr=False)
    slots: tuple[Slot, ...] = field(repr=False)

    @property
    def code(self) -> str:
        """Letters and digits alone, as capitals and ASCII digits."""
        return "".join(slot[2] for slot in self.slots)

    def plain(self, code: str) -> str:
        """``code`` with the separators of this surface, for validators; without them where it is spoken."""
        if any(end - start != 1 for start, end, _ in self.slots):
            return code
        out = list(self.text)
        for (at, _, _), char in zip(self.slots, code, strict=True):
            out[at] = char
        return "".join(out)

    def written(self, code: str) -> str:
        """``code``, which must be as long as :attr:`code`, in place of what stands here.

        Raises:
            ValueError: it has another length.
        """
        if len(code) != sum(len(slot[2]) for slot in self.slots):
            raise ValueError("a code of another length does not fit this surface")
        upper = any(c.isupper() for c in self.text) and not any(c.islower() for c in self.text)
        out: list[str] = []
        at = taken = 0
        for start, end, chars in self.slots:
            new = code[taken : taken + len(chars)]
            taken += len(chars)
            out.append(self.text[at:start])
            was = self.text[start:end]
            out.append(_char(was, new, upper) if end - start == 1 else _said(was, new))
            at = end
        out.append(self.text[at:])
        return "".join(out)


def read(text: str, *, spoken: bool = True) -> Surface:
    """The letters and digits of a surface. With ``spoken``, words for digits count as digits where no others stand."""
    if spoken and _DIGIT_WORD.search(text):
        said = tuple(_spoken(text))
        if said:
            return Surface(text, said)
    return Surface(text, tuple(_written(text)))


def _written(text: str) -> Iterator[Slot]:
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


def _spoken(text: str) -> Iterator[Slot]:
    tokens = list(_TOKEN.finditer(text))
    known = {*_SAID, *_MISHEARD, *_PAIRS, *_TIMES}
    if any(t[0].isalpha() and t[0].lower() not in known for t in tokens):
        return
    start, times = -1, 1
    for token in tokens:
        word = token[0].lower()
        if word in _TIMES:
            start, times = token.start(), _TIMES[word]
            continue
        digits = _SAID.get(word) or _MISHEARD.get(word) or _PAIRS.get(word) or word
        yield (start if times > 1 else token.start()), token.end(), digits * times
        times = 1


def _char(was: str, new: str, upper: bool) -> str:
    if new.isdigit() and new.isascii():
        digit = unicodedata.decimal(was, None)
        return new if digit is None or was.isascii() else chr(ord(was) - digit + int(new))
    if was.isalpha():
        return new.lower() if was.islower() else new.upper()
    return new if upper else new.lower()


def _said(was: str, new: str) -> str:
    first = was.split()[0]
    times = _TIMES.get(first.lower(), 1)
    zero = "oh" if re.search(r"(?i)\boh?\b", was) else "zero"
    said = [zero if d == "0" else _WORDS[int(d)] for d in new]
    out = f"{first} {said[0]}" if times > 1 and len(set(new)) == 1 else " ".join(said)
    return out.upper() if was.isupper() else out[0].upper() + out[1:] if was[0].isupper() else out

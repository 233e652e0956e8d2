"""Reads the letters and digits of a number or code however it is written, and writes others in their places.

Separators, grouping, case and script stay: ``(212) 555-0143``, ``４１１１``, ``five five five, double one``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from allonym.replace.wording import ONES, capitalise_like, splice_text

_DIGIT_WORDS = {word: str(i) for i, word in enumerate(ONES[:10])}
_SPOKEN = {**_DIGIT_WORDS, "oh": "0", "o": "0", "nought": "0", "naught": "0", "niner": "9"}
_MISHEARD = {"for": "4", "to": "2", "too": "2", "won": "1", "ate": "8"}
_PAIRS = {**{word: str(10 + i) for i, word in enumerate(ONES[10:])}, "hundred": "00"}
_TIMES = {"double": 2, "triple": 3, "treble": 3}
_DIGITS = {**_PAIRS, **_MISHEARD, **_SPOKEN}
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]")
_DIGIT_WORD = re.compile(rf"(?i)\b(?:{'|'.join(_SPOKEN)})\b")

Slot = tuple[int, int, str]
"""Start, end, and the letters and digits that stand there: capitals, ASCII digits."""


@dataclass(frozen=True, slots=True)
class Code:
    """A number or code as it is written in a text.

    Attributes:
        text: as it is written. Hidden from ``repr``, as are the slots.
        slots: where its letters and digits stand; a spoken ``double five`` is one slot of two digits.
    """

    text: str = field(repr=False)
    slots: tuple[Slot, ...] = field(repr=False)

    @property
    def characters(self) -> str:
        """Its letters and digits alone, as capitals and ASCII digits."""
        return "".join(slot[2] for slot in self.slots)

    def write_with_separators(self, characters: str) -> str:
        """Return other characters with the separators of this code, for validators; without them where it is spoken."""
        if any(end - start != 1 for start, end, _ in self.slots):
            return characters
        return splice_text(self.text, ((a, b, c) for (a, b, _), c in zip(self.slots, characters, strict=True)))

    def write(self, characters: str) -> str:
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
            changes.append(
                (start, end, _write_character(surface, new, upper) if end - start == 1 else _speak_digits(surface, new))
            )
        return splice_text(self.text, changes)


def read_code(text: str, *, spoken: bool = True) -> Code:
    """Read the letters and digits of a text. With ``spoken``, words for digits count where no other words stand."""
    slots = tuple(_read_spoken_slots(text)) if spoken and _DIGIT_WORD.search(text) else ()
    return Code(text, slots or tuple(_read_written_slots(text)))


def _read_written_slots(text: str) -> Iterator[Slot]:
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


def _read_spoken_slots(text: str) -> Iterator[Slot]:
    tokens = list(_TOKEN.finditer(text))
    if any(t[0].isalpha() and t[0].lower() not in _DIGITS.keys() | _TIMES.keys() for t in tokens):
        return
    start, times = -1, 1
    for token in tokens:
        word = token[0].lower()
        if word in _TIMES:
            start, times = token.start(), _TIMES[word]
            continue
        yield (start if times > 1 else token.start()), token.end(), _DIGITS.get(word, word) * times
        times = 1


def _write_character(old: str, new: str, upper: bool) -> str:
    if new.isdigit() and new.isascii():
        digit = unicodedata.decimal(old, None)
        return new if digit is None or old.isascii() else chr(ord(old) - digit + int(new))
    if old.isalpha():
        return new.lower() if old.islower() else new.upper()
    return new if upper else new.lower()


def _speak_digits(old: str, digits: str) -> str:
    """Return digits in words, as an old surface has them: ``oh`` or ``zero``, ``double five``."""
    first = old.split()[0]
    zero = "oh" if re.search(r"(?i)\boh?\b", old) else "zero"
    names = [zero if d == "0" else ONES[int(d)] for d in digits]
    repeated = first.lower() in _TIMES and len(set(digits)) == 1
    return capitalise_like(f"{first} {names[0]}" if repeated else " ".join(names), old)

"""Recognizers that a request brings along: patterns and lists of words, as Presidio's ``PatternRecognizer``.

Patterns run on RE2 alone, so none can run away; what RE2 refuses (look-around, back-references) is refused. RE2's
``\\w``, ``\\d``, ``\\s`` and ``\\b`` know ASCII only, so a pattern is also matched against the text with its letters,
digits and blanks turned into ASCII ones; both findings count.
"""

from __future__ import annotations

import re
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import re2

from allonym.detect.scan import matches
from allonym.detect.words import word_list
from allonym.errors import RequestError

BOOST, LEAST_BOOSTED = 0.35, 0.4
"""What a context word adds to a score, and the least that a score then is, as in Presidio."""

NEAR = 5
"""Words before a match that may be context."""

MAX_PROGRAM = 5_000
"""RE2 instructions that one pattern may compile to."""

MAX_WORK = 2_000_000_000
"""RE2 instructions times code points that one text may cost."""

SECONDS = 5.0
"""For all recognizers of a request on one text."""

MOST = 200_000
"""Places that all recognizers of a request may find."""

FLAGS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_LETTERS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
_FUNCTION = word_list("function_words")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SLICE = 1000  # matches or words between two looks at the clock


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: its name, an RE2 pattern, and the score from 0 to 1 of what it matches."""

    name: str
    regex: str
    score: float


@dataclass(frozen=True, slots=True)
class Recognizer:
    """What one recognizer looks for.

    Attributes:
        name: for explanations.
        entity: the type of what it finds.
        patterns: RE2 patterns.
        words: a deny list: found as whole words, without regard to case.
        words_score: of these.
        context: words before a match that make it likelier.
        flags: of Python's ``re``; ``IGNORECASE``, ``MULTILINE`` and ``DOTALL`` count.
    """

    name: str
    entity: str
    patterns: tuple[Pattern, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)
    words_score: float = 1.0
    context: tuple[str, ...] = ()
    flags: int = int(FLAGS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A match: where, how sure, by which pattern (None: the deny list), and the context word that helped, if any."""

    start: int
    end: int
    score: float
    recognizer: Recognizer
    pattern: Pattern | None
    word: str = field(default="", repr=False)

    @property
    def original(self) -> float:
        """The score without context."""
        return self.pattern.score if self.pattern else self.recognizer.words_score


def compiled(regex: str, flags: int, where: str) -> re2._Regexp:
    """An RE2 pattern for :func:`allonym.detect.scan.encoded` texts.

    Raises:
        RequestError: RE2 refuses it, or it is too large (400).
    """
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    letters = "".join(letter for flag, letter in _LETTERS if flags & flag)
    try:
        found = re2.compile((f"(?{letters}:{regex})" if letters else regex).encode("utf-8", "surrogatepass"), options)
    except re2.error:
        raise RequestError(
            f"{where} is not a pattern that RE2 takes; it knows no look-around and no back-references", 400, "Refused"
        ) from None
    if found.programsize > MAX_PROGRAM:
        raise RequestError(
            f"{where} is too large a pattern: {found.programsize} steps of {MAX_PROGRAM}", 400, "Refused"
        )
    return found


@lru_cache(maxsize=32)
def _patterns(recognizer: Recognizer) -> tuple[tuple[Pattern, re2._Regexp], ...]:
    return tuple(
        (one, compiled(one.regex, recognizer.flags, f"recognizer {shown(recognizer.name)}: pattern {shown(one.name)}"))
        for one in recognizer.patterns
    )


def check(recognizers: Sequence[Recognizer]) -> int:
    """How many RE2 instructions they compile to.

    Raises:
        RequestError: RE2 refuses one (400).
    """
    return sum(found.programsize for one in recognizers for _, found in _patterns(one))


def find(text: str, recognizers: Sequence[Recognizer], context: Sequence[str] = ()) -> list[Hit]:
    """What the recognizers find.

    Args:
        text: the text.
        recognizers: all of them run.
        context: further words that count as standing before each match.

    Raises:
        RequestError: the recognizers take too long on this text, or find too much in it (400).
    """
    size = check(recognizers) * len(text)
    if size > MAX_WORK:
        raise RequestError(f"these patterns are too much for a text of {len(text)} characters", 400, "Refused")
    until = time.monotonic() + SECONDS
    looked = [text] if (ascii_text := plain(text)) == text else [text, ascii_text]
    lower = _lower(text) if any(one.words for one in recognizers) else ""
    before = _Before(text)
    out: list[Hit] = []
    for recognizer in recognizers:
        helps = [word.lower() for word in recognizer.context]
        for start, end, pattern in chain(_matched(looked, recognizer, until), _listed(text, lower, recognizer, until)):
            if len(out) == MOST:
                raise too_many()
            if len(out) % _SLICE == 0:
                _in_time(until)
            hit = Hit(start, end, pattern.score if pattern else recognizer.words_score, recognizer, pattern)
            out.append(_boosted(hit, helps, [*before.words(start), *map(str.lower, context)]) if helps else hit)
    return out


def too_many() -> RequestError:
    """What a request is refused with whose recognizers find more than ``MOST`` places."""
    return RequestError(f"the recognizers find more than {MOST} places", 400, "Refused")


def _in_time(until: float) -> None:
    if time.monotonic() > until:
        raise RequestError(f"the recognizers take longer than {SECONDS:g} s on this text", 400, "Refused")


def _matched(texts: Sequence[str], recognizer: Recognizer, until: float) -> Iterator[tuple[int, int, Pattern | None]]:
    for pattern, found in _patterns(recognizer):
        seen: set[tuple[int, int]] = set()
        for text in texts:
            for number, (span, *_) in enumerate(matches(found, text)):
                # A single match takes linear time; many that each look far ahead would take quadratic time.
                if number % _SLICE == 0:
                    _in_time(until)
                if span[0] < span[1] and span not in seen:
                    seen.add(span)
                    yield (*span, pattern)


def _listed(text: str, lower: str, recognizer: Recognizer, until: float) -> Iterator[tuple[int, int, Pattern | None]]:
    for word in dict.fromkeys(map(_lower, recognizer.words)):
        _in_time(until)
        at = lower.find(word) if word else -1
        number = 0
        while at >= 0:
            number += 1
            if number % _SLICE == 0:
                _in_time(until)
            end = at + len(word)
            if not (at and _wordy(text[at - 1])) and not (end < len(text) and _wordy(text[end])):
                yield at, end, None
            at = lower.find(word, at + 1)


def _lower(text: str) -> str:
    """In lower case, of the same length."""
    return text.lower() if text.isascii() else "".join(c if len(low := c.lower()) > 1 else low for c in text)


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


def plain(text: str) -> str:
    """The text with each letter, digit and blank as an ASCII one; of the same length."""
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _plain(c) for c in text)


@lru_cache(maxsize=8192)
def _plain(char: str) -> str:
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if char.isalnum() or unicodedata.category(char).startswith("M"):
        base = unicodedata.normalize("NFKD", char)[0]
        return base if base.isascii() and base.isalnum() else "X" if char.isupper() else "x"
    return " " if char.isspace() else char


class _Before:
    """The words before a place, without function words, in lower case; the word at the place too."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[tuple[int, str]] | None = None
        self._starts: list[int] = []

    def words(self, start: int) -> list[str]:
        if self._found is None:
            pieces = ((m.start(), m[0].lower()) for m in _WORD.finditer(self._text))
            self._found = [(at, word) for at, word in pieces if word not in _FUNCTION]
            self._starts = [at for at, _ in self._found]
        here = bisect_right(self._starts, start)
        return [word for _, word in self._found[max(0, here - NEAR - 1) : here]]


def _boosted(hit: Hit, helps: Sequence[str], near: Sequence[str]) -> Hit:
    for word in helps:
        if any(word in one for one in near):
            score = min(1.0, max(hit.score + BOOST, LEAST_BOOSTED))
            return Hit(hit.start, hit.end, score, hit.recognizer, hit.pattern, word)
    return hit


def shown(name: str) -> str:
    """A name that a request gave, as it may stand in a message."""
    return repr(name) if re.fullmatch(r"[\w .()/+-]{1,60}", name) else "(no plain name)"

"""Recognizers that a request brings: patterns and lists of words, as Presidio's ``PatternRecognizer``.

Patterns run on RE2 alone, so none can run away; a pattern that RE2 refuses (look-around, back-references) is refused.
RE2's ``\\w``, ``\\d``, ``\\s`` and ``\\b`` know ASCII only, so a pattern is also matched against the text with its
letters, digits and blanks turned into ASCII ones; both findings count.
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
from operator import itemgetter

import re2

from allonym.detection import scan
from allonym.detection.words import read_word_list
from allonym.errors import RequestError
from allonym.server.wire.presidio import Pattern, PatternRecognizer

BOOST, LEAST_BOOSTED = 0.35, 0.4
"""How much a context word adds to a score, and the least resulting score, as in Presidio."""

NEAR = 5
"""Words before a match that may be context, besides the word at its start."""

MAX_PROGRAM = 5_000
"""RE2 instructions that one pattern may compile to."""

MAX_WORK = 2_000_000_000
"""RE2 instructions times code points that one text may cost."""

SECONDS = 5.0
"""Time limit for all recognizers of a request on one text."""

MOST = 200_000
"""Matches of all recognizers of a request, at most."""

_FLAG_LETTERS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
_FUNCTION_WORDS = read_word_list("function_words")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_CHECK_EVERY = 1000  # matches or words between two looks at the clock
_MatchPlace = tuple[int, int, Pattern | None]


@dataclass(frozen=True, slots=True)
class Match:
    """A match with its score, its pattern (None: the deny list), and the context word that raised the score, if any."""

    start: int
    end: int
    score: float
    recognizer: PatternRecognizer
    pattern: Pattern | None
    word: str = field(default="", repr=False)

    @property
    def original_score(self) -> float:
        """The score without context."""
        return self.pattern.score if self.pattern else self.recognizer.deny_list_score


@lru_cache(maxsize=2048)
def compile_pattern(regex: str, flags: int | None, where: str) -> re2._Regexp:
    """Compile an RE2 pattern for :func:`allonym.detection.scan.encode_text` texts.

    Args:
        regex: the pattern.
        flags: of Python's ``re``; ``IGNORECASE``, ``MULTILINE`` and ``DOTALL`` count, and are the default.
        where: what the pattern is, for messages.

    Raises:
        RequestError: RE2 refuses it, or it is too large (400).
    """
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    letters = "".join(letter for flag, letter in _FLAG_LETTERS if flags is None or flags & flag)
    source = f"(?{letters}:{regex})" if letters else regex
    try:
        pattern = re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error:
        raise make_refusal(
            f"{where} is not a pattern that RE2 takes; it knows no look-around and no back-references"
        ) from None
    if pattern.programsize > MAX_PROGRAM:
        raise make_refusal(f"{where} is too large a pattern: {pattern.programsize} steps of {MAX_PROGRAM}")
    return pattern


def _compile_patterns(recognizer: PatternRecognizer) -> list[tuple[Pattern, re2._Regexp]]:
    where, flags = f"recognizer {_quote_name(recognizer.shown_name)}: pattern", recognizer.global_regex_flags
    return [
        (pattern, compile_pattern(pattern.regex, flags, f"{where} {_quote_name(pattern.name)}"))
        for pattern in recognizer.patterns or ()
    ]


def count_re2_instructions(recognizers: Sequence[PatternRecognizer]) -> int:
    """Return how many RE2 instructions the patterns of all recognizers compile to.

    Raises:
        RequestError: RE2 refuses one (400).
    """
    return sum(compiled.programsize for r in recognizers for _, compiled in _compile_patterns(r))


def find_matches(text: str, recognizers: Sequence[PatternRecognizer], context: Sequence[str] = ()) -> list[Match]:
    """Return the matches of all recognizers.

    Args:
        text: the text.
        recognizers: all of them run.
        context: further words that count as standing before each match.

    Raises:
        RequestError: the recognizers take too long on this text, or find too much in it (400).
    """
    if count_re2_instructions(recognizers) * len(text) > MAX_WORK:
        raise make_refusal(f"these patterns are too much for a text of {len(text)} characters")
    deadline = time.monotonic() + SECONDS
    ascii_text = approximate_in_ascii(text)
    texts = [text] if ascii_text == text else [text, ascii_text]
    lower = _lower_keeping_length(text) if any(recognizer.deny_list for recognizer in recognizers) else ""
    words = _list_content_words(text) if any(recognizer.context for recognizer in recognizers) else []
    matches: list[Match] = []
    for recognizer in recognizers:
        helpful = [word.lower() for word in recognizer.context or ()]
        places = chain(
            _match_patterns(texts, recognizer, deadline), _match_deny_list(text, lower, recognizer, deadline)
        )
        for start, end, pattern in places:
            check_match_count(len(matches) + 1)
            if len(matches) % _CHECK_EVERY == 0:
                _check_deadline(deadline)
            score, word = pattern.score if pattern else recognizer.deny_list_score, ""
            if helpful:
                end_of_near = bisect_right(words, start, key=itemgetter(0))
                near = [word for _, word in words[max(0, end_of_near - NEAR - 1) : end_of_near]]
                near += map(str.lower, context)
                word = next((word for word in helpful if any(word in neighbour for neighbour in near)), "")
            if word:
                score = min(1.0, max(score + BOOST, LEAST_BOOSTED))
            matches.append(Match(start, end, score, recognizer, pattern, word))
    return matches


def check_match_count(count: int) -> None:
    """Raise :class:`RequestError` where the recognizers of a request have more than ``MOST`` matches."""
    if count > MOST:
        raise make_refusal(f"the recognizers find more than {MOST} places")


def make_refusal(message: str, status: int = 400) -> RequestError:
    """Return the error for a request that Presidio's routes refuse."""
    return RequestError(message, status, "InvalidRequest")


def _check_deadline(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise make_refusal(f"the recognizers take longer than {SECONDS:g} s on this text")


def _match_patterns(versions: Sequence[str], recognizer: PatternRecognizer, deadline: float) -> Iterator[_MatchPlace]:
    """Yield the places where a recognizer's patterns match any of the versions of a text, each once."""
    for pattern, compiled in _compile_patterns(recognizer):
        yielded: set[tuple[int, int]] = set()
        for text in versions:
            for number, (span, *_) in enumerate(scan.find_matches(compiled, text)):
                # A single match takes linear time; many that each look far ahead would take quadratic time.
                if number % _CHECK_EVERY == 0:
                    _check_deadline(deadline)
                if span[0] < span[1] and span not in yielded:
                    yielded.add(span)
                    yield (*span, pattern)


def _match_deny_list(text: str, lowered: str, recognizer: PatternRecognizer, deadline: float) -> Iterator[_MatchPlace]:
    """Yield the places where a recognizer's deny list stands as whole words."""
    for word in dict.fromkeys(map(_lower_keeping_length, recognizer.deny_list or ())):
        _check_deadline(deadline)
        start = lowered.find(word) if word else -1
        number = 0
        while start >= 0:
            number += 1
            if number % _CHECK_EVERY == 0:
                _check_deadline(deadline)
            end = start + len(word)
            if not (start and _is_word_char(text[start - 1])) and not (end < len(text) and _is_word_char(text[end])):
                yield start, end, None
            start = lowered.find(word, start + 1)


def _lower_keeping_length(text: str) -> str:
    """Return the text in lower case, of the same length."""
    return text.lower() if text.isascii() else "".join(c if len(low := c.lower()) > 1 else low for c in text)


def _is_word_char(char: str) -> bool:
    return char.isalnum() or char == "_"


def approximate_in_ascii(text: str) -> str:
    """Return the text with each letter, digit and blank as an ASCII one; of the same length."""
    return text if text.isascii() else "".join(c if c.isascii() else _approximate_char_in_ascii(c) for c in text)


@lru_cache(maxsize=8192)
def _approximate_char_in_ascii(char: str) -> str:
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if char.isalnum() or unicodedata.category(char).startswith("M"):
        base = unicodedata.normalize("NFKD", char)[0]
        return base if base.isascii() and base.isalnum() else "X" if char.isupper() else "x"
    return " " if char.isspace() else char


def _list_content_words(text: str) -> list[tuple[int, str]]:
    """Return the words of a text without function words, in lower case, each after its offset."""
    pairs = ((match.start(), match[0].lower()) for match in _WORD.finditer(text))
    return [(offset, word) for offset, word in pairs if word not in _FUNCTION_WORDS]


def _quote_name(name: str) -> str:
    """Return a name that a request brought, as it may stand in a message."""
    return repr(name) if re.fullmatch(r"[\w .()/+-]{1,60}", name) else "(no plain name)"

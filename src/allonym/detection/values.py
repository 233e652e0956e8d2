"""What may follow the name of a number: a code in groups, spelled or spoken, a date, a password.

Every function reads from a position of a text on, and returns what stands there, or None. Digits may be spoken
("double four, nine"), letters named ("T as in Tom", "delta"), and signs said ("20 dash 4417").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from allonym.checksums.general import named_code, secret, secret_shape
from allonym.detection.words import read_word_list
from allonym.document import Interval

_ONES = "one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_TIMES = frozenset("double triple treble".split())
_SIGNS = frozenset("dash hyphen slash stroke oblique dot point".split())
_SPOKEN = frozenset((*"zero oh nought naught nil niner hundred".split(), *_ONES, *_TEENS, *_TENS))
_ALPHABET = read_word_list("spelling_alphabet")
_NO_PREFIX = frozenset(
    "OF THE IS AND FOR ON IN TO AT BY IF AS OR NOT ARE WAS NO AN DATE FROM ALL ANY THIS THAT IT BE ID NR REF TEL FAX "
    "DOB VAT TIN IBAN BIC".split()
)

_AS_IN = re.compile(r"[A-Za-z],? (?:as in|for|like|is for) [A-Za-z]{1,20}\b")
_CHUNK = re.compile(
    r"#?[A-Za-z0-9]{1,40}(?:(?:[\-/_‐‑–]|[.:](?=[0-9])|\.(?=[A-Z][0-9./\-]))[A-Za-z0-9]{1,40}){0,9}(?![A-Za-z0-9])"
)
_GAP = re.compile(r"(?:, ?| - |[ .](?! ))(?=[A-Za-z0-9])")
_UNIT = re.compile(
    r"[ \-]?(?:%|percent|per cent|years?|months?|weeks?|days?|hours?|minutes?|times|people|persons?|pages?|dollars"
    r"|euros|pounds|thousand|million|billion|kg|km|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)\b"
)
_AMOUNT = re.compile(r"\d{1,3}(?:,\d{3}){1,6}(?!\d)|\d+[.,]\d{1,2}(?![\d.\-/])")
_DATE = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1(?:\d{2}|\d{4})|(?:19|20)\d{2}([./-])\d{1,2}\2\d{1,2}|\d{1,2}:\d{2}(?::\d{2})?"
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_YEARS = re.compile(r"(?:19|20)\d{2}[\-–/](?:19|20)?\d{2}")
_SUM = re.compile(r" ?[=*+×÷]")
_WORDY = re.compile(r"(?:^|[\-/_.:])[a-z]{4,}(?:[\-/_.:]|$)")
_OF_YEAR = re.compile(r" of (?:19|20)\d\d\b")
"""The end of a court's number: "BS 7729 of 2020"."""
_REGISTER = re.compile(r"[A-Z][A-Za-z]{0,4} \d{1,5}/\d{2}")  # as in "2 BvR 1187/20"
_CLAUSE_END = re.compile(r"[.,;)]|  |\t|\n|$")
_NEXT_WORD = re.compile(r" ([a-z]+)")
_SIZE = re.compile(r"\d+x\d+")
_LONGEST = 14  # tokens of a value


@dataclass(frozen=True, slots=True)
class Code:
    """A code at ``start:end``: how many digits and letters it has, and whether it is spoken or spelled."""

    start: int
    end: int
    digits: int
    letters: int
    groups: int
    is_spoken: bool

    def is_called(self, text: str) -> bool:
        """Whether this may be what "order number" calls: three characters at least, and no year or date."""
        surface = text[self.start : self.end].lstrip("#")
        if self.is_spoken:
            return self.digits + self.letters >= 3
        is_year = surface.isdigit() and len(surface) == 4 and surface[:2] in ("19", "20")
        return self.digits + self.letters >= 3 and not is_year

    def is_plain(self, text: str) -> bool:
        """Whether this may follow "order" alone: many digits, or letters and digits that are no date or count."""
        surface = text[self.start : self.end].lstrip("#")
        if self.is_spoken or self.groups > 1:
            return self.digits >= 5
        if surface.isdigit():
            return len(surface) >= 5 and not surface.endswith("000")
        if "." in surface or (surface[0].islower() and self.digits < 5) or (surface[-1].islower() and self.letters < 2):
            return False
        return named_code(surface) and not _YEARS.fullmatch(surface)

    def is_said(self, text: str) -> bool:
        """Whether this may answer "What is the order number?"."""
        surface = text[self.start : self.end]
        has_form = self.letters > 0 and self.digits + self.letters >= 5 and surface == surface.upper()
        return self.is_called(text) and (self.is_spoken or self.digits >= 4 or has_form)

    def is_strict(self, text: str) -> bool:
        """Whether this is a code wherever it stands, so that words may lie between it and its name."""
        if self.is_spoken:
            return self.digits >= 4 and self.digits + self.letters >= 5
        surface = text[self.start : self.end]
        if _YEARS.fullmatch(surface):
            return False
        return self.digits >= 6 or (self.digits >= 4 and self.letters > 0 and self.is_plain(text))


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    kind: str  # group, letter, prefix, digit, word (spoken), sign
    digits: int
    letters: int


def _read_token(text: str, position: int, previous: _Token | None) -> _Token | None:
    match = _AS_IN.match(text, position)
    if match and match[0][0].lower() == match[0].split()[-1][0].lower():
        return _Token(position, match.end(), "letter", 0, 1)
    match = _CHUNK.match(text, position)
    if match is None:
        return None
    chunk, end = match[0].lstrip("#"), match.end()
    digits = sum(map(str.isdigit, chunk))
    if digits and (_WORDY.search(chunk) or _SIZE.fullmatch(chunk)):
        return None
    if digits:
        kind = "digit" if len(chunk) == 1 else "group"
        return _Token(position, end, kind, digits, sum(map(str.isalpha, chunk)))
    word = chunk.lower()
    parts = word.split("-")
    if all(part in _SPOKEN for part in parts):
        counts = [2 if part in _TEENS or (part in _TENS and len(parts) == 1) else 1 for part in parts]
        return _Token(position, end, "word", sum(counts), 0)
    if word in _TIMES:
        return _Token(position, end, "word", 1, 0)
    if word in _SIGNS and previous is not None:
        return _Token(position, end, "sign", 0, 0)
    if word in _ALPHABET:
        return _Token(position, end, "letter", 0, 1)
    letters = [part for part in re.split(r"[\-/_.]", chunk) if part]
    is_register = previous is not None and previous.digits and _REGISTER.match(text, position)
    is_written_big = chunk.isupper() or is_register
    if is_written_big and all(len(part) <= 6 for part in letters) and chunk not in _NO_PREFIX:
        return _Token(position, end, "letter" if len(chunk) == 1 else "prefix", 0, sum(map(len, letters)))
    return None


_SPELLED = frozenset(("letter", "digit", "word", "sign"))


def read_code(text: str, position: int) -> Code | None:
    """Read a code with at least one digit, or five spelled characters."""
    tokens: list[_Token] = []
    while len(tokens) < _LONGEST:
        token = _read_token(text, position, tokens[-1] if tokens else None)
        if token is None or not _may_continue(text, tokens, token):
            break
        tokens.append(token)
        gap = _GAP.match(text, token.end)
        if gap is None:
            break
        position = gap.end()
    while tokens and tokens[-1].kind in ("sign", "prefix"):
        tokens.pop()
    if len(tokens) > 1 and tokens[-1].kind == "letter" and not all(t.kind in _SPELLED for t in tokens):
        ends = len(tokens) > 3 and _CLAUSE_END.match(text, tokens[-1].end)  # "QQ 12 34 56 C"
        if not ends or text[tokens[-1].start] in "AI":
            tokens.pop()
    if not tokens:
        return None
    digits, letters = sum(t.digits for t in tokens), sum(t.letters for t in tokens)
    is_spoken = all(t.kind in _SPELLED for t in tokens) and len(tokens) > 1
    if not digits and not (is_spoken and letters >= 5):
        return None
    start, end = tokens[0].start, tokens[-1].end
    if digits > 1 and (year := _OF_YEAR.match(text, end)):
        end, digits = year.end(), digits + 4
    surface = text[start:end]
    if len(tokens) == 1 and (
        tokens[0].kind in _SPELLED
        or _DATE.fullmatch(surface)
        or _ORDINAL.fullmatch(surface)
        or _AMOUNT.match(text, start)
    ):
        return None
    if _SUM.match(text, end) or (surface[-1].isdigit() and _UNIT.match(text, end) and len(surface) < 6):
        return None
    return Code(start, end, digits, letters, len(tokens), is_spoken)


def _may_continue(text: str, tokens: list[_Token], token: _Token) -> bool:
    """Whether a token belongs to the code before it; one blank or comma lies between them."""
    if not tokens:
        return True
    previous = tokens[-1]
    between = text[previous.end : token.start]
    is_spelled = token.kind in _SPELLED and all(t.kind in _SPELLED for t in tokens)
    if is_spelled:
        return between != " - "
    if between in (", ", ",", " - ", "."):
        # "I N C, zero zero four" and "PX-4, double seven": pieces read out one after another
        return between == ", " and previous.kind in ("letter", "prefix", "word") and token.kind in ("word", "group")
    if previous.kind == "sign" or token.kind == "sign":
        return True
    if previous.kind == "prefix" or (previous.kind == "letter" and len(tokens) == 1):
        return token.kind in ("group", "digit", "prefix", "word", "letter")
    surface = text[token.start : token.end]
    if previous.kind == "letter":
        return token.kind in ("group", "digit")
    if token.kind == "group":
        if _DATE.fullmatch(surface) or _ORDINAL.fullmatch(surface) or _UNIT.match(text, token.end):
            return False
        before = text[previous.start : previous.end]
        if token.letters:
            return tokens[0].kind == "prefix" and surface.isupper()
        if text[token.end : token.end + 1] == "," and text[token.end + 1 : token.end + 2].isdigit():
            return False
        if len(tokens) > 1 or before.isdigit() or (previous.digits < 5 and previous.letters > 0):
            return True
        return not previous.letters and len(surface) >= 4 and surface.isdigit() and not surface.startswith(("19", "20"))
    if token.kind == "prefix":
        return len(tokens) == 1 and previous.digits < 4 and not previous.letters
    if previous.kind == "digit" and len(tokens) == 1:
        return False
    if token.kind == "letter":
        return len(tokens) > 2 and previous.kind in ("group", "digit")
    if token.kind == "digit" and len(tokens) > 1 and previous.kind in ("group", "digit"):
        word = _NEXT_WORD.match(text, token.end)
        return not _UNIT.match(text, token.end) and (word is None or word[1] in _PROSE)
    return False


_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_UNITS = f"(?:{'|'.join(_ONES)})"
_TENTH = rf"(?:{'|'.join(_TENS)})(?:[ \-]{_UNITS})?"
_SMALL = rf"(?:{'|'.join(_TEENS)}|{_UNITS})"
_RANK = (
    r"(?:(?:twenty|thirty)[ \-])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    r"|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth)"
)
_YEAR = (
    rf"(?:(?:1[6-9]|20)\d{{2}}|['’]?\d{{2}}\b|(?:nineteen|twenty)(?:,? |-)(?:{_TENTH}|{_SMALL}|oh[ \-]{_UNITS}|hundred)"
    rf"|two thousand(?:(?: and)? (?:{_TENTH}|{_SMALL}))?|{_TENTH}|oh[ \-]{_UNITS})"
)
_DAY = rf"(?:(?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)?|{_RANK})|{_SMALL}|(?:twenty|thirty)[ \-]{_UNITS})"
_TAIL = rf"(?:(?:,? (?:uh|um|er|of))*,? {_YEAR})?"
_BIRTH_DATE = re.compile(
    r"(?:the )?((?:\d{1,2}(?: ?[./\-] ?| )\d{1,2}(?: ?[./\-] ?| )(?:\d{4}|\d{2})"
    r"|(?:19|20)\d{2}[./\- ]\d{1,2}[./\- ]\d{1,2}"
    rf"|{_DAY}(?: day)?(?: of|,)? ?(?:{_MONTH}|(?:the )?{_RANK}){_TAIL}"
    rf"|{_MONTH},? (?:the )?{_DAY}{_TAIL}|{_MONTH},? (?:19|20)\d{{2}}"
    rf"|{_SMALL},? (?:{_SMALL}|(?:twenty|thirty)(?:[ \-]{_UNITS})?),? {_YEAR}"
    rf"|(?:(?:twenty|thirty)[ \-])?{_UNITS},? {_SMALL},? {_YEAR}"
    r"|(?:19|20)\d{2}))(?![\w/])",
    re.IGNORECASE,
)


def read_date(text: str, position: int) -> Interval | None:
    """Read a day, or a year alone, in digits, words or both."""
    match = _BIRTH_DATE.match(text, position)
    return match.span(1) if match else None


_QUOTED = re.compile(r"[\"“‘'`]([^\s\"“”‘’'`][^\n\"“”‘’`]{2,62}?)[\"”’'`]")
_WORD = re.compile(r"[^\s\"'<>,;“”]{1,128}[^\s\"'<>,;.!?)“”]")
_PHRASE = re.compile(r"[a-z]{3,20}(?:[ \-][a-z]{3,20}){2,7}(?=[.,;!\n]|$)")
_LONE = re.compile(r"[A-Z][\w'\-]{2,20}(?=[.!]?(?:\n|$|\"|”))")
_PROSE = read_word_list("function_words")


def read_password(text: str, position: int, link: Literal["sign", "is", ""]) -> Interval | None:
    """Read a password after what links it to its name: ``:`` or ``=``, ``is``, or nothing (a blank or a comma).

    In quotation marks and after a colon anything counts that is no word of prose; after "is" it must not look like a
    word; after nothing it needs letters and digits, or a sign inside.
    """
    quoted = _QUOTED.match(text, position)
    if quoted and secret(quoted[1]) and link:
        return quoted.span(1)
    opening = position + (text[position : position + 1] in ('"', "'", "“", "‘", "`"))
    match = _WORD.match(text, opening)
    if match is None:
        return None
    word = match[0]
    if link == "sign":
        return match.span() if secret(word) else None
    if link == "is":
        return match.span() if secret_shape(word) else None
    digits = sum(map(str.isdigit, word))
    has_sign = any(c in "!#$%&*+=?@^_~" for c in word[1:-1])
    if len(word) >= 6 and digits + has_sign and any(map(str.isalpha, word)) and secret(word):
        return match.span()
    return None


def read_phrase(text: str, position: int) -> Interval | None:
    """Read a pass phrase: three to eight plain words up to the end of the clause, no function word among them."""
    match = _PHRASE.match(text, position)
    return match.span() if match and _PROSE.isdisjoint(re.split(r"[ \-]", match[0])) else None


def read_lone_word(text: str, position: int) -> Interval | None:
    """Read a word with a capital that is the rest of its line."""
    match = _LONE.match(text, position)
    return match.span() if match else None

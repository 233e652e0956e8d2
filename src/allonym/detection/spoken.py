"""The detector for transcribed speech: spelled words, and digits and addresses that are read out.

Transcripts hold "A-L-P-H-A", "M as in Mike", "four one five, double five" and "jane dot doe at example dot com",
which no pattern for written identifiers finds (P2, sections 3.1 and 4.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from allonym.checksums.algorithms import has_luhn_check_digit
from allonym.detection import Detector
from allonym.detection.disguise import TOP_DOMAINS
from allonym.detection.scan import compile_pattern, compile_patterns, encode_text, find_matches
from allonym.detection.words import read_word_list
from allonym.document import Document, Span
from allonym.policy import Policy

LABELS = (
    "SPELLED_WORD",
    "NUMERIC",
    "GENERIC_ID",
    "PHONE_NUMBER",
    "CREDIT_CARD",
    "US_SSN",
    "EMAIL_ADDRESS",
    "URL",
    "PERSON",
)
"""What this detector can find."""


_DIGITS = {"zero": "0", "oh": "0", "o": "0", "nought": "0", "naught": "0", "one": "1", "two": "2", "three": "3"}
_DIGITS |= {"four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "niner": "9"}
_MISHEARD = {"for": "4", "to": "2", "too": "2", "won": "1", "ate": "8"}
_TIMES = {"double": 2, "triple": 3, "treble": 3}
_TEENS = {"ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15"}
_TEENS |= {"sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "hundred": "00"}

_DIGIT = "(?:zero|oh|o|nought|naught|one|two|three|four|five|six|seven|eight|niner?)"
_UNIT = rf"(?:(?:double|triple|treble)[ -])?{_DIGIT}\b"
_GAP = r"(?:[ ,.\-]{1,2})"
_FIRST = rf"(?:{_UNIT}|[0-9]{{1,4}}\b)"
_LATER = rf"(?:{_UNIT}|[0-9]{{1,4}}\b|(?:for|too?|won|ate|{'|'.join(_TEENS)})\b)"

_ALPHABET_WORDS = read_word_list("spelling_alphabet")
_ACRONYMS = read_word_list("acronyms")
_NO_HOST = read_word_list("no_host")
_NO_MAILBOX = _NO_HOST | read_word_list("no_mailbox")
_JOINTS = frozenset("dot period point underscore dash hyphen minus plus".split())

_SURE_TOP = read_word_list("sure_top_domains")
_TOP = "|".join(sorted(_SURE_TOP))
_AS_IN = r"(?:[A-Za-z],? (?:(?i:as in|like|for)|is for|as for) (?:the )?[A-Za-z]+)"

_SURE = rf"(?:{_UNIT}|[0-9]{{1,4}}\b)"
_CUES = (
    r"\b[A-Za-z]-[A-Za-z0-9]-[A-Za-z0-9]\b|\b[A-Z] [A-Z0-9] [A-Z0-9]\b|\b[a-z] [a-z0-9] [a-z0-9] [a-z0-9]\b"
    rf"|\b[A-Z]\. ?[A-Z]\. ?[A-Z]\b|\b[A-Z], [A-Z], [A-Z], [A-Z]\b|\b[A-Z]\. (?:[0-9]|(?i:{_DIGIT})\b)"
    r"|\b[A-Za-z],? (?i:as in) |\b[A-Z] (?:is )?(?:for|like) [A-Z]",
    rf"(?i)\b{_UNIT}{_GAP}{_LATER}{_GAP}{_SURE}|\b(?:[0-9]{{1,4}}|for|too?){_GAP}{_UNIT}{_GAP}{_UNIT}",
    rf"(?i:\bdot (?:{_TOP})\b)|(?i:\bw ?w ?w dot )|(?i:@[a-z0-9\-]+ dot )|(?i: dot [a-z]+ at [a-z]+ dot )"
    r"|\s@(?:[A-Za-z0-9\-]+\.)+[A-Za-z]",
)
"""Patterns of the kinds of speech: spelled words, numbers, addresses."""
_HYPHENED = compile_pattern(r"\b([A-Za-z](?:-[A-Za-z0-9])+-[A-Za-z0-9])\b")
_SPACED = compile_pattern(r"\b([A-Z](?: [A-Z0-9])+ [A-Z0-9]|[a-z](?: [a-z0-9]){3,}|[A-Z](?:, (?:double )?[A-Z]){3,})\b")
_DOTTED = compile_pattern(r"\b([A-Z]\.(?: ?[A-Z]\.)+ ?[A-Z]\b\.?)( [A-Z][\pL'\-]+)?")
_CODE = compile_pattern(
    rf"\b((?:[A-Z]\. )+(?:[0-9]+\b|(?i:{_DIGIT}|for)\b)(?:\.? (?:[A-Z]\.|[0-9]+\b|(?i:{_DIGIT}|for)\b))*(?: [A-Z]\b)?)"
)
_ALPHABET = compile_pattern(
    rf"\b({_AS_IN}(?:(?:,|\.|;| and|, and)? {_AS_IN}|[,.]? [A-Z]\b)*(?:(?:[,.]? [0-9]{{1,4}}\b){{2,}})?)"
)
_NUMBER = compile_pattern(rf"(?i)\b({_FIRST}(?:{_GAP}{_LATER})+)")
_READ_OUT = compile_pattern(
    r"(?i)\b(dot (?:(co|com|org|ac|gov|net) dot )?([a-z]{2,12}))\b"
    r"((?:,? (?:forward )?slash [a-z0-9\-]+(?: (?:dot|dash|hyphen|underscore) [a-z0-9]+)*)*)"
)
_HALF = compile_pattern(r"\s(@(?:[A-Za-z0-9\-]+\.)+[A-Za-z]{2,12})\b")
_WORD = re.compile(r"\S+")
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+")


def build_detector(policy: Policy) -> Detector:
    """Build the detector for a policy; it finds nothing where the policy looks for none of :data:`LABELS`."""
    enabled = frozenset(label for label in LABELS if label in policy.taxonomy and policy.looks_for(label))
    cues = compile_patterns(_CUES)
    finders = (_find_spelled_words, _find_numbers, _find_addresses)

    def find_spoken(document: Document) -> Iterable[Span]:
        text = document.text
        data = encode_text(text)
        if not enabled or not (present := cues.find_matching_patterns(data)):
            return ()
        spans = (s for i in sorted(present) for s in finders[i](text, data))
        if "NUMERIC" in enabled:  # all numbers are covered
            spans = (replace(s, label="NUMERIC") if s.label == "GENERIC_ID" else s for s in spans)
        return [s for s in spans if s.label in enabled]

    find_spoken.reads_technical = False  # type: ignore[attr-defined]
    return find_spoken


def _find_spelled_words(text: str, data: bytes) -> Iterator[Span]:
    for _, (start, end) in find_matches(_HYPHENED, text, data):
        if (text[start - 1 : start] in ("-", "'") and start) or text[end : end + 1] in ("-", "'"):
            continue
        if _is_spelling(text[start:end].split("-"), 3):
            yield Span(start, end, "SPELLED_WORD", 0.8, "spoken:hyphened")
    for _, (start, end) in find_matches(_SPACED, text, data):
        listed = text[start + 1] == ","
        if text[end - 2 : end] == " I" and text[end : end + 2][:1] == " " and text[end + 1 : end + 2].islower():
            end -= 2
        letters = text[start:end].replace(",", "").split()
        if _is_spelling(letters, 4 if listed else 3) and (start == 0 or text[start - 1] not in "-'&"):
            named = any(w in text[max(0, start - 60) : start].lower() for w in _SPELLING_WORDS)
            score = 0.8 if named else 0.6 if len(letters) > 3 else 0.45
            source = "spoken:spaced+context(spelling)" if named else "spoken:spaced"
            yield Span(start, end, "SPELLED_WORD", score, source)
    for _, (start, end), name in find_matches(_DOTTED, text, data):
        if text[end - 2 : end] == " I" or text[start - 1 : start] == ".":
            continue
        letters = [c for c in text[start:end] if c.isalpha()]
        if " " in text[start:end] and name[0] >= 0 and len(letters) <= 4:
            yield Span(start, name[1], "PERSON", 0.6, "spoken:initials")
        elif (" " in text[start:end] or len(letters) > 3) and _is_spelling(letters, 3):
            yield Span(start, end, "SPELLED_WORD", 0.6, "spoken:dotted")
    for _, (start, end) in find_matches(_CODE, text, data):
        code = text[start:end]
        if len(_TOKEN.findall(code)) >= 3 and code.count(".") > 1 and text[start - 1 : start] != ".":
            yield Span(start, end, "SPELLED_WORD", 0.6, "spoken:code")
    for _, (start, end) in find_matches(_ALPHABET, text, data):
        yield from _find_alphabet_spelling(text, start, end)


_SPELLING_WORDS = ("spell", "letters", "surname", "last name", "first name", "my name", "his name", "her name")


def _is_spelling(letters: list[str], least: int) -> bool:
    if len(letters) < least or sum(c.isalpha() for c in letters) < 2:
        return False
    word = "".join(letters).upper()
    distinct = set(word)
    rising = len(word) > 2 and all(ord(b) - ord(a) == 1 for a, b in pairwise(word))
    if letters[0].islower() and len(distinct) < max(4, len(word) - 1) and least == 3 and len(letters) > 3:
        return False
    return word not in _ACRONYMS and not rising and len(distinct) > 1 and not distinct <= {"A", "I", "O"}


_PAIR = re.compile(r"\b([A-Za-z]),? (as in|like|for|is for|as for) (?:the )?([A-Za-z]+)", re.IGNORECASE)


def _find_alphabet_spelling(text: str, start: int, end: int) -> Iterator[Span]:
    pairs = [m for m in _PAIR.finditer(text, start, end) if m[1].lower() == m[3][0].lower()]
    sure = [m for m in pairs if m[2].lower() == "as in" or m[3].lower() in _ALPHABET_WORDS]
    if sure and len(pairs) > (sure[0][2].lower() != "as in" and sure[0][3][0].islower()):
        last = pairs[-1].end()
        tail = text[last:end]
        end = end if "," in tail or len(tail) <= 3 else last
        yield Span(pairs[0].start(), end, "SPELLED_WORD", 0.8, "spoken:alphabet")


def _find_numbers(text: str, data: bytes) -> Iterator[Span]:
    for _, (start, end) in find_matches(_NUMBER, text, data):
        tokens = list(_TOKEN.finditer(text, start, end))
        while tokens and tokens[-1][0].lower() in _MISHEARD:
            tokens.pop()
        if len(tokens) < 3:
            continue
        digits, spoken, loose, times = "", 0, 0, 1
        for token in tokens:
            word = token[0].lower()
            if word in _TIMES:
                times = _TIMES[word]
                continue
            spoken += word in _DIGITS
            loose += word in _MISHEARD
            digits += times * (_DIGITS.get(word) or _MISHEARD.get(word) or _TEENS.get(word) or word)
            times = 1
        rough = any(t[0].lower() in _TEENS for t in tokens) or spoken < 3
        is_unsure = rough or (loose and not _is_read_digit_by_digit(text, tokens))
        if spoken < 2 or 2 * loose > spoken or (is_unsure and len(digits) < 7) or set(digits) == {"0"}:
            continue
        start, end = tokens[0].start(), tokens[-1].end()
        if len(digits) < 6 and not text[start:end].replace(" ", "").isalpha() and _is_counting(digits):
            continue
        if text[max(0, start - 3) : start].lower().endswith(("ty-", "ty ")) and text[start].isalpha():
            continue
        yield _classify_number(text, start, end, digits)


def _is_read_digit_by_digit(text: str, tokens: list[re.Match[str]]) -> bool:
    """Whether each misheard digit stands between digits, with single blanks: "nine one for two", not "six to eight"."""
    words = [token[0].lower() for token in tokens]
    gaps = {text[a.end() : b.start()] for a, b in pairwise(tokens)}
    beside = {i + step for i, word in enumerate(words) if word in _MISHEARD for step in (-1, 1)}
    return gaps == {" "} and "to" not in words and all(words[i] in _DIGITS for i in beside)


def _is_counting(digits: str) -> bool:
    """Whether the digits rise by one or stay the same: "three, four, five years", "two- two- two things"."""
    steps = {ord(b) - ord(a) for a, b in pairwise(digits)}
    return steps in ({1}, {0})


_CODE_SIZE = 6  # digits read out one by one that are a number of somebody or something
_PHONE_WORDS = "call|phone|dial|reach|cell|mobile|fax|text me|telephone|extension|number".split("|")

_POSTAL = re.compile(
    r"\b(?:(?:street|road|lane|avenue|drive|grove|close|court|crescent)\b[^.?!\n]{0,40}"
    r"|(?:address|post ?code|zip|last (?:four|4))\b[^.!]{0,60})\Z"
)
_CLAUSE_END = re.compile(r"[.,;!?\n]|\Z")


def _classify_number(text: str, start: int, end: int, digits: str) -> Span:
    size = len(digits)
    before = text[max(0, start - 80) : start].lower()
    if 13 <= size <= 19 and has_luhn_check_digit(digits):
        return Span(start, end, "CREDIT_CARD", 0.85, "spoken:digits+valid")
    if size == 9 and ("social" in before or "ssn" in before):
        return Span(start, end, "US_SSN", 0.85, "spoken:digits+context(social)")
    if 7 <= size <= 15:
        context = next((w for w in _PHONE_WORDS if w in before), "")
        if context or size == 10 or (size == 11 and digits[0] in "01"):
            source = f"spoken:digits+context({context})" if context else "spoken:digits"
            return Span(start, end, "PHONE_NUMBER", 0.8 if context else 0.65, source)
    words = {word.lower() for word in _TOKEN.findall(text, start, end)}
    is_code = size >= _CODE_SIZE or (size > 3 and not words.isdisjoint(_TIMES))  # nobody says a quantity like this
    is_code |= 4 <= size <= 5 and _CLAUSE_END.match(text, end) is not None and _POSTAL.search(before) is not None
    if is_code and words <= _DIGITS.keys() | _TIMES.keys() and not _is_counting(digits):
        return Span(start, end, "GENERIC_ID", 0.6, "spoken:digits")
    return Span(start, end, "NUMERIC", 0.5 if size < 6 else 0.6, "spoken:digits")


Word = tuple[int, int, str]


def _find_addresses(text: str, data: bytes) -> Iterator[Span]:
    for full, dot, second, top, _ in find_matches(_READ_OUT, text, data):
        end = full[1]
        name = text[slice(*top)].lower()
        if name not in TOP_DOMAINS:
            if second[0] < 0:
                continue
            name, end = text[slice(*second)].lower(), second[1]
        span = _make_address_span(text, dot[0], end, name in _SURE_TOP)
        if span is not None:
            yield span
    for _, (start, end) in find_matches(_HALF, text, data):
        words = _find_words_before(text, start)
        first = _find_mailbox_start(words, len(words) - 1)
        if first >= 0 and text[end - 1].lower() != "@":
            yield Span(words[first][0], end, "EMAIL_ADDRESS", 0.85, "spoken:mailbox")


def _find_words_before(text: str, end: int) -> list[Word]:
    """The words before ``end`` in its paragraph, at most 160 characters back."""
    floor = max(0, end - 160, text.rfind("\n\n", max(0, end - 160), end) + 1)
    words = [(m.start(), m.end(), m[0]) for m in _WORD.finditer(text, floor, end)]
    if floor and words and words[0][0] == floor:
        words.pop(0)
    return words


def _is_letter_or_digit(word: str) -> bool:
    bare = word.rstrip(".,").lower()
    if len(bare) == 1:
        return bare.isalnum()
    return bare in _DIGITS or bare in _TIMES or bare.isdigit() or (len(bare) > 2 and set(bare[1::2]) == {"-"})


def _ends_sentence(word: str) -> bool:
    return word[-1] in ".,;:?!" and not _is_letter_or_digit(word)


def _find_address_part_start(words: list[Word], last: int) -> int:
    """Index of the first word of the name whose last word is ``last``; -1 where there is no name."""
    if last < 0 or _ends_sentence(words[last][2]):
        return -1
    first = last
    if _is_letter_or_digit(words[last][2]):
        while first and _is_letter_or_digit(words[first - 1][2]) and words[first - 1][2].lower() not in ("a", "i"):
            first -= 1
    return first


def _find_mailbox_start(words: list[Word], last: int) -> int:
    """Index of the first word of the mailbox that ends at ``last``; -1 where these words are no mailbox."""
    first = _find_address_part_start(words, last)
    if first < 0:
        return -1
    joined = first < last
    while first > 1 and words[first - 1][2].lower() in _JOINTS:
        further = _find_address_part_start(words, first - 2)
        if further < 0:
            break
        first, joined = further, True
    while first and _is_letter_or_digit(words[first - 1][2]) and words[first - 1][2].lower() not in ("a", "i", "o"):
        first -= 1
        joined = True
    bare = words[last][2].lower()
    if first and bare in _DIGITS and not _is_letter_or_digit(name := words[first - 1][2]) and name.isalpha():
        first -= name.lower() not in _NO_MAILBOX
    if not joined and (bare in _NO_MAILBOX or not bare.replace("'", "").replace("-", "").replace("_", "").isalnum()):
        return -1
    return first


def _make_address_span(text: str, dot_position: int, end: int, is_certain: bool) -> Span | None:
    words = _find_words_before(text, dot_position)
    last = len(words) - 1
    if last >= 0 and (place := words[last][2].find("@")) >= 0 and len(words[last][2]) > place + 1:
        if place:
            return Span(words[last][0], end, "EMAIL_ADDRESS", 0.85, "spoken:mailbox")
        first = _find_mailbox_start(words, last - 1)
        return Span(words[max(first, 0) if first >= 0 else last][0], end, "EMAIL_ADDRESS", 0.85, "spoken:mailbox")
    first = _find_address_part_start(words, last)
    if first < 0:
        return None
    while first > 1 and words[first - 1][2].lower() in ("dot", "dash", "hyphen"):
        further = _find_address_part_start(words, first - 2)
        if further < 0:
            break
        first = further
    host = words[first][2]
    if host.lower() in _NO_HOST:
        return None
    start = first
    for back in range(3):
        i = first - back
        if i > 1 and words[i - 1][2].lower() in ("at", "@") and not _ends_sentence(words[i - 2][2]):
            mailbox = _find_mailbox_start(words, i - 2)
            if mailbox >= 0 and (is_certain or i - 2 - mailbox > 1):
                return Span(words[mailbox][0], end, "EMAIL_ADDRESS", 0.85, "spoken:mailbox")
            break
        before = words[i - 1][2] if i else ""
        if not before.isalpha():
            break
        if host[0].isupper() and before[0].isupper() and before.lower() not in _NO_MAILBOX:
            start = i - 1
        elif back or not (host.islower() and before.islower()):
            break
    hypertext = "www" in "".join(w[2] for w in words[first:]).lower()
    if not is_certain and not hypertext:
        return None
    return Span(words[start][0], end, "URL", 0.8 if hypertext else 0.7, "spoken:web")

"""What belongs to a replacement and what to the sentence around it: endings, attached letters, spaces, articles."""

from __future__ import annotations

import unicodedata

_NAME_LIKE = (
    "PERSON ORGANIZATION LOCATION PRODUCT EVENT ORIGIN OCCUPATION FAMILY_RELATION TERM WORK_OF_ART LAW LANGUAGE "
    "OTHER_IDENTIFYING_ATTRIBUTE TRADE_UNION"
)
NAMES = frozenset(_NAME_LIKE.split())
"""Families whose mentions may end in a possessive."""

AS_IT_IS = frozenset({"SECRET", "SPELLED_WORD"})
"""Families whose last sign may be part of them, whatever it is."""

LONGEST_ATTACHED = 40

_APOSTROPHES = "'’ʼ＇"
_SHORT = (
    "inc ltd corp co llc jr sr st dr mr mrs ms prof rev hon gen col maj capt lt sgt bros ave blvd rd no vs etc "
    "dept univ mt ft jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun approx est"
)
_ABBREVIATIONS = frozenset(_SHORT.split())
# Names that end like a possessive and are none.
_OWN_S = frozenset(
    {"mcdonald", "moody", "poor", "lowe", "macy", "kohl", "wendy", "domino", "denny", "arby", "applebee", "sotheby"}
    | {"christie", "sainsbury", "lloyd", "kellogg", "hershey", "dillard", "levi", "joe", "jerry", "reese", "dick"}
)
# Scripts that put no space between words, where letters around a name are not part of it.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def core(text: str, start: int, end: int, family: str) -> tuple[int, int]:
    """The part of ``text[start:end]`` that is to be replaced; the rest stays: outer space, a possessive, a full stop.

    Never empty, and never changed for families in :data:`AS_IT_IS`.
    """
    first, last = text[start], text[end - 1]
    if (first.isalnum() and last.isalnum() and last not in "sS") or family in AS_IT_IS:
        return start, end
    a, b = start, end
    while a < b and text[a].isspace():
        a += 1
    while b > a and text[b - 1].isspace():
        b -= 1
    if a == b:
        return start, end
    while b - a > 1 and text[b - 1] in ",;:!?":
        b -= 1
    if b - a > 1 and text[b - 1] == "." and _ends_sentence(text, a, b - 1):
        b -= 1
    if family in NAMES and b - a > 2:
        if text[b - 1] in "sS" and text[b - 2] in _APOSTROPHES:
            if family != "ORGANIZATION" or text[a : b - 2].rpartition(" ")[2].lower() not in _OWN_S:
                b -= 2
        elif text[b - 1] in _APOSTROPHES and text[b - 2] in "sS":
            b -= 1
    while b - a > 1 and text[b - 1].isspace():
        b -= 1
    return a, b


def _ends_sentence(text: str, start: int, stop: int) -> bool:
    at = stop
    while at > start and not text[at - 1].isspace():
        at -= 1
    word = text[at:stop]
    letters = [c for c in word if c.isalpha()]
    if "." in word and len(letters) <= 6 and "@" not in word and "/" not in word:
        return False
    return (len(word) > 2 or word.isdigit()) and word.lower() not in _ABBREVIATIONS


def attached(char: str) -> bool:
    """Whether a character joins the letter or digit beside it into one word."""
    if char.isascii():
        return char.isalnum()
    if unicodedata.category(char)[0] == "M" or char in "\u200d\ufe0e\ufe0f":
        return True
    return char.isalnum() and not _unspaced(char)


def _unspaced(char: str) -> bool:
    code = ord(char)
    return any(low <= code <= high for low, high in _UNSPACED)


def grown(text: str, start: int, end: int, low: int, high: int) -> tuple[int, int]:
    """``start, end`` with the letters and digits that stick to them, within ``low..high``: the ``th`` of ``6th``.

    A run of more than 40 is left alone, and so are scripts that write no spaces.
    """
    a, b = start, end
    if a > low and attached(text[a - 1]) and attached(text[a]):
        stop = max(low, a - LONGEST_ATTACHED)
        while a > stop and attached(text[a - 1]):
            a -= 1
        if a > low and attached(text[a - 1]):
            a = start
    if b < high and attached(text[b]) and (attached(text[b - 1]) or not text[b].isalnum()):
        stop = min(high, b + LONGEST_ATTACHED)
        while b < stop and attached(text[b]):
            b += 1
        if b < high and attached(text[b]):
            b = end
    return a, b


def removed(text: str, start: int, end: int, low: int, high: int, before: str) -> tuple[int, int]:
    """``start, end`` grown, within ``low..high``, by what would be left over if nothing stood there.

    That is the rest of a contraction (``'s``, ``'ve``) and one space. ``before`` is the character that will stand
    before; empty at the start of the text.
    """
    if end < high and text[end] in _APOSTROPHES:
        stop = end + 1
        while stop < high and stop < end + 4 and text[stop].isalpha():
            stop += 1
        if 1 < stop - end < 4:
            end = stop
    after = text[end] if end < len(text) else ""
    if start > low and text[start - 1] in " \t" and (not after or after.isspace() or after in ".,;:!?)]}"):
        return start - 1, end
    if after and after in " \t" and end < high and (not before or before in " \t\n\r([{"):
        return start, end + 1
    return start, end


def article(text: str, start: int, low: int) -> tuple[int, int] | None:
    """Where the indefinite article right before ``start`` stands, not reaching below ``low``; None without one.

    A capital ``A`` counts only where a sentence begins: ``Serie A`` has no article.
    """
    end = start - 1
    if end <= low or text[end] not in " \n\t\u00a0":
        return None
    if text[end - 1] in "nN":
        at = end - 2
        if at < low or text[at] not in "aA":
            return None
    else:
        at = end - 1
        if text[at] not in "aA":
            return None
    if at > 0:
        before = text[at - 1]
        if before.isalnum() or before in "-'’_.@/\\&":
            return None
        if text[at] == "A":
            i = at - 1
            while i >= 0 and text[i].isspace() and text[i] not in "\n\r":
                i -= 1
            if i >= 0 and text[i] not in "\n\r.!?:;\"“”'‘(>*-–—":
                return None
    return at, end


def with_article(found: str, replacement: str) -> str | None:
    """The article ``found`` as ``replacement`` wants it; None where it does not tell how it is spoken."""
    vowel = _vowel(replacement)
    if vowel is None:
        return None
    if not vowel:
        return found[0]
    return found if len(found) == 2 else found + "n"


_LETTER_NAMES = frozenset("AEFHILMNORSX")
_SPELLED = frozenset({"IP", "API", "ID", "IMEI", "IMSI", "MBI", "NHS", "SSN", "NPI", "URL", "UUID"})


def _vowel(replacement: str) -> bool | None:
    start = 0
    while start < len(replacement) and not replacement[start].isalnum():
        start += 1
    end = start
    while end < len(replacement) and replacement[end].isalnum():
        end += 1
    word = replacement[start:end]
    if not word:
        return None
    if word[0].isdigit():
        return word[0] == "8" or word in ("11", "18")
    upper = word.upper()
    if word.isupper() and (upper in _SPELLED or not any(c in "AEIOUY" for c in upper)):
        return upper[0] in _LETTER_NAMES
    if upper[0] == "U":
        return not (
            word.isupper()
            or upper.startswith(("UNI", "USE", "USU", "UK", "US", "UTI", "URO", "URA", "URU", "UGA", "EU"))
        )
    if upper.startswith(("EU", "ONE", "OUI")):
        return False
    if upper.startswith(("HONO", "HOUR", "HEIR", "HONES")):
        return True
    return upper[0] in "AEIO"

"""How a replacement is written: its case, numbers in words, and its place in the sentence.

Which characters belong to a replacement and which to the sentence: endings, letters, spaces, articles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from allonym.document import trim_blanks
from allonym.text.words import WORD

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
ORDINALS += [f"twenty-{word}" for word in ORDINALS[:9]] + ["thirtieth", "thirty-first"]
"""Ordinals of the days of a month."""

_MOST_DIGITS = 18


def join_texts(texts: Iterable[str | None]) -> str | None:
    """Return texts joined; None where one of them is None, after which no further one is asked for."""
    out = ""
    for text in texts:
        if text is None:
            return None
        out += text
    return out


def describe_shape(text: str) -> str:
    """Return a text with 9 for each digit and A for each letter."""
    return "".join("9" if c.isdigit() else "A" if c.isalpha() else c for c in text)


def match_case(new: str, model: str) -> str:
    """Return ``new`` in the case of ``model``: capitals, small letters, or as names are written."""
    if sum(c.isalpha() for c in model) > 1 and model.isupper():
        return new.upper()
    if model.islower():
        return new.lower()
    if model[:1].isupper() and model[1:].islower() and not new[:1].isupper():
        return new[:1].upper() + new[1:]
    return new


def match_capitals(new: str, model: str) -> str:
    """Return ``new`` in capitals or small letters where all of ``model`` is; not in the capitals of an abbreviation."""
    letters = [c for c in model if c.isalpha()]
    if len(letters) > 3 and all(c.isupper() for c in letters):
        return new.upper()
    return new.lower() if letters and all(c.islower() for c in letters) else new


def capitalise_like(new: str, model: str) -> str:
    """Return ``new``, in small letters, with the capitals of ``model``: all, the first, or none."""
    if model.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if model[0].isupper() else new


def read_number(text: str) -> int | None:
    """Return the number that up to 18 digits, or English words from zero to ninety-nine, name; None for others."""
    if text.isdecimal():
        return int(text) if len(text) <= _MOST_DIGITS else None
    first, _, second = re.sub("[- ]", " ", text.lower()).partition(" ")
    if not second and first in ONES:
        return ONES.index(first)
    if first not in TENS or (second and second not in ONES[1:10]):
        return None
    return 20 + 10 * TENS.index(first) + (ONES.index(second) if second else 0)


def write_number(value: int, model: str) -> str:
    """Return a number as ``model`` is written: in digits, or up to 99 in words with a hyphen or a space."""
    if model.isdigit() or value > 99:
        return str(value)
    tens, ones = divmod(value, 10)
    word = ONES[value] if value < 20 else TENS[tens - 2]
    if value >= 20 and ones:
        word += (" " if " " in model else "-") + ONES[ones]
    return capitalise_like(word, model)


def list_noun_singulars(text: str) -> tuple[str, ...]:
    """Return what an English noun may be the plural of."""
    low = text.lower()
    if low.endswith("men"):
        return (text[:-3] + "man",)
    if low.endswith("ies"):
        return (text[:-3] + "y", text[:-1])
    if low.endswith("es"):
        return (text[:-1], text[:-2])
    return (text[:-1],) if low.endswith("s") and len(text) > 3 else ()


def pluralise_noun(text: str) -> str:
    """Return the plural of an English noun, by its last word, or by the one before ``of``."""
    head, separator, rest = text.partition(" of ")
    low = head.lower()
    if low.endswith("man") and not low.endswith(("human", "german", "roman", "ottoman")):
        head = head[:-3] + "men"
    elif low.endswith("y") and low[-2:-1] not in ("a", "e", "i", "o", "u"):
        head = head[:-1] + "ies"
    else:
        head += "es" if low.endswith(("s", "x", "ch", "sh", "z")) else "s"
    return head + separator + rest


def get_ordinal_suffix(value: int, model: str) -> str:
    """Return ``st``, ``nd``, ``rd`` or ``th``, in capitals where ``model`` is."""
    suffix = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return suffix.upper() if model.isupper() else suffix


NAMES = frozenset(
    "PERSON ORGANIZATION LOCATION PRODUCT EVENT ORIGIN OCCUPATION FAMILY_RELATION TERM WORK_OF_ART LAW LANGUAGE "
    "OTHER_IDENTIFYING_ATTRIBUTE TRADE_UNION".split()
)
"""Families whose mentions may end in a possessive."""

AS_IT_IS = frozenset({"SECRET", "SPELLED_WORD"})
"""Families whose last character may be part of them, whatever it is."""

LONGEST_ATTACHED = 40

_APOSTROPHES = "'’ʼ＇"
_ABBREVIATIONS = frozenset(
    "inc ltd corp co llc jr sr st dr mr mrs ms prof rev hon gen col maj capt lt sgt bros ave blvd rd no vs etc "
    "dept univ mt ft jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun approx est".split()
)
# Names that end like a possessive and are none.
_WITH_S = frozenset(
    "mcdonald moody poor lowe macy kohl wendy domino denny arby applebee sotheby christie sainsbury lloyd kellogg "
    "hershey dillard levi joe jerry reese dick".split()
)
# Scripts that put no space between words, where letters around a name are not part of it.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def trim_mention(text: str, start: int, end: int, family: str) -> tuple[int, int]:
    """Return the part of ``text[start:end]`` to be replaced; outer space, a possessive and a full stop stay.

    It is never empty, and always all of it for families in :data:`AS_IT_IS`.
    """
    first, last = text[start], text[end - 1]
    if (first.isalnum() and last.isalnum() and last not in "sS") or family in AS_IT_IS:
        return start, end
    a, b = trim_blanks(text, start, end)
    if a == b:
        return start, end
    while b - a > 1 and text[b - 1] in ",;:!?":
        b -= 1
    if b - a > 1 and text[b - 1] == "." and _ends_sentence(text, a, b - 1):
        b -= 1
    if family in NAMES and b - a > 2:
        if text[b - 1] in "sS" and text[b - 2] in _APOSTROPHES:
            if family != "ORGANIZATION" or text[a : b - 2].rpartition(" ")[2].lower() not in _WITH_S:
                b -= 2
        elif text[b - 1] in _APOSTROPHES and text[b - 2] in "sS":
            b -= 1
    while b - a > 1 and text[b - 1].isspace():
        b -= 1
    return a, b


def _ends_sentence(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at ``stop`` ends a sentence, not an abbreviation."""
    word = re.split(r"\s", text[start:stop])[-1]
    if "." in word and sum(map(str.isalpha, word)) <= 6 and "@" not in word and "/" not in word:
        return False
    return (len(word) > 2 or word.isdigit()) and word.lower() not in _ABBREVIATIONS


def is_word_character(char: str) -> bool:
    """Whether a character joins the letter or digit beside it into one word."""
    if char.isascii():
        return char.isalnum()
    if unicodedata.category(char)[0] == "M" or char in "\u200d\ufe0e\ufe0f":
        return True
    return char.isalnum() and not _UNSPACED.match(char)


def grow_span(text: str, start: int, end: int, low: int, high: int) -> tuple[int, int]:
    """Return ``start, end`` with the letters and digits that touch them, within ``low..high``: the ``th`` of ``6th``.

    Runs of more than 40 are left alone, and so are scripts that write no spaces.
    """
    a, b = start, end
    if a > low and is_word_character(text[a - 1]) and is_word_character(text[a]):
        stop = max(low, a - LONGEST_ATTACHED)
        while a > stop and is_word_character(text[a - 1]):
            a -= 1
        if a > low and is_word_character(text[a - 1]):
            a = start
    if b < high and is_word_character(text[b]) and (is_word_character(text[b - 1]) or not text[b].isalnum()):
        stop = min(high, b + LONGEST_ATTACHED)
        while b < stop and is_word_character(text[b]):
            b += 1
        if b < high and is_word_character(text[b]):
            b = end
    return a, b


def widen_removal(text: str, start: int, end: int, low: int, high: int, previous: str) -> tuple[int, int]:
    """Return ``start, end``, grown within ``low..high`` by what a mention that is removed would leave over.

    That is the rest of a contraction (``'s``, ``'ve``) and one space. ``previous`` is the character that will come
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
    if after and after in " \t" and end < high and (not previous or previous in " \t\n\r([{"):
        return start, end + 1
    return start, end


def find_article(text: str, start: int, low: int) -> tuple[int, int] | None:
    """Return the place of the indefinite article right before ``start``, not below ``low``; None without one.

    A capital ``A`` counts only where a sentence begins: ``Serie A`` has no article.
    """
    end = start - 1
    if end <= low or text[end] not in " \n\t\u00a0":
        return None
    first = end - (2 if text[end - 1] in "nN" else 1)
    if first < low or text[first] not in "aA":
        return None
    if first > 0:
        before = text[first - 1]
        if before.isalnum() or before in "-'’_.@/\\&":
            return None
        i = first - 1
        while i >= 0 and text[i].isspace() and text[i] not in "\n\r":
            i -= 1
        if text[first] == "A" and i >= 0 and text[i] not in "\n\r.!?:;\"“”'‘(>*-–—":
            return None
    return first, end


def fit_article(original: str, replacement: str) -> str | None:
    """Return an article as ``replacement`` requires it; None where it does not tell how it is spoken."""
    vowel = _starts_with_vowel(replacement)
    if vowel is None:
        return None
    if not vowel:
        return original[0]
    return original if len(original) == 2 else original + "n"


def find_article_change(text: str, start: int, low: int, replacement: str) -> tuple[int, int, str] | None:
    """Return start, end and new form of the article right before ``start``, not below ``low``.

    None where there is none, or where it fits the replacement already.
    """
    place = find_article(text, start, low)
    article = text[slice(*place)] if place is not None else ""
    fitting = fit_article(article, replacement) if article else None
    return (*place, fitting) if place is not None and fitting is not None and fitting != article else None


_SPOKEN_YOU = ("UNI", "USE", "USU", "UK", "US", "UTI", "URO", "URA", "URU", "UGA")
_LETTER_NAMES = frozenset("AEFHILMNORSX")
_SPELLED = frozenset({"IP", "API", "ID", "IMEI", "IMSI", "MBI", "NHS", "SSN", "NPI", "URL", "UUID"})


def _starts_with_vowel(replacement: str) -> bool | None:
    """Whether a replacement, spoken, starts with a vowel; None where it has no letter or digit."""
    match = WORD.search(replacement)
    if match is None:
        return None
    word = match[0]
    if word[0].isdigit():
        return word[0] == "8" or word in ("11", "18")
    upper = word.upper()
    if word.isupper() and (upper in _SPELLED or not any(c in "AEIOUY" for c in upper)):
        return upper[0] in _LETTER_NAMES
    if upper[0] == "U":
        return not word.isupper() and not upper.startswith(_SPOKEN_YOU)
    if upper.startswith(("EU", "ONE", "OUI")):
        return False
    return upper[0] in "AEIO" or upper.startswith(("HONO", "HOUR", "HEIR", "HONES"))

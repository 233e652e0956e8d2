"""Examples from unlabelled text: words of which their spelling proves that they are no names.

In text with ordinary capitals, a word in small letters is no name, unless it stands inside one ("Lord of the Isles").
A capital says nothing at the start of a sentence, in a heading or in a form; there a word counts as ordinary if the
corpus writes it in small letters nearly always. Everything else may be anything, as in :mod:`allonym.train.examples`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from allonym.models.tags import LABELS
from allonym.models.windows import rate_word_borders
from allonym.models.words import split_words
from allonym.train.examples import ALL, BEGIN, INSIDE, Example, Lists, O, assemble_example, is_in_mailbox

NAMES = frozenset(
    "PERSON_FIRSTNAME PERSON_LASTNAME ORGANIZATION COUNTRY REGION CITY STREET_ADDRESS FACILITY LOCATION PRODUCT EVENT "
    "WORK_OF_ART AWARD".split()
)
"""Labels of names, which the spelling of a word can rule out; it says nothing about an occupation or a date."""

_OUTSIDE = O | reduce(or_, (BEGIN[label] | INSIDE[label] for label in LABELS if label not in NAMES))
_LEAST_COUNT = 12  # times that an ordinary word is written in small letters
_LEAST_CAPITALS = 0.02  # share of capitalised words in text that has ordinary capitals
_LEAST_WORDS = 8  # words of a text that tell whether it has
_LEAST_LETTERS = 4  # letters of a word in capitals that is no abbreviation


def find_ordinary_words(texts: Iterable[str], lists: Lists, share: float = 0.97) -> frozenset[str]:
    """Return the words that texts with ordinary capitals write in small letters, without those that are also names.

    Args:
        texts: texts of many kinds; those in small letters or capitals alone are passed over.
        lists: names that no ordinary word is.
        share: least share of small letters among a word's mentions within sentences, 0 to 1.
    """
    small: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        borders = split_words(text)
        words = [text[a:b] for a, b in borders]
        if not _has_ordinary_capitals(words):
            continue
        for n, (word, border) in enumerate(zip(words, rate_word_borders(text, borders), strict=True)):
            if word.islower():
                small[word] += 1
            elif n and not border and words[n - 1][0].isalnum() and not word.isupper():
                capital[word.lower()] += 1
    names = lists.first | lists.last | frozenset().union(*(lists.places or {}).values())
    return frozenset(
        word
        for word, count in small.items()
        if count >= _LEAST_COUNT and count >= share * (count + capital[word]) and word not in names
    )


def _has_ordinary_capitals(words: Sequence[str]) -> bool:
    letters = [word for word in words if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in letters)
    return len(letters) >= _LEAST_WORDS and _LEAST_CAPITALS <= capitals / len(letters) <= 0.5


def make_ordinary_example(record: Mapping[str, Any], source: str, ordinary: frozenset[str]) -> Example:
    """Return unlabelled text as an example in which some words are outside of all names; see this module.

    Args:
        record: a record in our JSONL shape, whose spans are not read.
        source: name of the corpus.
        ordinary: of :func:`find_ordinary_words`.
    """
    text = record["text"]
    borders = split_words(text)
    words = [text[a:b] for a, b in borders]
    breaks = rate_word_borders(text, borders)
    is_cased = _has_ordinary_capitals(words)
    is_outside = [False] * len(words)
    for n, word in enumerate(words):
        if not word.isalpha():
            continue
        is_ordinary = word.lower() in ordinary
        if is_in_mailbox(text, borders, n):
            continue
        if word.islower():
            is_outside[n] = is_ordinary or (is_cased and len(word) > 2)
        elif is_ordinary:
            begins = n == 0 or breaks[n] > 0 or not words[n - 1].isalnum()
            is_followed = n + 1 < len(words) and words[n + 1][0].isupper()
            is_outside[n] = len(word) >= _LEAST_LETTERS if word.isupper() else begins and not is_followed
    for n, word in enumerate(words):  # what joins two names may be part of one
        if (
            is_outside[n]
            and len(word) <= 4
            and any(_is_capital(words, n + step, is_outside) for step in (-2, -1, 1, 2))
        ):
            is_outside[n] = False
    allowed = [_OUTSIDE if outside else ALL for outside in is_outside]
    plain = [outside and word.islower() for outside, word in zip(is_outside, words, strict=True)]
    return assemble_example(text, borders, allowed, plain, (-1,) * len(borders), source)


def _is_capital(words: Sequence[str], index: int, is_outside: Sequence[bool]) -> bool:
    return 0 <= index < len(words) and words[index][0].isupper() and not is_outside[index]

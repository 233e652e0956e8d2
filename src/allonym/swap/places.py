"""The place of a mention: the words around it that an entity must fit, such as an article, a number or a noun.

An entity comes only to places that hold it as its own does. So *Vietnam* does not follow the article of "the UK", "four
clinics" become no insurance, and the bank of "Anna Novak with Acme" gets another analyst's bank, even where a detector
took it for a person. English only.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from allonym.document import Span

FEATURES = ("the", "bare", "attribute", "counted", "affiliation", "address")
"""What is read of a place: see :func:`read_place`."""
_NOUNS = frozenset({"NOUN", "PROPN"})
_DETERMINERS = frozenset(
    "a an the this that these those our your their its my his her every each any some no such which whose another "
    "other".split()
)
_COUNTING = frozenset("a an another each every many few several both these those".split())
_WHEN = frozenset({"today", "yesterday", "tomorrow"})
_OF_A_FIRM = frozenset({"with", "from", "at", "of", "for"})
_GREETING = frozenset("thanks thank you hi hello morning afternoon evening welcome okay ok yeah yes sure great".split())
_NEAR = 3  # characters between two words of one phrase, such as ", "
_ENDING = re.compile(r"['’]s?\b")

Word = tuple[int, int, str]
"""Start, end and part of speech."""


class Sentences(NamedTuple):
    """The words of a text, in order, with parts of speech; and the ends of its mentions of people, sorted."""

    words: Sequence[Word]
    people: Sequence[int]


def read_place(text: str, spans: Sequence[Span], sentences: Sentences) -> tuple[int, ...]:
    """Return how the sentences hold an entity's mentions, for each of :data:`FEATURES` 1 (yes), -1 (no) or 0.

    Args:
        text: of the document.
        spans: the entity's mentions.
        sentences: of the document.

    Returns:
        ``the``: behind that article, not as an attribute; ``bare``: behind no determiner, not as an attribute;
        ``attribute``: before a noun or a hyphen; ``counted``: behind a number or a word such as *many*;
        ``affiliation``: behind a person and *with*, *from*, *at* or *of*; ``address``: somebody is spoken to. Of
        several mentions the sum counts by its sign; of the last three, one mention decides.
    """
    marks = [_read_mention(text, span.start, span.end, sentences) for span in spans]
    sums = [sum(column) for column in zip(*marks, strict=True)]
    return tuple(
        max(column) if name in ("counted", "affiliation", "address") else (total > 0) - (total < 0)
        for name, total, column in zip(FEATURES, sums, zip(*marks, strict=True), strict=True)
    )


def _read_mention(text: str, start: int, end: int, sentences: Sentences) -> tuple[int, ...]:
    words = sentences.words
    first = bisect_left(words, start, key=lambda word: word[0])
    last = bisect_left(words, end, key=lambda word: word[0])
    before = words[first - 1] if first and start - words[first - 1][1] <= 1 else None
    word_before = text[before[0] : before[1]].lower() if before else ""
    first_word = text[start:end].split(" ", 1)[0].lower() if " " in text[start:end] else ""
    determiner = first_word if first_word in _DETERMINERS else word_before if word_before in _DETERMINERS else ""
    is_counted = determiner in _COUNTING or word_before in _COUNTING or (before is not None and before[2] == "NUM")
    is_hyphened = text[end : end + 1] == "-" and text[end + 1 : end + 2].isalnum()
    tail = _ENDING.match(text, end)
    after = words[last] if last < len(words) and not tail and words[last][0] - end <= 1 else None
    is_noun = after is not None and after[2] in _NOUNS and text[after[0] : after[1]].lower() not in _WHEN
    is_attribute = is_hyphened or is_noun
    is_held = determiner or is_counted or text[max(0, start - 2) : start].endswith(("'s ", "’s ", "-"))
    return (
        0 if is_attribute else 1 if determiner == "the" else -1,
        0 if is_attribute else -1 if is_held else 1,
        1 if is_attribute else -1,
        1 if is_counted else -1,
        1 if word_before in _OF_A_FIRM and before and _follows_person(before[0], sentences.people) else -1,
        1 if _is_address(text, end, word_before, words, first) else -1,
    )


def _follows_person(start: int, people: Sequence[int]) -> bool:
    number = bisect_right(people, start) - 1
    return number >= 0 and start - people[number] <= _NEAR


def _is_address(text: str, end: int, word_before: str, words: Sequence[Word], first: int) -> bool:
    """Tell whether a sentence or its part ends behind a mention that follows a greeting."""
    near = {text[a:b].lower() for a, b, _ in words[max(0, first - 2) : first]}
    return (
        bool(near & _GREETING) and word_before not in ("for", "to") and text[end : end + 1] in (".", ",", "?", "!", "")
    )

"""Names of people by lists and titles alone, for passages in languages that no detector of names reads.

A given name of the knowledge base with a capitalised word behind it is a full name ("Anna Schneider"); what follows a
title is a family name ("Herrn Schneider"). Names in small letters, family names alone and most inflected given names
("z Janem Kowalskim") are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from allonym.detection.lexicon import PARTICLES, lower_alphanumerics
from allonym.detection.words import read_word_list
from allonym.document import Interval, Span
from allonym.kb import KnowledgeBase
from allonym.text.words import compile_word_pattern

_WORD = compile_word_pattern("'’-", digits=False)
_GAP = re.compile(r"[ \xa0]|\.[ \xa0]?")
_LEAST_WEIGHT = 20  # of a given name in the knowledge base: how typical of its origin
_LEAST_LETTERS = 4  # of a listed name; shorter ones are words of some language: "An", "Sie", "Von"
_MOST_WORDS = 3  # behind a given name or a title
_ARTICLES = frozenset({"der", "den", "het", "il"})
_SCORE = 0.8


@cache
def _get_weight(word: str) -> int:
    """How typical a word is as a given name, 0 to 100; 0 for short words."""
    if len(word) < _LEAST_LETTERS:
        return 0
    facts = KnowledgeBase.open().name_facts(word)
    return max((fact.weight for fact in facts if fact.part == "first"), default=0)


def has_listed_name(words: Iterable[str]) -> bool:
    """Whether a word is listed as a given or family name of people."""
    facts = KnowledgeBase.open().name_facts
    return any(len(word) >= _LEAST_LETTERS and facts(word) for word in words)


def find_listed_names(text: str, passages: Iterable[Interval]) -> Iterator[Span]:
    """Find full names and names after titles in some passages of a text, disjoint and in reading order."""
    titles = read_word_list("titles_of_other_languages")
    for start, end in passages:
        words = list(_WORD.finditer(text, start, end))
        i = 0
        while i < len(words):
            is_title = lower_alphanumerics(words[i][0]) in titles
            if is_title or (_is_capitalised(words[i][0]) and _get_weight(words[i][0]) >= _LEAST_WEIGHT):
                last = _find_last_word(text, words, i, titles)
                first = i
                while first < last and lower_alphanumerics(words[first][0]) in titles:
                    first += 1
                if last > i and not (first == last and lower_alphanumerics(words[last][0]) in titles):
                    yield Span(words[first].start(), words[last].end(), "PERSON", _SCORE, "lexicon:listed-name")
                    i = last
            i += 1


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and not word.isupper()


def _is_article(words: Sequence[re.Match[str]], place: int) -> bool:
    """Whether "der" and the like are no part of a name, as they are in "van der Berg"."""
    return words[place][0] in _ARTICLES and words[place - 1][0] not in PARTICLES


def _find_last_word(text: str, words: Sequence[re.Match[str]], first: int, titles: frozenset[str]) -> int:
    """The last word of the name that begins with a title or a given name; ``first`` where nothing belongs to it."""
    last, place, count = first, first + 1, 0
    while place < len(words) and count < _MOST_WORDS:
        before, word = words[place - 1][0], words[place][0]
        gap = text[words[place - 1].end() : words[place].start()]
        is_short = len(before) == 1 or lower_alphanumerics(before) in titles
        if not _GAP.fullmatch(gap) or (gap[0] == "." and not is_short):
            break
        if _is_capitalised(word) and (len(word) > 2 or lower_alphanumerics(word) in PARTICLES):
            last = last if len(word) <= 2 else place
            count += lower_alphanumerics(word) not in titles
        elif not (len(word) == 1 and word.isupper()) and (word not in PARTICLES or _is_article(words, place)):
            break
        place += 1
    return last

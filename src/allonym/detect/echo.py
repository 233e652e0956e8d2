"""Further mentions of the people whose names a document has given away already.

"Miss Gannon" makes "Gannon" a name in the whole document, so "Laura Gannon" two lines above is found too. A name that
also stands in the text in lower case, outside of an address or the like, is an ordinary word and is not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from allonym.detect.lexicon import AMBIGUOUS, PARTICLES, TITLES, letters_of
from allonym.detect.words import word_list
from allonym.document import Span
from allonym.labels import Taxonomy

SCORE = 0.6
_STOP = word_list("no_names")
_WORD = re.compile(r"[^\W\d_][\w'’\-]+")
_LEFT = re.compile(r"(?:(?:[^\W\d_][\w'’\-]*|[^\W\d_]\.) ){1,3}\Z")
_RIGHT = re.compile(r" ([^\W\d_][\w'’\-]+)")


def echoes(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Mentions of the names in the PERSON spans of ``spans`` (score 0.7 and up) that no span covers yet."""
    seeds = [s for s in spans if s.score >= 0.7 and taxonomy.within(s.label, "PERSON")]
    if not seeds:
        return []
    names = dict.fromkeys(
        word
        for seed in seeds
        for word in _WORD.findall(text[seed.start : seed.end])
        if len(word) > 2 and _is_name(word) and word.lower() not in AMBIGUOUS
    )
    covered = sorted((s.start, s.end) for s in spans)
    starts = [a for a, _ in covered]
    found: dict[tuple[int, int], Span] = {}
    for name in sorted(names):
        bare = name.removesuffix("'s").removesuffix("’s")
        if any(not _inside(covered, starts, at) for at in _places(text, bare.lower())):
            continue
        for form in (bare, f"{bare}s", f"{bare}es"):
            for at in _places(text, form):
                if not _inside(covered, starts, at):
                    start, end = _whole_name(text, at, at + len(form))
                    found[(start, end)] = Span(start, end, "PERSON", SCORE, "echo:name")
    return list(found.values())


def _is_name(word: str) -> bool:
    plain = word.lower()
    stem = plain.replace("’", "'").partition("'")[0]  # "It's" is no name, "O'Brien" is one
    known = plain in _STOP or plain in PARTICLES or stem in _STOP
    return word[0].isupper() and not known and letters_of(word) not in TITLES


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and text[at - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            yield at
        at = text.find(word, end)


def _inside(covered: Sequence[tuple[int, int]], starts: Sequence[int], at: int) -> bool:
    i = bisect_right(starts, at) - 1
    return i >= 0 and covered[i][1] > at


def _whole_name(text: str, start: int, end: int) -> tuple[int, int]:
    left = _LEFT.search(text, max(0, start - 48), start)
    if left:
        for word in reversed(left[0].split()):
            if not _is_name(word) or (word.isupper() and len(word) > 1 and word[-1] != "."):
                break
            start -= len(word) + 1
    right = _RIGHT.match(text, end)
    if right and _is_name(right[1]) and not right[1].isupper():
        end = right.end() - (2 if right[1].endswith(("'s", "’s")) else 0)
    return start, end

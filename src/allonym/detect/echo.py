"""Further mentions of the people whose names a document has given away already.

"Miss Gannon" makes "Gannon" a name in the whole document, so "Laura Gannon" two lines above is found too. A name that
also stands in the text in lower case, outside of an address or the like, is an ordinary word and is not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from allonym.detect.lexicon import PARTICLES, TITLES, letters_of
from allonym.detect.scan import MANY, matches, occurrences, uncached
from allonym.detect.words import word_list
from allonym.document import Span, merge
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
        if len(word) > 2 and _is_name(word)
    )
    names |= dict.fromkeys(name for seed in seeds if " " in (name := text[seed.start : seed.end]) and name[0].isupper())
    stems = {name.removesuffix("'s").removesuffix("’s") for name in names}
    if len(text) * len(stems) < 100_000:  # cheaper than a pattern, which most short texts then do not need
        said = " ".join(text[a:b] for a, b in merge((seed.start, seed.end) for seed in seeds))
        stems = {stem for stem in stems if text.count(stem) > said.count(stem)}
    if not stems:
        return []
    covered = sorted((s.start, s.end) for s in spans)
    starts = [a for a, _ in covered]
    places: dict[str, list[tuple[int, int]]] = {}
    words: set[str] = set()
    forms = sorted({*stems, *(stem.lower() for stem in stems)})
    if sum(map(len, forms)) > MANY:
        hits = occurrences(forms, text, ("", "s", "es"))
    else:
        hits = (found[0] for found in matches(uncached(forms, "(?:e?s)?", whole=True), text))
    for start, end in hits:
        if (start and text[start - 1].isalnum()) or (end < len(text) and text[end].isalnum()):
            continue
        if not _inside(covered, starts, start):
            found = text[start:end]
            stem = found if found in stems else found.removesuffix("s").removesuffix("e")
            stem = stem if stem in stems or found[0].islower() else found.removesuffix("s")
            if found[0].isupper():
                places.setdefault(stem, []).append((start, end))
            else:
                words.add(found)
    out: dict[tuple[int, int], Span] = {}
    for stem, mentions in places.items():
        if stem.lower() not in words:
            for mention in mentions:
                start, end = _whole_name(text, *mention)
                out[(start, end)] = Span(start, end, "PERSON", SCORE, "echo:name")
    return list(out.values())


def _is_name(word: str) -> bool:
    plain = word.lower()
    stem = plain.replace("’", "'").partition("'")[0]  # "It's" is no name, "O'Brien" is one
    known = plain in _STOP or plain in PARTICLES or stem in _STOP
    return word[0].isupper() and not known and letters_of(word) not in TITLES


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

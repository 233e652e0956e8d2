"""Further mentions of what the tagger found once: a name found somewhere is found everywhere in the document.

A single word is followed only where the tagger saw a name in most of its mentions; elsewhere it is an ordinary word
("Apple" and "an apple"). Where a text has no capitals, as speech recognisers write, parts of people's names are
followed too; elsewhere :mod:`allonym.detect.echo` does that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from allonym.detect.scan import MANY, matches, occurrences, uncached
from allonym.detect.words import word_list
from allonym.document import Span, merge
from allonym.labels import Taxonomy

SCORE = 0.6
SURE = 0.6  # score that a finding needs to be followed
_SHARE = 0.5  # of a word's mentions that must be names
_KINDS = ("PERSON", "ORGANIZATION", "LOCATION", "PRODUCT", "EVENT", "WORK_OF_ART", "AWARD")
_STOP = word_list("no_names")
_SHORTEST = 3


def repeats(text: str, found: Sequence[Span], covered: Iterable[Span], taxonomy: Taxonomy) -> list[Span]:
    """Mentions of the names in ``found`` (score 0.6 and up) that no span of ``covered`` touches.

    Args:
        text: the text.
        found: what the tagger found in it.
        covered: all findings, ``found`` among them.
        taxonomy: tells which labels are names.
    """
    names: dict[str, Counter[str]] = {}
    spoken = _no_capitals(text)
    for span in found:
        if span.score < SURE or not any(taxonomy.within(span.label, kind) for kind in _KINDS):
            continue
        surface = text[span.start : span.end]
        if _worth(surface):
            names.setdefault(surface, Counter())[span.label] += 1
        if spoken and " " in surface and taxonomy.within(span.label, "PERSON"):
            for part in surface.split():
                if _worth(part):
                    names.setdefault(part, Counter())[span.label] += 1
    once = [name for name, labels in names.items() if text.count(name) > labels.total()]
    if not once:
        return []
    taken = merge((s.start, s.end) for s in covered)
    starts = [a for a, _ in taken]
    seen: Counter[str] = Counter()
    known: Counter[str] = Counter()
    free: list[tuple[int, int]] = []
    if sum(map(len, once)) > MANY:
        hits: Iterable[tuple[int, int]] = occurrences(once, text)
    else:
        hits = (at[0] for at in matches(uncached(once, whole=True), text))
    for start, end in hits:
        if (start and text[start - 1].isalnum()) or (end < len(text) and text[end].isalnum()):
            continue
        name = text[start:end]
        seen[name] += 1
        i = bisect_right(starts, end - 1) - 1
        if i >= 0 and taken[i][1] > start:
            known[name] += 1
        else:
            free.append((start, end))
    out = []
    for start, end in free:
        name = text[start:end]
        if " " in name or known[name] >= _SHARE * seen[name]:
            label = min(names[name], key=lambda label: (-names[name][label], label))
            out.append(Span(start, end, label, SCORE, "tagger:repeat"))
    return out


def _worth(name: str) -> bool:
    return len(name) >= _SHORTEST and name.lower() not in _STOP and any(c.isalpha() for c in name)


def _no_capitals(text: str) -> bool:
    return sum(map(str.isupper, text)) * 200 < sum(map(str.isalpha, text))

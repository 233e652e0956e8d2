"""What is left after restoring: replacements that could not be restored, and placeholders that nobody made."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from allonym.restoration.evidence import GRAMMAR
from allonym.restoration.forms import OPENING
from allonym.restoration.hits import Match
from allonym.restoration.index import Row
from allonym.text.placeholders import find_placeholders

INVENTED = "an unknown placeholder for {label}: invented or changed"
DOUBLED = "a placeholder for {label} stands twice in a row"
UNCERTAIN = "may be a replacement for {label} in another form, or the text's own word"

_LONGEST = 80
"""Characters of a placeholder that are looked at."""
_BEGIN = re.compile(rf"[{re.escape(OPENING)}][\"'# _:]{{0,3}}(?:[A-Z]{{3}}|[A-Z]{{2}}_)")
_NUMBERED = re.compile(r"[A-Z]{3}.*[0-9]")


@dataclass(frozen=True, slots=True)
class Residue:
    """A replacement, or what may be one, that is still in the returned text.

    Attributes:
        start, end: half-open, in the returned text.
        label: of the entity; empty if it is not known.
        why: the reason, without text of the document.
    """

    start: int
    end: int
    label: str
    why: str


def add_residue(text: str, matches: Sequence[Match], *, knows_tags: bool, expects_tags: bool = False) -> list[Match]:
    """Add to the matches the placeholders that none of them covers, and note tags that are doubled.

    Args:
        text: before restoring.
        matches: in reading order.
        knows_tags: whether any replacement is a tag; if not, placeholders are the text's own.
        expects_tags: those of a known label are not the text's own all the same, such as where nothing else of the text
            is known.
    """
    out = list(matches[:1])
    for a, b in pairwise(matches):
        is_doubled = a.evidence == GRAMMAR == b.evidence and a.row == b.row and not text[a.end : b.start].strip()
        out.append(b._replace(why=DOUBLED.format(label=b.label)) if is_doubled else b)
    if not (knows_tags or expects_tags):
        return out
    others = _find_invented_placeholders(text, matches)
    return order_matches((*out, *(m for m in others if knows_tags or m.label)))


def order_matches(matches: Iterable[Match]) -> list[Match]:
    """Return matches in reading order."""
    return sorted(matches, key=lambda m: (m.start, m.end))


def _find_invented_placeholders(text: str, matches: Sequence[Match]) -> Iterator[Match]:
    ends = [m.end for m in matches]
    for begin in _BEGIN.finditer(text):
        start = begin.start()
        i = bisect_right(ends, start)
        limit = matches[i].start if i < len(matches) else len(text)
        if limit <= start:
            continue
        for placeholder in find_placeholders(text[start : start + _LONGEST])[:1]:
            end = start + placeholder.end
            if placeholder.start == 0 and end <= limit and _NUMBERED.search(text, start, end) is not None:
                why = INVENTED.format(label=placeholder.label or "an entity")
                yield Match(start, end, None, "unknown", placeholder.label, why=why, is_sure=False)


def explain_uncertain(matches: Iterable[Match], rows: Sequence[Row]) -> list[Match]:
    """Return the matches with a reason for those that are not sure but may well be replacements.

    The others, which any text has by chance, have none.
    """
    return [
        m._replace(why=UNCERTAIN.format(label=m.label))
        if m.row >= 0 and not m.is_sure and not m.why and not rows[m.row].is_ordinary
        else m
        for m in matches
    ]

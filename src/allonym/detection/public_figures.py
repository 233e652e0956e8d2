"""Well-known people, and the characters and works that are written like people, whose names a policy may keep.

Only full names count, and names such as "Plato" that readers know alone; the family name alone follows a full name of
the same text. A name is covered all the same where the text makes a private person of its bearer: contact data or a
number stands beside one of its mentions, the form of the text announces it ("my name is ..."), a list of the user's
names it, or another person of the text has the same family name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from allonym.document import Reach, Span
from allonym.kb import KnowledgeBase
from allonym.labels import Taxonomy
from allonym.text.names import normalize_surface, parse_person

_NEAR = 200  # characters between a name and contact data beside it
_PRIVATE = frozenset(
    "EMAIL_ADDRESS PHONE_NUMBER STREET_ADDRESS GENERIC_ID GOVERNMENT_ID FINANCIAL_ID DATE_OF_BIRTH USER_NAME "
    "SOCIAL_HANDLE SECRET".split()
)
_ANNOUNCING = ("speakers:introduction", "speakers:address", "speakers:label", "lexicon:", "gateway:")


@cache
def read_public_names() -> frozenset[str]:
    """The normalised names of ``public_names.txt``."""
    lines = files("allonym.detection").joinpath("public_names.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(normalize_surface(line) for line in lines if line and not line.startswith("#"))


def drop_public_figures(text: str, findings: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """The findings without the mentions of well-known people whom the text does not make private persons."""
    people = {span: normalize_surface(text[span.start : span.end]) for span in findings if span.label == "PERSON"}
    words = {span: parse_person(name)[0] for span, name in people.items()}
    public = {name for span, name in people.items() if _is_public(name, words[span])}
    public -= {people[span] for span in _find_private_mentions(findings, people, taxonomy)}
    if not public:
        return list(findings)
    families = {words[span][-1] for span, name in people.items() if name in public and len(words[span]) > 1}
    families -= {words[span][-1] for span, name in people.items() if name not in public and len(words[span]) > 1}
    return [
        span
        for span in findings
        if span not in people or not (people[span] in public or (len(words[span]) == 1 and words[span][0] in families))
    ]


def _is_public(name: str, words: Sequence[str]) -> bool:
    if name in read_public_names():
        return True
    return len(words) > 1 and KnowledgeBase.open().famous(words[0], words[-1])


def _find_private_mentions(findings: Iterable[Span], people: dict[Span, str], taxonomy: Taxonomy) -> Iterable[Span]:
    """The mentions of people with contact data or a number near them, and those that the form of the text announces."""
    places = sorted(s.start for s in findings if not _PRIVATE.isdisjoint(taxonomy.lineage(s.label)))
    announced = Reach((s.start, s.end) for s in people if s.source.startswith(_ANNOUNCING))
    for span in people:
        position = bisect_left(places, span.start - _NEAR)
        is_near = position < len(places) and places[position] <= span.end + _NEAR
        if is_near or announced.touches(span.start, span.end):
            yield span

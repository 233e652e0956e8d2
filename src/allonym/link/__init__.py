"""From spans to entities: one referent of a document, one entity, whatever its surfaces.

Two mentions are one referent where their normalised texts are equal (case, diacritics, width, spaces, possessives) and
their labels are of one family; identifiers are compared by their letters and digits. Beyond that:

- People: titles and suffixes do not count; a part of a name, initials, ``Last, First``, a missing middle name, letters
  spelled one by one and a spelling that sounds the same join the one person that they fit. ``Mr Hart`` and ``Mrs Hart``
  are two people.
- What fits several people fits none: ``Beckham`` beside Victoria and David Beckham is an entity of its own, and a note
  says so. The nearest is never guessed. In a conversation an introduction (``this is Mark``) means the speaker, and a
  greeting (``hi Mark``) does not; that may settle it, mention by mention.
- ``the Beckhams`` are an entity of their own, unless only one person of the document bears the name.
- Organizations: legal forms do not count; an acronym joins the one name whose words it abbreviates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from allonym.document import Document, Entity, Span
from allonym.labels import TAXONOMY, Taxonomy
from allonym.link.people import Group, link_people, note
from allonym.text.names import Form, address, characters, organization, person, plain, titled
from allonym.text.names import spelled as spell

__all__ = ["Linked", "link"]


@dataclass(frozen=True, slots=True)
class Linked:
    """Entities in reading order of their first mention, and what stayed ambiguous, as offsets and labels."""

    entities: tuple[Entity, ...]
    notes: tuple[str, ...] = ()


_ROLES = frozenset({"EXECUTIVE", "COMPANY", "ORGANIZATION_SPEAKER", "PRODUCT_SPEAKER"})
_BY_CHARACTERS = frozenset(
    {"PHONE_NUMBER", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "POSTAL_CODE"}
)
_ADDRESSES = frozenset({"EMAIL_ADDRESS", "ONLINE_ID"})
_SMALL_WORDS = frozenset({"of", "and", "the", "for", "in", "on", "de", "&"})


def link(document: Document, spans: Sequence[Span], taxonomy: Taxonomy = TAXONOMY) -> Linked:
    """Group the mentions of each referent.

    Args:
        document: the text, with its turns if it is a conversation.
        spans: disjoint mentions in any order.
        taxonomy: tells which labels are of one family.

    Returns:
        Entities that hold each span exactly once. An entity's label is that of a role (``EXECUTIVE``, ``COMPANY``)
        where one of its mentions has it, else its mentions' most frequent one, else the first of those.
    """
    text = document.text
    groups: dict[str, Group] = {}
    people: dict[Form, list[Span]] = {}
    spelled: dict[str, list[Span]] = {}
    companies = False
    lineage = taxonomy.lineage
    for span in sorted(spans, key=_start):
        label = span.label
        chain = lineage(label)
        family = chain[-1]
        surface = text[span.start : span.end]
        if family == "PERSON" and label != "TITLE":
            bare = plain(surface)
            letters = spell(bare, 3)
            if letters:
                spelled.setdefault(letters, []).append(span)
            else:
                form = person(bare)
                if not form[1] and (gender := titled(text, span.start)):
                    form = form[0], gender
                people.setdefault(form, []).append(span)
            continue
        if family == "SPELLED_WORD":
            bare = plain(surface)
            spelled.setdefault(spell(bare, 2) or bare, []).append(span)
            continue
        if family == "ORGANIZATION":
            companies = True
            norm = organization(plain(surface))
        elif family in _BY_CHARACTERS or "POSTAL_CODE" in chain:
            norm = characters(surface)
        elif family in _ADDRESSES:
            norm = address(surface)
        elif family == "SECRET":
            norm = surface
        elif label == "TITLE":
            family, norm = "TITLE", plain(surface).rstrip(".")
        else:
            norm = plain(surface)
        key = f"{family}:{norm}"
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(key)
        group.spans.append(span)
    found = list(groups.values())
    notes: list[str] = []
    if companies and len(found) > 1:
        found = _acronyms(text, found, notes)
    if people or spelled:
        found += link_people(document, people, spelled, notes)
    for group in found:
        if len(group.spans) > 1:
            group.spans.sort(key=_start)
    entities = [Entity(g.key, _label(g.spans), tuple(g.spans)) for g in found]
    entities.sort(key=_first)
    return Linked(tuple(entities), tuple(notes))


_start = attrgetter("start")


def _first(entity: Entity) -> int:
    return entity.spans[0].start


def _label(spans: list[Span]) -> str:
    first = spans[0].label
    if len(spans) == 1:
        return first
    for span in spans:
        if span.label != first:
            break
    else:
        return first
    counts = Counter(s.label for s in spans if s.label != "SPELLED_WORD")
    roles = [label for label in counts if label in _ROLES]
    return roles[0] if roles else counts.most_common(1)[0][0]


def _acronyms(text: str, groups: list[Group], notes: list[str]) -> list[Group]:
    by_letters: dict[str, dict[str, Group]] = {}
    short: list[Group] = []
    for group in groups:
        if not group.key.startswith("ORGANIZATION:"):
            continue
        words = group.key[13:].replace("-", " ").split()
        if len(words) > 1:
            for letters in {"".join(w[0] for w in words), "".join(w[0] for w in words if w not in _SMALL_WORDS)}:
                by_letters.setdefault(letters, {})[group.key] = group
        elif (
            words
            and 2 <= len(words[0]) <= 8
            and any(text[s.start : s.end].strip("().,").isupper() for s in group.spans)
        ):
            short.append(group)
    joined: set[int] = set()
    for group in short:
        fits = list(by_letters.get(group.key[13:], {}).values())
        if len(fits) == 1:
            fits[0].spans += group.spans
            joined.add(id(group))
        elif fits:
            notes.append(note(group.spans, [f.spans[0] for f in fits]))
    return [g for g in groups if id(g) not in joined] if joined else groups

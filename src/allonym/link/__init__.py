"""From spans to entities: all mentions of one referent of a document become one entity, whatever their surfaces.

Two mentions have one referent where their normal forms are equal (case, diacritics, letters such as ``ł``, width,
spaces, possessives) and their labels are of one family; identifiers are compared by their letters and digits. A letter
with a second spelling of two letters (``Müller``, ``Mueller``) equals both. Beyond that:

- People: titles and suffixes do not count; a part of a name, initials, ``Last, First``, a missing middle name, letters
  spelled one by one and a spelling that sounds the same join the one person that they fit. ``Mr Hart`` and ``Mrs Hart``
  are two people, and ``Mr Hart`` is not Anna Hart. Words between names tell people apart, too: ``Robin is his wife``.
- What fits several people fits none: ``Beckham`` beside Victoria and David Beckham is an entity of its own, and a note
  says so. The nearest is never guessed; but except in a conversation nobody is meant before being named. In a
  conversation an introduction (``this is Mark``) means the speaker, and a greeting (``hi Mark``) does not; that may
  settle it, mention by mention.
- A name in a Polish ending joins the name without it: ``z Tomaszem Kowalskim``.
- ``the Beckhams`` are an entity of their own; a plural without ``the`` is the only bearer of the name, if there is one.
- Columns of one row with a given name and a family name hold one person's name.
- A slug (``tomasz-kowalski``) joins the name that it is made of.
- Organizations: legal forms do not count; an acronym joins the one name whose words it abbreviates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from allonym.detection.slugs import find_slug_names
from allonym.document import Document, Entity, Span
from allonym.errors import DataError
from allonym.labels import TAXONOMY, Taxonomy
from allonym.link.inflected import find_base_forms_of_names
from allonym.link.name_columns import find_row_names
from allonym.link.people import Group, describe_ambiguity, link_people
from allonym.link.relatives import follows_couple_titles, make_couple_form
from allonym.text.fold import spell_out_umlauts
from allonym.text.names import (
    PersonName,
    find_title_gender,
    join_spelled_letters,
    normalize_code,
    normalize_online_address,
    normalize_organization,
    normalize_surface,
    parse_person,
)

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
_SMALL_WORDS = frozenset({"of", "and", "the", "for", "in", "on", "de", "&"})
_ORGANIZATION = "ORGANIZATION:"


def link(document: Document, spans: Sequence[Span], taxonomy: Taxonomy = TAXONOMY) -> Linked:
    """Group the mentions of each referent.

    Args:
        document: the text, with its turns if it is a conversation.
        spans: disjoint mentions in any order.
        taxonomy: tells which labels are of one family.

    Raises:
        DataError: a mention is in no entity, which would leave it in clear.

    Returns:
        Entities that hold each span exactly once. An entity's label is that of a role (``EXECUTIVE``, ``COMPANY``)
        where one of its mentions has it, else its mentions' most frequent one, else the first of those.
    """
    text = document.text
    groups: dict[str, Group] = {}
    people: dict[PersonName, list[Span]] = {}
    spelled_words: dict[str, list[Span]] = {}
    second_keys: dict[str, str] = {}  # key of a second spelling -> key of the first
    second_words: dict[str, str] = {}  # the same for words of people's names
    lineage = taxonomy.lineage
    row_names = find_row_names(document)
    base_forms = find_base_forms_of_names(text, [s for s in spans if lineage(s.label)[-1] == "PERSON"])
    slug_names = find_slug_names(text, spans, taxonomy)
    for span in sorted(spans, key=_start):
        label = span.label
        chain = lineage(label)
        family = chain[-1] if label != "TITLE" else label
        surface = text[span.start : span.end]
        surface = slug_names.get(surface, surface)
        if family == "PERSON":
            if (base_form := base_forms.get((span.start, span.end))) is not None:
                surface = base_form.surface
            surface = row_names.get((span.start, span.end), surface)
            normal = normalize_surface(surface)
            if letters := join_spelled_letters(normal, 3):
                spelled_words.setdefault(letters, []).append(span)
                continue
            form = parse_person(normal)
            if not surface.isascii() and (spelled_out := spell_out_umlauts(surface)) != surface:
                second_form, _ = parse_person(normalize_surface(spelled_out))
                second_words |= {b: a for a, b in zip(form[0], second_form, strict=False) if a != b}
            if not form[1] and (gender := find_title_gender(text, span.start)):
                form = (form[0], gender) if not follows_couple_titles(text, span.start) else make_couple_form(form[0])
            people.setdefault(form, []).append(span)
            continue
        if family == "SPELLED_WORD":
            normal = normalize_surface(surface)
            spelled_words.setdefault(join_spelled_letters(normal, 2) or normal, []).append(span)
            continue
        normalize = normalize_code if "POSTAL_CODE" in chain else _NORMALIZERS.get(family, normalize_surface)
        key = f"{family}:{normalize(surface)}"
        if not surface.isascii() and family != "SECRET" and (spelled_out := spell_out_umlauts(surface)) != surface:
            second_keys[f"{family}:{normalize(spelled_out)}"] = key
        if (group := groups.get(key)) is None:
            groups[key] = Group(key, [span])
        else:
            group.spans.append(span)
    for second, key in second_keys.items():
        if second != key and second in groups and key in groups:
            groups[key].spans += groups.pop(second).spans
    linked = list(groups.values())
    notes: list[str] = []
    if len(linked) > 1:
        linked = _join_acronyms(text, linked, notes)
    if people or spelled_words:
        linked += link_people(document, people, spelled_words, second_words, notes)
    for group in linked:
        if len(group.spans) > 1:
            group.spans.sort(key=_start)
    entities = [Entity(g.key, _choose_group_label(g.spans), tuple(g.spans)) for g in linked]
    entities.sort(key=lambda entity: entity.spans[0].start)
    if sum(len(entity.spans) for entity in entities) != len(spans):
        raise DataError("linking lost a mention, so nothing is written; please report this")
    return Linked(tuple(entities), tuple(notes))


_start = attrgetter("start")


_NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "ORGANIZATION": lambda surface: normalize_organization(normalize_surface(surface)),
    "LOCATION": lambda surface: normalize_surface(surface).removeprefix("the "),
    "TITLE": lambda surface: normalize_surface(surface).rstrip("."),
    "SECRET": str,
    "EMAIL_ADDRESS": normalize_online_address,
    "ONLINE_ID": normalize_online_address,
    **dict.fromkeys(_BY_CHARACTERS, normalize_code),
}
"""Family to what makes of a surface that which two mentions must share to have one referent."""


def _choose_group_label(spans: list[Span]) -> str:
    if len(spans) == 1:
        return spans[0].label
    labels = [span.label for span in spans]
    if len(set(labels)) == 1:
        return labels[0]
    counts = Counter(label for label in labels if label != "SPELLED_WORD")
    return next((label for label in counts if label in _ROLES), counts.most_common(1)[0][0])


def _join_acronyms(text: str, groups: list[Group], notes: list[str]) -> list[Group]:
    """The groups, with those of acronyms joined to the one organisation that each abbreviates."""
    by_letters: dict[str, dict[str, Group]] = {}
    acronyms: list[Group] = []
    for group in groups:
        if not group.key.startswith(_ORGANIZATION):
            continue
        words = group.key.removeprefix(_ORGANIZATION).replace("-", " ").split()
        if len(words) > 1:
            for letters in {"".join(w[0] for w in words), "".join(w[0] for w in words if w not in _SMALL_WORDS)}:
                by_letters.setdefault(letters, {})[group.key] = group
        elif 2 <= len("".join(words)) <= 8 and any(text[s.start : s.end].strip("().,").isupper() for s in group.spans):
            acronyms.append(group)
    joined: set[int] = set()
    for group in acronyms:
        fits = list(by_letters.get(group.key.removeprefix(_ORGANIZATION), {}).values())
        if len(fits) == 1:
            fits[0].spans += group.spans
            joined.add(id(group))
        elif fits:
            notes.append(describe_ambiguity(group.spans, [f.spans[0] for f in fits]))
    return [g for g in groups if id(g) not in joined]

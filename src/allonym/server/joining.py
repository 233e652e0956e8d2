"""Who is who as a person says: mentions that are one entity, and mentions that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from allonym.document import Entity, Span
from allonym.link import Linked

Told = Mapping[tuple[int, int], int]
"""Start and end of a mention to the number of its entity."""


def regroup_entities(linked: Linked, numbers_by_mention: Told) -> Linked:
    """What was linked, corrected: mentions with the same number are one entity, those with different ones are not.

    A mention without a number goes where most mentions go that it was linked with; an entity without any stays as it
    is. Every mention is in exactly one entity, before and after.

    Args:
        linked: disjoint mentions.
        numbers_by_mention: numbers; what names no mention does nothing.
    """
    groups: dict[int, list[Span]] = {}
    keys: dict[int, Counter[str]] = {}
    untouched: list[Entity] = []
    for entity in linked.entities:
        numbers = Counter(n for s in entity.spans if (n := numbers_by_mention.get((s.start, s.end))) is not None)
        if not numbers:
            untouched.append(entity)
            continue
        most = numbers.most_common(1)[0][0]
        for span in entity.spans:
            number = numbers_by_mention.get((span.start, span.end), most)
            groups.setdefault(number, []).append(span)
            keys.setdefault(number, Counter())[entity.key] += 1
    taken_keys: set[str] = {e.key for e in untouched}
    regrouped: list[Entity] = []
    for number, spans in sorted(groups.items(), key=lambda item: min(item[1])):
        key = keys[number].most_common(1)[0][0]
        regrouped.append(Entity(_make_unique_key(key, taken_keys), _choose_label(spans), tuple(sorted(spans))))
    entities = sorted((*untouched, *regrouped), key=lambda e: e.spans[0].start)
    return Linked(tuple(entities), linked.notes)


def _make_unique_key(key: str, taken_keys: set[str]) -> str:
    """The key, or where it is taken one that ends in a bracket, as those of namesakes do."""
    unique, n = key, 1
    while unique in taken_keys:
        n += 1
        unique = f"{key} ({n})"
    taken_keys.add(unique)
    return unique


def _choose_label(spans: Iterable[Span]) -> str:
    """The most frequent one; of several the first in reading order."""
    return Counter(s.label for s in sorted(spans)).most_common(1)[0][0]

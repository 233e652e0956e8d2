"""Entities corrected by a person: mentions that are one entity, and mentions that are not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from allonym.document import Entity, Span
from allonym.link import Linked

EntityNumbers = Mapping[tuple[int, int], int]
"""Start and end of a mention to the number of its entity."""


def correct_entities(linked: Linked, numbers: EntityNumbers) -> Linked:
    """Correct entities: mentions with the same number become one entity, those with different ones do not.

    A mention without a number goes where most mentions go that it was linked with; an entity without any number stays
    as it is. Every mention is in exactly one entity, before and after.

    Args:
        linked: disjoint mentions.
        numbers: of mentions; those of other places have no effect.
    """
    groups = defaultdict[int, list[Span]](list)
    keys = defaultdict[int, Counter[str]](Counter)
    entities: list[Entity] = []
    for entity in linked.entities:
        counts = Counter(n for s in entity.spans if (n := numbers.get((s.start, s.end))) is not None)
        if not counts:
            entities.append(entity)
            continue
        most_frequent = counts.most_common(1)[0][0]
        for span in entity.spans:
            number = numbers.get((span.start, span.end), most_frequent)
            groups[number].append(span)
            keys[number][entity.key] += 1
    used = {entity.key for entity in entities}
    for number, spans in sorted(groups.items(), key=lambda item: min(item[1])):
        key = _make_unique(keys[number].most_common(1)[0][0], used)
        used.add(key)
        entities.append(Entity(key, _choose_label(spans), tuple(sorted(spans))))
    return Linked(tuple(sorted(entities, key=lambda e: e.spans[0].start)), linked.notes)


def _make_unique(key: str, used: set[str]) -> str:
    """Return the key, or if it is used one that ends in a number in brackets, as those of namesakes do."""
    unique, n = key, 1
    while unique in used:
        n += 1
        unique = f"{key} ({n})"
    return unique


def _choose_label(spans: Iterable[Span]) -> str:
    """Return the most frequent label; of several the first in reading order."""
    return Counter(s.label for s in sorted(spans)).most_common(1)[0][0]

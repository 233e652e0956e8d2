"""Who is who as a person says: mentions that are one entity, and mentions that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from allonym.document import Entity, Span
from allonym.link import Linked

Told = Mapping[tuple[int, int], int]
"""Start and end of a mention to the number of its entity."""


def joined(linked: Linked, told: Told) -> Linked:
    """What was linked, corrected: mentions with the same number are one entity, those with different ones are not.

    A mention without a number goes where most mentions go that it was linked with; an entity without any stays as it
    is. Every mention is in exactly one entity, before and after.

    Args:
        linked: disjoint mentions.
        told: numbers; what names no mention does nothing.
    """
    groups: dict[int, list[Span]] = {}
    keys: dict[int, Counter[str]] = {}
    untouched: list[Entity] = []
    for entity in linked.entities:
        numbers = Counter(n for s in entity.spans if (n := told.get((s.start, s.end))) is not None)
        if not numbers:
            untouched.append(entity)
            continue
        most = numbers.most_common(1)[0][0]
        for span in entity.spans:
            number = told.get((span.start, span.end), most)
            groups.setdefault(number, []).append(span)
            keys.setdefault(number, Counter())[entity.key] += 1
    taken: set[str] = {e.key for e in untouched}
    made: list[Entity] = []
    for number, spans in sorted(groups.items(), key=lambda item: min(item[1])):
        key = keys[number].most_common(1)[0][0]
        made.append(Entity(_apart(key, taken), _label(spans), tuple(sorted(spans))))
    entities = sorted((*untouched, *made), key=lambda e: e.spans[0].start)
    return Linked(tuple(entities), linked.notes)


def _apart(key: str, taken: set[str]) -> str:
    """The key, or where it is taken one that ends in a bracket, as those of namesakes do."""
    own, n = key, 1
    while own in taken:
        n += 1
        own = f"{key} ({n})"
    taken.add(own)
    return own


def _label(spans: Iterable[Span]) -> str:
    """The most frequent one; of several the first in reading order."""
    return Counter(s.label for s in sorted(spans)).most_common(1)[0][0]

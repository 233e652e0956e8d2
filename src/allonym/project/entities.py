"""What a project replaces, grouped by person or other referent and by surface: what its owner corrects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from allonym.policy import Policy
from allonym.project.documents import ProjectDocument
from allonym.text.names import normalize_surface


@dataclass(frozen=True, slots=True)
class Surface:
    """A text as it was found: its replacements, and how often it stands in how many documents."""

    text: str = field(repr=False)
    replacements: tuple[str, ...] = field(repr=False)
    mentions: int
    documents: int


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """A person, or another referent, with all surfaces of it in the project.

    Attributes:
        label: of the family, such as ``PERSON``.
        name: its longest surface.
        surfaces: the most frequent first.
        documents: ids of those that it stands in.
    """

    label: str
    name: str = field(repr=False)
    surfaces: tuple[Surface, ...]
    mentions: int
    documents: tuple[str, ...]


def group_entities(documents: Iterable[ProjectDocument], policy: Policy, label: str = "") -> list[FoundEntity]:
    """Return what is replaced in documents, the most frequent first.

    Within a document the mentions of one entity belong together; entities of two documents do if their longest
    surfaces are the same, but for case and diacritics.

    Args:
        documents: with their edits.
        policy: knows the labels.
        label: only referents of this label's family; empty: all.
    """
    family = policy.taxonomy.get_family
    chosen_family = family(policy.taxonomy.get(label).name) if label else ""
    mentions: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)  # of (surface, replacement)
    places: defaultdict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
    names: dict[tuple[str, str], str] = {}
    for item in documents:
        groups: defaultdict[tuple[int, int], list[tuple[str, str, str]]] = defaultdict(list)
        for position, edit in enumerate(item.edits):
            surface = " ".join(item.document.text[edit.start : edit.end].split())
            if surface and (not chosen_family or family(edit.label) == chosen_family):
                number = (edit.entity, 0) if edit.entity else (0, position)
                groups[number].append((surface, edit.replacement, family(edit.label)))
        for rows in groups.values():
            longest = max((surface for surface, _, _ in rows), key=lambda surface: (len(surface), surface))
            key = (rows[0][2], normalize_surface(longest))
            names.setdefault(key, longest)
            for surface, replacement, _ in rows:
                mentions[key][surface, replacement] += 1
                places[key].setdefault(surface, set()).add(item.id)
    return sorted(
        (_describe_entity(key[0], names[key], mentions[key], places[key]) for key in names),
        key=lambda entity: (-entity.mentions, entity.label, entity.name),
    )


def _describe_entity(
    label: str, name: str, mentions: Counter[tuple[str, str]], places: dict[str, set[str]]
) -> FoundEntity:
    surfaces = [
        Surface(
            text,
            tuple(sorted({replacement for other, replacement in mentions if other == text})),
            sum(count for (other, _), count in mentions.items() if other == text),
            len(ids),
        )
        for text, ids in places.items()
    ]
    surfaces.sort(key=lambda surface: (-surface.mentions, surface.text))
    documents = tuple(sorted(set().union(*places.values())))
    return FoundEntity(label, name, tuple(surfaces), mentions.total(), documents)

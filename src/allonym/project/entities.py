"""What a project replaces, grouped by person or other referent and by surface: what its owner corrects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.policy import Policy
from allonym.project.documents import ProjectDocument, digest_plain_values
from allonym.text.names import list_name_spellings, normalize_surface, parse_person_name
from allonym.vault import RegisteredPerson, Vault


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
        name: of the register, else its longest surface.
        surfaces: the most frequent first.
        documents: ids of those that it stands in.
        number: of the person in the register; None: it is no person, or not in there.
    """

    label: str
    name: str = field(repr=False)
    surfaces: tuple[Surface, ...]
    mentions: int
    documents: tuple[str, ...]
    number: int | None = None


def digest_people(vault: Vault, scope: str) -> str:
    """Return a digest of who has which names in a scope's register."""
    with vault.read_register(scope) as register:
        return digest_plain_values([[person.keys, person.names] for person in register.read_people()])


def group_entities(
    documents: Iterable[ProjectDocument], policy: Policy, label: str = "", people: Sequence[RegisteredPerson] = ()
) -> list[FoundEntity]:
    """Return what is replaced in documents, the most frequent first.

    Within a document the mentions of one entity belong together; entities of two documents do if the register knows
    them as one person, or if only one person has their replacements, whole or as a part, or else if their longest
    surfaces are the same, but for case and diacritics.

    Args:
        documents: with their edits.
        policy: knows the labels.
        label: only referents of this label's family; empty: all.
        people: of the register.
    """
    owners = {words: person for person in people for name in person.names for words in list_name_spellings(name)}
    family = policy.taxonomy.get_family
    chosen_family = family(policy.taxonomy.get(label).name) if label else ""
    mentions: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)  # of (surface, replacement)
    places: defaultdict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
    names: dict[tuple[str, str], str] = {}
    numbers: dict[tuple[str, str], int] = {}
    listed: list[tuple[str, list[tuple[str, str, str]]]] = []
    owners_of: defaultdict[str, set[RegisteredPerson]] = defaultdict(set)  # of replacements
    for item in documents:
        groups: defaultdict[tuple[int, int], list[tuple[str, str, str]]] = defaultdict(list)
        for position, edit in enumerate(item.edits):
            surface = " ".join(item.document.text[edit.start : edit.end].split())
            if surface and (not chosen_family or family(edit.label) == chosen_family):
                number = (edit.entity, 0) if edit.entity else (0, position)
                groups[number].append((surface, edit.replacement, family(edit.label)))
        for rows in groups.values():
            listed.append((item.id, rows))
            if person := _find_owner(rows, owners):
                for _, replacement, _ in rows:
                    for part in (replacement, *replacement.split()):
                        owners_of[part].add(person)
    for id, rows in listed:
        longest = _choose_longest_surface(rows)
        key, name = (rows[0][2], normalize_surface(longest)), longest
        shared = set().union(*(owners_of[replacement] for _, replacement, _ in rows)) if key[0] == "PERSON" else set()
        if person := _find_owner(rows, owners) or (next(iter(shared)) if len(shared) == 1 else None):
            key, name = ("PERSON", person.key), person.names[0]
            numbers[key] = person.number
        names.setdefault(key, name)
        for surface, replacement, _ in rows:
            mentions[key][surface, replacement] += 1
            places[key].setdefault(surface, set()).add(id)
    return sorted(
        (_describe_entity(key[0], names[key], numbers.get(key), mentions[key], places[key]) for key in names),
        key=lambda entity: (-entity.mentions, entity.label, entity.name),
    )


def _choose_longest_surface(rows: Sequence[tuple[str, str, str]]) -> str:
    return max((surface for surface, _, _ in rows), key=lambda surface: (len(surface), surface))


def _find_owner(
    rows: Sequence[tuple[str, str, str]], owners: Mapping[tuple[str, ...], RegisteredPerson]
) -> RegisteredPerson | None:
    """Find whom of the register the mentions of an entity name, given as (surface, replacement, family)."""
    return owners.get(parse_person_name(_choose_longest_surface(rows))[0]) if rows[0][2] == "PERSON" else None


def _describe_entity(
    label: str, name: str, number: int | None, mentions: Counter[tuple[str, str]], places: dict[str, set[str]]
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
    return FoundEntity(label, name, tuple(surfaces), mentions.total(), documents, number)

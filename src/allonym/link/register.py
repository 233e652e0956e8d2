"""Which entities of a document are people whom the register of a vault's scope knows.

An entity is the person who has its whole name. Else it joins the one person whom it fits, as mentions of one document
are linked: ``Margaret``, ``Ms Whitcombe`` and ``M. Whitcombe`` are Margaret Whitcombe if nobody else of the scope can
be meant, and a register that knows only ``Margaret`` learns the full name. What fits several people fits none and is
entered as a person of its own; so are new names. People that a document keeps apart are joined only by whole names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from allonym.document import FIRST_SALT, NAMESAKE, Document, Entity
from allonym.labels import Taxonomy
from allonym.link import Linked
from allonym.link.name_columns import find_row_names
from allonym.link.relatives import find_given_name_gender
from allonym.protocol import PeopleBook
from allonym.text.names import (
    TITLES,
    PersonName,
    are_given_names_alike,
    can_be_same_person,
    find_given_name_variants,
    find_title_gender,
    format_whole_name,
    join_spelled_letters,
    list_name_spellings,
    normalize_surface,
    parse_person_name,
    rank_words,
    sort_names,
    split_name,
)

if TYPE_CHECKING:
    from allonym.vault.records import RegisteredPerson

_SHOWN_TITLES = {"m": "Mr", "f": "Ms"}
_FAMILY = " family"
_Bearers = Mapping[str, "tuple[RegisteredPerson, ...]"]


@dataclass(slots=True, eq=False)
class _Candidate:
    """An entity of the document that may be a person of the register.

    Attributes:
        entity: as it was linked.
        names: its names by their words and the gender of their title; those of several words first.
        person: who it is, once that is known.
        is_shared: whether several people may be meant.
    """

    entity: Entity
    names: dict[PersonName, str] = field(repr=False)
    person: RegisteredPerson | None = None
    is_shared: bool = False

    @property
    def is_full(self) -> bool:
        """Whether one of its names has several words."""
        return any(len(words) > 1 for words, _ in self.names)

    @property
    def is_apart(self) -> bool:
        """Whether the document has somebody else with the same name."""
        return self.entity.key.endswith(")")

    def list_whole_names(self) -> Iterator[tuple[PersonName, str]]:
        """Yield the names that count: those of several words, if there are any; with their forms for look-ups."""
        for (words, gender), name in self.names.items():
            if len(words) > 1 or not self.is_full:
                for spelling in list_name_spellings(name):
                    yield (spelling, gender), format_whole_name(spelling)


def follow_register(
    document: Document, linked: Linked, book: PeopleBook, taxonomy: Taxonomy, key: bytes | str | None
) -> Linked:
    """Return the entities with the keys of the people that they are; those of one person become one entity.

    Args:
        document: the text.
        linked: its entities.
        book: the register, open for writing: new people and names are entered.
        taxonomy: tells which labels are people's.
        key: of the keyed operators. With another key than the vault's own, that key alone decides which pseudonyms are
            drawn, so that other vaults draw the same, until somebody is erased.
    """
    candidates = _list_candidates(document, linked.entities, taxonomy)
    if not candidates:
        return linked
    bearers = book.find_people(dict.fromkeys(form for c in candidates for _, form in c.list_whole_names()))
    for candidate in candidates:
        _find_by_whole_name(candidate, bearers)
    rest = [c for c in candidates if c.person is None and not c.is_apart]
    if rest:
        _find_by_parts(rest, candidates, book)
    entities = {id(entity): entity for entity in linked.entities}
    people: dict[str, RegisteredPerson] = {}
    for candidate in candidates:
        names = tuple(candidate.names.values())
        if candidate.person is None:
            person_key = f"{candidate.entity.key}{NAMESAKE}1" if candidate.is_shared else candidate.entity.key
            candidate.person = book.enter_person(person_key, names[:1] if candidate.is_apart else names)
        else:
            person = people.get(candidate.person.key, candidate.person)
            candidate.person = book.use_person(person, _add_names(person, candidate))
        people[candidate.person.key] = candidate.person
    by_key: dict[str, list[Entity]] = {}
    for candidate in candidates:
        assert candidate.person is not None
        by_key.setdefault(candidate.person.key, []).append(candidate.entity)
        del entities[id(candidate.entity)]
    is_salted = key == book.operator_key
    joined = [_join_entities(people[name], members, is_salted=is_salted) for name, members in by_key.items()]
    ordered = sorted((*entities.values(), *joined), key=lambda entity: entity.spans[0].start)
    return replace(linked, entities=tuple(ordered))


def _list_candidates(document: Document, entities: Sequence[Entity], taxonomy: Taxonomy) -> list[_Candidate]:
    """Return the entities that are people with a name, those with full names first."""
    candidates: list[_Candidate] = []
    row_names: Mapping[tuple[int, int], str] | None = None
    for entity in entities:
        is_person = entity.key.startswith("PERSON:") and not entity.key.endswith(_FAMILY)
        if not is_person or entity.label == "TITLE" or taxonomy.get_family(entity.label) != "PERSON":
            continue
        row_names = find_row_names(document) if row_names is None else row_names
        names = _list_names(document.text, entity, row_names)
        if names:
            candidates.append(_Candidate(entity, names))
    return sorted(candidates, key=lambda c: -len(next(iter(c.names))[0]))


def _list_names(text: str, entity: Entity, row_names: Mapping[tuple[int, int], str]) -> dict[PersonName, str]:
    """Return the names of an entity by their words, fullest first; initials, spelled words and numbers are none.

    Of single words, only those are names that are no part of a full one.
    """
    names: dict[PersonName, str] = {}
    surfaces: dict[tuple[str, str], None] = {}
    for span in entity.spans:
        surface = row_names.get((span.start, span.end)) or text[span.start : span.end]
        surfaces[surface, find_title_gender(text, span.start)] = None
    for surface, title in surfaces:
        normal = normalize_surface(surface)
        words, gender = parse_person_name(surface)
        real = [word for word in words if len(word) > 1 and word[0] != "+"]
        if not real or join_spelled_letters(normal, 3) or not all(_is_name_word(word) for word in words):
            continue
        gender = (gender or title) if len(words) == 1 else ""
        names.setdefault((words, gender), _format_name(surface, gender))
    full = [words for words, _ in names if len(words) > 1]
    parts = {part for words in full for word in words for part in (word, *word.split("-"))}
    parts |= {variant for words in full for variant in find_given_name_variants(words[0])}
    listed = ((form, name) for form, name in names.items() if len(form[0]) > 1 or form[0][0] not in parts)
    return dict(sorted(listed, key=lambda item: rank_words(item[0][0])))


def _is_name_word(word: str) -> bool:
    return word[0] == "+" or not any(c.isdigit() or c in "@_/" for c in word)


def _format_name(surface: str, gender: str) -> str:
    """Return a surface as a name: without titles before it, or with one where that tells people apart."""
    words = surface.split()
    while len(words) > 1 and words[0].lower().rstrip(".") in TITLES:
        del words[0]
    name = " ".join(words).strip(" .,;:!?\"'()[]“”")
    if name.endswith(("'s", "’s")):
        name = name[:-2]
    return f"{_SHOWN_TITLES[gender]} {name}" if gender else name


def _find_by_whole_name(candidate: _Candidate, bearers: _Bearers) -> None:
    """Find the one person who has a whole name of a candidate, the fullest first."""
    for (words, gender), form in candidate.list_whole_names():
        fits = [person for person in bearers.get(form, ()) if _has_whole_name(person, words, gender)]
        if len(fits) == 1:
            candidate.person = fits[0]
            return
        if fits:
            return


def _has_whole_name(person: RegisteredPerson, words: tuple[str, ...], gender: str) -> bool:
    names = [name for name in person.names if words in list_name_spellings(name)]
    return any(len(words) > 1 or not gender or parse_person_name(name)[1] in ("", gender) for name in names)


def _find_by_parts(rest: Sequence[_Candidate], candidates: Sequence[_Candidate], book: PeopleBook) -> None:
    """Find the people whom the rest of the candidates fit, each if it is the only one."""
    bearers = book.find_people(dict.fromkeys(form for c in rest for form in _list_part_forms(c)))
    named = {c.person.key for c in candidates if c.person is not None and c.is_full}
    fits_by_candidate: list[tuple[_Candidate, RegisteredPerson]] = []
    for candidate in rest:
        people = {p.key: p for form in _list_part_forms(candidate) for p in bearers.get(form, ())}
        fits = [person for person in people.values() if _fits_person(candidate, person)]
        candidate.is_shared = bool(fits) and not candidate.is_full
        # Who is named in full in the document was told from this one there.
        if len(fits) == 1 and fits[0].key not in named and not _fits_newcomer(candidate, rest):
            fits_by_candidate.append((candidate, fits[0]))
    full = [person.key for candidate, person in fits_by_candidate if candidate.is_full]
    for candidate, person in fits_by_candidate:
        if full.count(person.key) <= candidate.is_full:
            candidate.person = person


def _list_part_forms(candidate: _Candidate) -> Iterator[str]:
    """Yield the forms by which people are found whom a candidate may be."""
    for (words, _), form in candidate.list_whole_names():
        given_names, last, _ = split_name(words)
        if len(words) == 1:
            yield from (form.removeprefix("="), *find_given_name_variants(words[0]))
            continue
        yield last[-1]
        for word in (*given_names[:1], last[-1], *find_given_name_variants(given_names[0] if given_names else "")):
            yield format_whole_name((word,))


def _fits_newcomer(candidate: _Candidate, rest: Sequence[_Candidate]) -> bool:
    """Tell whether a name of one word also fits somebody whom the register does not know yet."""
    if candidate.is_full:
        return False
    words = {word for (words, _), _ in candidate.list_whole_names() for word in words}
    others = (c for c in rest if c is not candidate and c.is_full)
    return any(words & set(form) for c in others for form, _ in c.names)


def _fits_person(candidate: _Candidate, person: RegisteredPerson) -> bool:
    """Tell whether a candidate may be a person, none of whose names it has."""
    forms = [(words, parse_person_name(name)[1]) for name in person.names for words in list_name_spellings(name)]
    full = [words for words, _ in forms if len(words) > 1]
    for (words, gender), _ in candidate.list_whole_names():
        if len(words) > 1 and full:
            if any(can_be_same_person(words, other) for other in full):
                return True
        elif len(words) > 1:
            given_names, last, _ = split_name(words)
            expected = find_given_name_gender(given_names[0]) if given_names else ""
            for (word, *_), title in forms:
                is_given = not title and bool(given_names) and _is_same_given_name(word, given_names[0])
                if is_given or (word == last[-1] and title in ("", expected or title)):
                    return True
        elif any(_has_part(other, words[0], gender) for other in full):
            return True
    return False


def _has_part(words: tuple[str, ...], word: str, gender: str) -> bool:
    given_names, last, _ = split_name(words)
    family = {last[-1], " ".join(last), *last[-1].split("-")}
    if gender:
        expected = find_given_name_gender(given_names[0]) if given_names else ""
        return word in family and expected in ("", gender)
    return word in family or any(_is_same_given_name(word, name) for name in given_names)


def _is_same_given_name(a: str, b: str) -> bool:
    return a == b or (len(a) > 1 < len(b) and (a in b.split("-") or are_given_names_alike(a, b)))


def _add_names(person: RegisteredPerson, candidate: _Candidate) -> tuple[str, ...]:
    """Return a person's names with those of a candidate that are new and no part of another; the fullest first."""
    present = {words for name in person.names for words in list_name_spellings(name)}
    new = [name for (words, _), name in candidate.names.items() if words not in present and len(words) > 1]
    if not new:
        return person.names
    return sort_names((*person.names, *new))


def _join_entities(person: RegisteredPerson, members: Sequence[Entity], *, is_salted: bool) -> Entity:
    spans = sorted(span for entity in members for span in entity.spans)
    largest = max(members, key=lambda entity: len(entity.spans))
    salt = person.salt if is_salted or not person.salt.startswith(FIRST_SALT) else ""
    return Entity(person.key, largest.label, tuple(spans), person.names, salt)

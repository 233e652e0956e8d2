"""The people register from outside: who is in it, and what is put right by hand.

Every later document follows what is changed here; documents that were anonymised before stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from allonym.errors import UsageError, VaultError
from allonym.text.names import list_name_spellings, parse_person_name, sort_names
from allonym.vault.records import RegisteredPerson, format_scope_names

if TYPE_CHECKING:
    from allonym.vault.book import Book
    from allonym.vault.vault import Vault

_LIST = "allonym people list (of a project: project findings) shows everybody"


class ImportedPeople(NamedTuple):
    """The result of :func:`import_people`: people who are new, who got further names, and who were known already."""

    new: int
    extended: int
    same: int


def list_people(vault: Vault, scope: str) -> tuple[RegisteredPerson, ...]:
    """Return the people of a scope's register by their numbers, with their documents and replacements.

    Raises:
        VaultError: the vault has no such scope, or was changed by somebody without the key.
        VaultLocked: it was opened without its secret.
    """
    check_scope(vault, scope)
    with vault.read_register(scope) as register:
        people = register.read_people()
        counts = register.count_documents(people)
    replacements: dict[str, str] = {}
    for entry in vault.known(scope):
        shown = replacements.get(entry.entity, "")
        replacements[entry.entity] = max(shown, entry.replacement, key=lambda text: (len(text.split()), len(text)))
    return tuple(
        replace(
            person,
            documents=counts.get(person.number, 0),
            replacement=next((replacements[key] for key in person.keys if key in replacements), ""),
        )
        for person in people
    )


def join_people(vault: Vault, scope: str, first: str | int, second: str | int, *, actor: str = "") -> RegisteredPerson:
    """Make two people of a register one person, who has all their names and the replacement of the first.

    Args:
        vault, scope: of the register.
        first, second: number or name of each.
        actor: who does it, for the audit log.

    Raises:
        UsageError: both are the same person.
        VaultError: there is no such scope, or a name fits nobody or several people.
    """
    with _open_book(vault, scope) as book:
        people = book.list_people()
        remaining, joined = choose_person(people, first, scope), choose_person(people, second, scope)
        if remaining.number == joined.number:
            raise UsageError(f"both are person {remaining.number} already")
        person = book.join_people(remaining, joined)
    vault.record("join", scope=scope, actor=actor, counts={"people": 2})
    return person


def part_name(vault: Vault, scope: str, person: str | int, name: str, *, actor: str = "") -> RegisteredPerson:
    """Make a name of a registered person the name of somebody else, and return that new person.

    Args:
        vault, scope: of the register.
        person: number or name of the person.
        name: the name that is not this person's.
        actor: who does it, for the audit log.

    Raises:
        VaultError: there is no such scope, nobody fits, or the person has no such name, or no other.
    """
    words = parse_person_name(name)[0]
    with _open_book(vault, scope) as book:
        former = choose_person(book.list_people(), person, scope)
        parted = [other for other in former.names if words in list_name_spellings(other)]
        if not parted:
            raise VaultError(f"person {former.number} has no such name in scope {scope!r}; {_LIST}")
        if len(parted) == len(former.names):
            raise VaultError(f"person {former.number} has no other name, so there is nothing to part")
        key = "PERSON:" + " ".join(words)
        names = tuple(other for other in former.names if other not in parted)
        keys = (former.key, *(other for other in former.keys[1:] if other != key))
        book.change_person(replace(former, names=sort_names(names), keys=keys))
        new = book.enter_person(key, sort_names(parted))
    vault.record("part", scope=scope, actor=actor, counts={"people": 2})
    return new


def import_people(vault: Vault, scope: str, rows: Iterable[Sequence[str]], *, actor: str = "") -> ImportedPeople:
    """Enter people into a scope's register, or give those who are there further names: all rows, or none.

    Args:
        vault: of the register.
        scope: name of the scope; it is made where there is none.
        rows: the name of each person, then others of the same person. Empty names are left out.
        actor: who does it, for the audit log.

    Raises:
        VaultError: the names of a row are those of several people.
    """
    new = extended = same = 0
    with vault.book(scope) as book:
        people = {person.key: person for person in book.list_people()}
        owners = {words: p.key for p in people.values() for name in p.names for words in list_name_spellings(name)}
        for number, row in enumerate(rows, 1):
            names = [" ".join(name.split()) for name in row if name.strip()]
            if not names:
                continue
            words = [spelling for name in names for spelling in list_name_spellings(name)]
            keys = {owners[spelling] for spelling in words if spelling in owners}
            if len(keys) > 1:
                raise VaultError(f"row {number} has names of {len(keys)} people of the register; join these first")
            if not keys:
                person = book.enter_person("PERSON:" + " ".join(parse_person_name(names[0])[0]), sort_names(names))
                new += 1
            else:
                former = people[keys.pop()]
                person = replace(former, names=sort_names((*former.names, *names)))
                if is_new := person.names != former.names:
                    book.change_person(person)
                extended, same = extended + is_new, same + (not is_new)
            people[person.key] = person
            owners.update(dict.fromkeys(words, person.key))
    vault.record("people", scope=scope, actor=actor, counts={"new": new, "extended": extended})
    return ImportedPeople(new, extended, same)


def choose_person(people: Sequence[RegisteredPerson], who: str | int, scope: str) -> RegisteredPerson:
    """Return the person with a number or a whole name, else the only one with this part of a name.

    Raises:
        VaultError: nobody fits, or several people do. The message quotes no name.
    """
    if isinstance(who, int) or who.isdecimal():
        fits = [person for person in people if person.number == int(who)]
        if not fits:
            raise VaultError(f"the register of scope {scope!r} has no person {who}; {_LIST}")
        return fits[0]
    fits = find_bearers(people, who)
    if len(fits) > 1:
        numbers = " and ".join(str(person.number) for person in fits)
        raise VaultError(f"this name fits people {numbers} of scope {scope!r}; name one by the number")
    if not fits:
        raise VaultError(f"the register of scope {scope!r} has nobody of this name; {_LIST}")
    return fits[0]


def find_bearers(people: Sequence[RegisteredPerson], name: str, *, whole: bool = False) -> list[RegisteredPerson]:
    """Return the people with a whole name; if there are none, those with all its words in one of their names.

    ``whole``: only the former.
    """
    words = parse_person_name(name)[0]
    spellings = {person.key: [w for other in person.names for w in list_name_spellings(other)] for person in people}
    exact = [person for person in people if words in spellings[person.key]]
    return (
        exact if exact or whole else [p for p in people if any(set(words) <= set(other) for other in spellings[p.key])]
    )


def check_scope(vault: Vault, scope: str) -> None:
    """Raise :class:`VaultError` if the vault has no such scope."""
    names = [info.name for info in vault.info().scopes]
    if scope not in names:
        raise VaultError(f"{vault.where} has no scope {scope!r}; it has: {format_scope_names(names)}")


@contextmanager
def _open_book(vault: Vault, scope: str) -> Iterator[Book]:
    check_scope(vault, scope)
    with vault.book(scope) as book:
        yield book

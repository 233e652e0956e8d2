"""The people register of a scope: who has which names.

A person is a row with keys, names and a salt, all encrypted. The key is that of the entity that was entered first, so
that a person keeps the number of their tag. People are found by keyed digests of their whole names and of the words of
these, in the normal form of :mod:`allonym.text.names`. The salt goes into the choice of the person's pseudonym, beside
the vault's key. It is made from the person's key and a random number that every erasure replaces, so that nobody can
make it again afterwards, whatever keys and names they have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa

from allonym.errors import VaultError
from allonym.text.names import format_whole_name, list_name_spellings
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.plans import digest_person
from allonym.vault.records import RegisteredPerson
from allonym.vault.store import PEOPLE, delete_rows, make_batches

MOST_BEARERS = 50
"""People who are read for one form; a name with more bearers tells nobody."""

_ROW = store.people.c
_NAMES = store.people_names.c
_LINKS = store.people_subjects.c
_IS_KEPT = sa.or_(_ROW.expires.is_(None), _ROW.expires > sa.bindparam("now"))
_BEARERS = (
    sa.select(_NAMES.name, _ROW.digest, _ROW.sealed)
    .join(store.people, _NAMES.person == _ROW.digest)
    .where(_NAMES.name.in_(sa.bindparam("names", expanding=True)), _IS_KEPT)
)
_OF_KEY = sa.select(_ROW.digest, _ROW.sealed).where(_ROW.digest == sa.bindparam("row"), _IS_KEPT)
_IS_LINK = sa.and_(_LINKS.row == _ROW.digest, _LINKS.subject == sa.bindparam("subject"))
_USE = (
    sa.select(_ROW.expires, _LINKS.row)
    .select_from(store.people.outerjoin(store.people_subjects, _IS_LINK))
    .where(_ROW.digest == sa.bindparam("row"))
)


def list_lookup_forms(names: Iterable[str]) -> list[str]:
    """Return the forms by which a person with these names is found: whole names, and their words."""
    forms: dict[str, None] = {}
    for name in names:
        for words in list_name_spellings(name):
            forms[format_whole_name(words)] = None
            forms.update(dict.fromkeys(w for word in words for w in (word, *word.split("-")) if len(w) > 1))
    return [form for form in forms if form[0] != "+"]


class Register:
    """The people of one scope, inside a transaction.

    Args:
        connection: of the transaction.
        sealer: of the vault.
        scope: number of the scope.
        digest: digest of the scope.
        now: in seconds since 1970; who has expired by then is not found.
    """

    def __init__(self, connection: sa.Connection, sealer: Sealer, scope: int, digest: str, now: int) -> None:
        self._connection = connection
        self._sealer = sealer
        self._scope = scope
        self._digest = digest
        self._now = now
        self._read: dict[str, tuple[RegisteredPerson, ...]] = {}  # by form, until somebody is written

    def compute_row(self, key: str) -> str:
        """Return the digest that is the row of the person with this key."""
        return self._sealer.digest("person", self._digest, key)

    def read_people(self) -> list[RegisteredPerson]:
        """Return all people of the scope by their numbers."""
        query = sa.select(store.people).where(_ROW.scope == self._scope, _IS_KEPT)
        rows = self._connection.execute(query, {"now": self._now}).all()
        people = [self._unseal(row.digest, row.sealed) for row in rows]
        return sorted(people, key=lambda person: person.number)

    def find_people(self, forms: Iterable[str]) -> dict[str, tuple[RegisteredPerson, ...]]:
        """Return the people with each form; a form with none, or with more than :data:`MOST_BEARERS`, is left out."""
        forms = list(forms)
        self._read_bearers([form for form in forms if form not in self._read])
        return {form: bearers for form in forms if (bearers := self._read[form])}

    def _read_bearers(self, forms: list[str]) -> None:
        by_digest = {self._sealer.digest("name", self._digest, form): form for form in forms}
        rows: dict[str, list[Any]] = {}
        for batch in make_batches(by_digest):
            for row in self._connection.execute(_BEARERS, {"names": batch, "now": self._now}):
                rows.setdefault(row.name, []).append(row)
        people: dict[str, RegisteredPerson] = {}
        self._read.update(dict.fromkeys(forms, ()))
        for name, listed in rows.items():
            if len(listed) > MOST_BEARERS:
                continue
            for row in listed:
                if row.digest not in people:
                    people[row.digest] = self._unseal(row.digest, row.sealed)
            numbered = sorted((people[row.digest] for row in listed), key=lambda person: person.number)
            self._read[by_digest[name]] = tuple(numbered)

    def find_person(self, key: str) -> RegisteredPerson | None:
        """Return the person with this key; None without one."""
        row = self._connection.execute(_OF_KEY, {"row": self.compute_row(key), "now": self._now}).one_or_none()
        return None if row is None else self._unseal(row.digest, row.sealed)

    def count_documents(self, people: Iterable[RegisteredPerson]) -> dict[int, int]:
        """Return the number of each of these people to the number of kept plans in which the person occurs."""
        digests = {digest_person(self._sealer, self._digest, key): p.number for p in people for key in p.keys}
        plans: dict[int, set[str]] = {}
        for batch in make_batches(digests):
            query = sa.select(store.pieces).where(store.pieces.c.piece.in_(batch))
            for digest, plan in self._connection.execute(query):
                plans.setdefault(digests[digest], set()).add(plan)
        return {number: len(rows) for number, rows in plans.items()}

    def make_salt(self, key: str) -> str:
        """Return the salt of a new person with this key."""
        number = read_salt_number(self._connection)
        return number[:1] + blake2b(f"{number}\0{key}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def write_person(self, person: RegisteredPerson, expires: int | None) -> None:
        """Write a person who is new, or whose names have changed."""
        self._read.clear()
        row = self.compute_row(person.key)
        self.delete_person(row, _ROW.expires <= self._now)
        values = (json.dumps(person.keys), str(person.number), person.salt, json.dumps(person.names))
        sealed = self._sealer.seal(values, *_bind(self._digest, row))
        change = store.people.update().where(_ROW.digest == row).values(sealed=sealed)
        if self._connection.execute(change).rowcount == 0:
            new = {"digest": row, "scope": self._scope, "sealed": sealed, "created": self._now, "expires": expires}
            self._connection.execute(store.people.insert().values(new))
        else:
            self._connection.execute(store.people_names.delete().where(_NAMES.person == row))
        forms = list_lookup_forms(person.names)
        digests = dict.fromkeys(self._sealer.digest("name", self._digest, form) for form in forms)
        self._connection.execute(store.people_names.insert(), [{"name": d, "person": row} for d in digests])

    def delete_person(self, row: str, *conditions: sa.ColumnElement[bool]) -> None:
        """Delete the person with this row, if the conditions are met."""
        self._read.clear()
        query = sa.select(_ROW.digest).where(_ROW.digest == row, *conditions)
        delete_rows(self._connection, PEOPLE, self._connection.execute(query).scalars().all())

    def move_subjects(self, key: str, other: str) -> None:
        """Give the person with a key also the subjects of another one, and keep the row as long as the other's."""
        query = sa.select(_LINKS.subject, _ROW.expires).join(store.people, _LINKS.row == _ROW.digest)
        for subject, expires in self._connection.execute(query.where(_LINKS.row == self.compute_row(other))).all():
            self.use_person(key, subject, expires)

    def use_person(self, key: str, subject: str, expires: int | None) -> None:
        """Note that a person occurs in a document of a subject, and lengthen how long the row is kept.

        Args:
            key: of the person.
            subject: digest of the subject.
            expires: in seconds since 1970; None: never.
        """
        row = self.compute_row(key)
        former = self._connection.execute(_USE, {"row": row, "subject": subject}).one()
        if former.row is None:
            self._connection.execute(store.people_subjects.insert(), [{"row": row, "subject": subject}])
        if former.expires is not None and (expires is None or expires > former.expires):
            self._connection.execute(store.people.update().where(_ROW.digest == row).values(expires=expires))

    def _unseal(self, row: str, sealed: object) -> RegisteredPerson:
        return unpack_person(self._sealer.unseal(sealed, *_bind(self._digest, row)), self._sealer.where)


def read_salt_number(connection: sa.Connection) -> str:
    """Return the number that salts are made with: random, and another one once somebody is erased."""
    return store.read_meta_values(connection, "people").get("people", b"").decode("ascii", "replace")


def unpack_person(values: Iterable[str], where: str) -> RegisteredPerson:
    """Return the person whose row has these values.

    Raises:
        VaultError: the values are not a person's.
    """
    try:
        keys, number, salt, names = values
        return RegisteredPerson(int(number), tuple(json.loads(keys)), tuple(json.loads(names)), salt)
    except (ValueError, TypeError):
        raise VaultError(f"{where}: a person of the register is damaged, or a newer version made it") from None


def _bind(scope: str, row: str) -> tuple[str, ...]:
    return PEOPLE.kind, scope, row, row

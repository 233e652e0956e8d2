"""One scope of a vault, open for writing inside one transaction.

Look-ups go to the database at once, what is written is collected and goes there in few statements at the end. Every
row is linked to the subjects whose documents it served, so that one subject can be erased without the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from allonym.document import NAMESAKE
from allonym.errors import UsageError, VaultError
from allonym.plan import Plan
from allonym.text.fold import Level
from allonym.text.names import normalize_surface, sort_names
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.plans import pack_plan, write_plan
from allonym.vault.records import Known, RegisteredPerson
from allonym.vault.register import Register
from allonym.vault.store import ASSIGNED, KNOWN, delete_rows, make_batches

NOBODY: Mapping[int, str] = MappingProxyType({})
_MANY = 4000
_ROWS, _LINKS = store.assigned.c, store.assigned_subjects.c
_IS_LINK = sa.and_(_LINKS.row == _ROWS.digest, _LINKS.subject == sa.bindparam("subject"))
_RECALL = (
    sa.select(_ROWS.digest, _ROWS.value, _ROWS.sealed, _ROWS.expires, _LINKS.row)
    .select_from(store.assigned.outerjoin(store.assigned_subjects, _IS_LINK))
    .where(_ROWS.digest == sa.bindparam("key"))
)
_HOLDERS = sa.select(_ROWS.digest, _ROWS.expires).where(_ROWS.value == sa.bindparam("value"))
_SCOPE = sa.select(store.scopes).where(store.scopes.c.digest == sa.bindparam("digest"))
_COUNTER = sa.select(store.counters.c.sealed).where(store.counters.c.digest == sa.bindparam("digest"))


def find_scope(connection: sa.Connection, sealer: Sealer, scope: str, *, lock: bool = False) -> sa.Row[Any] | None:
    """Return the scope's row; None if nothing was ever written into it. ``lock`` keeps other writers of it away."""
    query = _SCOPE.with_for_update() if lock else _SCOPE
    return connection.execute(query, {"digest": sealer.digest("scope", scope)}).one_or_none()


def ensure_scope(connection: sa.Connection, sealer: Sealer, scope: str, now: int) -> sa.Row[Any]:
    """Return the scope's row, made where there is none, and locked."""
    place = find_scope(connection, sealer, scope, lock=True)
    while place is None:
        digest = sealer.digest("scope", scope)
        values = {"digest": digest, "sealed": sealer.seal([scope], "scope", digest), "changes": 0, "created": now}
        try:
            with connection.begin_nested():
                connection.execute(store.scopes.insert().values(values))
        except sa.exc.IntegrityError:
            pass  # another process was first
        place = find_scope(connection, sealer, scope, lock=True)
    return place


def read_scope_names(connection: sa.Connection, sealer: Sealer | None) -> dict[str, str]:
    """Return the scopes' names by their digests; of a locked vault, the first characters of the digests."""
    rows = connection.execute(sa.select(store.scopes.c.digest, store.scopes.c.sealed)).all()
    if sealer is None:
        return {digest: f"scope {digest[:8]}" for digest, _ in rows}
    return {digest: sealer.unseal(sealed, "scope", digest)[0] for digest, sealed in rows}


def decrypt_replacement_row(sealer: Sealer, scope: str, digest: str, token: str, sealed: object) -> Known:
    """Decrypt a row of the table ``known``."""
    return Known(*sealer.unseal(sealed, "known", scope, digest, token))


def digest_replacement(sealer: Sealer, scope: str, replacement: str) -> str:
    """Return the digest by which a replacement is looked up: of its normal form, in the scope with this digest."""
    return sealer.digest("token", scope, normalize_surface(replacement, Level.MARKS) if replacement else "")


class Book:
    """One scope of a vault, inside one transaction. Made by :meth:`allonym.vault.Vault.book`.

    Within a kind no two keys share a value. A key keeps the first value it was given until that expires or is purged.
    """

    unit = ""
    """A vault keeps pseudonyms in all of its scope."""

    operator_key = b""
    """The vault's own key of keyed operators."""

    def __init__(
        self, connection: sa.Connection, sealer: Sealer, scope: str, subject: str | None, expires: int | None, now: int
    ) -> None:
        self._connection = connection
        self._sealer = sealer
        self.place = ensure_scope(connection, sealer, scope, now)
        self._register = Register(connection, sealer, self.place.id, self.place.digest, now)
        self._now = now
        self._expires = expires
        self._subjects: dict[str, str] = {}
        self._used: set[tuple[str, str]] = set()  # people noted for a subject
        self._past: set[str] = set()  # digests of keys whose rows have expired
        self._forget_collected()
        self.added: Counter[str] = Counter()  # rows written, and originals that were there ("same")
        self._over = False
        self._subject = ""
        if subject is not None:
            self.about(subject)

    def _forget_collected(self) -> None:
        self._values: dict[str, str] = {}  # of keys seen or given since the last flush, by their digests
        self._holders: set[str] = set()  # digests of the values among them
        self._fresh: set[str] = set()  # digests of keys among them that no table has yet
        self._missing: set[str] = set()  # digests of keys that have no value: nobody else can give them one meanwhile
        self._linked: set[tuple[str, str]] = set()
        self._counters: dict[str, tuple[str, int]] = {}
        self._new_assigned: list[dict[str, object]] = []
        self._new_links: list[dict[str, object]] = []
        self._longer: list[dict[str, object]] = []
        self._known: dict[tuple[str, str], tuple[Known, str, int | None]] = {}

    @property
    def register(self) -> Book:
        """The scope's register of people: the book itself."""
        return self

    def about(self, subject: str) -> None:
        """Attribute all that is looked up or written from here on to this subject's documents."""
        if subject not in self._subjects:
            self._subjects[subject] = self._ensure_subject(subject)
        self._subject = self._subjects[subject]

    def until(self, expires: int | None) -> None:
        """Let all that is written from here on expire at this time, in seconds since 1970; None: never."""
        self._expires = expires

    def recall(self, kind: str, key: str) -> str | None:
        """Return the value of ``key``; None if it has none yet."""
        digest = self._compute_digest("key", kind, key)
        if digest in self._values and (digest in self._fresh or (digest, self._subject) in self._linked):
            self._link_to_subject(digest)
            return self._values[digest]
        if digest in self._missing:
            return None
        row = self._connection.execute(_RECALL, {"key": digest, "subject": self._subject}).one_or_none()
        if row is None or self._is_expired(row.expires):
            self._missing.add(digest)
            if row is not None:
                self._past.add(digest)
            return None
        value = self._sealer.unseal(row.sealed, "assigned", self.place.digest, digest, row.value)[2]
        self._values[digest] = value
        self._holders.add(row.value)
        if row.row is not None:
            self._linked.add((digest, self._subject))
        self._link_to_subject(digest)
        if row.expires is not None and (self._expires is None or self._expires > row.expires):
            self._longer.append({"key": digest, "until": self._expires})
        return value

    def enter(self, kind: str, key: str, value: str) -> bool:
        """Give ``key`` a value; return False, and do nothing, if another key of the kind has it already."""
        former = self.recall(kind, key)
        if former is not None:
            return former == value
        digest, value_digest = self._compute_digest("key", kind, key), self._compute_digest("value", kind, value)
        if value_digest in self._holders:
            return False
        holder = self._connection.execute(_HOLDERS, {"value": value_digest}).one_or_none()
        if holder is not None:
            if not self._is_expired(holder.expires):
                return False
            self._past.add(holder.digest)
        if stale := self._past & {digest, holder.digest if holder else digest}:
            delete_rows(self._connection, ASSIGNED, stale)
            self._past -= stale
        sealed = self._sealer.seal((kind, key, value), "assigned", self.place.digest, digest, value_digest)
        row = {"digest": digest, "value": value_digest, "scope": self.place.id, "sealed": sealed}
        self._new_assigned.append({**row, "created": self._now, "expires": self._expires})
        self._values[digest] = value
        self._missing.discard(digest)
        self._holders.add(value_digest)
        self._fresh.add(digest)
        self._link_to_subject(digest)
        self.added["assigned"] += 1
        if len(self._new_assigned) >= _MANY:
            self.flush()
        return True

    def has_value(self, kind: str, value: str) -> bool:
        """Tell whether a key of the kind has a value."""
        digest = self._compute_digest("value", kind, value)
        if digest in self._holders:
            return True
        holder = self._connection.execute(_HOLDERS, {"value": digest}).one_or_none()
        return holder is not None and not self._is_expired(holder.expires)

    def number(self, kind: str) -> int:
        """Return the kind's next number, from 1; no number is returned twice."""
        digest = self._compute_digest("counter", kind)
        last = self._read_counter(digest) + 1
        self._counters[digest] = (kind, last)
        return last

    def number_at_least(self, kind: str, last: int) -> None:
        """Skip all numbers up to ``last``."""
        digest = self._compute_digest("counter", kind)
        if self._read_counter(digest) < last:
            self._counters[digest] = (kind, last)

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """Store that ``replacement`` stands for ``original``, so that it can be restored."""
        digest = self._compute_digest("known", replacement, original, label, operator, entity)
        place = digest, self._subject
        if place in self._known:
            return
        token = digest_replacement(self._sealer, self.place.digest, replacement)
        self._known[place] = Known(replacement, original, label, operator, entity), token, self._expires
        if len(self._known) >= _MANY:
            self.flush()

    def find_people(self, forms: Iterable[str]) -> dict[str, tuple[RegisteredPerson, ...]]:
        """Return the people with each form, see :meth:`~allonym.vault.register.Register.find_people`."""
        self._check_is_open()
        return self._register.find_people(forms)

    def find_person(self, key: str) -> RegisteredPerson | None:
        """Return the person of the register with this key; None without one."""
        self._check_is_open()
        return self._register.find_person(key)

    def enter_person(
        self, key: str, names: Sequence[str], salt: str = "", keys: Sequence[str] = (), number: int = 0
    ) -> RegisteredPerson:
        """Enter a new person, who occurs in a document of the subject.

        Args:
            key: of the entity; where another person has it, a number is added.
            names: the fullest first.
            keys: further keys that the person had.
            number: which nobody of the register has; 0: the next one.
            salt: as it was in another vault; empty: a new one.
        """
        self._check_is_open()
        chosen, count = key, 1
        while self._register.find_person(chosen) is not None:
            count += 1
            chosen = f"{key}{NAMESAKE}{count}"
        salt = salt or self._register.make_salt(chosen)
        person = RegisteredPerson(number or self.number("person"), (chosen, *keys), tuple(names), salt)
        self._register.write_person(person, self._expires)
        self.use_person(person)
        self.added["people"] += 1
        return person

    def use_person(self, person: RegisteredPerson, names: Sequence[str] = ()) -> RegisteredPerson:
        """Note that a person of the register occurs in a document of the subject, and return the person.

        Args:
            person: of the register.
            names: all names that the person now has; empty: they do not change.
        """
        self._check_is_open()
        if names and tuple(names) != person.names:
            person = replace(person, names=tuple(names))
            self._register.write_person(person, self._expires)
        if (person.key, self._subject) not in self._used:
            self._used.add((person.key, self._subject))
            self._register.use_person(person.key, self._subject, self._expires)
        return person

    def list_people(self) -> list[RegisteredPerson]:
        """Return all people of the register by their numbers."""
        self._check_is_open()
        return self._register.read_people()

    def change_person(self, person: RegisteredPerson) -> None:
        """Write other names or keys of a person of the register."""
        self._check_is_open()
        self._register.write_person(person, self._expires)

    def join_people(self, first: RegisteredPerson, second: RegisteredPerson) -> RegisteredPerson:
        """Return the first person with all names, keys and subjects of the second, who is no person any more."""
        self._check_is_open()
        names = sort_names((*first.names, *second.names))
        joined = replace(first, names=names, keys=(*first.keys, *second.keys))
        self._register.move_subjects(first.key, second.key)
        self._register.delete_person(self._register.compute_row(second.key))
        self._register.write_person(joined, self._expires)
        return joined

    def keep_plan(self, document: str, plan: Plan, text: str, people: Mapping[int, str] = NOBODY) -> None:
        """Keep the plan of a document, so that its output can be restored exactly.

        Args:
            document: its id; empty where it has none.
            plan: with its originals.
            text: the output.
            people: number of an entity of the plan to the key of the registered person that it is.
        """
        self.enter_plan(pack_plan(document, plan, text, people))

    def enter_plan(self, values: tuple[str, ...]) -> None:
        """Keep a plan that :func:`~allonym.vault.plans.pack_plan` packed."""
        self._check_is_open()
        times = self._now, self._expires
        self.added["plans"] += write_plan(self._connection, self._sealer, self.place, values, [self._subject], *times)

    def flush(self) -> None:
        """Write what was collected, still inside the transaction."""
        self._insert_rows(store.assigned, self._new_assigned)
        self._insert_rows(store.assigned_subjects, self._new_links)
        self._extend_expiry(store.assigned, self._longer)
        table = store.counters
        for digest, (kind, last) in self._counters.items():
            sealed = self._sealer.seal((kind, str(last)), "counter", self.place.digest, digest)
            change = table.update().where(table.c.digest == digest).values(sealed=sealed)
            if self._connection.execute(change).rowcount == 0:
                self._insert_rows(table, [{"digest": digest, "scope": self.place.id, "sealed": sealed}])
        has_changed = [self._write_known(dict(batch)) for batch in make_batches(self._known.items())]
        if any(has_changed):
            scopes = store.scopes  # readers keep what they have read of a scope until this changes
            change = scopes.update().where(scopes.c.id == self.place.id).values(changes=scopes.c.changes + 1)
            self._connection.execute(change)
        self._forget_collected()

    def close(self) -> None:
        """End the book with its transaction: later calls raise, since nothing of them would be kept."""
        self._over = True

    # Inside

    def _check_is_open(self) -> None:
        if self._over:
            raise UsageError("this book's transaction is over; open another with vault.book(...)")

    def _compute_digest(self, what: str, *parts: str) -> str:
        self._check_is_open()
        return self._sealer.digest(what, self.place.digest, *parts)

    def _is_expired(self, expires: object) -> bool:
        if expires is not None and not isinstance(expires, int):
            raise VaultError(f"{self._sealer.where}: a row is damaged, or was changed without the key")
        return expires is not None and expires <= self._now

    def _read_counter(self, digest: str) -> int:
        if digest in self._counters:
            return self._counters[digest][1]
        sealed = self._connection.execute(_COUNTER, {"digest": digest}).scalar()
        if sealed is None:
            return 0
        return int(self._sealer.unseal(sealed, "counter", self.place.digest, digest)[1])

    def _ensure_subject(self, subject: str) -> str:
        """Return the subject's digest, and write its row if it has none; the empty subject has no row."""
        digest = self._compute_digest("subject", subject)
        table = store.subjects
        query = sa.select(table.c.digest).where(table.c.digest == digest)
        if subject and self._connection.execute(query).scalar() is None:
            sealed = self._sealer.seal([subject], "subject", self.place.digest, digest)
            self._connection.execute(table.insert().values(digest=digest, scope=self.place.id, sealed=sealed))
        return digest

    def _link_to_subject(self, digest: str) -> None:
        if (digest, self._subject) not in self._linked:
            self._linked.add((digest, self._subject))
            self._new_links.append({"row": digest, "subject": self._subject})

    def _write_known(self, batch: dict[tuple[str, str], tuple[Known, str, int | None]]) -> bool:
        """Write new originals and their subjects; return whether anything changed that a reader sees."""
        table, links = store.originals, store.known_subjects
        digests, subjects = {d for d, _ in batch}, {s for _, s in batch}
        query = sa.select(table.c.digest, table.c.expires).where(table.c.digest.in_(digests))
        former = {row.digest: row.expires for row in self._connection.execute(query)}
        if past := [digest for digest, expires in former.items() if self._is_expired(expires)]:
            delete_rows(self._connection, KNOWN, past)
            former = {digest: expires for digest, expires in former.items() if digest not in past}
        query = sa.select(links.c.row, links.c.subject).where(links.c.row.in_(digests), links.c.subject.in_(subjects))
        linked = {(row.row, row.subject) for row in self._connection.execute(query)} if former else set()
        rows: dict[str, dict[str, object]] = {}
        longer: list[dict[str, object]] = []
        for (digest, _), (entry, token, expires) in batch.items():
            if digest in rows:
                before = rows[digest]["expires"]
                rows[digest]["expires"] = None if before is None or expires is None else max(int(str(before)), expires)
            elif digest not in former:
                sealed = self._sealer.seal(astuple(entry), "known", self.place.digest, digest, token)
                row = {"digest": digest, "token": token, "scope": self.place.id, "sealed": sealed}
                rows[digest] = {**row, "created": self._now, "expires": expires}
            elif former[digest] is not None and (expires is None or expires > former[digest]):
                longer.append({"key": digest, "until": expires})
        self._insert_rows(table, list(rows.values()))
        self._insert_rows(links, [{"row": d, "subject": s} for d, s in batch if (d, s) not in linked])
        self._extend_expiry(table, longer)
        self.added["known"] += len(rows)
        self.added["same"] += len(digests) - len(rows)
        return bool(rows or longer)

    def _insert_rows(self, table: sa.Table, rows: list[dict[str, object]]) -> None:
        if rows:
            self._connection.execute(table.insert(), rows)

    def _extend_expiry(self, table: sa.Table, longer: list[dict[str, object]]) -> None:
        if longer:
            change = table.update().where(table.c.digest == sa.bindparam("key")).values(expires=sa.bindparam("until"))
            self._connection.execute(change, longer)

"""Export and import: a vault's content in one encrypted file; and a new data key for all values.

::

    allonym-vault-export 1\\n
    {"derivation": {...}, "check": "..."}\\n
    length (4 bytes)  nonce and ciphertext of a piece      any number of times

Each piece is sealed with AES-256-GCM under a key from the file's own secret, and bound to the lines above, its number
and whether it is the last one, so that nothing can be changed, moved, left out or cut off unseen. Inside are the rows
in clear, for the importing vault has other digests; nothing is ever written outside of the encryption.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import UsageError, VaultError, WrongKey
from allonym.keys import Cipher
from allonym.vault import keys, store
from allonym.vault.book import Book, decrypt_replacement_row, digest_replacement
from allonym.vault.keys import Sealer, Secret, derive_key, pack_texts
from allonym.vault.plans import unpack_plan
from allonym.vault.records import Merged, format_scope_names
from allonym.vault.register import read_salt_number, unpack_person
from allonym.vault.store import (
    ASSIGNED,
    KNOWN,
    PEOPLE,
    PLANS,
    Linked,
    iterate_row_batches,
    make_batches,
    write_private_file,
)

_MAGIC = b"allonym-vault-export 1\n"
_PIECE = 1 << 16
_LONGEST = 1 << 30
Row = tuple[str, ...]
_SIZES = {"assigned": 3, "known": 5, "plans": 5, "people": 4}
"""How many values the rows of a kind have before their expiry and subjects."""

_Binding = Callable[[Any, str], tuple[str, ...]]

# Export


def write_export(path: Path, rows: Iterable[Row], secret: Secret, *, overwrite: bool) -> int:
    """Write rows into a file, which has its name only when it is complete; return how many are entries."""
    how = keys.choose_derivation(secret)
    key = keys.derive_key_encryption_key(secret, how, str(path))
    head = _MAGIC + json.dumps({"derivation": how, "check": _compute_key_check(key)}).encode() + b"\n"
    cipher, count, number, waiting = Cipher(derive_key(key, "export")), 0, 0, bytearray()
    with write_private_file(path, overwrite=overwrite) as out:
        out.write(head)

        def write_piece(last: str) -> None:
            nonlocal number
            sealed = cipher.seal(bytes(waiting), pack_texts((head.hex(), str(number), last)))
            out.write(len(sealed).to_bytes(4) + sealed)
            number += 1
            waiting.clear()

        for row in rows:
            count += row[0] in _SIZES
            data = pack_texts(row)
            waiting += len(data).to_bytes(4) + data
            if len(waiting) >= _PIECE:
                write_piece("more")
        write_piece("last")
    return count


def iterate_export_rows(connection: sa.Connection, sealer: Sealer, operator: bytes, now: int) -> Iterator[Row]:
    """Yield what has not expired, in clear: the operator's key and the salts' number, then each scope with its rows."""
    yield "operator", operator.hex(), read_salt_number(connection)
    for place in connection.execute(sa.select(store.scopes).order_by(store.scopes.c.id)).all():
        yield "scope", sealer.unseal(place.sealed, "scope", place.digest)[0]
        names = {
            row.digest: sealer.unseal(row.sealed, "subject", place.digest, row.digest)[0]
            for row in connection.execute(sa.select(store.subjects).where(store.subjects.c.scope == place.id))
        }
        for row in _iterate_scope_rows(connection, store.counters, place.id):
            yield "counter", *sealer.unseal(row.sealed, "counter", place.digest, row.digest)
        for linked in (ASSIGNED, KNOWN, PLANS, PEOPLE):
            for row, subjects in _iterate_unexpired_rows(connection, linked, place.id, now):
                lookup = getattr(row, linked.lookup)
                values = sealer.unseal(row.sealed, linked.kind, place.digest, row.digest, lookup)
                yield linked.kind, *values, str(row.expires or ""), *(names.get(subject, "") for subject in subjects)


def _iterate_scope_rows(connection: sa.Connection, table: sa.Table, scope: int) -> Iterator[Any]:
    return chain.from_iterable(iterate_row_batches(connection, table, table.c.scope == scope))


def _iterate_unexpired_rows(
    connection: sa.Connection, linked: Linked, scope: int, now: int
) -> Iterator[tuple[Any, list[str]]]:
    """The rows that have not expired, with the digests of their subjects."""
    rows, links = _iterate_scope_rows(connection, linked.table, scope), linked.links
    for batch in make_batches(row for row in rows if row.expires is None or row.expires > now):
        query = sa.select(links).where(links.c.row.in_([row.digest for row in batch])).order_by(links.c.subject)
        subjects: dict[str, list[str]] = {}
        for link in connection.execute(query):
            subjects.setdefault(link.row, []).append(link.subject)
        yield from ((row, subjects.get(row.digest, [])) for row in batch)


# Import


def merge_export_file(
    connection: sa.Connection, sealer: Sealer, path: Path, secret: Secret, rename: Mapping[str, str], now: int
) -> tuple[Merged, bytes]:
    """Bring the file's rows in, inside a transaction that writes; also returns the other vault's operator key.

    Raises:
        WrongKey: the secret does not open the file.
        UsageError: a scope that is to get another name is not in the file. The transaction must then be undone.
        VaultError: the file is no export, was changed, or is cut off. Likewise.
    """
    is_empty = connection.execute(sa.select(store.scopes.c.id).limit(1)).scalar() is None
    incoming = _Incoming(connection, sealer, rename, now)
    with path.open("rb") as stream:
        for row in _read_export_rows(stream, keys.check_secret(secret), str(path)):
            incoming.import_row(row)
    incoming.finish_scope()
    if missing := [name for name in rename if name not in incoming.names]:
        raise UsageError(f"{path} has no scope {missing[0]!r} to rename; it has: {format_scope_names(incoming.names)}")
    adopted = is_empty and len(incoming.operator) == 32
    if adopted and incoming.salt_number:
        store.write_meta_values(connection, {"people": incoming.salt_number.encode()})
    return Merged(scopes=len(incoming.names), operator_key=adopted, **incoming.counts), incoming.operator


class _Incoming:
    """Takes rows in their order: the operator's key first, then scope by scope."""

    def __init__(self, connection: sa.Connection, sealer: Sealer, rename: Mapping[str, str], now: int) -> None:
        self.operator = b""
        self.salt_number = ""
        self.names: list[str] = []
        self.counts = {"known": 0, "assigned": 0, "plans": 0, "people": 0, "same": 0, "conflicts": 0, "ambiguous": 0}
        self._connection = connection
        self._sealer = sealer
        self._rename = rename
        self._now = now
        self._book: Book | None = None
        self._tokens: set[str] = set()
        self._seen: Book | None = None  # whose register the numbers are of
        self._numbers: set[int] = set()

    def import_row(self, row: Row) -> None:
        """Take one row of the file."""
        kind, *values = row
        if kind == "operator":
            self.operator, self.salt_number = bytes.fromhex(values[0]), "".join(values[1:])
        elif kind == "scope":
            self.finish_scope()
            self.names.append(values[0])
            name = self._rename.get(values[0], values[0])
            self._book = Book(self._connection, self._sealer, name, None, None, self._now)
        elif self._book is None:
            raise VaultError("a row stands before its scope")
        elif kind == "counter":
            self._book.number_at_least(values[0], int(values[1]))
        elif kind in _SIZES:
            size = _SIZES[kind]
            expires = int(values[size]) if values[size] else None
            if expires is None or expires > self._now:
                self._book.until(expires)
                take = {
                    "assigned": self._import_assigned,
                    "known": self._import_known,
                    "plans": self._import_plan,
                    "people": self._import_person,
                }[kind]
                take(self._book, values[:size], values[size + 1 :])

    def _import_assigned(self, book: Book, values: list[str], subjects: list[str]) -> None:
        before = book.added["assigned"]
        for subject in subjects:
            book.about(subject)
            if not book.enter(*values):
                self.counts["conflicts"] += 1
                return
        self.counts["same"] += book.added["assigned"] == before

    def _import_known(self, book: Book, values: list[str], subjects: list[str]) -> None:
        for subject in subjects:
            book.about(subject)
            book.remember(*values)
        self._tokens.add(digest_replacement(self._sealer, book.place.digest, values[0]))

    def _import_plan(self, book: Book, values: list[str], subjects: list[str]) -> None:
        unpack_plan("", values, self._sealer.where)  # raises if it is none
        for subject in subjects:
            book.about(subject)
            book.enter_plan(tuple(values))

    def _import_person(self, book: Book, values: list[str], subjects: list[str]) -> None:
        person = unpack_person(values, self._sealer.where)
        if book is not self._seen:
            self._seen, self._numbers = book, {other.number for other in book.list_people()}
        same = book.find_person(person.key)
        if same is None:
            for subject in subjects[:1]:
                book.about(subject)
            number = 0 if person.number in self._numbers else person.number
            same = book.enter_person(person.key, person.names, person.salt, person.keys[1:], number)
            self._numbers.add(same.number)
        else:
            self.counts["same" if same.names == person.names else "conflicts"] += 1
        for subject in subjects:
            book.about(subject)
            book.use_person(same)

    def finish_scope(self) -> None:
        """Write the scope that was taken last, and count its replacements that stand for several referents."""
        if self._book is None:
            return
        self._book.flush()
        for kind, count in self._book.added.items():
            self.counts[kind] += count
        table, scope = store.originals, self._book.place.digest
        for batch in make_batches(self._tokens):
            entities: dict[str, set[str]] = {}
            for row in self._connection.execute(sa.select(table).where(table.c.token.in_(batch))):
                entry = decrypt_replacement_row(self._sealer, scope, row.digest, row.token, row.sealed)
                entities.setdefault(entry.replacement, set()).add(entry.entity)
            self.counts["ambiguous"] += sum(len(keys) > 1 for keys in entities.values())
        self._book, self._tokens = None, set()


def _read_export_rows(stream: BufferedReader, secret: Secret, where: str) -> Iterator[Row]:
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise VaultError(f"{where} is not a vault's export, or a newer version made it")
    line = stream.readline(1 << 12)
    try:
        stored = json.loads(line)
        check, how = str(stored["check"]), json.dumps(stored["derivation"]).encode()
    except (ValueError, KeyError, TypeError):
        raise VaultError(f"{where}: its first lines were changed or are damaged") from None
    key = keys.derive_key_encryption_key(secret, keys.read_derivation({"derivation": how}, where), where)
    if not hmac.compare_digest(check.encode(), _compute_key_check(key).encode()):
        raise WrongKey(f"the secret does not open {where}: it is another one, or {where} is damaged")
    cipher, head = Cipher(derive_key(key, "export")), (_MAGIC + line).hex()
    number, last = 0, False
    while not last:
        size = int.from_bytes(stream.read(4))
        sealed = stream.read(size) if size <= _LONGEST else b""
        last = not stream.peek(1)
        piece = keys.unseal_value(cipher, sealed, (head, str(number), "last" if last else "more"))
        if piece is None:
            raise VaultError(f"{where}: piece {number + 1} is missing, cut off or was changed")
        start = 0
        while start < len(piece):
            end = start + 4 + int.from_bytes(piece[start : start + 4])
            yield keys.unpack_texts(piece[start + 4 : end])
            start = end
        number += 1


def _compute_key_check(key: bytes) -> str:
    return derive_key(key, "check").hex()[:32]


# A new data key


def reseal_values(connection: sa.Connection, old: Sealer, new: Sealer) -> int:
    """Encrypt all values under the new data key; digests do not change. Returns how many values there were.

    Raises:
        VaultError: a value was changed by somebody without the key.
    """
    scopes = dict(connection.execute(sa.select(store.scopes.c.id, store.scopes.c.digest)).all())
    count = 0
    for table, bind_row in _SEALED:
        change = table.update().where(table.c.digest == sa.bindparam("key")).values(sealed=sa.bindparam("new"))
        for rows in iterate_row_batches(connection, table):
            values = []
            for row in rows:
                about = bind_row(row, scopes.get(getattr(row, "scope", 0), ""))
                values.append({"key": row.digest, "new": new.seal(old.unseal(row.sealed, *about), *about)})
            connection.execute(change, values)
            count += len(rows)
    return count


_SEALED: tuple[tuple[sa.Table, _Binding], ...] = (
    (store.scopes, lambda row, _: ("scope", row.digest)),
    (store.subjects, lambda row, scope: ("subject", scope, row.digest)),
    (store.counters, lambda row, scope: ("counter", scope, row.digest)),
    (store.assigned, lambda row, scope: ("assigned", scope, row.digest, row.value)),
    (store.originals, lambda row, scope: ("known", scope, row.digest, row.token)),
    (store.plans, lambda row, scope: (PLANS.kind, scope, row.digest, row.result)),
    (store.people, lambda row, scope: (PEOPLE.kind, scope, row.digest, row.digest)),
)
"""The tables with sealed values, and what each row's value is bound to."""

"""Export and import: a vault's content in one encrypted file.

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
import os
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa

from allonym.errors import UsageError, VaultError, WrongKey
from allonym.keys import Cipher
from allonym.vault import store
from allonym.vault.book import AT_ONCE, Book, in_batches, open_known, token_digest
from allonym.vault.keys import (
    Sealer,
    Secret,
    check_secret,
    derivation,
    expanded,
    key_encryption_key,
    new_derivation,
    pack,
    unpack,
    unseal,
)
from allonym.vault.records import Merged, scope_names

_MAGIC = b"allonym-vault-export 1\n"
_PIECE = 1 << 16
_LONGEST = 1 << 30
Row = tuple[str, ...]


def write(
    connection: sa.Connection, sealer: Sealer, operator: bytes, path: Path, secret: Secret, *, now: int, overwrite: bool
) -> int:
    """Write what has not expired; how many rows. The file has its name only when it is complete."""
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; overwriting must be asked for")
    part = path.with_name(f"{path.name}.part")
    count = 0

    def counted() -> Iterator[Row]:
        nonlocal count
        yield "operator", operator.hex()
        for row in _rows(connection, sealer, now):
            count += row[0] in ("known", "assigned")
            yield row

    try:
        part.unlink(missing_ok=True)  # one that is there may be open to others
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
            _sealed(out, counted(), secret, str(path))
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return count


def _sealed(out: BinaryIO, rows: Iterable[Row], secret: Secret, where: str) -> None:
    how = new_derivation(secret)
    key = key_encryption_key(secret, how, where)
    head = _MAGIC + json.dumps({"derivation": how, "check": _check(key)}).encode() + b"\n"
    out.write(head)
    cipher, number, waiting = Cipher(expanded(key, "export")), 0, bytearray()

    def piece(last: str) -> None:
        nonlocal number
        sealed = cipher.seal(bytes(waiting), pack((head.hex(), str(number), last)))
        out.write(len(sealed).to_bytes(4) + sealed)
        number += 1
        waiting.clear()

    for row in rows:
        packed = pack(row)
        waiting += len(packed).to_bytes(4) + packed
        if len(waiting) >= _PIECE:
            piece("more")
    piece("last")


def _rows(connection: sa.Connection, sealer: Sealer, now: int) -> Iterator[Row]:
    table = store.scopes
    for place in connection.execute(sa.select(table).order_by(table.c.id)).all():
        yield "scope", sealer.unseal(place.sealed, "scope", place.digest)[0]
        named = {
            row.digest: sealer.unseal(row.sealed, "subject", place.digest, row.digest)[0]
            for row in connection.execute(sa.select(store.subjects).where(store.subjects.c.scope == place.id))
        }
        for row in _all(connection, store.counters, place.id):
            yield "counter", *sealer.unseal(row.sealed, "counter", place.digest, row.digest)
        for row, subjects in _linked(connection, store.assigned, store.assigned_subjects, place.id, now):
            values = sealer.unseal(row.sealed, "assigned", place.digest, row.digest, row.value)
            yield "assigned", *values, str(row.expires or ""), *(named.get(one, "") for one in subjects)
        for row, subjects in _linked(connection, store.known, store.known_subjects, place.id, now):
            one = open_known(sealer, place.digest, row.digest, row.token, row.sealed)
            values = (one.replacement, one.original, one.label, one.operator, one.entity)
            yield "known", *values, str(row.expires or ""), *(named.get(one, "") for one in subjects)


def _all(connection: sa.Connection, table: sa.Table, scope: int) -> Iterator[Any]:
    last = ""
    asked = sa.select(table).where(table.c.scope == scope).order_by(table.c.digest).limit(AT_ONCE)
    while rows := connection.execute(asked.where(table.c.digest > last)).all():
        yield from rows
        last = rows[-1].digest


def _linked(
    connection: sa.Connection, table: sa.Table, links: sa.Table, scope: int, now: int
) -> Iterator[tuple[Any, list[str]]]:
    """The rows that have not expired, with the digests of their subjects."""
    alive = (row for row in _all(connection, table, scope) if row.expires is None or row.expires > now)
    for rows in in_batches(alive, AT_ONCE):
        asked = sa.select(links).where(links.c.row.in_([row.digest for row in rows])).order_by(links.c.subject)
        subjects: dict[str, list[str]] = {}
        for link in connection.execute(asked):
            subjects.setdefault(link.row, []).append(link.subject)
        yield from ((row, subjects.get(row.digest, [])) for row in rows)


# Import


def read(
    connection: sa.Connection, sealer: Sealer, path: Path, secret: Secret, rename: Mapping[str, str], now: int
) -> tuple[Merged, bytes]:
    """Bring the file's rows in, inside a transaction that writes; and the other vault's key for keyed operators.

    Raises:
        WrongKey: the secret does not open the file.
        UsageError: a scope that is to get another name is not in the file. The transaction must then be undone.
        VaultError: the file is no export, was changed, or is cut off. Likewise.
    """
    empty = connection.execute(sa.select(store.scopes.c.id).limit(1)).scalar() is None
    incoming = _Incoming(connection, sealer, rename, now)
    with path.open("rb") as data:
        for row in _opened(data, check_secret(secret), str(path)):
            incoming.take(row)
    incoming.finish()
    if missing := [name for name in rename if name not in incoming.names]:
        raise UsageError(f"{path} has no scope {missing[0]!r} to rename; it has: {scope_names(incoming.names)}")
    return incoming.merged(adopted=empty), incoming.operator


class _Incoming:
    """Takes rows in their order: the operator's key first, then scope by scope."""

    def __init__(self, connection: sa.Connection, sealer: Sealer, rename: Mapping[str, str], now: int) -> None:
        self.operator = b""
        self._connection = connection
        self._sealer = sealer
        self._rename = rename
        self._now = now
        self.names: list[str] = []
        self._counts = {"known": 0, "assigned": 0, "same": 0, "conflicts": 0, "ambiguous": 0}
        self._book: Book | None = None
        self._tokens: set[str] = set()

    def take(self, row: Row) -> None:
        """One row of the file."""
        what, *values = row
        if what == "operator":
            self.operator = bytes.fromhex(values[0])
        elif what == "scope":
            self.finish()
            self.names.append(values[0])
            name = self._rename.get(values[0], values[0])
            self._book = Book(self._connection, self._sealer, name, None, None, self._now)
        elif self._book is None:
            raise VaultError("a row stands before its scope")
        elif what == "counter":
            self._book.number_at_least(values[0], int(values[1]))
        elif what == "assigned":
            self._assigned(self._book, values[:3], values[3], values[4:])
        elif what == "known":
            self._known(self._book, values[:5], values[5], values[6:])

    def _assigned(self, book: Book, values: list[str], expires: str, subjects: list[str]) -> None:
        if self._late(book, expires):
            return
        before = book.added.assigned
        for subject in subjects:
            book.about(subject)
            if not book.enter(*values):
                self._counts["conflicts"] += 1
                return
        self._counts["same"] += book.added.assigned == before

    def _known(self, book: Book, values: list[str], expires: str, subjects: list[str]) -> None:
        if self._late(book, expires):
            return
        for subject in subjects:
            book.about(subject)
            book.remember(*values)
        self._tokens.add(token_digest(self._sealer, book.place.digest, values[0]))

    def _late(self, book: Book, expires: str) -> bool:
        book.until(int(expires) if expires else None)
        return bool(expires) and int(expires) <= self._now

    def finish(self) -> None:
        """Write the scope that was taken last, and count its replacements that stand for several referents."""
        if self._book is None:
            return
        self._book.flush()
        added, digest = self._book.added, self._book.place.digest
        self._counts["known"] += added.known
        self._counts["assigned"] += added.assigned
        self._counts["same"] += added.same
        table = store.known
        for some in in_batches(self._tokens, AT_ONCE):
            meant: dict[str, set[str]] = {}
            for row in self._connection.execute(sa.select(table).where(table.c.token.in_(some))):
                one = open_known(self._sealer, digest, row.digest, row.token, row.sealed)
                meant.setdefault(one.replacement, set()).add(one.entity)
            self._counts["ambiguous"] += sum(len(entities) > 1 for entities in meant.values())
        self._book, self._tokens = None, set()

    def merged(self, *, adopted: bool) -> Merged:
        """What was taken in."""
        return Merged(scopes=len(self.names), operator_key=adopted and len(self.operator) == 32, **self._counts)


def _opened(data: BufferedReader, secret: Secret, where: str) -> Iterator[Row]:
    if data.read(len(_MAGIC)) != _MAGIC:
        raise VaultError(f"{where} is not a vault's export, or a newer version made it")
    line = data.readline(1 << 12)
    try:
        stored = json.loads(line)
        check, how = str(stored["check"]), json.dumps(stored["derivation"]).encode()
    except (ValueError, KeyError, TypeError):
        raise VaultError(f"{where}: its first lines were changed or are damaged") from None
    key = key_encryption_key(secret, derivation({"derivation": how}, where), where)
    if not hmac.compare_digest(check.encode(), _check(key).encode()):
        raise WrongKey(f"the secret does not open {where}, or the secret is damaged")
    cipher, head = Cipher(expanded(key, "export")), (_MAGIC + line).hex()
    number, last = 0, False
    while not last:
        size = int.from_bytes(data.read(4))
        sealed = data.read(size) if size <= _LONGEST else b""
        last = not data.peek(1)
        plain = unseal(cipher, sealed, (head, str(number), "last" if last else "more"))
        if plain is None:
            raise VaultError(f"{where}: piece {number + 1} is missing, cut off or was changed")
        at = 0
        while at < len(plain):
            end = at + 4 + int.from_bytes(plain[at : at + 4])
            yield unpack(plain[at + 4 : end])
            at = end
        number += 1


def _check(key: bytes) -> str:
    return expanded(key, "check").hex()[:32]

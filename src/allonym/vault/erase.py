"""Deleting for good: rows, their traces in the file, and the proof that nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import VaultError
from allonym.vault import store
from allonym.vault.book import in_batches, remove_rows
from allonym.vault.keys import Sealer
from allonym.vault.records import Purged
from allonym.vault.store import Store

_PIECE = 1 << 22
_SHORT = 24
"""Bytes of a ciphertext that are looked for: its nonce and the beginning."""

_AT_ONCE = 500


@dataclass(slots=True)
class Traces:
    """What was deleted, and by what its remains would be known: digests and beginnings of ciphertexts."""

    known: int = 0
    assigned: int = 0
    subjects: int = 0
    scopes: int = 0
    marks: set[bytes] = field(default_factory=set, repr=False)

    def counts(self) -> dict[str, int]:
        """How many rows of which kind."""
        return {"known": self.known, "assigned": self.assigned, "subjects": self.subjects, "scopes": self.scopes}

    def add(self, *values: str | bytes) -> None:
        """More to look for."""
        self.marks.update(v.encode() if isinstance(v, str) else bytes(v[:_SHORT]) for v in values)

    def checked(self, place: Store) -> Purged:
        """Look for what was deleted.

        Raises:
            VaultError: something of it is still there.
        """
        left = _in_files(place, self.marks) if place.file else _in_tables(place, self.marks)
        if left:
            raise VaultError(f"{place.shown}: {left} traces of what was purged are left; purge when nobody uses it")
        return Purged(self.known, self.assigned, self.subjects, self.scopes, "files" if place.file else "tables")


def erased(
    connection: sa.Connection, sealer: Sealer, scope: str | None, subject: str | None, expired: bool, now: int
) -> Traces:
    """Delete inside a transaction: what has expired, one subject's rows, or a whole scope.

    Args:
        scope: digest of a scope; None: all scopes.
    """
    traces = Traces()
    asked = sa.select(store.scopes).order_by(store.scopes.c.id).with_for_update()
    if scope is not None:
        asked = asked.where(store.scopes.c.digest == scope)
    for place in connection.execute(asked).all():
        if expired:
            _rows(connection, traces, _past(connection, place.id, now))
            _forget_subjects(connection, traces, place.id)
        elif subject is not None:
            _subject(connection, traces, place.id, sealer.digest("subject", place.digest, subject))
        else:
            _scope(connection, traces, place)
        table = store.scopes
        connection.execute(table.update().where(table.c.id == place.id).values(changes=table.c.changes + 1))
    return traces


_TABLES = ((store.known, store.known_subjects), (store.assigned, store.assigned_subjects))
_Rows = Sequence[tuple[sa.Table, sa.Table, Sequence[str]]]


def _past(connection: sa.Connection, scope: int, now: int) -> _Rows:
    return [
        (
            table,
            links,
            connection.execute(sa.select(table.c.digest).where(table.c.scope == scope, table.c.expires <= now))
            .scalars()
            .all(),
        )
        for table, links in _TABLES
    ]


def _rows(connection: sa.Connection, traces: Traces, rows: _Rows) -> None:
    for table, links, digests in rows:
        column = "token" if table is store.known else "value"
        for some in in_batches(digests, _AT_ONCE):
            found = connection.execute(sa.select(table).where(table.c.digest.in_(some))).all()
            if table is store.known:
                beside = sa.select(store.digests.c.sealed).where(store.digests.c.row.in_(some))
                traces.add(*connection.execute(beside).scalars())
            remove_rows(connection, table, links, some)
            looked_up = {getattr(row, column) for row in found}
            stay = sa.select(table.c[column]).where(table.c[column].in_(looked_up))
            kept = set(connection.execute(stay).scalars())
            traces.add(*(looked_up - kept))
            for row in found:
                traces.add(row.digest, row.sealed)
        if table is store.known:
            traces.known += len(digests)
        else:
            traces.assigned += len(digests)


def _subject(connection: sa.Connection, traces: Traces, scope: int, subject: str) -> None:
    """A subject's links, and the rows that were its alone."""
    table = store.subjects
    row = connection.execute(sa.select(table).where(table.c.digest == subject, table.c.scope == scope)).one_or_none()
    if row is None:
        return
    alone = []
    for rows, links in _TABLES:
        others = links.alias()
        mine = sa.select(links.c.row).where(
            links.c.subject == subject,
            ~sa.exists().where(others.c.row == links.c.row, others.c.subject != subject),
        )
        alone.append((rows, links, connection.execute(mine).scalars().all()))
    for _, links in _TABLES:
        connection.execute(links.delete().where(links.c.subject == subject))
    _rows(connection, traces, alone)
    connection.execute(table.delete().where(table.c.digest == subject))
    traces.add(row.digest, row.sealed)
    traces.subjects += 1


def _forget_subjects(connection: sa.Connection, traces: Traces, scope: int) -> None:
    """The names of subjects that nothing is left of."""
    table = store.subjects
    unlinked = [~sa.exists().where(links.c.subject == table.c.digest) for _, links in _TABLES]
    for row in connection.execute(sa.select(table).where(table.c.scope == scope, *unlinked)).all():
        connection.execute(table.delete().where(table.c.digest == row.digest))
        traces.add(row.digest, row.sealed)
        traces.subjects += 1


def _scope(connection: sa.Connection, traces: Traces, place: sa.Row[tuple[object, ...]]) -> None:
    """Everything of a scope, its numbers and name included."""
    rows = [
        (table, links, connection.execute(sa.select(table.c.digest).where(table.c.scope == place.id)).scalars().all())
        for table, links in _TABLES
    ]
    _rows(connection, traces, rows)
    for table in (store.subjects, store.counters):
        gone = connection.execute(sa.select(table).where(table.c.scope == place.id)).all()
        for row in gone:
            traces.add(row.digest, row.sealed)
        connection.execute(table.delete().where(table.c.scope == place.id))
        if table is store.subjects:
            traces.subjects += len(gone)
    connection.execute(store.scopes.delete().where(store.scopes.c.id == place.id))
    traces.add(place.digest, place.sealed)
    traces.scopes += 1


# Traces in the files


def checkpoint(place: Store) -> None:
    """Empty SQLite's write-ahead log into the file, so that it holds no old copies of pages.

    Raises:
        VaultLocked: other processes were reading for longer than we wait.
    """
    if not place.file:
        return

    def done() -> bool:
        with place.alone() as connection:
            busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            return not busy

    place.patiently(done, "its journal could not be emptied")


def compact(place: Store) -> None:
    """Write the database anew without what was deleted.

    Raises:
        VaultLocked: other processes used it for longer than we wait.
    """
    if place.file:
        place.vacuum("VACUUM")
        checkpoint(place)
    elif place.url.get_backend_name() == "postgresql":
        links = (links for _, links in _TABLES)
        for table in (store.known, store.digests, store.assigned, *links, store.subjects, store.scopes):
            place.vacuum(f"VACUUM FULL {table.name}")


def _in_tables(place: Store, marks: Iterable[bytes]) -> int:
    digests = [mark.decode() for mark in marks if len(mark) == 32]
    left = 0
    with place.reading() as connection:
        for some in in_batches(digests, _AT_ONCE):
            for table in (store.known, store.assigned, store.subjects, store.counters, store.scopes):
                asked = sa.select(sa.func.count()).select_from(table).where(table.c.digest.in_(some))
                left += connection.execute(asked).scalar_one()
            beside = sa.select(sa.func.count()).select_from(store.digests).where(store.digests.c.row.in_(some))
            left += connection.execute(beside).scalar_one()
            for _, links in _TABLES:
                asked = sa.select(sa.func.count()).select_from(links)
                asked = asked.where(sa.or_(links.c.row.in_(some), links.c.subject.in_(some)))
                left += connection.execute(asked).scalar_one()
    return left


def _in_files(place: Store, marks: set[bytes]) -> int:
    assert place.file is not None
    files = (place.file, *(Path(f"{place.file}{suffix}") for suffix in ("-wal", "-journal")))
    return sum(traces_in(file, marks) for file in files if file.exists())


def traces_in(file: Path, marks: Iterable[bytes]) -> int:
    """How many places of a file hold one of the marks, each of at least 8 bytes.

    All marks are looked for in one pass: the 8 bytes at every place against the sorted beginnings of the marks.
    """
    import numpy as np

    by_head: dict[bytes, list[bytes]] = {}
    for mark in marks:
        by_head.setdefault(mark[:8], []).append(mark)
    if not by_head:
        return 0
    longest = max(len(mark) for some in by_head.values() for mark in some)
    heads = np.sort(np.frombuffer(b"".join(by_head), dtype="<u8"))
    found = 0
    with file.open("rb") as data:
        for at in range(0, file.stat().st_size, _PIECE):
            data.seek(at)
            text = data.read(_PIECE + longest - 1)
            for start, head in _candidates(np.frombuffer(text, dtype=np.uint8), heads):
                found += start < _PIECE and any(text.startswith(mark, start) for mark in by_head[head])
    return found


def _candidates(data: Any, heads: Any) -> Iterator[tuple[int, bytes]]:
    """Places where one of the sorted 8-byte heads stands, with that head."""
    import numpy as np

    for offset in range(8):
        usable = (len(data) - offset) // 8 * 8
        if usable <= 0:
            continue
        words = data[offset : offset + usable].view("<u8")
        at = np.minimum(np.searchsorted(heads, words), len(heads) - 1)
        for i in np.flatnonzero(heads[at] == words):
            yield offset + int(i) * 8, words[i].tobytes()

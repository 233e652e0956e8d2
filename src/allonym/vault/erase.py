"""Deleting for good: rows, their traces in the file, and the proof that nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import VaultError
from allonym.vault import store
from allonym.vault.book import delete_rows
from allonym.vault.keys import Sealer
from allonym.vault.records import Purged
from allonym.vault.store import AT_ONCE, Store, make_batches

_PIECE = 1 << 22
_SHORT = 24
"""Bytes of a ciphertext that are looked for: its nonce and the beginning."""

_LINKED = ((store.originals, store.known_subjects), (store.assigned, store.assigned_subjects))
_Rows = Sequence[tuple[sa.Table, sa.Table, Sequence[str]]]
"""Tables with the tables of their links to subjects, and digests of rows."""


@dataclass(slots=True)
class Traces:
    """What was deleted, and by what its remains would be known: digests and beginnings of ciphertexts."""

    known: int = 0
    assigned: int = 0
    subjects: int = 0
    scopes: int = 0
    marks: set[bytes] = field(default_factory=set, repr=False)

    def count_deleted_rows(self) -> dict[str, int]:
        """Return how many rows of which kind were deleted."""
        return {"known": self.known, "assigned": self.assigned, "subjects": self.subjects, "scopes": self.scopes}

    def add_values(self, *values: str | bytes) -> None:
        """Add more to look for."""
        self.marks.update(v.encode() if isinstance(v, str) else bytes(v[:_SHORT]) for v in values)

    def check_for_traces(self, place: Store) -> Purged:
        """Look for what was deleted.

        Raises:
            VaultError: something of it is still there.
        """
        count = _count_in_files(place, self.marks) if place.file else _count_in_tables(place, self.marks)
        if count:
            raise VaultError(f"{place.shown}: {count} traces of what was purged are left; purge when nobody uses it")
        return Purged(**self.count_deleted_rows(), checked="files" if place.file else "tables")


def erase_rows(
    connection: sa.Connection, sealer: Sealer, scope: str | None, subject: str | None, expired: bool, now: int
) -> Traces:
    """Delete what has expired, one subject's rows, or a whole scope, inside a transaction.

    Args:
        connection: of the transaction.
        sealer: of the vault.
        scope: digest of a scope; None: all scopes.
        subject: name of a subject; None: all that the scope holds.
        expired: only what has expired.
        now: in seconds since 1970.
    """
    traces = Traces()
    table = store.scopes
    query = sa.select(table).order_by(table.c.id).with_for_update()
    if scope is not None:
        query = query.where(table.c.digest == scope)
    for place in connection.execute(query).all():
        if expired:
            _delete_traced_rows(
                connection, traces, [_select_rows(connection, *pair, place.id, now) for pair in _LINKED]
            )
            _erase_idle_subjects(connection, traces, place.id)
        elif subject is not None:
            _erase_subject(connection, traces, place.id, sealer.digest("subject", place.digest, subject))
        else:
            _erase_scope(connection, traces, place)
        connection.execute(table.update().where(table.c.id == place.id).values(changes=table.c.changes + 1))
    return traces


def _select_rows(
    connection: sa.Connection, table: sa.Table, links: sa.Table, scope: int, now: int | None = None
) -> tuple[sa.Table, sa.Table, Sequence[str]]:
    """A scope's rows; with a time, those that have expired by then."""
    query = sa.select(table.c.digest).where(table.c.scope == scope)
    if now is not None:
        query = query.where(table.c.expires <= now)
    return table, links, connection.execute(query).scalars().all()


def _delete_traced_rows(connection: sa.Connection, traces: Traces, rows: _Rows) -> None:
    for table, links, digests in rows:
        column = "token" if table is store.originals else "value"
        for batch in make_batches(digests, AT_ONCE):
            deleted = connection.execute(sa.select(table).where(table.c.digest.in_(batch))).all()
            if table is store.originals:
                beside = sa.select(store.digests.c.sealed).where(store.digests.c.row.in_(batch))
                traces.add_values(*connection.execute(beside).scalars())
            delete_rows(connection, table, links, batch)
            looked_up = {getattr(row, column) for row in deleted}
            still_used = sa.select(table.c[column]).where(table.c[column].in_(looked_up))
            traces.add_values(*(looked_up - set(connection.execute(still_used).scalars())))
            for row in deleted:
                traces.add_values(row.digest, row.sealed)
        if table is store.originals:
            traces.known += len(digests)
        else:
            traces.assigned += len(digests)


def _erase_subject(connection: sa.Connection, traces: Traces, scope: int, subject: str) -> None:
    """Delete a subject's links, and the rows that were its alone."""
    table = store.subjects
    row = connection.execute(sa.select(table).where(table.c.digest == subject, table.c.scope == scope)).one_or_none()
    if row is None:
        return
    rows = []
    for linked, links in _LINKED:
        others = links.alias()
        alone = sa.select(links.c.row).where(
            links.c.subject == subject,
            ~sa.exists().where(others.c.row == links.c.row, others.c.subject != subject),
        )
        rows.append((linked, links, connection.execute(alone).scalars().all()))
    for _, links in _LINKED:
        connection.execute(links.delete().where(links.c.subject == subject))
    _delete_traced_rows(connection, traces, rows)
    _erase_names(connection, traces, [row])


def _erase_idle_subjects(connection: sa.Connection, traces: Traces, scope: int) -> None:
    """Delete the names of subjects that nothing is left of."""
    table = store.subjects
    unlinked = [~sa.exists().where(links.c.subject == table.c.digest) for _, links in _LINKED]
    _erase_names(
        connection, traces, connection.execute(sa.select(table).where(table.c.scope == scope, *unlinked)).all()
    )


def _erase_names(connection: sa.Connection, traces: Traces, subjects: Sequence[sa.Row[Any]]) -> None:
    for row in subjects:
        connection.execute(store.subjects.delete().where(store.subjects.c.digest == row.digest))
        traces.add_values(row.digest, row.sealed)
        traces.subjects += 1


def _erase_scope(connection: sa.Connection, traces: Traces, place: sa.Row[Any]) -> None:
    """Delete everything of a scope, its numbers and name included."""
    _delete_traced_rows(connection, traces, [_select_rows(connection, *pair, place.id) for pair in _LINKED])
    _erase_names(
        connection,
        traces,
        connection.execute(sa.select(store.subjects).where(store.subjects.c.scope == place.id)).all(),
    )
    counters = store.counters
    for row in connection.execute(sa.select(counters).where(counters.c.scope == place.id)).all():
        traces.add_values(row.digest, row.sealed)
    connection.execute(counters.delete().where(counters.c.scope == place.id))
    connection.execute(store.scopes.delete().where(store.scopes.c.id == place.id))
    traces.add_values(place.digest, place.sealed)
    traces.scopes += 1


# Traces in the files


def empty_journal(place: Store) -> None:
    """Empty SQLite's write-ahead log into the file, so that it holds no old copies of pages.

    Raises:
        VaultLocked: other processes were reading for longer than we wait.
    """
    if not place.file:
        return

    def is_empty() -> bool:
        with place.connect_alone() as connection:
            busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            return not busy

    place.retry_until_done(is_empty, "its journal could not be emptied")


def compact_database(place: Store) -> None:
    """Write the database anew without what was deleted.

    Raises:
        VaultLocked: other processes used it for longer than we wait.
    """
    if place.file:
        place.run_outside_transaction("VACUUM")
        empty_journal(place)
    elif place.url.get_backend_name() == "postgresql":
        links = (links for _, links in _LINKED)
        for table in (store.originals, store.digests, store.assigned, *links, store.subjects, store.scopes):
            place.run_outside_transaction(f"VACUUM FULL {table.name}")


def _count_in_tables(place: Store, marks: Iterable[bytes]) -> int:
    digests = [mark.decode() for mark in marks if len(mark) == 32]
    tables = (store.originals, store.assigned, store.subjects, store.counters, store.scopes)
    columns = [table.c.digest for table in tables] + [store.digests.c.row]
    count = 0
    with place.open_read_transaction() as connection:
        for batch in make_batches(digests, AT_ONCE):
            conditions: list[sa.ColumnElement[bool]] = [column.in_(batch) for column in columns]
            conditions += [sa.or_(links.c.row.in_(batch), links.c.subject.in_(batch)) for _, links in _LINKED]
            for condition in conditions:
                count += connection.execute(sa.select(sa.func.count()).where(condition)).scalar_one()
    return count


def _count_in_files(place: Store, marks: set[bytes]) -> int:
    assert place.file is not None
    files = (place.file, *(Path(f"{place.file}{suffix}") for suffix in ("-wal", "-journal")))
    return sum(count_marks(file, marks) for file in files if file.exists())


def count_marks(file: Path, marks: Iterable[bytes]) -> int:
    """Return how many places of a file hold one of the marks, each of at least 8 bytes.

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
    count = 0
    with file.open("rb") as stream:
        for offset in range(0, file.stat().st_size, _PIECE):
            stream.seek(offset)
            data = stream.read(_PIECE + longest - 1)
            for start, head in _find_heads(np.frombuffer(data, dtype=np.uint8), heads):
                count += start < _PIECE and any(data.startswith(mark, start) for mark in by_head[head])
    return count


def _find_heads(data: Any, heads: Any) -> Iterator[tuple[int, bytes]]:
    """Places where one of the sorted 8-byte heads stands, with that head."""
    import numpy as np

    for offset in range(8):
        usable = (len(data) - offset) // 8 * 8
        if usable <= 0:
            continue
        words = data[offset : offset + usable].view("<u8")
        nearest = np.minimum(np.searchsorted(heads, words), len(heads) - 1)
        for i in np.flatnonzero(heads[nearest] == words):
            yield offset + int(i) * 8, words[i].tobytes()

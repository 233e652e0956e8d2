"""Deleting for good: rows, their traces in the file, and the proof that nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import VaultError
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.records import Purged
from allonym.vault.store import LINKED, Linked, Store, delete_rows, make_batches

_PIECE = 1 << 22
_SHORT = 24
"""Bytes of a ciphertext that are looked for: its nonce and the beginning."""

_KINDS = ("known", "assigned", "subjects", "scopes", "plans", "people")


@dataclass(slots=True)
class Traces:
    """Rows deleted by kind, and what their remains would be known by: digests and beginnings of ciphertexts."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_KINDS, 0)))
    marks: set[bytes] = field(default_factory=set, repr=False)

    def add_marks(self, *values: str | bytes) -> None:
        """Add more to look for."""
        self.marks.update(v.encode() if isinstance(v, str) else bytes(v[:_SHORT]) for v in values)

    def verify_nothing_left(self, database: Store) -> Purged:
        """Look for what was deleted.

        Raises:
            VaultError: something of it is still there.
        """
        if database.file:
            files = (Path(f"{database.file}{suffix}") for suffix in ("", "-wal", "-journal"))
            count = sum(count_marks_in_file(file, self.marks) for file in files if file.exists())
        else:
            count = _count_marks_in_tables(database, self.marks)
        if count:
            raise VaultError(f"{database.shown}: {count} traces of what was purged are left; purge when nobody uses it")
        return Purged(**self.counts, checked="files" if database.file else "tables")


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
    for scope_row in connection.execute(query).all():
        if expired:
            _erase_expired(connection, traces, scope_row.id, now)
        elif subject is not None:
            erase_subject(connection, traces, scope_row.id, sealer.digest("subject", scope_row.digest, subject))
        else:
            _erase_scope(connection, traces, scope_row)
        connection.execute(table.update().where(table.c.id == scope_row.id).values(changes=table.c.changes + 1))
    return traces


def erase_rows_where(
    connection: sa.Connection, traces: Traces, linked: Linked, *conditions: sa.ColumnElement[bool]
) -> None:
    """Delete the rows that meet the conditions, with their links and pieces."""
    table, lookup = linked.table, linked.table.c[linked.lookup]
    digests = connection.execute(sa.select(table.c.digest).where(*conditions)).scalars().all()
    for batch in make_batches(digests):
        deleted = connection.execute(sa.select(table).where(table.c.digest.in_(batch))).all()
        found_by = set()
        if linked.found_by is not None:
            column, row_column = linked.found_by.c
            found_by = set(connection.execute(sa.select(column).where(row_column.in_(batch))).scalars())
        delete_rows(connection, linked, batch)
        if linked.found_by is not None:
            _mark_unused(connection, traces, column, found_by)
        _mark_unused(connection, traces, lookup, {getattr(row, linked.lookup) for row in deleted})
        for row in deleted:
            traces.add_marks(row.digest, row.sealed)
    traces.counts[linked.kind] += len(digests)


def _mark_unused(connection: sa.Connection, traces: Traces, column: sa.Column[Any], values: set[str]) -> None:
    """Note the values by which rows were looked up, but for those that other rows still have."""
    for batch in make_batches(values):
        still_used = connection.execute(sa.select(column).where(column.in_(batch))).scalars()
        traces.add_marks(*set(batch).difference(still_used))


def _erase_subject_names(connection: sa.Connection, traces: Traces, *conditions: sa.ColumnElement[bool]) -> None:
    """Delete the names of the subjects that meet the conditions."""
    table = store.subjects
    for row in connection.execute(sa.select(table).where(*conditions)).all():
        connection.execute(table.delete().where(table.c.digest == row.digest))
        traces.add_marks(row.digest, row.sealed)
        traces.counts["subjects"] += 1


def _erase_expired(connection: sa.Connection, traces: Traces, scope: int, now: int) -> None:
    """Delete what has expired in a scope, and the names of subjects that nothing is left of."""
    for linked in LINKED:
        table = linked.table
        erase_rows_where(connection, traces, linked, table.c.scope == scope, table.c.expires <= now)
    table = store.subjects
    unlinked = [~sa.exists().where(linked.links.c.subject == table.c.digest) for linked in LINKED]
    _erase_subject_names(connection, traces, table.c.scope == scope, *unlinked)


def erase_subject(connection: sa.Connection, traces: Traces, scope: int, subject: str) -> None:
    """Delete a subject's links, and the rows that were its alone."""
    is_subject = (store.subjects.c.digest == subject, store.subjects.c.scope == scope)
    if connection.execute(sa.select(store.subjects.c.digest).where(*is_subject)).scalar() is None:
        return
    for linked in LINKED:
        links, others = linked.links, linked.links.alias()
        has_others = sa.exists().where(others.c.row == links.c.row, others.c.subject != subject)
        alone = sa.select(links.c.row).where(links.c.subject == subject, ~has_others)
        erase_rows_where(connection, traces, linked, linked.table.c.digest.in_(alone))
        connection.execute(links.delete().where(links.c.subject == subject))
    _erase_subject_names(connection, traces, *is_subject)


def _erase_scope(connection: sa.Connection, traces: Traces, scope_row: sa.Row[Any]) -> None:
    """Delete everything of a scope, its numbers and name included."""
    for linked in LINKED:
        erase_rows_where(connection, traces, linked, linked.table.c.scope == scope_row.id)
    _erase_subject_names(connection, traces, store.subjects.c.scope == scope_row.id)
    counters = store.counters
    for row in connection.execute(sa.select(counters).where(counters.c.scope == scope_row.id)).all():
        traces.add_marks(row.digest, row.sealed)
    connection.execute(counters.delete().where(counters.c.scope == scope_row.id))
    connection.execute(store.scopes.delete().where(store.scopes.c.id == scope_row.id))
    traces.add_marks(scope_row.digest, scope_row.sealed)
    traces.counts["scopes"] += 1


# Traces in the files


def empty_write_ahead_log(database: Store) -> None:
    """Empty SQLite's write-ahead log into the file, so that it holds no old copies of pages.

    Raises:
        VaultLocked: other processes were reading for longer than we wait.
    """
    if not database.file:
        return

    def is_empty() -> bool:
        with database.connect_outside_transaction() as connection:
            busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            return not busy

    database.retry_until_done(is_empty, "its journal could not be emptied")


def compact_database(database: Store) -> None:
    """Write the database anew without what was deleted.

    Raises:
        VaultLocked: other processes used it for longer than we wait.
    """
    if database.file:
        database.run_outside_transaction("VACUUM")
        empty_write_ahead_log(database)
    elif database.url.get_backend_name() == "postgresql":
        tables = [linked.table for linked in LINKED] + [linked.links for linked in LINKED]
        tables += [linked.found_by for linked in LINKED if linked.found_by is not None]
        for table in (*tables, store.subjects, store.scopes):
            database.run_outside_transaction(f"VACUUM FULL {table.name}")


def _count_marks_in_tables(database: Store, marks: Iterable[bytes]) -> int:
    digests = [mark.decode() for mark in marks if len(mark) == 32]
    tables = (*(linked.table for linked in LINKED), store.subjects, store.counters, store.scopes)
    columns = [*(table.c.digest for table in tables), store.pieces.c.piece, store.people_names.c.name]
    columns.append(store.plans.c.result)
    count = 0
    with database.open_read_transaction() as connection:
        for batch in make_batches(digests):
            conditions: list[sa.ColumnElement[bool]] = [column.in_(batch) for column in columns]
            links = (linked.links.c for linked in LINKED)
            conditions += [sa.or_(link.row.in_(batch), link.subject.in_(batch)) for link in links]
            for condition in conditions:
                count += connection.execute(sa.select(sa.func.count()).where(condition)).scalar_one()
    return count


def count_marks_in_file(file: Path, marks: Iterable[bytes]) -> int:
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
            for start, head in _find_mark_heads(np.frombuffer(data, dtype=np.uint8), heads):
                count += start < _PIECE and any(data.startswith(mark, start) for mark in by_head[head])
    return count


def _find_mark_heads(data: Any, heads: Any) -> Iterator[tuple[int, bytes]]:
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

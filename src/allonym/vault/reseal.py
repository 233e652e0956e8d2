"""A new data key: every value encrypted once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa

from allonym.vault import store
from allonym.vault.book import AT_ONCE
from allonym.vault.keys import Sealer

About = Callable[[Any, str], tuple[str, ...]]


def reseal(connection: sa.Connection, old: Sealer, new: Sealer) -> int:
    """Encrypt all values under the new data key; digests do not change. Returns how many values there were.

    Raises:
        VaultError: a value was changed by somebody without the key.
    """
    scopes = {row.id: row.digest for row in connection.execute(sa.select(store.scopes.c.id, store.scopes.c.digest))}
    count = 0
    for table, about in _SEALED:
        last = ""
        while rows := connection.execute(
            sa.select(table).where(table.c.digest > last).order_by(table.c.digest).limit(AT_ONCE)
        ).all():
            _write(connection, table, _again(rows, scopes, about, old, new))
            last = rows[-1].digest
            count += len(rows)
    return count


def _again(rows: Iterable[Any], scopes: dict[int, str], about: About, old: Sealer, new: Sealer) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        bound = about(row, scopes.get(getattr(row, "scope", 0), ""))
        out.append({"key": row.digest, "new": new.seal(old.unseal(row.sealed, *bound), *bound)})
    return out


def _write(connection: sa.Connection, table: sa.Table, values: list[dict[str, Any]]) -> None:
    change = table.update().where(table.c.digest == sa.bindparam("key")).values(sealed=sa.bindparam("new"))
    connection.execute(change, values)


_SEALED: tuple[tuple[sa.Table, About], ...] = (
    (store.scopes, lambda row, _: ("scope", row.digest)),
    (store.subjects, lambda row, scope: ("subject", scope, row.digest)),
    (store.counters, lambda row, scope: ("counter", scope, row.digest)),
    (store.assigned, lambda row, scope: ("assigned", scope, row.digest, row.value)),
    (store.known, lambda row, scope: ("known", scope, row.digest, row.token)),
)
"""The tables with sealed values, and what each row's value is bound to."""

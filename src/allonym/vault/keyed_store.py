"""A vault's database with the keys that it was opened with: transactions that hold as long as these keys do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from allonym.errors import VaultError, VaultLocked, WrongKey
from allonym.vault import store
from allonym.vault.keys import Keys, Sealer
from allonym.vault.store import Store


class KeyedStore:
    """A database and its keys, if it was opened with the secret.

    Args:
        place: the database.
        keys: of the vault; None: it stays locked.
    """

    def __init__(self, place: Store, keys: Keys | None) -> None:
        self._store = place
        self._set_keys(keys)

    def _set_keys(self, keys: Keys | None) -> None:
        self._keys = keys
        self._sealer = Sealer(keys, self._store.shown) if keys else None

    def _require_keys(self) -> Keys:
        if self._keys is None:
            raise VaultLocked(f"{self._store.shown} was opened without its secret; only info() works")
        return self._keys

    def _require_sealer(self) -> Sealer:
        self._require_keys()
        assert self._sealer is not None
        return self._sealer

    @contextmanager
    def _open_read_transaction(self, *, once: bool = False) -> Iterator[tuple[sa.Connection, Sealer]]:
        """Open a transaction that only reads. ``once``: for a single statement, which needs none."""
        sealer = self._require_sealer()
        with self._store.report_damaged_values(), self._store.open_read_transaction(once=once) as connection:
            try:
                yield connection, sealer
            except VaultError:
                self._check_key_generation(connection)  # then it is not the row that is wrong
                raise

    @contextmanager
    def _open_write_transaction(self, *, alone: bool = False) -> Iterator[tuple[sa.Connection, Sealer]]:
        """Open a transaction that writes. ``alone``: nobody else writes meanwhile, in any scope."""
        sealer = self._require_sealer()
        with self._store.open_write_transaction() as connection:
            self._check_key_generation(connection, "alone" if alone else "shared")
            yield connection, sealer

    def _check_key_generation(self, connection: sa.Connection, lock: str = "") -> None:
        query = sa.select(store.meta.c.value).where(store.meta.c.name == "generation")
        if lock:
            query = query.with_for_update(read=lock == "shared")
        if connection.execute(query).scalar() != str(self._require_keys().generation).encode():
            raise WrongKey(f"{self._store.shown}: its keys were changed since it was opened; open it again")

"""The audit log: who did what to a vault, without any content.

Each line is encrypted, and carries a MAC over the line before it and itself. The last MAC stands a second time, bound
to the number of lines, so that changed, missing, moved and cut-off lines are all seen. What cannot be seen from inside
is a whole vault that was put back to an older state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import sqlalchemy as sa

from allonym.errors import VaultError
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.records import AuditEntry

_HEAD = sa.select(store.meta.c.value).where(store.meta.c.name == "audit")
_MAC = 32


def append_entry(
    connection: sa.Connection, sealer: Sealer, action: str, scope: str, actor: str, counts: Mapping[str, int]
) -> None:
    """Add a line, inside a transaction that writes.

    Args:
        scope: the digest of a scope, or empty for the whole vault.

    Raises:
        VaultError: the log's end was changed.
    """
    head = connection.execute(_HEAD.with_for_update()).scalar()
    number, last = _check_log_head(sealer, head)
    number += 1
    values = (str(int(time.time())), action, scope, actor, json.dumps(dict(counts)))
    sealed = sealer.seal_entry(values, number)
    mac = sealer.compute_log_mac("line", number, last, sealed)
    connection.execute(store.audit.insert().values(number=number, sealed=sealed, mac=mac))
    new = number.to_bytes(8) + mac + sealer.compute_log_mac("head", number, mac)
    connection.execute(store.meta.update().where(store.meta.c.name == "audit").values(value=new))


def read_checked_entries(connection: sa.Connection, sealer: Sealer, names: Mapping[str, str]) -> Iterator[AuditEntry]:
    """Read all lines in order and check each.

    Args:
        names: of scopes, by their digests.

    Raises:
        VaultError: a line was changed, removed, moved or added by somebody without the key.
    """
    number, last = 0, b""
    for row in connection.execute(sa.select(store.audit).order_by(store.audit.c.number)):
        number += 1
        values = sealer.unseal_entry(row.sealed, number) if row.number == number else None
        if values is None or row.mac != sealer.compute_log_mac("line", number, last, row.sealed):
            raise VaultError(f"{sealer.where}: line {number} of the audit log is missing or was changed")
        last = row.mac
        when, action, scope, actor, counts = values
        time_ = datetime.fromtimestamp(int(when), UTC)
        shown = names.get(scope, f"scope {scope[:8]}" if scope else "")
        yield AuditEntry(number, time_, action, shown, actor, json.loads(counts))
    head = connection.execute(_HEAD).scalar()
    if number == 0 or _check_log_head(sealer, head) != (number, last):
        raise VaultError(f"{sealer.where}: the end of the audit log is missing or was changed")


def _check_log_head(sealer: Sealer, head: object) -> tuple[int, bytes]:
    if head == b"":
        return 0, b""
    if isinstance(head, bytes) and len(head) == 8 + 2 * _MAC:
        number, mac = int.from_bytes(head[:8]), head[8 : 8 + _MAC]
        if head[8 + _MAC :] == sealer.compute_log_mac("head", number, mac):
            return number, mac
    raise VaultError(f"{sealer.where}: the end of the audit log was changed")

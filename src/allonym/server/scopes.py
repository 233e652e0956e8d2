"""Who may use which scope of the vault.

Whoever first writes into a scope owns it; the owner or an admin lets further users in. Nobody else writes into it or
restores from it, no admin either, before a grant, which the audit log shows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from allonym.errors import RequestError
from allonym.server import database as db
from allonym.server.access import Caller
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.wire import accounts as wire
from allonym.vault import Vault

PROJECT, REVIEW = "project ", "review "
RESERVED = ("gateway/", REVIEW, PROJECT)
"""How the scopes begin that the gateway, reviews and projects write into; no request writes into one."""

_NOBODY = 0  # owns a scope that was in the vault before the server asked who writes into it
_PURPOSE = "scope"


class Scopes:
    """The owners and users of scopes, in the server's database.

    Args:
        database, sealing: of the server; names of scopes are sealed.
        vault: tells which scopes hold something already.
    """

    def __init__(self, database: Database, sealing: Sealing, vault: Vault) -> None:
        self._database, self._sealing, self._vault = database, sealing, vault

    def check_may_write(self, caller: Caller, scope: str, *, is_dry_run: bool = False) -> None:
        """Check that a caller may write into a scope, who becomes its owner where it is new.

        Args:
            caller: who writes.
            scope: its name.
            is_dry_run: nothing is written, so that a new scope stays without an owner.

        Raises:
            RequestError: it belongs to somebody else, or its name is reserved (403).
        """
        if not scope.startswith(RESERVED):
            row = self._find_row(scope)
            if row is None:
                owner = _NOBODY if self._vault.has_scope(scope) else caller.id
                if owner and is_dry_run:
                    return
                row = self._register(scope, owner)
            if self._is_user(caller, row):
                return
        message = "this scope belongs to somebody else; its owner or an admin can let you in, or choose another name"
        raise RequestError(message, 403, "NotAllowed")

    def check_may_restore(self, caller: Caller, scope: str) -> None:
        """Check that a caller may restore from a scope.

        Raises:
            RequestError: there is none, or it belongs to somebody else (404): the answer does not tell which.
        """
        row = self._find_row(scope)
        if row is None or not self._is_user(caller, row):
            raise RequestError("you have no such scope; its owner or an admin can let you in", 404, "NotFound")

    def register_project(self, caller: Caller, scope: str) -> None:
        """Store the owner of a new project's scope."""
        self._register(scope, caller.id)

    def register_without_owner(self, scope: str) -> None:
        """Store that nobody owns a project's scope, unless it has an owner."""
        if self._find_row(scope) is None:
            self._register(scope, _NOBODY)

    def check_may_open(self, caller: Caller, scope: str, *, is_owner: bool = False) -> None:
        """Check that a caller may open the project of a scope; ``is_owner``: that they own it.

        Raises:
            RequestError: there is none for them (404), or it is another's (403).
        """
        role = self.find_role(caller, scope)
        if role is None:
            raise RequestError("you have no such project; its owner or an admin can let you in", 404, "NotFound")
        if is_owner and role != "owner":
            raise RequestError("only the owner of the project may do this", 403, "NotAllowed")

    def find_role(self, caller: Caller, scope: str) -> str | None:
        """Return what a caller is to a scope: its ``owner``, a ``user``, or None.

        An admin who was let into a scope without an owner stands in for the owner.
        """
        row = self._find_row(scope)
        if row is None or not self._is_user(caller, row):
            return None
        is_substitute = row.owner == _NOBODY and "admin" in caller.permissions
        return "owner" if row.owner == caller.id or is_substitute else "user"

    def name_users(self, scope: str) -> tuple[str | None, list[str]]:
        """Return the names of a scope's owner and of its further users."""
        row = self._find_row(scope)
        if row is None:
            return None, []
        names = {user.id: user.name for user in self._database.fetch_rows(sa.select(db.users.c.id, db.users.c.name))}
        query = sa.select(db.scope_users.c.user).where(db.scope_users.c.scope == row.number)
        members = [grant.user for grant in self._database.fetch_rows(query)]
        return names.get(row.owner), sorted(names[member] for member in members if member in names)

    def remove_scope(self, scope: str) -> None:
        """Forget a scope, whose originals are gone, and all grants of it."""
        row = self._find_row(scope)
        if row is not None:
            self._database.execute_writes(
                sa.delete(db.scope_users).where(db.scope_users.c.scope == row.number),
                sa.delete(db.scopes).where(db.scopes.c.number == row.number),
            )

    def list_scopes(self, caller: Caller) -> list[wire.ScopeOut]:
        """Return the scopes that a caller may use, by name; for admins all scopes, those without an owner too."""
        users = {row.id: row.name for row in self._database.fetch_rows(sa.select(db.users.c.id, db.users.c.name))}
        grants: dict[int, list[int]] = {}
        for row in self._database.fetch_rows(sa.select(db.scope_users)):
            grants.setdefault(row.scope, []).append(row.user)
        is_admin = "admin" in caller.permissions
        scopes: dict[str, wire.ScopeOut] = {}
        for row in self._database.fetch_rows(sa.select(db.scopes)):
            members = grants.get(row.number, [])
            if is_admin or caller.id in (row.owner, *members):
                names = sorted(users[member] for member in members if member in users)
                name = self._sealing.unseal(row.sealed, _PURPOSE)
                scopes[name] = wire.ScopeOut(name=name, owner=users.get(row.owner), users=names)
        if is_admin:
            for scope in self._vault.info().scopes:
                if not scope.name.startswith(RESERVED):
                    scopes.setdefault(scope.name, wire.ScopeOut(name=scope.name, owner=None, users=[]))
        return [scopes[name] for name in sorted(scopes)]

    def grant_scope(self, caller: Caller, scope: str, user_name: str) -> None:
        """Let a user write into a scope, and restore from it where their role may restore.

        Raises:
            RequestError: there is no such scope or user (404), or the caller is neither its owner nor an admin (403).
        """
        number, user_id = self._get_scope_and_user(caller, scope, user_name)
        with self._database.open_write_transaction() as connection:
            db.check_and_lock_active_user(connection, user_id)
            key = {"scope": number, "user": user_id}
            self._database.upsert_row(connection, db.scope_users, key, {"created": get_unix_time()})

    def withdraw_scope(self, caller: Caller, scope: str, user_name: str) -> None:
        """Take a grant back. The owner stays.

        Raises:
            RequestError: as :meth:`grant_scope`.
        """
        number, user_id = self._get_scope_and_user(caller, scope, user_name)
        is_grant = sa.and_(db.scope_users.c.scope == number, db.scope_users.c.user == user_id)
        self._database.execute_writes(sa.delete(db.scope_users).where(is_grant))

    def remove_user(self, user_id: int) -> None:
        """Take a removed user's grants back, and leave their scopes without an owner."""
        self._database.execute_writes(
            sa.delete(db.scope_users).where(db.scope_users.c.user == user_id),
            sa.update(db.scopes).where(db.scopes.c.owner == user_id).values(owner=_NOBODY),
        )

    def _find_row(self, scope: str) -> Any:
        return self._database.fetch_first_row(sa.select(db.scopes).where(db.scopes.c.digest == self._digest(scope)))

    def _digest(self, scope: str) -> str:
        return self._sealing.make_lookup_digest(_PURPOSE, scope)

    def _register(self, scope: str, owner: int) -> Any:
        """Store the owner of a scope, unless somebody was faster, and return its row."""
        row = {"digest": self._digest(scope), "sealed": self._sealing.seal(scope, _PURPOSE), "owner": owner}
        with suppress(RequestError), self._database.open_unique_write_transaction("taken") as connection:
            connection.execute(sa.insert(db.scopes), [{**row, "created": get_unix_time()}])
        return self._find_row(scope)

    def _is_user(self, caller: Caller, row: Any) -> bool:
        if not caller.id or row.owner == caller.id:
            return bool(caller.id)
        query = sa.select(db.scope_users).where(db.scope_users.c.scope == row.number)
        return self._database.fetch_first_row(query.where(db.scope_users.c.user == caller.id)) is not None

    def _get_scope_and_user(self, caller: Caller, scope: str, user_name: str) -> tuple[int, int]:
        """Return the numbers of a scope that a caller may give away, and of a user."""
        is_admin, row = "admin" in caller.permissions, self._find_row(scope)
        if row is None and is_admin and not scope.startswith(RESERVED) and self._vault.has_scope(scope):
            row = self._register(scope, _NOBODY)
        if row is None or not (is_admin or (caller.id and row.owner == caller.id)):
            raise RequestError("you own no such scope", 404, "NotFound")
        if not is_admin and caller.key is not None:
            raise RequestError("an API key lets nobody into a scope; sign in", 403, "NotAllowed")
        query = sa.select(db.users.c.id).where(db.users.c.name == user_name)
        user = self._database.fetch_first_row(query) if user_name.isprintable() else None
        if user is None:
            raise RequestError(f"there is no user {user_name!r}", 404, "NotFound")
        return row.number, user.id

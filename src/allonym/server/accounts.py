"""Users, their sessions and API keys, one-time links, and the audit log.

Passwords are hashed with argon2id (RFC 9106). Tokens are 256 random bits, so a plain SHA-256 of one is enough to look
it up and does not reveal it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from allonym.errors import RequestError, UnknownNameError, UsageError
from allonym.server import database as db
from allonym.server.access import OPEN, ROLES, Caller
from allonym.server.database import Database, get_unix_time
from allonym.server.wire import accounts as wire

LEAST_PASSWORD = 12
MOST_PASSWORD = 1024
KEY_MARK = "alk_"
LINK_HOURS = 24
LOCAL = "local"
"""Name of the only user of a server that its owner runs for themselves."""

_CACHE_SECONDS = 5.0  # how long the owner of a token is not read again
_CACHE_SIZE = 10_000
_NOTE_SECONDS = 60  # how often the last use of a session or key is stored
_HASHES = 2  # passwords that are hashed at once: each takes 64 MB


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token, as 64 hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts:
    """The accounts in the server's database.

    Args:
        database: of the server.
        session_seconds: how long a session lasts at most.
        idle_seconds: how long a session lasts without a request.
    """

    def __init__(self, database: Database, session_seconds: float, idle_seconds: float) -> None:
        self._database = database
        self._session_seconds, self._idle_seconds = int(session_seconds), int(idle_seconds)
        self._hasher = PasswordHasher()
        self._unused_hash = self._hasher.hash(secrets.token_hex())
        self._local_digest = ""
        self._hashing = threading.BoundedSemaphore(_HASHES)
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[float, Caller]] = {}
        self._changes = 0
        self._known_tokens: dict[str, None] = {}

    # Links: for the first admin, and for whoever is invited

    def has_no_users(self) -> bool:
        """Whether there is no user yet who can sign in: the local one cannot."""
        users = sa.select(db.users.c.id).where(db.users.c.name != LOCAL).limit(1)
        return self._database.fetch_first_row(users) is None

    def make_account_link(self, role: str) -> tuple[str, int]:
        """Return the token of a link with which one person makes one account, and when it expires."""
        _check_role(role)
        token, expires = secrets.token_urlsafe(32), get_unix_time() + LINK_HOURS * 3600
        row = {"digest": hash_token(token), "role": role, "created": get_unix_time(), "expires": expires}
        expired = sa.delete(db.links).where(db.links.c.expires <= get_unix_time())
        self._database.execute_writes(expired, sa.insert(db.links).values(**row))
        return token, expires

    def remove_account_links(self, role: str) -> None:
        """Invalidate all links for a role."""
        self._database.execute_writes(sa.delete(db.links).where(db.links.c.role == role))

    def make_account(self, link_token: str, name: str, password: str) -> wire.UserOut:
        """Make the account that a link is for.

        Raises:
            RequestError: the link is not known, was used or has expired (403), or the name is taken (409).
            UsageError: the name or the password is not acceptable.
        """
        _check_user_or_key_name(name, "user")
        _check_password(password)
        hashed, created = self._hash_password(password), get_unix_time()
        where = sa.and_(db.links.c.digest == hash_token(link_token), db.links.c.expires > get_unix_time())
        with self._database.open_unique_write_transaction(f"there is a user {name!r} already") as connection:
            role = connection.execute(sa.select(db.links.c.role).where(where)).scalar()
            if role is None or not connection.execute(sa.delete(db.links).where(where)).rowcount:
                raise RequestError("this link was used, has expired or is not complete", 403, "WrongLink")
            row = {"name": name, "role": role, "password": hashed, "active": True, "created": created}
            connection.execute(sa.insert(db.users), [row])
        return wire.UserOut(name=name, role=str(role), active=True, created=created)

    # Users

    def list_users(self) -> list[wire.UserOut]:
        """Return all users, by name."""
        rows = self._database.fetch_rows(sa.select(db.users).order_by(db.users.c.name))
        return [wire.UserOut.from_object(row) for row in rows]

    def change_user(self, name: str, *, role: str | None = None, active: bool | None = None) -> wire.UserOut:
        """Change a user's role, or whether the account is active. The last active admin stays one.

        Raises:
            RequestError: there is no such user (404), or it is the last admin (409).
        """
        if role is not None:
            _check_role(role)
        with self._database.open_write_transaction() as connection:
            row = self._get_user_row(connection, name)
            changed: dict[str, Any] = {
                "role": role or row.role,
                "active": bool(row.active if active is None else active),
            }
            if changed != {"role": "admin", "active": True}:
                self._check_another_admin_remains(connection, row.id)
            connection.execute(sa.update(db.users).where(db.users.c.id == row.id).values(**changed))
            if not changed["active"]:
                connection.execute(sa.delete(db.sessions).where(db.sessions.c.user == row.id))
        self._clear_caller_cache()
        return wire.UserOut(name=name, created=row.created, **changed)

    def remove_user(self, name: str) -> int:
        """Remove a user with sessions and keys, and return their number. Their lines of the audit log stay.

        Raises:
            RequestError: there is no such user (404), or it is the last admin (409).
        """
        with self._database.open_write_transaction() as connection:
            row = self._get_user_row(connection, name)
            self._check_another_admin_remains(connection, row.id)
            for table in (db.sessions, db.keys, db.identities):
                connection.execute(sa.delete(table).where(table.c.user == row.id))
            connection.execute(sa.delete(db.users).where(db.users.c.id == row.id))
        self._clear_caller_cache()
        return int(row.id)

    def change_own_password(self, caller: Caller, old_password: str, new_password: str) -> None:
        """Change the caller's own password and end all of their sessions.

        Raises:
            RequestError: the old one is wrong (403).
            UsageError: the new one is not acceptable.
        """
        _check_password(new_password)
        with self._database.open_read_transaction() as connection:
            row = self._get_user_row(connection, caller.name)
        if not self._verify_password(row.password, old_password):
            raise RequestError("the password is wrong", 403, "WrongPassword")
        self._database.execute_writes(
            sa.update(db.users).where(db.users.c.id == row.id).values(password=self._hash_password(new_password)),
            sa.delete(db.sessions).where(db.sessions.c.user == row.id),
        )
        self._clear_caller_cache()

    # Sessions

    def sign_in(self, name: str, password: str) -> str:
        """Return the token of a new session.

        Raises:
            RequestError: name or password is wrong (401). Neither the message nor the time says which.
        """
        printable = name if name.isprintable() else ""  # PostgreSQL stores no NUL, so no user has it in their name
        row = self._database.fetch_first_row(sa.select(db.users).where(db.users.c.name == printable))
        fits = self._verify_password(row.password if row else self._unused_hash, password[: MOST_PASSWORD + 1])
        if row is None or not fits or not row.active:
            raise RequestError("name or password is wrong", 401, "NotSignedIn")
        unchanged = sa.select(db.users.c.id).where(
            db.users.c.id == row.id, db.users.c.password == row.password, db.users.c.active
        )
        with self._database.open_write_transaction() as connection:
            if connection.execute(unchanged.with_for_update()).first() is None:  # changed while the password was tried
                raise RequestError("name or password is wrong", 401, "NotSignedIn")
            token = self._open_session(connection, row.id)
            if self._hasher.check_needs_rehash(row.password):
                hashed = self._hasher.hash(password)
                connection.execute(sa.update(db.users).where(db.users.c.id == row.id).values(password=hashed))
        return token

    def make_local_link(self) -> str:
        """Return the token of the link by which the local user signs in while this server runs, as often as they like.

        The local user is an admin without a password, made where there is none.
        """
        token = secrets.token_urlsafe(32)
        values = {"role": "admin", "password": self._unused_hash, "active": True}
        with self._database.open_write_transaction() as connection:
            self._database.upsert_row(connection, db.users, {"name": LOCAL}, {**values, "created": get_unix_time()})
        self._local_digest = hash_token(token)
        return token

    def end_local_sessions(self) -> None:
        """End the sessions of the local user, for a start of the server that has none."""
        local = sa.select(db.users.c.id).where(db.users.c.name == LOCAL).scalar_subquery()
        self._database.execute_writes(sa.delete(db.sessions).where(db.sessions.c.user == local))
        self._clear_caller_cache()

    def sign_in_by_local_link(self, link_token: str) -> str:
        """Return the token of a new session of the local user.

        Raises:
            RequestError: the link is not that of this start (403).
        """
        if not hmac.compare_digest(hash_token(link_token), self._local_digest):
            raise RequestError("this link is not complete, or of an earlier start", 403, "WrongLink")
        with self._database.open_write_transaction() as connection:
            return self._open_session(connection, self._get_user_row(connection, LOCAL).id)

    def sign_in_by_issuer(self, issuer: str, subject: str, name: str, role: str) -> str:
        """Return the token of a new session of whom an issuer names. The account is made at the first time, and has the
        role that the issuer gives now.

        Raises:
            RequestError: the account is not active (403), or somebody else has the name (409).
            UsageError: the name is not acceptable.
        """
        digest = hash_token(f"{issuer}\0{subject}")
        query = sa.select(db.users).join(db.identities, db.identities.c.user == db.users.c.id)
        with self._database.open_unique_write_transaction("this name is taken by another account") as connection:
            row = connection.execute(query.where(db.identities.c.digest == digest)).first()
            if row is None:
                _check_user_or_key_name(name, "user")
                user = {"name": name, "role": role, "password": self._unused_hash, "active": True}
                connection.execute(sa.insert(db.users).values(**user, created=get_unix_time()))
                user_id = self._get_user_row(connection, name).id
                connection.execute(sa.insert(db.identities).values(digest=digest, user=user_id))
            elif not row.active:
                raise RequestError("this account is not active", 403, "NotActive")
            else:
                user_id = row.id
                connection.execute(sa.update(db.users).where(db.users.c.id == user_id).values(role=role))
            token = self._open_session(connection, user_id)
        self._clear_caller_cache()
        return token

    def is_known_to_issuer(self, caller: Caller) -> bool:
        """Whether a caller's account is one that single sign-on made."""
        query = sa.select(db.identities.c.user).where(db.identities.c.user == caller.id)
        return self._database.fetch_first_row(query) is not None

    def _open_session(self, connection: sa.Connection, user_id: int) -> str:
        """Store a new session of a user, remove those that have ended, and return its token."""
        token, moment = secrets.token_urlsafe(32), get_unix_time()
        old = sa.or_(db.sessions.c.expires <= moment, db.sessions.c.seen <= moment - self._idle_seconds)
        session = {
            "digest": hash_token(token),
            "user": user_id,
            "csrf": secrets.token_urlsafe(32),
            "created": moment,
            "seen": moment,
            "expires": moment + self._session_seconds,
        }
        connection.execute(sa.delete(db.sessions).where(old))
        connection.execute(sa.insert(db.sessions), [session])
        return token

    def sign_out(self, session_token: str) -> None:
        """End a session."""
        self._database.execute_writes(sa.delete(db.sessions).where(db.sessions.c.digest == hash_token(session_token)))
        self._clear_caller_cache()

    # Keys

    def make_api_key(
        self, caller: Caller, name: str, permissions: Iterable[str], days: float | None
    ) -> tuple[str, wire.KeyOut]:
        """Make an API key of the caller's and return its token, which is not stored.

        Raises:
            RequestError: a key asks, or the caller lacks a permission (403), or has a key of this name (409).
            UsageError: the name is not acceptable, or no permission is named.
        """
        if caller.key is not None:
            raise RequestError("an API key cannot make another; sign in", 403, "NotAllowed")
        _check_user_or_key_name(name, "key")
        chosen = list(dict.fromkeys(permissions))
        if not chosen:
            raise UsageError("an API key needs permissions")
        for permission in chosen:
            if permission not in caller.permissions:
                raise RequestError(
                    f"a key cannot have the permission {permission!r}, which you lack", 403, "NotAllowed"
                )
        token = KEY_MARK + secrets.token_urlsafe(32)
        expires = None if days is None else get_unix_time() + int(days * 86_400)
        row = {
            "digest": hash_token(token),
            "user": caller.id,
            "name": name,
            "permissions": " ".join(chosen),
            "created": get_unix_time(),
            "expires": expires,
        }
        with self._database.open_unique_write_transaction(f"you have a key {name!r} already") as connection:
            db.check_and_lock_active_user(connection, caller.id)
            connection.execute(sa.insert(db.keys), [row])
        return token, wire.KeyOut.from_values({**row, "owner": caller.name, "permissions": chosen, "used": None})

    def list_api_keys(self, caller: Caller) -> list[wire.KeyOut]:
        """Return the caller's own keys; all keys for an admin."""
        query = sa.select(db.keys, db.users.c.name.label("owner")).join(db.users, db.users.c.id == db.keys.c.user)
        if "admin" not in caller.permissions:
            query = query.where(db.keys.c.user == caller.id)
        rows = self._database.fetch_rows(query.order_by("owner", db.keys.c.name))
        return [wire.KeyOut.from_values({**row._mapping, "permissions": row.permissions.split()}) for row in rows]

    def remove_api_key(self, caller: Caller, name: str, owner: str | None = None) -> None:
        """Remove a key. Only admins may name another owner than themselves.

        Raises:
            RequestError: there is no such key (404), or it belongs to somebody else (403).
        """
        mine = owner in (None, caller.name) and caller.key in (None, name)
        if not mine and "admin" not in caller.permissions:
            raise RequestError("only admins remove other people's keys, and a key only itself", 403, "NotAllowed")
        with self._database.open_write_transaction() as connection:
            user = self._get_user_row(connection, owner).id if owner else caller.id
            removal = sa.delete(db.keys).where(db.keys.c.user == user, db.keys.c.name == name)
            if not name.isprintable() or not connection.execute(removal).rowcount:
                raise RequestError(f"there is no key {name!r}", 404, "NotFound")
        self._clear_caller_cache()

    # Sessions and keys

    def find_caller(self, token: str, *, is_key: bool) -> Caller | None:
        """Return who an API key (``is_key``) or a session belongs to; None where there is no such one."""
        caller = self.get_cached_caller(token, is_key=is_key)
        if caller is not None:
            return caller
        moment, changes = get_unix_time(), self._changes
        table, used = (db.keys, "used") if is_key else (db.sessions, "seen")
        users = (db.users.c.name.label("owner"), db.users.c.role)
        query = sa.select(table, *users).join(db.users, db.users.c.id == table.c.user)
        row = self._database.fetch_first_row(query.where(table.c.digest == hash_token(token), db.users.c.active))
        if row is None or (row.expires is not None and row.expires <= moment):
            return None
        caller = Caller(row.user, row.owner, row.role, frozenset(ROLES[row.role]))
        if is_key:
            allowed = caller.permissions & frozenset(row.permissions.split())
            caller = replace(caller, permissions=allowed, key=row.name)
        elif row.seen > moment - self._idle_seconds:
            caller = replace(caller, csrf=row.csrf)
        else:
            return None
        last = getattr(row, used)
        if last is None or moment - last >= _NOTE_SECONDS:
            self._database.execute_writes(sa.update(table).where(table.c.digest == row.digest).values({used: moment}))
        self._cache_caller(row.digest, caller, changes)
        return caller

    def get_cached_caller(self, token: str, *, is_key: bool) -> Caller | None:
        """Return who an API key (``is_key``) or a session belongs to, if that was read seconds ago."""
        with self._lock:
            until, caller = self._cache.get(hash_token(token), (0.0, None))
        is_wanted = caller is not None and (caller.key is not None) is is_key
        return caller if is_wanted and until > time.monotonic() else None

    def is_known_token(self, token: str) -> bool:
        """Whether the token was a valid key or session when this server last looked it up. It may have ended since."""
        return hash_token(token) in self._known_tokens

    def is_valid_token(self, token: str) -> bool:
        """Whether the token is a valid key or session now."""
        return self.find_caller(token, is_key=token.startswith(KEY_MARK)) is not None

    # The audit log

    def record_action(self, caller: Caller | str, action: str, counts: Mapping[str, int] | None = None) -> None:
        """Add a line to the audit log: who did what, and how many; never any text."""
        actor = caller if isinstance(caller, str) else caller.audit_name
        row = {"time": get_unix_time(), "actor": actor, "action": action, "counts": json.dumps(dict(counts or {}))}
        self._database.execute_writes(sa.insert(db.audit).values(**row))

    def list_audit_lines(self, before_number: int | None = None, limit: int = 200) -> list[wire.AuditLine]:
        """Return lines of the audit log, newest first; ``before_number``: only those with a lower number."""
        query = sa.select(db.audit).order_by(db.audit.c.number.desc()).limit(limit)
        if before_number is not None:
            query = query.where(db.audit.c.number < before_number)
        rows = self._database.fetch_rows(query)
        return [wire.AuditLine.from_values({**row._mapping, "counts": json.loads(row.counts)}) for row in rows]

    def _verify_password(self, hashed: str, password: str) -> bool:
        try:
            with self._hashing:
                return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    def _hash_password(self, password: str) -> str:
        with self._hashing:
            return self._hasher.hash(password)

    def _get_user_row(self, connection: sa.Connection, name: str) -> Any:
        query = sa.select(db.users).where(db.users.c.name == name)
        row = connection.execute(query).first() if name.isprintable() else None
        if row is None:
            raise RequestError(f"there is no user {name!r}", 404, "NotFound")
        return row

    def _check_another_admin_remains(self, connection: sa.Connection, user_id: int) -> None:
        is_admin = sa.and_(db.users.c.role == "admin", db.users.c.active, db.users.c.name != LOCAL)
        admins = sa.select(db.users.c.id).where(is_admin).with_for_update()
        if list(connection.execute(admins).scalars()) == [user_id]:
            raise RequestError("the last admin must stay one", 409, "LastAdmin")

    def _cache_caller(self, token_digest: str, caller: Caller, changes_before: int) -> None:
        with self._lock:
            if changes_before != self._changes:  # somebody was shut out since it was read
                return
            for memory in (self._cache, self._known_tokens):
                if len(memory) >= _CACHE_SIZE:
                    memory.clear()
            self._cache[token_digest] = (time.monotonic() + _CACHE_SECONDS, caller)
            self._known_tokens[token_digest] = None

    def _clear_caller_cache(self) -> None:
        with self._lock:
            self._changes += 1
            self._cache.clear()


def is_valid_url_segment(name: str) -> bool:
    """Whether a name can stand in an address: printable, no slash, no space at its ends, neither ``.`` nor ``..``."""
    return name.isprintable() and name == name.strip() and "/" not in name and name not in ("", ".", "..")


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)


def _check_user_or_key_name(name: str, named: str) -> None:
    if not 1 <= len(name) <= 64 or not is_valid_url_segment(name) or name in (OPEN, LOCAL) or set(name) & set("()"):
        raise UsageError(
            f"the name of a {named} has 1 to 64 printable characters, no slash, no brackets, no space at its ends"
        )


def _check_password(password: str) -> None:
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise UsageError(f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters, got {len(password)}")

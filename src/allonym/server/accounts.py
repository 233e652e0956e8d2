"""Users, their sessions and API keys, one-time links, and the audit log.

Passwords are hashed with argon2id (RFC 9106). Tokens are 256 random bits, so that a plain SHA-256 of one is enough to
look it up and does not give it back.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from allonym.errors import DatabaseError, RequestError, UnknownNameError, UsageError
from allonym.server import database as db
from allonym.server.access import ROLES, Who
from allonym.server.database import Database, is_taken, now

OPEN = "open"
"""In the audit log, where a setting lets everybody in."""
LEAST_PASSWORD = 12
MOST_PASSWORD = 1024
KEY_MARK = "alk_"
LINK_HOURS = 24
_REMEMBERED = 5.0  # seconds for which what a token means is not read again
_MOST_REMEMBERED = 10_000
_HASHES = 2  # passwords that are hashed at once: each takes 64 MB


@dataclass(frozen=True, slots=True)
class User:
    """A user, without the password."""

    name: str
    role: str
    active: bool
    created: int


@dataclass(frozen=True, slots=True)
class Key:
    """An API key, without what it consists of."""

    name: str
    owner: str
    permissions: tuple[str, ...]
    created: int
    expires: int | None
    used: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the audit log."""

    time: int
    actor: str
    action: str
    counts: Mapping[str, int]


def digest(token: str) -> str:
    """SHA-256 of a token, as 64 hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts:
    """Who there is, in the server's database.

    Args:
        place: the database.
        session_seconds: after which one signs in again in any case.
        idle_seconds: after which one signs in again where nothing was asked meanwhile.
    """

    def __init__(self, place: Database, session_seconds: float, idle_seconds: float) -> None:
        self._place = place
        self._session, self._idle = int(session_seconds), int(idle_seconds)
        self._hasher = PasswordHasher()
        self._nobody = self._hasher.hash(secrets.token_hex())
        self._hashing = threading.BoundedSemaphore(_HASHES)
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, tuple[Who, str] | None]] = {}
        self._changes = 0
        self._ever: dict[str, None] = {}

    def __repr__(self) -> str:
        return "Accounts()"

    # Links: the first admin, and whoever is invited

    def nobody_yet(self) -> bool:
        """Whether there is no user."""
        with self._place.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(db.users)).scalar() == 0

    def invite(self, role: str, hours: float = LINK_HOURS) -> tuple[str, int]:
        """The token of a link by which one person makes an account, once, and when it expires."""
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES)
        token, expires = secrets.token_urlsafe(32), now() + int(hours * 3600)
        with self._place.writing() as connection:
            connection.execute(sa.delete(db.links).where(db.links.c.expires <= now()))
            row = {"digest": digest(token), "role": role, "created": now(), "expires": expires}
            connection.execute(sa.insert(db.links), [row])
        return token, expires

    def forget_links(self, role: str) -> None:
        """Let no link for a role work any more."""
        with self._place.writing() as connection:
            connection.execute(sa.delete(db.links).where(db.links.c.role == role))

    def setup(self, token: str, name: str, password: str) -> User:
        """Make the account that a link is for.

        Raises:
            RequestError: the link is not known, was used or has expired (403), or the name is taken (409).
            UsageError: name or password will not do.
        """
        _check_name(name, "user")
        _check_password(password)
        hashed, created = self._hashed(password), now()
        where = sa.and_(db.links.c.digest == digest(token), db.links.c.expires > now())
        try:
            with self._place.writing() as connection:
                role = connection.execute(sa.select(db.links.c.role).where(where)).scalar()
                if role is None or not connection.execute(sa.delete(db.links).where(where)).rowcount:
                    raise RequestError("this link was used, has expired or is not complete", 403, "WrongLink")
                row = {"name": name, "role": role, "password": hashed, "active": True, "created": created}
                connection.execute(sa.insert(db.users), [row])
        except DatabaseError as error:
            raise _taken(error, f"there is a user {name!r} already") from None
        return User(name, str(role), True, created)

    # Users

    def users(self) -> list[User]:
        """All, by name."""
        with self._place.reading() as connection:
            rows = connection.execute(sa.select(db.users).order_by(db.users.c.name)).all()
        return [User(r.name, r.role, r.active, r.created) for r in rows]

    def change(self, name: str, *, role: str | None = None, active: bool | None = None) -> User:
        """Change a user's role, or let them in no more. The last active admin stays one.

        Raises:
            RequestError: there is no such user (404), or it is the last admin (409).
        """
        if role is not None and role not in ROLES:
            raise UnknownNameError("role", role, ROLES)
        with self._place.writing() as connection:
            row = self._row(connection, name)
            changed: dict[str, Any] = {
                "role": role or row.role,
                "active": bool(row.active if active is None else active),
            }
            if changed != {"role": "admin", "active": True}:
                self._not_last(connection, row)
            connection.execute(sa.update(db.users).where(db.users.c.id == row.id).values(**changed))
            if not changed["active"]:
                connection.execute(sa.delete(db.sessions).where(db.sessions.c.user == row.id))
        self._forget()
        return User(name, changed["role"], changed["active"], row.created)

    def remove(self, name: str) -> int:
        """Remove a user with sessions and keys; their number. What they did stays in the audit log.

        Raises:
            RequestError: there is no such user (404), or it is the last admin (409).
        """
        with self._place.writing() as connection:
            row = self._row(connection, name)
            self._not_last(connection, row)
            for owned in (db.sessions, db.keys):
                connection.execute(sa.delete(owned).where(owned.c.user == row.id))
            connection.execute(sa.delete(db.users).where(db.users.c.id == row.id))
        self._forget()
        return int(row.id)

    def set_password(self, who: Who, old: str, new: str) -> None:
        """Change one's own password; all one's sessions end.

        Raises:
            RequestError: the old one is wrong (403).
            UsageError: the new one will not do.
        """
        _check_password(new)
        with self._place.reading() as connection:
            row = self._row(connection, who.name)
        if not self._fits(row.password, old):
            raise RequestError("the password is wrong", 403, "WrongPassword")
        hashed = self._hashed(new)
        with self._place.writing() as connection:
            connection.execute(sa.update(db.users).where(db.users.c.id == row.id).values(password=hashed))
            connection.execute(sa.delete(db.sessions).where(db.sessions.c.user == row.id))
        self._forget()

    # Sessions

    def sign_in(self, name: str, password: str) -> str:
        """A new session's token.

        Raises:
            RequestError: name or password is wrong (401); which of them is not told, nor does the time tell.
        """
        wanted = name if name.isprintable() else ""  # PostgreSQL stores no NUL, so nobody has it in their name
        with self._place.reading() as connection:
            row = connection.execute(sa.select(db.users).where(db.users.c.name == wanted)).first()
        fits = self._fits(row.password if row else self._nobody, password[: MOST_PASSWORD + 1])
        if row is None or not fits or not row.active:
            raise RequestError("name or password is wrong", 401, "NotSignedIn")
        token, moment = secrets.token_urlsafe(32), now()
        same = sa.select(db.users.c.id).where(
            db.users.c.id == row.id, db.users.c.password == row.password, db.users.c.active
        )
        with self._place.writing() as connection:
            if connection.execute(same.with_for_update()).first() is None:  # changed while the password was tried
                raise RequestError("name or password is wrong", 401, "NotSignedIn")
            old = sa.or_(db.sessions.c.expires <= moment, db.sessions.c.seen <= moment - self._idle)
            connection.execute(sa.delete(db.sessions).where(old))
            row_ = {
                "digest": digest(token),
                "user": row.id,
                "csrf": secrets.token_urlsafe(32),
                "created": moment,
                "seen": moment,
                "expires": moment + self._session,
            }
            connection.execute(sa.insert(db.sessions), [row_])
            if self._hasher.check_needs_rehash(row.password):
                hashed = self._hasher.hash(password)
                connection.execute(sa.update(db.users).where(db.users.c.id == row.id).values(password=hashed))
        return token

    def sign_out(self, token: str) -> None:
        """End a session."""
        with self._place.writing() as connection:
            connection.execute(sa.delete(db.sessions).where(db.sessions.c.digest == digest(token)))
        self._forget()

    def by_session(self, token: str) -> tuple[Who, str] | None:
        """Whose session it is, and the token by which its pages prove to be ours; None: nobody's."""
        code = digest(token)
        found = self.remembered(token, key=False)
        if found is None:
            moment, changes = now(), self._changes
            with self._place.reading() as connection:
                joined = db.sessions.join(db.users, db.users.c.id == db.sessions.c.user)
                asked = sa.select(db.sessions, db.users.c.name, db.users.c.role).select_from(joined)
                row = connection.execute(asked.where(db.sessions.c.digest == code, db.users.c.active)).first()
            if row is None or row.expires <= moment or row.seen <= moment - self._idle:
                return None
            if moment - row.seen >= 60:
                with self._place.writing() as connection:
                    connection.execute(sa.update(db.sessions).where(db.sessions.c.digest == code).values(seen=moment))
            found = (Who(row.user, row.name, row.role, frozenset(ROLES[row.role])), row.csrf)
            self._remember(code, found, changes)
        return found

    # Keys

    def make_key(self, who: Who, name: str, permissions: Iterable[str], days: float | None) -> tuple[str, Key]:
        """A new API key of a user's, shown this once.

        Raises:
            RequestError: a key asks, or the user lacks a permission (403), or has a key of this name (409).
            UsageError: the name will not do, or no permission was named.
        """
        if who.key is not None:
            raise RequestError("a key makes no keys; sign in", 403, "NotAllowed")
        _check_name(name, "key")
        wanted = tuple(dict.fromkeys(permissions))
        if not wanted:
            raise UsageError("an API key needs permissions")
        for one in wanted:
            if one not in who.permissions:
                raise RequestError(f"a key cannot have the permission {one!r}, which you lack", 403, "NotAllowed")
        token = KEY_MARK + secrets.token_urlsafe(32)
        expires = None if days is None else now() + int(days * 86_400)
        row = {
            "digest": digest(token),
            "user": who.id,
            "name": name,
            "permissions": " ".join(wanted),
            "created": now(),
            "expires": expires,
        }
        try:
            with self._place.writing() as connection:
                there = sa.select(db.users.c.id).where(db.users.c.id == who.id, db.users.c.active)
                if connection.execute(there.with_for_update()).first() is None:
                    raise RequestError("there is no such user any more", 401, "NotSignedIn")
                connection.execute(sa.insert(db.keys), [row])
        except DatabaseError as error:
            raise _taken(error, f"you have a key {name!r} already") from None
        return token, Key(name, who.name, wanted, now(), expires, None)

    def keys(self, who: Who) -> list[Key]:
        """One's own keys; an admin sees all."""
        joined = db.keys.join(db.users, db.users.c.id == db.keys.c.user)
        asked = sa.select(db.keys, db.users.c.name.label("owner")).select_from(joined).order_by("owner", db.keys.c.name)
        if not who.may("admin"):
            asked = asked.where(db.keys.c.user == who.id)
        with self._place.reading() as connection:
            rows = connection.execute(asked).all()
        return [Key(r.name, r.owner, tuple(r.permissions.split()), r.created, r.expires, r.used) for r in rows]

    def remove_key(self, who: Who, name: str, owner: str | None = None) -> None:
        """Let a key work no more; admins may name another's.

        Raises:
            RequestError: there is no such key (404), or it is another's (403).
        """
        if not who.may("admin") and (owner not in (None, who.name) or who.key not in (None, name)):
            raise RequestError("only admins remove another's key, and only a session another key", 403, "NotAllowed")
        with self._place.writing() as connection:
            user = self._row(connection, owner).id if owner else who.id
            named = sa.delete(db.keys).where(db.keys.c.user == user, db.keys.c.name == name)
            if not name.isprintable() or not connection.execute(named).rowcount:
                raise RequestError(f"there is no key {name!r}", 404, "NotFound")
        self._forget()

    def by_key(self, token: str) -> Who | None:
        """Whose key it is; None: nobody's."""
        code = digest(token)
        found = self.remembered(token, key=True)
        if found is None:
            moment, changes = now(), self._changes
            joined = db.keys.join(db.users, db.users.c.id == db.keys.c.user)
            asked = sa.select(db.keys, db.users.c.name.label("owner"), db.users.c.role).select_from(joined)
            with self._place.reading() as connection:
                row = connection.execute(asked.where(db.keys.c.digest == code, db.users.c.active)).first()
            if row is None or (row.expires is not None and row.expires <= moment):
                return None
            if row.used is None or moment - row.used >= 60:
                with self._place.writing() as connection:
                    connection.execute(sa.update(db.keys).where(db.keys.c.digest == code).values(used=moment))
            allowed = frozenset(row.permissions.split()) & frozenset(ROLES[row.role])
            found = (Who(row.user, row.owner, row.role, allowed, row.name), "")
            self._remember(code, found, changes)
        return found[0]

    # Both

    def remembered(self, token: str, *, key: bool) -> tuple[Who, str] | None:
        """Whose key or session it is, and a session's further token, where that was read within the last seconds."""
        with self._lock:
            until, value = self._seen.get(digest(token), (0.0, None))
        if value is not None and (value[0].key is not None) is not key:
            return None  # a key in the place of a session, or the other way round
        return value if until > time.monotonic() else None

    def knows(self, token: str) -> bool:
        """Whether it was somebody's key or session when it was last looked up by this server; it may be no more."""
        return digest(token) in self._ever

    def finds(self, token: str) -> bool:
        """Whether it is somebody's key or session."""
        return (self.by_key(token) if token.startswith(KEY_MARK) else self.by_session(token)) is not None

    # The audit log

    def record(self, who: Who | str, action: str, counts: Mapping[str, int] | None = None) -> None:
        """Add a line: who did what, and how many; never any text."""
        actor = who if isinstance(who, str) else who.shown
        row = {"time": now(), "actor": actor, "action": action, "counts": json.dumps(dict(counts or {}))}
        with self._place.writing() as connection:
            connection.execute(sa.insert(db.audit), [row])

    def entries(self, before: int | None = None, limit: int = 200) -> list[tuple[int, Entry]]:
        """Lines of the audit log with their numbers, newest first."""
        asked = sa.select(db.audit).order_by(db.audit.c.number.desc()).limit(limit)
        if before is not None:
            asked = asked.where(db.audit.c.number < before)
        with self._place.reading() as connection:
            rows = connection.execute(asked).all()
        return [(r.number, Entry(r.time, r.actor, r.action, json.loads(r.counts))) for r in rows]

    # Inside

    def _fits(self, hashed: str, password: str) -> bool:
        try:
            with self._hashing:
                return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    def _hashed(self, password: str) -> str:
        with self._hashing:
            return self._hasher.hash(password)

    def _row(self, connection: sa.Connection, name: str) -> Any:
        asked = sa.select(db.users).where(db.users.c.name == name)
        row = connection.execute(asked).first() if name.isprintable() else None
        if row is None:
            raise RequestError(f"there is no user {name!r}", 404, "NotFound")
        return row

    def _not_last(self, connection: sa.Connection, row: Any) -> None:
        admins = sa.select(db.users.c.id).where(db.users.c.role == "admin", db.users.c.active).with_for_update()
        if [one.id for one in connection.execute(admins)] == [row.id]:
            raise RequestError("the last admin stays one", 409, "LastAdmin")

    def _remember(self, code: str, value: tuple[Who, str], changes: int) -> None:
        with self._lock:
            if changes != self._changes:  # somebody was shut out since it was read
                return
            for memory in (self._seen, self._ever):
                if len(memory) >= _MOST_REMEMBERED:
                    memory.clear()
            self._seen[code] = (time.monotonic() + _REMEMBERED, value)
            self._ever[code] = None

    def _forget(self) -> None:
        with self._lock:
            self._changes += 1
            self._seen.clear()


def _taken(error: DatabaseError, message: str) -> Exception:
    return RequestError(message, 409, "Taken") if is_taken(error) else error


def is_name(name: str) -> bool:
    """Whether a name can stand in an address: printable, no slash, no space at its ends, neither ``.`` nor ``..``."""
    return name.isprintable() and name == name.strip() and "/" not in name and name not in ("", ".", "..")


def _check_name(name: str, kind: str) -> None:
    if not 1 <= len(name) <= 64 or not is_name(name) or name == OPEN or set(name) & set("()"):
        raise UsageError(
            f"the name of a {kind} has 1 to 64 printable characters, no slash, no brackets, no space at its ends"
        )


def _check_password(password: str) -> None:
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise UsageError(f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters, got {len(password)}")

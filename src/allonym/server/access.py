"""Who calls, and what they may do: roles, permissions, and the dependency by which every route asks for them."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request, Security, WebSocket
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from allonym.errors import RequestError

if TYPE_CHECKING:
    from allonym.server.services import Services

COOKIE = "allonym_session"
CSRF = "x-csrf-token"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))

_ANNOTATOR = ("detect", "anonymize", "evaluate", "jobs", "review")
_REVIEWER = (*_ANNOTATOR, "restore", "adjudicate", "studies")
PERMISSIONS = (*_REVIEWER, "metrics", "admin")
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"annotator": _ANNOTATOR, "reviewer": _REVIEWER, "admin": PERMISSIONS}
)
"""What each role may do. Only who may ``restore`` gets originals back."""

cookie = APIKeyCookie(name=COOKIE, scheme_name="session", description="Pages: POST /v1/session", auto_error=False)
bearer = HTTPBearer(scheme_name="key", description="Programs: an API key, `alk_...`", auto_error=False)


@dataclass(frozen=True, slots=True)
class Who:
    """Who calls.

    Attributes:
        id: the user's number; 0: nobody, where a setting opens a route.
        name: the user's.
        role: one of ``ROLES``.
        permissions: of the role; of an API key those that it was given.
        key: the API key's name; None in a session.
    """

    id: int
    name: str
    role: str
    permissions: frozenset[str]
    key: str | None = None

    @property
    def shown(self) -> str:
        """For the audit log."""
        return f"{self.name} (key {self.key})" if self.key else self.name

    def may(self, permission: str) -> bool:
        """Whether it is among the permissions."""
        return permission in self.permissions


def services_of(request: HTTPConnection) -> Services:
    """What the application was made with."""
    found: Services = request.app.state.services
    return found


def needs(*permissions: str) -> Any:
    """A dependency that gives :class:`Who` calls and refuses whoever lacks one of the permissions.

    Without permissions: anybody who is signed in.
    """

    async def caller(
        request: Request,
        session: Annotated[str | None, Security(cookie)] = None,
        key: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None,
    ) -> Who:
        brought = key.credentials if key else None
        token, accounts = brought or session, services_of(request).accounts
        if token and accounts.remembered(token, key=bool(brought)) is None:  # then the database is asked
            who = await run_in_threadpool(identified, request, session, brought)
        else:
            who = identified(request, session, brought)
        return _allowed(who, permissions)

    caller.permissions = permissions  # type: ignore[attr-defined]
    return Depends(caller)


def identified(request: Request, session: str | None, key: str | None) -> Who:
    """Who calls by a key or a session.

    Raises:
        RequestError: nobody (401), or a session without the token that tells our pages from others' (403).
    """
    services = services_of(request)
    if key:
        who = services.accounts.by_key(key)
        if who is None:
            raise RequestError("this API key is not known, or has expired", 401, "NotSignedIn")
        return who
    found = services.accounts.by_session(session) if session else None
    if found is None:
        raise RequestError("sign in, or send an API key: Authorization: Bearer alk_...", 401, "NotSignedIn")
    who, csrf = found
    if request.method not in SAFE and not hmac.compare_digest(request.headers.get(CSRF, "").encode(), csrf.encode()):
        raise RequestError("the header X-CSRF-Token is missing or wrong; see GET /v1/session", 403, "WrongToken")
    return who


def on_socket(socket: WebSocket, *permissions: str) -> Who:
    """Who opens a WebSocket: by key, or by the session of a page of ours.

    Raises:
        RequestError: nobody, from another origin, or without a permission.
    """
    services = services_of(socket)
    scheme, _, key = socket.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key:
        who = services.accounts.by_key(key.strip())
    else:
        token = socket.cookies.get(COOKIE)
        origin = socket.headers.get("origin", "")
        if token and urlsplit(origin).netloc != socket.headers.get("host"):
            raise RequestError("a WebSocket with a session must come from a page of this server", 403, "WrongOrigin")
        found = services.accounts.by_session(token) if token else None
        who = found[0] if found else None
    if who is None:
        raise RequestError("sign in, or send an API key: Authorization: Bearer alk_...", 401, "NotSignedIn")
    return _allowed(who, permissions)


def _allowed(who: Who, permissions: tuple[str, ...]) -> Who:
    lacking = [name for name in permissions if not who.may(name)]
    if lacking:
        whose = f"the key {who.key!r}" if who.key else f"the role {who.role!r}"
        raise RequestError(f"this needs the permission {lacking[0]!r}, which {whose} lacks", 403, "NotAllowed")
    return who

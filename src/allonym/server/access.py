"""Callers and what they may do: roles, permissions, and the dependency by which every route asks for them."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    from allonym.server.settings import Settings

COOKIE = "allonym_session"
CSRF = "x-csrf-token"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))

_ANNOTATOR = ("detect", "anonymize", "evaluate", "jobs", "review")
_REVIEWER = (*_ANNOTATOR, "restore", "adjudicate", "studies")
PERMISSIONS = (*_REVIEWER, "metrics", "admin")
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"annotator": _ANNOTATOR, "reviewer": _REVIEWER, "admin": PERMISSIONS}
)
"""The permissions of each role. Originals are given only to callers who may ``restore``."""

OPEN = "open"
"""Name and role of :data:`NOBODY`, also in the audit log."""
_SIGN_IN = "sign in, or send an API key: Authorization: Bearer alk_..."

session_cookie = APIKeyCookie(
    name=COOKIE, scheme_name="session", description="Pages: POST /v1/session", auto_error=False
)
bearer_key = HTTPBearer(scheme_name="key", description="Programs: an API key, `alk_...`", auto_error=False)
SessionToken = Annotated[str | None, Security(session_cookie)]
BearerKey = Annotated[HTTPAuthorizationCredentials | None, Security(bearer_key)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    Attributes:
        id: the user's number; 0 for :data:`NOBODY`.
        name: the user's name.
        role: one of ``ROLES``.
        permissions: those of the role; for an API key, those that it was given.
        key: the API key's name; None in a session.
        csrf: the token that unsafe requests of a session need; empty with an API key.
    """

    id: int
    name: str
    role: str
    permissions: frozenset[str]
    key: str | None = None
    csrf: str = field(default="", repr=False)

    @property
    def audit_name(self) -> str:
        """The name for the audit log."""
        return f"{self.name} (key {self.key})" if self.key else self.name

    def has_permission(self, permission: str) -> bool:
        """Whether the caller has a permission."""
        return permission in self.permissions

    def check_permissions(self, *permissions: str) -> None:
        """Raise :class:`RequestError` (403) unless the caller has all of these permissions."""
        for permission in permissions:
            if permission not in self.permissions:
                whose = f"the key {self.key!r}" if self.key else f"the role {self.role!r}"
                raise RequestError(f"this needs the permission {permission!r}, which {whose} lacks", 403, "NotAllowed")


NOBODY = Caller(0, OPEN, OPEN, frozenset(("detect", "anonymize", "restore")))
"""The caller without credentials, where a setting opens a route."""


def get_services(request: HTTPConnection) -> Services:
    """Return the services that the application was made with."""
    services: Services = request.app.state.services
    return services


def make_permission_dependency(*permissions: str, is_open: Callable[[Settings], bool] | None = None) -> Any:
    """Make a dependency that gives the :class:`Caller` and refuses one who lacks a permission.

    Args:
        permissions: all that are needed; none: anybody who is signed in.
        is_open: whether the settings let anybody in who sends no credentials, as :data:`NOBODY`.
    """

    async def identify(request: Request, session: SessionToken = None, key: BearerKey = None) -> Caller:
        bearer, services = key.credentials if key else None, get_services(request)
        token = bearer or session
        if not token and is_open is not None and is_open(services.settings):
            return NOBODY
        # the database is asked in a thread, and only about a token that it was not asked about just before
        if token and services.accounts.get_cached_caller(token, is_key=bool(bearer)) is None:
            caller = await run_in_threadpool(identify_caller, request, session, bearer)
        else:
            caller = identify_caller(request, session, bearer)
        caller.check_permissions(*permissions)
        return caller

    identify.permissions = permissions  # type: ignore[attr-defined]
    return Depends(identify)


def identify_caller(request: Request, session_token: str | None, api_key: str | None) -> Caller:
    """Return who calls with a key or in a session.

    Raises:
        RequestError: nobody (401), or a session without the token that only our own pages have (403).
    """
    token = api_key or session_token
    caller = get_services(request).accounts.find_caller(token, is_key=bool(api_key)) if token else None
    if caller is None:
        raise RequestError("this API key is not known, or has expired" if api_key else _SIGN_IN, 401, "NotSignedIn")
    csrf = request.headers.get(CSRF, "").encode()
    if not api_key and request.method not in SAFE and not hmac.compare_digest(csrf, caller.csrf.encode()):
        raise RequestError("the header X-CSRF-Token is missing or wrong; see GET /v1/session", 403, "WrongToken")
    return caller


def identify_socket_caller(socket: WebSocket, *permissions: str) -> Caller:
    """Return who opens a WebSocket, with a key or in the session of one of our pages.

    Raises:
        RequestError: nobody, from another origin, or without a permission.
    """
    scheme, _, key = socket.headers.get("authorization", "").partition(" ")
    is_key = scheme.lower() == "bearer" and bool(key)
    token = key.strip() if is_key else socket.cookies.get(COOKIE)
    if not is_key and token and urlsplit(socket.headers.get("origin", "")).netloc != socket.headers.get("host"):
        raise RequestError("a WebSocket with a session must come from a page of this server", 403, "WrongOrigin")
    caller = get_services(socket).accounts.find_caller(token, is_key=is_key) if token else None
    if caller is None:
        raise RequestError(_SIGN_IN, 401, "NotSignedIn")
    caller.check_permissions(*permissions)
    return caller

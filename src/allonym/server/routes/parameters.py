"""Parameters that several routes share: the services, the caller by permission, names, and pages of lists."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Path, Query, Request, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from allonym.errors import RequestError
from allonym.server.access import COOKIE, NOBODY, SAFE, Caller, get_token_and_is_key
from allonym.server.guard import SENDER
from allonym.server.services import Services
from allonym.server.settings import Settings

CSRF = "x-csrf-token"
session_cookie = APIKeyCookie(
    name=COOKIE, scheme_name="session", description="Pages: POST /v1/session", auto_error=False
)
bearer_key = HTTPBearer(scheme_name="key", description="Programs: an API key, `alk_...`", auto_error=False)
SessionToken = Annotated[str | None, Security(session_cookie)]
BearerKey = Annotated[HTTPAuthorizationCredentials | None, Security(bearer_key)]


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
        (token, is_key), services = get_token_and_is_key(request), get_services(request)
        if not token and is_open is not None and is_open(services.settings):
            return NOBODY
        # the database is asked in a thread, and only about a token that it was not asked about just before
        if token and services.accounts.get_cached_caller(token, is_key=is_key) is None:
            caller = await run_in_threadpool(identify_caller, request)
        else:
            caller = identify_caller(request)
        caller.check_permissions(*permissions)
        if request.method not in (*SAFE, "DELETE"):
            services.quota.check_may_send(caller.id)
        request.scope[SENDER] = caller.id
        return caller

    identify.permissions = permissions  # type: ignore[attr-defined]
    return Depends(identify)


def identify_caller(connection: HTTPConnection, *permissions: str) -> Caller:
    """Return who sends a request or opens a WebSocket, with a key or in the session of one of our pages.

    Raises:
        RequestError: nobody (401), one who lacks a permission, or a session without what only our own pages have (403).
    """
    token, is_key = get_token_and_is_key(connection)
    caller = get_services(connection).accounts.find_caller(token, is_key=is_key) if token else None
    headers = connection.headers
    if caller is None:
        unknown = "this API key is not known, or has expired"
        sign_in = "sign in, or send an API key: Authorization: Bearer alk_..."
        raise RequestError(unknown if is_key else sign_in, 401, "NotSignedIn")
    is_socket = connection.scope["type"] == "websocket"
    is_from_own_page = is_key or urlsplit(headers.get("origin", "")).netloc == headers.get("host")
    has_csrf_token = is_key or hmac.compare_digest(headers.get(CSRF, "").encode(), caller.csrf.encode())
    if is_socket and not is_from_own_page:
        raise RequestError("a WebSocket with a session must come from a page of this server", 403, "WrongOrigin")
    if not is_socket and connection.scope["method"] not in SAFE and not has_csrf_token:
        raise RequestError("the header X-CSRF-Token is missing or wrong; see GET /v1/session", 403, "WrongToken")
    caller.check_permissions(*permissions)
    return caller


AnyServices = Annotated[Services, Depends(get_services)]

SignedIn = Annotated[Caller, make_permission_dependency()]
Admin = Annotated[Caller, make_permission_dependency("admin")]
Detecting = Annotated[Caller, make_permission_dependency("detect")]
Anonymizing = Annotated[Caller, make_permission_dependency("anonymize")]
Restoring = Annotated[Caller, make_permission_dependency("restore")]
Evaluating = Annotated[Caller, make_permission_dependency("evaluate")]
JobUser = Annotated[Caller, make_permission_dependency("jobs")]
ReleaseUser = Annotated[Caller, make_permission_dependency("jobs", "anonymize")]
Reviewer = Annotated[Caller, make_permission_dependency("review")]
Adjudicator = Annotated[Caller, make_permission_dependency("review", "adjudicate")]
Scholar = Annotated[Caller, make_permission_dependency("studies")]

Name = Annotated[str, Path(min_length=1, max_length=64)]
Number = Annotated[int, Path(ge=1, le=1 << 62)]
Offset = Annotated[int, Query(ge=0, le=1 << 31)]
Limit = Annotated[int, Query(ge=1, le=1000)]

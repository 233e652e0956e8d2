"""Users, sessions, invitations, API keys, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Cookie, Query, Response

from allonym.errors import RequestError
from allonym.server.access import COOKIE, Caller
from allonym.server.routes.parameters import Admin, AnyServices, Limit, Name, SignedIn
from allonym.server.services import Services
from allonym.server.wire import accounts as wire

router = APIRouter(prefix="/v1", tags=["accounts"])
Token = Annotated[str | None, Cookie(alias=COOKIE)]


@router.post("/setup", status_code=201, summary="Make an account by a one-time link")
def make_account(body: wire.Setup, services: AnyServices) -> wire.UserOut:
    """Needs no account, but the token of a link, which works once. The first start prints a link for an admin."""
    user = services.accounts.make_account(body.token, body.name, body.password)
    services.accounts.record_action(user.name, f"account made: {user.role}")
    return user


@router.post("/session", summary="Sign in")
def sign_in(body: wire.SignIn, response: Response, services: AnyServices) -> wire.Session:
    """Set a cookie, for pages. Programs use API keys."""
    token = services.accounts.sign_in(body.name, body.password)
    return _describe_session(set_session_cookie(response, token, services), services)


@router.post("/session/link", summary="Sign in by the link of a local server")
def sign_in_by_link(body: wire.SignInLink, response: Response, services: AnyServices) -> wire.Session:
    """Needs no account, but the token of the link that `allonym serve --local` printed."""
    token = services.accounts.sign_in_by_local_link(body.token)
    return _describe_session(set_session_cookie(response, token, services), services)


@router.get("/session/ways", summary="Ways to sign in")
def list_ways(services: AnyServices) -> wire.Ways:
    """Open to anybody: the page for signing in asks for it."""
    issuer = services.settings.oidc_name if services.single_sign_on else None
    return wire.Ways(local=services.settings.local, issuer=issuer)


@router.get("/session", summary="Caller is signed in")
def get_session(caller: SignedIn, services: AnyServices) -> wire.Session:
    """The caller, their permissions, and the token that unsafe requests of a session need."""
    return _describe_session(caller, services)


@router.delete("/session", status_code=204, summary="Sign out")
def sign_out(caller: SignedIn, services: AnyServices, token: Token = None) -> Response:
    """End the session."""
    if token:
        services.accounts.sign_out(token)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=services.settings.is_reached_by_tls)
    return response


@router.put("/session/password", status_code=204, summary="Change one's password")
def change_password(body: wire.NewPassword, caller: SignedIn, services: AnyServices) -> None:
    """All of the caller's sessions end."""
    services.accounts.change_own_password(caller, body.old, body.new)
    services.accounts.record_action(caller, "password changed")


@router.get("/users", summary="All users")
def list_users(caller: Admin, services: AnyServices) -> wire.Users:
    """All users, by name."""
    return wire.Users(users=services.accounts.list_users())


@router.patch("/users/{name}", summary="Change a user")
def change_user(name: Name, body: wire.UserChange, caller: Admin, services: AnyServices) -> wire.UserOut:
    """Give a user another role, or deactivate the account."""
    user = services.accounts.change_user(name, role=body.role, active=body.active)
    services.accounts.record_action(caller, f"user changed: {name}")
    return user


@router.delete("/users/{name}", status_code=204, summary="Remove a user")
def remove_user(name: Name, caller: Admin, services: AnyServices) -> None:
    """Remove a user with sessions, keys, jobs with their files, and unfinished reviews. Their scopes stay, without an
    owner."""
    user = services.accounts.remove_user(name)
    services.jobs.remove_user_jobs(user)
    services.queue.remove_unfinished_readings(user)
    services.scopes.remove_user(user)
    services.file_projects.remove_unfinished_readings(user)
    services.accounts.record_action(caller, f"user removed: {name}")


@router.post("/invitations", status_code=201, summary="Invite somebody")
def invite_user(body: wire.Invite, caller: Admin, services: AnyServices) -> wire.Invitation:
    """A link with which one person makes one account, within a day. This needs a session; an API key will not do."""
    if caller.key is not None:
        raise RequestError("an API key cannot invite anybody; sign in", 403, "NotAllowed")
    token, expires = services.accounts.make_account_link(body.role)
    services.accounts.record_action(caller, f"invited: {body.role}")
    return wire.Invitation(link=f"{services.url}/#/setup?token={token}", role=body.role, expires=expires)


@router.get("/keys", summary="API keys")
def list_keys(caller: SignedIn, services: AnyServices) -> wire.Keys:
    """The caller's own keys; admins see all. The token of a key is never shown again."""
    return wire.Keys(keys=services.accounts.list_api_keys(caller))


@router.post("/keys", status_code=201, summary="Make an API key")
def make_key(body: wire.NewKey, caller: SignedIn, services: AnyServices) -> wire.KeyMade:
    """Make a key with permissions that the caller has, in a session. The token is in this response and nowhere else."""
    token, key = services.accounts.make_api_key(caller, body.name, body.permissions, body.days)
    services.accounts.record_action(caller, f"key made: {body.name}")
    return wire.KeyMade(key=token, **key.model_dump())


@router.delete("/keys/{name}", status_code=204, summary="Remove an API key")
def remove_key(
    name: Name, caller: SignedIn, services: AnyServices, owner: Annotated[str | None, Query(max_length=64)] = None
) -> None:
    """The key stops working at once."""
    services.accounts.remove_api_key(caller, name, owner)
    services.accounts.record_action(caller, f"key removed: {name}")


@router.get("/audit", summary="The audit log")
def list_actions(
    caller: Admin,
    services: AnyServices,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Limit = 200,
) -> wire.Audit:
    """Caller did what, newest first; no text. The vault has its own log of what was restored: `allonym vault audit`."""
    return wire.Audit(entries=services.accounts.list_audit_lines(before, limit))


def set_session_cookie(response: Response, token: str, services: Services) -> Caller:
    """Set the cookie of a new session, and return whose it is. The audit log says that they signed in."""
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(services.settings.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=services.settings.is_reached_by_tls,
    )
    caller = services.accounts.find_caller(token, is_key=False)
    assert caller is not None
    services.accounts.record_action(caller, "signed in")
    return caller


def _describe_session(caller: Caller, services: Services) -> wire.Session:
    permissions, issuer, leave = sorted(caller.permissions), services.single_sign_on, None
    if issuer is not None and caller.key is None and services.accounts.is_known_to_issuer(caller):
        leave = issuer.make_sign_out_url(f"{services.url}/")
    return wire.Session(
        name=caller.name, role=caller.role, permissions=permissions, csrf=caller.csrf or None, sign_out=leave
    )

"""Users, sessions, invitations, API keys, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Cookie, Depends, Path, Query, Request, Response

from allonym.errors import RequestError
from allonym.server.access import COOKIE, Who, needs, services_of
from allonym.server.accounts import Key, User
from allonym.server.services import Services
from allonym.server.wire import accounts as wire

router = APIRouter(prefix="/v1", tags=["accounts"])
Within = Annotated[Services, Depends(services_of)]
Name = Annotated[str, Path(min_length=1, max_length=64)]


@router.post("/setup", status_code=201, summary="Make an account by a one-time link")
def setup(body: wire.Setup, services: Within) -> wire.UserOut:
    """Needs no account, but the token of a link, which works once. The first start prints one for an admin."""
    user = services.accounts.setup(body.token, body.name, body.password)
    services.accounts.record(user.name, f"account made: {user.role}")
    return _user(user)


@router.post("/session", summary="Sign in")
def sign_in(body: wire.SignIn, response: Response, services: Within) -> wire.Session:
    """For pages: sets a cookie. Programs use API keys."""
    token = services.accounts.sign_in(body.name, body.password)
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(services.settings.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=services.settings.secure,
    )
    found = services.accounts.by_session(token)
    assert found is not None
    services.accounts.record(found[0], "signed in")
    return _session(*found)


@router.get("/session", summary="Who is signed in")
def session(
    who: Annotated[Who, needs()], services: Within, token: Annotated[str | None, Cookie(alias=COOKIE)] = None
) -> wire.Session:
    """Who calls, what they may do, and the token that unsafe requests of a session need."""
    found = services.accounts.by_session(token) if token and who.key is None else None
    return _session(who, found[1] if found else None)


@router.delete("/session", status_code=204, summary="Sign out")
def sign_out(
    who: Annotated[Who, needs()], services: Within, token: Annotated[str | None, Cookie(alias=COOKIE)] = None
) -> Response:
    """End the session."""
    if token:
        services.accounts.sign_out(token)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=services.settings.secure)
    return response


@router.put("/session/password", status_code=204, summary="Change one's password")
def password(body: wire.NewPassword, who: Annotated[Who, needs()], services: Within) -> Response:
    """All one's sessions end."""
    services.accounts.set_password(who, body.old, body.new)
    services.accounts.record(who, "password changed")
    return Response(status_code=204)


@router.get("/users", summary="All users")
def users(who: Annotated[Who, needs("admin")], services: Within) -> wire.Users:
    """All users, by name."""
    return wire.Users(users=[_user(one) for one in services.accounts.users()])


@router.patch("/users/{name}", summary="Change a user")
def change(name: Name, body: wire.UserChange, who: Annotated[Who, needs("admin")], services: Within) -> wire.UserOut:
    """Another role, or let them in no more."""
    user = services.accounts.change(name, role=body.role, active=body.active)
    services.accounts.record(who, f"user changed: {name}")
    return _user(user)


@router.delete("/users/{name}", status_code=204, summary="Remove a user")
def remove(name: Name, who: Annotated[Who, needs("admin")], services: Within) -> Response:
    """With sessions, keys, jobs with their files, and the reviews that they had not ended."""
    user = services.accounts.remove(name)
    services.jobs.forget(user)
    services.queue.forget(user)
    services.accounts.record(who, f"user removed: {name}")
    return Response(status_code=204)


@router.post("/invitations", status_code=201, summary="Invite somebody")
def invite(
    body: wire.Invite, who: Annotated[Who, needs("admin")], services: Within, request: Request
) -> wire.Invitation:
    """A link by which one person makes an account, once, within a day. It takes a session: an API key makes nobody."""
    if who.key is not None:
        raise RequestError("a key invites nobody; sign in", 403, "NotAllowed")
    token, expires = services.accounts.invite(body.role)
    services.accounts.record(who, f"invited: {body.role}")
    return wire.Invitation(link=f"{services.url}/#/setup?token={token}", role=body.role, expires=expires)


@router.get("/keys", summary="API keys")
def keys(who: Annotated[Who, needs()], services: Within) -> wire.Keys:
    """One's own; admins see all. What a key consists of is never shown again."""
    return wire.Keys(keys=[_key(one) for one in services.accounts.keys(who)])


@router.post("/keys", status_code=201, summary="Make an API key")
def make_key(body: wire.NewKey, who: Annotated[Who, needs()], services: Within) -> wire.KeyMade:
    """With permissions that one has oneself, in a session. The key is in this response and nowhere else."""
    token, made = services.accounts.make_key(who, body.name, body.permissions, body.days)
    services.accounts.record(who, f"key made: {body.name}")
    return wire.KeyMade(key=token, **_key(made).model_dump())


@router.delete("/keys/{name}", status_code=204, summary="Remove an API key")
def remove_key(
    name: Name,
    who: Annotated[Who, needs()],
    services: Within,
    owner: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """It works no more."""
    services.accounts.remove_key(who, name, owner)
    services.accounts.record(who, f"key removed: {name}")
    return Response(status_code=204)


@router.get("/audit", summary="The audit log")
def audit(
    who: Annotated[Who, needs("admin")],
    services: Within,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> wire.Audit:
    """Who did what, newest first; no text. What the vault restored is in its own log too: `allonym vault audit`."""
    rows = [
        wire.AuditLine(number=number, time=one.time, actor=one.actor, action=one.action, counts=dict(one.counts))
        for number, one in services.accounts.entries(before, limit)
    ]
    return wire.Audit(entries=rows)


def _session(who: Who, csrf: str | None) -> wire.Session:
    return wire.Session(name=who.name, role=who.role, permissions=sorted(who.permissions), csrf=csrf)


def _user(user: User) -> wire.UserOut:
    return wire.UserOut(name=user.name, role=user.role, active=user.active, created=user.created)


def _key(key: Key) -> wire.KeyOut:
    return wire.KeyOut(
        name=key.name,
        owner=key.owner,
        permissions=list(key.permissions),
        created=key.created,
        expires=key.expires,
        used=key.used,
    )

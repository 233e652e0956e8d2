"""Scopes of the vault: who may use them."""

from __future__ import annotations

from fastapi import APIRouter

from allonym.server.routes.parameters import AnyServices, SignedIn
from allonym.server.wire import accounts as wire

router = APIRouter(prefix="/v1", tags=["scopes"])


@router.get("/scopes", summary="Scopes and their users")
def list_scopes(caller: SignedIn, services: AnyServices) -> wire.ScopesOut:
    """The scopes that the caller may use; all of them for an admin. Whoever first writes into a scope owns it."""
    return wire.ScopesOut(scopes=services.scopes.list_scopes(caller))


@router.post("/scopes/grants", status_code=204, summary="Let a user into a scope")
def grant_scope(body: wire.ScopeUser, caller: SignedIn, services: AnyServices) -> None:
    """The user may then write into the scope, and restore from it with the permission `restore`. For the scope's owner,
    in a session, and for admins, who need a grant themselves to restore from a scope of others."""
    services.scopes.grant_scope(caller, body.scope, body.user)
    services.accounts.record_action(caller, f"scope granted to {body.user}")


@router.post("/scopes/withdrawals", status_code=204, summary="Take a scope from a user")
def withdraw_scope(body: wire.ScopeUser, caller: SignedIn, services: AnyServices) -> None:
    """The user may use the scope no longer. For its owner, who stays, and for admins."""
    services.scopes.withdraw_scope(caller, body.scope, body.user)
    services.accounts.record_action(caller, f"scope withdrawn from {body.user}")

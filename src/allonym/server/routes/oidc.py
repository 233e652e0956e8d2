"""Single sign-on by OpenID Connect. Both routes are for browsers, which they send on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Cookie, Request
from fastapi.responses import RedirectResponse

from allonym.errors import AllonymError, RequestError
from allonym.server.oidc import COOKIE, FLOW_SECONDS, SingleSignOn
from allonym.server.routes.accounts import set_session_cookie
from allonym.server.routes.parameters import AnyServices
from allonym.server.services import Services

router = APIRouter(prefix="/v1/oidc", tags=["accounts"])
_PATH = "/v1/oidc"


@router.get("/start", status_code=303, summary="Go to the issuer", response_class=RedirectResponse)
def begin_single_sign_on(services: AnyServices) -> RedirectResponse:
    """Send the browser to the issuer, with a cookie that its answer has to meet."""
    issuer = _get_single_sign_on(services)
    try:
        address, flow = issuer.begin_flow(_make_redirect_url(services))
    except RequestError as error:
        return _send_to_sign_in(services, error)
    response = RedirectResponse(address, 303)
    response.set_cookie(
        COOKIE,
        flow,
        max_age=FLOW_SECONDS,
        path=_PATH,
        httponly=True,
        samesite="lax",  # the issuer's page leads back here
        secure=services.settings.is_reached_by_tls,
    )
    return response


@router.get("/callback", status_code=303, summary="Come back from the issuer", response_class=RedirectResponse)
def finish_single_sign_on(
    request: Request, services: AnyServices, flow: Annotated[str, Cookie(alias=COOKIE)] = ""
) -> RedirectResponse:
    """Begin a session for whom the issuer names, or send the browser to the page for signing in with a word why not."""
    issuer = _get_single_sign_on(services)
    try:
        identity = issuer.finish_flow(request.query_params, flow, _make_redirect_url(services))
        token = services.accounts.sign_in_by_issuer(issuer.issuer, identity.subject, identity.name, identity.role)
    except AllonymError as error:
        return _send_to_sign_in(services, error)
    response = RedirectResponse(f"{services.url}/", 303)
    response.delete_cookie(COOKIE, path=_PATH)
    set_session_cookie(response, token, services)
    return response


def _get_single_sign_on(services: Services) -> SingleSignOn:
    if services.single_sign_on is None:
        raise RequestError("this server has no single sign-on; see the setting oidc_issuer", 404, "NotFound")
    return services.single_sign_on


def _make_redirect_url(services: Services) -> str:
    return f"{services.url}{_PATH}/callback"


def _send_to_sign_in(services: Services, error: AllonymError) -> RedirectResponse:
    """Send the browser to the page for signing in, which has a sentence for each code. A cookie of a flow ends."""
    code = getattr(error, "code", None) or type(error).__name__
    response = RedirectResponse(f"{services.url}/#/signin?refused={code}", 303)
    response.delete_cookie(COOKIE, path=_PATH)
    return response

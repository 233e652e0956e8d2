"""Single sign-on by OpenID Connect: the authorization code flow with PKCE, and the claims that decide on a role.

Nothing that the issuer sends is stored or logged but the name, the role, and a digest of who it is.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from allonym.errors import AllonymError, RequestError, UsageError, require_extra
from allonym.server.access import ROLES
from allonym.server.database import Sealing, get_unix_time
from allonym.server.settings import Settings, is_tls_or_loopback

log = logging.getLogger("allonym.server")

COOKIE = "allonym_oidc"
FLOW_SECONDS = 600
"""How long somebody may take at the issuer."""

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. ``none``, and codes that the client's secret makes, are no proof of the issuer."""

_PUBLIC = ("RSA", "EC", "OKP")  # kinds of keys
_TIMEOUT = 10.0
_METADATA_SECONDS = 3600.0
_RETRY_SECONDS = 15.0  # before an issuer that did not answer is asked again
_KEYS_SECONDS = 30.0  # least time between two requests for the issuer's keys
_LEEWAY = 60  # seconds that clocks may differ
_PURPOSE = "oidc flow"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signs in, as the issuer says.

    Attributes:
        subject: the issuer's name for the person, which never changes.
        name: for people.
        role: one of ``ROLES``.
    """

    subject: str = field(repr=False)
    name: str
    role: str


class SingleSignOn:
    """The issuer that the settings name.

    Args:
        settings: of the server, with ``oidc_issuer``.
        sealing: for the cookie of a flow that waits for the issuer's answer.

    Raises:
        MissingExtra: the extra ``oidc`` is not installed.
        UsageError: there is no file with the client's secret.
    """

    def __init__(self, settings: Settings, sealing: Sealing) -> None:
        with require_extra("single sign-on", "oidc"):
            import httpx
            from authlib.integrations.httpx_client import OAuth2Client
            from joserfc.jwk import KeySet

        self._settings, self._sealing = settings, sealing
        self.issuer = settings.oidc_issuer
        self._roles = dict(pair.rpartition("=")[::2] for pair in settings.oidc_roles)
        self._secret = _read_client_secret(settings.oidc_secret_file)
        self._make_client, self._http, self._key_set = OAuth2Client, httpx.Client, KeySet
        self._lock = threading.Lock()
        self._metadata: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._keys: tuple[float, Any] = (0.0, None)

    def begin_flow(self, redirect_url: str) -> tuple[str, str]:
        """Return the address at the issuer to send a browser to, and the sealed cookie that its answer has to meet.

        Raises:
            RequestError: the issuer does not answer (503).
        """
        flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        with self._open_client(redirect_url) as client:
            address, _ = client.create_authorization_url(
                self._get_endpoint("authorization_endpoint"),
                state=flow["state"],
                code_verifier=flow["verifier"],
                nonce=flow["nonce"],
            )
        sealed = self._sealing.seal_json({**flow, "until": get_unix_time() + FLOW_SECONDS}, _PURPOSE)
        return str(address), urlsafe_b64encode(sealed).decode()

    def finish_flow(self, answer: Mapping[str, str], cookie: str, redirect_url: str) -> Identity:
        """Return who signs in, from the issuer's answer and the cookie of the flow.

        Args:
            answer: the parameters of the address that the issuer sent the browser to.
            cookie: as :meth:`begin_flow` gave it.
            redirect_url: the same.

        Raises:
            RequestError: the answer belongs to no flow of this browser, the issuer refused, or its token is not valid
                (403); the person has no role here (403 NoRole); or the issuer does not answer (503).
        """
        flow = self._unseal_flow(cookie)
        if not compare_digest(answer.get("state", "").encode(), flow["state"].encode()):
            raise _refuse("state")
        if answer.get("iss", self.issuer) != self.issuer:
            raise _refuse("issuer of the answer")
        if "error" in answer or not answer.get("code"):
            raise _refuse("refusal by the issuer")
        try:
            with self._open_client(redirect_url) as client:
                token = client.fetch_token(
                    self._get_endpoint("token_endpoint"),
                    grant_type="authorization_code",
                    code=answer["code"],
                    code_verifier=flow["verifier"],
                )
            claims = self._verify_id_token(str(token.get("id_token") or ""), flow["nonce"])
        except AllonymError:
            raise
        except Exception as error:  # Authlib's, httpx's and joserfc's; their messages may quote a token
            raise _refuse(type(error).__name__) from None
        return self._make_identity(claims)

    def make_sign_out_url(self, back: str) -> str | None:
        """Return the address at the issuer that ends the session there too; None where it has none, or is away."""
        try:
            endpoint = self._load_metadata().get("end_session_endpoint")
        except RequestError:  # whoever is signed in here does not need it
            return None
        if not isinstance(endpoint, str) or not is_tls_or_loopback(endpoint):
            return None
        query = urlencode({"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": back})
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    def _open_client(self, redirect_url: str) -> Any:
        return self._make_client(
            self._settings.oidc_client_id,
            self._secret,
            token_endpoint_auth_method="client_secret_basic" if self._secret else "none",
            scope=" ".join(("openid", *self._settings.oidc_scopes)),
            redirect_uri=redirect_url,
            code_challenge_method="S256",
            timeout=_TIMEOUT,
        )

    def _unseal_flow(self, cookie: str) -> dict[str, Any]:
        try:
            flow: dict[str, Any] = self._sealing.unseal_json(urlsafe_b64decode(cookie.encode()), _PURPOSE)
        except (ValueError, AllonymError):
            raise _refuse("cookie") from None
        if flow["until"] < get_unix_time():
            raise _refuse("time")
        return flow

    def _verify_id_token(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of a token of the issuer's for this client and flow. Raises joserfc's errors."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError

        try:
            claims = jwt.decode(id_token, self._load_keys(), algorithms=_ALGORITHMS).claims
        except InvalidKeyIdError:  # the issuer has new keys
            claims = jwt.decode(id_token, self._load_keys(again=True), algorithms=_ALGORITHMS).claims
        client = self._settings.oidc_client_id
        required: dict[str, Any] = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": client},
            "nonce": {"essential": True, "value": nonce},
            **{name: {"essential": True} for name in ("sub", "exp", "iat")},
        }
        jwt.JWTClaimsRegistry(leeway=_LEEWAY, **required).validate(claims)
        audience = claims["aud"]
        is_for_several = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if is_for_several else client) != client:
            raise _refuse("authorised party")
        return claims

    def _make_identity(self, claims: Mapping[str, Any]) -> Identity:
        value: Any = claims
        for part in self._settings.oidc_role_claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        values = value if isinstance(value, list) else [value]
        roles = {self._roles[each] for each in values if isinstance(each, str) and each in self._roles}
        name = claims.get(self._settings.oidc_user_claim)
        if not roles:
            raise RequestError("this account has no role here; ask an admin", 403, "NoRole")
        if not isinstance(name, str) or not claims["sub"]:
            raise _refuse("claim with the name")
        return Identity(claims["sub"], name, max(roles, key=list(ROLES).index))

    def _get_endpoint(self, name: str) -> str:
        endpoint = self._load_metadata().get(name)
        if not isinstance(endpoint, str) or not is_tls_or_loopback(endpoint):
            raise _report_unusable_issuer(name)
        return endpoint

    def _load_metadata(self) -> Mapping[str, Any]:
        """Return what the issuer says of itself, by OpenID Connect Discovery."""
        with self._lock:
            until, metadata = self._metadata
            if time.monotonic() >= until:
                self._metadata = (time.monotonic() + _RETRY_SECONDS, metadata)  # while it does not answer
                metadata = self._fetch_json(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
                if metadata.get("issuer") != self.issuer:
                    raise _report_unusable_issuer("issuer")
                self._metadata = (time.monotonic() + _METADATA_SECONDS, metadata)
            return metadata

    def _load_keys(self, *, again: bool = False) -> Any:
        """Return the issuer's public keys; ``again``: not those that are known, unless they were fetched just now."""
        address = self._get_endpoint("jwks_uri")
        with self._lock:
            fetched, keys = self._keys
            if keys is None or (again and time.monotonic() - fetched > _KEYS_SECONDS):
                rows = self._fetch_json(address).get("keys")
                public = [row for row in rows or () if row.get("kty") in _PUBLIC and row.get("use") != "enc"]
                keys = self._key_set.import_key_set({"keys": public})
                self._keys = (time.monotonic(), keys)
            return keys

    def _fetch_json(self, address: str) -> dict[str, Any]:
        try:
            with self._http(timeout=_TIMEOUT) as client:
                value = client.get(address, headers={"accept": "application/json"}).raise_for_status().json()
        except Exception as error:  # httpx's, or no JSON
            raise _report_unusable_issuer(type(error).__name__) from None
        if not isinstance(value, dict):
            raise _report_unusable_issuer("no JSON object")
        return value


def _read_client_secret(path: str) -> str | None:
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"oidc_secret_file: {path} cannot be read") from None


def _refuse(what: str) -> RequestError:
    log.warning("single sign-on refused: %s", what)
    return RequestError("single sign-on did not work; try again", 403, "Refused")


def _report_unusable_issuer(what: str) -> RequestError:
    log.error("the issuer of single sign-on cannot be used: %s", what)
    return RequestError("the issuer of single sign-on does not answer as it should", 503, "IssuerFailed")

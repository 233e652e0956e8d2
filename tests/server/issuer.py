"""An issuer of single sign-on on loopback, which can also do what an attacker would."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

CLIENT = "allonym-test"


class Issuer:
    """Signs in whoever comes as ``person``.

    Attributes:
        url: where it is.
        person: the claims of the token.
        change: called with header, claims and key of each token before it is signed; returns them.
        metadata: what is changed in the description of the issuer.
        answer: what is changed in the parameters of the way back; None removes one.
        secret: that the client has to prove; None: it is public.
    """

    def __init__(self) -> None:
        self.url = ""
        self.keys = {"one": RSAKey.generate_key(2048, parameters={"kid": "one"}, private=True)}
        self.codes: dict[str, dict[str, str]] = {}
        self.reset()

    def reset(self) -> None:
        """Behave again."""
        self.person: dict[str, Any] = {"sub": "248289", "preferred_username": "pam", "groups": ["staff"]}
        self.change: Any = lambda header, claims, key: (header, claims, key)
        self.metadata: dict[str, Any] = {}
        self.answer: dict[str, str | None] = {}
        self.secret: str | None = None
        self.tokens: list[str] = []
        self.signing = "one"

    def describe(self, request: Request) -> JSONResponse:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        described = {"issuer": self.url, "end_session_endpoint": f"{self.url}/leave"}
        return JSONResponse({**described, **{k: f"{self.url}/{v}" for k, v in paths.items()}, **self.metadata})

    def list_keys(self, request: Request) -> JSONResponse:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys.values()]})

    def authorize(self, request: Request) -> RedirectResponse:
        asked = dict(request.query_params)
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256" and asked["nonce"]
        assert asked["client_id"] == CLIENT and "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}-{time.monotonic_ns()}"
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.url, **self.answer}
        sent = {name: value for name, value in answer.items() if value is not None}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(sent)}", 302)

    async def give_token(self, request: Request) -> JSONResponse:
        form = await request.form()
        asked = self.codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if self.secret is not None:
            proof = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
            if request.headers.get("authorization") != f"Basic {proof}":
                return JSONResponse({"error": "invalid_client"}, 401)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"], **self.person}
        token = sign(*self.change({"alg": "RS256", "kid": self.signing}, claims, self.keys[self.signing]))
        self.tokens += [token, "access-token-of-the-issuer"]
        return JSONResponse({"access_token": self.tokens[-1], "token_type": "Bearer", "id_token": token})


def sign(header: dict[str, Any], claims: dict[str, Any], key: Any) -> str:
    """Return a token, also one that no library would make: without a signature, or with the public key as a secret."""
    claims = {name: value for name, value in claims.items() if value is not None}
    if header["alg"] == "none":
        parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
        return ".".join((*parts, ""))
    if header["alg"] == "HS256":
        key = OctKey.import_key(key.as_pem(private=False) if isinstance(key, (RSAKey, ECKey)) else key)
    return jwt.encode(header, claims, key, algorithms=[header["alg"]])


@contextmanager
def run_issuer() -> Iterator[Issuer]:
    """An issuer on a free port of loopback."""
    issuer = Issuer()
    app = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", issuer.describe),
            Route("/keys", issuer.list_keys),
            Route("/authorize", issuer.authorize),
            Route("/token", issuer.give_token, methods=["POST"]),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    issuer.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield issuer
    finally:
        server.should_exit = True
        thread.join(30)

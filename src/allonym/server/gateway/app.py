"""The gateway as an ASGI app: who may ask, under which policy, and the way of a request there and back."""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
from anyio import CancelScope
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from allonym.server.gateway.answering import parsed, restored, streamed
from allonym.server.gateway.asking import ENDPOINTS, Asked, Asking, Endpoint
from allonym.server.gateway.log import Line
from allonym.server.gateway.reading import MODEL
from allonym.server.gateway.refusal import Refusal, Unanswered, answer, lost, status_of
from allonym.server.gateway.settings import Client, Settings, digest_of
from allonym.server.gateway.sse import dumped
from allonym.server.gateway.upstream import KEYS, Upstream, media_type, returned

if TYPE_CHECKING:
    from allonym.vault import Vault

_CONVERSATION = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")
_VERSION = re.compile(r"[A-Za-z0-9.\-]{1,32}")
_LOCAL = ("localhost", "127.0.0.1", "::1")


def create_app(settings: Settings, *, vault: Vault | None = None, key: bytes | str | None = None) -> Starlette:
    """The gateway as an ASGI app.

    Args:
        settings: see :class:`Settings`.
        vault: an open vault for conversations; it stays the caller's to close.
        key: secret of keyed operators; by default the vault's own.

    Raises:
        UsageError: the settings or a policy are not valid, or a key is missing.
    """
    gateway = Gateway(settings, vault, key)
    app = Starlette(
        routes=[
            Route("/healthz", _health, methods=["GET"]),
            Route("/v1/models", gateway.models, methods=["GET"]),
            Route("/v1/models/{name:path}", gateway.models, methods=["GET"]),
            *(Route(f"/v1/{one.path}", gateway.route(one), methods=["POST"]) for one in ENDPOINTS),
        ],
        lifespan=gateway.running,
        exception_handlers={HTTPException: _not_offered},
    )
    app.router.redirect_slashes = False
    return app


class Gateway:
    """What all requests share.

    Args:
        settings, vault, key: as in :func:`create_app`.
    """

    def __init__(self, settings: Settings, vault: Vault | None, key: bytes | str | None) -> None:
        self._settings = settings
        self._vault = vault
        threads = settings.threads or os.cpu_count() or 1
        self._asking = Asking(settings, vault, key, threads)
        self._clients = {one.key_sha256: one for one in settings.clients}
        self._hosts = (*_LOCAL, *settings.hosts)
        self._pool = ThreadPoolExecutor(threads, "protect")
        self._upstream = Upstream(settings)

    @asynccontextmanager
    async def running(self, app: Starlette) -> AsyncIterator[None]:
        """Until the server stops."""
        async with self._upstream:
            try:
                yield
            finally:
                self._pool.shutdown(wait=False, cancel_futures=True)

    async def models(self, request: Request) -> Response:
        """The upstream's models, or one of them."""
        return await _logged(Line("GET /v1/models"), partial(self._models, request))

    async def _models(self, request: Request, line: Line) -> Response:
        self._check_host(request)
        client = self._client(request)
        line.client = client.name if client is not None else ""
        name = request.path_params.get("name", "")
        if name and not (MODEL.fullmatch(name) and all(part.strip(".") for part in name.split("/"))):
            raise Refusal("must be the name of a model", "model", "invalid_value")
        headers = self._upstream.headers(_headers(request), client, stream=False)
        path = f"models/{name}" if name else "models"
        got = await self._upstream.send("GET", path, None, headers, _version(request))
        data = await self._upstream.whole(got)
        line.write(got.status_code)
        return Response(dumped(parsed(data, got.status_code)), got.status_code, returned(got), "application/json")

    def route(self, endpoint: Endpoint) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route of an endpoint that takes text."""

        async def route(request: Request) -> Response:
            return await _logged(Line(f"POST /v1/{endpoint.path}"), partial(self._answered, endpoint, request))

        return route

    async def _answered(self, endpoint: Endpoint, request: Request, line: Line) -> Response:
        self._check_host(request)
        client = self._client(request)
        line.client = client.name if client is not None else ""
        policy = self._asking.policies[self._policy_name(request, client)]
        line.policy = policy.name
        version, scope = _version(request), self._scope(request, client)
        raw = await self._body(request)
        loop = asyncio.get_running_loop()
        asked = await loop.run_in_executor(self._pool, self._asking.asked, endpoint, raw, policy, scope)
        line.protected(asked.protected.labels, asked.milliseconds)
        headers = self._upstream.headers(_headers(request), client, stream=asked.stream)
        got = await self._upstream.send("POST", endpoint.path, asked.body, headers, version)
        try:
            return await self._given(got, asked, scope, line)
        except Exception as error:  # nothing that went out may be told as not sent
            raise lost(error) from None

    async def _given(self, got: httpx.Response, asked: Asked, scope: str, line: Line) -> Response:
        """What the client gets for the upstream's answer."""
        events = media_type(got) == "text/event-stream"
        if events and asked.stream and got.status_code == 200:
            sent = {**returned(got), "Cache-Control": "no-store"}
            return StreamingResponse(self._events(got, asked, scope, line), 200, sent, "text/event-stream")
        if events:
            await got.aclose()
            raise Unanswered("the upstream answered in events, which were not asked for")
        data = await self._upstream.whole(got)
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._pool, restored, asked, data, got.status_code)
        await self._record(asked, scope, line)
        line.restored(asked.restoring)
        line.write(got.status_code)
        return Response(made, got.status_code, returned(got), "application/json")

    async def _events(self, got: httpx.Response, asked: Asked, scope: str, line: Line) -> AsyncIterator[bytes]:
        broken: list[Exception | None] = []
        try:
            async for piece in streamed(asked, got.aiter_bytes(), self._upstream.failed, broken.append):
                yield piece
        finally:
            ended: Exception | None = broken[0] if broken else ClientDisconnect()
            with CancelScope(shield=True):  # also where the client has gone away
                await got.aclose()
                try:
                    await self._record(asked, scope, line)
                except Exception as error:  # the answer has been given: only the log can tell
                    ended = error
            line.restored(asked.restoring)
            line.write(200, ended)

    async def _record(self, asked: Asked, scope: str, line: Line) -> None:
        """Write into the vault's audit log that originals were brought back."""
        vault, actor = self._vault, line.client or "gateway"
        if scope and vault is not None:
            counts = {"restored": asked.restoring.restored, "unknown": asked.restoring.unknown}
            await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: vault.record("restore", scope=scope, actor=actor, counts=counts)
            )

    # What came

    async def _body(self, request: Request) -> bytes:
        most, seconds = int(self._settings.max_body_mb * (1 << 20)), self._settings.body_timeout
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal("Content-Type must be application/json", "", "unsupported_media_type", 415)
        told = request.headers.get("content-length", "")
        size = int(told) if told.isdigit() else 0
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(seconds):
                if size <= most:
                    size = 0
                    async for piece in request.stream():
                        pieces.append(piece)
                        size += len(piece)
                        if size > most:
                            break
        except TimeoutError:
            raise Refusal(f"the request did not arrive within {seconds:g} s", "", "too_slow", 408) from None
        except ClientDisconnect:
            raise Refusal("the client went away", "", "gone") from None
        if size > most:
            raise Refusal(f"the body is larger than {self._settings.max_body_mb:g} MiB", "", "too_large", 413)
        return b"".join(pieces)

    def _check_host(self, request: Request) -> None:
        """A page from elsewhere must not reach the gateway under a name of its own."""
        if self._settings.loopback and request.url.hostname not in self._hosts:
            raise Refusal("this host name is not served; the setting 'hosts' can add it", "", "unknown_host", 421)

    def _client(self, request: Request) -> Client | None:
        """Whose key the request has; None where the settings have no clients."""
        if not self._clients:
            return None
        given = request.headers.get("x-allonym-key", "")
        if not given:
            kind, _, given = request.headers.get("authorization", "").partition(" ")
            given = given.strip() if kind.lower() == "bearer" else ""
        digest = digest_of(given)
        for known, client in self._clients.items():
            if given and hmac.compare_digest(known, digest):
                return client
        raise Refusal("a key of this gateway is required: Authorization: Bearer KEY", "", "invalid_api_key", 401)

    def _policy_name(self, request: Request, client: Client | None) -> str:
        own = (client.policy if client is not None else "") or self._settings.policy
        allowed = (client.policies if client is not None else ()) or self._settings.policies
        name = request.headers.get("x-allonym-policy", "")
        called = {self._asking.policies[one].name: one for one in (*allowed[::-1], own)}
        if name and name not in called:
            shown = ", ".join(sorted(called))
            raise Refusal(f"this policy may not be chosen; allowed are: {shown}", "X-Allonym-Policy", "unknown_policy")
        return called[name] if name else own

    def _scope(self, request: Request, client: Client | None) -> str:
        """The vault's scope for the request's conversation; who has another key never reaches into it."""
        name, where = request.headers.get("x-allonym-conversation", ""), "X-Allonym-Conversation"
        if not name:
            return ""
        if self._vault is None:
            raise Refusal("needs a vault, which this gateway does not have", where, "vault_required")
        if not _CONVERSATION.fullmatch(name):
            raise Refusal("must be 1 to 128 letters, digits, '_', '-', '.' and ':'", where, "invalid_value")
        if client is not None:
            return f"gateway/{client.scope or client.name}/{name}"
        whose = "\n".join(request.headers.get(one, "") for one in KEYS)
        return f"gateway/{hmac.digest(self._asking.secret, whose.encode(), 'sha256').hex()[:16]}/{name}"


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _not_offered(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    offered = ", ".join(f"POST /v1/{one.path}" for one in ENDPOINTS)
    message = f"the gateway does not offer this; nothing was sent. It offers {offered}, GET /v1/models"
    refusal = Refusal(message, "", "not_offered", error.status_code)
    Line(f"{request.method} (not offered)").write(error.status_code, refusal)
    return answer(refusal)


async def _logged(line: Line, answered: Callable[[Line], Coroutine[Any, Any, Response]]) -> Response:
    """The answer; of an error, whatever it is, the client gets one shape and the log no text."""
    try:
        return await answered(line)
    except Exception as error:  # such as a mistake of ours
        line.write(status_of(error), error)
        return answer(error)


def _headers(request: Request) -> Mapping[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _version(request: Request) -> str:
    """The one thing that may stand behind a path: which version of the API is meant."""
    for name, value in request.query_params.multi_items():
        if name != "api-version" or not _VERSION.fullmatch(value):
            raise Refusal("only api-version may stand behind the path", "", "unknown_parameter")
    return request.query_params.get("api-version", "")

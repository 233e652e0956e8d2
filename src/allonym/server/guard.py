"""What stands before every route: host names, limits on size, rate and time, security headers, the access log, metrics.

Plain ASGI, so that bodies stream through it. It sees no text: it counts bytes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from allonym.errors import RequestError
from allonym.server.metrics import Metrics
from allonym.server.problems import problem
from allonym.server.settings import MB, Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("allonym.access")

UPLOADS = ("/v1/jobs", "/v1/files/")
"""Where files are sent."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self' blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
)
_CLIENTS = 10_000
_SIGN_IN = ("/v1/session", "/v1/setup", "/v1/study/")
_TRIES = 20
"""Tries a minute to get in by password or link, from one address."""


class Guard:
    """Middleware before all routes.

    Args:
        app: what it stands before.
        settings: limits and names.
        metrics: where requests are counted.
    """

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._hosts = {"localhost", "127.0.0.1", "[::1]", settings.host.lower(), *(h.lower() for h in settings.hosts)}
        if settings.public_url:
            self._hosts.add((urlsplit(settings.public_url).hostname or "").lower())
        self._rate = Rate(settings.rate, max(settings.rate, 1.0) * 2)
        self._tries = Rate(_TRIES / 60, _TRIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._request(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
        except RequestError:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # its message may quote what was sent, so only its type is told
            problem(error)
            with suppress(RuntimeError):  # it may be closed already
                await send({"type": "websocket.close", "code": 1011})

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        state = {"status": 0, "bytes": 0}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                had = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in HEADERS if h[0] not in had)]
                if b"cache-control" not in had:
                    message["headers"].append((b"cache-control", b"no-store"))
                if self._settings.secure:
                    message["headers"].append((b"strict-transport-security", b"max-age=31536000"))
            elif message["type"] == "http.response.body":
                state["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            try:
                self._check(scope)
                upload = scope["path"].startswith(UPLOADS)
                bounded = self._bounded(scope, receive, upload)
                async with asyncio.timeout(None if upload else self._settings.timeout):
                    await self._app(scope, bounded, answer)
            except TimeoutError:
                raise RequestError("this took longer than the server allows", 503, "TookTooLong") from None
        except Exception as error:  # its message may quote the request, so only its type is told
            if state["status"] == 0:
                await refuse(error, answer)
            else:
                problem(error)
        finally:
            self._told(scope, state, time.perf_counter() - begun)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = _host(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._hosts:
            raise RequestError("this server is not called by that host name; see the setting hosts", 421, "WrongHost")
        address = (scope.get("client") or ("",))[0]
        who = headers.get(b"authorization") or headers.get(b"cookie") or b""
        client = address + blake2b(who, digest_size=8).hexdigest() if who else address
        if not self._rate.allows(client):
            raise RequestError(f"more than {self._settings.rate:g} requests a second", 429, "TooMany")
        unsafe = scope["type"] == "http" and scope["method"] != "GET"
        by_token = scope["path"].startswith("/v1/study/")
        tries = by_token or (unsafe and scope["path"].startswith(_SIGN_IN))
        if tries and not self._tries.allows(address):
            raise RequestError("too many tries; wait a minute", 429, "TooMany")

    def _bounded(self, scope: Scope, receive: Receive, upload: bool) -> Receive:
        most = int((self._settings.max_upload_mb if upload else self._settings.max_body_mb) * MB)
        said = dict(scope["headers"]).get(b"content-length", b"0")
        too_large = RequestError(f"a body has at most {most / MB:g} MB here", 413, "TooLarge")
        if not said.isdigit():
            raise RequestError("Content-Length is no number", 400, "InvalidRequest")
        if int(said) > most:
            raise too_large
        got = 0
        complete = False

        async def bounded() -> Message:
            nonlocal got, complete
            if complete:  # then what comes is that the client has gone, for which streams wait
                return await receive()
            try:
                async with asyncio.timeout(self._settings.body_timeout):
                    message = await receive()
            except TimeoutError:
                raise RequestError("the body of the request did not come", 408, "TooSlow") from None
            got += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if got > most:
                raise too_large
            return message

        return bounded

    def _told(self, scope: Scope, state: dict[str, int], seconds: float) -> None:
        route = str(getattr(scope.get("route"), "path", "-"))  # the pattern: a path may hold names
        self._metrics.request(scope["method"], route, state["status"], seconds)
        if self._settings.access_log:
            shown = f"{scope['method']} {route} {state['status']} {seconds * 1000:.0f} ms {state['bytes']} bytes"
            log.info("%s", shown)


async def refuse(error: Exception, send: Send) -> None:
    """Answer with an error in the one shape."""
    status, body = problem(error)
    content = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Rate:
    """A token bucket for each client.

    Args:
        each_second: tokens that come back; 0: no limit.
        most: tokens that a client can have.
    """

    def __init__(self, each_second: float, most: float) -> None:
        self._each, self._most = each_second, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        """Take a token, if there is one."""
        if not self._each:
            return True
        moment = time.monotonic()
        had, at = self._buckets.pop(client, (self._most, moment))
        left = min(self._most, had + (moment - at) * self._each)
        self._buckets[client] = (left - 1 if left >= 1 else left, moment)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return left >= 1


def _host(header: str) -> str:
    name = header.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]

"""The middleware before every route: host names, limits on size, rate and time, security headers, access log, metrics.

Plain ASGI, so that bodies stream through it. It sees no text: it counts bytes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from allonym.errors import RequestError
from allonym.server.access import SAFE, get_token_and_is_key
from allonym.server.accounts import Accounts
from allonym.server.metrics import Metrics
from allonym.server.problems import describe_error, make_error_headers
from allonym.server.quota import Quota
from allonym.server.settings import MB, Settings

log = logging.getLogger("allonym.access")

UPLOADS = ("/v1/jobs", "/v1/files/")
"""Paths that files are sent to."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self' blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "cache-control": "no-store",
}
"""Headers of every response, unless its route sets them."""

SENDER = "allonym.sender"
"""Key of an ASGI scope under which a route notes the number of the user who sends the request."""
_RECEIVED = "allonym.received"  # of its bytes

_CLIENTS = 10_000
_SIGN_IN = ("/v1/session", "/v1/setup")
_TRIES = 20  # wrong passwords, links or keys a minute from one address
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
HEAD_BYTES = 16 << 10
"""Largest head of a request."""
_ANONYMOUS_BYTES = 256 << 10  # of a body that are read before the caller is known
_LEAST_SPEED = 1024  # of an upload, in bytes a second


class Guard:
    """Middleware before all routes.

    Args:
        app: the next application.
        settings: limits and names.
        metrics: count requests.
        accounts: know keys and sessions.
        quota: counts what the users send, whom the routes note in ``scope[SENDER]``.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, accounts: Accounts, quota: Quota) -> None:
        self._app, self._settings, self._metrics, self._accounts, self._quota = app, settings, metrics, accounts, quota
        names = (settings.host, urlsplit(settings.public_url).hostname or "", *settings.hosts)
        secure = {"strict-transport-security": "max-age=31536000"} if settings.is_reached_by_tls else {}
        self._headers = {**HEADERS, **secure}
        self._hosts = {"localhost", "127.0.0.1", "::1", *map(_normalise_host, names)} - {""}
        self._rate = RateLimiter(settings.rate, max(settings.rate, 1.0) * 2)
        self._tries = RateLimiter(_TRIES / 60, _TRIES)
        pages = (*settings.cors_origins, settings.public_url)
        self._origins = frozenset(urlsplit(page).netloc.lower() for page in pages if page)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        start, state = time.perf_counter(), {"status": 0, "bytes": 0}
        handle = self._guard_socket if scope["type"] == "websocket" else self._guard_request
        try:
            await handle(scope, receive, send, state)
        finally:
            self._log_and_count_request(scope, state, time.perf_counter() - start)

    async def _guard_socket(self, scope: Scope, receive: Receive, send: Send, tally: dict[str, int]) -> None:
        async def send_message(message: Message) -> None:
            if message["type"] == "websocket.accept":
                tally["status"] = 101
            elif message["type"] == "websocket.http.response.start":
                tally["status"] = message["status"]
                if message["status"] == 401 and any(get_token_and_is_key(HTTPConnection(scope))):
                    self._tries.take_token(_get_client_address(scope))
            elif message["type"] == "websocket.close" and not tally["status"]:
                tally["status"] = 403  # as the server says it
            elif message["type"] == "websocket.send":
                tally["bytes"] += len(message.get("text") or "")
            await send(message)

        try:
            self._check_head_and_rate(scope)
            await self._app(scope, receive, send_message)
        except RequestError:
            await receive()
            await send_message({"type": "websocket.close", "code": 1008})
        except Exception as error:  # its message may quote what was sent, so only its type is shown
            describe_error(error)
            with suppress(RuntimeError):  # it may be closed already
                await send_message({"type": "websocket.close", "code": 1011})

    async def _guard_request(self, scope: Scope, receive: Receive, send: Send, tally: dict[str, int]) -> None:
        refused: list[RequestError] = []
        address = _get_client_address(scope)
        is_counted = False

        async def send_message(message: Message) -> None:
            if message["type"] == "http.response.start":
                tally["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            elif message["type"] == "http.response.body":
                tally["bytes"] += len(message.get("body", b""))
            async with asyncio.timeout(self._settings.body_timeout):  # a client that does not read is not waited for
                await send(message)

        async def send_unless_refused(message: Message) -> None:
            if not refused or tally["status"]:
                await send_message(message)

        try:
            try:
                self._check_head_and_rate(scope)
                is_counted = _is_sign_in_or_setup(scope)
                upload = scope["path"].startswith(UPLOADS)
                limited = self._limit_receive(scope, receive, upload, refused)
                async with asyncio.timeout(None if upload else self._settings.timeout):
                    await self._app(scope, limited, send_unless_refused)
                if refused and not tally["status"]:  # a route takes the end of the body for an invalid body
                    raise refused[0]
            except TimeoutError:
                raise RequestError("this took longer than the server allows", 503, "TookTooLong") from None
        except asyncio.CancelledError:
            if tally["status"] == 0:
                ending = RequestError("the server ends; try again", 503, "Ending")
                await _send_error(ending, scope, receive, send_message)
            raise
        except Exception as error:  # its message may quote the request, so only its type is shown
            if tally["status"] == 0:
                await _send_error(refused[0] if refused else error, scope, receive, send_message)
            else:
                describe_error(error)
        finally:
            self._quota.add_bytes(scope.get(SENDER, 0), scope.get(_RECEIVED, 0))
            wrong = tally["status"] == 401 or (tally["status"] in (403, 404) and _is_access_attempt(scope))
            if is_counted and not wrong:
                self._tries.take_token(address, -1)
            elif (
                wrong
                and not is_counted
                and (_is_access_attempt(scope) or any(get_token_and_is_key(HTTPConnection(scope))))
            ):
                self._tries.take_token(address)

    def _check_head_and_rate(self, scope: Scope) -> None:
        head = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if head + len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > HEAD_BYTES:
            raise RequestError(f"the head of a request has at most {HEAD_BYTES >> 10} KB", 431, "TooLarge")
        if "\0" in scope["path"]:  # no name of a file holds one, and older versions of Starlette fail on it
            raise RequestError("there is no such page", 404, "NotFound")
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        if _parse_host_header(host) not in self._hosts:
            raise RequestError("this server is not called by that host name; see the setting hosts", 421, "WrongHost")
        if "transfer-encoding" in headers and "content-length" in headers:  # two readers could end it in two places
            raise RequestError("a body has a length or comes in chunks, not both", 400, "InvalidRequest")
        unsafe = scope.get("method", "GET") not in SAFE
        try:
            ours = urlsplit(origin).netloc in (host, *self._origins)
        except ValueError:  # it is no address at all
            unsafe, ours = True, False
        if unsafe and origin and not ours:
            raise RequestError("the page that sends this is not one of this server's", 403, "WrongOrigin")
        address, (token, _) = _get_client_address(scope), get_token_and_is_key(HTTPConnection(scope))
        is_known = bool(token) and self._accounts.is_known_token(token)
        client = address + blake2b(token.encode(), digest_size=8).hexdigest() if is_known else address
        if not self._rate.take_token(client):
            raise RequestError(f"more than {self._settings.rate:g} requests a second", 429, "TooMany")
        doubtful, take = _is_access_attempt(scope) or (bool(token) and not is_known), _is_sign_in_or_setup(scope)
        if doubtful and not self._tries.take_token(address, int(take)):  # so that none escapes the count
            raise RequestError("too many wrong tries; wait a minute", 429, "TooMany")

    def _limit_receive(self, scope: Scope, receive: Receive, is_upload: bool, refusals: list[RequestError]) -> Receive:
        most = int((self._settings.max_upload_mb if is_upload else self._settings.max_body_mb) * MB)
        headers = Headers(scope=scope)
        if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise RequestError("send the body as it is: compressed bodies are not read", 415, "NotSupported")
        length = headers.get("content-length", "0")
        too_large = RequestError(f"a body has at most {most / MB:g} MB here", 413, "TooLarge")
        stranger = RequestError("a body of this size needs a session or an API key", 401, "NotSignedIn")
        if not (length.isascii() and length.isdigit()):
            raise RequestError("Content-Length is no number", 400, "InvalidRequest")
        if len(length) > 15 or int(length) > most:
            raise too_large
        token, _ = get_token_and_is_key(HTTPConnection(scope))
        size, start, is_complete, is_known = 0, time.monotonic(), False, self._settings.presidio_open

        async def receive_limited() -> Message:
            nonlocal size, is_complete, is_known
            if is_complete:  # the next message says that the client has gone, for which streams wait
                return await receive()
            remaining = start + self._settings.body_timeout + size / _LEAST_SPEED - time.monotonic()
            try:
                async with asyncio.timeout(min(max(remaining, 0.0), self._settings.body_timeout)):
                    message = await receive()
            except TimeoutError:
                refusals.append(RequestError("the body of the request did not come", 408, "TooSlow"))
                raise refusals[0] from None
            size += len(message.get("body", b""))
            scope[_RECEIVED] = size
            is_complete = not message.get("more_body", False)
            if size > most:
                refusals.append(too_large)
            elif size > _ANONYMOUS_BYTES and not is_known:
                is_known = bool(token) and await run_in_threadpool(self._accounts.is_valid_token, token)
                if not is_known:
                    refusals.append(stranger)
            if refusals:
                raise refusals[0]
            return message

        return receive_limited

    def _log_and_count_request(self, scope: Scope, tally: dict[str, int], seconds: float) -> None:
        route = str(getattr(scope.get("route"), "path", "-"))  # the pattern: a path may hold names
        if scope["type"] == "websocket":  # its duration says nothing of the server
            method = "WEBSOCKET"
        else:
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            self._metrics.count_request(method, route, tally["status"], seconds)
        if self._settings.access_log:
            line = f"{method} {route} {tally['status']} {seconds * 1000:.0f} ms {tally['bytes']} bytes"
            log.info("%s", line)


async def _send_error(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with an error in the one shape."""
    status, body = describe_error(error)
    headers = make_error_headers(error, status)
    if status in (400, 401, 408, 413, 431):
        headers["connection"] = "close"
    await Response(json.dumps(body), status, headers, "application/json")(scope, receive, send)


class RateLimiter:
    """A token bucket for each client.

    Args:
        each_second: tokens that come back; 0: no limit.
        most: tokens that a client can have.
    """

    def __init__(self, each_second: float, most: float) -> None:
        self._each, self._most = each_second, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take_token(self, client: str, count: int = 1) -> bool:
        """Return whether a client has a token, and take it; ``count`` 0: take none, -1: give one back."""
        if not self._each:
            return True
        moment = time.monotonic()
        tokens, since = self._buckets.pop(client, (self._most, moment))
        tokens = min(self._most, tokens + (moment - since) * self._each)
        self._buckets[client] = (min(self._most, tokens - count) if tokens >= count else tokens, moment)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return tokens >= 1


def _get_client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _is_sign_in_or_setup(scope: Scope) -> bool:
    """Whether a request sends a password or the link of a new account."""
    return scope["path"].startswith(_SIGN_IN) and scope.get("method") in ("POST", "PUT")


def _is_access_attempt(scope: Scope) -> bool:
    """Whether a request asks for access without a key or a session."""
    return _is_sign_in_or_setup(scope) or scope["path"].startswith("/v1/study/")


def _parse_host_header(header: str) -> str:
    """Return the name or address of a Host header, without the port."""
    return _normalise_host(header[: header.find("]") + 1] if header.startswith("[") else header.partition(":")[0])


def _normalise_host(host: str) -> str:
    """Return a name in lower case, an IPv6 address without brackets and in its shortest form."""
    name = host.lower().removeprefix("[").removesuffix("]")
    try:
        return str(IPv6Address(name))
    except ValueError:
        return name

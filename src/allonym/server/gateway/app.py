"""The gateway as an ASGI app: clients, policies, and the way of a request to the upstream and back."""

from __future__ import annotations

import asyncio
import hmac
import os
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from anyio import CancelScope
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from allonym.server.gateway.answering import parse_answer_or_make_error, restore_answer, restore_events
from allonym.server.gateway.passages import dump_json
from allonym.server.gateway.protect import ENDPOINTS, Endpoint, Preparer, ProtectedRequest
from allonym.server.gateway.reading import MODEL
from allonym.server.gateway.refusal import (
    LogLine,
    Refusal,
    Unanswered,
    get_error_status,
    make_error_response,
    make_lost_request_error,
)
from allonym.server.gateway.settings import Client, Settings, digest_client_key
from allonym.server.gateway.upstream import KEYS, Upstream, get_media_type, join_blocks, select_client_headers

if TYPE_CHECKING:
    from allonym.vault import Vault

T = TypeVar("T")
_CONVERSATION = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")
_VERSION = re.compile(r"[A-Za-z0-9.\-]{1,32}")
_LOCAL = ("localhost", "127.0.0.1", "::1")


def create_app(settings: Settings, *, vault: Vault | None = None, key: bytes | str | None = None) -> Starlette:
    """Make the gateway, an ASGI app.

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
            Route("/healthz", _answer_health_check, methods=["GET"]),
            Route("/v1/models", partial(gateway.answer_request, None), methods=["GET"]),
            Route("/v1/models/{name:path}", partial(gateway.answer_request, None), methods=["GET"]),
            *(Route(f"/v1/{e.path}", partial(gateway.answer_request, e), methods=["POST"]) for e in ENDPOINTS),
        ],
        lifespan=gateway.manage_lifespan,
        exception_handlers={HTTPException: _answer_unknown_path},
    )
    app.router.redirect_slashes = False
    return app


class Gateway:
    """The state that all requests share.

    Args:
        settings, vault, key: as in :func:`create_app`.
    """

    def __init__(self, settings: Settings, vault: Vault | None, key: bytes | str | None) -> None:
        self._settings = settings
        self._vault = vault
        threads = settings.threads or os.cpu_count() or 1
        self._preparer = Preparer(settings, vault, key, threads)
        self._clients = {client.key_sha256: client for client in settings.clients.values()}
        self._hosts = (*_LOCAL, *settings.hosts)
        self._pool = ThreadPoolExecutor(threads, "protect")
        self._upstream = Upstream(settings)

    @asynccontextmanager
    async def manage_lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Keep the connections open until the server stops."""
        async with self._upstream.connections:
            try:
                yield
            finally:
                self._pool.shutdown(wait=False, cancel_futures=True)

    async def answer_request(self, endpoint: Endpoint | None, request: Request) -> Response:
        """Answer a request with text, or one for the upstream's models (``endpoint`` is None). Any error has the one
        shape for the client, and no text in the log."""
        line = LogLine(f"POST /v1/{endpoint.path}" if endpoint is not None else "GET /v1/models")
        try:
            if self._settings.loopback and request.url.hostname not in self._hosts:
                # a page from elsewhere could reach the gateway under another name
                raise Refusal("this host name is not served; the setting 'hosts' can add it", "", "unknown_host", 421)
            client = self._require_known_client(request)
            line.client = client.name if client is not None else ""
            if endpoint is None:
                return await self._answer_models_request(request, client, line)
            return await self._answer_text_request(endpoint, request, client, line)
        except Exception as error:  # such as a mistake of ours
            line.write(get_error_status(error), error)
            return make_error_response(error, is_messages=endpoint is not None and endpoint.path.startswith("messages"))

    async def _answer_models_request(self, request: Request, client: Client | None, line: LogLine) -> Response:
        """Answer with the upstream's models, or one of them."""
        name = request.path_params.get("name", "")
        if name and not (MODEL.fullmatch(name) and all(part.strip(".") for part in name.split("/"))):
            raise Refusal("must be the name of a model", "model", "invalid_value")
        headers = self._upstream.make_headers(request.headers, client, stream=False)
        path = f"models/{name}" if name else "models"
        answer = await self._upstream.send("GET", path, None, headers, _read_api_version(request))
        status, data = answer.status_code, await self._upstream.read_body_and_close(answer)
        line.write(status)
        content = dump_json(parse_answer_or_make_error(data, status))
        return Response(content, status, select_client_headers(answer), "application/json")

    async def _answer_text_request(
        self, endpoint: Endpoint, request: Request, client: Client | None, line: LogLine
    ) -> Response:
        """Protect a request, send it, and return its answer with originals."""
        policy = self._preparer.policies[self._choose_policy_name(request, client)]
        line.policy = policy.name
        version, scope = _read_api_version(request), self._make_vault_scope(request, client)
        raw = await self._read_body(request)
        prepared = await self._run_in_pool(self._preparer.protect_request, endpoint, raw, policy, scope)
        line.set_protected_counts(prepared.protected.labels, prepared.milliseconds)
        is_messages = endpoint.path.startswith("messages")
        headers = self._upstream.make_headers(request.headers, client, stream=prepared.stream, is_messages=is_messages)
        answer = await self._upstream.send("POST", endpoint.path, prepared.body, headers, version)
        try:
            return await self._restore_and_log_answer(answer, prepared, scope, line)
        except Exception as error:  # an answer must not say that nothing was sent
            raise make_lost_request_error(error) from None

    async def _restore_and_log_answer(
        self, answer: httpx.Response, prepared: ProtectedRequest, scope: str, line: LogLine
    ) -> Response:
        """Return the client's answer for the upstream's."""
        has_events = get_media_type(answer.headers) == "text/event-stream"
        if has_events and prepared.stream and answer.status_code == 200:
            sent = {**_make_headers(answer, prepared), "Cache-Control": "no-store"}
            return StreamingResponse(
                self._restore_events(answer, prepared, scope, line), 200, sent, "text/event-stream"
            )
        if has_events:
            await answer.aclose()
            raise Unanswered("the upstream answered in events, which were not asked for")
        data = await self._upstream.read_body_and_close(answer)
        content = await self._run_in_pool(restore_answer, prepared, data, answer.status_code)
        await self._record_restore_in_vault(prepared, scope, line)
        line.write(answer.status_code, counts=prepared.restoring.counts)
        headers = {**_make_headers(answer, prepared), "X-Allonym-Placeholders": prepared.restoring.format_counts()}
        return Response(content, answer.status_code, headers, "application/json")

    async def _restore_events(
        self, answer: httpx.Response, prepared: ProtectedRequest, scope: str, line: LogLine
    ) -> AsyncIterator[bytes]:
        line.error = ClientDisconnect()  # until the answer has ended
        try:
            async for piece in restore_events(prepared, answer.aiter_bytes(), self._upstream.describe_failure, line):
                yield piece
        finally:
            with CancelScope(shield=True):  # also where the client has gone away
                await answer.aclose()
                try:
                    await self._record_restore_in_vault(prepared, scope, line)
                except Exception as failure:  # the answer has been sent: only the log can show it
                    line.error = failure
            line.write(200, line.error, prepared.restoring.counts)

    async def _record_restore_in_vault(self, prepared: ProtectedRequest, scope: str, line: LogLine) -> None:
        """Write into the vault's audit log that originals were restored."""
        vault, actor = self._vault, line.client or "gateway"
        if scope and vault is not None:
            counts = prepared.restoring.counts
            await self._run_in_pool(lambda: vault.record("restore", scope=scope, actor=actor, counts=counts))

    async def _run_in_pool(self, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def _read_body(self, request: Request) -> bytes:
        """Read a JSON body whole; one that is too large, too slow or no JSON by its type is refused."""
        most, seconds = int(self._settings.max_body_mb * (1 << 20)), self._settings.body_timeout
        if get_media_type(request.headers) != "application/json":
            raise Refusal("Content-Type must be application/json", "", "unsupported_media_type", 415)
        too_large = Refusal(f"the body is larger than {self._settings.max_body_mb:g} MiB", "", "too_large", 413)
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise too_large
        try:
            async with asyncio.timeout(seconds):
                return await join_blocks(request.stream(), most, too_large)
        except TimeoutError:
            raise Refusal(f"the request did not arrive within {seconds:g} s", "", "too_slow", 408) from None
        except ClientDisconnect:
            raise Refusal("the client went away", "", "gone") from None

    def _require_known_client(self, request: Request) -> Client | None:
        """Return the client whose key the request has; None where the settings have no clients."""
        if not self._clients:
            return None
        key = request.headers.get("x-allonym-key", "")
        if not key:
            scheme, _, value = request.headers.get("authorization", "").partition(" ")
            key = value.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        digest = digest_client_key(key)
        for client_digest, client in self._clients.items():
            if key and hmac.compare_digest(client_digest, digest):
                return client
        raise Refusal("a key of this gateway is required: Authorization: Bearer KEY", "", "invalid_api_key", 401)

    def _choose_policy_name(self, request: Request, client: Client | None) -> str:
        """Return the policy that a header names, if the client may choose it, else the default."""
        default = (client.policy if client is not None else "") or self._settings.policy
        allowed = (client.policies if client is not None else ()) or self._settings.policies
        name = request.headers.get("x-allonym-policy", "")
        by_name = {self._preparer.policies[policy].name: policy for policy in (*allowed[::-1], default)}
        if name and name not in by_name:
            shown = ", ".join(sorted(by_name))
            raise Refusal(f"this policy may not be chosen; allowed are: {shown}", "X-Allonym-Policy", "unknown_policy")
        return by_name[name] if name else default

    def _make_vault_scope(self, request: Request, client: Client | None) -> str:
        """Return the vault's scope for the request's conversation, which nobody with another key can reach."""
        name, where = request.headers.get("x-allonym-conversation", ""), "X-Allonym-Conversation"
        if not name:
            return ""
        if self._vault is None:
            raise Refusal("needs a vault, which this gateway does not have", where, "vault_required")
        if not _CONVERSATION.fullmatch(name):
            raise Refusal("must be 1 to 128 letters, digits, '_', '-', '.' and ':'", where, "invalid_value")
        if client is not None:
            return f"gateway/{client.scope or client.name}/{name}"
        credentials = "\n".join(request.headers.get(header, "") for header in KEYS)
        return f"gateway/{hmac.digest(self._preparer.secret, credentials.encode(), 'sha256').hex()[:16]}/{name}"


async def _answer_health_check(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _answer_unknown_path(request: Request, error: Exception) -> Response:
    """Refuse a path that is not offered; nothing is sent."""
    assert isinstance(error, HTTPException)
    offered = ", ".join(f"POST /v1/{endpoint.path}" for endpoint in ENDPOINTS)
    message = f"the gateway does not offer this; nothing was sent. It offers {offered}, GET /v1/models"
    refusal = Refusal(message, "", "not_offered", error.status_code)
    LogLine(f"{request.method} (not offered)").write(error.status_code, refusal)
    return make_error_response(refusal)


def _make_headers(answer: httpx.Response, prepared: ProtectedRequest) -> dict[str, str]:
    """Return the headers of the client's answer: those of the upstream's, and the languages that nobody reads."""
    unread = ", ".join(prepared.protected.unread)
    return {**select_client_headers(answer), **({"X-Allonym-Unread": unread} if unread else {})}


def _read_api_version(request: Request) -> str:
    """Return the version of the API, the only parameter that may stand behind a path."""
    for name, value in request.query_params.multi_items():
        if (name, value) == ("beta", "true"):  # as Anthropic's client says it; the header anthropic-beta counts
            continue
        if name != "api-version" or not _VERSION.fullmatch(value):
            raise Refusal("only api-version may stand behind the path", "", "unknown_parameter")
    return request.query_params.get("api-version", "")

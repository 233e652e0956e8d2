"""The connections to the upstream. No redirect is followed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

import httpx

from allonym.errors import UsageError
from allonym.server.gateway.reading import MACHINE
from allonym.server.gateway.refusal import Refusal, Unanswered
from allonym.server.gateway.settings import Client, Settings, digest_client_key

LARGEST = 64 << 20
"""Bytes of an answer that is not streamed."""

_SENT_HEADERS = ("openai-organization", "openai-project", "openai-beta", "anthropic-version", "anthropic-beta")
KEYS = ("authorization", "api-key", "x-api-key")
"""Headers with which a client identifies itself to the upstream."""

_RETURNED_HEADERS = (
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-request-id",
    "openai-processing-ms",
    "openai-version",
)
_RETURNED_PREFIXES = ("x-ratelimit-",)


class Upstream:
    """Requests to the upstream.

    Attributes:
        connections: to it; the server opens and closes them.

    Raises:
        UsageError: an environment variable that the settings name holds no key.
    """

    def __init__(self, settings: Settings) -> None:
        base = settings.upstream.rstrip("/")
        self._base = base if urlsplit(base).path else f"{base}/v1"
        self._timeout = settings.timeout
        self._key = _read_key_variable(settings.upstream_key_env, "upstream_key_env")
        self._keys = {
            name: _read_key_variable(client.upstream_key_env, f"clients.{name}.upstream_key_env")
            for name, client in settings.clients.items()
        }
        self._clients = {client.key_sha256 for client in settings.clients.values()}
        self.connections = httpx.AsyncClient(
            timeout=httpx.Timeout(settings.timeout, connect=settings.connect_timeout),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            follow_redirects=False,
            trust_env=False,
        )

    def make_headers(
        self, received: Mapping[str, str], client: Client | None, *, stream: bool, is_messages: bool = False
    ) -> dict[str, str]:
        """Return the headers of a request: of the client's own only those that the API knows.

        Args:
            received: the client's.
            client: whose key the request has.
            stream: whether the answer comes in events.
            is_messages: whether it is a request of Anthropic's API, which has another header for the key.

        Raises:
            Refusal: one that is passed on is not ASCII.
        """
        headers = {name: received[name] for name in _SENT_HEADERS if name in received}
        attempt = received.get("idempotency-key", "")
        if MACHINE.fullmatch(attempt.removeprefix("stainless-python-retry-")):  # else somebody wrote it
            headers["idempotency-key"] = attempt
        headers |= {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if stream else "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "allonym-gateway",
        }
        key = (self._keys.get(client.name, "") if client is not None else "") or self._key
        forwarded = {
            name: received[name] for name in KEYS if name in received and not self._holds_gateway_key(received[name])
        }
        if key and not (forwarded and received.get("x-allonym-key")):  # who sends both keys wants both used
            headers |= {"x-api-key": key} if is_messages else {"Authorization": f"Bearer {key}"}
        else:
            headers |= forwarded
        for name, value in headers.items():
            if not value.isascii():
                raise Refusal("must be ASCII", name, "invalid_value")
        return headers

    def _holds_gateway_key(self, header_value: str) -> bool:
        """Whether a header holds a client's key of this gateway, which no upstream may see."""
        return any(digest_client_key(word) in self._clients for word in (header_value, *header_value.split()))

    async def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], version: str = ""
    ) -> httpx.Response:
        """Send a request and return the upstream's answer, of which only status and headers have been read.

        Raises:
            Unanswered: there is none, or it leads elsewhere.
        """
        url = f"{self._base}/{path}" + (f"?api-version={version}" if version else "")
        try:
            request = self.connections.build_request(method, url, content=body, headers=headers)
            answer = await self.connections.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.describe_failure(error) from None
        if answer.is_redirect or answer.is_informational:
            status = answer.status_code
            await answer.aclose()
            raise Unanswered(f"the upstream answered HTTP {status}, and redirects are not followed")
        return answer

    async def read_body_and_close(self, answer: httpx.Response) -> bytes:
        """Read all of an answer and close it.

        Raises:
            Unanswered: it broke off, or is larger than :data:`LARGEST`.
        """
        too_large = Unanswered(f"the upstream gave an answer of more than {LARGEST >> 20} MiB")
        try:
            return await join_blocks(answer.aiter_bytes(), LARGEST, too_large)
        except httpx.HTTPError as error:
            raise self.describe_failure(error) from None
        finally:
            await answer.aclose()

    def describe_failure(self, error: Exception) -> Unanswered:
        """Return the error for a connection that failed; httpx's own message may quote the request."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Unanswered("the upstream cannot be reached", "upstream_unreachable")
        if isinstance(error, httpx.TimeoutException):
            return Unanswered(f"the upstream sent nothing for {self._timeout:g} s", "upstream_timeout", 504)
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
            return Unanswered("the upstream broke the connection off", "upstream_broke_off")
        return Unanswered(f"the upstream could not be asked ({type(error).__name__})")


def select_client_headers(answer: httpx.Response) -> dict[str, str]:
    """Return the headers of an answer that the client gets."""
    return {
        name: value
        for name, value in answer.headers.items()
        if name in _RETURNED_HEADERS or name.startswith(_RETURNED_PREFIXES)
    }


async def join_blocks(blocks: AsyncIterator[bytes], most: int, too_large: Exception) -> bytes:
    """Return the bytes of all blocks; raise ``too_large`` as soon as they are more than ``most``."""
    body = bytearray()
    async for block in blocks:
        body += block
        if len(body) > most:
            raise too_large
    return bytes(body)


def get_media_type(headers: Mapping[str, str]) -> str:
    """Return the media type that headers name, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _read_key_variable(variable: str, where: str) -> str:
    if not variable:
        return ""
    key = os.environ.get(variable, "")
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError(f"{where}: the environment variable {variable} is not set, or holds no key")
    return key

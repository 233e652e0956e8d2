"""The client: one request and one answer, with retries, pace, concurrency, accounting and cache.

Tries again after what may pass (no connection, a time-out, HTTP 408, 409, 425, 429 and 5xx), as long as the endpoint
asks for (``Retry-After``), otherwise twice as long each time, with some chance in it. Certificates are verified, no
redirect is followed, and neither proxies nor anything else is taken from the environment but the endpoint's key.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from threading import BoundedSemaphore, Lock
from time import monotonic, sleep, time
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from allonym.errors import EndpointError, MissingExtra, PolicyError, UsageError
from allonym.llm.answers import parsed
from allonym.llm.cache import Cache
from allonym.llm.templates import Messages

PATH = "/chat/completions"
EMBEDDINGS = "/embeddings"
MODES = ("schema", "object", "none")
LONGEST_WAIT = 300.0
"""Seconds that one wait before a further try lasts at most; an endpoint that asks for more counts as failed."""
_LARGEST = 16 * 2**20  # bytes of an answer
_PASSING = frozenset({408, 409, 425, 429})
_REFUSED_FORM = frozenset({400, 404, 415, 422, 501})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: messages, and the JSON Schema of the answer with its name. Hidden from ``repr``."""

    messages: Messages = field(repr=False)
    schema: Mapping[str, object] = field(repr=False)
    name: str = "answer"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        content: the model's words. Hidden from ``repr``.
        whole: they were neither refused nor cut off.
        prompt_tokens, completion_tokens: as the endpoint counts them; 0 where it does not.
        kept: comes from the cache.
    """

    content: str = field(repr=False)
    whole: bool = True
    prompt_tokens: int = 0
    completion_tokens: int = 0
    kept: bool = False


class Recorded(EndpointError):
    """Raised inside :func:`recording` in place of asking: the request was written down."""


_UNLOCKED: ContextVar[bytes | None] = ContextVar("unlocked", default=None)
_RECORD: ContextVar[dict[str, Mapping[str, object]] | None] = ContextVar("record", default=None)


@contextmanager
def unlocked(key: bytes | None) -> Iterator[None]:
    """Inside, clients that get no key of their own use this one for their cache, as detectors do."""
    before = _UNLOCKED.set(key)
    try:
        yield
    finally:
        _UNLOCKED.reset(before)


@contextmanager
def recording() -> Iterator[dict[str, Mapping[str, object]]]:
    """Inside, nothing is sent: a request that the cache cannot answer is written down and raises :class:`Recorded`.

    Yields:
        the request's name in the cache to its body, filled as requests are made.
    """
    out: dict[str, Mapping[str, object]] = {}
    before = _RECORD.set(out)
    try:
        yield out
    finally:
        _RECORD.reset(before)


def client_for(settings: Mapping[str, object], key: bytes | None = None) -> Client:
    """The client for a policy's table ``[llm]``, the same for all calls of a process.

    Args:
        settings: ``policy.llm``.
        key: for the cache, 32 bytes or more; by default the one of :func:`unlocked`. Without one nothing is kept.

    Raises:
        UsageError: the table names no ``url``.
        PolicyError: the ``url`` is none, or there is no ``model``.
    """
    return _client(json.dumps(settings, default=dict, sort_keys=True), key or _UNLOCKED.get())


@lru_cache(maxsize=16)
def _client(settings: str, key: bytes | None) -> Client:
    read = json.loads(settings)
    return Client(read, Cache(read["cache"], key) if key and read["cache"] else None)


class Client:
    """An endpoint for chat completions. Safe for threads; after a fork each process has its own connections.

    Args:
        settings: all keys of ``registry.LLM_KEYS``.
        cache: where answers are kept; None: nowhere.
    """

    def __init__(self, settings: Mapping[str, object], cache: Cache | None = None) -> None:
        self.prompts = settings["prompts"]
        self.cache = cache
        self._url = _checked(str(settings["url"]))
        self._where = f"{urlsplit(self._url).scheme}://{urlsplit(self._url).netloc}"
        self._model = str(settings["model"])
        if not self._model:
            raise PolicyError("llm.model is required: the name of the model, as the endpoint knows it")
        self._key_env = str(settings["key_env"])
        self._temperature = cast(float, settings["temperature"])
        self._max_tokens = cast(int, settings["max_tokens"])
        self._timeout = cast(float, settings["timeout"])
        if self._timeout <= 0:
            raise PolicyError(f"llm.timeout must be over 0, got {self._timeout!r}")
        self._retries = cast(int, settings["retries"])
        self._mode = MODES.index(str(settings["json_mode"]))
        self._concurrency = cast(int, settings["concurrency"])
        self._room = BoundedSemaphore(self._concurrency)
        self._pace = _Pace(cast(int, settings["requests_per_minute"]))
        self._lock = Lock()
        self._http: tuple[int, Any] = (0, None)
        self._counts = dict.fromkeys(("requests", "kept", "retries", "prompt_tokens", "completion_tokens"), 0)

    @property
    def usage(self) -> Mapping[str, int]:
        """Counts of this process: ``requests`` answered, of these ``kept`` ones, ``retries``, and tokens paid for."""
        with self._lock:
            return dict(self._counts)

    @property
    def json_mode(self) -> str:
        """How JSON is asked for now, after what the endpoint refused."""
        return MODES[self._mode]

    def ask(self, request: Request) -> Reply:
        """The answer to a request.

        Raises:
            EndpointError: there was none after all tries. Nothing of what was sent or received is shown.
            UsageError: the environment variable of ``key_env`` is not set.
        """
        name = self.name(request) if self.cache else ""
        data = self.cache.get(name) if self.cache else None
        if data is not None and (kept := _reply(data)) is not None:
            self._count(requests=1, kept=1)
            return Reply(kept.content, kept.whole, kept.prompt_tokens, kept.completion_tokens, True)
        record = _RECORD.get()
        if record is not None:
            record[name] = self.body(request)
            raise Recorded("llm: the request was written down, not sent")
        data, reply, mode = self._sent(
            self._url, lambda mode: self.body(request, mode), _reply, "chat completions", self._mode
        )
        self._mode = max(self._mode, mode)  # what it took will do for the next request
        self._count(requests=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        if self.cache is not None:
            self.keep(name, data)
        return reply

    def ask_all(self, requests: Sequence[Request]) -> list[Reply | EndpointError]:
        """The answers to several requests, some at the same time; an error in place of those that got none."""
        if len(requests) < 2 or _RECORD.get() is not None or self._concurrency < 2:
            return [self._asked(request) for request in requests]
        with ThreadPoolExecutor(min(self._concurrency, len(requests))) as pool:
            return list(pool.map(self._asked, requests))

    def _asked(self, request: Request) -> Reply | EndpointError:
        try:
            return self.ask(request)
        except EndpointError as error:
            return error

    def body(self, request: Request, mode: int | None = None) -> dict[str, object]:
        """The request as JSON for the endpoint, in the given way of asking for JSON, an index of ``MODES``."""
        out: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": role, "content": content} for role, content in request.messages],
        }
        if self._temperature >= 0:
            out["temperature"] = self._temperature
        if self._max_tokens:
            out["max_tokens"] = self._max_tokens
        wanted = MODES[self._mode if mode is None else mode]
        if wanted == "schema":
            told = {"name": request.name, "strict": True, "schema": request.schema}
            out["response_format"] = {"type": "json_schema", "json_schema": told}
        elif wanted == "object":
            out["response_format"] = {"type": "json_object"}
        return out

    def name(self, request: Request) -> str:
        """The request's name in the cache. The endpoint's address and its way of JSON do not count.

        Raises:
            UsageError: there is no cache.
        """
        if self.cache is None:
            raise UsageError("llm.cache names no folder, or there is no key to lock it with")
        body = self.body(request, 0)
        return self.cache.name(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())

    def keep(self, name: str, data: bytes) -> bool:
        """Put an endpoint's answer into the cache, if it is whole and holds a JSON object; whether it was."""
        reply = _reply(data)
        if self.cache is None or reply is None or not reply.whole or parsed(reply.content) is None:
            return False
        self.cache.put(name, data)
        return True

    def embed(self, texts: Sequence[str], *, dimensions: int = 0) -> tuple[tuple[float, ...], ...]:
        """The vectors of some texts, as the endpoint for embeddings beside that for chat completions gives them.

        Args:
            texts: sent in one request; none may be empty. Nothing of them is kept.
            dimensions: how long the vectors shall be, for models that offer a choice; 0: not said.

        Raises:
            EndpointError: there were none after all tries, or not one of the same length for each text.
            UsageError: the environment variable of ``key_env`` is not set.
        """
        body: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if dimensions:
            body["dimensions"] = dimensions
        if _RECORD.get() is not None:
            raise Recorded("llm: nothing is sent while requests are written down")
        url = self._url.removesuffix(PATH) + EMBEDDINGS
        last = len(MODES) - 1  # nothing to fall back to
        _, (vectors, tokens), _ = self._sent(url, lambda _: body, lambda d: _vectors(d, len(texts)), "embeddings", last)
        self._count(requests=1, prompt_tokens=tokens)
        return vectors

    def _sent(
        self,
        url: str,
        body: Callable[[int], Mapping[str, object]],
        read: Callable[[bytes], T | None],
        form: str,
        mode: int,
    ) -> tuple[bytes, T, int]:
        """The answer, what was read from it, and the way of asking for JSON that the endpoint took."""
        headers = self._headers()
        tries, wait = 0, 0.0
        while True:
            if wait:
                sleep(wait)
            payload = json.dumps(body(mode)).encode()
            with self._room:
                self._pace.wait()
                status, data, failure, asked = self._once(url, payload, headers)
            if status in _REFUSED_FORM and mode < len(MODES) - 1:
                mode, wait = mode + 1, 0.0
                continue
            if status == 200:
                reply = read(data)
                if reply is not None:
                    return data, reply, mode
                failure = f"gave an answer that is none of {form}"
            elif not failure:
                failure = f"answered HTTP {status}"
                if status not in _PASSING and status < 500:
                    raise EndpointError(f"llm: the endpoint {self._where} {failure}{_HINTS.get(status, '')}")
            tries += 1
            if tries > self._retries or asked > LONGEST_WAIT:
                again = "once" if tries == 1 else f"{tries} times"
                raise EndpointError(f"llm: the endpoint {self._where} {failure}, asked {again}")
            self._count(retries=1)
            wait = asked or min(LONGEST_WAIT, 2.0 ** (tries - 2)) * (0.5 + random.random() / 2)

    def close(self) -> None:
        """Close the connections. The next request opens others."""
        with self._lock:
            process, http = self._http
            self._http = (0, None)
        if http is not None and process == os.getpid():
            http.close()

    def _once(self, url: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, str, float]:
        """Status, body, what failed (empty: nothing), and the seconds that the endpoint asks to wait."""
        http = self._connections()
        import httpx

        end = monotonic() + self._timeout
        pieces: list[bytes] = []
        size = 0
        try:
            with http.stream("POST", url, content=payload, headers=headers) as answer:
                for piece in answer.iter_bytes():
                    pieces.append(piece)
                    size += len(piece)
                    if size > _LARGEST:
                        return 0, b"", "gave an answer of more than 16 MiB", 0.0
                    if monotonic() > end:
                        return 0, b"", f"gave no whole answer within {self._timeout:g} s", 0.0
                return answer.status_code, b"".join(pieces), "", _retry_after(answer.headers.get("retry-after", ""))
        except httpx.TimeoutException:
            return 0, b"", f"gave no answer within {self._timeout:g} s", 0.0
        except httpx.HTTPError as error:
            return 0, b"", _said(error), 0.0

    def _connections(self) -> Any:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("the client of language models", "llm") from None
        with self._lock:
            process, http = self._http
            if process != os.getpid():
                http = httpx.Client(timeout=self._timeout, trust_env=False, follow_redirects=False, verify=True)
                self._http = (os.getpid(), http)
            return http

    def _headers(self) -> dict[str, str]:
        out = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key_env:
            secret = os.environ.get(self._key_env, "")
            if not secret.isascii() or not secret.isprintable() or not secret:
                raise UsageError(f"llm.key_env: the environment variable {self._key_env} is not set, or holds no key")
            out["Authorization"] = f"Bearer {secret}"
        return out

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, n in more.items():
                self._counts[name] += n


_HINTS = {401: "; is the key in the variable of llm.key_env right?", 404: "; are llm.url and llm.model right?"}


def _said(error: Exception) -> str:
    """What failed on the way, for people; httpx's own words may quote the request."""
    import httpx

    if isinstance(error, httpx.ConnectError):
        return "cannot be reached"
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
        return "broke the connection off"
    return f"could not be asked ({type(error).__name__})"


class _Pace:
    """At most so many starts a minute, evenly spread; 0: no limit."""

    def __init__(self, per_minute: int) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = Lock()

    def wait(self) -> None:
        if not self._gap:
            return
        with self._lock:
            now = monotonic()
            at = max(now, self._next)
            self._next = at + self._gap
        if at > now:
            sleep(at - now)


def _checked(url: str) -> str:
    if not url:
        raise UsageError(
            'llm.url is required: nothing is asked unless the policy names an endpoint, such as "http://localhost:8000/v1"'
        )
    if wrong := wrong_address(url, "llm.url", "llm.key_env"):
        raise PolicyError(wrong)
    url = url.rstrip("/")
    return url.removesuffix(PATH).removesuffix(EMBEDDINGS) + PATH


def wrong_address(url: str, setting: str, key_setting: str) -> str | None:
    """What is wrong with the address of an endpoint, in words that never show it; None where nothing is.

    Args:
        url: the address.
        setting: the name of the setting that holds it.
        key_setting: the name of the setting that says where the key is.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        named = parts.username is not None or (parts.port or 1) < 0
    except ValueError:
        fine, named = False, False
    if not fine:
        return f"{setting} must be an address such as http://localhost:8000/v1 or https://example.org/v1"
    if named:
        return f"{setting} must not hold a user or a password; {key_setting} names the variable with the key"
    return None


def _retry_after(value: str) -> float:
    """Seconds, from a number or a date; 0 where there is neither."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _reply(data: bytes) -> Reply | None:
    """The reply in the body of an answer; None where the body has not the form of chat completions."""
    try:
        body = json.loads(data)
        choice = body["choices"][0]
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        used = body.get("usage") or {}
        prompt, completion = used.get("prompt_tokens"), used.get("completion_tokens")
        whole = choice.get("finish_reason") in (None, "stop", "eos") and not message.get("refusal")
        text = content if isinstance(content, str) else ""
        paid = [n if isinstance(n, int) else 0 for n in (prompt, completion)]
        return Reply(text, bool(whole and text), paid[0], paid[1])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None


def _vectors(data: bytes, n: int) -> tuple[tuple[tuple[float, ...], ...], int] | None:
    """The vectors of ``n`` texts in the body of an answer, in their order, and the tokens paid for; None where there is
    not one of the same length for each."""
    try:
        body = json.loads(data)
        rows = {int(row["index"]): tuple(float(x) for x in row["embedding"]) for row in body["data"]}
        vectors = tuple(rows[i] for i in range(n))
        fine = len(body["data"]) == n and len({len(v) for v in vectors}) == 1 and len(vectors[0]) > 0
        finite = all(x - x == 0 for v in vectors for x in v)
        tokens = (body.get("usage") or {}).get("prompt_tokens")
        return (vectors, tokens if isinstance(tokens, int) else 0) if fine and finite else None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None

"""The client of an endpoint: requests and answers, with retries, pace, concurrency, counts and a cache.

Temporary failures (no connection, a time-out, HTTP 408, 409, 425, 429 and 5xx) are retried after the time that the
endpoint asks for (``Retry-After``), otherwise after a delay that doubles, with some jitter. Certificates are verified,
no redirect is followed, and nothing but the endpoint's key is read from the environment, proxies included.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from threading import BoundedSemaphore, Lock
from time import monotonic, sleep, time
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from allonym.errors import EndpointError, PolicyError, UsageError, require_extra
from allonym.llm.answers import parse_answer
from allonym.llm.cache import Cache
from allonym.llm.templates import Messages, extend_messages

PATH = "/chat/completions"
EMBEDDINGS = "/embeddings"
MODES = ("schema", "object", "none")
LONGEST_WAIT = 300.0
"""Longest wait before a retry, in seconds; an endpoint that asks for more counts as failed."""
_LARGEST = 16 * 2**20  # bytes of an answer
_TEMPORARY = frozenset({408, 409, 425, 429})
_REFUSES_FORM = frozenset({400, 404, 415, 422, 501})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """Messages, and the JSON Schema of the answer with its name. Both hidden from ``repr``."""

    messages: Messages = field(repr=False)
    schema: Mapping[str, object] = field(repr=False)
    name: str = "answer"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request.

    Attributes:
        content: the model's words. Hidden from ``repr``.
        whole: whether they were neither refused nor cut off.
        prompt_tokens, completion_tokens: as the endpoint counts them; 0 where it does not.
        kept: whether the answer comes from the cache.
    """

    content: str = field(repr=False)
    whole: bool = True
    prompt_tokens: int = 0
    completion_tokens: int = 0
    kept: bool = False

    @property
    def answer(self) -> Mapping[str, object] | None:
        """The JSON object in the content; None where it holds none or is not whole."""
        return parse_answer(self.content) if self.whole else None


class Recorded(EndpointError):
    """Raised inside :func:`recording` in place of sending: the request was recorded."""


_CACHE_KEY: ContextVar[bytes | None] = ContextVar("cache key", default=None)
_RECORDED: ContextVar[dict[str, Mapping[str, object]] | None] = ContextVar("recorded requests", default=None)


@contextmanager
def _set_in_context(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def unlocked(key: bytes | None) -> Iterator[None]:
    """Set the key with which clients that get none, such as those of detectors, open their cache."""
    with _set_in_context(_CACHE_KEY, key):
        yield


@contextmanager
def recording() -> Iterator[dict[str, Mapping[str, object]]]:
    """Send nothing: record requests that the cache cannot answer, and raise :class:`Recorded` for each.

    Yields:
        the request's name in the cache to its body, filled as requests are made.
    """
    requests: dict[str, Mapping[str, object]] = {}
    with _set_in_context(_RECORDED, requests):
        yield requests


def client_for(settings: Mapping[str, object], key: bytes | None = None) -> Client:
    """Return the client for a policy's table ``[llm]``, the same for all calls of a process.

    Args:
        settings: ``policy.llm``.
        key: for the cache, 32 bytes or more; by default the key of :func:`unlocked`. Without a key, nothing
            is stored.

    Raises:
        UsageError: the table names no ``url``.
        PolicyError: the ``url`` is not valid, or there is no ``model``.
    """
    return _open_client(json.dumps(settings, default=dict, sort_keys=True), key or _CACHE_KEY.get())


@lru_cache(maxsize=16)
def _open_client(settings_json: str, key: bytes | None) -> Client:
    table = json.loads(settings_json)
    return Client(table, Cache(table["cache"], key) if key and table["cache"] else None)


def ask_and_read(client: Client, requests: Sequence[Request], read: Callable[[Reply], T | None]) -> list[T | None]:
    """Ask several requests and read the answers; None for an answer that ``read`` cannot read.

    Raises:
        EndpointError: the endpoint did not answer one of them.
    """
    answers = []
    for reply in client.ask_all(requests):
        if isinstance(reply, EndpointError):
            raise reply
        answers.append(read(reply))
    return answers


def ask_and_read_with_retry(
    client: Client,
    requests: Sequence[Request],
    again: str,
    read: Callable[[Reply], T | None],
    read_second: Callable[[Reply], T | None] | None = None,
) -> list[T | None]:
    """Read answers as :func:`ask_and_read` does, and ask once more, with ``again`` added, where one cannot be read.

    Raises:
        EndpointError: the endpoint did not answer one of them.
    """
    answers = ask_and_read(client, requests, read)
    failed = [i for i, answer in enumerate(answers) if answer is None]
    longer = [replace(requests[i], messages=extend_messages(requests[i].messages, again)) for i in failed]
    for i, answer in zip(failed, ask_and_read(client, longer, read_second or read), strict=True):
        answers[i] = answer
    return answers


class Client:
    """An endpoint for chat completions. Safe for threads; after a fork each process has its own connections.

    Args:
        settings: all keys of ``registry.LlmTable``.
        cache: where answers are stored; None: nowhere.
    """

    def __init__(self, settings: Mapping[str, object], cache: Cache | None = None) -> None:
        self.prompts = settings["prompts"]
        self.cache = cache
        self._url = _build_completions_url(str(settings["url"]))
        self.address = f"{urlsplit(self._url).scheme}://{urlsplit(self._url).netloc}"
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
        self._counts = Counter(requests=0, kept=0, retries=0, prompt_tokens=0, completion_tokens=0)

    @property
    def usage(self) -> Mapping[str, int]:
        """Counts of this process: ``requests`` answered, ``kept`` ones among them, ``retries``, and tokens paid for."""
        with self._lock:
            return dict(self._counts)

    @property
    def json_mode(self) -> str:
        """How JSON is requested now, after what the endpoint refused."""
        return MODES[self._mode]

    def ask(self, request: Request) -> Reply:
        """Send a request and return the answer, or the one in the cache.

        Raises:
            EndpointError: there was no answer after all retries. The message shows nothing that was sent or received.
            UsageError: the environment variable of ``key_env`` is not set.
        """
        name = self.name(request) if self.cache else ""
        data = self.cache.get(name) if self.cache else None
        if data is not None and (stored := _read_reply(data)) is not None:
            self._add_to_usage(requests=1, kept=1)
            return replace(stored, kept=True)
        requests = _RECORDED.get()
        if requests is not None:
            requests[name] = self.body(request)
            raise Recorded("llm: the request was written down, not sent")
        body = partial(self.body, request)
        data, reply, mode = self._send_until_read(self._url, body, _read_reply, "chat completions", self._mode)
        self._mode = max(self._mode, mode)  # what it accepted will do for the next request
        self._add_to_usage(requests=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        if self.cache is not None:
            self.keep(name, data)
        return reply

    def ask_all(self, requests: Sequence[Request]) -> list[Reply | EndpointError]:
        """Send several requests, some at the same time; an error takes the place of an answer that is missing."""
        if len(requests) < 2 or _RECORDED.get() is not None or self._concurrency < 2:
            return [self._ask_or_return_error(request) for request in requests]
        with ThreadPoolExecutor(min(self._concurrency, len(requests))) as pool:
            return list(pool.map(self._ask_or_return_error, requests))

    def _ask_or_return_error(self, request: Request) -> Reply | EndpointError:
        try:
            return self.ask(request)
        except EndpointError as error:
            return error

    def body(self, request: Request, mode: int | None = None) -> dict[str, object]:
        """Return the request as JSON for the endpoint; ``mode`` is how JSON is requested, an index of ``MODES``."""
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": role, "content": content} for role, content in request.messages],
        }
        if self._temperature >= 0:
            body["temperature"] = self._temperature
        if self._max_tokens:
            body["max_tokens"] = self._max_tokens
        form = MODES[self._mode if mode is None else mode]
        if form == "schema":
            schema = {"name": request.name, "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form == "object":
            body["response_format"] = {"type": "json_object"}
        return body

    def name(self, request: Request) -> str:
        """Return the request's name in the cache. The endpoint's address and its form of JSON do not matter.

        Raises:
            UsageError: there is no cache.
        """
        if self.cache is None:
            raise UsageError("llm.cache names no folder, or there is no key to lock it with")
        body = self.body(request, 0)
        return self.cache.name(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())

    def keep(self, name: str, data: bytes) -> bool:
        """Store an endpoint's answer in the cache if it is whole and holds a JSON object; return whether it was."""
        reply = _read_reply(data)
        if self.cache is None or reply is None or reply.answer is None:
            return False
        self.cache.put(name, data)
        return True

    def embed(self, texts: Sequence[str], *, dimensions: int = 0) -> tuple[tuple[float, ...], ...]:
        """Return vectors of texts from the endpoint for embeddings beside that for chat completions.

        Args:
            texts: sent in one request; none may be empty. Nothing of them is stored.
            dimensions: length of the vectors, for models that offer a choice; 0: the model's default.

        Raises:
            EndpointError: there were none after all retries, or not one of the same length for each text.
            UsageError: the environment variable of ``key_env`` is not set.
        """
        body: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if dimensions:
            body["dimensions"] = dimensions
        if _RECORDED.get() is not None:
            raise Recorded("llm: nothing is sent while requests are written down")
        url = self._url.removesuffix(PATH) + EMBEDDINGS
        last = len(MODES) - 1  # nothing to fall back to
        read = partial(_read_vectors, n=len(texts))
        _, (vectors, tokens), _ = self._send_until_read(url, lambda _: body, read, "embeddings", last)
        self._add_to_usage(requests=1, prompt_tokens=tokens)
        return vectors

    def _send_until_read(
        self,
        url: str,
        body: Callable[[int], Mapping[str, object]],
        read: Callable[[bytes], T | None],
        form: str,
        mode: int,
    ) -> tuple[bytes, T, int]:
        """Return the answer, what ``read`` made of it, and the form of JSON that the endpoint accepted."""
        headers = self._make_headers()
        tries, wait = 0, 0.0
        while True:
            if wait:
                sleep(wait)
            payload = json.dumps(body(mode)).encode()
            with self._room:
                self._pace.wait()
                status, data, failure, delay = self._send_once(url, payload, headers)
            if status in _REFUSES_FORM and mode < len(MODES) - 1:
                mode, wait = mode + 1, 0.0
                continue
            if status == 200:
                reply = read(data)
                if reply is not None:
                    return data, reply, mode
                failure = f"gave an answer that is none of {form}"
            elif not failure:
                failure = f"answered HTTP {status}"
                if status not in _TEMPORARY and status < 500:
                    raise EndpointError(f"llm: the endpoint {self.address} {failure}{_HINTS.get(status, '')}")
            tries += 1
            if tries > self._retries or delay > LONGEST_WAIT:
                again = "once" if tries == 1 else f"{tries} times"
                raise EndpointError(f"llm: the endpoint {self.address} {failure}, asked {again}")
            self._add_to_usage(retries=1)
            wait = delay or min(LONGEST_WAIT, 2.0 ** (tries - 2)) * (0.5 + random.random() / 2)

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._lock:
            process, http = self._http
            self._http = (0, None)
        if http is not None and process == os.getpid():
            http.close()

    def _send_once(self, url: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, str, float]:
        """Return status, body, what failed (empty: nothing), and the seconds that the endpoint asks to wait."""
        http = self._open_connections()
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
                delay = _parse_retry_after(answer.headers.get("retry-after", ""))
                return answer.status_code, b"".join(pieces), "", delay
        except httpx.TimeoutException:
            return 0, b"", f"gave no answer within {self._timeout:g} s", 0.0
        except httpx.HTTPError as error:
            return 0, b"", _describe_failure(error), 0.0

    def _open_connections(self) -> Any:
        with require_extra("the client of language models", "llm"):
            import httpx
        with self._lock:
            process, http = self._http
            if process != os.getpid():
                http = httpx.Client(timeout=self._timeout, trust_env=False, follow_redirects=False, verify=True)
                self._http = (os.getpid(), http)
            return http

    def _make_headers(self) -> dict[str, str]:
        out = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key_env:
            secret = os.environ.get(self._key_env, "")
            if not secret.isascii() or not secret.isprintable() or not secret:
                raise UsageError(f"llm.key_env: the environment variable {self._key_env} is not set, or holds no key")
            out["Authorization"] = f"Bearer {secret}"
        return out

    def _add_to_usage(self, **more: int) -> None:
        with self._lock:
            self._counts.update(more)


_HINTS = {401: "; is the key in the variable of llm.key_env right?", 404: "; are llm.url and llm.model right?"}


def _describe_failure(error: Exception) -> str:
    """Describe a failure of the connection; httpx's own message may quote the request."""
    import httpx

    if isinstance(error, httpx.ConnectError):
        return "cannot be reached"
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
        return "broke the connection off"
    return f"could not be asked ({type(error).__name__})"


class _Pace:
    """A limit on requests a minute, evenly spread; 0: no limit."""

    def __init__(self, per_minute: int) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = Lock()

    def wait(self) -> None:
        if not self._gap:
            return
        with self._lock:
            now = monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        if start > now:
            sleep(start - now)


def _build_completions_url(url: str) -> str:
    """Check the address of an endpoint, and return that of its chat completions."""
    if not url:
        raise UsageError(
            'llm.url is required: nothing is asked unless the policy names an endpoint, such as "http://localhost:8000/v1"'
        )
    if wrong := describe_wrong_address(url, "llm.url", "llm.key_env"):
        raise PolicyError(wrong)
    url = url.rstrip("/")
    return url.removesuffix(PATH).removesuffix(EMBEDDINGS) + PATH


def describe_wrong_address(url: str, setting: str, key_setting: str) -> str | None:
    """Say what is wrong with the address of an endpoint, without showing it; None where nothing is.

    Args:
        url: the address.
        setting: name of the setting that holds it.
        key_setting: name of the setting that says where the key is.
    """
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
        has_user = parts.username is not None or (parts.port or 1) < 0
    except ValueError:
        is_valid = has_user = False
    if not is_valid:
        return f"{setting} must be an address such as http://localhost:8000/v1 or https://example.org/v1"
    if has_user:
        return f"{setting} must not hold a user or a password; {key_setting} names the variable with the key"
    return None


def _parse_retry_after(value: str) -> float:
    """Return seconds from a number or a date; 0 where the header has neither."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _read_reply(data: bytes) -> Reply | None:
    """Read the body of an answer; None where it does not have the form of chat completions."""
    try:
        body = json.loads(data)
        choice = body["choices"][0]
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        usage = body.get("usage") or {}
        is_whole = choice.get("finish_reason") in (None, "stop", "eos") and not message.get("refusal")
        text = content if isinstance(content, str) else ""
        counts = (usage.get(f"{part}_tokens") for part in ("prompt", "completion"))
        prompt, completion = (n if isinstance(n, int) else 0 for n in counts)
        return Reply(text, bool(is_whole and text), prompt, completion)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None


def _read_vectors(data: bytes, n: int) -> tuple[tuple[tuple[float, ...], ...], int] | None:
    """Read the vectors of ``n`` texts, in their order, and the tokens paid for; None where there is not one of the same
    length for each."""
    try:
        body = json.loads(data)
        rows = {int(row["index"]): tuple(float(x) for x in row["embedding"]) for row in body["data"]}
        vectors = tuple(rows[i] for i in range(n))
        is_complete = len(body["data"]) == n and len({len(v) for v in vectors}) == 1 and len(vectors[0]) > 0
        is_finite = all(x - x == 0 for v in vectors for x in v)
        tokens = (body.get("usage") or {}).get("prompt_tokens")
        return (vectors, tokens if isinstance(tokens, int) else 0) if is_complete and is_finite else None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None

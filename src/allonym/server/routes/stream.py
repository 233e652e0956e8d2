"""The WebSocket: annotation while somebody types, and conversations that grow while people speak."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from allonym.document import Document
from allonym.errors import AllonymError, RequestError
from allonym.plan import Anonymized
from allonym.server import treating
from allonym.server.access import on_socket, services_of
from allonym.server.guard import Rate
from allonym.server.kernel import Kernel
from allonym.server.problems import invalid, problem
from allonym.server.services import Services
from allonym.server.stream import MOST_TURNS, Transcript
from allonym.server.wire import stream as wire
from allonym.server.wire.base import Problem, Wire

router = APIRouter(prefix="/v1", tags=["texts"])
PERMISSION = {"annotate": "detect", "transcript": "anonymize"}
RATE = 50.0
"""Messages a second that one stream may send."""

IDLE = 900.0
"""Seconds without a message after which a stream is closed."""

RECHECK = 30.0
"""Seconds for which a session or key that opened a stream counts without being looked up again."""

LONG = 20_000
"""Characters from which on a text counts as long: of these one process fewer than there are is at work at a time."""

REFUSED, TOO_MUCH, GOING, NO_TEXT = 1008, 1009, 1001, 1003  # codes of RFC 6455
_turns: WeakKeyDictionary[Kernel, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(slots=True)
class _Stream:
    """An open WebSocket and what holds for it."""

    socket: WebSocket
    services: Services
    rate: Rate
    permission: str = ""
    checked: float = 0.0

    async def next(self) -> wire.Message | None:
        """The next message; None where there is none any more, or where the stream had to be closed."""
        while True:
            try:
                async with asyncio.timeout(IDLE):
                    said = await self.socket.receive_text()
            except WebSocketDisconnect:
                return None
            except KeyError:  # bytes
                await self.close(NO_TEXT)
                return None
            except TimeoutError:
                await self.close(GOING)
                return None
            if not self.rate.allows("messages"):
                await self.wrong(RequestError(f"more than {RATE:g} messages a second", 429, "TooMany"))
                await self.close(REFUSED)
                return None
            if time.monotonic() - self.checked > RECHECK:
                try:
                    await run_in_threadpool(on_socket, self.socket, *filter(None, [self.permission]))
                except RequestError as error:
                    await self.wrong(error)
                    await self.close(REFUSED)
                    return None
                self.checked = time.monotonic()
            try:
                return wire.MESSAGES.validate_json(said)
            except ValidationError as error:
                rows = error.errors(include_input=False, include_url=False)
                told = invalid([{**row, "loc": ("message", *row["loc"])} for row in rows])["error"]
                await self.send(wire.Wrong(error=Problem.model_validate(told)))

    async def send(self, message: Wire) -> None:
        """Send a message, if there is still somebody."""
        with suppress(WebSocketDisconnect, RuntimeError):  # Starlette's words for a closed one
            await self.socket.send_text(message.model_dump_json())

    async def wrong(self, error: Exception, version: int | None = None) -> None:
        """Tell what went wrong."""
        told = problem(error)[1]["error"]
        await self.send(wire.Wrong(error=Problem.model_validate(told), version=version))

    async def close(self, code: int) -> None:
        """Close it."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.socket.close(code)


@router.websocket("/stream")
async def stream(socket: WebSocket) -> None:
    """See the module. The protocol is in ``wire.stream``."""
    services = services_of(socket)
    try:
        await run_in_threadpool(on_socket, socket)
    except RequestError as error:
        status, body = problem(error)
        await socket.send_denial_response(JSONResponse(body, status))
        return
    await socket.accept()
    one = _Stream(socket, services, Rate(RATE, 2 * RATE), checked=time.monotonic())
    opening = await one.next()
    if opening is None:
        return
    try:
        if not isinstance(opening, wire.Open):
            raise RequestError("the first message is {type: open, mode, policy}", 400, "InvalidRequest")
        one.permission = PERMISSION[opening.mode]
        await run_in_threadpool(on_socket, socket, one.permission)
        if opening.mode == "annotate" and opening.scope is not None:
            raise RequestError("scope is for the mode transcript", 400, "InvalidRequest")
        source = await run_in_threadpool(_source, opening, services)
    except AllonymError as error:
        await one.wrong(error)
        await one.close(REFUSED)
        return
    if opening.mode == "annotate":
        await _working(one, _Annotating(one, source))
    else:
        await _working(one, _Transcribing(one, source, opening.scope))


def _source(opening: wire.Open, services: Services) -> str:
    choice = opening.policy if isinstance(opening.policy, str | None) else opening.policy.model_dump()
    return services.policies.source(choice)


class _Annotating:
    """Texts to annotate, of which only the newest counts."""

    def __init__(self, stream: _Stream, source: str) -> None:
        self._stream, self._source = stream, source
        self._newest: wire.TextIn | None = None

    def take(self, message: wire.Message) -> bool:
        """Take a message in; whether it is one that this mode knows."""
        if isinstance(message, wire.TextIn):
            self._newest = message
        return isinstance(message, wire.TextIn)

    async def work(self) -> bool:
        """Do what waits to be done; whether that was the last."""
        asked, self._newest = self._newest, None
        if asked is None:
            return False
        services = self._stream.services
        begun = time.perf_counter()
        try:
            document = Document("", asked.text)
            treating.refuse_long(asked.text, services.settings.max_characters)
            async with _turn(document, services):
                key = services.vault.operator_key
                spans, _ = await services.kernel.run(treating.seen, document, self._source, key)
        except AllonymError as error:
            await self._stream.wrong(error, asked.version)
            return False
        counts = dict(sorted(Counter(span.label for span in spans).items()))
        services.metrics.treated(len(asked.text), counts)
        took = round((time.perf_counter() - begun) * 1000, 1)
        await self._stream.send(wire.Spans(version=asked.version, spans=spans, counts=counts, milliseconds=took))
        return False


class _Transcribing:
    """A conversation that grows."""

    def __init__(self, stream: _Stream, source: str, scope: str | None) -> None:
        self._stream, self._source, self._scope = stream, source, scope
        self._transcript = Transcript()
        self._counted = self._size = 0
        self._over = False

    def take(self, message: wire.Message) -> bool:
        """Take a message in; whether it is one that this mode knows.

        Raises:
            RequestError: the conversation gets too long.
        """
        if isinstance(message, wire.TurnIn):
            size = self._size + len(message.text) + len(message.speaker or "") + 3
            most = self._stream.services.settings.max_characters
            if size > most or len(self._transcript.turns) >= MOST_TURNS:
                raise RequestError(
                    f"a conversation has at most {most} characters and {MOST_TURNS} turns here", 413, "TooLarge"
                )
            self._size = size
            self._transcript.add(message.speaker, message.text)
        elif isinstance(message, wire.End):
            self._over = True
        return isinstance(message, wire.TurnIn | wire.End)

    async def work(self) -> bool:
        """Do what waits to be done; whether that was the last."""
        over = self._over
        new = len(self._transcript.turns) > self._counted
        if not new and not over:
            return False
        self._counted = len(self._transcript.turns)
        try:
            made = await self._made(self._transcript.document())
        except AllonymError as error:
            await self._stream.wrong(error)
            return over
        added, revised = self._transcript.shown(made.parts if self._transcript.turns else ())
        changed = [wire.Revised(index=i, speaker=one.speaker, text=one.text) for i, one in revised.items()]
        for index, one in added.items():
            turn = wire.TurnOut(index=index, speaker=one.speaker, text=one.text, revised=changed)
            await self._stream.send(turn)
            changed = []
        if over:
            counts = dict(made.report.labels)
            await self._stream.send(wire.Ended(text=made.text, plan=made.plan.to_dict(), counts=counts))
            self._stream.services.metrics.treated(self._size, counts)
        return over

    async def _made(self, document: Document) -> Anonymized:
        services = self._stream.services
        key = services.vault.operator_key
        async with _turn(document, services):
            if self._scope is None:
                return await services.kernel.anonymize(document, self._source, key)
            found = await services.kernel.detect(document, self._source, key)
            return await run_in_threadpool(treating.kept, services, document, found, self._source, self._scope, {})


async def _working(stream: _Stream, mode: _Annotating | _Transcribing) -> None:
    """Take messages in while the newest work is done, until there is nobody or the work is over."""
    came = asyncio.Event()
    gone = False

    async def worker() -> None:
        while True:
            await came.wait()
            came.clear()
            if gone:
                return
            if await mode.work():
                await stream.close(1000)
                return

    # What a process has begun is finished, also where nobody waits for it any more: to break it off ends the process.
    working = asyncio.ensure_future(worker())
    try:
        while not working.done():
            message = await _unless(working, stream.next)
            if message is None:
                break
            try:
                if not mode.take(message):
                    raise RequestError(f"this stream takes no message of the type {message.type!r}", 400, "WrongMode")
            except RequestError as error:
                await stream.wrong(error)
                continue
            came.set()
    finally:
        gone = True
        came.set()
        await working


async def _unless(
    working: asyncio.Future[None], receive: Callable[[], Awaitable[wire.Message | None]]
) -> wire.Message | None:
    """The next message; None where the work is over before one comes."""
    coming = asyncio.ensure_future(receive())
    both: set[asyncio.Future[Any]] = {coming, working}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not coming.done():
        coming.cancel()
        with suppress(asyncio.CancelledError):
            await coming
        return None
    return coming.result()


def _turn(document: Document, services: Services) -> AbstractAsyncContextManager[None]:
    """What a text waits for before it goes to the processes, so that long ones never have all of them."""
    kernel = services.kernel
    if len(document.text) < LONG:
        return nullcontext()
    if kernel not in _turns:
        _turns[kernel] = asyncio.Semaphore(max(1, kernel.workers - 1))
    return _turns[kernel]

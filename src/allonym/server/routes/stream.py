"""The WebSocket: annotation while somebody types, and conversations that grow while people speak."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from allonym.document import Document
from allonym.errors import AllonymError, RequestError
from allonym.plan import Anonymized
from allonym.server.access import authorize_socket, get_services
from allonym.server.guard import Rate
from allonym.server.kernel import Kernel
from allonym.server.problems import describe_error, describe_invalid_request
from allonym.server.processing import (
    NO_TEXT,
    TextTask,
    check_text_length,
    detect_and_count_labels,
    dump_choice,
    measure_elapsed_milliseconds,
)
from allonym.server.services import Services
from allonym.server.wire import stream as wire
from allonym.server.wire.base import Problem, Wire

router = APIRouter(prefix="/v1", tags=["texts"])
MOST_TURNS = 20_000
PERMISSION = {"annotate": "detect", "transcript": "anonymize"}
RATE = 50.0
"""Messages a second that one stream may send."""

IDLE = 900.0
"""Seconds without a message after which a stream is closed."""

RECHECK = 30.0
"""Seconds for which a session or key that opened a stream counts without being looked up again."""

LONG = 20_000
"""Characters from which on a text counts as long: long texts never occupy all processes at a time."""

REFUSED, GOING, BINARY = 1008, 1001, 1003  # codes of RFC 6455
_turns: WeakKeyDictionary[Kernel, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(slots=True)
class _Stream:
    """An open WebSocket with its limits."""

    socket: WebSocket
    services: Services
    rate: Rate
    permission: str = ""
    checked: float = 0.0

    async def receive_message(self) -> wire.Message | None:
        """Return the next message; None where there are no more, or where the stream had to be closed."""
        while True:
            try:
                async with asyncio.timeout(IDLE):
                    text = await self.socket.receive_text()
            except WebSocketDisconnect:
                return None
            except (KeyError, TimeoutError) as error:  # bytes, or silence
                await self.close(BINARY if isinstance(error, KeyError) else GOING)
                return None
            try:
                await self._check_caller()
            except RequestError as error:
                await self.refuse(error)
                return None
            try:
                return wire.MESSAGES.validate_json(text)
            except ValidationError as error:
                problem = describe_invalid_request(error.errors(include_input=False, include_url=False), "message")[
                    "error"
                ]
                await self.send(wire.Wrong(error=Problem.model_validate(problem)))

    async def _check_caller(self) -> None:
        if not self.rate.acquire_token("messages"):
            raise RequestError(f"more than {RATE:g} messages a second", 429, "TooMany")
        if time.monotonic() - self.checked > RECHECK:
            await run_in_threadpool(authorize_socket, self.socket, *filter(None, [self.permission]))
            self.checked = time.monotonic()

    async def send(self, message: Wire) -> None:
        """Send a message, unless the client is gone."""
        with suppress(WebSocketDisconnect, RuntimeError):  # Starlette's errors for a closed stream
            await self.socket.send_text(message.model_dump_json())

    async def send_error(self, error: Exception, version: int | None = None) -> None:
        """Send an error; ``version``: of the text that it is about."""
        problem = describe_error(error)[1]["error"]
        await self.send(wire.Wrong(error=Problem.model_validate(problem), version=version))

    async def close(self, code: int) -> None:
        """Close the stream."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.socket.close(code)

    async def refuse(self, error: Exception) -> None:
        """Send an error and close the stream."""
        await self.send_error(error)
        await self.close(REFUSED)


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """An anonymised turn: its speaker (None: nobody is named) and its text."""

    speaker: str | None = field(repr=False)
    text: str = field(repr=False)


@dataclass(slots=True, repr=False)
class Transcript:
    """The turns of a conversation, as they came in and as they were last shown.

    However a conversation comes in, its turns read in the end as if the whole of it had been anonymised at once: each
    time all of it is processed, and :meth:`update_shown_turns` returns what that changes. The tagger remembers earlier
    turns, so that mostly the new turn costs time.
    """

    turns: list[tuple[str | None, str]] = field(default_factory=list)
    _shown: list[ShownTurn] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Transcript({len(self.turns)} turns)"

    def add_turn(self, speaker: str | None, text: str) -> None:
        """Add what somebody says."""
        self.turns.append((speaker or None, text))

    def make_document(self) -> Document:
        """Return all turns so far as a document."""
        return Document.conversation("", self.turns)

    def update_shown_turns(self, parts: Sequence[str]) -> tuple[dict[int, ShownTurn], dict[int, ShownTurn]]:
        """Return the new turns, and those that read otherwise than before, each by its index, from 0.

        Args:
            parts: of :meth:`make_document`, anonymised: for each turn the speaker, where it has one, and the text.
                Turns that were added after the document was made wait for the next time.
        """
        turns: list[ShownTurn] = []
        remaining = iter(parts)
        for speaker, _ in self.turns:
            name = next(remaining, None) if speaker else None
            text = next(remaining, None)
            if text is None:
                break
            turns.append(ShownTurn(name, text))
        before = self._shown
        revised = {i: turn for i, (turn, old) in enumerate(zip(turns, before, strict=False)) if turn != old}
        self._shown = turns
        return dict(enumerate(turns[len(before) :], len(before))), revised


@router.websocket("/stream")
async def open_stream(socket: WebSocket) -> None:
    """See the module. The protocol is in ``wire.stream``."""
    services = get_services(socket)
    try:
        await run_in_threadpool(authorize_socket, socket)
    except RequestError as error:
        status, body = describe_error(error)
        await socket.send_denial_response(JSONResponse(body, status))
        return
    await socket.accept()
    stream = _Stream(socket, services, Rate(RATE, 2 * RATE), checked=time.monotonic())
    opening = await stream.receive_message()
    if opening is None:
        return
    try:
        if not isinstance(opening, wire.Open):
            raise RequestError("the first message is {type: open, mode, policy}", 400, "InvalidRequest")
        stream.permission = PERMISSION[opening.mode]
        await run_in_threadpool(authorize_socket, socket, stream.permission)
        if opening.mode == "annotate" and opening.scope is not None:
            raise RequestError("scope is for the mode transcript", 400, "InvalidRequest")
        source = await run_in_threadpool(services.policies.describe_choice, dump_choice(opening.policy))
    except AllonymError as error:
        await stream.refuse(error)
        return
    task = TextTask(NO_TEXT, source, services.vault.operator_key, opening.scope or "")
    if opening.mode == "annotate":
        await _serve_stream(stream, _Annotation(stream, task))
    else:
        await _serve_stream(stream, _Transcription(stream, task, opening.scope is not None))


class _Annotation:
    """Texts to annotate, of which only the newest counts."""

    def __init__(self, stream: _Stream, task: TextTask) -> None:
        self._stream, self._task = stream, task
        self._newest: wire.TextIn | None = None

    def accept_message(self, message: wire.Message) -> bool:
        """Take a message in; whether this mode knows it."""
        if isinstance(message, wire.TextIn):
            self._newest = message
        return isinstance(message, wire.TextIn)

    async def process_newest(self) -> bool:
        """Process the newest text; whether the stream is over."""
        message, self._newest = self._newest, None
        if message is None:
            return False
        services, start = self._stream.services, time.perf_counter()
        try:
            check_text_length(message.text, services.settings.max_characters)
            task = replace(self._task, document=Document("", message.text))
            async with _limit_long_texts(task.document, services):
                spans, _, counts = await detect_and_count_labels(task, services)
        except AllonymError as error:
            await self._stream.send_error(error, message.version)
            return False
        elapsed = measure_elapsed_milliseconds(start)
        await self._stream.send(wire.Spans(version=message.version, spans=spans, counts=counts, milliseconds=elapsed))
        return False


class _Transcription:
    """A conversation that grows."""

    def __init__(self, stream: _Stream, task: TextTask, is_stored: bool) -> None:
        self._stream, self._task, self._is_stored = stream, task, is_stored
        self._transcript = Transcript()
        self._processed = self._size = 0
        self._over = False

    def accept_message(self, message: wire.Message) -> bool:
        """Take a message in; whether this mode knows it.

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
            self._transcript.add_turn(message.speaker, message.text)
        elif isinstance(message, wire.End):
            self._over = True
        return isinstance(message, wire.TurnIn | wire.End)

    async def process_newest(self) -> bool:
        """Process the conversation so far; whether the stream is over."""
        over, turns = self._over, len(self._transcript.turns)
        if turns == self._processed and not over:
            return False
        self._processed = turns
        try:
            result = await self._anonymize(self._transcript.make_document())
        except AllonymError as error:
            await self._stream.send_error(error)
            return over
        added, revised = self._transcript.update_shown_turns(result.parts if turns else ())
        changes = [wire.Revised(index=i, speaker=turn.speaker, text=turn.text) for i, turn in revised.items()]
        for index, turn in added.items():
            message = wire.TurnOut(index=index, speaker=turn.speaker, text=turn.text, revised=changes)
            await self._stream.send(message)
            changes = []
        if over:
            counts = dict(result.report.labels)
            await self._stream.send(wire.Ended(text=result.text, plan=result.plan.to_dict(), counts=counts))
            self._stream.services.metrics.count_text(self._size, counts)
        return over

    async def _anonymize(self, document: Document) -> Anonymized:
        services, task = self._stream.services, replace(self._task, document=document)
        async with _limit_long_texts(document, services):
            if not self._is_stored:
                return await services.kernel.run(TextTask.anonymize, task)
            task = replace(task, spans=await services.kernel.run(TextTask.find_spans, task))
            return await run_in_threadpool(task.anonymize_in_vault, services.vault)


async def _serve_stream(stream: _Stream, mode: _Annotation | _Transcription) -> None:
    """Take messages in while the newest work is done, until the client is gone or the work is over."""
    has_work = asyncio.Event()
    is_gone = False

    async def work_until_over() -> None:
        while True:
            await has_work.wait()
            has_work.clear()
            if is_gone:
                return
            if await mode.process_newest():
                await stream.close(1000)
                return

    # Work that a process has begun is finished, even if nobody waits for it any more: to break it off ends the process.
    worker = asyncio.ensure_future(work_until_over())
    try:
        while not worker.done():
            message = await _receive_until_over(worker, stream.receive_message)
            if message is None:
                break
            try:
                if not mode.accept_message(message):
                    raise RequestError(f"this stream takes no message of the type {message.type!r}", 400, "WrongMode")
            except RequestError as error:
                await stream.send_error(error)
                continue
            has_work.set()
    finally:
        is_gone = True
        has_work.set()
        await worker


async def _receive_until_over(
    worker: asyncio.Future[None], receive: Callable[[], Awaitable[wire.Message | None]]
) -> wire.Message | None:
    """Return the next message; None where the work is over before one comes."""
    receiving = asyncio.ensure_future(receive())
    both: set[asyncio.Future[Any]] = {receiving, worker}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not receiving.done():
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
        return None
    return receiving.result()


def _limit_long_texts(document: Document, services: Services) -> AbstractAsyncContextManager[None]:
    """Return what a text waits for before it goes to the processes, so that long texts never occupy all of them."""
    kernel = services.kernel
    if len(document.text) < LONG:
        return nullcontext()
    return _turns.setdefault(kernel, asyncio.Semaphore(max(1, kernel.workers - 1)))

"""The WebSocket: annotation while somebody types, and conversations that grow while people speak."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from allonym.document import Document
from allonym.errors import AllonymError, RequestError
from allonym.plan import Anonymized
from allonym.server.guard import RateLimiter
from allonym.server.problems import describe_error, make_invalid_request_body
from allonym.server.processing import (
    NO_TEXT,
    TextTask,
    check_text_length,
    detect_and_count_labels,
    dump_policy_choice,
    measure_elapsed_milliseconds,
)
from allonym.server.routes.parameters import get_services, identify_caller
from allonym.server.services import Services
from allonym.server.wire import texts as wire
from allonym.server.wire.base import Wire

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


@dataclass(slots=True)
class _Stream:
    """An open WebSocket with its limits."""

    socket: WebSocket
    services: Services
    rate: RateLimiter
    permission: str = ""
    scope: str | None = None
    checked: float = 0.0
    user_id: int = 0

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
            self.services.quota.add_bytes(self.user_id, len(text.encode("utf-8", "surrogatepass")))
            try:
                self.services.quota.check_may_send(self.user_id)
                await self._check_rate_and_permission()
            except RequestError as error:
                await self.send_error_and_close(error)
                return None
            try:
                return wire.MESSAGES.validate_json(text)
            except ValidationError as error:
                errors = error.errors(include_input=False, include_url=False)
                await self.send(wire.Wrong(**make_invalid_request_body(errors, "message")))

    async def _check_rate_and_permission(self) -> None:
        """Raise :class:`RequestError` where the client sends too fast, or may no longer."""
        if not self.rate.take_token("messages"):
            raise RequestError(f"more than {RATE:g} messages a second", 429, "TooMany")
        if time.monotonic() - self.checked > RECHECK:
            await self.check_caller()

    async def check_caller(self) -> None:
        """Raise :class:`RequestError` where the caller may not do what the stream is for, or not use its scope."""
        caller = await run_in_threadpool(identify_caller, self.socket, *filter(None, [self.permission]))
        if self.scope is not None:
            await run_in_threadpool(self.services.scopes.check_may_write, caller, self.scope)
        self.user_id, self.checked = caller.id, time.monotonic()

    async def send(self, message: Wire) -> None:
        """Send a message, unless the client is gone."""
        with suppress(WebSocketDisconnect, RuntimeError):  # Starlette's errors for a closed stream
            await self.socket.send_text(message.model_dump_json())

    async def send_error(self, error: Exception, version: int | None = None) -> None:
        """Send an error; ``version``: of the text that it is about."""
        await self.send(wire.Wrong(**describe_error(error)[1], version=version))

    async def close(self, code: int) -> None:
        """Close the stream."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.socket.close(code)

    async def send_error_and_close(self, error: Exception) -> None:
        """Send an error and close the stream."""
        await self.send_error(error)
        await self.close(REFUSED)


Turn = tuple[str | None, str]
"""A turn of a conversation: its speaker (None: nobody is named) and its text."""


class Transcript:
    """The turns of a conversation, as they came in and as they were last shown.

    However a conversation comes in, its turns read in the end as if the whole of it had been anonymised at once: each
    time all of it is processed, and :meth:`update_and_list_new_and_revised` returns what that changes. The tagger
    remembers earlier turns, so that mostly the new turn costs time.
    """

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._shown: list[Turn] = []

    def update_and_list_new_and_revised(
        self, anonymised_parts: Sequence[str]
    ) -> tuple[dict[int, Turn], dict[int, Turn]]:
        """Return the new turns, and those that read otherwise than before, each by its index, from 0.

        Args:
            anonymised_parts: of a conversation of these turns: for each turn the speaker, where it has one, and the
                text. Turns that were added after the conversation was processed wait for the next time.
        """
        turns: list[Turn] = []
        remaining = iter(anonymised_parts)
        for speaker, _ in self.turns:
            name = next(remaining, None) if speaker else None
            text = next(remaining, None)
            if text is None:
                break
            turns.append((name, text))
        before, self._shown = self._shown, turns
        revised = {i: turn for i, (turn, old) in enumerate(zip(turns, before, strict=False)) if turn != old}
        return dict(enumerate(turns[len(before) :], len(before))), revised


@router.websocket("/stream")
async def serve_websocket(socket: WebSocket) -> None:
    """See the module. The protocol is in ``wire.texts``."""
    services = get_services(socket)
    try:
        await run_in_threadpool(identify_caller, socket)
    except RequestError as error:
        status, body = describe_error(error)
        await socket.send_denial_response(JSONResponse(body, status))
        return
    await socket.accept()
    stream = _Stream(socket, services, RateLimiter(RATE, 2 * RATE), checked=time.monotonic())
    opening = await stream.receive_message()
    if opening is None:
        return
    try:
        if not isinstance(opening, wire.Open):
            raise RequestError("the first message is {type: open, mode, policy}", 400, "InvalidRequest")
        if opening.mode == "annotate" and opening.scope is not None:
            raise RequestError("scope is for the mode transcript", 400, "InvalidRequest")
        stream.permission, stream.scope = PERMISSION[opening.mode], opening.scope
        await stream.check_caller()
        source = await run_in_threadpool(services.policies.make_policy_json, dump_policy_choice(opening.policy))
    except AllonymError as error:
        await stream.send_error_and_close(error)
        return
    task = TextTask(NO_TEXT, source, services.vault.operator_key, opening.scope or "")
    if opening.mode == "annotate":
        await _serve_stream(stream, _Annotation(stream, task))
    else:
        await _serve_stream(stream, _Transcription(stream, task, opening.scope is not None))


class _Annotation:
    """Texts to annotate, of which only the newest counts."""

    accepts: tuple[type[Wire], ...] = (wire.TextIn,)
    is_over = False

    def __init__(self, stream: _Stream, task: TextTask) -> None:
        self._stream, self._task = stream, task
        self._newest: wire.TextIn | None = None

    def accept_message(self, message: wire.Message) -> None:
        """Take a message in."""
        if isinstance(message, wire.TextIn):
            self._newest = message

    async def send_newest_results(self) -> None:
        """Process the newest text and send its spans."""
        message, self._newest = self._newest, None
        if message is None:
            return
        services, start = self._stream.services, time.perf_counter()
        try:
            check_text_length(message.text, services.settings.max_characters)
            task = replace(self._task, document=Document("", message.text))
            async with _hold_slot_if_long(task.document, services):
                spans, _, counts = await detect_and_count_labels(task, services)
        except AllonymError as error:
            await self._stream.send_error(error, message.version)
            return
        elapsed = measure_elapsed_milliseconds(start)
        await self._stream.send(wire.Spans(version=message.version, spans=spans, counts=counts, milliseconds=elapsed))


class _Transcription:
    """A conversation that grows."""

    accepts: tuple[type[Wire], ...] = (wire.TurnIn, wire.End)

    def __init__(self, stream: _Stream, task: TextTask, is_stored: bool) -> None:
        self._stream, self._task, self._is_stored = stream, task, is_stored
        self._transcript = Transcript()
        self._processed = self._size = 0
        self._end_received = self.is_over = False

    def accept_message(self, message: wire.Message) -> None:
        """Take a message in.

        Raises:
            RequestError: the conversation gets too long.
        """
        if isinstance(message, wire.TurnIn):
            size = self._size + len(message.text) + len(message.speaker or "") + 3
            most, turns = self._stream.services.settings.max_characters, self._transcript.turns
            if size > most or len(turns) >= MOST_TURNS:
                raise RequestError(
                    f"a conversation has at most {most} characters and {MOST_TURNS} turns here", 413, "TooLarge"
                )
            self._size = size
            turns.append((message.speaker or None, message.text))
        self._end_received = self._end_received or isinstance(message, wire.End)

    async def send_newest_results(self) -> None:
        """Process the conversation so far and send what changed; after the end of it, the stream is over."""
        over, turns = self._end_received, len(self._transcript.turns)
        if turns == self._processed and not over:
            return
        self._processed, self.is_over = turns, over
        try:
            result = await self._anonymize(Document.conversation("", self._transcript.turns))
        except AllonymError as error:
            await self._stream.send_error(error)
            return
        added, revised = self._transcript.update_and_list_new_and_revised(result.parts if turns else ())
        changes = [wire.Revised(index=i, speaker=speaker, text=text) for i, (speaker, text) in revised.items()]
        for index, (speaker, text) in added.items():
            await self._stream.send(wire.TurnOut(index=index, speaker=speaker, text=text, revised=changes))
            changes = []
        if over:
            counts = dict(result.report.labels)
            await self._stream.send(wire.Ended(text=result.text, plan=result.plan.to_dict(), counts=counts))
            self._stream.services.metrics.count_processed_text(self._size, counts)

    async def _anonymize(self, document: Document) -> Anonymized:
        services, task = self._stream.services, replace(self._task, document=document)
        async with _hold_slot_if_long(document, services):
            if not self._is_stored:
                return await services.kernel.run(TextTask.anonymize, task)
            spans = await services.kernel.run(TextTask.get_or_detect_spans, task)
            # Only the whole conversation has a plan: one for each turn would fill the vault.
            task = replace(task, spans=spans, keeps_plan=self.is_over)
            return await run_in_threadpool(task.anonymize_with_vault, services.vault)


async def _serve_stream(stream: _Stream, session: _Annotation | _Transcription) -> None:
    """Take messages in while the newest work is done, until the client is gone or the work is over."""
    receiving = asyncio.ensure_future(stream.receive_message())
    working: asyncio.Future[None] | None = None
    has_news = False
    try:
        while True:
            both: list[asyncio.Future[Any]] = [receiving] if working is None else [receiving, working]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working is not None and working.done():
                working.result()
                if session.is_over:
                    await stream.close(1000)
                    return
                working = None
            if receiving.done():
                message = receiving.result()
                if message is None:
                    return
                try:
                    if not isinstance(message, session.accepts):
                        refusal = f"this stream takes no message of the type {message.type!r}"
                        raise RequestError(refusal, 400, "WrongMode")
                    session.accept_message(message)
                    has_news = True
                except RequestError as error:
                    await stream.send_error(error)
                receiving = asyncio.ensure_future(stream.receive_message())
            if has_news and working is None:
                working, has_news = asyncio.ensure_future(session.send_newest_results()), False
    finally:
        receiving.cancel()
        # Work that a process has begun is finished, even if nobody waits for it: to break it off ends the process.
        if working is not None:
            await working


def _hold_slot_if_long(document: Document, services: Services) -> AbstractAsyncContextManager[Any]:
    """Return what a text waits for before it goes to the processes, so that long texts never occupy all of them."""
    return nullcontext() if len(document.text) < LONG else services.kernel.long_text_turns

"""From the upstream's answer to the client's, also in server-sent events, whose bytes are split anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from allonym.server.gateway.protect import ProtectedRequest
from allonym.server.gateway.refusal import LogLine, Unanswered, make_error_body, make_lost_request_error
from allonym.server.gateway.streams import ChatAnswer, ResponsesAnswer, restore_response

LARGEST = 16 << 20
"""Bytes of one event."""

_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, and its data. One without data is a comment that keeps the connection alive."""

    name: str = ""
    data: str = field(default="", repr=False)


class EventParser:
    """Parses bytes to events."""

    def __init__(self) -> None:
        self._waiting = b""
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._started = False

    def parse_next_bytes(self, data: bytes) -> list[Event]:
        """Return the events that end in the next bytes.

        Raises:
            Unanswered: an event is larger than :data:`LARGEST`.
        """
        self._size += len(data)
        if self._size > LARGEST:
            raise Unanswered(f"the upstream sent an event of more than {LARGEST >> 20} MiB")
        waiting = self._waiting + data
        return_at_end = b"\r" if waiting.endswith(b"\r") else b""  # a line feed that belongs to it may follow
        *lines, rest = _LINE.split(waiting.removesuffix(return_at_end))
        self._waiting = rest + return_at_end
        return [event for line in lines for event in self._read_line(line)]

    def _read_line(self, line: bytes) -> Iterator[Event]:
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                yield Event(self._name, "\n".join(self._data))
            self._name, self._data, self._size = "", [], 0
            return
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif not field:
            self._size = 0 if not self._data else self._size
            yield Event()


def parse_json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return a JSON object; None where the data are none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dump_json(value: object) -> bytes:
    """Return a value as JSON; readable characters stay readable where they can be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def format_event(data: object, name: str = "") -> bytes:
    """Return an event with JSON, or with a text of one line."""
    body = data.encode() if isinstance(data, str) else dump_json(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + body + b"\n\n"


_DONE = "[DONE]"


def restore_answer(request: ProtectedRequest, data: bytes, status: int) -> bytes:
    """Return a complete answer with its originals.

    Raises:
        Unanswered: it is no JSON object, and no error either.
    """
    answer = parse_answer_or_make_error(data, status)
    return dump_json(restore_response(answer, request.original, request.restoring.restore_json))


def parse_answer_or_make_error(data: bytes, status: int) -> dict[str, Any]:
    """Return the JSON object of an answer; an error of ours if the upstream's error is none.

    Raises:
        Unanswered: it is none, and the status is that of a good answer.
    """
    value = parse_json_object(data)
    if value is not None:
        return value
    failure = Unanswered(f"the upstream answered HTTP {status}, and not with a JSON object")
    if status < 400:
        raise failure
    return make_error_body(failure)


async def restore_events(
    request: ProtectedRequest,
    blocks: AsyncIterator[bytes],
    describe_failure: Callable[[Exception], Unanswered],
    line: LogLine,
) -> AsyncIterator[bytes]:
    """Yield an answer in events. An event describes whatever breaks it off, after the text that was held back.

    Args:
        request: that is answered.
        blocks: the upstream's bytes.
        describe_failure: makes an error of the connection into one for people.
        line: gets what broke the answer off, or that nothing did, after all else.
    """
    is_chat = "messages" in request.original
    answer: ChatAnswer | ResponsesAnswer = ChatAnswer(request.restoring)
    if not is_chat:
        answer = ResponsesAnswer(request.restoring, request.original)
    failure: Exception | None = None
    is_over = False
    parser = EventParser()
    events: list[bytes] = []
    try:
        async for data in blocks:
            for event in parser.parse_next_bytes(data):
                is_over = is_over or event.data == _DONE
                events += _format_restored_event(answer, event)
            if events:
                yield b"".join(events)
                events = []
    except httpx.HTTPError as error:
        failure = describe_failure(error)
    except Exception as error:  # whatever it is, the client gets to know
        failure = make_lost_request_error(error)
    if failure is None and not is_over and not answer.is_complete:
        failure = Unanswered("the upstream broke the answer off", "upstream_broke_off")
    events += _format_remaining_events(answer)
    if failure is not None:
        body = make_error_body(failure)
        events.append(format_event(body) if is_chat else format_event({"type": "error", **body}, "error"))
    if events:
        yield b"".join(events)
    line.error = failure


def _format_restored_event(answer: ChatAnswer | ResponsesAnswer, event: Event) -> list[bytes]:
    """Return what is sent for one event of the upstream."""
    if not event.data:
        return [b":\n\n"]
    if event.data == _DONE:
        return [*_format_remaining_events(answer), format_event(_DONE, event.name)]
    value = parse_json_object(event.data)
    if value is None:
        raise Unanswered("the upstream sent an event that is no JSON")
    return [format_event(data, name) for name, data in answer.restore_event(event.name, value)]


def _format_remaining_events(answer: ChatAnswer | ResponsesAnswer) -> list[bytes]:
    return [format_event(data, name) for name, data in answer.flush_text()]

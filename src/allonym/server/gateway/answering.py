"""From the upstream's answer to the client's, also in server-sent events, whose bytes are split anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from allonym.server.gateway.messages import MessagesAnswer
from allonym.server.gateway.passages import dump_json
from allonym.server.gateway.protect import ProtectedRequest
from allonym.server.gateway.refusal import LogLine, Unanswered, make_error_body, make_lost_request_error
from allonym.server.gateway.restoring import AnswerRestorer, Call, TextStream, read_call

JsonObject = dict[str, Any]
SentEvent = tuple[str, JsonObject]
"""The name of an event and its data."""

_TEXTS = {
    *((name,) for name in ("content", "refusal", "reasoning", "reasoning_content")),
    ("function_call", "arguments"),
    ("tool_calls", "function", "arguments"),
    ("tool_calls", "custom", "input"),
}
"""Where the texts of a delta stand that arrive in pieces: the names of the fields that lead to each."""


class _Choice:
    """One choice of a chat completion: the streams of its texts, by their places."""

    def __init__(self, restoring: AnswerRestorer) -> None:
        self._restoring = restoring
        self._streams: dict[tuple[str | int, ...], TextStream] = {}
        self._calls: dict[int, JsonObject] = {}
        self.is_finished = False

    def restore_delta(self, value: Any, *place: str | int) -> Any:
        """Return a delta, or the part of one at a place, with the text that is certain."""
        names = tuple(part for part in place if isinstance(part, str))
        if isinstance(value, str) and names in _TEXTS:
            if place not in self._streams:
                call = self._read_call(place[1] if len(place) > 2 else -1) if len(names) > 1 else None
                is_json = names[-1] == "arguments" or (self._restoring.json and names == ("content",))
                self._streams[place] = self._restoring.start_stream(call, is_json=is_json)
            return self._streams[place].restore_piece(value)
        if names == ("function_call",):
            self._note_call(-1, value)
        if isinstance(value, dict) and any(len(text) > len(names) and text[: len(names)] == names for text in _TEXTS):
            return {name: self.restore_delta(member, *place, name) for name, member in value.items()}
        if isinstance(value, list) and names == ("tool_calls",):
            return [self._restore_call(call, _get_index(call, n)) for n, call in enumerate(value)]
        return value if len(names) > 1 else self._restoring.restore_json(value, names[0])

    def _restore_call(self, value: Any, index: int) -> Any:
        self._note_call(index, value)
        return self.restore_delta(value, "tool_calls", index)

    def _note_call(self, index: int, value: Any) -> None:
        """Note the id and the name of a call, which come before its arguments.

        Raises:
            Unanswered: they come later, when it has been decided where the arguments go.
        """
        if not isinstance(value, dict):
            return
        call = self._calls.setdefault(index, {"id": "", "name": ""})
        inner = next((value[kind] for kind in ("function", "custom") if isinstance(value.get(kind), dict)), value)
        for name, part in (("id", value.get("id")), ("name", inner.get("name"))):
            if isinstance(part, str) and part and part != call[name]:
                call_place = ("function_call",) if index < 0 else ("tool_calls", index)
                if any(place[: len(call_place)] == call_place for place in self._streams):
                    raise Unanswered("the upstream named a tool after its arguments had begun")
                call[name] += part

    def _read_call(self, index: str | int) -> Call:
        call = self._calls.get(int(index), {})
        return Call(call.get("name", ""), call.get("id", ""))

    def flush_text(self) -> JsonObject:
        """Return the rest of all texts, as a delta; empty where nothing was held back."""
        rests = {place: rest for place, stream in self._streams.items() if (rest := stream.flush_text())}
        out: JsonObject = {}
        calls: dict[int, JsonObject] = {}
        for place, rest in rests.items():
            match place:
                case (str(name),):
                    out[name] = rest
                case ("tool_calls", int(index), str(kind), str(name)):
                    calls.setdefault(index, {"index": index})[kind] = {name: rest}
                case (str(holder), str(name)):
                    out[holder] = {name: rest}
        return {**out, "tool_calls": [calls[index] for index in sorted(calls)]} if calls else out


def _get_index(item: Any, position: int) -> int:
    """Return the index that an item of a list names, by default its position."""
    index = item.get("index", position) if isinstance(item, dict) else position
    return index if isinstance(index, int) else position


class ChatAnswer:
    """The chunks of a chat completion."""

    def __init__(self, restoring: AnswerRestorer) -> None:
        self._restoring = restoring
        self._choices: dict[int, _Choice] = {}
        self._last: JsonObject = {}

    @property
    def is_complete(self) -> bool:
        """Whether each choice has a reason why it ended."""
        return bool(self._choices) and all(choice.is_finished for choice in self._choices.values())

    def restore_event(self, name: str, data: JsonObject) -> Iterator[SentEvent]:
        """Yield the chunks that are sent for the upstream's next chunk."""
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            if "error" in data:
                yield from self.flush_text()
            yield name, self._restoring.restore_json(data)
            return
        self._last = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        before, now = [], []
        for position, choice in enumerate(choices):
            if not isinstance(choice, dict):
                continue
            index = choice.get("index", position)
            state = self._choices.setdefault(index, _Choice(self._restoring))
            delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
            assert isinstance(delta, dict)
            out = state.restore_delta(delta)
            if choice.get("finish_reason") is not None and not state.is_finished:
                state.is_finished = True
                out = _join_deltas(out, state.flush_text())
                if out:
                    before.append({"index": index, "delta": out, "logprobs": None, "finish_reason": None})
                now.append({**choice, "delta": {}})
            elif out != delta and _is_empty_delta(out) and not data.get("usage"):
                continue  # all of it is held back
            else:
                now.append({**choice, "delta": out})
        if before:
            yield name, {**self._last, "choices": before}
        if now or data.get("usage"):
            yield name, {**data, "choices": now}

    def flush_text(self) -> Iterator[SentEvent]:
        """Yield the events with the text that was held back."""
        for index, choice in self._choices.items():
            if rest := choice.flush_text():
                ending = {"index": index, "delta": rest, "logprobs": None, "finish_reason": None}
                yield "", {**self._last, "choices": [ending]}


def _join_deltas(delta: JsonObject, more: JsonObject) -> JsonObject:
    """Join two deltas of one choice, without empty members."""
    out = {name: value for name, value in delta.items() if value not in ("", None, [])}
    for name, value in more.items():
        if name == "tool_calls":
            out[name] = [*out.get(name, ()), *value]
        elif name == "function_call" and isinstance(out.get(name), dict):
            before = out[name].get("arguments") or ""
            out[name] = {**out[name], "arguments": before + value["arguments"]}
        else:
            out[name] = out.get(name, "") + value if isinstance(value, str) else value
    return out


def _is_empty_delta(value: Any) -> bool:
    """Whether a delta is empty: no text, no name, no id."""
    if isinstance(value, dict):
        return all(name in ("index", "type") or _is_empty_delta(member) for name, member in value.items())
    if isinstance(value, list):
        return all(map(_is_empty_delta, value))
    return value in ("", None)


_OVER = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_CALL_EVENT = re.compile(r"response\.(?!output_text|refusal|reasoning|content_part|audio|output_item)\w+(?:\.\w+)+")
_PLACE = ("item_id", "output_index", "content_index", "summary_index")


class ResponsesAnswer:
    """The events of a response."""

    def __init__(self, restoring: AnswerRestorer, request: JsonObject) -> None:
        self._restoring = restoring
        self._request = request
        self._open: dict[tuple[object, ...], tuple[TextStream, JsonObject]] = {}
        self._calls: dict[object, Call | None] = {}
        self._number = 0
        self.is_complete = False

    def restore_event(self, name: str, data: JsonObject) -> Iterator[SentEvent]:
        """Yield the events that are sent for the upstream's next event."""
        kind = data.get("type")
        kind = kind if isinstance(kind, str) else name
        text = data.get("delta")
        if isinstance(data.get("item"), dict):
            self._calls[data.get("output_index")] = read_call(data["item"])
        call = None
        if _CALL_EVENT.fullmatch(kind):  # of an item that was not announced nobody knows whose it is
            call = self._calls.get(data.get("output_index")) or Call("", is_clients=False)
        if kind.endswith(".delta") and isinstance(text, str):
            place = (kind, *(data.get(name) for name in _PLACE))
            if place not in self._open:
                is_json = "arguments" in kind or (self._restoring.json and "output_text" in kind)
                self._open[place] = self._restoring.start_stream(call, is_json=is_json), data
            out = self._open[place][0].restore_piece(text)
            if out:
                yield name, self._renumber_event({**data, "delta": out})
            return
        if kind.endswith(".done"):
            yield from self._flush_ended_texts(kind, data)
        if kind in _OVER or kind == "error":
            self.is_complete = True
            yield from self.flush_text()
        # All but the deltas repeats them, unless an upstream sends none.
        first = kind in _OVER and not any(self._restoring.counts.values())
        restore = self._restoring.restore_json if first else self._restoring.restore_json_uncounted
        if call is not None:
            yield name, self._renumber_event(self._restoring.restore_json_uncounted(data, call))
            return
        yield name, self._renumber_event(restore_response(data, self._request, restore))

    def flush_text(self) -> Iterator[SentEvent]:
        """Yield the events with the text that was held back."""
        for place in list(self._open):
            yield from self._flush_text(place)

    def _flush_ended_texts(self, event_type: str, data: JsonObject) -> Iterator[SentEvent]:
        """Yield the rest of the texts that an event ends: its own, or all of its item."""
        delta_kind = event_type.removesuffix(".done") + ".delta"
        for place in list(self._open):
            same = place[1:] == tuple(data.get(name) for name in _PLACE) and place[0] == delta_kind
            if same or (event_type == "response.output_item.done" and place[2] == data.get("output_index")):
                yield from self._flush_text(place)

    def _flush_text(self, key: tuple[object, ...]) -> Iterator[SentEvent]:
        """Yield what was held back of an open text, and forget that text."""
        stream, first = self._open.pop(key)
        if rest := stream.flush_text():
            ending = {k: v for k, v in first.items() if k not in ("logprobs", "obfuscation")}
            if "logprobs" in first:
                ending["logprobs"] = []
            yield str(key[0]), self._renumber_event({**ending, "delta": rest})

    def _renumber_event(self, data: JsonObject) -> JsonObject:
        """Return the data with the number of its event, now that there are more or fewer events."""
        if "sequence_number" not in data:
            return data
        number, self._number = self._number, self._number + 1
        return {**data, "sequence_number": number}


_ECHOED = ("instructions", "metadata", "user", "safety_identifier", "prompt_cache_key", "tools", "text", "prompt")


def restore_response(value: JsonObject, request: JsonObject, restore: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Restore a response, or an event with one; fields that repeat the request are as the client wrote them."""
    if isinstance(value.get("response"), dict):
        rest = restore({name: member for name, member in value.items() if name != "response"})
        inner = restore_response(value["response"], request, restore)
        return {name: inner if name == "response" else rest[name] for name in value}
    if value.get("object") != "response":
        return restore(value)
    rest = restore({name: member for name, member in value.items() if name not in _ECHOED})
    echoed = {name: value[name] if name in ("text", "tools") else None for name in _ECHOED if name in value}
    return {name: request.get(name, echoed[name]) if name in echoed else rest[name] for name in value}


StreamedAnswer = ChatAnswer | ResponsesAnswer | MessagesAnswer
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
    is_chat = request.path == "chat/completions"
    answer: StreamedAnswer = ChatAnswer(request.restoring)
    if request.path == "messages":
        answer = MessagesAnswer(request.restoring)
    elif not is_chat:
        answer = ResponsesAnswer(request.restoring, request.original)
    failure: Exception | None = None
    is_over = False
    parser = EventParser()
    events: list[bytes] = []
    try:
        async for data in blocks:
            for event in parser.parse_next_bytes(data):
                is_over = is_over or event.data == _DONE
                if event.data == _DONE:
                    events += (*_format_remaining_events(answer), _format_counts(request))
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
    if not is_over:
        events.append(_format_counts(request))
    if failure is not None:
        body = make_error_body(failure)
        events.append(format_event(body) if is_chat else format_event({"type": "error", **body}, "error"))
    if events:
        yield b"".join(events)
    line.error = failure


def _format_restored_event(answer: StreamedAnswer, event: Event) -> list[bytes]:
    """Return what is sent for one event of the upstream."""
    if not event.data:
        return [b":\n\n"]
    if event.data == _DONE:
        return [format_event(_DONE, event.name)]
    value = parse_json_object(event.data)
    if value is None:
        raise Unanswered("the upstream sent an event that is no JSON")
    return [format_event(data, name) for name, data in answer.restore_event(event.name, value)]


def _format_remaining_events(answer: StreamedAnswer) -> list[bytes]:
    return [format_event(data, name) for name, data in answer.flush_text()]


def _format_counts(request: ProtectedRequest) -> bytes:
    """Return a comment, which clients skip, with the counts that a complete answer has in a header."""
    return f": allonym {request.restoring.format_counts()}\n\n".encode()

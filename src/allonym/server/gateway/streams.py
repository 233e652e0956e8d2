"""Answers that arrive in events: each text of an answer is a stream of its own, restored piece by piece.

What is held back of a text, because it may become a placeholder, is sent before the event that ends the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from allonym.server.gateway.restoring import JsonText, Restoring, Text

Data = dict[str, Any]
Sent = tuple[str, Data]
"""The name of an event and its data."""

_SAID = ("content", "refusal", "reasoning", "reasoning_content")


class Answer(Protocol):
    """An answer that arrives in events."""

    def event(self, name: str, data: Data) -> Iterator[Sent]:
        """What is sent for the upstream's next event."""
        ...

    def rest(self) -> Iterator[Sent]:
        """What was held back and is sent when nothing follows."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the upstream said that it has ended."""
        ...


class _Choice:
    """One choice of a chat completion: the streams of its texts and of its tool calls."""

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        self._texts: dict[str, Text | JsonText] = {}
        self._calls: dict[int, dict[str, Text | JsonText]] = {}
        self._function = restoring.arriving(json=True)
        self.finished = False

    def fed(self, delta: Data) -> Data:
        """The delta with what is decided."""
        out: Data = {}
        for name, value in delta.items():
            if name in _SAID and isinstance(value, str):
                out[name] = self._text(name).feed(value)
            elif name == "tool_calls" and isinstance(value, list):
                out[name] = [self._call(n, call) for n, call in enumerate(value)]
            elif name == "function_call" and isinstance(value, dict):
                out[name] = _with_arguments(value, self._function)
            else:
                out[name] = self._restoring.anything(value, name)
        return out

    def held(self) -> Data:
        """The rest of all texts, as a delta; empty where nothing was held back."""
        out: Data = {name: rest for name, stream in self._texts.items() if (rest := stream.end())}
        calls = []
        for index, streams in sorted(self._calls.items()):
            call: Data = {}
            if "function" in streams and (rest := streams["function"].end()):
                call["function"] = {"arguments": rest}
            if "custom" in streams and (rest := streams["custom"].end()):
                call["custom"] = {"input": rest}
            if call:
                calls.append({"index": index, **call})
        if calls:
            out["tool_calls"] = calls
        if rest := self._function.end():
            out["function_call"] = {"arguments": rest}
        return out

    def _text(self, name: str) -> Text | JsonText:
        if name not in self._texts:
            self._texts[name] = self._restoring.arriving(json=self._restoring.json and name == "content")
        return self._texts[name]

    def _call(self, place: int, call: Any) -> Any:
        if not isinstance(call, dict):
            return call
        index = call.get("index", place)
        streams = self._calls.setdefault(index if isinstance(index, int) else place, {})
        out = dict(call)
        if isinstance(call.get("function"), dict):
            stream = streams.setdefault("function", self._restoring.arriving(json=True))
            out["function"] = _with_arguments(call["function"], stream)
        if isinstance(call.get("custom"), dict):
            custom = dict(call["custom"])
            if isinstance(custom.get("input"), str):
                custom["input"] = streams.setdefault("custom", self._restoring.arriving()).feed(custom["input"])
            out["custom"] = custom
        return out


def _with_arguments(function: Data, stream: Text | JsonText) -> Data:
    said = function.get("arguments")
    return {**function, "arguments": stream.feed(said)} if isinstance(said, str) else function


class ChatAnswer:
    """The chunks of a chat completion."""

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        self._choices: dict[int, _Choice] = {}
        self._last: Data = {}

    @property
    def whole(self) -> bool:
        """Whether each choice has a reason why it ended."""
        return bool(self._choices) and all(choice.finished for choice in self._choices.values())

    def event(self, name: str, data: Data) -> Iterator[Sent]:
        """What is sent for the upstream's next chunk."""
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            if "error" in data:
                yield from self.rest()
            yield name, self._restoring.anything(data)
            return
        self._last = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        before, now = [], []
        for place, given in enumerate(choices):
            if not isinstance(given, dict):
                continue
            index = given.get("index", place)
            state = self._choices.setdefault(index, _Choice(self._restoring))
            delta = given.get("delta") if isinstance(given.get("delta"), dict) else {}
            assert isinstance(delta, dict)
            out = state.fed(delta)
            if given.get("finish_reason") is not None and not state.finished:
                state.finished = True
                out = _joined(out, state.held())
                if out:
                    before.append({"index": index, "delta": out, "logprobs": None, "finish_reason": None})
                now.append({**given, "delta": {}})
            elif out != delta and _is_empty(out) and not data.get("usage"):
                continue  # all of it is held back
            else:
                now.append({**given, "delta": out})
        if before:
            yield name, {**self._last, "choices": before}
        if now or data.get("usage"):
            yield name, {**data, "choices": now}

    def rest(self) -> Iterator[Sent]:
        """What was held back."""
        for index, choice in self._choices.items():
            if held := choice.held():
                told = {"index": index, "delta": held, "logprobs": None, "finish_reason": None}
                yield "", {**self._last, "choices": [told]}


def _joined(delta: Data, more: Data) -> Data:
    """Two deltas of one choice as one, without what is empty."""
    out = {name: value for name, value in delta.items() if value not in ("", None, [])}
    for name, value in more.items():
        if name == "tool_calls":
            out[name] = [*out.get(name, ()), *value]
        elif name == "function_call" and isinstance(out.get(name), dict):
            said = out[name].get("arguments") or ""
            out[name] = {**out[name], "arguments": said + value["arguments"]}
        else:
            out[name] = out.get(name, "") + value if isinstance(value, str) else value
    return out


def _is_empty(value: Any) -> bool:
    """Whether a delta says nothing: no text, no name, no id."""
    if isinstance(value, dict):
        return all(name in ("index", "type") or _is_empty(one) for name, one in value.items())
    if isinstance(value, list):
        return all(map(_is_empty, value))
    return value in ("", None)


_OVER = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_PLACE = ("item_id", "output_index", "content_index", "summary_index")


class ResponsesAnswer:
    """The events of a response."""

    def __init__(self, restoring: Restoring, given: Data) -> None:
        self._restoring = restoring
        self._given = given
        self._open: dict[tuple[object, ...], tuple[Text | JsonText, Data]] = {}
        self._number = 0
        self.whole = False

    def event(self, name: str, data: Data) -> Iterator[Sent]:
        """What is sent for the upstream's next event."""
        kind = data.get("type")
        kind = kind if isinstance(kind, str) else name
        said = data.get("delta")
        if kind.endswith(".delta") and isinstance(said, str):
            place = (kind, *(data.get(one) for one in _PLACE))
            if place not in self._open:
                is_json = "arguments" in kind or (self._restoring.json and "output_text" in kind)
                self._open[place] = self._restoring.arriving(json=is_json), data
            out = self._open[place][0].feed(said)
            if out:
                yield name, self._numbered({**data, "delta": out})
            return
        if kind.endswith(".done"):
            yield from self._closed(kind, data)
        if kind in _OVER or kind == "error":
            self.whole = True
            yield from self.rest()
        # All but the deltas repeats them, unless an upstream sends none.
        first = kind in _OVER and not (self._restoring.restored or self._restoring.unknown)
        restore = self._restoring.anything if first else self._restoring.again
        yield name, self._numbered(response_restored(data, self._given, restore))

    def rest(self) -> Iterator[Sent]:
        """What was held back."""
        for place in list(self._open):
            yield from self._end(place)

    def _closed(self, kind: str, data: Data) -> Iterator[Sent]:
        """The rest of the texts that an event ends: its own, or all of its item."""
        own = kind.removesuffix(".done") + ".delta"
        for place in list(self._open):
            same = place[1:] == tuple(data.get(one) for one in _PLACE) and place[0] == own
            if same or (kind == "response.output_item.done" and place[2] == data.get("output_index")):
                yield from self._end(place)

    def _end(self, place: tuple[object, ...]) -> Iterator[Sent]:
        stream, first = self._open.pop(place)
        if rest := stream.end():
            told = {k: v for k, v in first.items() if k not in ("logprobs", "obfuscation")}
            if "logprobs" in first:
                told["logprobs"] = []
            yield str(place[0]), self._numbered({**told, "delta": rest})

    def _numbered(self, data: Data) -> Data:
        """The data with the number that its event has now that there are more or fewer of them."""
        if "sequence_number" not in data:
            return data
        number, self._number = self._number, self._number + 1
        return {**data, "sequence_number": number}


_ECHOED = ("instructions", "metadata", "user", "safety_identifier", "prompt_cache_key", "tools", "text", "prompt")


def response_restored(value: Data, given: Data, restore: Callable[[Data], Data]) -> Data:
    """A response, or what holds one, restored; what it repeats of the request is as the client wrote it."""
    if isinstance(value.get("response"), dict):
        rest = restore({name: one for name, one in value.items() if name != "response"})
        inner = response_restored(value["response"], given, restore)
        return {name: inner if name == "response" else rest[name] for name in value}
    if value.get("object") != "response":
        return restore(value)
    rest = restore({name: one for name, one in value.items() if name not in _ECHOED})
    kept = {name: value[name] if name in ("text", "tools") else None for name in _ECHOED if name in value}
    return {name: given.get(name, kept[name]) if name in kept else rest[name] for name in value}

"""Anthropic's messages: the fields of requests, and answers in events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from allonym.server.gateway import reading
from allonym.server.gateway.reading import Field, FieldReaders, make_list_reader, make_object_reader
from allonym.server.gateway.restoring import AnswerRestorer, Call, TextStream, read_call
from allonym.server.gateway.shapes import is_allowed_hosted_tool, map_readers

_BUILT_IN_TYPE = re.compile(r"(?:bash|text_editor|computer|memory)_[0-9]{8}")
_ENABLED = make_object_reader(map_readers(number="enabled"))
_CACHED = map_readers(word="type", cache_control="cache_control")


def _collect_result(field: Field) -> None:
    """Collect the result of a call: a text, or blocks."""
    reading.collect_content(field, _RESULT_BLOCKS)


def _collect_source(field: Field) -> None:
    """Collect the source of a document, if it is text."""
    if field.get_type_member() != "text":
        message = "is a document that cannot be protected; the gateway's setting 'media' can allow it: file"
        raise field.make_refusal(message, "unsupported_content")
    reading.apply_field_readers(
        field, {"type": reading.check_word, "media_type": _check_plain, "data": reading.collect_text}
    )


def _check_plain(field: Field) -> None:
    if field.value != "text/plain":
        raise field.make_refusal("must be text/plain", "unsupported_content")


_RESULT_BLOCKS: Mapping[str, FieldReaders] = {
    "search_result": {
        **map_readers(_CACHED, text="source title", content="content"),
        "citations": _ENABLED,
    },
    "document": {
        **map_readers(_CACHED, text="title context"),
        "source": _collect_source,
        "citations": _ENABLED,
    },
}
_USE = map_readers(_CACHED, human_id="id", name="name", json="input", sealed="caller")
_SERVER_RESULT = map_readers(_CACHED, human_id="tool_use_id", sealed="content caller")
_BLOCKS: Mapping[str, FieldReaders] = {
    **_RESULT_BLOCKS,
    "tool_use": _USE,
    "server_tool_use": _USE,
    "tool_result": {
        **map_readers(_CACHED, human_id="tool_use_id", number="is_error"),
        "content": _collect_result,
    },
    "thinking": map_readers(word="type", text="thinking", base64="signature"),
    "redacted_thinking": map_readers(word="type", base64="data"),
    **dict.fromkeys(("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"), _SERVER_RESULT),
}


def _collect_message(field: Field) -> None:
    reading.apply_field_readers(
        field, {"role": reading.check_role, "content": lambda content: reading.collect_content(content, _BLOCKS)}
    )


_TOOL: FieldReaders = {
    **map_readers(
        _CACHED,
        name="name",
        description="description",
        schema="input_schema",
        number="strict defer_loading eager_input_streaming",
    ),
    "input_examples": make_list_reader(reading.collect_json),
}
_BUILT_IN_TOOL = map_readers(
    name="type name",
    number="display_width_px display_height_px display_number max_characters",
    cache_control="cache_control",
)


def _collect_tool(field: Field) -> None:
    """Read a tool; only one of the client's has text."""
    kind = field.get_type_member()
    is_built_in = kind is not None and _BUILT_IN_TYPE.fullmatch(kind) is not None
    if not is_allowed_hosted_tool(field, is_clients=is_built_in or kind in (None, "custom")):
        reading.apply_field_readers(field, _BUILT_IN_TOOL if is_built_in else _TOOL)


_FORMAT = make_object_reader(map_readers(word="type", schema="schema"))

MESSAGES: FieldReaders = {
    **map_readers(
        model="model",
        number="max_tokens temperature top_k top_p stream",
        word="service_tier speed",
        texts="stop_sequences",
        content="system",
        nested_names="tool_choice",
        cache_control="cache_control",
    ),
    "messages": make_list_reader(_collect_message),
    "tools": make_list_reader(_collect_tool),
    "metadata": make_object_reader(map_readers(user="user_id")),
    "thinking": make_object_reader(map_readers(word="type display", number="budget_tokens")),
    "output_config": make_object_reader({**map_readers(word="effort"), "format": _FORMAT}),
    "output_format": _FORMAT,
}
"""The fields of a request."""


_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Where the text of a delta stands, by its type."""


class MessagesAnswer:
    """The events of a message."""

    def __init__(self, restoring: AnswerRestorer) -> None:
        self._restoring = restoring
        self._calls: dict[object, Call | None] = {}
        self._open: dict[tuple[object, str], TextStream] = {}
        self.is_complete = False

    def restore_event(self, name: str, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events that are sent for the upstream's next event."""
        kind, index, delta = data.get("type"), data.get("index"), data.get("delta")
        if kind == "content_block_start" and isinstance(data.get("content_block"), dict):
            self._calls[index] = read_call(data["content_block"])
        if kind == "content_block_delta" and isinstance(delta, dict) and delta.get("type") in _TEXTS:
            delta_type = str(delta["type"])
            text = delta.get(_TEXTS[delta_type])
            if isinstance(text, str):
                if (index, delta_type) not in self._open:
                    is_json = delta_type == "input_json_delta" or (self._restoring.json and delta_type == "text_delta")
                    call = self._calls.get(index)
                    if call is None and delta_type == "input_json_delta":  # nobody announced whose it is
                        call = Call("", is_clients=False)
                    stream = self._restoring.start_stream(call, is_json=is_json)
                    self._open[index, delta_type] = stream
                if out := self._open[index, delta_type].restore_piece(text):
                    yield name, {**data, "delta": {**delta, _TEXTS[delta_type]: out}}
                return
        if kind == "content_block_stop":
            yield from self._flush_block(index)
        elif kind in ("message_stop", "error"):
            self.is_complete = True
            yield from self.flush_text()
        call = self._calls.get(index) if kind == "content_block_delta" else None
        yield name, self._restoring.restore_json(data, call=call)

    def flush_text(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events with the text that was held back."""
        for index, _ in list(self._open):
            yield from self._flush_block(index)

    def _flush_block(self, index: object) -> Iterator[tuple[str, dict[str, Any]]]:
        for place in [place for place in self._open if place[0] == index]:
            if rest := self._open.pop(place).flush_text():
                delta = {"type": place[1], _TEXTS[place[1]]: rest}
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}

"""What the requests of OpenAI's API may hold, field by field: chat completions, responses, embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.server.gateway.pieces import Piece
from allonym.server.gateway.reading import (
    Holder,
    Kind,
    Reading,
    Table,
    anything,
    arguments,
    content,
    count,
    described,
    function,
    identifier,
    kept,
    metadata,
    model,
    names,
    never,
    numbers,
    plain,
    read_object,
    record,
    refused,
    role,
    schema,
    sealed,
    setter,
    someone,
    speaker,
    text,
    texts,
    word,
    words,
)
from allonym.server.gateway.refusal import Refusal

_NO_MEDIA = never("cannot be protected: what is spoken is no text")
_WHO: Table = dict.fromkeys(("user", "safety_identifier", "prompt_cache_key"), someone)
_NUMBERS: Table = dict.fromkeys(
    "temperature top_p top_k min_p n seed max_tokens max_completion_tokens max_output_tokens max_tool_calls "
    "frequency_penalty presence_penalty repetition_penalty logprobs top_logprobs stream store parallel_tool_calls "
    "dimensions".split(),
    plain,
)
_WORDS: Table = dict.fromkeys(
    "reasoning_effort service_tier verbosity truncation encoding_format prompt_cache_retention".split(), word
)
_COMMON: Table = {
    **_NUMBERS,
    **_WORDS,
    **_WHO,
    "model": model,
    "metadata": metadata,
    "tool_choice": names,
    "stream_options": record({"include_usage": plain, "include_obfuscation": plain}),
}


def _each(table_of: Kind) -> Kind:
    """A list whose items this reads."""

    def read(reading: Reading, holder: Holder, key: Any, where: str) -> None:
        value = holder[key]
        if not isinstance(value, list):
            raise refused(where, "a list", value)
        for i, _ in enumerate(value):
            table_of(reading, value, i, f"{where}[{i}]")

    return read


def _of_type(tables: Mapping[str, Table], what: str) -> Kind:
    """An object whose field ``type`` says which fields it may have."""

    def read(reading: Reading, holder: Holder, key: Any, where: str) -> None:
        value = holder[key]
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in tables:
            raise Refusal(f"is {what} of a type that is not known, so it could not be protected", where, "unknown_type")
        read_object(reading, value, tables[kind], where)

    return read


# Tools

_FUNCTION: Table = {"type": word, "name": function, "description": described, "parameters": schema, "strict": plain}
_GRAMMAR = record({"type": word, "syntax": word, "definition": described, "grammar": schema})
_CUSTOM: Table = {"type": word, "name": function, "description": described, "format": _GRAMMAR}
_TOOLS: Mapping[str, Table] = {
    "function": {**_FUNCTION, "function": record(_FUNCTION)},
    "custom": {**_CUSTOM, "custom": record(_CUSTOM)},
}


def _tool(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A function of the client; one that the upstream runs must be allowed, and is sent as it is."""
    value = holder[key]
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in reading.settings.hosted_tools:
        return
    if isinstance(kind, str) and kind not in _TOOLS:
        raise Refusal(
            "is a tool that the upstream runs; the gateway's setting 'hosted_tools' can allow its type",
            where,
            "unsupported_tool",
        )
    _of_type(_TOOLS, "a tool")(reading, holder, key, where)


# Chat completions

_CALLED: Table = {"name": function, "arguments": arguments}
_CALL: Table = {
    "id": identifier,
    "index": plain,
    "type": word,
    "function": record(_CALLED),
    "custom": record({"name": function, "input": text}),
}
_MESSAGE: Table = {
    "role": role,
    "content": content,
    "name": speaker,
    "refusal": text,
    "reasoning": text,
    "reasoning_content": text,
    "tool_calls": _each(record(_CALL)),
    "tool_call_id": identifier,
    "function_call": record(_CALLED),
    "annotations": anything,
    "audio": _NO_MEDIA,
}


def _message(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    value = holder[key]
    by_function = isinstance(value, dict) and value.get("role") in ("tool", "function")
    read_object(reading, value, {**_MESSAGE, "name": function} if by_function else _MESSAGE, where)


_JSON_SCHEMA: Table = {"name": function, "description": described, "schema": schema, "strict": plain}
_FORMAT: Table = {"type": word, "json_schema": record(_JSON_SCHEMA), **_JSON_SCHEMA}

CHAT: Table = {
    **_COMMON,
    "messages": _each(_message),
    "stop": texts,
    "tools": _each(_tool),
    "functions": _each(record(_FUNCTION)),
    "function_call": names,
    "response_format": record(_FORMAT),
    "prediction": record({"type": word, "content": content}),
    "logit_bias": numbers,
    "modalities": words,
    "audio": _NO_MEDIA,
    "web_search_options": never("holds where the user is, which cannot be protected and be of use"),
}

# Responses


def _output(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """What a call gave: a text, parts, or an object."""
    value = holder[key]
    if isinstance(value, list) and value and all(isinstance(v, dict) and "type" in v for v in value):
        content(reading, holder, key, where)
    else:
        anything(reading, holder, key, where)


_ITEM: Table = {"type": word, "id": identifier, "status": word, "created_by": identifier}
_ITEM_CALL: Table = {**_ITEM, "call_id": identifier, "name": function, "namespace": function}
_ITEM_OUTPUT: Table = {**_ITEM, "call_id": identifier, "output": _output}
_ITEMS: Mapping[str, Table] = {
    "message": {**_ITEM, "role": role, "content": content, "phase": word},
    "function_call": {**_ITEM_CALL, "arguments": arguments},
    "function_call_output": _ITEM_OUTPUT,
    "custom_tool_call": {**_ITEM_CALL, "input": text},
    "custom_tool_call_output": _ITEM_OUTPUT,
    "reasoning": {**_ITEM, "summary": content, "content": content, "encrypted_content": sealed},
    "item_reference": {"type": word, "id": kept},
    "web_search_call": {**_ITEM, "action": anything},
    "file_search_call": {**_ITEM, "queries": anything, "results": anything},
    "code_interpreter_call": {**_ITEM, "code": text, "container_id": identifier, "outputs": anything},
    "mcp_list_tools": {**_ITEM, "server_label": function, "tools": anything, "error": text},
    "mcp_call": {
        **_ITEM,
        "server_label": function,
        "name": function,
        "arguments": arguments,
        "output": text,
        "error": anything,
        "approval_request_id": identifier,
    },
    "mcp_approval_request": {**_ITEM, "server_label": function, "name": function, "arguments": arguments},
    "mcp_approval_response": {**_ITEM, "approval_request_id": identifier, "approve": plain, "reason": text},
    "local_shell_call": {**_ITEM, "call_id": identifier, "action": anything},
    "local_shell_call_output": {**_ITEM, "call_id": identifier, "output": text},
    "shell_call": {**_ITEM, "call_id": identifier, "action": anything},
    "shell_call_output": _ITEM_OUTPUT,
    "apply_patch_call": {**_ITEM, "call_id": identifier, "operation": anything},
    "apply_patch_call_output": _ITEM_OUTPUT,
    "compaction": {**_ITEM, "encrypted_content": sealed},
}


def _item(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    value = holder[key]
    if isinstance(value, dict) and "type" not in value and "role" in value:
        read_object(reading, value, _ITEMS["message"], where)
    else:
        _of_type(_ITEMS, "an item")(reading, holder, key, where)


def _input(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    if isinstance(holder[key], str):
        text(reading, holder, key, where)
    else:
        _each(_item)(reading, holder, key, where)


def _prompt(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A prompt that the upstream keeps, and the values for its variables."""
    table: Table = {"id": identifier, "version": count, "variables": anything}
    read_object(reading, holder[key], table, where)


RESPONSES: Table = {
    **_COMMON,
    "input": _input,
    "instructions": text,
    "tools": _each(_tool),
    "text": record({"format": record(_FORMAT), "verbosity": word}),
    "reasoning": record({"effort": word, "summary": word, "generate_summary": word}),
    "include": words,
    "prompt": _prompt,
    "previous_response_id": kept,
    "conversation": kept,
    "background": never("is not offered: nobody would restore the answer that is fetched later"),
}

# Embeddings


def _embedded(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    value = holder[key]
    if isinstance(value, str):
        reading.add(value, setter(holder, key))
        return
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise Refusal("must be a text or a list of texts; tokens cannot be protected", where, "unsupported_content")
    for i, said in enumerate(value):
        if said:
            reading.passages.append([Piece(said, setter(value, i))])


EMBEDDINGS: Table = {**_WHO, **_WORDS, "model": model, "input": _embedded, "dimensions": plain}


def read_request(reading: Reading, body: object, table: Table) -> dict[str, Any]:
    """Read a whole request; its ``passages`` are in ``reading`` then.

    Raises:
        Refusal: something in it may not be sent.
    """
    read_object(reading, body, table, "")
    assert isinstance(body, dict)
    allowed = reading.settings.media
    for modality in body.get("modalities") or ():
        if modality != "text" and modality not in allowed:
            raise Refusal("may only hold text", "modalities", "unsupported_parameter")
    return body

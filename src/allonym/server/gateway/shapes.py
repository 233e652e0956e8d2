"""The fields of requests to OpenAI's API: chat completions, responses, embeddings."""

from __future__ import annotations

from collections.abc import Mapping

from allonym.server.gateway import reading
from allonym.server.gateway.reading import (
    Field,
    Table,
    make_list_reader,
    make_object_reader,
    make_refusing_reader,
    read_fields,
)
from allonym.server.gateway.refusal import Refusal


def _define_table(*tables: Table, **kinds: str) -> Table:
    """Define a table of fields.

    Args:
        tables: further fields.
        kinds: the names of the fields that ``read_KIND`` of :mod:`allonym.server.gateway.reading` reads.
    """
    fields = {name: getattr(reading, f"read_{kind}") for kind, names in kinds.items() for name in names.split()}
    return {name: read for table in (*tables, fields) for name, read in table.items()}


def _read_typed(field: Field, tables: Mapping[str, Table], what: str) -> None:
    """Read an object whose field ``type`` decides which fields it may have."""
    kind = field.get_type()
    if kind is None or kind not in tables:
        message = f"is {what} of a type that is not known, so it could not be protected"
        raise field.make_refusal(message, "unknown_type")
    read_fields(field, tables[kind])


_NO_MEDIA = make_refusing_reader("cannot be protected: what is spoken is no text")
_USER = _define_table(user="user safety_identifier prompt_cache_key")
_WORDS = _define_table(word="reasoning_effort service_tier verbosity truncation encoding_format prompt_cache_retention")
_COMMON = {
    **_define_table(
        _USER,
        _WORDS,
        number="temperature top_p top_k min_p n seed max_tokens max_completion_tokens max_output_tokens max_tool_calls "
        "frequency_penalty presence_penalty repetition_penalty logprobs top_logprobs stream store parallel_tool_calls "
        "dimensions",
        model="model",
        metadata="metadata",
        names="tool_choice",
    ),
    "stream_options": make_object_reader(_define_table(number="include_usage include_obfuscation")),
}

# Tools

_FUNCTION = _define_table(word="type", name="name", description="description", schema="parameters", number="strict")
_GRAMMAR = make_object_reader(_define_table(word="type syntax", description="definition", schema="grammar"))
_CUSTOM = {**_define_table(word="type", name="name", description="description"), "format": _GRAMMAR}
_TOOLS: Mapping[str, Table] = {
    "function": {**_FUNCTION, "function": make_object_reader(_FUNCTION)},
    "custom": {**_CUSTOM, "custom": make_object_reader(_CUSTOM)},
}


def _read_tool(field: Field) -> None:
    """Read a function of the client's. A tool that the upstream runs must be allowed, and is sent as it is."""
    kind = field.get_type()
    if kind in field.request.settings.hosted_tools:
        return
    if kind is not None and kind not in _TOOLS:
        message = "is a tool that the upstream runs; the gateway's setting 'hosted_tools' can allow its type"
        raise field.make_refusal(message, "unsupported_tool")
    _read_typed(field, _TOOLS, "a tool")


# Chat completions

_CALLED = _define_table(name="name", arguments="arguments")
_CALL = {
    **_define_table(identifier="id", number="index", word="type"),
    "function": make_object_reader(_CALLED),
    "custom": make_object_reader(_define_table(name="name", text="input")),
}
_MESSAGE = {
    **_define_table(
        role="role",
        content="content",
        speaker="name",
        text="refusal reasoning reasoning_content",
        identifier="tool_call_id",
        json="annotations",
    ),
    "tool_calls": make_list_reader(make_object_reader(_CALL)),
    "function_call": make_object_reader(_CALLED),
    "audio": _NO_MEDIA,
}


def _read_message(field: Field) -> None:
    by_function = isinstance(field.value, dict) and field.value.get("role") in ("tool", "function")
    read_fields(field, {**_MESSAGE, "name": reading.read_name} if by_function else _MESSAGE)


_JSON_SCHEMA = _define_table(name="name", description="description", schema="schema", number="strict")
_FORMAT = {**_define_table(_JSON_SCHEMA, word="type"), "json_schema": make_object_reader(_JSON_SCHEMA)}

CHAT: Table = {
    **_define_table(_COMMON, texts="stop", names="function_call", number_map="logit_bias", words="modalities"),
    "messages": make_list_reader(_read_message),
    "tools": make_list_reader(_read_tool),
    "functions": make_list_reader(make_object_reader(_FUNCTION)),
    "response_format": make_object_reader(_FORMAT),
    "prediction": make_object_reader(_define_table(word="type", content="content")),
    "audio": _NO_MEDIA,
    "web_search_options": make_refusing_reader("holds where the user is, which cannot be protected and be of use"),
}

# Responses


def _read_call_output(field: Field) -> None:
    """Read the output of a call: a text, parts, or an object."""
    value = field.value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        reading.read_content(field)
    else:
        reading.read_json(field)


_ITEM = _define_table(word="type status", identifier="id created_by")
_ITEM_CALL = _define_table(_ITEM, identifier="call_id", name="name namespace")
_ITEM_OUTPUT = {**_define_table(_ITEM, identifier="call_id"), "output": _read_call_output}
_ACTION = _define_table(_ITEM, identifier="call_id", json="action")
_ITEMS: Mapping[str, Table] = {
    "message": _define_table(_ITEM, role="role", content="content", word="phase"),
    "function_call": _define_table(_ITEM_CALL, arguments="arguments"),
    "function_call_output": _ITEM_OUTPUT,
    "custom_tool_call": _define_table(_ITEM_CALL, text="input"),
    "custom_tool_call_output": _ITEM_OUTPUT,
    "reasoning": _define_table(_ITEM, content="summary content", sealed="encrypted_content"),
    "item_reference": _define_table(word="type", upstream_id="id"),
    "web_search_call": _define_table(_ITEM, json="action"),
    "file_search_call": _define_table(_ITEM, json="queries results"),
    "code_interpreter_call": _define_table(_ITEM, text="code", identifier="container_id", json="outputs"),
    "mcp_list_tools": _define_table(_ITEM, name="server_label", json="tools", text="error"),
    "mcp_call": _define_table(
        _ITEM,
        name="server_label name",
        arguments="arguments",
        text="output",
        json="error",
        identifier="approval_request_id",
    ),
    "mcp_approval_request": _define_table(_ITEM, name="server_label name", arguments="arguments"),
    "mcp_approval_response": _define_table(_ITEM, identifier="approval_request_id", number="approve", text="reason"),
    "local_shell_call": _ACTION,
    "local_shell_call_output": _define_table(_ITEM, identifier="call_id", text="output"),
    "shell_call": _ACTION,
    "shell_call_output": _ITEM_OUTPUT,
    "apply_patch_call": _define_table(_ITEM, identifier="call_id", json="operation"),
    "apply_patch_call_output": _ITEM_OUTPUT,
    "compaction": _define_table(_ITEM, sealed="encrypted_content"),
}


def _read_item(field: Field) -> None:
    if isinstance(field.value, dict) and "type" not in field.value and "role" in field.value:
        read_fields(field, _ITEMS["message"])
    else:
        _read_typed(field, _ITEMS, "an item")


def _read_input(field: Field) -> None:
    if isinstance(field.value, str):
        reading.read_text(field)
    else:
        make_list_reader(_read_item)(field)


RESPONSES: Table = {
    **_define_table(_COMMON, text="instructions", words="include", upstream_id="previous_response_id conversation"),
    "input": _read_input,
    "tools": make_list_reader(_read_tool),
    "text": make_object_reader({"format": make_object_reader(_FORMAT), **_define_table(word="verbosity")}),
    "reasoning": make_object_reader(_define_table(word="effort summary generate_summary")),
    "prompt": make_object_reader(_define_table(identifier="id", count="version", json="variables")),
    "background": make_refusing_reader("is not offered: nobody would restore the answer that is fetched later"),
}

# Embeddings


def _read_embedding_input(field: Field) -> None:
    for item in field.list_items() if isinstance(field.value, list) else [field]:
        if not isinstance(item.value, str):
            message = "must be a text or a list of texts; tokens cannot be protected"
            raise field.make_refusal(message, "unsupported_content")
        field.request.add_text(item.value, item.put)


EMBEDDINGS: Table = {**_define_table(_USER, _WORDS, model="model", number="dimensions"), "input": _read_embedding_input}


def read_request(request: reading.RequestText, body: object, table: Table) -> None:
    """Read a whole request into ``request``.

    Raises:
        Refusal: something in it may not be sent.
    """
    read_fields(Field(request, [body], 0, ""), table)
    assert isinstance(body, dict)
    for modality in body.get("modalities") or ():
        if modality != "text" and modality not in request.settings.media:
            raise Refusal("may only hold text", "modalities", "unsupported_parameter")

"""Tables of the fields of requests: how they are defined for all APIs, and those of OpenAI's, which are chat
completions, responses and embeddings."""

from __future__ import annotations

from collections.abc import Mapping

from allonym.server.gateway import reading
from allonym.server.gateway.passages import RequestText
from allonym.server.gateway.reading import (
    Field,
    FieldReaders,
    apply_field_readers,
    make_list_reader,
    make_object_reader,
    make_refusing_reader,
)
from allonym.server.gateway.refusal import Refusal

_READERS: FieldReaders = {
    name.partition("_")[2]: reader
    for name, reader in vars(reading).items()
    if name.startswith(("check_", "collect_", "digest_"))
}
"""The readers of :mod:`allonym.server.gateway.reading` by their names without the verb."""


def map_readers(*inherited: FieldReaders, **fields_by_reader: str) -> FieldReaders:
    """Define a table of fields.

    Args:
        inherited: further fields.
        fields_by_reader: the names of the fields that each of ``_READERS`` reads.
    """
    fields = {name: _READERS[reader] for reader, names in fields_by_reader.items() for name in names.split()}
    return {name: read for table in (*inherited, fields) for name, read in table.items()}


def _collect_by_type(field: Field, readers_by_type: Mapping[str, FieldReaders], what: str) -> None:
    """Read an object whose field ``type`` decides which fields it may have."""
    kind = field.get_type_member()
    if kind is None or kind not in readers_by_type:
        message = f"is {what} of a type that is not known, so it could not be protected"
        raise field.make_refusal(message, "unknown_type")
    apply_field_readers(field, readers_by_type[kind])


_NO_MEDIA = make_refusing_reader("cannot be protected: what is spoken is no text")
_USER = map_readers(user="user safety_identifier prompt_cache_key")
_WORDS = map_readers(word="reasoning_effort service_tier verbosity truncation encoding_format prompt_cache_retention")
_COMMON = {
    **map_readers(
        _USER,
        _WORDS,
        number="temperature top_p top_k min_p n seed max_tokens max_completion_tokens max_output_tokens "
        "max_tool_calls frequency_penalty presence_penalty repetition_penalty logprobs top_logprobs stream store "
        "parallel_tool_calls dimensions",
        model="model",
        metadata="metadata",
        nested_names="tool_choice",
    ),
    "stream_options": make_object_reader(map_readers(number="include_usage include_obfuscation")),
}

# Tools

_FUNCTION = map_readers(word="type", name="name", description="description", schema="parameters", number="strict")
_GRAMMAR = make_object_reader(map_readers(word="type syntax", description="definition", schema="grammar"))
_CUSTOM = {**map_readers(word="type", name="name", description="description"), "format": _GRAMMAR}
_TOOLS: Mapping[str, FieldReaders] = {
    "function": {**_FUNCTION, "function": make_object_reader(_FUNCTION)},
    "custom": {**_CUSTOM, "custom": make_object_reader(_CUSTOM)},
}


def is_allowed_hosted_tool(field: Field, *, is_clients: bool) -> bool:
    """Whether a tool is sent as it is, because the settings allow its type.

    Raises:
        Refusal: it is neither allowed nor the client's own.
    """
    if field.get_type_member() in field.request.settings.hosted_tools:
        return True
    if not is_clients:
        message = "is a tool that the upstream runs; the gateway's setting 'hosted_tools' can allow its type"
        raise field.make_refusal(message, "unsupported_tool")
    return False


def _collect_tool(field: Field) -> None:
    """Read a tool; only one of the client's has text."""
    if not is_allowed_hosted_tool(field, is_clients=field.get_type_member() in (None, *_TOOLS)):
        _collect_by_type(field, _TOOLS, "a tool")


# Chat completions

_CALLED = map_readers(name="name", arguments="arguments")
_CALL = {
    **map_readers(human_id="id", number="index", word="type", sealed="extra_content provider_specific_fields"),
    "function": make_object_reader(_CALLED),
    "custom": make_object_reader(map_readers(name="name", text="input")),
}
_MESSAGE = {
    **map_readers(
        role="role",
        content="content",
        speaker="name",
        text="refusal reasoning reasoning_content thinking",
        human_id="tool_call_id",
        name="tool_name",
        number="prefix partial weight",
        json="annotations",
        sealed="reasoning_details thinking_blocks provider_specific_fields",
        cache_control="cache_control",
    ),
    "tool_calls": make_list_reader(make_object_reader(_CALL)),
    "function_call": make_object_reader(_CALLED),
    "audio": _NO_MEDIA,
}


def _collect_message(field: Field) -> None:
    """Collect a message's texts; the name of a tool's message is no person's."""
    by_function = isinstance(field.value, dict) and field.value.get("role") in ("tool", "function")
    apply_field_readers(field, {**_MESSAGE, "name": reading.check_name} if by_function else _MESSAGE)


_JSON_SCHEMA = map_readers(name="name", description="description", schema="schema", number="strict")
_FORMAT = {**map_readers(_JSON_SCHEMA, word="type"), "json_schema": make_object_reader(_JSON_SCHEMA)}

CHAT: FieldReaders = {
    **map_readers(_COMMON, texts="stop", nested_names="function_call", number_map="logit_bias", words="modalities"),
    "messages": make_list_reader(_collect_message),
    "tools": make_list_reader(_collect_tool),
    "functions": make_list_reader(make_object_reader(_FUNCTION)),
    "response_format": make_object_reader(_FORMAT),
    "prediction": make_object_reader(map_readers(word="type", content="content")),
    "audio": _NO_MEDIA,
    "web_search_options": make_refusing_reader("holds where the user is, which cannot be protected and be of use"),
}

# Responses


def _collect_call_output(field: Field) -> None:
    """Read the output of a call: a text, parts, or an object."""
    value = field.value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        reading.collect_content(field)
    else:
        reading.collect_json(field)


_ITEM = map_readers(word="type status", human_id="id created_by")
_ITEM_CALL = map_readers(_ITEM, human_id="call_id", name="name namespace")
_ITEM_OUTPUT = {**map_readers(_ITEM, human_id="call_id"), "output": _collect_call_output}
_ACTION = map_readers(_ITEM, human_id="call_id", json="action")
_ITEMS: Mapping[str, FieldReaders] = {
    "message": map_readers(_ITEM, role="role", content="content", word="phase"),
    "function_call": map_readers(_ITEM_CALL, arguments="arguments"),
    "function_call_output": _ITEM_OUTPUT,
    "custom_tool_call": map_readers(_ITEM_CALL, text="input"),
    "custom_tool_call_output": _ITEM_OUTPUT,
    "reasoning": map_readers(_ITEM, content="summary content", base64="encrypted_content"),
    "item_reference": map_readers(word="type", upstream_id="id"),
    "web_search_call": map_readers(_ITEM, json="action"),
    "file_search_call": map_readers(_ITEM, json="queries results"),
    "code_interpreter_call": map_readers(_ITEM, text="code", human_id="container_id", json="outputs"),
    "mcp_list_tools": map_readers(_ITEM, name="server_label", json="tools", text="error"),
    "mcp_call": map_readers(
        _ITEM,
        name="server_label name",
        arguments="arguments",
        text="output",
        json="error",
        human_id="approval_request_id",
    ),
    "mcp_approval_request": map_readers(_ITEM, name="server_label name", arguments="arguments"),
    "mcp_approval_response": map_readers(_ITEM, human_id="approval_request_id", number="approve", text="reason"),
    "local_shell_call": _ACTION,
    "local_shell_call_output": map_readers(_ITEM, human_id="call_id", text="output"),
    "shell_call": _ACTION,
    "shell_call_output": _ITEM_OUTPUT,
    "apply_patch_call": map_readers(_ITEM, human_id="call_id", json="operation"),
    "apply_patch_call_output": _ITEM_OUTPUT,
    "compaction": map_readers(_ITEM, base64="encrypted_content"),
}


def _collect_item(field: Field) -> None:
    """Collect an item's texts by its type; one with a role and no type is a message."""
    if isinstance(field.value, dict) and "type" not in field.value and "role" in field.value:
        apply_field_readers(field, _ITEMS["message"])
    else:
        _collect_by_type(field, _ITEMS, "an item")


def _collect_input(field: Field) -> None:
    """Collect a text, or a list of items."""
    if isinstance(field.value, str):
        reading.collect_text(field)
    else:
        make_list_reader(_collect_item)(field)


RESPONSES: FieldReaders = {
    **map_readers(_COMMON, text="instructions", words="include", upstream_id="previous_response_id conversation"),
    "input": _collect_input,
    "tools": make_list_reader(_collect_tool),
    "text": make_object_reader({"format": make_object_reader(_FORMAT), **map_readers(word="verbosity")}),
    "reasoning": make_object_reader(map_readers(word="effort summary generate_summary")),
    "prompt": make_object_reader(map_readers(human_id="id", count="version", json="variables")),
    "background": make_refusing_reader("is not offered: nobody would restore the answer that is fetched later"),
}

# Embeddings


def _collect_embedding_input(field: Field) -> None:
    """Collect a text or a list of texts; tokens are refused."""
    for item in field.list_one_or_more():
        if not isinstance(item.value, str):
            message = "must be a text or a list of texts; tokens cannot be protected"
            raise field.make_refusal(message, "unsupported_content")
        field.request.add_text_passage(item.value, item.replace_value)


EMBEDDINGS: FieldReaders = {
    **map_readers(_USER, _WORDS, model="model", number="dimensions"),
    "input": _collect_embedding_input,
}


def collect_request_texts(request: RequestText, body: object, readers: FieldReaders) -> None:
    """Check a whole request, and collect its texts in ``request``.

    Raises:
        Refusal: something in it may not be sent.
    """
    apply_field_readers(Field(request, [body], 0, ""), readers)
    assert isinstance(body, dict)
    for modality in body.get("modalities") or ():
        if modality != "text" and modality not in request.settings.media:
            raise Refusal("may only hold text", "modalities", "unsupported_parameter")

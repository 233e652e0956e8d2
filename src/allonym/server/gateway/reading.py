"""Reading a request: what each kind of field may hold, where its text is, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from allonym.detection.words import read_word_list
from allonym.server.gateway.passages import NAME, Passage, Piece, RequestText, is_json_container
from allonym.server.gateway.refusal import Refusal

DEEPEST = 64
MODEL = re.compile(r"[A-Za-z@][A-Za-z0-9._:/+\-]{0,199}")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
_SEALED = re.compile(r"[A-Za-z0-9+/_=\-]*")
_SEALED_NAMES = ("signature", "thought_signature", "data", "encrypted_content", "encrypted_index")
_LEAST_SEALED = 32
_COUNT = re.compile(r"[0-9]{1,4}")
MACHINE = re.compile(
    r"(?:[a-z]{2,16}[_-]){0,3}(?=[A-Za-z0-9]*[0-9])(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{8,256}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_ID_PREFIXES = frozenset("amsg ci cmp ctc ctco fc fco fs lsh lsho mcp mcpl mcpr msg rs sh sho toolu ws".split())
_ROLE_WORDS = read_word_list("roles")
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "critic", "discriminator", "unknown")
WORDS = frozenset(
    "1h 24h 5m action adaptive agent allow analysis annotations anthropic any apply_patch_call "
    "apply_patch_call_output array assistant audio auto base64 batch binary bool buffer call call_output calling "
    "char_location chunk code_execution_tool_result code_interpreter_call comment commentary compact compaction "
    "completed computer_call_output concise content content_block_location custom custom_tool_call "
    "custom_tool_call_output deepseek default delta deny detailed developer direct disabled document enabled "
    "encrypted encrypted_content ephemeral error failed fallback fast file file_search file_search_call final "
    "final_answer flex float float16 function function_call function_call_output gemini generating google grammar "
    "guidance hidden high image image_url in in_memory in_progress incomplete input_image input_text int8 integer "
    "interpreting item_reference json json_object json_schema lark legacy local_shell_call local_shell_call_output "
    "logprobs long low max mcp_approval_request mcp_approval_response mcp_call mcp_list_tools medium memory message "
    "minimal none null number object off omitted on on_demand openai outlines output output_text outputs "
    "page_location parsed performance priority queued raw reasoning reasoning_text redacted_thinking refusal regex "
    "required response responses results scale search_result search_result_location searching server_tool_use "
    "shell_call shell_call_output short sources standard standard_only string structural_tag summarized summary "
    "summary_text syntax text thinking tool tool_call tool_result tool_use truncate ubinary uint8 url url_citation "
    "user v1 web_fetch_tool_result web_search web_search_call web_search_result web_search_result_location "
    "web_search_tool_result xai xgrammar xhigh".split()
)
"""Words of the API, for fields that hold one of them; in fields with a path, each part is one."""

_BOUNDS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minContains "
    "maxContains minProperties maxProperties".split()
)
LARGEST_BOUND = 10**6
"""Of the numbers that are sent as they are; a longer one may identify."""

_TYPE_WORD = re.compile(r"[A-Za-z][A-Za-z0-9/+.\-]{0,63}")
_POINTER = re.compile(r"#(?:/(?:[A-Za-z_$][\w$.\-]*|[0-9]{1,3}))*", re.ASCII)
_DRAFT = re.compile(r"https?://json-schema\.org/[a-z0-9/\-]*#?")
_KEYWORDS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("type", "format", "contentEncoding", "contentMediaType"), _TYPE_WORD),
    **dict.fromkeys(("required", "dependentRequired", "propertyOrdering", "$anchor", "$dynamicAnchor"), NAME),
    **dict.fromkeys(("$ref", "$dynamicRef"), _POINTER),
    "$schema": _DRAFT,
}
"""Keywords of JSON Schema whose values hold no text, and the form of these values."""

_VALUE_KEYWORDS = ("enum", "const", "default", "examples")
_NAMING_KEYWORDS = frozenset("properties patternProperties $defs definitions dependentSchemas".split())
_MEDIA = {
    **dict.fromkeys(("image_url", "input_image", "image"), "image"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a request, in its place.

    Attributes:
        request: collects the text.
        holder: the object or list that holds the value.
        key: of the value in its holder.
        path: of the value, such as ``messages[2].content``; empty for the request itself.
    """

    request: RequestText
    holder: Any
    key: Any
    path: str

    @property
    def value(self) -> Any:
        """The value, as it is now."""
        return self.holder[self.key]

    def replace_value(self, value: str) -> None:
        """Put another value into the place."""
        self.holder[self.key] = value

    def get_string(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            raise self.make_type_refusal("a string")
        return self.value

    def get_type_member(self) -> str | None:
        """Return what the value says of its type; None where it is no object, or does not say it in a string."""
        kind = self.value.get("type") if isinstance(self.value, dict) else None
        return kind if isinstance(kind, str) else None

    def is_number(self) -> bool:
        """Return whether the value is a number, and not true or false."""
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)

    def list_items(self) -> list[Field]:
        """Return the items of the value, which must be a list."""
        if not isinstance(self.value, list):
            raise self.make_type_refusal("a list")
        return [Field(self.request, self.value, i, f"{self.path}[{i}]") for i in range(len(self.value))]

    def list_one_or_more(self) -> list[Field]:
        """Return the items of the value, if it is a list, else the value itself."""
        return self.list_items() if isinstance(self.value, list) else [self]

    def get_member(self, name: str) -> Field:
        """Return a member of the value, which is an object."""
        return Field(self.request, self.value, name, f"{self.path}.{name}" if self.path else name)

    def iterate_children(self) -> Iterator[Field]:
        """Yield the items of a list, or the members of an object, whose keys must be names of fields."""
        if isinstance(self.value, list):
            yield from self.list_items()
        for name in list(self.value) if isinstance(self.value, dict) else ():
            if not NAME.fullmatch(name):
                raise self.make_refusal("has a key that is no name of a field", "not_protected")
            self.request.note_key(self.value, name)
            yield self.get_member(name)

    def check_string_pattern(self, pattern: re.Pattern[str], description: str) -> None:
        """Check that the value is a string of a form, which the message names."""
        if not pattern.fullmatch(self.get_string()):
            raise self.make_refusal(f"must be {description}")

    def make_refusal(self, message: str, code: str = "invalid_value") -> Refusal:
        """Return the refusal of the value."""
        return Refusal(message, self.path, code)

    def make_type_refusal(self, required_type: str) -> Refusal:
        """Return the refusal of a value of the wrong type; the value is not shown."""
        return self.make_refusal(f"must be {required_type}, got {type(self.value).__name__}")


FieldReader = Callable[[Field], object]
"""Checks a field and collects its text; raises :class:`Refusal` where it may not be sent."""

FieldReaders = Mapping[str, FieldReader]
"""The readers of an object's fields, by the fields' names."""


def apply_field_readers(field: Field, readers: FieldReaders) -> None:
    """Read each field of an object with its reader; a field that has none is refused. None passes."""
    if not isinstance(field.value, dict):
        raise field.make_type_refusal("an object")
    for key in list(field.value):
        if field.value[key] is None or (not field.path and key in field.request.settings.parameters):
            continue
        if key not in readers:
            is_name = bool(NAME.fullmatch(key))
            message = f"a field {key!r}" if is_name else "a field of this name"
            message += " is not known, so that its text could not be protected; leave it out"
            if not field.path:
                message += ", or name it in the gateway's setting 'parameters' if it holds none"
            raise Refusal(message, field.path or (key if is_name else ""), "unknown_parameter")
        readers[key](field.get_member(key))


# Values without text


def check_number(field: Field) -> None:
    """Check that the value is a number or a truth value."""
    value = field.value
    if not isinstance(value, (bool, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise field.make_type_refusal("a number, true or false")


def check_word(field: Field) -> None:
    """Check that the value is one of the words of the API."""
    words = WORDS.union(field.request.settings.words)
    value = field.get_string()
    if value not in words and not words.issuperset(re.split(r"[.\-]", value)):
        raise field.make_refusal("is no word that the gateway knows; its setting 'words' can add it", "unknown_value")


def check_role(field: Field) -> None:
    """Check the role of a message's author."""
    if field.get_string() not in ROLES:
        raise field.make_refusal(f"must be one of {', '.join(ROLES)}")


def make_list_reader(read_item: FieldReader) -> FieldReader:
    """Make a reader of a list."""

    def read_list(field: Field) -> None:
        for item in field.list_items():
            read_item(item)

    return read_list


check_words = make_list_reader(check_word)
check_model = partial(Field.check_string_pattern, pattern=MODEL, description="the name of a model")
check_name = partial(
    Field.check_string_pattern,
    pattern=_FUNCTION,
    description="a name of letters, digits, '_', '-' and '.' that begins with a letter",
)
check_base64 = partial(Field.check_string_pattern, pattern=_SEALED, description="base64")
check_count = partial(Field.check_string_pattern, pattern=_COUNT, description="a number of up to four digits")


def check_number_map(field: Field) -> None:
    """Check numbers by numbers, as in logit_bias."""
    if not isinstance(field.value, dict) or not all(re.fullmatch(r"[0-9]{1,9}", key) for key in field.value):
        raise field.make_type_refusal("numbers by numbers")
    for key in field.value:
        check_number(field.get_member(key))


def digest_human_id(field: Field) -> None:
    """Keep the id of a call or an item if it looks machine-made; put a digest of its form in the place of any other."""
    value = field.get_string()
    if MACHINE.fullmatch(value):
        return
    digest = field.request.digest_identifier(value)
    if re.fullmatch(r"[A-Za-z0-9]{9}", value):  # some endpoints take no other length
        field.replace_value(digest[:9])
    else:
        prefix = value.partition("_")[0]
        field.replace_value(f"{prefix if prefix in _ID_PREFIXES else 'call'}_{digest}")


def check_upstream_id(field: Field) -> None:
    """Check that the id of something that the upstream keeps looks machine-made; the request is stateful then."""
    field.request.stateful = True
    if isinstance(field.value, dict):
        apply_field_readers(field, {"id": check_upstream_id})
    elif not MACHINE.fullmatch(field.get_string()):
        raise field.make_refusal("must be an id that the upstream gave")


def digest_user(field: Field) -> None:
    """Put a keyed digest in the place of the name of an end user."""
    field.replace_value(field.request.digest_identifier(field.get_string()))


def make_refusing_reader(reason: str) -> FieldReader:
    """Make a reader of a field that cannot be protected; only false passes."""

    def refuse_field(field: Field) -> None:
        if field.value is not False:
            raise field.make_refusal(reason, "unsupported_parameter")

    return refuse_field


def make_object_reader(readers: FieldReaders) -> FieldReader:
    """Make a reader of an object with these fields."""
    return partial(apply_field_readers, readers=readers)


check_cache_control = make_object_reader({"type": check_word, "ttl": check_word})


def check_nested_names(field: Field) -> None:
    """Check that any objects and lists hold names alone, as in tool_choice."""
    if isinstance(field.value, dict):
        for name in field.value:
            if not _FUNCTION.fullmatch(name):
                raise field.make_refusal("must be a name")
            check_nested_names(field.get_member(name))
    elif isinstance(field.value, list):
        for item in field.list_items():
            check_nested_names(item)
    elif field.value is not None and not isinstance(field.value, bool):
        check_name(field)


# Text


def collect_text(field: Field, *, keep_keys: bool = False) -> None:
    """Collect a text, or JSON as a text, whose keys are kept under ``keep_keys`` if they may be names of fields."""
    value = field.get_string()
    if is_json_container(value):
        field.request.add_json_passage(value, field.replace_value, keep_keys=keep_keys)
    elif keep_keys or value.strip() not in ("null", "true", "false"):  # as tools answer
        field.request.add_text_passage(value, field.replace_value)


collect_arguments = partial(collect_text, keep_keys=True)


def collect_texts(field: Field) -> None:
    """Collect a text, or a list of texts, each by itself."""
    for item in field.list_one_or_more():
        collect_text(item)


def collect_json(field: Field, depth: int = 0) -> None:
    """Collect any JSON: all strings and numbers in it are protected; keys must look like names of fields."""
    if depth > DEEPEST:
        raise field.make_refusal(f"is nested more than {DEEPEST} deep")
    if isinstance(field.value, str):
        collect_text(field)
    elif field.is_number():
        check_number(field)
        field.request.add_text_passage(str(field.value), field.replace_value)
    for child in field.iterate_children():
        collect_json(child, depth + 1)


def collect_sealed(field: Field) -> None:
    """Collect any JSON, but for strings that only who made them can read, such as the signature of a thought."""
    if isinstance(field.value, str):
        is_sealed = field.key in _SEALED_NAMES and _SEALED.fullmatch(field.value) and len(field.value) >= _LEAST_SEALED
        is_word = field.key in ("type", "format") and WORDS.issuperset(re.split(r"[.\-]", field.value))
        if field.key == "id":
            digest_human_id(field)
        elif not is_sealed and not is_word:
            collect_text(field)
    elif isinstance(field.value, (list, dict)):
        for child in field.iterate_children():
            collect_sealed(child)
    elif field.is_number() and field.key != "index":
        collect_json(field)


def collect_metadata(field: Field) -> None:
    """Collect texts, each after the name of its field."""
    if not isinstance(field.value, dict):
        raise field.make_type_refusal("an object")
    for member in field.iterate_children():
        text = member.get_string()
        if text:
            field.request.passages.append([Piece(member.key, None, ": "), Piece(text, member.replace_value)])


def collect_schema(field: Field, depth: int = 0) -> None:
    """Collect descriptions, examples and values of a JSON Schema, unless the setting ``tools`` keeps them."""
    if field.request.settings.tools != "protect":
        return
    if depth > DEEPEST:
        raise field.make_refusal(f"is nested more than {DEEPEST} deep")
    if isinstance(field.value, str):
        collect_text(field)
    elif field.is_number() and not (field.key in _BOUNDS and abs(field.value) <= LARGEST_BOUND):
        collect_json(field, depth)
    for child in field.iterate_children():
        if child.key in _VALUE_KEYWORDS:
            collect_json(child, depth + 1)
        elif child.key in _KEYWORDS:
            _check_nested_strings(child, _KEYWORDS[child.key])
        elif child.key in _NAMING_KEYWORDS and isinstance(child.value, dict):
            for schema in child.iterate_children():
                collect_schema(schema, depth + 1)
        else:
            collect_schema(child, depth + 1)


def _check_nested_strings(field: Field, pattern: re.Pattern[str]) -> None:
    """Check that some JSON holds nothing but strings of a form, true, false and null."""
    if field.is_number():
        raise field.make_type_refusal("a string")
    if isinstance(field.value, str):
        field.check_string_pattern(pattern, "what this keyword of JSON Schema knows")
    for child in field.iterate_children():
        _check_nested_strings(replace(child, path=field.path), pattern)


def collect_description(field: Field) -> None:
    """Collect what a developer wrote about a tool; it is protected, unless the setting ``tools`` keeps it."""
    if field.request.settings.tools == "protect":
        collect_text(field)


def collect_speaker(field: Field) -> None:
    """Collect the name of a message's author. Roles are kept; any other name is a person's."""
    words = re.sub(r"[_\-.]", " ", field.get_string())
    if all(w.lower() in _ROLE_WORDS or w.lower() == "example" or re.fullmatch("[0-9]{1,2}", w) for w in words.split()):
        return

    def put_name(text: str) -> None:
        field.replace_value(re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:64] or "someone")

    field.request.add_text_passage(words, put_name, is_person=True)


# Parts of messages


def collect_content(field: Field, others: Mapping[str, FieldReaders] = MappingProxyType({})) -> None:
    """Collect a text, or parts of which each has its type. The texts of neighbouring parts are read as one.

    Args:
        field: the content.
        others: what parts of further types may hold.
    """
    if isinstance(field.value, str):
        collect_text(field)
        return
    passage: Passage = []
    for part in field.list_items():
        if isinstance(part.value, str):
            passage.append(Piece(part.value, part.replace_value))
            continue
        if not isinstance(part.value, dict):
            raise part.make_type_refusal("an object")
        kind = part.get_type_member()
        if kind in _MEDIA and (kind not in others or _MEDIA[kind] in field.request.settings.media):
            if _MEDIA[kind] not in field.request.settings.media:
                message = (
                    f"is of the type {kind}, which cannot be protected; the gateway's setting 'media' can allow it"
                )
                raise part.make_refusal(message, "unsupported_content")
            continue
        if kind is not None and kind in others:
            if passage:
                field.request.passages.append(passage)
                passage = []
            apply_field_readers(part, others[kind])
            continue
        if kind is None or kind not in PARTS:
            message = "is a part of a type that is not known, so it could not be protected"
            raise part.make_refusal(message, "unknown_part")
        part.value.pop("logprobs", None)  # they spell the text
        apply_field_readers(part, PARTS[kind])
        for name in ("text", "refusal"):
            text = part.value.get(name) or ""
            member = part.get_member(name)
            if is_json_container(text):
                collect_text(member)
            elif text:
                passage.append(Piece(text, member.replace_value))
    if passage:
        field.request.passages.append(passage)


_TEXT: FieldReaders = {
    "type": check_word,
    "text": Field.get_string,  # collect_content reads it together with its neighbours
    "annotations": collect_json,
    "citations": collect_sealed,
    "cache_control": check_cache_control,
}
PARTS: Mapping[str, FieldReaders] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text"), _TEXT),
    "refusal": {"type": check_word, "refusal": Field.get_string},
}
"""What parts of messages may hold, by their type."""

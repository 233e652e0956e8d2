"""Reading a request: what each kind of field may hold, where its text is, and what is refused."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from allonym.detect.words import read_word_list
from allonym.server.gateway.pieces import NAME, JsonSource, Passage, Piece, Put, is_json
from allonym.server.gateway.refusal import Refusal
from allonym.server.gateway.settings import Settings

DEEPEST = 64
MODEL = re.compile(r"[A-Za-z@][A-Za-z0-9._:/+\-]{0,199}")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
_SEALED = re.compile(r"[A-Za-z0-9+/_=\-]*")
_COUNT = re.compile(r"[0-9]{1,4}")
MACHINE = re.compile(
    r"(?:[a-z]{2,16}[_-]){0,3}(?=[A-Za-z0-9]*[0-9])(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{8,256}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_ID_PREFIXES = frozenset("amsg ci cmp ctc ctco fc fco fs lsh lsho mcp mcpl mcpr msg rs sh sho toolu ws".split())
_ROLE_WORDS = read_word_list("roles")
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "critic", "discriminator", "unknown")
WORDS = frozenset(
    "1h 24h 5m action agent analysis annotations any apply_patch_call apply_patch_call_output array assistant audio "
    "auto base64 batch binary bool buffer call call_output calling chunk code_interpreter_call comment commentary "
    "compact compaction completed computer_call_output concise content custom custom_tool_call "
    "custom_tool_call_output default delta detailed developer disabled enabled encrypted_content ephemeral error "
    "failed file file_search file_search_call final final_answer flex float float16 function function_call "
    "function_call_output generating grammar high image image_url in in_memory in_progress incomplete input_image "
    "input_text int8 integer interpreting item_reference json json_object json_schema lark local_shell_call "
    "local_shell_call_output logprobs long low max mcp_approval_request mcp_approval_response mcp_call "
    "mcp_list_tools medium memory message minimal none null number object off on on_demand output output_text "
    "outputs performance priority queued reasoning reasoning_text refusal regex required response results scale "
    "searching shell_call shell_call_output short sources standard standard_only string structural_tag summary_text "
    "syntax text tool tool_call ubinary uint8 url url_citation user web_search web_search_call xhigh".split()
)
"""Words of the API, for fields that hold one of them; in fields with a path, each part is one."""

_BOUNDS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minContains "
    "maxContains minProperties maxProperties".split()
)
_LARGEST_BOUND = 10**6  # in a schema that is sent as it is: a longer number may identify
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


class RequestText:
    """The text of one request, collected while the request is read.

    Attributes:
        settings: of the gateway.
        passages: all text that is to be protected, in the order in which a model reads it.
        stateful: the request names something that the upstream keeps, so placeholders must agree with earlier requests.
    """

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self.settings = settings
        self.passages: list[Passage] = []
        self.stateful = False
        self._secret = secret
        self._json: list[JsonSource] = []

    def add_text(self, text: str, put: Put, *, person: bool = False) -> None:
        """Add a passage of one piece."""
        if text and not text.isspace():
            self.passages.append([Piece(text, put, person=person)])

    def add_json(self, text: str, put: Put, *, names: bool) -> None:
        """Add the strings and numbers of a JSON text as one passage."""
        source = JsonSource(text, put, names=names)
        pieces = list(source.read_pieces())
        if any(piece.put for piece in pieces):
            self.passages.append(pieces)
            self._json.append(source)

    def write_back_json(self) -> None:
        """Put the JSON texts together, after all pieces are in their places."""
        for source in self._json:
            source.write_back()

    def digest(self, value: str) -> str:
        """Return a keyed digest that stands for an identifier, the same in every request."""
        return hmac.digest(self._secret, value.encode("utf-8", "surrogatepass"), "sha256").hex()[:24]


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

    def put(self, value: str) -> None:
        """Put another value into the place."""
        self.holder[self.key] = value

    def get_string(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            raise self.make_type_refusal("a string")
        return self.value

    def get_type(self) -> str | None:
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

    def get_member(self, name: str) -> Field:
        """Return a member of the value, which is an object."""
        return Field(self.request, self.value, name, f"{self.path}.{name}" if self.path else name)

    def iterate_children(self) -> Iterator[Field]:
        """Yield the items of a list, or the members of an object, whose keys must be names of fields."""
        if isinstance(self.value, list):
            yield from self.list_items()
        for name in self.value if isinstance(self.value, dict) else ():
            if not NAME.fullmatch(name):
                raise self.make_refusal("has a key that is no name of a field", "not_protected")
            yield self.get_member(name)

    def check_form(self, pattern: re.Pattern[str], form: str) -> None:
        """Check that the value is a string of a form, which the message names."""
        if not pattern.fullmatch(self.get_string()):
            raise self.make_refusal(f"must be {form}")

    def make_refusal(self, message: str, code: str = "invalid_value") -> Refusal:
        """Return the refusal of the value."""
        return Refusal(message, self.path, code)

    def make_type_refusal(self, required: str) -> Refusal:
        """Return the refusal of a value of the wrong type; the value is not shown."""
        return self.make_refusal(f"must be {required}, got {type(self.value).__name__}")


Kind = Callable[[Field], object]
"""Reads a field; raises :class:`Refusal` where it may not be sent."""

Table = Mapping[str, Kind]


def read_fields(field: Field, table: Table) -> None:
    """Read each field of an object as its table says; a field that the table does not know is refused. None passes."""
    if not isinstance(field.value, dict):
        raise field.make_type_refusal("an object")
    for key in list(field.value):
        if field.value[key] is None or (not field.path and key in field.request.settings.parameters):
            continue
        if key not in table:
            is_name = bool(NAME.fullmatch(key))
            message = f"a field {key!r}" if is_name else "a field of this name"
            message += " is not known, so that its text could not be protected; leave it out"
            if not field.path:
                message += ", or name it in the gateway's setting 'parameters' if it holds none"
            raise Refusal(message, field.path or (key if is_name else ""), "unknown_parameter")
        table[key](field.get_member(key))


# Values without text


def read_number(field: Field) -> None:
    """Read a number or a truth value."""
    value = field.value
    if not isinstance(value, (bool, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise field.make_type_refusal("a number, true or false")


def read_word(field: Field) -> None:
    """Read one of the words of the API."""
    words = WORDS.union(field.request.settings.words)
    value = field.get_string()
    if value not in words and not words.issuperset(re.split(r"[.\-]", value)):
        raise field.make_refusal("is no word that the gateway knows; its setting 'words' can add it", "unknown_value")


def read_role(field: Field) -> None:
    """Read the role of a message's author."""
    if field.get_string() not in ROLES:
        raise field.make_refusal(f"must be one of {', '.join(ROLES)}")


def make_list_reader(read_item: Kind) -> Kind:
    """Make a reader of a list."""

    def read_list(field: Field) -> None:
        for item in field.list_items():
            read_item(item)

    return read_list


read_words = make_list_reader(read_word)
read_model = partial(Field.check_form, pattern=MODEL, form="the name of a model")
read_name = partial(
    Field.check_form,
    pattern=_FUNCTION,
    form="a name of letters, digits, '_', '-' and '.' that begins with a letter",
)
read_sealed = partial(Field.check_form, pattern=_SEALED, form="base64")
read_count = partial(Field.check_form, pattern=_COUNT, form="a number of up to four digits")


def read_number_map(field: Field) -> None:
    """Read numbers by numbers, as in logit_bias."""
    if not isinstance(field.value, dict) or not all(re.fullmatch(r"[0-9]{1,9}", key) for key in field.value):
        raise field.make_type_refusal("numbers by numbers")
    for key in field.value:
        read_number(field.get_member(key))


def read_identifier(field: Field) -> None:
    """Read the id of a call or an item. One that does not look machine-made becomes a digest of its form."""
    value = field.get_string()
    if MACHINE.fullmatch(value):
        return
    digest = field.request.digest(value)
    if re.fullmatch(r"[A-Za-z0-9]{9}", value):  # some endpoints take no other length
        field.put(digest[:9])
    else:
        prefix = value.partition("_")[0]
        field.put(f"{prefix if prefix in _ID_PREFIXES else 'call'}_{digest}")


def read_upstream_id(field: Field) -> None:
    """Read the id of something that the upstream keeps: it must look machine-made."""
    field.request.stateful = True
    if isinstance(field.value, dict):
        read_fields(field, {"id": read_upstream_id})
    elif not MACHINE.fullmatch(field.get_string()):
        raise field.make_refusal("must be an id that the upstream gave")


def read_user(field: Field) -> None:
    """Read the name of an end user, for the upstream: a keyed digest is sent in its place."""
    field.put(field.request.digest(field.get_string()))


def make_refusing_reader(reason: str) -> Kind:
    """Make a reader of a field that cannot be protected; only false passes."""

    def refuse_field(field: Field) -> None:
        if field.value is not False:
            raise field.make_refusal(reason, "unsupported_parameter")

    return refuse_field


def make_object_reader(table: Table) -> Kind:
    """Make a reader of an object with these fields."""
    return partial(read_fields, table=table)


def read_names(field: Field) -> None:
    """Read names alone, in any objects and lists, as in tool_choice."""
    if isinstance(field.value, dict):
        for name in field.value:
            if not _FUNCTION.fullmatch(name):
                raise field.make_refusal("must be a name")
            read_names(field.get_member(name))
    elif isinstance(field.value, list):
        for item in field.list_items():
            read_names(item)
    elif field.value is not None and not isinstance(field.value, bool):
        read_name(field)


# Text


def read_text(field: Field, *, names: bool = False) -> None:
    """Read a text, or JSON as a text, whose keys are kept where ``names`` says that they may be names of fields."""
    value = field.get_string()
    if is_json(value):
        field.request.add_json(value, field.put, names=names)
    elif names or value.strip() not in ("null", "true", "false"):  # as tools answer
        field.request.add_text(value, field.put)


read_arguments = partial(read_text, names=True)


def read_texts(field: Field) -> None:
    """Read a text, or a list of texts, each by itself."""
    for item in field.list_items() if isinstance(field.value, list) else [field]:
        read_text(item)


def read_json(field: Field, depth: int = 0) -> None:
    """Read any JSON: all strings and numbers in it are protected; keys must look like names of fields."""
    if depth > DEEPEST:
        raise field.make_refusal(f"is nested more than {DEEPEST} deep")
    if isinstance(field.value, str):
        read_text(field)
    elif field.is_number():
        read_number(field)
        field.request.add_text(str(field.value), field.put)
    for child in field.iterate_children():
        read_json(child, depth + 1)


def read_metadata(field: Field) -> None:
    """Read names of fields with a text each."""
    if not isinstance(field.value, dict):
        raise field.make_type_refusal("an object")
    for member in field.iterate_children():
        text = member.get_string()
        if text:
            field.request.passages.append([Piece(member.key, None, ": "), Piece(text, member.put)])


def read_schema(field: Field, depth: int = 0) -> None:
    """Read a JSON Schema: descriptions, examples and values are protected, unless the setting ``tools`` keeps them."""
    if field.request.settings.tools != "protect":
        return
    if depth > DEEPEST:
        raise field.make_refusal(f"is nested more than {DEEPEST} deep")
    if isinstance(field.value, str):
        read_text(field)
    elif field.is_number() and not (field.key in _BOUNDS and abs(field.value) <= _LARGEST_BOUND):
        read_json(field, depth)
    for child in field.iterate_children():
        if child.key in _VALUE_KEYWORDS:
            read_json(child, depth + 1)
        elif child.key in _KEYWORDS:
            _check_schema_keyword(child, _KEYWORDS[child.key])
        elif child.key in _NAMING_KEYWORDS and isinstance(child.value, dict):
            for schema in child.iterate_children():
                read_schema(schema, depth + 1)
        else:
            read_schema(child, depth + 1)


def _check_schema_keyword(field: Field, pattern: re.Pattern[str]) -> None:
    """Check that some JSON holds nothing but strings of a form, true, false and null."""
    if field.is_number():
        raise field.make_type_refusal("a string")
    if isinstance(field.value, str):
        field.check_form(pattern, "what this keyword of JSON Schema knows")
    for child in field.iterate_children():
        _check_schema_keyword(replace(child, path=field.path), pattern)


def read_description(field: Field) -> None:
    """Read what a developer wrote about a tool; it is protected, unless the setting ``tools`` keeps it."""
    if field.request.settings.tools == "protect":
        read_text(field)


def read_speaker(field: Field) -> None:
    """Read the name of a message's author. Roles are kept; any other name is a person's."""
    words = re.sub(r"[_\-.]", " ", field.get_string())
    if all(w.lower() in _ROLE_WORDS or w.lower() == "example" or re.fullmatch("[0-9]{1,2}", w) for w in words.split()):
        return

    def put_name(text: str) -> None:
        field.put(re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:64] or "someone")

    field.request.add_text(words, put_name, person=True)


# Parts of messages


def read_content(field: Field) -> None:
    """Read a text, or parts of which each has its type. The texts of neighbouring parts are read as one."""
    if isinstance(field.value, str):
        read_text(field)
        return
    passage: Passage = []
    for part in field.list_items():
        if isinstance(part.value, str):
            passage.append(Piece(part.value, part.put))
            continue
        if not isinstance(part.value, dict):
            raise part.make_type_refusal("an object")
        kind = part.get_type()
        if kind in _MEDIA:
            if _MEDIA[kind] not in field.request.settings.media:
                message = (
                    f"is of the type {kind}, which cannot be protected; the gateway's setting 'media' can allow it"
                )
                raise part.make_refusal(message, "unsupported_content")
            continue
        if kind is None or kind not in PARTS:
            message = "is a part of a type that is not known, so it could not be protected"
            raise part.make_refusal(message, "unknown_part")
        part.value.pop("logprobs", None)  # they spell the text
        read_fields(part, PARTS[kind])
        for name in ("text", "refusal"):
            text = part.value.get(name) or ""
            member = part.get_member(name)
            if is_json(text):
                read_text(member)
            elif text:
                passage.append(Piece(text, member.put))
    if passage:
        field.request.passages.append(passage)


_TEXT: Table = {
    "type": read_word,
    "text": Field.get_string,  # read_content reads it together with its neighbours
    "annotations": read_json,
    "cache_control": make_object_reader({"type": read_word, "ttl": read_word}),
}
PARTS: Mapping[str, Table] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text"), _TEXT),
    "refusal": {"type": read_word, "refusal": Field.get_string},
}
"""What parts of messages may hold, by their type."""

"""Reading a request: what each kind of field may hold, where its text is, and what is refused."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from allonym.detect.words import word_list
from allonym.server.gateway.pieces import NAME, JsonText, Passage, Piece, Put, is_json
from allonym.server.gateway.refusal import Refusal
from allonym.server.gateway.settings import Settings

Holder = Any
Kind = Callable[["Reading", Holder, Any, str], None]
"""Reads the value at a key of an object or an index of a list; raises :class:`Refusal` where it may not be sent."""

Table = Mapping[str, Kind]
DEEPEST = 64
MODEL = re.compile(r"[A-Za-z@][A-Za-z0-9._:/+\-]{0,199}")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
_SEALED = re.compile(r"[A-Za-z0-9+/_=\-]*")
_COUNT = re.compile(r"[0-9]{1,4}")
MACHINE = re.compile(
    r"(?:[a-z]{2,16}[_-]){0,3}(?=[A-Za-z0-9]*[0-9])(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{8,256}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
_KINDS = frozenset("amsg ci cmp ctc ctco fc fco fs lsh lsho mcp mcpl mcpr msg rs sh sho toolu ws".split())
"""What ids of items begin with."""

_ROLES = word_list("roles")
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
"""Words of the API, for fields that hold one of them; in those of paths each part is one."""

_BOUNDS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minContains "
    "maxContains minProperties maxProperties".split()
)
_MOST = 10**6  # of a bound in a schema that is sent as it is: a longer number may identify
_TOLD = re.compile(r"[A-Za-z][A-Za-z0-9/+.\-]{0,63}")
_POINTER = re.compile(r"#(?:/(?:[A-Za-z_$][\w$.\-]*|[0-9]{1,3}))*", re.ASCII)
_DRAFT = re.compile(r"https?://json-schema\.org/[a-z0-9/\-]*#?")
_IN_SCHEMA: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("type", "format", "contentEncoding", "contentMediaType"), _TOLD),
    **dict.fromkeys(("required", "dependentRequired", "propertyOrdering", "$anchor", "$dynamicAnchor"), NAME),
    **dict.fromkeys(("$ref", "$dynamicRef"), _POINTER),
    "$schema": _DRAFT,
}
"""Keywords of JSON Schema that no text stands behind, and what stands there."""

_VALUES = ("enum", "const", "default", "examples")
_NAMED = frozenset("properties patternProperties $defs definitions dependentSchemas".split())
_MEDIA = {
    **dict.fromkeys(("image_url", "input_image", "image"), "image"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
}


class Reading:
    """One request while it is read.

    Attributes:
        settings: of the gateway.
        passages: all text that is to be protected, in the order in which a model reads it.
        stateful: it names something that the upstream keeps, so that placeholders must agree with earlier requests.
    """

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self.settings = settings
        self.passages: list[Passage] = []
        self.stateful = False
        self._secret = secret
        self._json: list[JsonText] = []

    def add(self, text: str, put: Put, *, person: bool = False) -> None:
        """A passage of one piece."""
        if text and not text.isspace():
            self.passages.append([Piece(text, put, person=person)])

    def add_json(self, text: str, put: Put, *, names: bool) -> None:
        """The strings and numbers of a JSON text as one passage."""
        whole = JsonText(text, put, names=names)
        pieces = list(whole.pieces())
        if any(piece.put for piece in pieces):
            self.passages.append(pieces)
            self._json.append(whole)

    def finish(self) -> None:
        """Put the JSON texts together, after all pieces are in their places."""
        for whole in self._json:
            whole.finish()

    def digest(self, value: str) -> str:
        """A keyed digest that stands for an identifier, the same in every request."""
        return hmac.digest(self._secret, value.encode("utf-8", "surrogatepass"), "sha256").hex()[:24]


def setter(holder: Holder, key: Any) -> Put:
    """What puts a text into its place."""

    def put(text: str) -> None:
        holder[key] = text

    return put


def refused(where: str, wanted: str, value: object) -> Refusal:
    """What a value of the wrong type is refused with; the value is not shown."""
    return Refusal(f"must be {wanted}, got {type(value).__name__}", where, "invalid_value")


def read_object(reading: Reading, value: object, table: Table, where: str) -> None:
    """Read each field of an object as its table says; what the table does not know is refused. None passes."""
    if not isinstance(value, dict):
        raise refused(where, "an object", value)
    for key in list(value):
        if value[key] is None or (not where and key in reading.settings.parameters):
            continue
        kind = table.get(key)
        if kind is None:
            named = bool(NAME.fullmatch(key))
            said = f"a field {key!r}" if named else "a field of this name"
            said += " is not known, so that its text could not be protected; leave it out"
            if not where:
                said += ", or name it in the gateway's setting 'parameters' if it holds none"
            raise Refusal(said, where or (key if named else ""), "unknown_parameter")
        kind(reading, value, key, f"{where}.{key}" if where else key)


# Values without text


def plain(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A number or a truth value."""
    value = holder[key]
    if not isinstance(value, (bool, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise refused(where, "a number, true or false", value)


def word(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """One of the words that the API knows."""
    known = WORDS.union(reading.settings.words)
    value = _string(holder[key], where)
    if value not in known and not known.issuperset(re.split(r"[.\-]", value)):
        raise Refusal("is no word that the gateway knows; its setting 'words' can add it", where, "unknown_value")


def role(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """Whose message it is."""
    if _string(holder[key], where) not in ROLES:
        raise Refusal(f"must be one of {', '.join(ROLES)}", where, "invalid_value")


def words(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A list of such words."""
    for i, _ in enumerate(_list(holder[key], where)):
        word(reading, holder[key], i, f"{where}[{i}]")


def model(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The name of a model."""
    _matched(MODEL, holder[key], where, "the name of a model")


def function(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The name of a function, or of another thing that a program names."""
    _matched(_FUNCTION, holder[key], where, "a name of letters, digits, '_', '-' and '.' that begins with a letter")


def sealed(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """What the upstream encrypted for itself."""
    _matched(_SEALED, holder[key], where, "base64")


def count(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A small number in a string."""
    _matched(_COUNT, holder[key], where, "a number of up to four digits")


def numbers(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """Numbers by numbers, as in logit_bias."""
    value = holder[key]
    if not isinstance(value, dict) or not all(re.fullmatch(r"[0-9]{1,9}", k) for k in value):
        raise refused(where, "numbers by numbers", value)
    for k in value:
        plain(reading, value, k, f"{where}.{k}")


def identifier(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The id of a call or an item. One that does not look as if a machine had made it becomes a digest of its form."""
    value = _string(holder[key], where)
    if MACHINE.fullmatch(value):
        return
    digest = reading.digest(value)
    if re.fullmatch(r"[A-Za-z0-9]{9}", value):  # some endpoints take no other length
        holder[key] = digest[:9]
    else:
        kind = value.partition("_")[0]
        holder[key] = f"{kind if kind in _KINDS else 'call'}_{digest}"


def kept(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The id of something that the upstream keeps: it must look as if a machine had made it."""
    reading.stateful = True
    value = holder[key]
    if isinstance(value, dict):
        read_object(reading, value, {"id": kept}, where)
    elif not MACHINE.fullmatch(_string(value, where)):
        raise Refusal("must be an id that the upstream gave", where, "invalid_value")


def someone(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """What names an end user to the upstream: a keyed digest is sent in its place."""
    holder[key] = reading.digest(_string(holder[key], where))


def never(why: str) -> Kind:
    """A field that cannot be protected; false may stand in it."""

    def read(reading: Reading, holder: Holder, key: Any, where: str) -> None:
        if holder[key] is not False:
            raise Refusal(why, where, "unsupported_parameter")

    return read


def record(table: Table) -> Kind:
    """An object with these fields."""

    def read(reading: Reading, holder: Holder, key: Any, where: str) -> None:
        read_object(reading, holder[key], table, where)

    return read


def names(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """Names alone, in any objects and lists, as in tool_choice."""
    value = holder[key]
    if isinstance(value, dict):
        for name in value:
            _matched(_FUNCTION, name, where, "a name")
            names(reading, value, name, f"{where}.{name}")
    elif isinstance(value, list):
        for i, _ in enumerate(value):
            names(reading, value, i, f"{where}[{i}]")
    elif value is not None and not isinstance(value, bool):
        function(reading, holder, key, where)


# Text


def text(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A text, or JSON as a text."""
    value = _string(holder[key], where)
    if value.strip() in ("null", "true", "false"):  # as tools answer
        return
    if is_json(value):
        reading.add_json(value, setter(holder, key), names=False)
    else:
        reading.add(value, setter(holder, key))


def texts(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A text or a list of texts, each by itself."""
    value = holder[key]
    if isinstance(value, list):
        for i, _ in enumerate(value):
            text(reading, value, i, f"{where}[{i}]")
    else:
        text(reading, holder, key, where)


def arguments(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The arguments of a call, as JSON in a string: values are protected, names of fields are kept."""
    value = _string(holder[key], where)
    if is_json(value):
        reading.add_json(value, setter(holder, key), names=True)
    else:
        reading.add(value, setter(holder, key))


def anything(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """Any JSON: all strings and numbers in it are protected; keys must look like names of fields."""
    _anything(reading, holder, key, where, 0)


def _anything(reading: Reading, holder: Holder, key: Any, where: str, depth: int) -> None:
    value = holder[key]
    if depth > DEEPEST:
        raise Refusal(f"is nested more than {DEEPEST} deep", where, "invalid_value")
    if isinstance(value, str):
        text(reading, holder, key, where)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        plain(reading, holder, key, where)
        before = str(value)

        def put(said: str) -> None:
            if said != before:
                holder[key] = said

        reading.add(before, put)
    elif isinstance(value, list):
        for i, _ in enumerate(value):
            _anything(reading, value, i, f"{where}[{i}]", depth + 1)
    elif isinstance(value, dict):
        for name in value:
            _anything(reading, value, name, f"{where}.{_field(name, where)}", depth + 1)


def metadata(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """Names of fields with a text each."""
    value = holder[key]
    if not isinstance(value, dict):
        raise refused(where, "an object", value)
    for name in value:
        said = _string(value[name], f"{where}.{_field(name, where)}")
        if said:
            reading.passages.append([Piece(name, None, ": "), Piece(said, setter(value, name))])


def schema(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A JSON Schema: descriptions, examples and values are protected, unless the setting ``tools`` keeps them."""
    if reading.settings.tools == "protect":
        _schema(reading, holder, key, where, 0)


def _schema(reading: Reading, holder: Holder, key: Any, where: str, depth: int) -> None:
    value = holder[key]
    if depth > DEEPEST:
        raise Refusal(f"is nested more than {DEEPEST} deep", where, "invalid_value")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not (key in _BOUNDS and abs(value) <= _MOST):
        _anything(reading, holder, key, where, depth)
    elif isinstance(value, str):
        text(reading, holder, key, where)
    elif isinstance(value, list):
        for i, _ in enumerate(value):
            _schema(reading, value, i, f"{where}[{i}]", depth + 1)
    elif isinstance(value, dict):
        for name in value:
            place = f"{where}.{_field(name, where)}"
            if name in _VALUES:
                _anything(reading, value, name, place, depth + 1)
            elif name in _IN_SCHEMA:
                _told(_IN_SCHEMA[name], value[name], place)
            elif name in _NAMED and isinstance(value[name], dict):
                for own in value[name]:
                    _schema(reading, value[name], own, f"{place}.{_field(own, place)}", depth + 1)
            else:
                _schema(reading, value, name, place, depth + 1)


def _told(pattern: re.Pattern[str], value: object, where: str) -> None:
    """See that some JSON holds nothing but strings of a form, true, false and nothing."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise refused(where, "a string", value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _told(pattern, one, where)
    if isinstance(value, str):
        _matched(pattern, value, where, "what this keyword of JSON Schema knows")
    for name in value if isinstance(value, dict) else ():
        _field(name, where)


def _field(name: str, where: str) -> str:
    if not NAME.fullmatch(name):
        raise Refusal("has a key that is no name of a field", where)
    return name


def described(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """What a developer wrote about a tool; protected, unless the setting ``tools`` keeps it."""
    if reading.settings.tools == "protect":
        text(reading, holder, key, where)


def speaker(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """The name of who wrote a message. Roles are kept; any other name is somebody's."""
    value = _string(holder[key], where)
    plainly = re.sub(r"[_\-.]", " ", value)
    if all(w.lower() in _ROLES or w.lower() == "example" or re.fullmatch("[0-9]{1,2}", w) for w in plainly.split()):
        return

    def put(said: str) -> None:
        holder[key] = re.sub(r"[^A-Za-z0-9]+", "_", said).strip("_")[:64] or "someone"

    reading.add(plainly, put, person=True)


# Parts of messages


def content(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A text, or parts of which each has its type. The texts of neighbouring parts are read as one."""
    value = holder[key]
    if isinstance(value, str):
        text(reading, holder, key, where)
        return
    passage: Passage = []
    for i, part in enumerate(_list(value, where)):
        place = f"{where}[{i}]"
        if isinstance(part, str):
            passage.append(Piece(part, setter(value, i)))
            continue
        if not isinstance(part, dict):
            raise refused(place, "an object", part)
        kind = part.get("type")
        if isinstance(kind, str) and kind in _MEDIA:
            _media(reading, kind, place)
            continue
        table = PARTS.get(kind) if isinstance(kind, str) else None
        if table is None:
            raise Refusal("is a part of a type that is not known, so it could not be protected", place, "unknown_part")
        part.pop("logprobs", None)  # they spell the text
        read_object(reading, part, table, place)
        for name in ("text", "refusal"):
            said = part.get(name) or ""
            if is_json(said):
                text(reading, part, name, f"{place}.{name}")
            elif said:
                passage.append(Piece(said, setter(part, name)))
    if passage:
        reading.passages.append(passage)


def _media(reading: Reading, kind: str, where: str) -> None:
    name = _MEDIA[kind]
    if name not in reading.settings.media:
        raise Refusal(
            f"is of the type {kind}, which cannot be protected; the gateway's setting 'media' can allow it",
            where,
            "unsupported_content",
        )


def _joined(reading: Reading, holder: Holder, key: Any, where: str) -> None:
    """A text that :func:`content` reads together with its neighbours."""
    _string(holder[key], where)


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise refused(where, "a string", value)
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise refused(where, "a list", value)
    return value


def _matched(pattern: re.Pattern[str], value: object, where: str, wanted: str) -> None:
    if not pattern.fullmatch(_string(value, where)):
        raise Refusal(f"must be {wanted}", where, "invalid_value")


_CACHED: Table = {"type": word, "ttl": word}
_TEXT: Table = {
    "type": word,
    "text": _joined,
    "annotations": anything,
    "cache_control": record(_CACHED),
}
PARTS: Mapping[str, Table] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text"), _TEXT),
    "refusal": {"type": word, "refusal": _joined},
}
"""What parts of messages may hold, by their type."""

"""Restore originals in answers: in texts, and in the strings of JSON, which stays valid; whole or as they arrive.

Each text has a destination. What the user reads gets its originals, but for those in addresses. The call of a tool gets
them only if the settings name the tool as internal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from allonym.restoration import Restorer
from allonym.restoration.destination import Destination
from allonym.server.gateway.passages import dump_json
from allonym.server.gateway.withheld import Pairs, read_strings

_RUN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_UNFINISHED = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_UNCHANGED = frozenset(
    "id object model type role call_id item_id tool_call_id response_id previous_response_id status finish_reason "
    "system_fingerprint service_tier encrypted_content signature obfuscation embedding logprobs b64_json data name "
    "namespace server_label".split()
)
"""Fields that hold no words of the model, or only fragments of words, in which nothing can be restored."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool in an answer.

    Attributes:
        name: of the tool.
        id: of the call; empty: it has none.
        is_clients: whether the client runs the tool, and not the upstream.
    """

    name: str
    id: str = ""
    is_clients: bool = True


_CLIENTS_CALLS = ("function_call", "custom_tool_call", "tool_use")
_TOOL_TYPE = re.compile(r"\w*_(?:call|call_output|tool_use|tool_result)|mcp_\w+")


def read_call(value: Mapping[str, Any], key: str = "") -> Call | None:
    """Return the call that a part of an answer is; None where it is none.

    Args:
        value: the part.
        key: of the field that holds it.
    """
    id = next((value[name] for name in ("call_id", "id") if isinstance(value.get(name), str)), "")
    for inner, text in (("function", "arguments"), ("custom", "input")):
        inside = value.get(inner)
        if isinstance(inside, Mapping) and ("name" in inside or text in inside):
            return Call(str(inside.get("name")), id)
    kind = value.get("type")
    if key == "executed_tools":  # as Groq calls those that it ran
        return Call("", id, is_clients=False)
    if key in ("function_call", "tool_calls") or kind in _CLIENTS_CALLS:
        return Call(str(value.get("name")), id)
    return Call("", id, is_clients=False) if isinstance(kind, str) and _TOOL_TYPE.fullmatch(kind) else None


class AnswerRestorer:
    """Restores the originals of one answer.

    Args:
        restorer: of the request.
        json: whether the answer's text is JSON, because the request asked for it.
        destination: of the answer's texts.
        internal_tools: names of the tools in whose calls originals are restored; ``*``: all that the client runs.
        remember: gets what was withheld: the id of the call or the text that the client gets, and the placeholders
            with their originals.

    Attributes:
        restorer: of the request.
        counts: how many placeholders were ``restored`` so far, how many were not known (``unknown``), and how many may
            not come back where they stand (``withheld``).
    """

    def __init__(
        self,
        restorer: Restorer,
        *,
        json: bool = False,
        destination: Destination | None = None,
        internal_tools: Iterable[str] = (),
        remember: Callable[[str, Pairs], None] | None = None,
    ) -> None:
        self.restorer = restorer
        self.json = json
        self.destination = destination or Destination()
        self.counts = {"restored": 0, "unknown": 0, "withheld": 0}
        self._internal_tools = frozenset(internal_tools)
        self._remember = remember

    def start_stream(self, call: Call | None = None, *, is_json: bool = False) -> TextStream:
        """Start a text, or the text of some JSON, that arrives in pieces; of a call, or of the answer itself."""
        if call is not None and not self._is_internal(call):
            return OutgoingStream(self, call.id)
        return (JsonStream if is_json else TextStream)(self, "" if call is None else call.id)

    def restore_text(self, text: str, call: Call | None = None, *, is_json: bool = False) -> str:
        """Restore a complete text, as :meth:`start_stream` does one in pieces. The result is the same."""
        stream = self.start_stream(call, is_json=is_json)
        return stream.restore_piece(text) + stream.flush_text()

    def restore_json(self, value: Any, key: str = "", call: Call | None = None) -> Any:
        """Restore all texts of an answer, or of a part of it, such as a call."""
        if isinstance(value, str):
            if key in _UNCHANGED:
                return value
            is_json = key == "arguments" or (self.json and key in ("content", "text") and call is None)
            return self.restore_text(value, call, is_json=is_json)
        if key in _UNCHANGED and not isinstance(value, Mapping):
            return value
        if isinstance(value, list):
            return [self.restore_json(item, key, call) for item in value]
        if isinstance(value, dict):
            call = call or read_call(value, key)
            if call is not None and not self._is_internal(call):
                self.withhold(call.id, read_strings(value))
                return value
            return {name: self.restore_json(item, name, call) for name, item in value.items()}
        return value

    def restore_json_uncounted(self, value: Any, call: Call | None = None) -> Any:
        """Restore what repeats an earlier part of the answer, as :meth:`restore_json`, without counting it again."""
        counts = dict(self.counts)
        result = self.restore_json(value, "", call)
        self.counts = counts
        return result

    def format_counts(self) -> str:
        """Return the counts for people who watch what the client gets."""
        return ", ".join(f"{name}={count}" for name, count in self.counts.items())

    def withhold(self, place: str, text: str) -> None:
        """Count and remember the placeholders of a text in which nothing is restored."""
        pairs = list(self.restorer.list_originals(text).items())
        self.counts["withheld"] += len(pairs)
        self.remember_withheld(place, pairs)

    def remember_withheld(self, place: str, pairs: Pairs) -> None:
        """Remember what was withheld in a call, or in a text that the client gets."""
        if self._remember is not None and place and pairs:
            self._remember(place, pairs)

    def _is_internal(self, call: Call) -> bool:
        return call.is_clients and not self._internal_tools.isdisjoint((call.name, "*"))


class TextStream:
    """A text that arrives in pieces.

    Args:
        restoring: the answer.
        call: id of the call that it belongs to; empty: it is the answer's own.
    """

    def __init__(self, restoring: AnswerRestorer, call: str = "") -> None:
        self._restoring = restoring
        self._call = call
        self._arriving = restoring.restorer.arriving(restoring.destination)
        self._sent: list[str] = []
        self._withheld: list[tuple[str, str]] = []

    def restore_piece(self, piece: str) -> str:
        """Return the text that is certain with the next piece."""
        text = self._restore_certain_text(piece, is_final=False)
        self._sent.append(text)
        return text

    def flush_text(self) -> str:
        """Return the rest."""
        rest = self._restore_certain_text("", is_final=True)
        if self._withheld:
            self._restoring.remember_withheld(self._call or "".join((*self._sent, rest)), self._withheld)
        self._sent, self._withheld = [], []
        return rest

    def _restore_certain_text(self, piece: str, *, is_final: bool) -> str:
        """Return what is certain with the next piece, or with the last one."""
        text = self._arriving.feed(piece)
        return text + self._end_part() if is_final else text

    def _end_part(self) -> str:
        """Return the rest of what is restored as one text, and begin the next."""
        arriving = self._arriving
        rest = arriving.end()
        counts = self._restoring.counts
        counts["restored"] += arriving.restored
        counts["unknown"] += arriving.unknown - len(arriving.withheld)
        counts["withheld"] += len(arriving.withheld)
        self._withheld += arriving.withheld
        self._arriving = self._restoring.restorer.arriving(self._restoring.destination)
        return rest


class OutgoingStream(TextStream):
    """The text of a call that goes to others: nothing is restored in it."""

    def _restore_certain_text(self, piece: str, *, is_final: bool) -> str:
        if is_final and self._sent:
            self._restoring.withhold(self._call, read_strings("".join(self._sent)))
        return piece


class JsonStream(TextStream):
    """The text of some JSON that arrives in pieces; originals in its strings are escaped."""

    def __init__(self, restoring: AnswerRestorer, call: str = "") -> None:
        super().__init__(restoring, call)  # it restores one string at a time, or what stands between two
        self._in_string = False
        self._waiting = ""

    def _restore_certain_text(self, piece: str, *, is_final: bool) -> str:
        text = self._waiting + piece
        self._waiting = ""
        parts: list[str] = []
        content: list[str] = []  # of the string, without escapes
        position = 0
        while position < len(text):
            if not self._in_string:
                mark = text.find('"', position)
                end = len(text) if mark < 0 else mark
                parts.append(self._arriving.feed(text[position:end]))
                if mark >= 0:
                    parts += (self._end_part(), '"')
                    self._in_string = True
                position = end + 1
            elif text[position] == '"':
                parts += (_escape_json_text(self._arriving.feed("".join(content)) + self._end_part()), '"')
                content = []
                self._in_string = False
                position += 1
            elif run := _RUN.match(text, position):
                content.append(run[0])
                position = run.end()
            else:
                end = _find_escape_end(text, position, is_final=is_final)
                if not end:
                    self._waiting = text[position:]
                    break
                content.append(_decode_json_escape(text[position:end]))
                position = end
        if content:
            parts.append(_escape_json_text(self._arriving.feed("".join(content))))
        if is_final:
            rest = self._end_part()
            parts.append(_escape_json_text(rest) if self._in_string else rest)
        return "".join(parts)


def _find_escape_end(text: str, start: int, *, is_final: bool) -> int:
    """Return where the escape at ``start`` ends, with the second half of a pair; 0: that is not certain yet."""
    escape = _ESCAPE.match(text, start)
    if escape is None:
        return start + 1 if is_final or not _UNFINISHED.match(text, start) else 0
    if not _HIGH.match(escape[0]):
        return escape.end()
    second = _ESCAPE.match(text, escape.end())
    if second is not None:
        return second.end() if second[0][1:4].lower() in ("udc", "udd", "ude", "udf") else escape.end()
    may_come = escape.end() == len(text) or _UNFINISHED.match(text, escape.end())
    return 0 if may_come and not is_final else escape.end()


def _decode_json_escape(escape: str) -> str:
    try:
        return str(json.loads(f'"{escape}"'))
    except ValueError:
        return escape  # it is not JSON


def _escape_json_text(text: str) -> str:
    return dump_json(text).decode()[1:-1]

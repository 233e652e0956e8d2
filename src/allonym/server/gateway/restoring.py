"""Restore originals in answers: in texts, and in the strings of JSON, which stays valid; whole or as they arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from allonym.restoration import Restorer
from allonym.server.gateway.reading import dump_json

_RUN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_UNFINISHED = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_UNCHANGED = frozenset(
    "id object model type role call_id item_id tool_call_id response_id previous_response_id status finish_reason "
    "system_fingerprint service_tier encrypted_content obfuscation embedding logprobs b64_json data name namespace "
    "server_label".split()
)
"""Fields that hold no words of the model, or only fragments of words, in which nothing can be restored."""


class AnswerRestorer:
    """Restores the originals of one answer.

    Args:
        restorer: of the request.
        json: whether the answer's text is JSON, because the request asked for it.

    Attributes:
        restorer: of the request.
        counts: how many placeholders were ``restored`` so far, and how many were not (``unknown``).
    """

    def __init__(self, restorer: Restorer, *, json: bool = False) -> None:
        self.restorer = restorer
        self.json = json
        self.counts = {"restored": 0, "unknown": 0}

    def start_stream(self, *, is_json: bool = False) -> TextStream:
        """Start a text, or the text of some JSON, that arrives in pieces."""
        return JsonStream(self) if is_json else TextStream(self)

    def restore_text(self, text: str, *, is_json: bool = False) -> str:
        """Restore a complete text. The result is the same as if it came in pieces."""
        stream = self.start_stream(is_json=is_json)
        return stream.restore_piece(text) + stream.flush_text()

    def restore_json(self, value: Any, key: str = "") -> Any:
        """Restore all texts of an answer, or of a part of it."""
        if isinstance(value, str):
            if key in _UNCHANGED:
                return value
            return self.restore_text(value, is_json=key == "arguments" or (self.json and key in ("content", "text")))
        if key in _UNCHANGED and not isinstance(value, Mapping):
            return value
        if isinstance(value, list):
            return [self.restore_json(item, key) for item in value]
        if isinstance(value, dict):
            return {name: self.restore_json(item, name) for name, item in value.items()}
        return value

    def restore_json_uncounted(self, value: Any) -> Any:
        """Restore what repeats an earlier part of the answer, as :meth:`restore_json`, without counting it again."""
        counts = dict(self.counts)
        result = self.restore_json(value)
        self.counts = counts
        return result


class TextStream:
    """A text that arrives in pieces."""

    def __init__(self, restoring: AnswerRestorer) -> None:
        self._restoring = restoring
        self._arriving = restoring.restorer.arriving()

    def restore_piece(self, piece: str) -> str:
        """Return the text that is certain with the next piece."""
        return self._arriving.feed(piece)

    def flush_text(self) -> str:
        """Return the rest."""
        rest = self._arriving.end()
        self._restoring.counts["restored"] += self._arriving.restored
        self._restoring.counts["unknown"] += self._arriving.unknown
        self._arriving = self._restoring.restorer.arriving()
        return rest


class JsonStream(TextStream):
    """The text of some JSON that arrives in pieces; originals in its strings are escaped."""

    def __init__(self, restoring: AnswerRestorer) -> None:
        self._text = TextStream(restoring)  # of the string that has begun, or of what stands between two strings
        self._in_string = False
        self._waiting = ""

    def restore_piece(self, piece: str) -> str:
        """Return the text that is certain with the next piece."""
        return self._restore_certain_text(piece, is_final=False)

    def flush_text(self) -> str:
        """Return the rest."""
        text, rest = self._restore_certain_text("", is_final=True), self._text.flush_text()
        return text + (_escape_json_text(rest) if self._in_string else rest)

    def _restore_certain_text(self, piece: str, *, is_final: bool) -> str:
        """Return what is certain with the next piece, originals escaped inside strings."""
        text = self._waiting + piece
        self._waiting = ""
        parts: list[str] = []
        content: list[str] = []  # of the string, without escapes
        position = 0
        while position < len(text):
            if not self._in_string:
                mark = text.find('"', position)
                end = len(text) if mark < 0 else mark
                parts.append(self._text.restore_piece(text[position:end]))
                if mark >= 0:
                    parts += (self._text.flush_text(), '"')
                    self._in_string = True
                position = end + 1
            elif text[position] == '"':
                parts += (_escape_json_text(self._text.restore_piece("".join(content)) + self._text.flush_text()), '"')
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
            parts.append(_escape_json_text(self._text.restore_piece("".join(content))))
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

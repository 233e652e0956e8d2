"""Originals into answers: into texts, and into the strings of JSON so that it stays valid, whole or as they arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from allonym.restore import Restorer
from allonym.restore.bring import Arriving
from allonym.server.gateway.pieces import quoted

_RUN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_UNFINISHED = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_AS_THEY_ARE = frozenset(
    "id object model type role call_id item_id tool_call_id response_id previous_response_id status finish_reason "
    "system_fingerprint service_tier encrypted_content obfuscation embedding logprobs b64_json data name namespace "
    "server_label".split()
)
"""Fields that hold no words of the model, or only pieces of words, which nothing can be brought back into."""


class Restoring:
    """Originals for one answer.

    Args:
        restorer: what is known of the request.
        json: the answer's text is JSON, because the request asked for it.

    Attributes:
        restored, unknown: how many placeholders were undone so far, and how many were left.
    """

    def __init__(self, restorer: Restorer, *, json: bool = False) -> None:
        self._restorer = restorer
        self.json = json
        self.restored = 0
        self.unknown = 0
        self._told_again = False

    def arriving(self, *, json: bool = False) -> Text | JsonText:
        """A text, or the text of some JSON, that comes in pieces."""
        return JsonText(self) if json else Text(self)

    def text(self, text: str, *, json: bool = False) -> str:
        """A whole text; what it becomes does not depend on whether it comes in pieces."""
        made = self.arriving(json=json)
        return made.feed(text) + made.end()

    def anything(self, value: Any, key: str = "") -> Any:
        """All texts of an answer, or of a part of it."""
        if isinstance(value, str):
            if key in _AS_THEY_ARE:
                return value
            return self.text(value, json=key == "arguments" or (self.json and key in ("content", "text")))
        if key in _AS_THEY_ARE and not isinstance(value, Mapping):
            return value
        if isinstance(value, list):
            return [self.anything(one, key) for one in value]
        if isinstance(value, dict):
            return {name: self.anything(one, name) for name, one in value.items()}
        return value

    def again(self, value: Any) -> Any:
        """As :meth:`anything`, of what repeats an answer that has come before: it is not counted once more."""
        self._told_again = True
        try:
            return self.anything(value)
        finally:
            self._told_again = False

    def begin(self) -> Arriving:
        return self._restorer.arriving()

    def count(self, done: Arriving) -> None:
        if not self._told_again:
            self.restored += done.restored
            self.unknown += done.unknown


class Text:
    """A text that arrives in pieces."""

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        self._arriving = restoring.begin()

    def feed(self, piece: str) -> str:
        """What is decided with the next piece."""
        return self._arriving.feed(piece)

    def end(self) -> str:
        """The rest."""
        out = self._arriving.end()
        self._restoring.count(self._arriving)
        self._arriving = self._restoring.begin()
        return out


class JsonText:
    """The text of some JSON that arrives in pieces; what is put into its strings is escaped."""

    def __init__(self, restoring: Restoring) -> None:
        self._outside = Text(restoring)
        self._inside = Text(restoring)
        self._in_string = False
        self._waiting = ""

    def feed(self, piece: str) -> str:
        """What is decided with the next piece."""
        return self._read(piece, final=False)

    def end(self) -> str:
        """The rest."""
        out = self._read("", final=True)
        return out + (_escaped(self._inside.end()) if self._in_string else self._outside.end())

    def _read(self, piece: str, *, final: bool) -> str:
        text = self._waiting + piece
        self._waiting = ""
        out: list[str] = []
        said: list[str] = []  # what the string says, without escapes
        at = 0
        while at < len(text):
            if not self._in_string:
                mark = text.find('"', at)
                end = len(text) if mark < 0 else mark
                out.append(self._outside.feed(text[at:end]))
                if mark >= 0:
                    out += (self._outside.end(), '"')
                    self._in_string = True
                at = end + 1
            elif text[at] == '"':
                out += (_escaped(self._inside.feed("".join(said)) + self._inside.end()), '"')
                said = []
                self._in_string = False
                at += 1
            elif run := _RUN.match(text, at):
                said.append(run[0])
                at = run.end()
            else:
                end = _escape_end(text, at, final=final)
                if not end:
                    self._waiting = text[at:]
                    break
                said.append(_meaning(text[at:end]))
                at = end
        if said:
            out.append(_escaped(self._inside.feed("".join(said))))
        return "".join(out)


def _escape_end(text: str, at: int, *, final: bool) -> int:
    """Where the escape at ``at`` ends, with the second half of a pair; 0: that is not known yet."""
    found = _ESCAPE.match(text, at)
    if found is None:
        return at + 1 if final or not _UNFINISHED.match(text, at) else 0
    if not _HIGH.match(found[0]):
        return found.end()
    second = _ESCAPE.match(text, found.end())
    if second is not None:
        return second.end() if second[0][1:4].lower() in ("udc", "udd", "ude", "udf") else found.end()
    may_come = found.end() == len(text) or _UNFINISHED.match(text, found.end())
    return 0 if may_come and not final else found.end()


def _meaning(escape: str) -> str:
    try:
        said = json.loads(f'"{escape}"')
    except ValueError:
        return escape  # it is not JSON
    assert isinstance(said, str)
    return said


def _escaped(text: str) -> str:
    return quoted(text)[1:-1]

"""Server-sent events: read from bytes that are split anywhere, and written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from allonym.server.gateway.refusal import Unanswered

LARGEST = 16 << 20
"""Bytes of one event."""

_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, and its data. One without data is a comment that keeps the connection alive."""

    name: str = ""
    data: str = field(default="", repr=False)

    def json(self) -> dict[str, Any] | None:
        """The data as a JSON object; None where it is none."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class Events:
    """Bytes to events."""

    def __init__(self) -> None:
        self._waiting = b""
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._begun = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that end in the next bytes.

        Raises:
            Unanswered: an event is larger than :data:`LARGEST`.
        """
        self._size += len(data)
        if self._size > LARGEST:
            raise Unanswered(f"the upstream sent an event of more than {LARGEST >> 20} MiB")
        waiting = self._waiting + data
        out: list[Event] = []
        at = 0
        for end in _LINE.finditer(waiting):
            if end[0] == b"\r" and end.end() == len(waiting):
                break  # a line feed that belongs to it may follow
            out += self._line(waiting[at : end.start()])
            at = end.end()
        self._waiting = waiting[at:]
        return out

    def _line(self, line: bytes) -> list[Event]:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            name, data = self._name, self._data
            self._name, self._data, self._size = "", [], 0
            return [Event(name, "\n".join(data))] if data else []
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif not field:
            self._size = 0 if not self._data else self._size
            return [Event()]
        return []


def dumped(value: object) -> bytes:
    """``value`` as JSON; readable characters stay readable where they can be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def written(data: object, name: str = "") -> bytes:
    """An event with JSON, or with a text that has one line."""
    body = data.encode() if isinstance(data, str) else dumped(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + body + b"\n\n"

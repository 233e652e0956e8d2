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

    def parse_json(self) -> dict[str, Any] | None:
        """Return the data as a JSON object; None where it is none."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class EventParser:
    """Parses bytes to events."""

    def __init__(self) -> None:
        self._waiting = b""
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._started = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that end in the next bytes.

        Raises:
            Unanswered: an event is larger than :data:`LARGEST`.
        """
        self._size += len(data)
        if self._size > LARGEST:
            raise Unanswered(f"the upstream sent an event of more than {LARGEST >> 20} MiB")
        waiting = self._waiting + data
        events: list[Event] = []
        position = 0
        for end in _LINE.finditer(waiting):
            if end[0] == b"\r" and end.end() == len(waiting):
                break  # a line feed that belongs to it may follow
            events += self._read_line(waiting[position : end.start()])
            position = end.end()
        self._waiting = waiting[position:]
        return events

    def _read_line(self, line: bytes) -> list[Event]:
        if not self._started:
            self._started = True
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


def dump_json(value: object) -> bytes:
    """Return a value as JSON; readable characters stay readable where they can be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def format_event(data: object, name: str = "") -> bytes:
    """Return an event with JSON, or with a text of one line."""
    body = data.encode() if isinstance(data, str) else dump_json(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + body + b"\n\n"

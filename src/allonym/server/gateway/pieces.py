"""The text of a request: pieces, in passages that are looked at together, each with the way back to its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Put = Callable[[str], None]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+\-]*', re.DOTALL)
_COLON = re.compile(r"[ \t\r\n]*:")
NAME = re.compile(r"[A-Za-z_$][\w$.\-]{0,127}", re.ASCII)
"""What the name of a field or a function looks like."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One string of a request.

    Attributes:
        text: hidden from ``repr``.
        put: sets what becomes of it in its place; None: it is context for its neighbours and is not sent from here.
        after: what stands between it and the next piece of its passage.
        person: it is somebody's name, whatever the detectors say.
    """

    text: str = field(repr=False)
    put: Put | None = field(repr=False)
    after: str = "\n"
    person: bool = False


Passage = list[Piece]
"""Pieces that a model reads as one: the parts of a message, the values of a JSON text."""


class JsonText:
    """A JSON text whose strings and numbers are replaced in their places; everything else in it stays as it is.

    Args:
        text: valid JSON.
        put: gets the whole text, when :meth:`finish` is called.
        names: keep keys that look like the names of fields.
    """

    def __init__(self, text: str, put: Put, *, names: bool) -> None:
        self._text = text
        self._put = put
        self._names = names
        self._changed: dict[int, str] = {}
        self._places: list[tuple[int, int]] = []

    def pieces(self) -> Iterator[Piece]:
        """Its keys and values, read as lines ``key: value``."""
        for found in _TOKEN.finditer(self._text):
            start, end = found.span()
            token = found[0]
            value = json.loads(token) if token[0] == '"' else token
            is_key = token[0] == '"' and _COLON.match(self._text, end) is not None
            after = ": " if is_key else "\n"
            if is_key and self._names and NAME.fullmatch(value):
                yield Piece(value, None, after)
            elif value:
                self._places.append((start, end))
                yield Piece(value, self._setter(start, value), after)

    def _setter(self, start: int, before: str) -> Put:
        def put(text: str) -> None:
            if text != before:
                self._changed[start] = quoted(text)

        return put

    def finish(self) -> None:
        """Put the text with its changes into its place."""
        out: list[str] = []
        at = 0
        for start, end in self._places:
            if start in self._changed:
                out += (self._text[at:start], self._changed[start])
                at = end
        self._put("".join((*out, self._text[at:])))


def quoted(text: str) -> str:
    """``text`` as a JSON string; readable characters stay readable where they can be encoded."""
    plain = text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
    return json.dumps(text, ensure_ascii=not plain)


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or array."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

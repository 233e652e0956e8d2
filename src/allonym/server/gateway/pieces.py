"""The text of a request: pieces, in passages that a model reads as one, each with the way back to its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

TextSetter = Callable[[str], None]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+\-]*', re.DOTALL)
_COLON = re.compile(r"[ \t\r\n]*:")
NAME = re.compile(r"[A-Za-z_$][\w$.\-]{0,127}", re.ASCII)
"""The form of the name of a field or a function."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One string of a request.

    Attributes:
        text: hidden from ``repr``.
        set_text: puts another text into its place; None: it is context for its neighbours and is not sent from here.
        after: stands between it and the next piece of its passage.
        is_person: it is the name of a person, whatever the detectors find.
    """

    text: str = field(repr=False)
    set_text: TextSetter | None = field(repr=False)
    after: str = "\n"
    is_person: bool = False


Passage = list[Piece]
"""Pieces that a model reads as one: the parts of a message, the values of a JSON text."""


class JsonSource:
    """A JSON text whose strings and numbers are replaced in their places; everything else in it stays as it is.

    Args:
        text: valid JSON.
        set_text: gets the new text, when :meth:`write_back` is called.
        keep_keys: whether to keep keys that look like the names of fields.
    """

    def __init__(self, text: str, set_text: TextSetter, *, keep_keys: bool) -> None:
        self._text, self._set_text, self._keep_keys = text, set_text, keep_keys
        self._changes: dict[tuple[int, int], str] = {}

    def iterate_pieces(self) -> Iterator[Piece]:
        """Yield keys and values, as lines ``key: value``."""
        for match in _TOKEN.finditer(self._text):
            token = match[0]
            is_string = token[0] == '"'
            value = json.loads(token) if is_string else token
            is_key = is_string and _COLON.match(self._text, match.end()) is not None
            after = ": " if is_key else "\n"
            if is_key and self._keep_keys and NAME.fullmatch(value):
                yield Piece(value, None, after)
            elif value:
                yield Piece(value, partial(self._changes.__setitem__, match.span()), after)

    def write_back(self) -> None:
        """TextSetter the text with its changes into its place."""
        parts: list[str] = []
        position = 0
        for (start, end), text in sorted(self._changes.items()):
            parts += (self._text[position:start], encode_json_string(text))
            position = end
        self._set_text("".join((*parts, self._text[position:])))


def encode_json_string(text: str) -> str:
    """Return a text as a JSON string; readable characters stay readable where they can be encoded."""
    plain = text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)
    return json.dumps(text, ensure_ascii=not plain)


def is_json_container(text: str) -> bool:
    """Whether a text is a JSON object or array."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

"""The text of a request: pieces, in passages that a model reads as one, each with the way back to its place."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from allonym.server.gateway.settings import Settings

NAME = re.compile(r"[A-Za-z_$][\w$.\-]{0,127}", re.ASCII)
"""The form of the name of a field or a function."""

TextSetter = Callable[[str], None]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+\-]*', re.DOTALL)
_COLON = re.compile(r"[ \t\r\n]*:")


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
        self._kept_keys: list[tuple[str, tuple[int, int]]] = []

    def iterate_pieces(self) -> Iterator[Piece]:
        """Yield keys and values, as lines ``key: value``."""
        for match in _TOKEN.finditer(self._text):
            token = match[0]
            is_string = token[0] == '"'
            value = json.loads(token) if is_string else token
            is_key = is_string and _COLON.match(self._text, match.end()) is not None
            after = ": " if is_key else "\n"
            if is_key and self._keep_keys and NAME.fullmatch(value):
                self._kept_keys.append((value, match.span()))
                yield Piece(value, None, after)
            elif value:
                yield Piece(value, partial(self._changes.__setitem__, match.span()), after)

    def write_back(self, replacements: Mapping[str, str]) -> None:
        """Put the text with its changes into its place; a kept key that is an original is replaced, too."""
        self._changes.update((span, replacements[key]) for key, span in self._kept_keys if key in replacements)
        parts: list[str] = []
        position = 0
        for (start, end), text in sorted(self._changes.items()):
            parts += (self._text[position:start], dump_json(text).decode())
            position = end
        self._set_text("".join((*parts, self._text[position:])))


def dump_json(value: object) -> bytes:
    """Return a value as JSON; readable characters stay readable where they can be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def is_json_container(text: str) -> bool:
    """Whether a text is a JSON object or array."""
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


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
        self._keys: list[tuple[dict[str, Any], str]] = []

    def add_text_passage(self, text: str, set_text: TextSetter, *, is_person: bool = False) -> None:
        """Add a passage of one piece."""
        if text and not text.isspace():
            self.passages.append([Piece(text, set_text, is_person=is_person)])

    def add_json_passage(self, text: str, set_text: TextSetter, *, keep_keys: bool) -> None:
        """Add the strings and numbers of a JSON text as one passage."""
        source = JsonSource(text, set_text, keep_keys=keep_keys)
        pieces = list(source.iterate_pieces())
        if any(piece.set_text for piece in pieces):
            self.passages.append(pieces)
            self._json.append(source)

    def note_key(self, holder: dict[str, Any], key: str) -> None:
        """Note a key of free JSON, which is kept because it looks like the name of a field."""
        self._keys.append((holder, key))

    def write_back_json_texts(self, replacements: Mapping[str, str]) -> None:
        """Write the JSON texts back together, after all pieces are in their places.

        Args:
            replacements: by their originals. Where a whole key is an original, it is replaced.
        """
        for source in self._json:
            source.write_back(replacements)
        for holder, key in self._keys:
            if key in replacements and key in holder:
                members = [(replacements[key] if name == key else name, value) for name, value in holder.items()]
                holder.clear()
                holder.update(members)

    def digest_identifier(self, value: str) -> str:
        """Return a keyed digest that stands for an identifier, the same in every request."""
        return hmac.digest(self._secret, value.encode("utf-8", "surrogatepass"), "sha256").hex()[:24]

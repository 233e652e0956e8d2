"""Offsets of the strings, keys and numbers of a JSON text, so that everything else keeps its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],]|[-\d][\w.+-]*')
_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_SIGN = re.compile(r"[^\s,]")
NUMBER_MARK = "\t"
_MARKED = re.compile(rf"{NUMBER_MARK}[,}}\]]")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LONG_NUMBER = re.compile(r"-?\d{7,}")

Kind = Literal["value", "key", "number"]


@dataclass(frozen=True, slots=True)
class Token:
    """A string, key or number of a JSON text.

    Attributes:
        start, end: half-open characters of the JSON text, with quotes and the mark of a number.
        text: its value.
        path: the keys above it and, for values, its own; lists are transparent.
        object: number of its innermost object, from 1; 0: none.
        listed: whether that object is an item of a list.
        kind: string value, object key, or number.
        was_number: whether it stands for a number that was covered, see :func:`quote_number`.
    """

    start: int
    end: int
    text: str = field(repr=False)
    path: tuple[str, ...] = field(repr=False)
    object: int
    listed: bool
    kind: Kind
    was_number: bool = False


def describe_json_error(error: Exception) -> str:
    """Describe why :func:`parse_json` rejects a text, without quoting it."""
    if isinstance(error, RecursionError):
        return "JSON that is nested too deeply"
    return f"not valid JSON ({type(error).__name__})"


def parse_json(text: str) -> object:
    """Parse a JSON text. Control characters in strings and NaN are allowed.

    Raises:
        ValueError, RecursionError: the text is not JSON, or nested too deeply.
    """
    return json.loads(text, strict=False)


def find_json_tokens(text: str, *, every_number: bool = False) -> Iterator[Token]:
    """Return the strings, keys and long numbers of a JSON text that :func:`parse_json` accepts, in order.

    ``every_number``: short ones too, and those with decimals.
    """
    path: list[str] = []
    stack: list[tuple[str, int, bool]] = []
    top, number, listed = "", 0, False
    count = 0
    at_key = False
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        c = text[start]
        if c == '"':
            raw = text[start + 1 : end - 1]
            value = json.loads(text[start:end], strict=False) if "\\" in raw else raw
            if at_key:
                path[-1] = value
                at_key = False
                yield Token(start, end, value, tuple(path), number, listed, "key")
            else:
                was_number = _MARKED.match(text, end) is not None
                end += was_number and len(NUMBER_MARK)
                yield Token(start, end, value, tuple(path), number if top == "{" else 0, listed, "value", was_number)
        elif c == ",":
            at_key = top == "{"
        elif c == "{":
            count += 1
            stack.append((top, number, listed))
            top, number, listed = "{", count, top == "["
            path.append("")
            at_key = True
        elif c == "[":
            stack.append((top, number, listed))
            top, number, listed = "[", number, False
            at_key = False
        elif c in "}]":
            if c == "}":
                path.pop()
            top, number, listed = stack.pop()
            at_key = False
        elif every_number or _LONG_NUMBER.fullmatch(text, start, end):
            yield Token(start, end, match.group(), tuple(path), number if top == "{" else 0, listed, "number")


def is_long_number(text: str) -> bool:
    """Tell whether a text is a whole number of at least seven digits."""
    return _LONG_NUMBER.fullmatch(text) is not None


def quote_json_string(text: str, ascii_only: bool) -> str:
    """Return a JSON string literal. Lone surrogates are always written as escapes."""
    out = json.dumps(text, ensure_ascii=ascii_only)
    return out if ascii_only else _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", out)


def quote_number(text: str, ascii_only: bool) -> str:
    """Return what stands for a number: a string literal and a tab, which no program writes, for restoring to see."""
    return quote_json_string(text, ascii_only) + NUMBER_MARK


def write_former_number(text: str, ascii_only: bool) -> str:
    """Return a number as it is, and any other text as :func:`quote_number` does."""
    return text if _NUMBER.fullmatch(text) else quote_number(text, ascii_only)


def find_list_item_offsets(text: str) -> Iterator[tuple[int, int]]:
    """Return the half-open offsets of the items of a JSON list that :func:`parse_json` accepts."""
    decoder = json.JSONDecoder(strict=False)
    end = 1
    while (match := _FIRST_SIGN.search(text, end)) and match.group() != "]":
        _, end = decoder.raw_decode(text, match.start())
        yield match.start(), end

"""Reading JSON out of what a model wrote: in fences, after thoughts, between other words, or cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping

_OPEN, _CLOSE = "<think>", "</think>"
_DEEPEST = 64


def parsed(content: str) -> Mapping[str, object] | None:
    """The first whole JSON object in an answer; None where there is none."""
    text = _spoken(content)
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_DEEPEST):
        if at < 0:
            return None
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        # An inner object of a broken outer one is not the answer.
        return found if isinstance(found, dict) and _outermost(text, at) else None
    return None


def _spoken(content: str) -> str:
    """The answer without its thoughts. Each end is looked for once: an answer may be 16 MiB of beginnings."""
    pieces: list[str] = []
    at = 0
    while (start := content.find(_OPEN, at)) >= 0 and (end := content.find(_CLOSE, start)) >= 0:
        pieces.append(content[at:start])
        at = end + len(_CLOSE)
    return "".join((*pieces, content[at:]))


def _outermost(text: str, at: int) -> bool:
    before = text[:at]
    return before.count("{") == before.count("}")


def mended(content: str) -> Mapping[str, object] | None:
    """As :func:`parsed`; of an answer that was cut off, what was complete before the cut."""
    whole = parsed(content)
    if whole is not None:
        return whole
    text = _spoken(content)
    start = text.find("{")
    if start < 0:
        return None
    open_: list[str] = []
    quoted = escaped = False
    safe: list[tuple[int, str]] = []  # where an element ends, and what closes the rest
    for i in range(start, len(text)):
        c = text[i]
        if quoted:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "{[":
            open_.append("}" if c == "{" else "]")
            if len(open_) > _DEEPEST:
                return None
        elif c in "}]":
            if not open_ or open_.pop() != c:
                break
            safe.append((i + 1, "".join(reversed(open_))))
        elif c == ",":
            safe.append((i, "".join(reversed(open_))))
    if not quoted:
        safe.append((len(text), "".join(reversed(open_))))
    for end, closing in reversed(safe[-_DEEPEST:]):
        try:
            found = json.loads(text[start:end] + closing)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None

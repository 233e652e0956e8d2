"""Reading JSON from a model's answer: in fences, after thoughts, between other words, or cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping

_OPEN, _CLOSE = "<think>", "</think>"
_DEEPEST = 64


def parse_answer(content: str) -> Mapping[str, object] | None:
    """Return the first complete JSON object in an answer; None where there is none."""
    text = _remove_thoughts(content)
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_DEEPEST):
        if start < 0:
            return None
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        # An inner object of a broken outer one is not the answer.
        is_outermost = text.count("{", 0, start) == text.count("}", 0, start)
        return value if isinstance(value, dict) and is_outermost else None
    return None


def parse_cut_answer(content: str) -> Mapping[str, object] | None:
    """Parse an answer like :func:`parse_answer`; of one that was cut off, return what was complete before the cut."""
    answer = parse_answer(content)
    if answer is not None:
        return answer
    text = _remove_thoughts(content)
    start = text.find("{")
    for end, closing in reversed(_find_element_ends(text, start)[-_DEEPEST:] if start >= 0 else []):
        try:
            value = json.loads(text[start:end] + closing)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _remove_thoughts(content: str) -> str:
    """Remove a model's thoughts. Each end is looked for once: an answer may be 16 MiB of beginnings."""
    pieces: list[str] = []
    position = 0
    while (start := content.find(_OPEN, position)) >= 0 and (end := content.find(_CLOSE, start)) >= 0:
        pieces.append(content[position:start])
        position = end + len(_CLOSE)
    return "".join((*pieces, content[position:]))


def _find_element_ends(text: str, start: int) -> list[tuple[int, str]]:
    """Find where elements of the JSON at ``start`` end, each with the signs that would close the rest."""
    closing: list[str] = []
    is_quoted = is_escaped = False
    ends: list[tuple[int, str]] = []
    for i in range(start, len(text)):
        c = text[i]
        if is_quoted:
            is_quoted = is_escaped or c != '"'
            is_escaped = not is_escaped and c == "\\"
        elif c == '"':
            is_quoted = True
        elif c in "{[":
            closing.append("}" if c == "{" else "]")
            if len(closing) > _DEEPEST:
                return []
        elif c in "}]":
            if not closing or closing.pop() != c:
                break
            ends.append((i + 1, "".join(reversed(closing))))
        elif c == ",":
            ends.append((i, "".join(reversed(closing))))
    if not is_quoted:
        ends.append((len(text), "".join(reversed(closing))))
    return ends

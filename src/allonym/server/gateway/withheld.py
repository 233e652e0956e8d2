"""What answers withheld from calls of tools and from addresses, and how a history that brings it again is read.

A client that got a placeholder sends it back with the conversation, and a tool may repeat it in its result. There it
stands for its original, unlike a placeholder that somebody else wrote. So the gateway remembers, in memory, which
originals it withheld in which call and in which text. What is remembered is used only where the conversation holds the
original anyway: nothing of another conversation can come out of it.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from allonym.server.gateway.passages import dump_json, is_json_container

_REMEMBERED = 8192  # calls and texts
_IDS = ("tool_call_id", "call_id", "tool_use_id", "id")
_NAMES = frozenset((*_IDS, "type", "role", "name"))
Pairs = Sequence[tuple[str, str]]
"""Placeholders as they stand in a text, each with its original."""


class WithheldOriginals:
    """The originals that were withheld, by conversation, and by call or text. Safe for threads."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._pairs: OrderedDict[bytes, tuple[tuple[str, str], ...]] = OrderedDict()
        self._lock = Lock()

    def remember(self, scope: str, place: str, pairs: Pairs) -> None:
        """Remember what was withheld.

        Args:
            scope: of the conversation; empty: it has none.
            place: the id of the call, or the text that the client got.
            pairs: the placeholders in it, with their originals.
        """
        digest = self._digest(scope, place)
        with self._lock:
            self._pairs[digest] = tuple(dict.fromkeys(pairs))
            self._pairs.move_to_end(digest)
            while len(self._pairs) > _REMEMBERED:
                self._pairs.popitem(last=False)

    def put_back(self, body: dict[str, Any], scope: str) -> set[str]:
        """Put originals into the places of a request that got placeholders for them; return these originals."""
        if not self._pairs:
            return set()
        strings = "" if scope else "\n".join(_iterate_strings(body))
        used: set[str] = set()

        def choose_pairs(place: str) -> dict[str, str]:
            digest = self._digest(scope, place)
            with self._lock:
                pairs = self._pairs.get(digest, ())
                if pairs:  # a conversation that goes on is kept
                    self._pairs.move_to_end(digest)
            return {surface: original for surface, original in pairs if scope or original in strings}

        def replace_in(text: str, pairs: Mapping[str, str]) -> str:
            pattern = re.compile("|".join(map(re.escape, sorted(pairs, key=len, reverse=True))))
            used.update(pairs[surface] for surface in pattern.findall(text))
            return pattern.sub(lambda match: pairs[match[0]], text)

        def visit(value: Any, pairs: dict[str, str]) -> Any:
            if isinstance(value, str):
                chosen = pairs or choose_pairs(value)
                return _change_strings(value, lambda text: replace_in(text, chosen)) if chosen else value
            if isinstance(value, list):
                return [visit(item, pairs) for item in value]
            if isinstance(value, dict):
                ids = (value[name] for name in _IDS if isinstance(value.get(name), str))
                nearest = next((choice for place in ids if (choice := choose_pairs(place))), {})
                inner = {**pairs, **nearest}
                return {name: item if name in _NAMES else visit(item, inner) for name, item in value.items()}
            return value

        for name, value in body.items():
            body[name] = visit(value, {})
        return used

    def _digest(self, scope: str, place: str) -> bytes:
        return hmac.digest(self._secret, f"{scope}\0{place}".encode("utf-8", "surrogatepass"), "sha256")


def _change_strings(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed; one that is JSON, with its strings changed."""
    if not is_json_container(text):
        return change(text)

    def visit(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [visit(item) for item in value]
        return {change(name): visit(item) for name, item in value.items()} if isinstance(value, dict) else value

    value = json.loads(text)
    changed = visit(value)
    return text if changed == value else dump_json(changed).decode()


def _iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _iterate_strings(item)


def read_strings(value: Any) -> str:
    """Return all strings and keys of some JSON as lines, also of JSON within a string, but for ids and names."""
    if isinstance(value, str):
        return read_strings(json.loads(value)) if is_json_container(value) else value
    if isinstance(value, dict):
        return "\n".join(f"{name}\n{read_strings(item)}" for name, item in value.items() if name not in _NAMES)
    return "\n".join(map(read_strings, value)) if isinstance(value, list) else ""

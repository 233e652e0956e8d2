"""Prompts: TOML files with slots such as ``{text}``; a policy's ``[llm.prompts]`` replaces parts of ours."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Messages = tuple[tuple[str, str], ...]
"""Role and content, in order."""

TEXT: Mapping[str, object] = {"type": "string"}
"""The JSON Schema of a text."""

_SLOTS = ("text", "entities", "known", "labels", "language")


@cache
def read_prompts(folder: str, name: str) -> Mapping[str, Any]:
    """Return the parts of a TOML file of prompts in a folder of the package."""
    return tomllib.loads(files("allonym").joinpath(folder, f"{name}.toml").read_text(encoding="utf-8"))


def read_prompt(name: str) -> Mapping[str, str]:
    """Return the parts ``system``, ``example``, ``answer``, ``user`` and ``again`` of a prompt."""
    return read_prompts("llm/prompts", name)


def fill_slots(prompt: str, values: Mapping[str, str]) -> str:
    """Fill the slots that ``values`` names; what the values hold is not looked at again."""
    return make_utf8_safe(re.sub(r"\{(\w+)\}", lambda slot: values.get(slot[1], slot[0]), prompt).strip())


def make_object_schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON Schema of an object with all of these properties and no others."""
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def make_list_schema(items: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON Schema of a list of such items."""
    return {"type": "array", "items": items}


def make_utf8_safe(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8 and cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def extend_messages(messages: Messages, more: str) -> Messages:
    """Append a paragraph to the last message."""
    role, content = messages[-1]
    return (*messages[:-1], (role, f"{content}\n\n{more}"))


def build_messages(name: str, policy_prompts: object, *, again: bool = False, **values: str) -> Messages:
    """Build the messages of a request.

    Args:
        name: of the prompt.
        policy_prompts: a policy's table of prompts.
        again: whether to append the part ``again``, because the first answer could not be used.
        values: contents of ``{text}``, ``{entities}``, ``{known}``, ``{labels}`` and ``{language}``.
    """
    parts = dict(read_prompt(name))
    if isinstance(policy_prompts, Mapping) and isinstance(replaced := policy_prompts.get(name), Mapping):
        parts |= replaced
    values = dict.fromkeys(_SLOTS, "") | values
    filled = {part: fill_slots(prompt, values) for part, prompt in parts.items()}
    example = (("user", filled["example"]), ("assistant", filled["answer"])) if parts["example"].strip() else ()
    request: Messages = (("system", filled["system"]), *example, ("user", filled["user"]))
    return extend_messages(request, filled["again"]) if again else request

"""Prompts: TOML files in ``prompts/``, part by part replaced by what a policy's ``[llm.prompts]`` says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

Messages = tuple[tuple[str, str], ...]
"""Role and content, in order."""

_SLOT = re.compile(r"\{(text|entities|known|labels|language)\}")


@cache
def template(name: str) -> Mapping[str, str]:
    """The parts ``system``, ``example``, ``answer``, ``user`` and ``again`` of a prompt."""
    return tomllib.loads(files("allonym").joinpath("llm", "prompts", f"{name}.toml").read_text(encoding="utf-8"))


def messages(name: str, own: object, *, again: bool = False, **values: str) -> Messages:
    """The messages of a request.

    Args:
        name: of the prompt.
        own: a policy's table of prompts.
        again: whether the part ``again`` follows, since the first answer could not be used.
        values: what stands for ``{text}``, ``{entities}``, ``{known}``, ``{labels}`` and ``{language}``; what they
            hold is not looked at again.
    """
    parts = dict(template(name))
    if isinstance(own, Mapping) and isinstance(said := own.get(name), Mapping):
        parts |= said

    def filled(part: str) -> str:
        text = _SLOT.sub(lambda m: values.get(m[1], ""), parts[part]).strip()
        return text.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8

    user = filled("user") + (f"\n\n{filled('again')}" if again else "")
    shot = (("user", filled("example")), ("assistant", filled("answer"))) if parts["example"].strip() else ()
    return (("system", filled("system")), *shot, ("user", user))

"""Operators that need no key: keep, suppress, tag, mask."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping
from typing import Any

from allonym.errors import PolicyError, UnknownNameError
from allonym.labels import SCHEMES
from allonym.replace.mention import Mention, Setting, traits


@traits(keeps=True, repeats=True)
def keep(mention: Mention, setting: Setting) -> str:
    """Leaves the text as it is. Only a rule that says so keeps anything."""
    return mention.text


@traits(repeats=True, lossy=True)
def suppress(mention: Mention, setting: Setting, *, replacement: str = "") -> str:
    """Removes the text, or puts the same words for everything.

    Args:
        replacement: what stands there afterwards; where it is empty, a space that would be left over goes as well.
    """
    return replacement


def _check_tag(options: Mapping[str, Any], where: str) -> None:
    if "style" in options:
        check_style(options["style"], f"{where}.style")
    names = options.get("names")
    if names not in (None, "", *SCHEMES):
        raise UnknownNameError("scheme", names, SCHEMES, f"{where}.names")


def check_style(style: str, where: str) -> None:
    """Raise :class:`PolicyError` where a tag style holds anything in braces but ``{label}`` and ``{n}``."""
    try:
        fields = [(name, bang) for _, name, _, bang in string.Formatter().parse(style) if name is not None]
        shown = style.format(label="LABEL", n=1)
    except (ValueError, KeyError, IndexError, AttributeError):
        fields, shown = [("", None)], ""
    if any(name not in ("label", "n") or bang for name, bang in fields):
        raise PolicyError(f"{where}: only {{label}} and {{n}} may stand in braces, got {style!r}")
    if not shown.strip():
        raise PolicyError(f"{where}: a tag must not be empty; use operator 'suppress' to remove text")


@traits(repeats=True, check=_check_tag)
def tag(mention: Mention, setting: Setting, *, style: str | None = None, names: str | None = None) -> str:
    """A tag with the label and the entity's number, such as ``[PERSON_1]``.

    Args:
        style: how this label's tags are written, with ``{label}`` and ``{n}``; by default as the policy says.
        names: the scheme that names the label; by default as the policy says.
    """
    return mention.tag


@traits(repeats=True, style="{label}_{n}", check=_check_tag)
def sanitize(mention: Mention, setting: Setting, *, names: str | None = None) -> str:
    """A label and the entity's number without any brackets, ``PERSON_1``: the enumerated placeholders of P4 (NER-S).

    Args:
        names: the scheme that names the label; by default as the policy says.
    """
    return mention.tag


def _check_mask(options: Mapping[str, Any], where: str) -> None:
    char = options.get("char", "*")
    if len(char) != 1 or char.isalnum() or char.isspace() or not char.isprintable():
        raise PolicyError(f"{where}.char must be one character that is no letter, digit or space, got {char!r}")
    for name in ("keep_first", "keep_last"):
        if options.get(name, 0) < 0:
            raise PolicyError(f"{where}.{name} must be 0 or more, got {options[name]!r}")


@traits(repeats=True, lossy=True, check=_check_mask)
def mask(mention: Mention, setting: Setting, *, char: str = "*", keep_first: int = 0, keep_last: int = 0) -> str:
    """Hides letters and digits and keeps the shape: ``4111-1111`` becomes ``****-****``.

    Args:
        char: what stands for a letter or a digit.
        keep_first: letters and digits left readable at the start.
        keep_last: likewise at the end. At most half of all letters and digits stay readable; the end gives way first.
    """
    text = mention.text
    places = [i for i, c in enumerate(text) if c.isalnum()]
    if not places:
        return "".join(c if c.isspace() else char for c in text)
    room = len(places) // 2
    first = min(keep_first, room)
    last = min(keep_last, room - first)
    hidden = set(places[first : len(places) - last])
    # What belongs to a letter (marks, joiners) tells the letter, so it goes too.
    return "".join(
        char if i in hidden else c
        for i, c in enumerate(text)
        if c.isascii() or i in hidden or unicodedata.category(c)[0] not in "MC"
    )

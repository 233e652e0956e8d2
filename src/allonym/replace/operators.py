"""Operators that need no key: keep, suppress, tag, sanitize, mask."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from allonym.errors import PolicyError, UnknownNameError
from allonym.labels import SCHEMES
from allonym.replace.mention import Mention, Setting, read_template, traits
from allonym.text.placeholders import Grammar


@traits(keeps=True, repeats=True)
def keep(mention: Mention, setting: Setting) -> str:
    """Leave the text as it is. Nothing is kept unless a rule says so."""
    return mention.text


def _declare_suppress_grammar(options: Mapping[str, Any]) -> Grammar:
    replacement = str(options.get("replacement", "")).strip()
    return Grammar((replacement.replace("{", "{{").replace("}", "}}"),) if replacement else ())


@traits(repeats=True, lossy=True, grammar=_declare_suppress_grammar)
def suppress(mention: Mention, setting: Setting, *, replacement: str = "") -> str:
    """Remove the text, or put the same words in place of every mention.

    Args:
        replacement: the words; where it is empty, a space that would be left over goes as well.
    """
    return replacement


def _check_tag(options: Mapping[str, Any], where: str) -> None:
    if "style" in options:
        check_style(options["style"], f"{where}.style")
    names = options.get("names")
    if names not in (None, "", *SCHEMES):
        raise UnknownNameError("scheme", names, SCHEMES, f"{where}.names")


def check_style(style: str, where: str) -> None:
    """Raise :class:`PolicyError` where a tag style has any other field than ``{label}`` and ``{n}``, or is empty."""
    fields, tag = read_template(style, label="LABEL", n=1)
    if not {"label", "n"}.issuperset(fields):
        raise PolicyError(f"{where}: only {{label}} and {{n}} may stand in braces, got {style!r}")
    if not tag.strip():
        raise PolicyError(f"{where}: a tag must not be empty; use operator 'suppress' to remove text")


def _declare_tag_grammar(options: Mapping[str, Any]) -> Grammar:
    style = options.get("style")
    return Grammar((style,) if style else ("[{label}_{n}]", "[{label} {n}]", "[{label}]", "<{label} {n}>"))


@traits(repeats=True, check=_check_tag, grammar=_declare_tag_grammar)
def tag(mention: Mention, setting: Setting, *, style: str | None = None, names: str | None = None) -> str:
    """Write a tag with the label and the entity's number, such as ``[PERSON_1]``.

    Args:
        style: form of this label's tags, with ``{label}`` and ``{n}``; by default the policy's.
        names: scheme whose name for the label is written; by default the policy's.
    """
    return mention.tag


@traits(repeats=True, style="{label}_{n}", check=_check_tag, grammar=lambda options: Grammar(("{label}_{n}",)))
def sanitize(mention: Mention, setting: Setting, *, names: str | None = None) -> str:
    """Write the label and the entity's number without brackets, ``PERSON_1``: the placeholders of P4 (NER-S).

    Args:
        names: scheme whose name for the label is written; by default the policy's.
    """
    return mention.tag


def _check_mask(options: Mapping[str, Any], where: str) -> None:
    char = options.get("char", "*")
    if len(char) != 1 or char.isalnum() or char.isspace() or not char.isprintable():
        raise PolicyError(f"{where}.char must be one character that is no letter, digit or space, got {char!r}")
    for name in ("keep_first", "keep_last"):
        if options.get(name, 0) < 0:
            raise PolicyError(f"{where}.{name} must be 0 or more, got {options[name]!r}")


def _declare_mask_grammar(options: Mapping[str, Any]) -> Grammar:
    return Grammar(signs=options.get("char", "*"))


@traits(repeats=True, lossy=True, check=_check_mask, grammar=_declare_mask_grammar)
def mask(mention: Mention, setting: Setting, *, char: str = "*", keep_first: int = 0, keep_last: int = 0) -> str:
    """Cover letters and digits and keep the shape: ``4111-1111`` becomes ``****-****``.

    Args:
        char: the sign that covers a letter or a digit.
        keep_first: letters and digits left readable at the start.
        keep_last: the same at the end. At most half of all letters and digits stay readable; the end gives way first.
    """
    text = mention.text
    places = [i for i, c in enumerate(text) if c.isalnum()]
    if not places:
        return "".join(c if c.isspace() else char for c in text)
    most = len(places) // 2
    first = min(keep_first, most)
    last = min(keep_last, most - first)
    covered = set(places[first : len(places) - last])
    # Marks and joiners that belong to a letter would tell the letter, so they go too.
    return "".join(
        char if i in covered else c
        for i, c in enumerate(text)
        if c.isascii() or i in covered or unicodedata.category(c)[0] not in "MC"
    )

"""Generalising what could not be exchanged: ``a bank`` for a bank's name, ``a city`` for a city's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from allonym.errors import UsageError
from allonym.kb import KnowledgeBase
from allonym.replace.context import core, with_article
from allonym.swap.corpus import Value
from allonym.swap.forms import family_of, place_of
from allonym.swap.recoding import Recoding, recoding


@cache
def _table(name: str) -> Mapping[str, str]:
    table: Mapping[str, Mapping[str, str]] = tomllib.loads(
        files("allonym.swap").joinpath("coarser.toml").read_text(encoding="utf-8")
    )
    return table[name]


class Coarser:
    """Says what an entity is, by a user's table of classes, else by the knowledge base, else by its category.

    Args:
        recode: the user's, whose classes are taken as they are written; None: the knowledge base alone.
    """

    def __init__(self, recode: Recoding | None = None) -> None:
        if recode is not None and not isinstance(recode, Recoding):
            raise UsageError(f"recode must be a Recoding, got {type(recode).__name__}")
        self._own = recode
        self._known: Recoding | None = None

    def noun(self, category: str, key: str) -> str:
        """A noun such as ``bank`` for an entity; empty for categories that have none."""
        if self._own is not None and (said := self._own(category, key)) != key:
            return said
        if category not in _table("categories"):
            return ""
        if self._known is None:
            self._known = recoding(knowledge=KnowledgeBase.open())
        said = self._known(category, key)
        return _table("classes").get(said, said) if said != key else _table("categories")[category]

    def fitted(self, text: str, value: Value) -> list[tuple[int, int, str]]:
        """Per mention (start, end, replacement), as :func:`allonym.swap.forms.fitted`; empty where there is no noun."""
        noun = self.noun(value.category, value.key)
        out = []
        for span in value.spans if noun else ():
            a, b = core(text, span.start, span.end, family_of(span.label, value.category))
            place = place_of(text, a)
            inside = text[a:b].split(" ", 1)[0].lower() in ("the", "our", "its", "their", "your", "my", "this", "that")
            if inside and " " in text[a:b]:
                new = f"{text[a:b].split(' ', 1)[0]} {noun}"
            elif place == "determined":
                new = noun
            else:
                new = f"{with_article('a', noun) or 'a'} {noun}"
            out.append((a, b, new[:1].upper() + new[1:] if place == "start" else new))
        return out

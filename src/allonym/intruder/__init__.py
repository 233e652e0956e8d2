"""Intruders: who is a text from? Judges of what anonymised texts still give away, all behind one protocol.

An intruder learns from texts whose classes (companies, persons, any labels) are known, and ranks the classes for
others: offline by linear models on entities or on all words (:mod:`.offline`), or by a language model
(:mod:`.language_model`).
:func:`study` lets one judge texts before and after anonymisation; it never learns from what it judges.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

from allonym.errors import UsageError
from allonym.intruder.protocol import TOLD, Intruder, Item, Judge, Ranking, Target
from allonym.intruder.study import Judged, Study, study
from allonym.registry import Registry

__all__ = [
    "TOLD",
    "Intruder",
    "Item",
    "Judge",
    "Judged",
    "Ranking",
    "Study",
    "Target",
    "intruders",
    "open_intruder",
    "study",
]

intruders = Registry(
    "intruder",
    {
        "entities": "allonym.intruder.offline:Entities",
        "words": "allonym.intruder.offline:Words",
        "linkage": "allonym.intruder.linkage:Linkage",
        "llm": "allonym.intruder.language_model:LanguageModel",
    },
)
"""Factories ``(**options) -> Intruder``."""


def open_intruder(name: str, **options: object) -> Intruder:
    """An intruder by name.

    Args:
        name: ``entities``, ``words``, ``linkage``, ``llm``, or what another package registered.
        options: of the intruder; see :mod:`.offline`, :mod:`.linkage` and :mod:`.language_model`. None: the default.

    Raises:
        UnknownNameError: there is no such intruder.
        UsageError: it does not take such options, or an endpoint is not named.
    """
    factory = cast(Callable[..., Intruder], intruders.get(name, "intruder"))
    said = {key: value for key, value in options.items() if value is not None}
    known = inspect.signature(factory).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()) and (wrong := sorted(set(said) - set(known))):
        raise UsageError(f"intruder {name!r} takes {', '.join(known) or 'no option'}; got {', '.join(wrong)}")
    return factory(**said)

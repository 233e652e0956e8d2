"""Intruders: who is a text about? They measure what anonymised texts still give away, all behind one protocol.

An intruder learns from texts whose classes (companies, persons, any labels) are known, and ranks the classes for
others: offline with linear models on entities or on all words (:mod:`.offline`), or with a language model
(:mod:`.language_model`). :func:`study` lets an intruder guess before and after anonymisation; it never learns from the
texts that it judges. :func:`measure_panel` asks intruders who know the tool better and better.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import cast

from allonym.errors import UsageError
from allonym.intruder.before_after import Judged, Study, study
from allonym.intruder.panel import Panel, PanelRow, measure_panel
from allonym.intruder.protocol import TOLD, Intruder, Item, Judge, Ranking, Target
from allonym.registry import Registry

__all__ = [
    "TOLD",
    "Intruder",
    "Item",
    "Judge",
    "Judged",
    "Panel",
    "PanelRow",
    "Ranking",
    "Study",
    "Target",
    "intruders",
    "measure_panel",
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
    """Open an intruder by name.

    Args:
        name: ``entities``, ``words``, ``linkage``, ``llm``, or a name that another package registered.
        options: of the intruder; see :mod:`.offline`, :mod:`.linkage` and :mod:`.language_model`. None: the default.

    Raises:
        UnknownNameError: there is no such intruder.
        UsageError: it does not take such options, or no endpoint is named.
    """
    factory = cast(Callable[..., Intruder], intruders.get(name, "intruder"))
    options = {key: value for key, value in options.items() if value is not None}
    parameters = inspect.signature(factory).parameters
    wrong = sorted(set(options) - set(parameters))
    if wrong and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise UsageError(f"intruder {name!r} takes {', '.join(parameters) or 'no option'}; got {', '.join(wrong)}")
    return factory(**options)

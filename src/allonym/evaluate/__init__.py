"""Measures of what anonymised texts still give away, and of what they are still good for (P2, P3, P4).

Each measure is a function of (original, anonymised[, gold | labels | background]), texts in the same order, and returns
estimates with intervals. Needs the extra ``evaluate``.
"""

from __future__ import annotations

from importlib import import_module

from allonym.errors import MissingExtra

_HOMES: dict[str, tuple[str, ...]] = {}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_NEEDED = ("scipy", "sklearn", "jinja2", "rouge_score", "wordfreq")

__all__: list[str] = []


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allonym.evaluate' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"allonym.evaluate.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _NEEDED:
            raise MissingExtra("measuring", "evaluate") from None
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""What is remembered about texts, so that the steps of a document need not find it out again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

More = ParamSpec("More")
Result = TypeVar("Result")
LONG = 1 << 16
"""Characters from which on a text is long. A run reads such a text alone, and shorter ones in batches."""
_LONG_TEXTS = 2  # a document's text, and what is read of it


def remember_texts(
    most: int,
) -> Callable[[Callable[Concatenate[str, More], Result]], Callable[Concatenate[str, More], Result]]:
    """Return a decorator that remembers what a function of a text returned for the last ``most`` texts.

    Of long texts it remembers the last two, so that memory does not grow with the number of documents. The other
    arguments must be hashable.
    """

    def decorate(function: Callable[Concatenate[str, More], Result]) -> Callable[Concatenate[str, More], Result]:
        short, long = lru_cache(maxsize=most)(function), lru_cache(maxsize=_LONG_TEXTS)(function)

        @wraps(function)
        def recall(text: str, /, *more: More.args, **options: More.kwargs) -> Result:
            return (short if len(text) < LONG else long)(text, *more, **options)  # type: ignore[arg-type]

        return recall

    return decorate

"""Checks and progress of measures that take texts before and after anonymisation, in the same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from allonym.errors import DataError

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Advance = Callable[[int, int], None]
"""Called with the steps that are done, and with those in all."""


def check_lengths(
    original: Sequence[str], anonymised: Sequence[str], *beside: Sequence[object] | None, least: int = 1
) -> int:
    """Check that columns have the same length, and return it.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        beside: further columns with a value for each text, such as labels; None: there is no such column.
        least: least number of pairs.

    Raises:
        DataError: unequal lengths, or fewer than ``least`` pairs.
    """
    n = len(original)
    if len(anonymised) != n:
        raise DataError(f"as many anonymised texts as original ones are required; got {n} and {len(anonymised)}")
    for column in beside:
        if column is not None and len(column) != n:
            raise DataError(f"one value for each text is required; got {len(column)} for {n} texts")
    if n < least:
        raise DataError(f"{least} text{'s' * (least > 1)} at least required, got {n}")
    return n


def iterate_with_progress(items: Iterable[T], advance: Advance | None, total: int) -> Iterator[T]:
    """Yield the items, and call ``advance`` with the number of those that are done and with the total after each."""
    for number, item in enumerate(items, 1):
        yield item
        if advance is not None:
            advance(number, total)


def shift_progress(advance: Advance | None, before: int, total: int) -> Advance | None:
    """Return a function that reports the steps of a part, of which ``before`` steps are done, as those of the whole."""
    return None if advance is None else lambda done, _: advance(before + done, total)


def group_items(items: Iterable[T], get_key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items of each key, keys and items in the order of their first appearance."""
    out: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        out[get_key(item)].append(item)
    return dict(out)


@contextmanager
def prefix_data_errors(where: str) -> Iterator[None]:
    """A context in which the message of every :class:`DataError` begins with ``where``; empty: as it is."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}" if where else str(error)) from None

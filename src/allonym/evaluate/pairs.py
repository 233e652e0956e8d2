"""Texts before and after anonymisation, in the same order: what most measures take."""

from __future__ import annotations

from collections.abc import Sequence

from allonym.errors import DataError


def checked(original: Sequence[str], anonymised: Sequence[str], *beside: Sequence[object], least: int = 1) -> int:
    """How many pairs there are.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        beside: what else goes with each of them, such as labels.
        least: how many there must be.

    Raises:
        DataError: unequal lengths, or fewer than ``least`` pairs.
    """
    n = len(original)
    if len(anonymised) != n:
        raise DataError(f"as many anonymised texts as original ones are required; got {n} and {len(anonymised)}")
    for column in beside:
        if len(column) != n:
            raise DataError(f"one value for each text is required; got {len(column)} for {n} texts")
    if n < least:
        raise DataError(f"{least} text{'s' * (least > 1)} at least required, got {n}")
    return n

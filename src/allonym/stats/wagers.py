"""What a random sample of documents proves about the mean loss of all: bounds that hold with a chosen probability.

A loss lies between 0 and 1, for example the share of a document's entities that were missed. Against the hypothesis
that the mean loss of all is the limit or more, a gambler bets on small losses; a fair game multiplies the stake by
20 with a probability of at most 1 in 20. So a capital of 20 refutes the hypothesis with 95 % confidence (Waudby-Smith
and Ramdas 2023, doi:10.1093/jrsssb/qkad009). It holds for any distribution and any number of documents, and may be
looked at after each document (Ville 1939). The unit is the document: mentions in one document are not independent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allonym.errors import UsageError

_BETS = ((1.0, 0.7), (0.8, 0.06), (0.6, 0.06), (0.4, 0.06), (0.2, 0.06), (0.1, 0.06))
"""Shares of the largest bet, and of the stake on each. The largest needs the fewest documents where nothing is lost."""
_SHARES, _STAKES = (np.array(column) for column in zip(*_BETS, strict=True))
_LEAST_MEAN = 1e-12
_MOST = 10_000_000  # documents


def measure_capital(losses: Any, limit: float, population: int | None = None) -> Any:
    """Return the logarithm of the capital won against a mean loss of ``limit`` or more.

    Args:
        losses: ``(documents, ...)``, 0 to 1, in the random order in which the documents were drawn.
        limit: over 0 and below 1.
        population: number of documents from which these were drawn without replacement; None: any number.

    Returns:
        Array of the losses' further axes; infinite where nothing is left to chance.

    Raises:
        UsageError: there are more documents than the population has, or a value is out of range.
    """
    values = np.asarray(losses, float)
    n = len(values)
    if not 0 < limit < 1 or (n and not (values.min() >= 0 and values.max() <= 1)):
        raise UsageError("losses from 0 to 1 and a limit between 0 and 1 are required")
    if population is not None and population < n:
        raise UsageError(f"{n} documents cannot be drawn from {population}")
    if population is None:
        mean = np.full(values.shape, limit)
    else:
        before = np.cumsum(values, axis=0) - values
        drawn_before = np.arange(n).reshape(-1, *(1,) * (values.ndim - 1))
        mean = (population * limit - before) / (population - drawn_before)
    is_certain, is_refuted = (mean <= _LEAST_MEAN).any(axis=0), (mean >= 1 - _LEAST_MEAN).any(axis=0)
    if population is not None and n:
        left = population * limit - values.sum(axis=0)  # what those not yet drawn may lose at least, if the limit fails
        is_certain |= left < -_LEAST_MEAN
        is_refuted |= left >= population - n - _LEAST_MEAN
    mean = np.clip(mean, _LEAST_MEAN, 1 - _LEAST_MEAN)
    with np.errstate(divide="ignore"):
        wins = np.log1p(-_SHARES * ((values - mean) / (1 - mean))[..., None])
    total = np.logaddexp.reduce(wins.sum(axis=0) + np.log(_STAKES), axis=-1)
    return np.where(is_certain, -np.inf, np.where(is_refuted, np.inf, total))


def bound_mean(losses: Any, confidence: float, population: int | None = None) -> float:
    """Return what the mean loss of all documents lies under, with a confidence over 0 and below 1; 1: nothing is known.

    Args:
        losses, population: of :func:`measure_capital`, of one axis.

    >>> round(bound_mean([0.0] * 60, 0.95), 3)
    0.053
    """
    needed = -math.log1p(-confidence)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if measure_capital(losses, middle, population) >= needed else (middle, high)
    return high


def count_needed_documents(losses: Any, limit: float, confidence: float, population: int | None = None) -> int | None:
    """Estimate how many documents would prove a limit if further ones lost as those seen do; None: no number would.

    Args:
        losses, limit, confidence, population: of :func:`bound_mean` and :func:`measure_capital`; at least one loss.

    >>> count_needed_documents([0.0], 0.01, 0.95)
    325
    """
    values = np.asarray(losses, float)
    needed = -math.log1p(-confidence)
    with np.errstate(divide="ignore"):
        growth = np.log1p(-_SHARES * ((values - limit) / (1 - limit))[:, None]).mean(axis=0)

    def is_enough(count: int) -> bool:
        if population is not None:
            return bool(measure_capital(np.resize(values, count), limit, population) >= needed)
        return bool(np.logaddexp.reduce(np.log(_STAKES) + count * growth) >= needed)

    low, high = 0, _MOST if population is None else population
    if not is_enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high

"""Bootstrap of statistics that are computed from sums over units: many numbers from one set of draws.

The draws are those of :func:`allonym.stats.samples.bootstrap` with the same seed, so the intervals are the same; but
the units are drawn once, and tables of counts are summed instead of calling a statistic for each draw.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allonym.stats import Estimate, none
from allonym.stats.samples import estimate_with_percentiles
from allonym.stats.samples import share as wilson

__all__ = ["Draws"]


class Draws:
    """Draws of units with replacement.

    Args:
        n: units that are independent of each other, mostly documents.
        draws: number of draws; 0: no intervals.
        seed: of the draws.
        level: of the intervals, between 0 and 1.
    """

    def __init__(self, n: int, *, draws: int = 1000, seed: int = 0, level: float = 0.95) -> None:
        self.n = n
        self.level = level
        rng = np.random.default_rng(seed)
        dtype = np.uint8 if n < 200 else np.uint16 if n < 60000 else np.uint32
        weights = np.zeros((draws if n > 1 else 0, n), dtype)
        for row in weights:
            row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        self._weights = weights

    def sums(self, counts: Any) -> Any:
        """Sum counts over all units, and below that over each draw: ``(n, ...)`` to ``(1 + draws, ...)``."""
        table = np.asarray(counts, float)
        flat = table.reshape(self.n, math.prod(table.shape[1:]))
        sums = [flat.sum(axis=0, keepdims=True)]
        sums += [self._weights[i : i + 64].astype(float) @ flat for i in range(0, len(self._weights), 64)]
        return np.concatenate(sums).reshape(1 + len(self._weights), *table.shape[1:])

    def estimate(self, values: Any, n: int, reason: str = "not defined", *, share: bool = False) -> Estimate:
        """Return a statistic of :meth:`sums` as an estimate with the percentile interval.

        Args:
            values: of all units and of each draw, ``(1 + draws,)``; NaN where it is not defined.
            n: observations that the estimate shows; mostly more than there are units.
            reason: why there is no value, where there is none.
            share: whether it is a share of ``n``. Where it is 0 or 1, no draw can differ; then Wilson's interval is
                used, as if the observations were independent.
        """
        value, drawn = float(values[0]), np.asarray(values[1:], float)
        if np.isnan(value):
            return none(reason, n)
        if self.n == 1:
            return Estimate(value, value, value, n, "one document, so no interval")
        if not len(drawn):
            return Estimate.exact(value, n)
        defined = drawn[~np.isnan(drawn)]
        if share and value in (0.0, 1.0) and len(defined) and defined.min() == defined.max():
            return wilson(round(value) * n, n, self.level)
        return estimate_with_percentiles(value, drawn, n, self.level, f"bootstrap over {self.n:,} documents")

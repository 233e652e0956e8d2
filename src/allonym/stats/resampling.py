"""Bootstrap of anything that is computed from sums over units: many figures from one set of draws.

The draws are those of :func:`allonym.stats.samples.bootstrap` with the same seed, so the intervals are the same; but
each draw is taken once, and what is summed over it is a table of counts instead of a call.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allonym.stats import Estimate, none
from allonym.stats.samples import share as wilson

__all__ = ["Draws"]


class Draws:
    """Units drawn again with replacement.

    Args:
        n: units: what is independent of each other, mostly documents.
        draws: how often they are drawn; 0: no intervals.
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
        """The sum over all units, and below it that of each draw: ``(n, ...)`` to ``(1 + draws, ...)``."""
        table = np.asarray(counts, float)
        flat = table.reshape(self.n, math.prod(table.shape[1:]))
        out = np.empty((1 + len(self._weights), flat.shape[1]))
        out[0] = flat.sum(axis=0)
        for at in range(0, len(self._weights), 64):
            out[1 + at : 65 + at] = self._weights[at : at + 64].astype(float) @ flat
        return out.reshape(len(out), *table.shape[1:])

    def estimate(self, values: Any, n: int, reason: str = "not defined", *, share: bool = False) -> Estimate:
        """What was computed of :meth:`sums`, as an estimate with the percentile interval.

        Args:
            values: of all units and of each draw, ``(1 + draws,)``; NaN where it is not defined.
            n: observations to tell; mostly more than there are units.
            reason: why there is no value, where there is none.
            share: it is a share of ``n``. Where all or nothing of them is hit no draw can differ, so Wilson's interval
                stands in, as if they were independent.
        """
        value, found = float(values[0]), np.asarray(values[1:], float)
        if np.isnan(value):
            return none(reason, n)
        if self.n == 1:
            return Estimate(value, value, value, n, "one document, so no interval")
        if not len(found):
            return Estimate.exact(value, n)
        drawn = len(found)
        found = found[~np.isnan(found)]
        if not len(found):
            return Estimate(value, value, value, n, "no draw has a value")
        if share and value in (0.0, 1.0) and found.min() == found.max():
            return wilson(round(value) * n, n, self.level)
        low, high = np.quantile(found, [0.5 - self.level / 2, 0.5 + self.level / 2])
        lost = f", {drawn - len(found)} of {drawn} draws without a value" if len(found) < drawn else ""
        method = f"bootstrap over {self.n:,} documents, {self.level:.0%}{lost}"
        return Estimate(value, min(value, float(low)), max(value, float(high)), n, method)

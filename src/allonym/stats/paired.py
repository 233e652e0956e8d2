"""McNemar's test: did a change make right answers wrong more often than wrong answers right?

McNemar 1947, doi:10.1007/BF02295996; with continuity correction Edwards 1948, doi:10.1007/BF02289261.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import bdtr

from allonym.errors import UsageError

__all__ = ["McNemar", "mcnemar"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tests of answers to the same questions before and after a change.

    Attributes:
        statistic: (b - c)^2 / (b + c), chi squared with one degree of freedom; 0 where nothing changed.
        corrected: the same with continuity correction, (|b - c| - 1)^2 / (b + c).
        asymptotic, continuity: their p values.
        exact: the p value of the two-sided binomial test, b of b + c at one half. Values below 1e-308 are 0.
    """

    statistic: float
    corrected: float
    asymptotic: float
    continuity: float
    exact: float


def mcnemar(table: tuple[int, int, int, int]) -> McNemar:
    """Compare paired right and wrong answers.

    Args:
        table: numbers of answers that are right before and after, before only (b), after only (c), and never.

    Raises:
        UsageError: not four numbers of 0 or above.
    """
    if len(table) != 4 or any(x < 0 for x in table):
        raise UsageError(f"mcnemar: four counts of 0 or above are required, got {tuple(table)}")
    _, b, c, _ = table
    if not b + c:
        return McNemar(0.0, 0.0, 1.0, 1.0, 1.0)
    statistic = (b - c) ** 2 / (b + c)
    corrected = max(abs(b - c) - 1, 0) ** 2 / (b + c)
    exact = min(1.0, 2 * float(bdtr(float(min(b, c)), b + c, 0.5)))
    asymptotic, continuity = map(_compute_chi_squared_tail, (statistic, corrected))
    return McNemar(statistic, corrected, asymptotic, continuity, exact)


def _compute_chi_squared_tail(statistic: float) -> float:
    """Probability that chi squared with one degree of freedom exceeds the statistic."""
    return math.erfc(math.sqrt(statistic / 2))

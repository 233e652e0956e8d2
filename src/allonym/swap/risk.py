"""How likely a unique chunk is unique in the population too, and what a swap takes away of that.

P1 (arXiv 2505.21128) section 2.4.3, equations (2.15) and (2.16). n is that of the fitted table throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from allonym.errors import DataError, UsageError
from allonym.stats import Estimate
from allonym.stats.partition import Partition, fit_partition, log_stay, log_uniques

__all__ = ["RankStability", "Risk", "assess", "rank_stability"]

_NONE = "no sample uniques: nothing to protect"


@dataclass(frozen=True, slots=True)
class Risk:
    """The risk of one table in a population of a given size.

    Attributes:
        fit: the Ewens-Pitman fit of the table.
        population: N.
        p: (2.15), the share of the sample uniques that are unique in the population, E[S_1] n / (N s_1), clipped to
            [0, 1]; NaN where there is no sample unique.
        bounded: p*, the probability that a sample unique is unique in the population: (2.15) with s_1 replaced by its
            expectation, so that it never leaves (0, 1].
        uniques: E[S_1], expected uniques of the population.
        raw: p before it was clipped.
    """

    fit: Partition
    population: float
    p: Estimate
    bounded: Estimate
    uniques: Estimate
    raw: float

    @property
    def clipped(self) -> bool:
        """Whether (2.15) gave more than 1: an impossible share, because the fit and the table disagree."""
        return self.raw > 1 + 1e-9  # not by rounding

    @property
    def flags(self) -> tuple[str, ...]:
        """Remarks for a report."""
        found = []
        if not self.fit.singles:
            found.append(_NONE)
        if self.clipped:
            found.append("p clipped")
        if not self.fit.fitted:
            found.append(f"no fit: {self.fit.status}")
        elif self.fit.status == "alpha=0":
            found.append("alpha on its boundary")
        return tuple(found)

    def after(self, m: float) -> Estimate:
        """R of (2.16) once ``m`` of the sample uniques were swapped: 1 - (m / s_1) p, in [1 - p, 1].

        Without sample uniques R is 1, and the estimate's method says so.

        Raises:
            UsageError: m below 0 or above s_1.
        """
        return self._after(m, self.p)

    def bounded_after(self, m: float) -> Estimate:
        """The same as :meth:`after` with p* in place of p."""
        return self._after(m, self.bounded)

    def remaining(self, m: float) -> Estimate:
        """Expected number of sample uniques that are unique in the population and were not swapped: p (s_1 - m).

        Raises:
            UsageError: m below 0 or above s_1.
        """
        left = self.fit.singles - self._uniques(m)
        if not self.fit.singles:
            return Estimate(0.0, 0.0, 0.0, self.fit.n, _NONE)
        return Estimate(left * self.p.value, left * self.p.low, left * self.p.high, self.fit.n, self.p.method)

    def _after(self, m: float, p: Estimate) -> Estimate:
        swapped = self._uniques(m)
        if not self.fit.singles:
            return Estimate(1.0, 1.0, 1.0, self.fit.n, _NONE)
        share = swapped / self.fit.singles
        return Estimate(1 - share * p.value, 1 - share * p.high, 1 - share * p.low, self.fit.n, p.method)

    def _uniques(self, m: float) -> float:
        if not 0 <= m <= self.fit.singles:
            raise UsageError(f"m: must lie between 0 and the table's {self.fit.singles} sample uniques, got {m:g}")
        return m


def assess(table: Mapping[int, int] | Partition, population: float, *, asymptotic: bool = False) -> Risk:
    """The risk of a table, given its frequencies ``{j: s_j}`` or their fit.

    Args:
        table: frequencies; or a fit, which saves fitting again for every population size.
        population: N, how many chunks the table could have been drawn from; at least n.
        asymptotic: estimate E[S_1] by (2.14), as P1 does, in place of (2.13), whose limit for large N it is.

    Raises:
        UsageError: N below n.
        DataError: the table holds fewer than two chunks.
    """
    fit = table if isinstance(table, Partition) else fit_partition(table)
    if fit.status == "empty":
        raise DataError(f"the table holds {fit.n} chunks; at least 2 with an entity of its categories are required")
    if not (population >= fit.n and math.isfinite(population)):
        raise UsageError(f"population: must be finite and at least the table's {fit.n} chunks, got {population:g}")
    lone = fit.status == "all-singletons"
    uniques = fit.estimate(
        log_uniques(population, asymptotic=asymptotic), degenerate=float(population) if lone else 0.0
    )
    if not fit.singles:
        none = Estimate(math.nan, math.nan, math.nan, fit.n, _NONE)
        return Risk(fit, float(population), none, none, uniques, math.nan)
    scale = fit.n / population / fit.singles
    p = Estimate(scale * uniques.value, scale * uniques.low, scale * uniques.high, fit.n, uniques.method)
    stay = fit.estimate(log_stay(fit.n, population), degenerate=1.0)
    return Risk(fit, float(population), _clip(p), _clip(stay), uniques, p.value)


@dataclass(frozen=True, slots=True)
class RankStability:
    """Whether the order of several tables by risk holds over a range of population sizes.

    Attributes:
        populations: sizes N, ascending.
        orders: per size, the tables' categories, the highest value first.
        settled: per size, the share of pairs of tables whose difference has a 95 % interval without 0.
        tau: per size, Kendall's tau between its order and that of the smallest size.
        agree: share of pairs that stand in the same order at every size.
    """

    populations: tuple[float, ...]
    orders: tuple[tuple[tuple[str, ...], ...], ...]
    settled: tuple[float, ...]
    tau: tuple[float, ...]
    agree: float

    @property
    def highest(self) -> tuple[tuple[str, ...], ...]:
        """The table with the highest value at each size."""
        return tuple(order[0] for order in self.orders)

    @property
    def lowest(self) -> tuple[tuple[str, ...], ...]:
        """The table with the lowest value at each size."""
        return tuple(order[-1] for order in self.orders)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it means, for a report."""
        first, last = self.populations[0], self.populations[-1]
        span = f"N = {first:g}" if first == last else f"N = {first:g} to {last:g}"
        said = []
        for word, ends in (("highest", self.highest), ("lowest", self.lowest)):
            changes = [f"{_name(ends[0])} at N = {first:g}"]
            for before, here, size in zip(ends, ends[1:], self.populations[1:], strict=False):
                if here != before:
                    changes.append(f"{_name(here)} from N = {size:g}")
            where = f"{_name(ends[0])} at {span}" if len(changes) == 1 else ", ".join(changes)
            said.append(f"The {word} is {where}.")
        said.append(f"{_percent(self.agree)} of the pairs stand in the same order at {span}.")
        low, high = min(self.settled), max(self.settled)
        share = _percent(low) if low == high else f"{_percent(low)} to {_percent(high)}"
        said.append(f"Given the 95 % intervals, the order of {share} of the pairs is settled.")
        return tuple(said)


def rank_stability(values: Mapping[tuple[str, ...], Mapping[float, Estimate]]) -> RankStability:
    """Rank tables, by p, p*, R or any other estimate, at each population size.

    Whether a difference is settled is judged by the interval that Zou and Donner (2008, doi:10.1002/sim.3095) recover
    from the two intervals, as if the tables were independent. They share chunks, which makes this cautious.

    Args:
        values: categories of a table to its estimates by population size, the same sizes for each. Tables with a NaN,
            which have no sample unique, are left out.

    Raises:
        UsageError: no table with a value, or other sizes for some of them.
    """
    usable = {key: row for key, row in values.items() if all(e.value == e.value for e in row.values())}
    populations = tuple(sorted({size for row in usable.values() for size in row}))
    if not populations:
        raise UsageError("rank_stability: needs at least one table with sample uniques, and one population size")
    if any(len(row) != len(populations) for row in usable.values()):
        raise UsageError("rank_stability: every table needs the same population sizes")
    keys = sorted(usable)
    pairs = list(combinations(keys, 2))
    orders, settled, signs = [], [], []
    for size in populations:
        here = {key: usable[key][size] for key in keys}
        orders.append(tuple(sorted(keys, key=lambda key: (-here[key].value, key))))
        settled.append(_share([_settled(here[a], here[b]) for a, b in pairs]))
        signs.append([_sign(here[a].value - here[b].value) for a, b in pairs])
    return RankStability(
        populations,
        tuple(orders),
        tuple(settled),
        tuple(_tau(signs[0], row) for row in signs),
        _share([len(set(column)) == 1 for column in zip(*signs, strict=True)]),
    )


def _settled(one: Estimate, other: Estimate) -> bool:
    high, low = (one, other) if one.value >= other.value else (other, one)
    return high.value - low.value > math.hypot(high.value - high.low, low.high - low.value)


def _tau(one: Sequence[int], other: Sequence[int]) -> float:
    """Kendall's tau-a from the signs of all pairs; 1 where there is no pair."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / len(one) if one else 1.0


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 1.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _clip(e: Estimate) -> Estimate:
    value, low, high = (min(1.0, max(0.0, x)) for x in (e.value, e.low, e.high))
    return Estimate(value, low, high, e.n, e.method)


def _name(categories: tuple[str, ...]) -> str:
    return " x ".join(categories)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"

"""Risk and utility of a release.

Risk: how likely a unique chunk is unique in the population too, and how much of that a swap removes. P1 (arXiv
2505.21128) section 2.4.3, equations (2.15) and (2.16). n is that of the fitted table throughout.

Utility: how much of the clusters' likelihood the swapped chunks keep, and how well a task still works. P1 section 2.5,
equations (2.17) to (2.19). Log densities are with respect to the uniform measure on the sphere: only there is the
denominator the gain over a model that knows nothing, and U the share of it that stays. A task is to predict a label of
the user's (a sector, a sentiment) with a linear classifier on the vectors of chunks, for each document by models that
never saw it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from allonym.errors import DataError, UsageError
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.partition import Partition, fit_partition, log_stay, log_uniques
from allonym.stats.samples import share
from allonym.swap.corpus import Corpus

_NONE = "no sample uniques: nothing to protect"


@dataclass(frozen=True, slots=True)
class Risk:
    """The risk of one table in a population of a given size.

    Attributes:
        fit: the Ewens-Pitman fit of the table.
        population: N.
        p: (2.15), the share of the sample uniques that are unique in the population, E[S_1] n / (N s_1), clipped to
            [0, 1]; NaN if there is no sample unique.
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
        remarks = {
            _NONE: not self.fit.singles,
            "p clipped": self.clipped,
            f"no fit: {self.fit.status}": not self.fit.fitted,
            "alpha on its boundary": self.fit.fitted and self.fit.status == "alpha=0",
        }
        return tuple(remark for remark, applies in remarks.items() if applies)

    def after(self, m: float) -> Estimate:
        """Return R of (2.16) once ``m`` of the sample uniques were swapped: 1 - (m / s_1) p, in [1 - p, 1].

        Without sample uniques R is 1, and the estimate's method says so.

        Raises:
            UsageError: m below 0 or above s_1.
        """
        return self._compute_risk_after_swaps(m, self.p)

    def bounded_after(self, m: float) -> Estimate:
        """Return the same as :meth:`after` with p* in place of p."""
        return self._compute_risk_after_swaps(m, self.bounded)

    def remaining(self, m: float) -> Estimate:
        """Return the expected number of unswapped sample uniques that are unique in the population: p (s_1 - m).

        Raises:
            UsageError: m below 0 or above s_1.
        """
        unswapped = self.fit.singles - self._check_uniques(m)
        if not self.fit.singles:
            return Estimate(0.0, 0.0, 0.0, self.fit.n, _NONE)
        return _scale_estimate(self.p, unswapped)

    def _compute_risk_after_swaps(self, m: float, p: Estimate) -> Estimate:
        swapped = self._check_uniques(m)
        if not self.fit.singles:
            return Estimate(1.0, 1.0, 1.0, self.fit.n, _NONE)
        share = swapped / self.fit.singles
        return Estimate(1 - share * p.value, 1 - share * p.high, 1 - share * p.low, self.fit.n, p.method)

    def _check_uniques(self, m: float) -> float:
        if not 0 <= m <= self.fit.singles:
            raise UsageError(f"m: must lie between 0 and the table's {self.fit.singles} sample uniques, got {m:g}")
        return m


def assess_risk(table: Mapping[int, int] | Partition, population: float, *, asymptotic: bool = False) -> Risk:
    """Return the risk of a table, given its frequencies ``{j: s_j}`` or their fit.

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
    degenerate = float(population) if fit.status == "all-singletons" else 0.0
    uniques = fit.estimate(log_uniques(population, asymptotic=asymptotic), degenerate=degenerate)
    if not fit.singles:
        none = Estimate(math.nan, math.nan, math.nan, fit.n, _NONE)
        return Risk(fit, float(population), none, none, uniques, math.nan)
    p = _scale_estimate(uniques, fit.n / population / fit.singles, fit.n)
    stay = fit.estimate(log_stay(fit.n, population), degenerate=1.0)
    return Risk(fit, float(population), _clip_estimate(p), _clip_estimate(stay), uniques, p.value)


class RankStability(Serialisable):
    """Whether the order of several tables by risk holds over a range of population sizes.

    Attributes:
        populations: sizes N, ascending.
        orders: per size, the tables' categories, the highest value first.
        settled: per size, the share of pairs of tables whose difference has a 95 % interval without 0.
        tau: per size, Kendall's tau between its order and that of the smallest size.
        agree: share of pairs that have the same order at every size.
    """

    populations: tuple[float, ...]
    orders: tuple[tuple[tuple[str, ...], ...], ...]
    settled: tuple[float, ...]
    tau: tuple[float, ...]
    agree: float
    KEYS: ClassVar = ("populations", "orders", "settled", "tau", "agree", "sentences")

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
        """The result in words, for a report."""
        first, last = self.populations[0], self.populations[-1]
        span = f"N = {first:g}" if first == last else f"N = {first:g} to {last:g}"
        out = []
        for word, ends in (("highest", self.highest), ("lowest", self.lowest)):
            names = [" x ".join(categories) for categories in ends]
            changes = [f"{names[0]} at N = {first:g}"]
            for before, name, size in zip(names, names[1:], self.populations[1:], strict=False):
                if name != before:
                    changes.append(f"{name} from N = {size:g}")
            out.append(f"The {word} is {f'{names[0]} at {span}' if len(changes) == 1 else ', '.join(changes)}.")
        out.append(f"{100 * self.agree:.0f} % of the pairs stand in the same order at {span}.")
        low, high = (f"{100 * share:.0f} %" for share in (min(self.settled), max(self.settled)))
        share = low if min(self.settled) == max(self.settled) else f"{low} to {high}"
        out.append(f"Given the 95 % intervals, the order of {share} of the pairs is settled.")
        return tuple(out)


def compute_rank_stability(values: Mapping[tuple[str, ...], Mapping[float, Estimate]]) -> RankStability:
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
        estimates = {key: usable[key][size] for key in keys}
        orders.append(tuple(sorted(keys, key=lambda key: (-estimates[key].value, key))))
        settled.append(_average_or_one([_is_difference_certain(estimates[a], estimates[b]) for a, b in pairs]))
        gaps = [estimates[a].value - estimates[b].value for a, b in pairs]
        signs.append([(gap > 0) - (gap < 0) for gap in gaps])
    # Kendall's tau-a from the signs of all pairs
    tau = tuple(_average_or_one([a * b for a, b in zip(signs[0], row, strict=True)]) for row in signs)
    agree = _average_or_one([len(set(column)) == 1 for column in zip(*signs, strict=True)])
    return RankStability(populations, tuple(orders), tuple(settled), tau, agree)


def _is_difference_certain(a: Estimate, b: Estimate) -> bool:
    high, low = (a, b) if a.value >= b.value else (b, a)
    return high.value - low.value > math.hypot(high.value - high.low, low.high - low.value)


def _average_or_one(values: Sequence[int]) -> float:
    # 1 where there is no pair
    return sum(values) / len(values) if values else 1.0


def _scale_estimate(e: Estimate, factor: float, n: int | None = None) -> Estimate:
    return Estimate(factor * e.value, factor * e.low, factor * e.high, e.n if n is None else n, e.method)


def _clip_estimate(e: Estimate) -> Estimate:
    value, low, high = (min(1.0, max(0.0, x)) for x in (e.value, e.low, e.high))
    return Estimate(value, low, high, e.n, e.method)


STAND_IN = "U = exp(D / (n d))"
"""In the flag of a utility that is not the ratio of (2.18)."""
FOLDS = 5

_Values = Sequence[float] | Any  # or a one-dimensional array


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility of one release.

    Attributes:
        value: U of (2.19), or exp(D / (n d)) where the ratio would mislead; see ``flags``. Above 1 if the swapped
            chunks fit their clusters better than before.
        distance: D of (2.17), nats.
        changed: swapped chunks.
        kept: exp(D / (n d)), defined for every l: the likelihood that stays, as a mean over chunks and dimensions.
        misleading: whether ``value`` is ``kept`` because the ratio would mislead.
        flags: remarks for a report.
    """

    value: float
    distance: float
    changed: int
    kept: float = 1.0
    misleading: bool = False
    flags: tuple[str, ...] = ()


def compute_distance_utility(distance: float, n: int, d: int) -> float:
    """Return exp(D / (n d)), which stands in for U where the ratio of (2.18) misleads."""
    return math.exp(min(distance / (n * d), 700.0))


def compute_utility(before: _Values, after: _Values, total: float, *, n: int, d: int) -> Utility:
    """Return U and D.

    U = 1 + D / l holds only where l, the log-likelihood of all chunks given their clusters, is above 0 and above
    |D|. Elsewhere its sign or size means nothing, and U = exp(D / (n d)) stands in for it, which is monotone in D and
    1 at D = 0; a flag marks it. The two scales do not compare: see
    :func:`allonym.swap.release_search.unify_utility_scale`.

    Args:
        before: log density of each swapped chunk under the component of its cluster, before the swap.
        after: the same chunks after it, under the same components.
        total: l(x|l) of (2.19), the sum of such log densities before the swap over all n chunks.
        n: chunks of the corpus.
        d: dimension of the embedding.

    Raises:
        UsageError: arrays of different lengths, more swapped chunks than n, or n or d below 1.
        DataError: a log density that is not finite, as of a component that has collapsed.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if old.ndim != 1 or old.shape != new.shape:
        raise UsageError(f"utility: two vectors of one length are required, got {old.shape} and {new.shape}")
    changed = len(old)
    if n < 1 or d < 1 or changed > n:
        raise UsageError(f"utility: n and d must be at least 1 and n at least {changed}, got n = {n}, d = {d}")
    distance = float((new - old).sum())
    if not (math.isfinite(distance) and math.isfinite(total)):
        raise DataError("utility: a log density is not finite; a component of the mixture may have collapsed")
    if not changed:
        return Utility(1.0, 0.0, 0)
    flags = []
    if total <= 0:
        flags.append(f"the clusters fit no better than the uniform distribution: {STAND_IN}")
    elif abs(distance) >= total:
        flags.append(f"D exceeds the likelihood of the clusters: {STAND_IN}")
    misleading = bool(flags)
    kept_share = compute_distance_utility(distance, n, d)
    if distance > 0:
        flags.append("utility above 1")
    value = kept_share if misleading else 1 + distance / total
    return Utility(value, distance, changed, kept_share, misleading, tuple(flags))


# Tasks


class Task(Serialisable):
    """Accuracy of a task on chunks, with 95 % Wilson intervals, as if chunks of a document were independent.

    Attributes:
        label: the metadata key that is predicted; classes: its values; chunks: how many were judged.
        before: learnt from originals, judged on originals.
        learnt: learnt from released chunks, judged on originals: the value of a release as training data.
        applied: learnt from originals, judged on released chunks.
        chance: of the most frequent class.
    """

    label: str
    classes: int
    chunks: int
    before: Estimate
    learnt: Estimate
    applied: Estimate
    chance: float


def task_utility(corpus: Corpus, label: str, before: Any, after: Any) -> Task:
    """Measure how well a metadata key is predicted from chunks, before and after the exchange.

    Args:
        label: a key of the documents' metadata; documents without it are left out.
        before, after: (n, d) vectors of all chunks.

    Raises:
        DataError: fewer than two classes, or a class of which no two documents are.
    """
    values = list_metadata_values(corpus, label)
    chunks = np.array([i for i, c in enumerate(corpus.chunks) if values[c.document]], dtype=np.intp)
    documents = np.array([corpus.chunks[i].document for i in chunks])
    targets = np.array([values[document] for document in documents])
    counts = Counter(targets.tolist())
    old, new = np.asarray(before, np.float64)[chunks], np.asarray(after, np.float64)[chunks]
    right = np.zeros((3, len(chunks)), dtype=bool)
    folds = GroupKFold(min(FOLDS, len(set(documents.tolist()))))
    for train, test in folds.split(old, targets, documents):
        if len(set(targets[train].tolist())) < 2:
            right[:, test] = targets[test] == targets[train][0]
            continue
        original = LogisticRegression(C=10.0, max_iter=1000).fit(old[train], targets[train])
        released = LogisticRegression(C=10.0, max_iter=1000).fit(new[train], targets[train])
        for row, model, rows in ((0, original, old), (1, released, old), (2, original, new)):
            right[row, test] = model.predict(rows[test]) == targets[test]
    unchanged, learnt, applied = (share(int(row.sum()), len(chunks)) for row in right)
    chance = max(counts.values()) / len(chunks)
    return Task(label, len(counts), len(chunks), unchanged, learnt, applied, chance)


def list_metadata_values(corpus: Corpus, key: str) -> list[str]:
    """Return each document's value of a metadata key, empty where it has none or no chunk; quick, for an early check.

    Raises:
        DataError: as :func:`task_utility`.
    """
    used = {chunk.document for chunk in corpus.chunks}
    metadata_values = (d.meta.get(key) if i in used else None for i, d in enumerate(corpus.documents))
    values = [
        "" if value is None or isinstance(value, (list, tuple, dict)) else str(value) for value in metadata_values
    ]
    counts = Counter(v for v in values if v)
    if not counts:
        raise DataError(f"task: no document has the metadata key {key!r}")
    if len(counts) < 2:
        raise DataError(f"task: {key!r} has one value only; two are required")
    if max(counts.values()) < 2:
        raise DataError(f"task: every value of {key!r} is of one document only; nothing can be learnt for others")
    return values

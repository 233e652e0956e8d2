"""The results of a search: releases with risk and utility, and the models behind them. Plain data for reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from allonym.serial import Serialisable
from allonym.stats import Estimate


class Release(Serialisable):
    """One way to release the corpus (P1's w): which categories are exchanged, and how far.

    Estimates are means over the drawn sequences, with their standard deviation; risks have the interval of the model as
    well (delta method, 95 %).

    Attributes:
        index: its number in :attr:`Releases.releases`.
        categories: exchanged ones (P1's A_s).
        swaps: how many swaps of the sequence are made.
        changed: chunks changed (n r).
        share: chunks changed, of all (P1's r).
        uniques: sample uniques of the pre-swap marginal table that were changed (m).
        utility: U of (2.19), or its fallback; see ``flags``.
        distance: D of (2.17), nats; distance_per_chunk: D per changed chunk.
        cosine: mean cosine between a changed chunk's vectors before and after.
        risk: population size N to R of (2.16) with p; bounded: the same with p*.
        remaining: population size to the expected number of population uniques that remain, p (s1 - m).
        flags: remarks, e.g. ``utility above 1``, ``p clipped``.
        moves: entities at another place, a mean over the sequences.
        step: its place among the recorded prefixes of a sequence.
    """

    KEYS = (
        *("index", "categories", "swaps", "changed", "share", "uniques", "utility", "distance", "distance_per_chunk"),
        *("cosine", "risk", "bounded", "remaining", "flags", "moves"),
    )

    index: int
    categories: tuple[str, ...]
    swaps: int
    changed: Estimate
    share: Estimate
    uniques: Estimate
    utility: Estimate
    distance: Estimate
    distance_per_chunk: Estimate
    cosine: Estimate
    risk: Mapping[float, Estimate]
    bounded: Mapping[float, Estimate]
    remaining: Mapping[float, Estimate]
    flags: tuple[str, ...]
    moves: float
    step: int


class TableFit(Serialisable):
    """One marginal table and its Ewens-Pitman fit: a column of P1's Table 1.

    Attributes:
        categories: A_s.
        n, k: chunks counted, cells that hold any.
        singles, doubles: cells of one chunk (s_1), of two.
        alone: cells all of whose chunks have one protected value: document-level uniques.
        theta, alpha: with 95 % intervals.
        log_likelihood: of (2.10).
        status: ``interior | alpha=0 | all-singletons | one-block | empty``.
        share: s_1 / number of chunks of the corpus, as in P1's Table 1.
        p, bounded: population size to p of (2.15) and p*.
        population: population size to the expected number of population uniques, (2.13), or (2.14) if the risk is the
            paper's.
    """

    categories: tuple[str, ...]
    n: int
    k: int
    singles: int
    doubles: int
    alone: int
    theta: Estimate
    alpha: Estimate
    log_likelihood: float
    status: str
    share: float
    p: Mapping[float, Estimate]
    bounded: Mapping[float, Estimate]
    population: Mapping[float, Estimate]


class Cluster(Serialisable):
    """One component of the mixture.

    Attributes:
        size: chunks assigned to it; documents: how many documents they are from.
        weight, rho: mixture weight, concentration.
        x, y: its mean direction on the map of clusters (first two principal directions of the means).
        words: the topic of its chunks: words that stand out, from post-suppression texts, each in several documents.
        degenerate: rho at its cap.
    """

    size: int
    documents: int
    weight: float
    rho: float
    x: float
    y: float
    words: tuple[str, ...] = ()
    degenerate: bool = False


class Attack(Serialisable):
    """How well one intruder guesses changed chunks (P1 3.2.2).

    Attributes:
        intruder: its name.
        before, after: accuracy over the runs, mean and SD.
        table: chunks over all runs: (right before and after, right before only, right after only, never): P1 Table 3.
        exact, asymptotic, continuity: McNemar's p values; the asymptotic ones without and with continuity correction.
        statistic: McNemar's chi squared, without correction.
        chance: accuracy of guessing the most frequent class.
        second: accuracy of the first two guesses after the exchange; None if an intruder makes one guess only.
        told: accuracy once the intruder knows that terms were altered, or that they were exchanged between two texts.
        terms: (term, weight) that gave the class away most after the exchange. Hidden from ``repr``.
    """

    intruder: str
    before: Estimate
    after: Estimate
    table: tuple[int, int, int, int]
    exact: float
    asymptotic: float
    continuity: float
    statistic: float
    chance: float
    second: Estimate | None = None
    told: Mapping[str, Estimate] = field(default_factory=dict)
    terms: tuple[tuple[str, float], ...] = field(default=(), repr=False)


class Outcome(Serialisable):
    """One chunk of the chosen release, for review. Its texts are hidden from ``repr``.

    Attributes:
        document: index of its document; chunk: index of the chunk; cluster: its component.
        before: its text after suppression of direct identifiers; after: as released.
        marks: (start, end, category, kind) of replacements in ``after``; kind is ``swap`` or an operator's name.
        partners: chunks that its entities came from.
        cosine: between the two texts' vectors; D: the change of its log density, nats.
        guessed: intruder to (right before, right after).
    """

    document: int
    chunk: int
    cluster: int
    before: str = field(repr=False)
    after: str = field(repr=False)
    marks: tuple[tuple[int, int, str, str], ...] = field(default=(), repr=False)
    marks_before: tuple[tuple[int, int, str, str], ...] = field(default=(), repr=False)
    partners: tuple[int, ...] = ()
    cosine: float = 1.0
    distance: float = 0.0
    guessed: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)

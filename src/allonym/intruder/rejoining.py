"""Whole documents: how much of each an intruder puts under its subject, together or after putting pieces together.

Texts of a document that is released whole are taken together: their scores add up. Where pieces of documents are
released apart, the intruder has a bag of them without order and has to put those of a document together first: by
their words, characters and scores. Several ways are tried, and the one that serves the intruder best counts.

What is known and what is looked for never overlap: an intruder knows half of the documents about each subject; where
there is one document only, it knows one half of it, from its beginning to its middle or from there to its end, and
looks for the other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from allonym.intruder.linkage import FeatureReader, TfidfWeights
from allonym.stats import Estimate
from allonym.stats.samples import average, share

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_ALONE = "looks at each piece alone"
_NEIGHBOURS = (3, 8)
_GROUPS = (1, 4, 9)  # of pieces, for each document
_PULL, _STEPS = 0.8, 5  # weight of the neighbours' scores, and how far they travel


def divide_documents(subjects: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Return the unit of each text that is looked for as a whole: its document, or its half of the only one.

    A text that is alone in the only document about its subject has none, an empty string.

    Args:
        subjects: of the texts, in reading order; documents: of each.
    """
    several = Counter(subject for subject, _ in set(zip(subjects, documents, strict=True)))
    sizes = Counter(documents)
    read: Counter[str] = Counter()
    units = []
    for subject, document in zip(subjects, documents, strict=True):
        half = int(read[document] >= sizes[document] / 2)
        read[document] += 1
        is_whole = several[subject] > 1
        units.append(document if is_whole else f"{document} half {half}" if sizes[document] > 1 else "")
    return units


@dataclass(frozen=True, slots=True)
class Bag:
    """Texts of units that are looked for at once.

    Attributes:
        units: int ``(n,)``: of each text; labels: int ``(n,)``: its subject.
        pieces: int ``(n,)``: the released piece that each is a part of; None: units are released whole.
        texts: as released. Hidden from ``repr``.
    """

    units: Ids
    labels: Ids
    pieces: Ids | None
    texts: Sequence[str] = field(repr=False)

    def compute_unit_shares(self, scores: Floats, rank: int) -> Floats:
        """Return the share of each unit's texts whose subject is among the ``rank`` highest of their scores."""
        _, place = np.unique(self.units, return_inverse=True)
        hits = is_among_best(scores, self.labels, rank)
        shares: Floats = np.bincount(place, hits) / np.bincount(place)
        return shares


def is_among_best(table: Any, labels: Ids, rank: int) -> NDArray[np.bool_]:
    """Return bool ``(n,)``: whether each row's label is among its ``rank`` highest; ties go to the first class."""
    true_scores = table[np.arange(len(labels)), labels][:, None]
    earlier = np.arange(table.shape[1]) < labels[:, None]
    is_better = (table > true_scores) | ((table == true_scores) & earlier)
    hits: NDArray[np.bool_] = (is_better.sum(axis=1) < rank) & (true_scores[:, 0] > -np.inf)
    return hits


def _sum_scores(scores: Floats, groups: Ids) -> tuple[Floats, Ids]:
    """Return the sums of the scores of each group, and the group of each row."""
    names, place = np.unique(groups, return_inverse=True)
    total = np.zeros((len(names), scores.shape[1]))
    np.add.at(total, place, scores)
    return total, place


def compare_pieces(bag: Bag) -> Floats:
    """Return the similarity of the pieces of a bag by the words and characters of their texts: dense ``(p, p)``."""
    assert bag.pieces is not None
    reader = FeatureReader(tags=True)
    names, place = np.unique(bag.pieces, return_inverse=True)
    parts: list[list[str]] = [[] for _ in names]
    for k, text in zip(place.tolist(), bag.texts, strict=True):
        parts[k].append(text)
    total = np.zeros((len(names), len(names)))
    for kind in ("words", "characters"):
        counts = reader.count_features([" ".join(part) for part in parts], kind)
        rows = TfidfWeights(counts).weigh_counts(counts)
        total += (rows @ rows.T).toarray()
    np.fill_diagonal(total, 0.0)
    return total


def rejoin_pieces(bag: Bag, scores: Floats, similarity: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield ways to put pieces together, and the scores ``(n, C)`` of each text that follow.

    Args:
        scores: ``(n, C)``: how much speaks for each subject, of each text.
        similarity: of :func:`compare_pieces`.
    """
    assert bag.pieces is not None
    total, place = _sum_scores(np.maximum(scores, -1.0), bag.pieces)  # a subject that was never met has -inf
    yield _ALONE, total[place]
    count = len(total)
    if count < 3:
        return
    for most in _NEIGHBOURS:
        nearest = np.sort(similarity, axis=1)[:, -min(most, count - 1)]
        weights = np.where(similarity >= nearest[:, None], similarity, 0.0)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        pulled = total
        for _ in range(_STEPS):
            pulled = total + _PULL * (weights @ pulled)
        yield f"joins each piece with the {most} nearest", pulled[place]
    centred = total - total.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    alike = similarity + centred @ centred.T
    distance = alike.max() - (alike + alike.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree: Any = linkage(squareform(distance, checks=False), "average")
    units = len(np.unique(bag.units))
    for factor in _GROUPS:
        of_group, group = _sum_scores(total, fcluster(tree, min(count, units * factor), "maxclust"))
        yield f"joins pieces in {factor} groups for each document", of_group[group][place]


@dataclass(slots=True)
class Finding:
    """How much of each document one intruder finds.

    Attributes:
        shares: of each unit's texts, those that are put under their subject, 0 to 1.
        way: how pieces were put together; empty where documents are released whole.
    """

    shares: list[float]
    way: str = ""

    def estimate(self) -> Estimate:
        """Return the mean share: of whole documents with Wilson's interval, else with Student's within [0, 1]."""
        n = len(self.shares)
        if not self.way:
            return share(round(sum(self.shares)), n)
        e = average(self.shares)
        return Estimate(e.value, max(0.0, e.low), min(1.0, e.high), n, f"mean share of a document's texts, {e.method}")


def find_documents(bags: Sequence[Bag], scores: Sequence[Floats], similarities: Sequence[Floats], rank: int) -> Finding:
    """Return what an intruder finds in all bags, by the way of putting pieces together that serves it best.

    Args:
        scores: ``(n, C)``, of the texts of each bag; similarities: of the pieces of each, where they are released
            apart.
        rank: a text is identified if its subject is among so many guesses.
    """
    if not similarities:
        shares = []
        for bag, table in zip(bags, scores, strict=True):
            together, place = _sum_scores(table, bag.units)
            shares += bag.compute_unit_shares(together[place], rank).tolist()
        return Finding(shares)
    of_bags = [
        {way: bag.compute_unit_shares(joined, rank).tolist() for way, joined in rejoin_pieces(bag, table, similarity)}
        for bag, table, similarity in zip(bags, scores, similarities, strict=True)
    ]
    ways = dict.fromkeys(way for shares in of_bags for way in shares)  # a bag of few pieces has only the first
    findings = [Finding([x for shares in of_bags for x in shares.get(way, shares[_ALONE])], way) for way in ways]
    return max(findings, key=lambda finding: sum(finding.shares))

"""Which entity goes where: slots are paired so that each fits the other's place, the best pairs first.

Slots of one category and one cluster are dealt into blocks at random. In a block all pairs are weighed at once: how
similar the chunks are, how well the entities fit each other's place, and a random part (Gumbel) that makes every draw a
sample in proportion to exp(score). Pairs are taken from the best on, each slot once; what is left is dealt anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from allonym.swap.corpus import Slot
from allonym.swap.likeness import Likeness
from allonym.swap.validity import Rules

BLOCK = 1536
"""Slots that are weighed against each other at once."""
CANDIDATES = 48
"""Partners that are kept of each slot in a block."""


class Matcher:
    """Weighs slots against each other.

    Args:
        rules: ``weights``, ``temperature``, ``fit``, ``min_fit``, ``min_cosine`` and ``count_penalty`` count.
        vectors: (n, d) unit rows of all chunks; None: all chunks are alike.
        likeness: the fits of the corpus's entities.
        apart: (n,) codes, in all of which partners must differ.
        counts: (n,) entities of each chunk.
        generator: deals, and draws the random part.
    """

    def __init__(
        self,
        rules: Rules,
        vectors: Any,
        likeness: Likeness,
        apart: Sequence[Any],
        counts: Any,
        generator: np.random.Generator,
    ) -> None:
        self._rules = rules
        self._vectors = vectors
        self._likeness = likeness
        self._apart = apart
        self._counts = counts.astype(np.float64)
        self._generator = generator

    def pairs(self, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
        """Pairs of slots, as places in ``slots``, in the order in which they should be asked."""
        told = self._likeness.looks
        chunks = np.array([s.chunk for s in slots], np.int64)
        looks = np.array([told[s.chunk][s.value] for s in slots], np.int64)
        order = self._generator.permutation(len(slots))
        for block in np.array_split(order, max(1, -(-len(order) // BLOCK))):
            if len(block) > 1:
                for a, b in self._best(chunks[block], looks[block]):
                    yield int(block[a]), int(block[b])

    def _best(self, chunks: Any, looks: Any) -> list[tuple[int, int]]:
        """Each slot's best partners in a block, as places in it, the best pairs first."""
        rules, n = self._rules, len(chunks)
        # in float64: the order must not depend on how the machine sums
        fits = self._likeness.fits(looks, looks)
        scores = fits * rules.fit
        if self._vectors is not None:
            rows = np.asarray(self._vectors[chunks], np.float64)
            cosines = rows @ rows.T
            if rules.weights == "cosine":
                scores += cosines
            if rules.min_cosine > -1.0:
                scores[cosines < rules.min_cosine] = -np.inf
        if rules.min_fit > -math.inf:
            scores[fits < rules.min_fit] = -np.inf
        scores /= rules.temperature
        if rules.count_penalty:
            own = self._counts[chunks]
            scores -= rules.count_penalty * np.abs(own[:, None] - own[None])
        scores += self._generator.gumbel(size=(n, n))
        for code in self._apart:
            mine = code[chunks]
            scores[mine[:, None] == mine[None]] = -np.inf
        upper = np.triu(scores, 1)
        scores = upper + upper.T
        np.fill_diagonal(scores, -np.inf)
        many = min(CANDIDATES, n - 1)
        other = np.argpartition(-scores, many - 1, axis=1)[:, :many]
        first = np.repeat(np.arange(n), many)
        low, high = np.minimum(first, other.ravel()), np.maximum(first, other.ravel())
        flat = np.unique(low * n + high)
        flat = flat[np.isfinite(scores.ravel()[flat])]
        flat = flat[np.argsort(-scores.ravel()[flat], kind="stable")]
        return list(zip((flat // n).tolist(), (flat % n).tolist(), strict=True))

"""The draw of partners: pairs uniformly over all valid ones, or the partners of one chunk by weight.

Uniform pairs come by rejection. A bucket in which that misses too often goes over to exact counts: how many valid
partners each of its chunks still has, by inclusion and exclusion over the codes in which partners must differ. So it is
known when no valid pair remains, and no draw is biased (P1 2.1, 2.2.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations
from typing import Any

import numpy as np

from allonym.swap.validity import Ground, Rules, combine_codes, list_must_differ_codes

MISSES = 48
"""Draws in a bucket without a valid pair after which it is counted exactly."""
SAMPLE = 2048
"""Most candidates that are weighed for one chunk; of more, this many are drawn."""
TRIES = 64
"""Most candidates that are tried for a chunk, best first."""
Pair = tuple[int, int]
"""Two chunks."""
Free = dict[int, dict[str, list[int]]]
"""Per chunk and category, the values that have not moved."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The data that all clusters of an exchange share.

    Attributes:
        vectors: (n, d) unit rows; None where cosines do not count.
        codes: (n,) each; partners must differ in all of them.
        counts: (n,) entities that each chunk could trade at the beginning.
    """

    ground: Ground
    rules: Rules
    seed: int
    vectors: Any = field(repr=False)
    codes: tuple[Any, ...] = field(repr=False)
    counts: Any = field(repr=False)

    @classmethod
    def of(cls, ground: Ground, rules: Rules, seed: int, vectors: Any) -> Frame:
        """Return the frame of an exchange by these rules."""
        if rules.matches_slots:
            ground.get_entity_fit(), ground.get_fluency()  # computed once, here, for all processes
        slots = [ground.slots[c] for c in rules.categories]
        counts = np.array([sum(map(len, values)) for values in zip(*slots, strict=True)], np.int64)
        vectors = vectors if rules.uses_vectors else None
        return cls(ground, rules, seed, vectors, tuple(list_must_differ_codes(ground, rules)), counts)

    def list_movable_values(self, chunks: Iterable[int]) -> Free:
        """Return the values that may move in these chunks at the beginning: all."""
        slots = [(c, self.ground.slots[c]) for c in self.rules.categories]
        return {i: {c: list(s[i]) for c, s in slots if s[i]} for i in chunks}

    def without_texts(self) -> Frame:
        """Return the same frame without texts and offsets, which no worker needs, to be sent."""
        empty = replace(self.ground.corpus, documents=(), sections=(), chunks=(), entities=(), plans=())
        return replace(self, ground=replace(self.ground, corpus=empty))

    def make_generator(self, *task: int) -> np.random.Generator:
        """Return the random numbers of a task; without one, those of the exchange."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=task))


class Dice:
    """Random numbers one after the other, drawn in blocks."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._block: list[float] = []

    def draw_below(self, n: int) -> int:
        """Return an integer from 0 to n - 1."""
        if not self._block:
            self._block = self._generator.random(1024).tolist()
        return int(self._block.pop() * n)

    def shuffle(self, items: Iterable[Any]) -> list[Any]:
        """Return the items in random order."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.draw_below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


class Bag:
    """Numbers that can be drawn and taken out, each in constant time."""

    def __init__(self, items: Iterable[int]) -> None:
        self.items = list(items)
        self._positions = {item: i for i, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self._positions

    def discard(self, item: int) -> None:
        """Take ``item`` out, if it is in."""
        position = self._positions.pop(item, None)
        if position is not None:
            last = self.items.pop()
            if last != item:
                self.items[position] = last
                self._positions[last] = position


class _Bucket:
    """Chunks of one cluster that may trade with each other, and the draw of the next pair."""

    def __init__(self, members: Sequence[int], codes: Sequence[Any], shared: Any) -> None:
        self.live = Bag(members)
        self._members = np.array(members, np.int64)
        self._codes = codes
        self._shared = shared
        self._misses = 0
        self._forbidden: dict[int, set[int]] = {}  # chunk -> partners with whom nothing can move
        self._degrees: Any = None  # (members,) number of valid partners, once they are counted
        self._is_live: Any = None
        self._position: dict[int, int] = {}

    @property
    def pair_count(self) -> int:
        """The number of ordered pairs to draw from: all of them, or just the valid ones."""
        n = len(self.live)
        return n * (n - 1) if self._degrees is None else int(self._degrees.sum())

    def try_draw_pair(self, dice: Dice) -> tuple[int, int] | None:
        """Draw a pair, uniformly over all; None if it is not a valid one."""
        if self._degrees is not None:
            return self._draw_counted_pair(dice)
        items = self.live.items
        a = dice.draw_below(len(items))
        b = dice.draw_below(len(items) - 1)
        i, j = items[a], items[b + (b >= a)]
        if self._is_valid_pair(i, j):
            self._misses = 0
            return i, j
        self._misses += 1
        if self._misses > MISSES:
            self._count_valid_partners()
        return None

    def remove_chunk(self, i: int) -> None:
        """Remove a chunk that was used."""
        if self._degrees is not None and i in self.live:
            self._degrees -= self._mark_valid_partners(i)
            self._degrees[self._position[i]] = 0
            self._is_live[self._position[i]] = False
        self.live.discard(i)

    def forbid_pair(self, i: int, j: int) -> None:
        """Exclude a pair, whatever the conditions say."""
        if self._degrees is not None and j not in self._forbidden.get(i, ()) and self._is_valid_pair(i, j):
            self._degrees[self._position[i]] -= 1
            self._degrees[self._position[j]] -= 1
        self._forbidden.setdefault(i, set()).add(j)
        self._forbidden.setdefault(j, set()).add(i)

    def _is_valid_pair(self, i: int, j: int) -> bool:
        if not self._shared[i] & self._shared[j] or j in self._forbidden.get(i, ()):
            return False
        return all(code[i] != code[j] for code in self._codes)

    def _mark_valid_partners(self, i: int) -> Any:
        """Return (members,) bool: the valid partners of ``i``."""
        members = self._members
        valid = self._is_live & ((self._shared[members] & self._shared[i]) != 0)
        for code in self._codes:
            valid &= code[members] != code[i]
        for j in self._forbidden.get(i, ()):
            if j in self._position:
                valid[self._position[j]] = False
        return valid

    def _draw_counted_pair(self, dice: Dice) -> tuple[int, int] | None:
        rising = np.cumsum(self._degrees)
        i = int(self._members[np.searchsorted(rising, dice.draw_below(int(rising[-1])), side="right")])
        partners = np.flatnonzero(self._mark_valid_partners(i))
        return i, int(self._members[partners[dice.draw_below(len(partners))]])

    def _count_valid_partners(self) -> None:
        """Count each chunk's valid partners: of all that share a category, those that differ in every code."""
        members = self._members = np.array(sorted(self.live.items), np.int64)
        n = len(members)
        self._position = {int(m): n for n, m in enumerate(members)}
        self._is_live = np.ones(n, bool)
        shared = self._shared[members]
        codes = [code[members] for code in self._codes]
        degrees = np.zeros(n, np.int64)
        kinds = np.unique(shared)
        for size in range(len(codes) + 1):
            for subset in combinations(codes, size):
                cell = combine_codes(subset, n)
                for kind in kinds:
                    counts = np.bincount(cell[(shared & kind) != 0], minlength=n)
                    same = shared == kind
                    degrees[same] += (-1) ** size * counts[cell[same]]
        self._degrees = degrees
        forbidden = [(i, j) for i in self._forbidden for j in self._forbidden[i] if i < j]
        self._forbidden = {}
        for i, j in forbidden:
            if i in self._position and j in self._position:
                self.forbid_pair(i, j)


class Pairs:
    """Draws pairs over several buckets, each valid pair with the same probability.

    Args:
        buckets: the chunks of each.
        codes: (n,) each; partners must differ in all of them.
        shared: (n,) bits; partners must have one in common.
        forbidden: pairs that are excluded.
    """

    def __init__(
        self, buckets: Sequence[Sequence[int]], codes: Sequence[Any], shared: Any, forbidden: Collection[Pair] = ()
    ) -> None:
        self._buckets = [_Bucket(members, codes, shared) for members in buckets]
        self._bucket_of = {i: b for b, members in enumerate(buckets) for i in members}
        for i, j in sorted(forbidden):
            b = self._bucket_of.get(i)
            if b is not None and b == self._bucket_of.get(j):
                self._buckets[b].forbid_pair(i, j)
        self._weights = [b.pair_count for b in self._buckets]
        self._rising = list(accumulate(self._weights))

    def draw_pair(self, dice: Dice) -> tuple[int, int] | None:
        """Draw the next pair; None if no valid one remains."""
        while self._rising and self._rising[-1]:
            b = bisect_right(self._rising, dice.draw_below(self._rising[-1]))
            pair = self._buckets[b].try_draw_pair(dice)
            if pair is not None:
                return pair
            self._update_bucket_weight(b)
        return None

    def remove_chunks(self, i: int, j: int) -> None:
        """Remove two chunks that have traded: neither is drawn again."""
        b = self._bucket_of[i]
        self._buckets[b].remove_chunk(i)
        self._buckets[b].remove_chunk(j)
        self._update_bucket_weight(b)

    def forbid_pair(self, i: int, j: int) -> None:
        """Exclude a pair: the two are not drawn together again, but may be with others."""
        b = self._bucket_of[i]
        self._buckets[b].forbid_pair(i, j)
        self._update_bucket_weight(b)

    def _update_bucket_weight(self, b: int) -> None:
        weight = self._buckets[b].pair_count
        if weight != self._weights[b]:
            self._weights[b] = weight
            self._rising = list(accumulate(self._weights))


class Pool(Bag):
    """A bag of chunks of one bucket that also shows as a mask over the bucket's members."""

    def __init__(self, items: Collection[int], position: Mapping[int, int]) -> None:
        super().__init__(items)
        self._position = position
        self.mask = np.zeros(len(position), bool)
        self.mask[[position[i] for i in items]] = True

    def discard(self, item: int) -> None:
        """Take ``item`` out, if it is in."""
        super().discard(item)
        self.mask[self._position[item]] = False


class Candidates:
    """The candidates of one chunk after the other, inside one bucket: random, or drawn by similarity.

    Args:
        frame: of the exchange; its rules ``weights``, ``temperature``, ``min_cosine`` and ``count_penalty`` count.
        members: chunks of the bucket. A chunk is no candidate of its own class.
        generator: draws.
    """

    def __init__(self, frame: Frame, members: Sequence[int], generator: np.random.Generator) -> None:
        self._members = np.array(members, np.int64)
        self._position = {m: n for n, m in enumerate(members)}
        self._classes = frame.ground.classes[self._members]
        self._class_of = dict(zip(members, self._classes.tolist(), strict=True))
        self._counts = frame.counts[self._members].astype(np.float64)
        self._rows: Any = None if frame.vectors is None else np.ascontiguousarray(frame.vectors[self._members])
        self._rules = frame.rules
        self._generator = generator
        self._cached: tuple[int, Any] = (-1, None)  # a chunk and its cosines with all members

    def make_pool(self, chunks: Collection[int]) -> Pool:
        """Return a pool of chunks of the bucket, to draw from."""
        return Pool(chunks, self._position)

    def draw_partners_for(self, i: int, pool: Pool, dice: Dice) -> list[int]:
        """Return up to :data:`TRIES` chunks of ``pool``, of other classes, in the order in which to try them."""
        rules = self._rules
        if self._rows is None and not rules.count_penalty:
            class_of, items = self._class_of, pool.items
            if len(items) > 4 * TRIES:
                items = list(dict.fromkeys(items[dice.draw_below(len(items))] for _ in range(2 * TRIES)))
                return [j for j in items if class_of[j] != class_of[i]][:TRIES]
            return dice.shuffle(j for j in items if class_of[j] != class_of[i])[:TRIES]
        position = self._position[i]
        others = np.flatnonzero(pool.mask)
        if len(others) > SAMPLE:
            others = others[np.unique(self._generator.integers(0, len(others), SAMPLE))]
        others = others[self._classes[others] != self._classes[position]]
        scores = self._generator.gumbel(size=len(others))
        if rules.count_penalty:
            scores -= rules.count_penalty * np.abs(self._counts[others] - self._counts[position])
        if self._rows is not None:
            cosines = self._compute_cosines(position, others)
            if rules.weights == "cosine":
                scores += cosines / rules.temperature
            if rules.min_cosine > -1.0:
                near = cosines >= rules.min_cosine
                others, scores = others[near], scores[near]
        if len(others) > TRIES:
            best = np.argpartition(-scores, TRIES)[:TRIES]
            others, scores = others[best], scores[best]
        order: list[int] = self._members[others[np.argsort(-scores, kind="stable")]].tolist()
        return order

    def are_similar_enough(self, i: int, j: int) -> bool:
        """Whether two chunks are as similar as partners must be."""
        if self._rows is None or self._rules.min_cosine <= -1.0:
            return True
        a, b = self._rows[self._position[i]], self._rows[self._position[j]]
        return float(np.dot(a, b)) >= self._rules.min_cosine

    def _compute_cosines(self, position: int, others: Any) -> Any:
        if len(self._members) > 2 * SAMPLE:
            return (self._rows[others] @ self._rows[position]).astype(np.float64)
        if self._cached[0] != position:
            self._cached = position, (self._rows @ self._rows[position]).astype(np.float64)
        return self._cached[1][others]

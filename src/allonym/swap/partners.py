"""How partners are drawn: pairs uniformly over all valid ones, or the partners of one chunk by weight.

Uniform pairs come by rejection. A bucket in which that misses too often goes over to exact counts: how many valid
partners each of its chunks has left, by inclusion and exclusion over what partners must differ in. So it is known when
no valid pair is left, and no draw is biased (P1 2.1, 2.2.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from typing import Any

import numpy as np

from allonym.swap.validity import joined

MISSES = 48
"""Draws in a bucket without a valid pair after which it is counted exactly."""
SAMPLE = 2048
"""Candidates that are weighed for one chunk; out of more, so many are drawn."""
TRIES = 64
"""Candidates that a chunk goes through, best first."""


class Dice:
    """Random numbers one by one, drawn in blocks."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._block: list[float] = []

    def unit(self) -> float:
        """A number from 0 to below 1."""
        if not self._block:
            self._block = self._generator.random(1024).tolist()
        return self._block.pop()

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1."""
        return int(self.unit() * n)

    def shuffled(self, items: Iterable[Any]) -> list[Any]:
        """The items in random order."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


class Bag:
    """Numbers that can be drawn and taken out, each in constant time."""

    def __init__(self, items: Iterable[int]) -> None:
        self.items = list(items)
        self._at = {item: i for i, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self._at

    def discard(self, item: int) -> None:
        """Takes ``item`` out, if it is in."""
        at = self._at.pop(item, None)
        if at is not None:
            last = self.items.pop()
            if last != item:
                self.items[at] = last
                self._at[last] = at


class _Bucket:
    """Chunks of one cluster that may trade with each other, and how the next pair of them is drawn."""

    def __init__(self, members: Sequence[int], apart: Sequence[Any], shared: Any) -> None:
        self.live = Bag(members)
        self._members = np.array(members, np.int64)
        self._apart = apart
        self._shared = shared
        self._misses = 0
        self._dead: dict[int, set[int]] = {}  # chunk -> partners with whom nothing can move
        self._degrees: Any = None  # (members,) valid partners left, once they are counted
        self._alive: Any = None
        self._place: dict[int, int] = {}

    @property
    def weight(self) -> int:
        """Ordered pairs that a draw is made from: all of them, or just the valid ones."""
        n = len(self.live)
        return n * (n - 1) if self._degrees is None else int(self._degrees.sum())

    def draw(self, dice: Dice) -> tuple[int, int] | None:
        """A pair, uniformly over all; None where it was not a valid one."""
        if self._degrees is not None:
            return self._exact(dice)
        items = self.live.items
        a = dice.below(len(items))
        b = dice.below(len(items) - 1)
        i, j = items[a], items[b + (b >= a)]
        if self._valid(i, j):
            self._misses = 0
            return i, j
        self._misses += 1
        if self._misses > MISSES:
            self._count()
        return None

    def remove(self, i: int) -> None:
        """The chunk was used."""
        if self._degrees is not None and i in self.live:
            self._degrees -= self._row(i)
            self._degrees[self._place[i]] = 0
            self._alive[self._place[i]] = False
        self.live.discard(i)

    def forbid(self, i: int, j: int) -> None:
        """The two are no pair, whatever the conditions say."""
        if self._degrees is not None and j not in self._dead.get(i, ()) and self._valid(i, j):
            self._degrees[self._place[i]] -= 1
            self._degrees[self._place[j]] -= 1
        self._dead.setdefault(i, set()).add(j)
        self._dead.setdefault(j, set()).add(i)

    def _valid(self, i: int, j: int) -> bool:
        if not self._shared[i] & self._shared[j] or j in self._dead.get(i, ()):
            return False
        return all(code[i] != code[j] for code in self._apart)

    def _row(self, i: int) -> Any:
        """(members,) bool: who is a valid partner of ``i`` now."""
        members = self._members
        ok = self._alive & ((self._shared[members] & self._shared[i]) != 0)
        for code in self._apart:
            ok &= code[members] != code[i]
        for j in sorted(self._dead.get(i, ())):
            if j in self._place:
                ok[self._place[j]] = False
        return ok

    def _exact(self, dice: Dice) -> tuple[int, int] | None:
        rising = np.cumsum(self._degrees)
        i = int(self._members[np.searchsorted(rising, dice.below(int(rising[-1])), side="right")])
        partners = np.flatnonzero(self._row(i))
        return i, int(self._members[partners[dice.below(len(partners))]])

    def _count(self) -> None:
        """Counts each chunk's valid partners: of all that share a category, those that agree in nothing forbidden."""
        members = self._members = np.array(sorted(self.live.items), np.int64)
        n = len(members)
        self._place = {int(m): at for at, m in enumerate(members)}
        self._alive = np.ones(n, bool)
        shared = self._shared[members]
        codes = [code[members] for code in self._apart]
        degrees = np.zeros(n, np.int64)
        kinds = np.unique(shared)
        for size in range(len(codes) + 1):
            for some in combinations(codes, size):
                cell = joined(some, n)
                for kind in kinds:
                    counts = np.bincount(cell[(shared & kind) != 0], minlength=n)
                    mine = shared == kind
                    degrees[mine] += (-1) ** size * counts[cell[mine]]
        self._degrees = degrees
        dead = [(i, j) for i in sorted(self._dead) for j in sorted(self._dead[i]) if i < j]
        self._dead = {}
        for i, j in dead:
            if i in self._place and j in self._place:
                self.forbid(i, j)
            else:
                self._dead.setdefault(i, set()).add(j)
                self._dead.setdefault(j, set()).add(i)


class Pairs:
    """Draws pairs over several buckets, each valid pair with the same probability.

    Args:
        members: the chunks of each bucket.
        apart: codes, (n,) each, in all of which partners must differ.
        shared: (n,) bits, of which partners must have one in common.
        forbidden: pairs that are none.
    """

    def __init__(
        self,
        members: Sequence[Sequence[int]],
        apart: Sequence[Any],
        shared: Any,
        forbidden: Collection[tuple[int, int]] = (),
    ) -> None:
        self._buckets = [_Bucket(m, apart, shared) for m in members]
        self._where = {i: b for b, m in enumerate(members) for i in m}
        for i, j in sorted(forbidden):
            b = self._where.get(i)
            if b is not None and b == self._where.get(j):
                self._buckets[b].forbid(i, j)
        self._weights = [b.weight for b in self._buckets]
        self._rising = list(accumulate(self._weights))

    def draw(self, dice: Dice) -> tuple[int, int] | None:
        """The next pair; None where no valid one is left."""
        while self._rising and self._rising[-1]:
            b = bisect_right(self._rising, dice.below(self._rising[-1]))
            found = self._buckets[b].draw(dice)
            if found is not None:
                return found
            self._weigh(b)
        return None

    def use(self, i: int, j: int) -> None:
        """The two have traded: neither is drawn again."""
        b = self._where[i]
        self._buckets[b].remove(i)
        self._buckets[b].remove(j)
        self._weigh(b)

    def forbid(self, i: int, j: int) -> None:
        """Nothing can move between the two: they are not drawn together again, but may be with others."""
        b = self._where[i]
        self._buckets[b].forbid(i, j)
        self._weigh(b)

    def _weigh(self, b: int) -> None:
        weight = self._buckets[b].weight
        if weight != self._weights[b]:
            self._weights[b] = weight
            self._rising = list(accumulate(self._weights))


class Pool(Bag):
    """A bag of chunks of one bucket that also shows as a mask over the bucket's members."""

    def __init__(self, items: Collection[int], place: Mapping[int, int]) -> None:
        super().__init__(items)
        self._place = place
        self.mask = np.zeros(len(place), bool)
        self.mask[[place[i] for i in items]] = True

    def discard(self, item: int) -> None:
        """Takes ``item`` out, if it is in."""
        super().discard(item)
        self.mask[self._place[item]] = False


class Nearest:
    """The candidates of one chunk after the other, inside one bucket: random, or drawn by similarity.

    Args:
        members: chunks of the bucket.
        vectors: (n, d) unit rows of all chunks; None: all candidates weigh the same.
        classes: (n,) protected values; nobody is a candidate of its own class.
        counts: (n,) entities of each chunk.
        temperature, min_cosine, count_penalty: as in :class:`allonym.swap.validity.Rules`.
        weighted: whether the cosine counts, beyond ``min_cosine``.
    """

    def __init__(
        self,
        members: Sequence[int],
        vectors: Any,
        classes: Any,
        counts: Any,
        *,
        temperature: float,
        min_cosine: float,
        count_penalty: float,
        weighted: bool,
        generator: np.random.Generator,
    ) -> None:
        where = np.array(members, np.int64)
        self.members = where
        self._place = {m: at for at, m in enumerate(members)}
        self._classes = classes[where]
        self._by_chunk = dict(zip(members, self._classes.tolist(), strict=True))
        self._counts = counts[where].astype(np.float64)
        self._rows: Any = None if vectors is None else np.ascontiguousarray(vectors[where])
        self._temperature = temperature
        self._least = min_cosine
        self._penalty = count_penalty
        self._weighted = weighted
        self._generator = generator
        self._whole = len(members) <= 2 * SAMPLE
        self._of = -1
        self._near: Any = None

    def pool(self, items: Collection[int]) -> Pool:
        """A pool of chunks of the bucket, to draw from."""
        return Pool(items, self._place)

    def of(self, i: int, pool: Pool, dice: Dice) -> list[int]:
        """Up to :data:`TRIES` chunks of ``pool``, of other classes, in the order in which they should be asked."""
        if self._rows is None and not self._penalty:
            own, classes, items = self._by_chunk[i], self._by_chunk, pool.items
            if len(items) > 4 * TRIES:
                items = list(dict.fromkeys(items[dice.below(len(items))] for _ in range(2 * TRIES)))
                return [j for j in items if classes[j] != own][:TRIES]
            return dice.shuffled(j for j in items if classes[j] != own)[:TRIES]
        me = self._place[i]
        places = np.flatnonzero(pool.mask)
        if len(places) > SAMPLE:
            places = places[np.unique(self._generator.integers(0, len(places), SAMPLE))]
        places = places[self._classes[places] != self._classes[me]]
        scores = self._generator.gumbel(size=len(places))
        if self._penalty:
            scores -= self._penalty * np.abs(self._counts[places] - self._counts[me])
        if self._rows is not None:
            cosines = self._cosines(me, places)
            if self._weighted:
                scores += cosines / self._temperature
            if self._least > -1.0:
                fit = cosines >= self._least
                places, scores = places[fit], scores[fit]
        if len(places) > TRIES:
            best = np.argpartition(-scores, TRIES)[:TRIES]
            places, scores = places[best], scores[best]
        order: list[int] = self.members[places[np.argsort(-scores, kind="stable")]].tolist()
        return order

    def near(self, i: int, j: int) -> bool:
        """Whether the two are as similar as partners must be."""
        if self._rows is None or self._least <= -1.0:
            return True
        a, b = self._rows[self._place[i]], self._rows[self._place[j]]
        return float(np.dot(a, b)) >= self._least

    def _cosines(self, me: int, places: Any) -> Any:
        if not self._whole:
            return (self._rows[places] @ self._rows[me]).astype(np.float64)
        if self._of != me:
            self._of, self._near = me, (self._rows @ self._rows[me]).astype(np.float64)
        return self._near[places]

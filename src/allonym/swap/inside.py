"""What the chunks of one cluster exchange among themselves.

Clusters do not touch each other's chunks, so each is a task of its own with random numbers of its own: who draws it,
and when, does not matter. What finds no partner there is looked after by :mod:`allonym.swap.exchange`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from allonym.swap.corpus import Slot
from allonym.swap.matching import Matcher
from allonym.swap.partners import Dice, Nearest, Pool
from allonym.swap.validity import GRAMMAR, Ground, Rules, differing

Step = list[tuple[Slot, ...]]
"""A swap in the making: cycles of slots, each slot taking from the next, the last from the first."""
Free = dict[int, dict[str, list[int]]]
"""Per chunk and category, the values that stand still."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What all clusters of an exchange have in common.

    Attributes:
        vectors: (n, d) unit rows; None where cosines do not count.
        apart: (n,) codes, in all of which partners must differ.
        counts: (n,) entities that each chunk could trade at the beginning.
    """

    ground: Ground
    rules: Rules
    seed: int
    vectors: Any = field(repr=False)
    apart: tuple[Any, ...] = field(repr=False)
    counts: Any = field(repr=False)

    @classmethod
    def of(cls, ground: Ground, rules: Rules, seed: int, vectors: Any) -> Frame:
        """The frame of an exchange of whatever these rules allow."""
        if rules.by_slots:
            ground.likeness()  # made once, here, however many processes ask
        weighs = rules.weights == "cosine" or rules.min_cosine > -1.0
        counts = sum(
            (np.array([len(s) for s in ground.slots[c]], np.int64) for c in rules.categories),
            np.zeros(len(ground.keys), np.int64),
        )
        return cls(ground, rules, seed, vectors if weighs else None, tuple(differing(ground, rules)), counts)

    def free(self, chunks: Iterable[int]) -> Free:
        """What stands still in these chunks at the beginning: all."""
        held = [(c, self.ground.slots[c]) for c in self.rules.categories]
        return {i: {c: list(s[i]) for c, s in held if s[i]} for i in chunks}

    def light(self) -> Frame:
        """The same without the corpus's texts and places, which :func:`trades` does not need, to be sent."""
        empty = replace(self.ground.corpus, documents=(), sections=(), chunks=(), entities=(), plans=())
        return replace(self, ground=replace(self.ground, corpus=empty))

    def generator(self, *task: int) -> np.random.Generator:
        """The random numbers of a task; without one, those of the exchange."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=task))


@dataclass(frozen=True, slots=True)
class Task:
    """The exchange within one bucket of chunks.

    Attributes:
        number: that fixes its random numbers.
        chunks: sorted; rounds: passes.
        free, given: what stands still, and what came to which chunk; None: all, and nothing.
        done: pairs of chunks that have traded.
    """

    number: tuple[int, ...]
    chunks: Sequence[int] = field(repr=False)
    rounds: int
    free: Free | None = field(repr=False, default=None)
    given: Mapping[int, Sequence[int]] = field(repr=False, default_factory=dict)
    done: frozenset[tuple[int, int]] = field(repr=False, default=frozenset())


def trades(frame: Frame, task: Task) -> list[list[Step]]:
    """The steps of each round."""
    return _Inside(frame, task).rounds()


class Standing:
    """Which entities of some chunks stand still yet, and what came where.

    Args:
        frame: of the exchange.
        chunks: the only ones that are asked for.
        generator: draws.
    """

    def __init__(self, frame: Frame, chunks: Sequence[int], generator: np.random.Generator) -> None:
        self.frame, self.ground, self.rules = frame, frame.ground, frame.rules
        self.generator, self.dice = generator, Dice(generator)
        self.free: Free = {}
        self.given: dict[int, list[int]] = {}
        self.done: set[tuple[int, int]] = set()
        rows = np.asarray(chunks, np.int64)
        self.classes: dict[int, int] = dict(zip(chunks, frame.ground.classes[rows].tolist(), strict=True))
        codes = zip(*(code[rows].tolist() for code in frame.apart), strict=True)
        self._codes: dict[int, tuple[int, ...]] = dict(zip(chunks, codes, strict=True))
        self._likeness = frame.ground.likeness() if frame.rules.by_slots else None

    def has_free(self, i: int) -> bool:
        """Whether any entity of the chunk stands still."""
        return any(self.free[i].values())

    def accepts(self, i: int, key: int) -> bool:
        """Whether the entity may come to the chunk: unknown to its class, and not like what came already."""
        related = self.ground.related[key]
        if self.rules.returns:
            if not related.isdisjoint(self.ground.keys[i]):
                return False
        elif key in self.ground.known[self.classes[i]]:
            return False
        came = self.given.get(i)
        return not came or related.isdisjoint(came)

    def suits(self, slot: Slot, donor: Slot) -> bool:
        """Whether the entity of ``donor`` fits the slot well enough."""
        likeness, least = self._likeness, self.rules.min_fit
        if likeness is None or least == -math.inf:
            return True
        looks = likeness.looks
        return likeness.fit(looks[slot.chunk][slot.value], looks[donor.chunk][donor.value]) >= least

    def apart_from(self, i: int, j: int) -> bool:
        """Whether the chunks differ wherever partners must."""
        return all(a != b for a, b in zip(self._codes[i], self._codes[j], strict=True))

    def trade(self, i: int, j: int, categories: Sequence[str], strict: bool = False) -> Step:
        """Exchange as many entities of two chunks as can be; which ones, where one has more, is random.

        Of those that may stand for an entity the one comes whose name is written most alike; with ``strict`` none whose
        number or first letter is another's (``stores`` for ``store``, ``edge`` for ``Corvane``).
        """
        keys, shapes = self.ground.keys, self.ground.shapes
        out: Step = []
        for c in categories:
            mine, theirs = self.free[i].get(c), self.free[j].get(c)
            if not mine or not theirs:
                continue
            going = [a for a in mine if self.accepts(j, keys[i][a])]
            coming = [b for b in theirs if self.accepts(i, keys[j][b])] if going else []
            if not coming:
                continue
            coming = self.dice.shuffled(coming)
            for a in self.dice.shuffled(going):
                if not self.accepts(j, keys[i][a]):
                    continue
                fitting = [b for b in coming if self.accepts(i, keys[j][b])]
                if not fitting:
                    break
                if strict:
                    fitting = [b for b in fitting if not (shapes[i][a] ^ shapes[j][b]) & GRAMMAR]
                    if not fitting:
                        continue
                b = min(fitting, key=lambda b: (shapes[i][a] ^ shapes[j][b]).bit_count())
                coming.remove(b)
                self.take(c, Slot(i, a), Slot(j, b))
                out.append((Slot(i, a), Slot(j, b)))
        return out

    def take(self, category: str, *cycle: Slot) -> None:
        """Note that each slot takes the entity of the next."""
        keys = self.ground.keys
        for k, slot in enumerate(cycle):
            donor = cycle[(k + 1) % len(cycle)]
            self.free[slot.chunk][category].remove(slot.value)
            self.given.setdefault(slot.chunk, []).append(keys[donor.chunk][donor.value])

    def nearest(self, bucket: list[int]) -> Nearest:
        """The chunks of a bucket by how near they are to each other."""
        rules = self.rules
        return Nearest(
            bucket,
            self.frame.vectors,
            self.ground.classes,
            self.frame.counts,
            temperature=rules.temperature,
            min_cosine=rules.min_cosine,
            count_penalty=rules.count_penalty,
            weighted=rules.weights == "cosine",
            generator=self.generator,
        )


class _Inside(Standing):
    """One bucket while it is drawn."""

    def __init__(self, frame: Frame, task: Task) -> None:
        super().__init__(frame, task.chunks, frame.generator(*task.number))
        given = frame.free(task.chunks) if task.free is None else task.free
        self.free = {i: {c: list(v) for c, v in f.items()} for i, f in given.items()}
        self.given = {i: list(g) for i, g in task.given.items()}
        self.done = set(task.done)
        self.bucket, self.most = list(task.chunks), task.rounds

    def rounds(self) -> list[list[Step]]:
        """What is traded, by round."""
        if len(self.bucket) < 2:
            return []
        return self._by_slots() if self.rules.by_slots else self._by_chunks()

    # Chunk by chunk

    def _by_chunks(self) -> list[list[Step]]:
        """Each chunk in turn trades with partners. Where several rounds go on until all entities are gone, the first
        takes only names that fit the grammar."""
        rules, bucket = self.rules, self.bucket
        near = self.nearest(bucket)
        pools = {c: near.pool([i for i in bucket if self.free[i].get(c)]) for c in rules.categories}
        together = [rules.categories] if rules.partners == "same" else [(c,) for c in rules.categories]
        careful = rules.counts == "all" and self.most > 1
        out: list[list[Step]] = []
        for number in range(self.most):
            strict = careful and not number
            used: set[tuple[int, str]] = set()
            steps: list[Step] = []
            for i in self.dice.shuffled(i for i in bucket if self.has_free(i)):
                cycles = [cycle for some in together for cycle in self._star(i, some, near, pools, used, strict)]
                if cycles:
                    steps.append(cycles)
            out.append(steps)
            if not steps and not strict:
                break
        return out

    def _star(
        self,
        i: int,
        categories: tuple[str, ...],
        near: Nearest,
        pools: Mapping[str, Pool],
        used: set[tuple[int, str]],
        strict: bool,
    ) -> Step:
        """What one chunk trades of these categories: with one partner, or with as many as it takes."""
        once = self.rules.counts == "min"
        out: Step = []
        for c in categories:
            if once and (i, categories[0]) in used:
                break
            if not self.free[i].get(c):
                continue
            for j in near.of(i, pools[c], self.dice):
                pair = (min(i, j), max(i, j))
                if pair in self.done or (once and (j, categories[0]) in used) or not self.apart_from(i, j):
                    continue
                cycles = self.trade(i, j, categories, strict)
                if not cycles:
                    continue
                out += cycles
                self.done.add(pair)
                for k in categories:
                    if not self.free[j].get(k):
                        pools[k].discard(j)
                if once:
                    used |= {(i, categories[0]), (j, categories[0])}
                    break
                if not self.free[i].get(c):
                    break
        for c in categories:
            if not self.free[i].get(c):
                pools[c].discard(i)
        return out

    # Slot by slot

    def _by_slots(self) -> list[list[Step]]:
        """Slots of a category are paired, the best pairs first; what is left, again in the next round.

        All that a chunk trades in a round is one step, of it or of the partner whose turn came before.
        """
        assert self._likeness is not None
        frame = self.frame
        matcher = Matcher(self.rules, frame.vectors, self._likeness, frame.apart, frame.counts, self.generator)
        out: list[list[Step]] = []
        for _ in range(self.most):
            steps = self._matched(matcher)
            if not steps:
                break
            out.append(steps)
        return out

    def _matched(self, matcher: Matcher) -> list[Step]:
        """One round."""
        keys = self.ground.keys
        held: dict[int, dict[tuple[Slot, ...], None]] = {}
        for c in self.rules.categories:
            slots = [Slot(i, v) for i in self.bucket for v in self.free[i].get(c, ())]
            gone = [False] * len(slots)
            now: set[tuple[int, int]] = set()  # may trade more than one entity of the category
            for a, b in matcher.pairs(slots):
                (i, mine), (j, theirs) = slots[a], slots[b]
                pair = (min(i, j), max(i, j))
                if gone[a] or gone[b] or (pair in self.done and pair not in now):
                    continue
                if self.accepts(j, keys[i][mine]) and self.accepts(i, keys[j][theirs]):
                    gone[a] = gone[b] = True
                    now.add(pair)
                    self.done.add(pair)
                    cycle: tuple[Slot, ...] = (slots[a], slots[b])
                    self.take(c, *cycle)
                    held.setdefault(i, {})[cycle] = held.setdefault(j, {})[cycle] = None
        out: list[Step] = []
        for i in self.dice.shuffled(held):
            if cycles := list(held[i]):
                out.append(cycles)
                for cycle in cycles:
                    for slot in cycle:
                        held[slot.chunk].pop(cycle, None)
        return out

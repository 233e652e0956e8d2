"""The exchange: sequences of swaps, every prefix of which is a release (P1 2.1, 2.3).

A slot is the place of one entity in one chunk. Every swap is a permutation of slots, so that all together keep how
often each entity stands in the corpus; no slot moves twice, and no entity comes to where it is known already. Clusters
exchange apart from each other (:mod:`allonym.swap.inside`); what is left then looks beyond them, and joins rotations.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from allonym.errors import UsageError
from allonym.swap.corpus import Corpus, Slot
from allonym.swap.inside import Frame, Standing, Step, Task, trades
from allonym.swap.partners import TRIES, Nearest, Pairs
from allonym.swap.shards import Here, Spread
from allonym.swap.validity import Ground, Rules, buckets, check, coded, joined, masks, valid_pairs

__all__ = ["Ground", "Rules", "Sequence", "Swap", "exchange", "valid_pairs"]

REASONS = (
    "cluster not allowed",
    "lacks a category",
    "no other class in its cluster",
    "nothing that may move",
    "not reached",
)
"""Why a chunk with a swappable entity was left as it is."""
ASKED = 4 * TRIES
"""Slots that still stand, of which a rotation is looked for among so many."""


@dataclass(frozen=True, slots=True)
class Swap:
    """One step of a sequence: a permutation of a few slots.

    Attributes:
        chunks: those that it changes, sorted.
        moves: (slot, slot that its new entity comes from); as many as there are slots, none twice.
    """

    chunks: tuple[int, ...]
    moves: tuple[tuple[Slot, Slot], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Swaps on disjoint slots, in order: each prefix is a release, and holds those before it.

    Attributes:
        categories: exchanged ones.
        swaps: the steps.
        seed: what they were drawn with.
        exhausted: whether nothing more could be swapped; false where a limit of the rules ended it.
        holders: chunks that hold an entity of these categories.
        left: of these, how many no swap changes, by reason (:data:`REASONS`).
        slots: entities in chunks that were open to exchange, and how many of them moved, by category.
    """

    categories: tuple[str, ...]
    swaps: tuple[Swap, ...] = field(repr=False)
    seed: int
    exhausted: bool
    holders: int = 0
    left: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    slots: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))

    def placed(self, r: int | None = None) -> dict[Slot, Slot]:
        """What stands where after the first ``r`` swaps; after all by default."""
        return dict(move for swap in self.swaps[:r] for move in swap.moves)

    def changed(self, r: int | None = None) -> tuple[int, ...]:
        """The chunks that the first ``r`` swaps change, sorted."""
        return tuple(sorted({c for swap in self.swaps[:r] for c in swap.chunks}))


def exchange(
    corpus: Corpus,
    labels: abc.Sequence[int] | Any,
    rules: Rules,
    seed: int,
    *,
    vectors: Any = None,
    groups: abc.Sequence[str] | None = None,
    allowed: Collection[int] | None = None,
    ground: Ground | None = None,
    spread: Spread | None = None,
) -> Sequence:
    """Draw a sequence of swaps. The same seed gives the same sequence on every machine.

    Args:
        corpus: what is swapped.
        labels: (n,) each chunk's cluster.
        rules: what may be exchanged with what.
        seed: 0 or more.
        vectors: (n, d) unit rows, for ``weights="cosine"`` and ``min_cosine``.
        groups: per chunk; partners are of the same group, e.g. of one industry.
        allowed: clusters that take part, e.g. those that are concentrated enough; None: all.
        ground: ``Ground.of(corpus)``, where several sequences are drawn.
        spread: who draws the clusters, see :func:`allonym.scale.swap_workers`; None: this process. The same sequence.

    Returns:
        The sequence. With uniform weights, one partner and ``counts="min"`` each swap is drawn uniformly over all valid
        pairs of all clusters that are left (P1), in this process; else cluster by cluster, each on its own, chunk by
        chunk with its partners, in random order.

    Raises:
        UsageError: the rules do not fit the corpus, or vectors, labels or groups are missing or too few.
    """
    check(corpus, rules)
    n = len(corpus.chunks)
    for name, given in (("labels", labels), ("vectors", vectors), ("groups", groups)):
        if given is not None and len(given) != n:
            raise UsageError(f"exchange: {name} must be as many as the {n} chunks, got {len(given)}")
    if vectors is None and (rules.weights == "cosine" or rules.min_cosine > -1.0):
        raise UsageError("exchange: cosine weights and min_cosine need the chunks' vectors, got none")
    if not n:
        return Sequence(rules.categories, (), seed, True)
    run = _Run(Frame.of(ground or Ground.of(corpus), rules, seed, vectors))
    members = buckets(run.ground, labels, rules, groups, allowed)
    if rules.by_pairs:
        steps = run.pairs(members)
    else:
        steps = run.noted([Task((0, b), m, rules.rounds) for b, m in enumerate(members)], spread)
    if rules.beyond and not run.stopped:
        inside = {i for m in members for i in m}
        wide = buckets(run.ground, np.zeros(n, np.int64), rules, groups, None)
        left = [[i for i in m if i in inside and run.has_free(i)] for m in wide]
        steps += run.noted([run.task((1, b), m) for b, m in enumerate(left)], None)
    if rules.cycles and not run.stopped:
        run.rotate(members, steps)
    return _sequence(run, steps, members, labels, allowed)


def _swap(step: Step) -> Swap:
    moves = tuple((s, c[(k + 1) % len(c)]) for c in step for k, s in enumerate(c))
    return Swap(tuple(sorted({s.chunk for s, _ in moves})), moves)


class _Run(Standing):
    """What one exchange keeps while it draws. Mutable; it never leaves :func:`exchange`."""

    def __init__(self, frame: Frame) -> None:
        n = len(frame.ground.keys)
        super().__init__(frame, range(n), frame.generator())
        self.free = frame.free(range(n))
        self.changed: set[int] = set()
        self.stopped = False
        self.cut = False  # ended before every chunk was asked
        self.holders = sum(map(bool, self.free.values()))
        self.swapped = 0
        self.near: dict[int, Nearest] = {}

    def over(self) -> bool:
        """Whether a limit of the rules is reached; noted."""
        most, share = self.rules.max_swaps, self.rules.target_share
        if (most is not None and self.swapped >= most) or (share < 1.0 and len(self.changed) >= share * self.holders):
            self.stopped = self.cut = True
        return self.stopped

    def take(self, category: str, *cycle: Slot) -> None:
        """As :meth:`Standing.take`; the chunks count as changed."""
        super().take(category, *cycle)
        self.changed.update(slot.chunk for slot in cycle)

    # Cluster by cluster

    def task(self, number: tuple[int, ...], chunks: list[int]) -> Task:
        """One more pass through these chunks, as they stand now."""
        free = {i: self.free[i] for i in chunks}
        return Task(number, chunks, 1, free, {i: self.given.get(i, []) for i in chunks}, frozenset(self.done))

    def noted(self, tasks: list[Task], spread: Spread | None) -> list[Step]:
        """The steps of all tasks, mixed round by round, and noted. The largest come first to those who draw."""
        order = sorted(range(len(tasks)), key=lambda at: -len(tasks[at].chunks))
        made = (spread or Here()).each(trades, self.frame.light(), (tasks[at] for at in order))
        found = dict(zip(order, made, strict=True))
        values = self.ground.corpus.chunks
        out: list[Step] = []
        for number in range(max((task.rounds for task in tasks), default=0)):
            steps = [step for at in range(len(tasks)) if number < len(found[at]) for step in found[at][number]]
            for cycle in (cycle for step in steps for cycle in step):
                first, other = cycle[0].chunk, cycle[-1].chunk
                self.take(values[first].values[cycle[0].value].category, *cycle)
                self.done.add((min(first, other), max(first, other)))
            out += self.dice.shuffled(steps)
        return out

    # Pairs, uniformly

    def pairs(self, members: list[list[int]]) -> list[Step]:
        """P1's exchange: pairs one after the other, each uniform over those that are left; again in every round."""
        ground, rules, n = self.ground, self.rules, len(self.free)
        out: list[Step] = []
        test = all if rules.need == "both" else any
        for number in range(rules.rounds):
            if number:
                cells = [self._standing(c) for c in rules.categories]
                shared = sum(((c > 0).astype(np.int64) << bit for bit, c in enumerate(cells)), np.zeros(n, np.int64))
            else:
                cells = [ground.cells(c) for c in rules.categories]
                shared = masks(ground, rules)
            now = [[i for i in m if test(self.free[i].get(c) for c in rules.categories)] for m in members]
            bag = Pairs(now, [*self.frame.apart, joined(cells, n)], shared, self.done)
            before = len(out)
            while not self.over() and (pair := bag.draw(self.dice)) is not None:
                i, j = pair
                cycles = self.trade(i, j, rules.categories)
                if cycles:
                    out.append(cycles)
                    self.swapped += 1
                    self.done.add((min(i, j), max(i, j)))
                    bag.use(i, j)
                else:
                    bag.forbid(i, j)
            if self.stopped or len(out) == before:
                break
        return out

    def _standing(self, category: str) -> Any:
        """As ``Ground.cells``, of the entities that stand still."""
        keys = self.ground.keys
        return coded([{keys[i][v] for v in self.free[i].get(category, ())} for i in range(len(keys))])

    # Rotations of three

    def rotate(self, members: list[list[int]], steps: list[Step]) -> None:
        """What stands still joins a pair that has traded, or two others that stand still; changes ``steps``."""
        where = {i: b for b, m in enumerate(members) for i in m}
        values = self.ground.corpus.chunks
        traded: dict[tuple[int, str], list[tuple[Step, int]]] = {}
        for step in steps:
            for k, cycle in enumerate(step):
                first = cycle[0]
                b = where.get(first.chunk)
                if len(cycle) == 2 and b is not None and where.get(cycle[1].chunk) == b:
                    traded.setdefault((b, values[first.chunk].values[first.value].category), []).append((step, k))
        new: list[Step] = []
        for b, bucket in enumerate(members):
            for c in self.rules.categories:
                left = [Slot(i, v) for i in bucket for v in self.free[i].get(c, ())]
                if not left:
                    continue
                near = self.near_of(b, bucket)
                pairs = traded.get((b, c), [])
                for slot in self.dice.shuffled(left):
                    if slot.value not in self.free[slot.chunk][c]:
                        continue
                    if not self._joins(slot, c, pairs, near):
                        cycle = self._three(slot, c, left, near)
                        if cycle:
                            new.append([cycle])
        steps += self.dice.shuffled(new)

    def near_of(self, b: int, bucket: list[int]) -> Nearest:
        """What says whether two chunks of a bucket are similar enough; made once."""
        if b not in self.near:
            self.near[b] = self.nearest(bucket)
        return self.near[b]

    def _fit(self, i: int, j: int, near: Nearest) -> bool:
        return self.apart_from(i, j) and near.near(i, j)

    def _joins(self, slot: Slot, category: str, pairs: list[tuple[Step, int]], near: Nearest) -> bool:
        """Puts the slot into a pair: p takes from q, q from the slot, the slot from p."""
        keys, i = self.ground.keys, slot.chunk
        for _ in range(min(TRIES, 2 * len(pairs))):
            at = self.dice.below(len(pairs))
            step, k = pairs[at]
            cycle = step[k]
            p, q = cycle if self.dice.below(2) else cycle[::-1]
            if not (self._fit(i, p.chunk, near) and self._fit(i, q.chunk, near)):
                continue
            if not (self.suits(slot, p) and self.suits(q, slot)):
                continue
            came = self.given[q.chunk]
            here = came.index(keys[p.chunk][p.value])
            out = came.pop(here)
            if self.accepts(q.chunk, keys[i][slot.value]) and self.accepts(i, out):
                came.append(keys[i][slot.value])
                self.free[i][category].remove(slot.value)
                self.given.setdefault(i, []).append(out)
                self.changed.add(i)
                step[k] = (p, q, slot)
                pairs[at] = pairs[-1]
                pairs.pop()
                return True
            came.insert(here, out)
        return False

    def _three(self, slot: Slot, category: str, left: list[Slot], near: Nearest) -> tuple[Slot, ...]:
        """A rotation of the slot and two others that stand still; empty where none was found."""
        keys, i = self.ground.keys, slot.chunk
        # some of many: where one document owns most of what is left, asking all would take the square of it
        asked = left if len(left) <= ASKED else [left[self.dice.below(len(left))] for _ in range(ASKED)]
        others = [s for s in asked if s.value in self.free[s.chunk][category] and self._fit(i, s.chunk, near)]
        some = self.dice.shuffled(list(dict.fromkeys(others)))[:TRIES]
        takes = [s for s in some if self.accepts(i, keys[s.chunk][s.value]) and self.suits(slot, s)]
        gives = [s for s in some if self.accepts(s.chunk, keys[i][slot.value]) and self.suits(s, slot)]
        for j in takes:
            for k in gives:
                if (
                    j.chunk != k.chunk
                    and self._fit(j.chunk, k.chunk, near)
                    and self.accepts(j.chunk, keys[k.chunk][k.value])
                    and self.suits(j, k)
                ):
                    self.take(category, slot, j, k)
                    return (slot, j, k)
        return ()


def _sequence(
    run: _Run, steps: list[Step], members: list[list[int]], labels: Any, allowed: Collection[int] | None
) -> Sequence:
    """The sequence up to the limits of the rules, and why chunks were left."""
    rules, most = run.rules, run.rules.max_swaps
    swaps: list[Swap] = []
    changed: set[int] = set()
    for step in steps:
        if (most is not None and len(swaps) >= most) or (
            rules.target_share < 1.0 and len(changed) >= rules.target_share * run.holders
        ):
            run.stopped = True
            break
        swaps.append(_swap(step))
        changed.update(swaps[-1].chunks)
    left: dict[str, int] = {}
    corpus = run.ground.corpus
    open_ = None if allowed is None else {int(a) for a in allowed}
    inside = {i: b for b, m in enumerate(members) for i in m}
    classes = [{c: {run.classes[i] for i in m if run.ground.slots[c][i]} for c in rules.categories} for m in members]
    for i in range(len(corpus.chunks)):
        held = [c for c in rules.categories if run.ground.slots[c][i]]
        if not held or i in changed:
            continue
        b = inside.get(i)
        if open_ is not None and int(labels[i]) not in open_:
            why = "cluster not allowed"
        elif b is None:
            why = "lacks a category"
        elif i in run.changed:
            why = "not reached"
        elif not any(classes[b][c] - {run.classes[i]} for c in held):
            why = "no other class in its cluster"
        else:
            why = "not reached" if run.cut else "nothing that may move"
        left[why] = left.get(why, 0) + 1
    moved: dict[str, int] = dict.fromkeys(rules.categories, 0)
    for swap in swaps:
        for slot, _ in swap.moves:
            moved[corpus.chunks[slot.chunk].values[slot.value].category] += 1
    total = {c: sum(len(run.ground.slots[c][i]) for i in inside) for c in rules.categories}
    return Sequence(
        rules.categories,
        tuple(swaps),
        run.frame.seed,
        not run.stopped,
        run.holders,
        MappingProxyType({why: left[why] for why in REASONS if why in left}),
        MappingProxyType({c: (total[c], moved[c]) for c in rules.categories}),
    )

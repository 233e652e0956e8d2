"""The exchange: sequences of swaps, every prefix of which is a release (P1 2.1, 2.3).

A slot is the place of one entity in one chunk. Every swap is a permutation of slots, so that all together keep how
often each entity stands in the corpus; no slot moves twice, and no entity comes to where it is known already.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from allonym.errors import UsageError
from allonym.swap.corpus import Corpus, Slot
from allonym.swap.matching import Matcher
from allonym.swap.partners import TRIES, Dice, Nearest, Pairs, Pool
from allonym.swap.validity import GRAMMAR, Ground, Rules, buckets, check, coded, differing, joined, masks, valid_pairs

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

    Returns:
        The sequence. With uniform weights, one partner and ``counts="min"`` each swap is drawn uniformly over all valid
        pairs that are left (P1); else chunk by chunk, each with its partners, in random order.

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
    run = _Run(ground or Ground.of(corpus), rules, seed, vectors)
    members = buckets(run.ground, labels, rules, groups, allowed)
    draw = run.match if run.by_slots else run.stars
    steps = run.pairs(members) if run.by_pairs else draw(members)
    if rules.beyond and not run.stopped:
        wide = buckets(run.ground, np.zeros(n, np.int64), rules, groups, None)
        inside = {i for m in members for i in m}
        steps += draw([[i for i in m if i in inside and run.has_free(i)] for m in wide], 1)
    if rules.cycles and not run.stopped:
        run.rotate(members, steps)
    return _sequence(run, steps, members, labels, allowed)


class _Step:
    """A swap in the making: cycles of slots, each slot taking from the next, the last from the first."""

    __slots__ = ("cycles",)

    def __init__(self, cycles: list[tuple[Slot, ...]]) -> None:
        self.cycles = cycles

    def done(self) -> Swap:
        moves = tuple((s, c[(k + 1) % len(c)]) for c in self.cycles for k, s in enumerate(c))
        return Swap(tuple(sorted({s.chunk for s, _ in moves})), moves)


class _Run:
    """What one exchange keeps while it draws. Mutable; it never leaves :func:`exchange`."""

    def __init__(self, ground: Ground, rules: Rules, seed: int, vectors: Any) -> None:
        self.ground, self.rules, self.seed, self.vectors = ground, rules, seed, vectors
        self.generator = np.random.default_rng(seed)
        self.dice = Dice(self.generator)
        n = len(ground.corpus.chunks)
        held = [(c, ground.slots[c]) for c in rules.categories]
        self.free: list[dict[str, list[int]]] = [{c: list(s[i]) for c, s in held if s[i]} for i in range(n)]
        self.given: dict[int, list[int]] = {}
        self.done: set[tuple[int, int]] = set()
        self.changed: set[int] = set()
        self.stopped = False
        self.cut = False  # ended before every chunk was asked
        self.holders = sum(map(bool, self.free))
        self.classes: list[int] = ground.classes.tolist()
        self.apart = differing(ground, rules)
        self.apart_lists = [code.tolist() for code in self.apart]
        self.swapped = 0
        counts = np.fromiter((sum(map(len, f.values())) for f in self.free), np.int64, n)
        self.counts = counts
        self.near: dict[int, Nearest] = {}
        self.likeness = ground.likeness() if self.by_slots else None

    @property
    def by_pairs(self) -> bool:
        r = self.rules
        plain = r.weights == "uniform" and not r.count_penalty and r.min_cosine <= -1.0
        return plain and r.partners == "same" and r.counts == "min"

    @property
    def by_slots(self) -> bool:
        r = self.rules
        return r.fit > 0 and r.partners == "per-category" and r.counts == "all"

    def has_free(self, i: int) -> bool:
        """Whether any entity of the chunk stands still."""
        return any(self.free[i].values())

    def over(self) -> bool:
        """Whether a limit of the rules is reached; noted."""
        most, share = self.rules.max_swaps, self.rules.target_share
        if (most is not None and self.swapped >= most) or (share < 1.0 and len(self.changed) >= share * self.holders):
            self.stopped = self.cut = True
        return self.stopped

    # What may move

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
        likeness, least = self.likeness, self.rules.min_fit
        if likeness is None or least == -math.inf:
            return True
        looks = likeness.looks
        return likeness.fit(looks[slot.chunk][slot.value], looks[donor.chunk][donor.value]) >= least

    def apart_from(self, i: int, j: int) -> bool:
        """Whether the chunks differ wherever partners must."""
        return all(code[i] != code[j] for code in self.apart_lists)

    def trade(self, i: int, j: int, categories: abc.Sequence[str], strict: bool = False) -> list[tuple[Slot, ...]]:
        """Exchange as many entities of two chunks as can be; which ones, where one has more, is random.

        Of those that may stand for an entity the one comes whose name is written most alike; with ``strict`` none whose
        number or first letter is another's (``stores`` for ``store``, ``edge`` for ``Corvane``).
        """
        keys, shapes = self.ground.keys, self.ground.shapes
        out: list[tuple[Slot, ...]] = []
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
            self.changed.add(slot.chunk)

    # Pairs, uniformly

    def pairs(self, members: list[list[int]]) -> list[_Step]:
        """P1's exchange: pairs one after the other, each uniform over those that are left; again in every round."""
        ground, rules, n = self.ground, self.rules, len(self.free)
        out: list[_Step] = []
        test = all if rules.need == "both" else any
        for number in range(rules.rounds):
            if number:
                cells = [self._standing(c) for c in rules.categories]
                shared = sum(((c > 0).astype(np.int64) << bit for bit, c in enumerate(cells)), np.zeros(n, np.int64))
            else:
                cells = [ground.cells(c) for c in rules.categories]
                shared = masks(ground, rules)
            now = [[i for i in m if test(self.free[i].get(c) for c in rules.categories)] for m in members]
            bag = Pairs(now, [*self.apart, joined(cells, n)], shared, self.done)
            before = len(out)
            while not self.over() and (pair := bag.draw(self.dice)) is not None:
                i, j = pair
                cycles = self.trade(i, j, rules.categories)
                if cycles:
                    out.append(_Step(cycles))
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
        return coded([{keys[i][v] for v in f.get(category, ())} for i, f in enumerate(self.free)])

    # Chunk by chunk

    def stars(self, members: list[list[int]], rounds: int | None = None) -> list[_Step]:
        """Each chunk in turn trades with partners out of its bucket; buckets are mixed afterwards, round by round.

        Where several rounds go on until all entities are gone, the first takes only names that fit the grammar.
        """
        out: list[_Step] = []
        by_round: list[list[_Step]] = [[] for _ in range(rounds or self.rules.rounds)]
        for bucket in members:
            if len(bucket) > 1:
                self._bucket(bucket, by_round)
        for steps in by_round:
            out += self.dice.shuffled(steps)
        return out

    def _nearest(self, bucket: list[int]) -> Nearest:
        rules = self.rules
        weighted = rules.weights == "cosine"
        return Nearest(
            bucket,
            self.vectors if weighted or rules.min_cosine > -1.0 else None,
            self.ground.classes,
            self.counts,
            temperature=rules.temperature,
            min_cosine=rules.min_cosine,
            count_penalty=rules.count_penalty,
            weighted=weighted,
            generator=self.generator,
        )

    def _bucket(self, bucket: list[int], by_round: list[list[_Step]]) -> None:
        rules = self.rules
        near = self._nearest(bucket)
        pools = {c: near.pool([i for i in bucket if self.free[i].get(c)]) for c in rules.categories}
        together = [rules.categories] if rules.partners == "same" else [(c,) for c in rules.categories]
        careful = rules.counts == "all" and len(by_round) > 1
        for number, steps in enumerate(by_round):
            strict = careful and not number
            used: set[tuple[int, str]] = set()
            before = len(steps)
            for i in self.dice.shuffled(i for i in bucket if self.has_free(i)):
                cycles = [cycle for some in together for cycle in self._star(i, some, near, pools, used, strict)]
                if cycles:
                    steps.append(_Step(cycles))
            if len(steps) == before and not strict:
                break

    def _star(
        self,
        i: int,
        categories: tuple[str, ...],
        near: Nearest,
        pools: Mapping[str, Pool],
        used: set[tuple[int, str]],
        strict: bool,
    ) -> list[tuple[Slot, ...]]:
        """What one chunk trades of these categories: with one partner, or with as many as it takes."""
        once = self.rules.counts == "min"
        out: list[tuple[Slot, ...]] = []
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

    def match(self, members: list[list[int]], rounds: int | None = None) -> list[_Step]:
        """Slots of a bucket and category are paired, the best pairs first; what is left, again in the next round.

        All that a chunk trades in a round is one step, of it or of the partner whose turn came before.
        """
        assert self.likeness is not None
        weighted = self.rules.weights == "cosine" or self.rules.min_cosine > -1.0
        vectors = self.vectors if weighted else None
        matcher = Matcher(self.rules, vectors, self.likeness, self.apart, self.counts, self.generator)
        out: list[_Step] = []
        for _ in range(rounds or self.rules.rounds):
            made = [step for bucket in members for step in self._matched(bucket, matcher)]
            if not made:
                break
            out += self.dice.shuffled(made)
        return out

    def _matched(self, bucket: list[int], matcher: Matcher) -> list[_Step]:
        """One round in one bucket."""
        keys = self.ground.keys
        held: dict[int, dict[tuple[Slot, ...], None]] = {}
        for c in self.rules.categories:
            slots = [Slot(i, v) for i in bucket for v in self.free[i].get(c, ())]
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
        out = []
        for i in self.dice.shuffled(held):
            if cycles := list(held[i]):
                out.append(_Step(cycles))
                for cycle in cycles:
                    for slot in cycle:
                        held[slot.chunk].pop(cycle, None)
        return out

    # Rotations of three

    def rotate(self, members: list[list[int]], steps: list[_Step]) -> None:
        """What stands still joins a pair that has traded, or two others that stand still; changes ``steps``."""
        where = {i: b for b, m in enumerate(members) for i in m}
        values = self.ground.corpus.chunks
        traded: dict[tuple[int, str], list[tuple[_Step, int]]] = {}
        for step in steps:
            for k, cycle in enumerate(step.cycles):
                first = cycle[0]
                b = where.get(first.chunk)
                if len(cycle) == 2 and b is not None and where.get(cycle[1].chunk) == b:
                    traded.setdefault((b, values[first.chunk].values[first.value].category), []).append((step, k))
        new: list[_Step] = []
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
                            new.append(_Step([cycle]))
        steps += self.dice.shuffled(new)

    def near_of(self, b: int, bucket: list[int]) -> Nearest:
        """What says whether two chunks of a bucket are similar enough; made once."""
        if b not in self.near:
            self.near[b] = self._nearest(bucket)
        return self.near[b]

    def _fit(self, i: int, j: int, near: Nearest) -> bool:
        return self.apart_from(i, j) and near.near(i, j)

    def _joins(self, slot: Slot, category: str, pairs: list[tuple[_Step, int]], near: Nearest) -> bool:
        """Puts the slot into a pair: p takes from q, q from the slot, the slot from p."""
        keys, i = self.ground.keys, slot.chunk
        for _ in range(min(TRIES, 2 * len(pairs))):
            at = self.dice.below(len(pairs))
            step, k = pairs[at]
            cycle = step.cycles[k]
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
                step.cycles[k] = (p, q, slot)
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
    run: _Run, steps: list[_Step], members: list[list[int]], labels: Any, allowed: Collection[int] | None
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
        swaps.append(step.done())
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
        run.seed,
        not run.stopped,
        run.holders,
        MappingProxyType({why: left[why] for why in REASONS if why in left}),
        MappingProxyType({c: (total[c], moved[c]) for c in rules.categories}),
    )

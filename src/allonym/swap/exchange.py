"""The exchange: sequences of swaps, every prefix of which is a release (P1 2.1, 2.3).

A slot is the place of one entity in one chunk. Every swap is a permutation of slots, so that all together keep how
often each entity occurs in the corpus; no slot moves twice, and no entity comes to a place where it is known already.
Clusters exchange separately (:mod:`allonym.swap.cluster_exchange`). Entities that did not move then look beyond their
cluster, and join rotations.
"""

from __future__ import annotations

from collections import Counter, abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np

from allonym.errors import UsageError
from allonym.swap.cluster_exchange import Standing, Step, Task, draw_task_steps
from allonym.swap.corpus import Corpus, Slot
from allonym.swap.partners import TRIES, Candidates, Frame, Pairs
from allonym.swap.rows import Spread, ThisProcess
from allonym.swap.validity import Ground, Rules, check_rules, group_tradable_chunks, make_pair_conditions, number_sets

OTHER_CLUSTER, NO_CATEGORY, NO_CLASS = "cluster not allowed", "lacks a category", "no other class in its cluster"
NO_MOVE, NOT_REACHED = "nothing that may move", "not reached"
REASONS = (OTHER_CLUSTER, NO_CATEGORY, NO_CLASS, NO_MOVE, NOT_REACHED)
"""Why a chunk with a swappable entity was left as it is."""
SAMPLE = 4 * TRIES
"""Most slots among which a partner in a rotation is looked for."""


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
    """Swaps on disjoint slots, in order: each prefix is a release, and includes those before it.

    Attributes:
        categories: exchanged ones.
        swaps: the steps.
        seed: of the draw.
        exhausted: whether nothing more could be swapped; false if a limit of the rules ended it.
        holders: chunks that hold an entity of these categories.
        left: of these, how many no swap changes, by reason (:data:`REASONS`).
    """

    categories: tuple[str, ...]
    swaps: tuple[Swap, ...] = field(repr=False)
    seed: int
    exhausted: bool
    holders: int = 0
    left: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def map_slots_to_donors(self, r: int | None = None) -> dict[Slot, Slot]:
        """Return slot to donor slot after the first ``r`` swaps; after all by default."""
        return dict(move for swap in self.swaps[:r] for move in swap.moves)

    def changed(self, r: int | None = None) -> tuple[int, ...]:
        """Return the chunks that the first ``r`` swaps change, sorted."""
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
        corpus: with the entities to swap.
        labels: (n,) each chunk's cluster.
        rules: conditions and limits of the exchange.
        seed: 0 or more.
        vectors: (n, d) unit rows, for ``weights="cosine"`` and ``min_cosine``.
        groups: per chunk; partners are of the same group, e.g. of one industry.
        allowed: clusters that take part, e.g. those that are concentrated enough; None: all.
        ground: ``Ground.of(corpus)``, if several sequences are drawn.
        spread: the workers, see :func:`allonym.scale.swap_workers`; None: this process. The same sequence.

    Returns:
        The sequence. With uniform weights, one partner and ``counts="min"`` each swap is drawn uniformly over all valid
        pairs that remain in all clusters (P1), in this process; else cluster by cluster, separately, chunk by chunk
        with its partners, in random order.

    Raises:
        UsageError: the rules do not fit the corpus, or vectors, labels or groups are missing or too few.
    """
    check_rules(corpus, rules)
    n = len(corpus.chunks)
    for name, values in (("labels", labels), ("vectors", vectors), ("groups", groups)):
        if values is not None and len(values) != n:
            raise UsageError(f"exchange: {name} must be as many as the {n} chunks, got {len(values)}")
    if vectors is None and rules.uses_vectors:
        raise UsageError("exchange: cosine weights and min_cosine need the chunks' vectors, got none")
    if not n:
        return Sequence(rules.categories, (), seed, True)
    frame = Frame.of(ground or Ground.of(corpus), rules, seed, vectors)
    run = _Run(frame, group_tradable_chunks(frame.ground, labels, rules, groups, allowed))
    if rules.draws_uniform_pairs:
        steps = run.trade_uniform_pairs()
    else:
        steps = run.draw_and_record_tasks([Task((0, b), m, rules.rounds) for b, m in enumerate(run.buckets)], spread)
    if rules.beyond and not run.is_cut:
        wide = group_tradable_chunks(frame.ground, np.zeros(n, np.int64), rules, groups, None)
        tasks = []
        for b, members in enumerate(wide):
            chunks = [i for i in members if i in run.bucket_of and run.has_movable_entity(i)]
            state = {i: run.free[i] for i in chunks}, {i: run.received.get(i, []) for i in chunks}
            tasks.append(Task((1, b), chunks, 1, *state, frozenset(run.traded)))
        steps += run.draw_and_record_tasks(tasks, None)
    if rules.cycles and not run.is_cut:
        run.add_rotations(steps)
    return run.make_sequence(steps, labels, allowed)


class _Run(Standing):
    """The state of one exchange while it is drawn. Mutable; it never leaves :func:`exchange`."""

    def __init__(self, frame: Frame, buckets: list[list[int]]) -> None:
        n = len(frame.ground.keys)
        super().__init__(frame, range(n), frame.make_generator())
        self.buckets = buckets
        self.bucket_of = {i: b for b, bucket in enumerate(buckets) for i in bucket}
        self.free = frame.list_movable_values(range(n))
        self.is_cut = False  # ended before every chunk had its turn
        self.holders = sum(map(bool, self.free.values()))

    # Cluster by cluster

    def draw_and_record_tasks(self, tasks: list[Task], spread: Spread | None) -> list[Step]:
        """Draw and note the steps of all tasks, mixed round by round. The largest tasks go to the workers first."""
        order = sorted(range(len(tasks)), key=lambda n: -len(tasks[n].chunks))
        workers, frame = spread or ThisProcess(), self.frame.without_texts()
        results = workers.map_items(draw_task_steps, frame, (tasks[n] for n in order))
        rounds = [rounds for _, rounds in sorted(zip(order, results, strict=True))]
        out: list[Step] = []
        for of_tasks in zip_longest(*rounds, fillvalue=()):
            steps = list(chain.from_iterable(of_tasks))
            for cycle in chain.from_iterable(steps):
                self.record_move(self.ground.corpus.value_at(cycle[0]).category, *cycle)
                self.record_pair(cycle[0].chunk, cycle[-1].chunk)
            out += self.dice.shuffle(steps)
        return out

    # Pairs, uniformly

    def trade_uniform_pairs(self) -> list[Step]:
        """Run P1's exchange: pairs one after the other, each uniform over those that remain; again in every round."""
        rules, categories, n = self.rules, self.rules.categories, len(self.free)
        out: list[Step] = []
        test = all if rules.need == "both" else any
        keys = self.ground.keys
        for _ in range(rules.rounds):
            # as Ground.number_cells, of the entities that may still move
            cells = [number_sets([{keys[i][v] for v in self.free[i].get(c, ())} for i in range(n)]) for c in categories]
            members = [[i for i in m if test(self.free[i].get(c) for c in categories)] for m in self.buckets]
            pairs = Pairs(members, *make_pair_conditions(self.frame.codes, cells, n), self.traded)
            before = len(out)
            while not self._is_limit_reached(len(out)) and (pair := pairs.draw_pair(self.dice)) is not None:
                if cycles := self.exchange_entities(*pair, categories):
                    out.append(cycles)
                    self.record_pair(*pair)
                    pairs.remove_chunks(*pair)
                else:
                    pairs.forbid_pair(*pair)
            self.is_cut = self._is_limit_reached(len(out))
            if self.is_cut or len(out) == before:
                break
        return out

    def _is_limit_reached(self, swap_count: int) -> bool:
        return self.rules.is_limit_reached(swap_count, len(self.changed), self.holders)

    # Rotations of three

    def add_rotations(self, steps: list[Step]) -> None:
        """Let entities that did not move join a pair that has traded, or two others; changes ``steps``."""
        corpus = self.ground.corpus
        traded: dict[tuple[int, str], list[tuple[Step, int]]] = {}
        for step in steps:
            for k, cycle in enumerate(step):
                b = self.bucket_of.get(cycle[0].chunk)
                if len(cycle) == 2 and b is not None and self.bucket_of.get(cycle[1].chunk) == b:
                    traded.setdefault((b, corpus.value_at(cycle[0]).category), []).append((step, k))
        new: list[Step] = []
        for b, bucket in enumerate(self.buckets):
            candidates: Candidates | None = None
            for c in self.rules.categories:
                slots = [Slot(i, v) for i in bucket for v in self.free[i].get(c, ())]
                if not slots:
                    continue
                candidates = candidates or Candidates(self.frame, bucket, self.generator)
                pairs = traded.get((b, c), [])
                for slot in self.dice.shuffle(slots):
                    if slot.value not in self.free[slot.chunk][c] or self._try_insert_into_pair(
                        slot, c, pairs, candidates
                    ):
                        continue
                    if cycle := self._make_and_record_rotation(slot, c, slots, candidates):
                        new.append([cycle])
        steps += self.dice.shuffle(new)

    def _can_trade_slots(self, a: Slot, b: Slot, candidates: Candidates) -> bool:
        return self.can_be_partners(a.chunk, b.chunk) and candidates.are_similar_enough(a.chunk, b.chunk)

    def _can_receive_donor(self, slot: Slot, donor: Slot) -> bool:
        """Whether the entity of ``donor`` may come to the slot, and fits it."""
        key = self.ground.keys[donor.chunk][donor.value]
        return self.can_receive_entity(slot.chunk, key) and self.is_fitting_donor(slot, donor)

    def _try_insert_into_pair(
        self, slot: Slot, category: str, pairs: list[tuple[Step, int]], candidates: Candidates
    ) -> bool:
        """Put the slot into a pair, if possible: p takes from q, q from the slot, the slot from p."""
        keys, i = self.ground.keys, slot.chunk
        key = keys[i][slot.value]
        for _ in range(min(TRIES, 2 * len(pairs))):
            n = self.dice.draw_below(len(pairs))
            step, k = pairs[n]
            p, q = step[k] if self.dice.draw_below(2) else step[k][::-1]
            if not (self._can_trade_slots(slot, p, candidates) and self._can_trade_slots(slot, q, candidates)):
                continue
            if not (self.is_fitting_donor(slot, p) and self.is_fitting_donor(q, slot)):
                continue
            received = self.received[q.chunk]
            position = received.index(keys[p.chunk][p.value])
            freed = received.pop(position)
            if self.can_receive_entity(q.chunk, key) and self.can_receive_entity(i, freed):
                received.append(key)
                self.free[i][category].remove(slot.value)
                self.received.setdefault(i, []).append(freed)
                self.changed.add(i)
                step[k] = (p, q, slot)
                pairs[n] = pairs[-1]
                pairs.pop()
                return True
            received.insert(position, freed)
        return False

    def _make_and_record_rotation(
        self, slot: Slot, category: str, slots: list[Slot], candidates: Candidates
    ) -> tuple[Slot, ...]:
        """Return a rotation of the slot and two others that did not move; empty if there is none."""
        # a sample of many: if one document owns most of the slots, trying all would take the square of them
        if len(slots) > SAMPLE:
            slots = [slots[self.dice.draw_below(len(slots))] for _ in range(SAMPLE)]
        free = [s for s in slots if s.value in self.free[s.chunk][category]]
        others = dict.fromkeys(s for s in free if self._can_trade_slots(slot, s, candidates))
        some = self.dice.shuffle(others)[:TRIES]
        givers = [s for s in some if self._can_receive_donor(s, slot)]
        for j in [s for s in some if self._can_receive_donor(slot, s)]:
            for k in givers:
                if j.chunk != k.chunk and self._can_trade_slots(j, k, candidates) and self._can_receive_donor(j, k):
                    self.record_move(category, slot, j, k)
                    return (slot, j, k)
        return ()

    # The result

    def make_sequence(self, steps: list[Step], labels: Any, allowed: Collection[int] | None) -> Sequence:
        """Return the sequence up to the limits of the rules, with the reasons why chunks were left."""
        rules, ground = self.rules, self.ground
        swaps: list[Swap] = []
        changed: set[int] = set()
        for step in steps:
            if rules.is_limit_reached(len(swaps), len(changed), self.holders):
                break
            moves = tuple((s, c[(k + 1) % len(c)]) for c in step for k, s in enumerate(c))
            swaps.append(Swap(tuple(sorted({s.chunk for s, _ in moves})), moves))
            changed.update(swaps[-1].chunks)
        slots = ground.slots
        classes = [{c: {self.classes[i] for i in b if slots[c][i]} for c in rules.categories} for b in self.buckets]

        def find_reason(i: int, categories: list[str]) -> str:
            b = self.bucket_of.get(i)
            if allowed is not None and labels[i] not in allowed:
                return OTHER_CLUSTER
            if b is None:
                return NO_CATEGORY
            if i not in self.changed and not any(classes[b][c] - {self.classes[i]} for c in categories):
                return NO_CLASS
            return NOT_REACHED if self.is_cut or i in self.changed else NO_MOVE

        reasons: Counter[str] = Counter()
        for i in range(len(ground.keys)):
            categories = [c for c in rules.categories if slots[c][i]]
            if categories and i not in changed:
                reasons[find_reason(i, categories)] += 1
        return Sequence(
            rules.categories,
            tuple(swaps),
            self.frame.seed,
            not self.is_cut and len(swaps) == len(steps),
            self.holders,
            MappingProxyType({reason: reasons[reason] for reason in REASONS if reason in reasons}),
        )

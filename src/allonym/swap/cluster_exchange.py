"""The exchange within one cluster: chunk by chunk with drawn partners, or slot by slot with matched slots.

Clusters do not share chunks, so each is a separate task with its own random numbers: which worker draws it, and when,
does not matter. :mod:`allonym.swap.exchange` then deals with the chunks that found no partner.

Slots of one category and one cluster are dealt into blocks at random. In a block all pairs are weighed at once: how
similar the chunks are, how well the entities fit each other's place, and a random part (Gumbel) that makes every draw a
sample in proportion to exp(score). Pairs are taken from the best on, each slot once; the rest is dealt again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allonym.swap.corpus import Slot
from allonym.swap.fluency import CLOSE
from allonym.swap.partners import Candidates, Dice, Frame, Free, Pool
from allonym.swap.validity import GRAMMAR

Step = list[tuple[Slot, ...]]
"""An unfinished swap: cycles of slots, each slot taking from the next, the last from the first."""
BLOCK = 1536
"""Slots that are weighed against each other at once."""
CANDIDATES = 48
"""Partners that are kept of each slot in a block."""


@dataclass(frozen=True, slots=True)
class Task:
    """The exchange within one bucket of chunks.

    Attributes:
        number: fixes its random numbers.
        chunks: sorted; rounds: passes.
        free, received: values that may move, and the keys that came to each chunk; None: all, and nothing.
        traded: pairs of chunks that have traded.
    """

    number: tuple[int, ...]
    chunks: Sequence[int] = field(repr=False)
    rounds: int
    free: Free | None = field(repr=False, default=None)
    received: Mapping[int, Sequence[int]] = field(repr=False, default_factory=dict)
    traded: frozenset[tuple[int, int]] = field(repr=False, default=frozenset())


def draw_task_steps(frame: Frame, task: Task) -> list[list[Step]]:
    """Return the steps of each round."""
    if len(task.chunks) < 2:
        return []
    run = _ClusterExchange(frame, task)
    return run.trade_by_slots() if frame.rules.matches_slots else run.trade_by_chunks()


class Standing:
    """The state of an exchange of some chunks: the entities that may still move, and what came to each chunk.

    Args:
        frame: of the exchange.
        chunks: all that the exchange is about.
        generator: draws.
    """

    def __init__(self, frame: Frame, chunks: Sequence[int], generator: np.random.Generator) -> None:
        self.frame, self.ground, self.rules = frame, frame.ground, frame.rules
        self.generator, self.dice = generator, Dice(generator)
        self.free: Free = {}
        self.received: dict[int, list[int]] = {}
        self.traded: set[tuple[int, int]] = set()
        self.changed: set[int] = set()
        rows = np.asarray(chunks, np.int64)
        self.classes: dict[int, int] = dict(zip(chunks, frame.ground.classes[rows].tolist(), strict=True))
        codes = zip(*(code[rows].tolist() for code in frame.codes), strict=True)
        self._codes: dict[int, tuple[int, ...]] = dict(zip(chunks, codes, strict=True))
        self._fit = frame.ground.get_entity_fit() if frame.rules.matches_slots else None
        self._fluency = frame.ground.get_fluency() if frame.rules.matches_slots else None

    def has_movable_entity(self, i: int) -> bool:
        """Whether any entity of the chunk may still move."""
        return any(self.free[i].values())

    def can_receive_entity(self, i: int, key: int) -> bool:
        """Whether the entity may come to the chunk: unknown to its class, and unrelated to those that came before."""
        related = self.ground.related[key]
        if self.rules.returns:
            if not related.isdisjoint(self.ground.keys[i]):
                return False
        elif key in self.ground.known[self.classes[i]]:
            return False
        received = self.received.get(i)
        return not received or related.isdisjoint(received)

    def is_fitting_donor(self, slot: Slot, donor: Slot) -> bool:
        """Whether the entity of ``donor`` fits the slot well enough."""
        if (fit := self._fit) is None:
            return True
        appearances = fit.appearances[slot.chunk][slot.value], fit.appearances[donor.chunk][donor.value]
        return fit.compute_fit(*appearances) >= self.rules.min_fit and self.reads_well(slot, donor)

    def reads_well(self, slot: Slot, donor: Slot) -> bool:
        """Whether the text with the donor at the slot is hardly less probable than the original, and means the like."""
        if self._fluency is None or self._fit is None or slot not in self._fluency.contexts:
            return True
        appearances = self._fit.appearances[slot.chunk][slot.value], self._fit.appearances[donor.chunk][donor.value]
        if self._fit.compute_fit(*appearances) < CLOSE:
            return False
        return self._fluency.measure_loss(slot, donor) <= self.rules.max_loss

    def can_be_partners(self, i: int, j: int) -> bool:
        """Whether the chunks differ in all in which partners must."""
        return all(a != b for a, b in zip(self._codes[i], self._codes[j], strict=True))

    def record_pair(self, i: int, j: int) -> None:
        """Note that two chunks have traded."""
        self.traded.add((min(i, j), max(i, j)))

    def exchange_entities(self, i: int, j: int, categories: Sequence[str], strict: bool = False) -> Step:
        """Exchange as many entities of two chunks as possible; which ones, if one has more, is random.

        Of the entities that may replace another, the one comes whose name is written most alike; with ``strict`` none
        of another number or first letter (``stores`` for ``store``, ``edge`` for ``Corvane``).
        """
        keys, shapes = self.ground.keys, self.ground.shapes
        out: Step = []
        for c in categories:
            values, other_values = self.free[i].get(c), self.free[j].get(c)
            if not values or not other_values:
                continue
            going = [a for a in values if self.can_receive_entity(j, keys[i][a])]
            coming = [b for b in other_values if self.can_receive_entity(i, keys[j][b])] if going else []
            if not coming:
                continue
            coming = self.dice.shuffle(coming)
            for a in self.dice.shuffle(going):
                if not self.can_receive_entity(j, keys[i][a]):
                    continue
                differences = {b: shapes[i][a] ^ shapes[j][b] for b in coming if self.can_receive_entity(i, keys[j][b])}
                fitting = [b for b, bits in differences.items() if not (strict and bits & GRAMMAR)]
                if not fitting:
                    continue
                b = min(fitting, key=lambda b: differences[b].bit_count())
                coming.remove(b)
                self.record_move(c, Slot(i, a), Slot(j, b))
                out.append((Slot(i, a), Slot(j, b)))
        return out

    def record_move(self, category: str, *cycle: Slot) -> None:
        """Note that each slot takes the entity of the next."""
        keys = self.ground.keys
        for slot, donor in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            self.free[slot.chunk][category].remove(slot.value)
            self.received.setdefault(slot.chunk, []).append(keys[donor.chunk][donor.value])
            self.changed.add(slot.chunk)


class _ClusterExchange(Standing):
    """The exchange of one bucket while it is drawn."""

    def __init__(self, frame: Frame, task: Task) -> None:
        super().__init__(frame, task.chunks, frame.make_generator(*task.number))
        free = frame.list_movable_values(task.chunks) if task.free is None else task.free
        self.free = {i: {c: list(v) for c, v in f.items()} for i, f in free.items()}
        self.received = {i: list(keys) for i, keys in task.received.items()}
        self.traded = set(task.traded)
        self.bucket, self.rounds = list(task.chunks), task.rounds

    # Chunk by chunk

    def trade_by_chunks(self) -> list[list[Step]]:
        """Let each chunk in turn trade with partners. If several rounds go on until all entities are gone, the first
        takes only names that fit the grammar."""
        rules, bucket = self.rules, self.bucket
        candidates = Candidates(self.frame, bucket, self.generator)
        pools = {c: candidates.make_pool([i for i in bucket if self.free[i].get(c)]) for c in rules.categories}
        together = [rules.categories] if rules.partners == "same" else [(c,) for c in rules.categories]
        careful = rules.counts == "all" and self.rounds > 1
        out: list[list[Step]] = []
        for number in range(self.rounds):
            strict = careful and not number
            used: set[tuple[int, str]] = set()
            steps: list[Step] = []
            for i in self.dice.shuffle(i for i in bucket if self.has_movable_entity(i)):
                cycles = [c for some in together for c in self._trade_chunk(i, some, candidates, pools, used, strict)]
                if cycles:
                    steps.append(cycles)
            out.append(steps)
            if not steps and not strict:
                break
        return out

    def _trade_chunk(
        self,
        i: int,
        categories: tuple[str, ...],
        candidates: Candidates,
        pools: Mapping[str, Pool],
        used: set[tuple[int, str]],
        strict: bool,
    ) -> Step:
        """Trade one chunk's entities of these categories: with one partner, or with as many as it takes."""
        once = self.rules.counts == "min"
        out: Step = []
        for c in categories:
            if once and (i, categories[0]) in used:
                break
            if not self.free[i].get(c):
                continue
            for j in candidates.draw_partners_for(i, pools[c], self.dice):
                if (min(i, j), max(i, j)) in self.traded or not self.can_be_partners(i, j):
                    continue
                if once and (j, categories[0]) in used:
                    continue
                cycles = self.exchange_entities(i, j, categories, strict)
                if not cycles:
                    continue
                out += cycles
                self.record_pair(i, j)
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

    def trade_by_slots(self) -> list[list[Step]]:
        """Pair slots of a category, the best pairs first; the rest again in the next round.

        All that a chunk trades in a round is one step, its own or that of the partner whose turn came before.
        """
        matcher = Matcher(self.frame, self.generator)
        out: list[list[Step]] = []
        while len(out) < self.rounds and (steps := self._trade_and_record_slots_once(matcher)):
            out.append(steps)
        return out

    def _trade_and_record_slots_once(self, matcher: Matcher) -> list[Step]:
        """Trade slots in one round, recording moves and pairs; return its steps."""
        keys = self.ground.keys
        cycles_of: dict[int, dict[tuple[Slot, ...], None]] = {}
        for c in self.rules.categories:
            slots = [Slot(i, v) for i in self.bucket for v in self.free[i].get(c, ())]
            used = [False] * len(slots)
            current: set[tuple[int, int]] = set()  # pairs that may trade more than one entity of the category
            for a, b in matcher.iterate_slot_pairs(slots):
                (i, value), (j, other) = slots[a], slots[b]
                pair = (min(i, j), max(i, j))
                if used[a] or used[b] or (pair in self.traded and pair not in current):
                    continue
                if (
                    self.can_receive_entity(j, keys[i][value])
                    and self.can_receive_entity(i, keys[j][other])
                    and self.reads_well(slots[a], slots[b])
                    and self.reads_well(slots[b], slots[a])
                ):
                    used[a] = used[b] = True
                    current.add(pair)
                    self.traded.add(pair)
                    cycle: tuple[Slot, ...] = (slots[a], slots[b])
                    self.record_move(c, *cycle)
                    cycles_of.setdefault(i, {})[cycle] = cycles_of.setdefault(j, {})[cycle] = None
        out: list[Step] = []
        for i in self.dice.shuffle(cycles_of):
            if cycles := list(cycles_of[i]):
                out.append(cycles)
                for cycle in cycles:
                    for slot in cycle:
                        cycles_of[slot.chunk].pop(cycle, None)
        return out


class Matcher:
    """Weighs slots against each other.

    Args:
        frame: of the exchange; its rules ``weights``, ``temperature``, ``fit``, ``min_fit``, ``min_cosine`` and
            ``count_penalty`` count.
        generator: deals, and draws the random part.
    """

    def __init__(self, frame: Frame, generator: np.random.Generator) -> None:
        self._frame, self._generator = frame, generator
        self._fit = frame.ground.get_entity_fit()
        self._counts = frame.counts.astype(np.float64)

    def iterate_slot_pairs(self, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
        """Yield pairs of slots, as indices into ``slots``, in the order in which to try them."""
        chunks = np.array([s.chunk for s in slots], np.int64)
        appearances = np.array([self._fit.appearances[s.chunk][s.value] for s in slots], np.int64)
        order = self._generator.permutation(len(slots))
        for block in np.array_split(order, max(1, -(-len(order) // BLOCK))):
            if len(block) > 1:
                for a, b in self._rank_pairs(chunks[block], appearances[block]):
                    yield int(block[a]), int(block[b])

    def _rank_pairs(self, chunks: Any, appearances: Any) -> list[tuple[int, int]]:
        """Return each slot's best partners in a block, as indices into it, the best pairs first."""
        rules, vectors, n = self._frame.rules, self._frame.vectors, len(chunks)
        # in float64: the order must not depend on how the machine sums
        fits = self._fit.compute_pairwise_fits(appearances)
        scores = fits * rules.fit
        if vectors is not None:
            rows = np.asarray(vectors[chunks], np.float64)
            cosines = rows @ rows.T
            if rules.weights == "cosine":
                scores += cosines
            if rules.min_cosine > -1.0:
                scores[cosines < rules.min_cosine] = -np.inf
        if rules.min_fit > -math.inf:
            scores[fits < rules.min_fit] = -np.inf
        scores /= rules.temperature
        if rules.count_penalty:
            counts = self._counts[chunks]
            scores -= rules.count_penalty * np.abs(counts[:, None] - counts[None])
        scores += self._generator.gumbel(size=(n, n))
        for code in self._frame.codes:
            block_codes = code[chunks]
            scores[block_codes[:, None] == block_codes[None]] = -np.inf
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

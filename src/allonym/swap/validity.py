"""Which chunks may trade which entities: the conditions of a valid exchange (P1 2.1 and 2.3).

Two chunks may trade the categories A_s where (1) their documents differ in the protected value, and so are two; (2)
their vectors are of one cluster; (3) neither was used in this round; (4) both hold entities of each swapped category,
or of one of them at least; (5) they differ in the swapped categories; (6) they differ in another one, or else the
exchange only numbers them anew; (7) they agree, or differ, in the categories in which they must (Gomatam et al. 2005).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from allonym.errors import UnknownNameError, UsageError
from allonym.labels import TAXONOMY
from allonym.swap.alike import relatives
from allonym.swap.categories import label_of
from allonym.swap.corpus import Corpus
from allonym.swap.likeness import Likeness

GRAMMAR = 0b1100
"""The bits of :func:`shape` that the sentence around a name depends on: number, and small or capital letter."""
_UNNAMED = frozenset({"DATE_TIME", "NUMERIC"})
"""Families whose values are alike only where they are equal."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a valid exchange is, and how far it goes. The defaults are those of P1: pairs, one pass.

    Attributes:
        categories: exchanged ones (A_s).
        need: ``both``: partners hold all of them; ``any``: they share one.
        partners: ``same``: one partner for all categories; ``per-category``: another for each, so that no combination
            of entities moves as a whole.
        counts: ``min``: a pair trades as many entities as the smaller side has; ``all``: a chunk goes on to further
            partners until all its entities are gone (one to many).
        unswapped_differ: partners must differ in a category that is not exchanged.
        agree, differ: categories in which partners must hold the same, or not the same, entities.
        returns: an entity may come to a class that knows it already, as in P1; else such a donor is forbidden, also
            where it is only alike (:mod:`allonym.swap.alike`).
        weights: ``uniform`` within a cluster, or ``cosine``: proportional to exp(cos / temperature).
        temperature: greater than 0.
        fit: what the fit of an entity to the other's place (:mod:`allonym.swap.likeness`) weighs beside the cosine of
            the chunks; 0: it does not count. Slots look for each other then, not chunks; so it counts only with
            ``counts="all"`` and ``partners="per-category"``.
        min_fit: least fit, 1 for equals; what finds none stays and falls back.
        min_cosine: least cosine of partners, from -1 to 1; above -1 it needs vectors.
        count_penalty: taken off cos / temperature per entity that one partner has more than the other.
        rounds: passes; each begins with all chunks unused and never repeats a pair.
        target_share: share of the chunks with a swappable entity at which the exchange stops.
        cycles: rotations of three for what pairs leave.
        beyond: what finds no partner in its cluster may look for the nearest ones in all clusters.
        max_swaps: most swaps; None: no limit.
    """

    categories: tuple[str, ...]
    need: str = "both"
    partners: str = "same"
    counts: str = "min"
    unswapped_differ: bool = True
    agree: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    returns: bool = False
    weights: str = "uniform"
    temperature: float = 0.1
    fit: float = 0.0
    min_fit: float = -math.inf
    min_cosine: float = -1.0
    count_penalty: float = 0.0
    rounds: int = 1
    target_share: float = 1.0
    cycles: bool = False
    beyond: bool = False
    max_swaps: int | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("need", self.need, ("both", "any")),
            ("partners", self.partners, ("same", "per-category")),
            ("counts", self.counts, ("min", "all")),
            ("weights", self.weights, ("uniform", "cosine")),
        ):
            if value not in allowed:
                raise UnknownNameError(f"value of {name}", value, allowed, "rules of exchange")
        if not self.categories:
            raise UsageError("rules of exchange: at least one category must be exchanged")
        for name, number, low, high in (
            ("temperature", self.temperature, 1e-9, 1e9),
            ("fit", self.fit, 0.0, 1e9),
            ("min_cosine", self.min_cosine, -1.0, 1.0),
            ("count_penalty", self.count_penalty, 0.0, 1e9),
            ("rounds", self.rounds, 1, 10**6),
            ("target_share", self.target_share, 0.0, 1.0),
        ):
            if not low <= number <= high:
                raise UsageError(f"rules of exchange: {name} must be from {low:g} to {high:g}, got {number!r}")
        if self.max_swaps is not None and self.max_swaps < 0:
            raise UsageError(f"rules of exchange: max_swaps must be 0 or more, got {self.max_swaps}")

    @property
    def by_pairs(self) -> bool:
        """Whether pairs of chunks are drawn uniformly over all that are valid."""
        plain = self.weights == "uniform" and not self.count_penalty and self.min_cosine <= -1.0
        return plain and self.partners == "same" and self.counts == "min"

    @property
    def by_slots(self) -> bool:
        """Whether entities look for places, not chunks for partners."""
        return self.fit > 0 and self.partners == "per-category" and self.counts == "all"


@dataclass(frozen=True, slots=True, repr=False)
class Ground:
    """What an exchange asks about a corpus again and again. Made once, it serves every sequence.

    Attributes:
        corpus: as it was read.
        classes: (n,) code of each chunk's protected value.
        keys: per chunk, per value, the number of its key.
        shapes: per chunk, per value, four bits that say how its name is written: see :func:`shape`.
        related: per key number, those of the keys that count as the same.
        known: per class, the key numbers that may not come there: what its documents hold, what is alike, and what is
            like the protected value itself.
        slots: category to, per chunk, the values of that category.
    """

    corpus: Corpus
    classes: Any
    keys: tuple[tuple[int, ...], ...]
    shapes: tuple[tuple[int, ...], ...]
    related: tuple[frozenset[int], ...]
    known: tuple[frozenset[int], ...]
    slots: Mapping[str, tuple[tuple[int, ...], ...]]
    _cells: dict[str, Any] = field(default_factory=dict)
    _likeness: list[Likeness] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus) -> Ground:
        """Reads the corpus once; time is linear in its values."""
        codes: dict[str, int] = {}
        per_document = [codes.setdefault(c, len(codes)) for c in corpus.classes]
        classes = np.array([per_document[c.document] for c in corpus.chunks], np.int64)
        numbers: dict[tuple[str, bool], int] = {}
        plain = {c: _unnamed(c) for c in {v.category for chunk in corpus.chunks for v in chunk.values}}
        keys = tuple(
            tuple(numbers.setdefault((v.key, plain[v.category]), len(numbers)) for v in chunk.values)
            for chunk in corpus.chunks
        )
        names = [k for k, _ in numbers]
        alike = relatives([*names, *codes], [*(exact for _, exact in numbers), *(False for _ in codes)])
        known: list[set[int]] = [set(alike[len(names) + c]) for c in range(len(codes))]
        for i, own in enumerate(keys):
            for k in own:
                if k not in known[classes[i]]:
                    known[classes[i]] |= alike[k]
                    known[classes[i]].add(k)
        slots: dict[str, list[tuple[int, ...]]] = {c: [()] * len(corpus.chunks) for c in corpus.categories}
        for i, chunk in enumerate(corpus.chunks):
            held: dict[str, list[int]] = {}
            for at, value in enumerate(chunk.values):
                held.setdefault(value.category, []).append(at)
            for category, places in held.items():
                if category in slots:
                    slots[category][i] = tuple(places)
        return cls(
            corpus,
            classes,
            keys,
            tuple(tuple(shape(v.forms[0] if v.forms else v.key) for v in chunk.values) for chunk in corpus.chunks),
            tuple(frozenset(j for j in a if j < len(names)) for a in alike[: len(names)]),
            tuple(frozenset(k) for k in known),
            {c: tuple(s) for c, s in slots.items()},
        )

    def likeness(self) -> Likeness:
        """How well the corpus's entities fit each other's places; made at the first call."""
        if not self._likeness:
            self._likeness.append(Likeness.of(self.corpus))
        return self._likeness[0]

    def cells(self, category: str) -> Any:
        """(n,) int64: a number for the set of entities that each chunk holds in the category; 0 for none."""
        if category not in self._cells:
            keys = self.keys
            self._cells[category] = coded([{keys[i][v] for v in s} for i, s in enumerate(self.slots[category])])
        return self._cells[category]


def _unnamed(category: str) -> bool:
    label = label_of(category)
    return label in TAXONOMY and TAXONOMY.lineage(label)[-1] in _UNNAMED


@lru_cache(maxsize=65536)
def shape(form: str) -> int:
    """How a name is written, as bits: several words, all capitals, begins with a small letter, ends like a plural.

    Where a chunk has a choice, entities whose names are written alike stand for each other.
    """
    letters = [c for c in form if c.isalpha()]
    return (
        (" " in form)
        | bool(letters and all(c.isupper() for c in letters)) << 1
        | form[:1].islower() << 2
        | (form.endswith("s") and not form.endswith("ss")) << 3
    )


def coded(sets: Sequence[Collection[int]]) -> Any:
    """(n,) int64: equal numbers for equal sets, 0 for the empty one."""
    seen: dict[tuple[int, ...], int] = {(): 0}
    return np.array([seen.setdefault(tuple(sorted(s)), len(seen)) for s in sets], np.int64)


def joined(codes: Sequence[Any], n: int) -> Any:
    """(n,) int64: equal numbers where all the codes are equal."""
    out = np.zeros(n, np.int64)
    for code in codes:
        _, out = np.unique(out * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
        out = out.reshape(n)
    return out


def check(corpus: Corpus, rules: Rules) -> None:
    """Raises :class:`UsageError` where a category is not one of the corpus, or must not be exchanged."""
    for category in (*rules.categories, *rules.agree, *rules.differ):
        if category not in corpus.categories:
            raise UnknownNameError("category", category, corpus.categories, "rules of exchange")
    for category in rules.categories:
        state = corpus.categories[category]
        if state in ("fixed", "change"):
            raise UsageError(f"rules of exchange: {category} is {state}; only categories to swap, or free, may move")
    for category in (*rules.agree, *rules.differ):
        if category in rules.categories:
            raise UsageError(f"rules of exchange: {category} is exchanged, so partners can neither agree nor differ")


def buckets(
    ground: Ground,
    labels: Any,
    rules: Rules,
    groups: Sequence[str] | None,
    allowed: Collection[int] | None,
) -> list[list[int]]:
    """The chunks that may trade at all, parted by cluster, group of donors, and what partners must agree in.

    Chunks that hold none of the swapped categories (``both``: not all of them) are left out. Each list is sorted.
    """
    corpus, n = ground.corpus, len(ground.corpus.chunks)
    names: dict[str, int] = {}
    parts = [np.unique(np.asarray(labels), return_inverse=True)[1].reshape(n)]
    if groups is not None:
        parts.append(np.array([names.setdefault(g, len(names)) for g in groups], np.int64))
    parts += [ground.cells(c) for c in rules.agree]
    where = joined(parts, n)
    test = all if rules.need == "both" else any
    held = [ground.slots[c] for c in rules.categories]
    open_ = None if allowed is None else frozenset(int(a) for a in allowed)
    out: dict[int, list[int]] = {}
    for i in range(len(corpus.chunks)):
        if test(s[i] for s in held) and (open_ is None or int(labels[i]) in open_):
            out.setdefault(int(where[i]), []).append(i)
    return [out[b] for b in sorted(out)]


def differing(ground: Ground, rules: Rules) -> list[Any]:
    """Codes, (n,) each, in all of which partners must differ, beside the swapped categories: conditions 1, 6 and 7."""
    n = len(ground.corpus.chunks)
    out = [ground.classes]
    if rules.unswapped_differ:
        others = [c for c in ground.corpus.categories if c not in rules.categories]
        out.append(joined([ground.cells(c) for c in others], n))
    return out + [ground.cells(c) for c in rules.differ]


def masks(ground: Ground, rules: Rules) -> Any:
    """(n,) int64: which of the swapped categories each chunk holds, one bit for each."""
    out = np.zeros(len(ground.corpus.chunks), np.int64)
    for bit, category in enumerate(rules.categories):
        out |= (ground.cells(category) > 0).astype(np.int64) << bit
    return out


def valid_pairs(
    corpus: Corpus,
    labels: Sequence[int],
    rules: Rules,
    *,
    groups: Sequence[str] | None = None,
    allowed: Collection[int] | None = None,
) -> Iterator[tuple[int, int]]:
    """All pairs of chunks (i < j) that meet the conditions; as many as there are, so for small corpora and tests."""
    check(corpus, rules)
    ground = Ground.of(corpus)
    n = len(corpus.chunks)
    apart = [*differing(ground, rules), joined([ground.cells(c) for c in rules.categories], n)]
    shared = masks(ground, rules)
    pairs = []
    for members in buckets(ground, labels, rules, groups, allowed):
        for at, i in enumerate(members):
            rest = np.array(members[at + 1 :], np.int64)
            ok = (shared[rest] & shared[i]) != 0
            for code in apart:
                ok &= code[rest] != code[i]
            pairs += [(i, int(j)) for j in rest[ok]]
    return iter(sorted(pairs))

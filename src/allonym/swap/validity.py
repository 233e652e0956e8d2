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
from allonym.swap.categories import get_category_label
from allonym.swap.corpus import Corpus
from allonym.swap.entity_fit import EntityFit
from allonym.swap.related_names import find_related

GRAMMAR = 0b1100
"""The bits of :func:`encode_name_shape` that matter for grammar: number, and small or capital letter."""
_EXACT_FAMILIES = frozenset({"DATE_TIME", "NUMERIC"})
"""Families whose values are the same only if they are equal."""
_CHOICES = {
    "need": ("both", "any"),
    "partners": ("same", "per-category"),
    "counts": ("min", "all"),
    "weights": ("uniform", "cosine"),
}
_RANGES = {
    "temperature": (1e-9, 1e9),
    "fit": (0.0, 1e9),
    "min_cosine": (-1.0, 1.0),
    "count_penalty": (0.0, 1e9),
    "rounds": (1, 10**6),
    "target_share": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The conditions of a valid exchange, and its limits. The defaults are those of P1: pairs, one pass.

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
            where it is only related (:mod:`allonym.swap.related_names`).
        weights: ``uniform`` within a cluster, or ``cosine``: proportional to exp(cos / temperature).
        temperature: greater than 0.
        fit: weight of the fit of an entity to the other's place (:mod:`allonym.swap.entity_fit`) beside the cosine of
            the chunks; 0: it does not count. Above 0 slots are matched, not chunks, which is possible only with
            ``counts="all"`` and ``partners="per-category"``.
        min_fit: least fit, 1 for equals; entities without a match stay and fall back.
        min_cosine: least cosine of partners, from -1 to 1; above -1 it needs vectors.
        count_penalty: taken off cos / temperature per entity that one partner has more than the other.
        rounds: passes; each begins with all chunks unused and never repeats a pair.
        target_share: share of the chunks with a swappable entity at which the exchange stops.
        cycles: rotations of three for entities that pairs leave.
        beyond: chunks without a partner in their cluster may look for the nearest ones in all clusters.
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
        for name, allowed in _CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise UnknownNameError(f"value of {name}", value, allowed, "rules of exchange")
        if not self.categories:
            raise UsageError("rules of exchange: at least one category must be exchanged")
        for name, (low, high) in _RANGES.items():
            if not low <= (value := getattr(self, name)) <= high:
                raise UsageError(f"rules of exchange: {name} must be from {low:g} to {high:g}, got {value!r}")
        if self.max_swaps is not None and self.max_swaps < 0:
            raise UsageError(f"rules of exchange: max_swaps must be 0 or more, got {self.max_swaps}")

    @property
    def draws_pairs(self) -> bool:
        """Whether pairs of chunks are drawn uniformly over all that are valid."""
        uniform = self.weights == "uniform" and not self.count_penalty and self.min_cosine <= -1.0
        return uniform and self.partners == "same" and self.counts == "min"

    @property
    def matches_slots(self) -> bool:
        """Whether slots are matched with slots, not chunks with chunks."""
        return self.fit > 0 and self.partners == "per-category" and self.counts == "all"

    @property
    def uses_vectors(self) -> bool:
        """Whether cosines count."""
        return self.weights == "cosine" or self.min_cosine > -1.0

    def is_limit_reached(self, swaps: int, changed: int, holders: int) -> bool:
        """Whether ``swaps`` swaps, or ``changed`` of ``holders`` chunks, are as many as there may be."""
        if self.max_swaps is not None and swaps >= self.max_swaps:
            return True
        return self.target_share < 1.0 and changed >= self.target_share * holders


@dataclass(frozen=True, slots=True, repr=False)
class Ground:
    """Facts about a corpus that every exchange needs. It is computed once for all sequences.

    Attributes:
        corpus: as it was read.
        classes: (n,) code of each chunk's protected value.
        keys: per chunk, per value, the number of its key.
        shapes: per chunk, per value, four bits of how its name is written: see :func:`encode_name_shape`.
        related: per key number, those of the keys that count as the same.
        known: per class, the key numbers that may not come there: those in its documents, those related to them, and
            those related to the protected value itself.
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
    _fit: list[EntityFit] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus) -> Ground:
        """Read the corpus once; time is linear in its values."""
        codes: dict[str, int] = {}
        per_document = [codes.setdefault(c, len(codes)) for c in corpus.classes]
        classes = np.array([per_document[c.document] for c in corpus.chunks], np.int64)
        numbers: dict[tuple[str, bool], int] = {}
        exact = {c: _is_exact(c) for c in {v.category for chunk in corpus.chunks for v in chunk.values}}
        keys = tuple(
            tuple(numbers.setdefault((v.key, exact[v.category]), len(numbers)) for v in chunk.values)
            for chunk in corpus.chunks
        )
        count = len(numbers)
        related = find_related([*(k for k, _ in numbers), *codes], [*(e for _, e in numbers), *(False for _ in codes)])
        known_sets: list[set[int]] = [set(related[count + c]) for c in range(len(codes))]
        for i, chunk_keys in enumerate(keys):
            for k in chunk_keys:
                if k not in known_sets[classes[i]]:
                    known_sets[classes[i]] |= related[k]
                    known_sets[classes[i]].add(k)
        return cls(
            corpus,
            classes,
            keys,
            tuple(tuple(encode_name_shape((*v.forms, v.key)[0]) for v in chunk.values) for chunk in corpus.chunks),
            tuple(frozenset(j for j in group if j < count) for group in related[:count]),
            tuple(frozenset(k) for k in known_sets),
            {
                c: tuple(tuple(i for i, v in enumerate(chunk.values) if v.category == c) for chunk in corpus.chunks)
                for c in corpus.categories
            },
        )

    def entity_fit(self) -> EntityFit:
        """Return how well the corpus's entities fit each other's places; computed at the first call."""
        if not self._fit:
            self._fit.append(EntityFit.of(self.corpus))
        return self._fit[0]

    def cells(self, category: str) -> Any:
        """Return (n,) int64: a number for the set of entities that each chunk holds in the category; 0 for none."""
        if category not in self._cells:
            keys = self.keys
            self._cells[category] = number_sets([{keys[i][v] for v in s} for i, s in enumerate(self.slots[category])])
        return self._cells[category]


def _is_exact(category: str) -> bool:
    label = get_category_label(category)
    return label in TAXONOMY and TAXONOMY.lineage(label)[-1] in _EXACT_FAMILIES


@lru_cache(maxsize=65536)
def encode_name_shape(form: str) -> int:
    """Return how a name is written, as bits: several words, all capitals, small first letter, end of a plural.

    If a chunk has a choice, entities whose names are written alike replace each other.
    """
    letters = [c for c in form if c.isalpha()]
    return (
        (" " in form)
        | bool(letters and all(c.isupper() for c in letters)) << 1
        | form[:1].islower() << 2
        | (form.endswith("s") and not form.endswith("ss")) << 3
    )


def number_sets(sets: Sequence[Collection[int]]) -> Any:
    """Return (n,) int64: equal numbers for equal sets, 0 for the empty one."""
    numbers: dict[tuple[int, ...], int] = {(): 0}
    return np.array([numbers.setdefault(tuple(sorted(s)), len(numbers)) for s in sets], np.int64)


def combine_codes(codes: Sequence[Any], n: int) -> Any:
    """Return (n,) int64: equal numbers where all the codes are equal."""
    out = np.zeros(n, np.int64)
    for code in codes:
        _, out = np.unique(out * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
        out = out.reshape(n)
    return out


def check_rules(corpus: Corpus, rules: Rules) -> None:
    """Raise :class:`UsageError` if a category is not one of the corpus, or must not be exchanged."""
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


def group_into_buckets(
    ground: Ground,
    labels: Any,
    rules: Rules,
    groups: Sequence[str] | None,
    allowed: Collection[int] | None,
) -> list[list[int]]:
    """Return the chunks that may trade, by cluster, group of donors, and the categories in which partners must agree.

    Chunks that hold none of the swapped categories (``both``: not all of them) are left out. Each list is sorted.
    """
    n = len(ground.corpus.chunks)
    names: dict[str, int] = {}
    parts = [np.unique(np.asarray(labels), return_inverse=True)[1].reshape(n)]
    if groups is not None:
        parts.append(np.array([names.setdefault(g, len(names)) for g in groups], np.int64))
    parts += [ground.cells(c) for c in rules.agree]
    bucket_of = combine_codes(parts, n)
    test = all if rules.need == "both" else any
    slots = [ground.slots[c] for c in rules.categories]
    open_clusters = None if allowed is None else frozenset(int(a) for a in allowed)
    out: dict[int, list[int]] = {}
    for i in range(n):
        if test(s[i] for s in slots) and (open_clusters is None or int(labels[i]) in open_clusters):
            out.setdefault(int(bucket_of[i]), []).append(i)
    return [out[b] for b in sorted(out)]


def list_differing_codes(ground: Ground, rules: Rules) -> list[Any]:
    """Return codes, (n,) each, in all of which partners must differ, beside the swapped categories."""
    n = len(ground.corpus.chunks)
    out = [ground.classes]
    if rules.unswapped_differ:
        others = [c for c in ground.corpus.categories if c not in rules.categories]
        out.append(combine_codes([ground.cells(c) for c in others], n))
    return out + [ground.cells(c) for c in rules.differ]


def encode_categories(cells: Sequence[Any], n: int) -> Any:
    """Return (n,) int64: which of the swapped categories each chunk holds, one bit for each; ``cells`` per category."""
    out = np.zeros(n, np.int64)
    for bit, numbers in enumerate(cells):
        out |= (numbers > 0).astype(np.int64) << bit
    return out


def list_valid_pairs(
    corpus: Corpus,
    labels: Sequence[int],
    rules: Rules,
    *,
    groups: Sequence[str] | None = None,
    allowed: Collection[int] | None = None,
) -> Iterator[tuple[int, int]]:
    """Yield all pairs of chunks (i < j) that meet the conditions: very many, so for small corpora and tests only."""
    check_rules(corpus, rules)
    ground = Ground.of(corpus)
    n = len(corpus.chunks)
    cells = [ground.cells(c) for c in rules.categories]
    codes = [*list_differing_codes(ground, rules), combine_codes(cells, n)]
    shared = encode_categories(cells, n)
    pairs = []
    for members in group_into_buckets(ground, labels, rules, groups, allowed):
        for position, i in enumerate(members, 1):
            rest = np.array(members[position:], np.int64)
            valid = (shared[rest] & shared[i]) != 0
            for code in codes:
                valid &= code[rest] != code[i]
            pairs += [(i, int(j)) for j in rest[valid]]
    return iter(sorted(pairs))

"""Which chunks may trade which entities: the conditions of a valid exchange (P1 2.1 and 2.3).

Two chunks may trade the categories A_s where (1) their documents differ in the protected value, and so are two; (2)
their vectors are of one cluster; (3) neither was used in this round; (4) both hold entities of each swapped category,
or of one of them at least; (5) they differ in the swapped categories; (6) they differ in another one, or else the
exchange only numbers them anew; (7) they agree, or differ, in the categories in which they must (Gomatam et al. 2005).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

import numpy as np

from allonym.errors import UnknownNameError, UsageError
from allonym.labels import TAXONOMY
from allonym.settings import declare_setting
from allonym.swap.categories import get_category_label
from allonym.swap.corpus import Corpus
from allonym.swap.entity_fit import EntityFit
from allonym.swap.fluency import Fluency
from allonym.swap.settings import Exchange
from allonym.text.names import is_within_one_edit, normalize_organization, normalize_surface
from allonym.text.words import find_words

_SMALL = frozenset("the a an of and for in on at de la le du des der die das und van von y e our".split())
_LEAST = 6
"""Letters from which on two names may be one misspelt name."""
GRAMMAR = 0b1100
"""The bits of :func:`encode_name_shape` that matter for grammar: number, and small or capital letter."""
_EXACT_FAMILIES = frozenset({"DATE_TIME", "NUMERIC"})
"""Families whose values are the same only if they are equal."""


class Rules(Exchange):
    """The conditions of a valid exchange, and its limits: the settings of an exchange, and what is exchanged (A_s).

    Above a ``fit`` of 0 slots are matched, not chunks, which is possible only with ``counts="all"`` and
    ``partners="per-category"``. Unless an entity ``returns`` to a class that knows it, a donor is also forbidden where
    it is only related (:func:`find_related_keys`).
    """

    categories: tuple[str, ...] = declare_setting((), "categories that are exchanged")

    @property
    def draws_uniform_pairs(self) -> bool:
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

    def is_limit_reached(self, swap_count: int, changed_count: int, holder_count: int) -> bool:
        """Whether so many swaps, or changed chunks of those with entities, are as many as there may be."""
        return 0 < self.swaps <= swap_count or (
            self.target_share < 1.0 and changed_count >= self.target_share * holder_count
        )


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
    _fluency: list[Fluency] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: Corpus) -> Ground:
        """Read the corpus once; time is linear in its values."""
        codes: dict[str, int] = {}
        per_document = [codes.setdefault(c, len(codes)) for c in corpus.classes]
        classes = np.array([per_document[c.document] for c in corpus.chunks], np.int64)
        numbers: dict[tuple[str, bool], int] = {}
        chunks = [chunk.values for chunk in corpus.chunks]
        families = {c: TAXONOMY.get_family(get_category_label(c)) for c in {v.category for vs in chunks for v in vs}}
        exact = {c: family in _EXACT_FAMILIES for c, family in families.items()}
        keys = tuple(
            tuple(numbers.setdefault((v.key, exact[v.category]), len(numbers)) for v in values) for values in chunks
        )
        count = len(numbers)
        related = find_related_keys(
            [*(k for k, _ in numbers), *codes], [*(e for _, e in numbers), *[False] * len(codes)]
        )
        known_sets: list[set[int]] = [set(related[count + c]) for c in range(len(codes))]
        for i, chunk_keys in enumerate(keys):
            for k in chunk_keys:
                if k not in known_sets[classes[i]]:
                    known_sets[classes[i]] |= related[k]
        return cls(
            corpus,
            classes,
            keys,
            tuple(tuple(encode_name_shape((*v.forms, v.key)[0]) for v in values) for values in chunks),
            tuple(frozenset(j for j in group if j < count) for group in related[:count]),
            tuple(frozenset(k) for k in known_sets),
            {
                c: tuple(tuple(i for i, v in enumerate(values) if v.category == c) for values in chunks)
                for c in corpus.categories
            },
        )

    def get_entity_fit(self) -> EntityFit:
        """Return how well the corpus's entities fit each other's places; computed at the first call."""
        if not self._fit:
            self._fit.append(EntityFit.of(self.corpus))
        return self._fit[0]

    def get_fluency(self) -> Fluency:
        """Return the language model of the corpus; computed at the first call."""
        if not self._fluency:
            self._fluency.append(Fluency.of(self.corpus))
        return self._fluency[0]

    def number_cells(self, category: str) -> Any:
        """Return (n,) int64: a number for the set of entities that each chunk holds in the category; 0 for none."""
        if category not in self._cells:
            keys = self.keys
            self._cells[category] = number_sets([{keys[i][v] for v in s} for i, s in enumerate(self.slots[category])])
        return self._cells[category]


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
    """Raise :class:`UsageError` if a category is not one of the corpus, or must not be exchanged, or none is."""
    if not rules.categories:
        raise UsageError("rules of exchange: at least one category must be exchanged")
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


def group_tradable_chunks(
    ground: Ground, labels: Any, rules: Rules, groups: Sequence[str] | None, allowed: Collection[int] | None
) -> list[list[int]]:
    """Return the chunks that may trade, by cluster, group of donors, and the categories in which partners must agree.

    Chunks that hold none of the swapped categories (``both``: not all of them) are left out. Each list is sorted.
    """
    n = len(ground.corpus.chunks)
    names: dict[str, int] = {}
    parts = [np.unique(np.asarray(labels), return_inverse=True)[1].reshape(n)]
    if groups is not None:
        parts.append(np.array([names.setdefault(g, len(names)) for g in groups], np.int64))
    parts += [ground.number_cells(c) for c in rules.agree]
    bucket_of = combine_codes(parts, n)
    test = all if rules.need == "both" else any
    slots = [ground.slots[c] for c in rules.categories]
    out: dict[int, list[int]] = {}
    for i in range(n):
        if test(s[i] for s in slots) and (allowed is None or labels[i] in allowed):
            out.setdefault(int(bucket_of[i]), []).append(i)
    return [out[b] for b in sorted(out)]


def list_must_differ_codes(ground: Ground, rules: Rules) -> list[Any]:
    """Return codes, (n,) each, in all of which partners must differ, beside the swapped categories."""
    n = len(ground.corpus.chunks)
    out = [ground.classes]
    if rules.unswapped_differ:
        others = [c for c in ground.corpus.categories if c not in rules.categories]
        out.append(combine_codes([ground.number_cells(c) for c in others], n))
    return out + [ground.number_cells(c) for c in rules.differ]


def make_pair_conditions(codes: Sequence[Any], cells: Sequence[Any], n: int) -> tuple[list[Any], Any]:
    """Return codes, (n,) each, in all of which partners must differ, and (n,) bits, of which they must share one.

    Args:
        codes: of :func:`list_must_differ_codes`.
        cells: for each swapped category, the number of each chunk's set of entities; a bit says whether it has any.
    """
    bits = np.zeros(n, np.int64)
    for bit, numbers in enumerate(cells):
        bits |= (numbers > 0).astype(np.int64) << bit
    return [*codes, combine_codes(cells, n)], bits


# Names that count as the same


def find_significant_words(key: str) -> frozenset[str]:
    """Return the words that characterise a name: without legal forms, small words and marks such as ``+jr``.

    >>> sorted(find_significant_words("the bank of acme, inc."))
    ['acme', 'bank']
    """
    bare = normalize_surface(key) if key else ""
    for words in (find_words(normalize_organization(bare)), find_words(bare)):
        if significant := [w for w in words if w not in _SMALL]:
            return frozenset(significant)
    return frozenset(find_words(bare) or (bare,))


def find_related_keys(keys: Sequence[str], exact: Sequence[bool] | None = None) -> list[frozenset[int]]:
    """Return for each key the indices of those that count as the same, itself among them; symmetric.

    None of them is put where another is known already: a donor ``Acme Corporation`` is no substitute in a text whose
    author speaks of ``Acme``. Two keys are related if the words of one are among those of the other (legal forms and
    small words do not count), if they differ in one letter only, or if one abbreviates the other. To be too strict
    costs an exchange; to be too lax gives the text's author away.

    Args:
        keys: names in normal form.
        exact: which of them are the same only as their equals, e.g. dates; None: none.
    """
    related: list[set[int]] = [{i} for i in range(len(keys))]
    words = [find_significant_words(k) if exact is None or not exact[i] else frozenset() for i, k in enumerate(keys)]
    pairs = chain(_pair_contained_names(words), _pair_misspelt_names(keys, words), _pair_abbreviated_names(keys, words))
    for i, j in pairs:
        related[i].add(j)
        related[j].add(i)
    return [frozenset(group) for group in related]


def _pair_contained_names(names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of which one has all words of the other."""
    holders: dict[str, list[int]] = {}
    for i, words in enumerate(names):
        for word in words:
            holders.setdefault(word, []).append(i)
    for i, words in enumerate(names):
        if words:
            rarest = min((holders[w] for w in words), key=len)
            yield from ((i, j) for j in rarest if j != i and words <= names[j])


def _pair_misspelt_names(keys: Sequence[str], names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs that differ in one letter, or only in how the words are joined."""
    letters = ["".join(w for w in find_words(normalize_surface(k)) if w in names[i]) for i, k in enumerate(keys)]
    by_rest: dict[str, list[int]] = {}
    for i, word in enumerate(letters):
        if names[i] and len(word) >= _LEAST and not any(c.isdigit() for c in word):
            for rest in {word, *(word[:n] + word[n + 1 :] for n in range(len(word)))}:
                by_rest.setdefault(rest, []).append(i)
    for group in by_rest.values():
        if len(group) <= 64:
            yield from ((i, j) for i, j in combinations(group, 2) if is_within_one_edit(letters[i], letters[j]))


def _pair_abbreviated_names(keys: Sequence[str], names: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a name of several words and its initials."""
    short: dict[str, list[int]] = {}
    for i, words in enumerate(names):
        if len(words) == 1 and 2 <= len(word := next(iter(words))) <= 6 and word.isalpha():
            short.setdefault(word, []).append(i)
    for i, key in enumerate(keys):
        if len(names[i]) > 1:
            full = find_words(normalize_surface(key))
            for initials in {"".join(w[0] for w in full), "".join(w[0] for w in full if w in names[i])}:
                yield from ((i, j) for j in short.get(initials, ()))

"""How well an entity fits another's place: its kind, how it is written, and its meaning.

Each distinct appearance of an entity (category, fullest form in its chunk, finer label, place) becomes one vector, such
that the fit of two is 1 less half the squared distance of their vectors: the cosine of their meanings, less a cost for
each difference in kind, number, case, length, place and the like. So the fits of many entities are one matrix product.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from allonym.kb import KnowledgeBase
from allonym.labels import TAXONOMY
from allonym.models.runtime import Embeddings
from allonym.models.tagger import ENGLISH
from allonym.models.words import split_words
from allonym.replace.naming import parse_name
from allonym.swap.categories import DETERMINER, get_category_label, is_initialism
from allonym.swap.corpus import Corpus, Value
from allonym.swap.covariates import encode_one_hot
from allonym.swap.places import FEATURES
from allonym.swap.table import Recoding, recoding

WIDTH = 96
"""Most dimensions of the meanings."""
_NEVER = 1.6
"""A cost that no meaning makes good, for differences that make a sentence wrong."""
COSTS: Mapping[str, float] = {
    "sort": _NEVER,
    "kind": 0.5,
    "class": 0.2,
    "gender": 0.2,
    "capital": _NEVER,
    "plural": _NEVER,
    "acronym": _NEVER,
    "digits": 0.1,
    "several": 0.2,
    "words": 0.05,
    "the": _NEVER,
    "bare": 0.4,
    "attribute": 0.6,
    "counted": _NEVER,
    "affiliation": _NEVER,
    "address": 0.3,
}
"""The cost of a difference (``sort``: whether a person's name is known to be one; a broken name is of no sort but its
own), half of it where the kind or class of one of the two is not known, a quarter where its
gender or place is not; ``words`` counts for each word more or less, up to three. The last ones are of the place, see
:func:`allonym.swap.places.read_place`."""
_FIRST, _LAST = 2000, 26000
"""Ranks of words of medium frequency in the vocabulary of the embedded model."""
_RARE = 1e-3
_MILD = 0.35
"""Share of the sign of a difference that hardly counts."""
_GENDERS = {"m": 1.0, "f": -1.0}
_SMALL = r"(?:and|at|by|for|from|in|of|on|or|to|with)"
_BROKEN = re.compile(
    rf"^(?:\W|{_SMALL}\b)|(?:\b{_SMALL}|\W)$|,\s+(?!(?:inc|incorporated|ltd|llc|llp|corp|co|plc|lp|sa|ag)\b)",
    re.IGNORECASE,
)
"""A name that begins or ends with what is none of it, or lists several, as a detector's mistake leaves it."""
_DIRECTIONS = frozenset("north south east west northeast northwest southeast southwest midwest".split())
"""Places that mean little alone, and take an article where others do not."""
_PLACES: Mapping[str, str] = {"COUNTRY": "country", "CITY": "city", "US_STATE": "region", "REGION": "region"}
"""Label of a place to its kind in the knowledge base."""


@dataclass(frozen=True, slots=True, repr=False)
class EntityFit:
    """The fits of a corpus's entities.

    Attributes:
        appearances: per chunk, per value, the number of its appearance.
        vectors: (appearances, d) float32; see :meth:`compute_pairwise_fits`.
    """

    appearances: tuple[tuple[int, ...], ...]
    vectors: Any = field(repr=False)

    @classmethod
    def of(cls, corpus: Corpus) -> EntityFit:
        """Read the corpus once; time is linear in its distinct entities. The knowledge base gives their trades."""
        numbers: dict[Appearance, int] = {}
        appearances = tuple(
            tuple(numbers.setdefault(_get_appearance(v), len(numbers)) for v in c.values) for c in corpus.chunks
        )
        classes = recoding(knowledge=KnowledgeBase.open())
        addressed = {v.key for c in corpus.chunks for v in c.values if _get_place_sign(v.place, "address") > 0}
        features = [_describe_appearance(*appearance, classes, addressed) for appearance in numbers]
        parts = [compute_meaning_vectors([DETERMINER.sub("", form) for _, form, _, _, _ in numbers])]
        for name in ("sort", "kind", "class"):
            parts.append(encode_one_hot([f[name] for f in features], np.sqrt(COSTS[name]), empty=False))
        columns = [(name, [f[name] for f in features]) for name in ("gender", "plural", "acronym")]
        for name in ("capital", "digits", "several"):
            columns.append((name, [1.0 if f[name] else -1.0 for f in features]))
        for n in (1, 2, 3):
            columns.append(("words", [1.0 if f["words"] > n else -1.0 for f in features]))
        for name, signs in columns:  # half the squared distance of the two signs is the cost
            parts.append(np.array(signs, np.float32)[:, None] * np.float32(np.sqrt(COSTS[name] / 2)))
        places = np.array([place or (0,) * len(FEATURES) for *_, place in numbers], np.float32).reshape(
            -1, len(FEATURES)
        )
        parts.append(places * np.sqrt(np.array([COSTS[name] for name in FEATURES], np.float32) / 2))
        return cls(appearances, np.ascontiguousarray(np.concatenate(parts, axis=1), np.float32))

    def compute_pairwise_fits(self, appearances: Any) -> Any:
        """Return (n, n) float64: how well these appearances fit each other, 1 for equals, down to below 0."""
        vectors = self.vectors[appearances].astype(np.float64)
        square = (vectors * vectors).sum(1)
        return 1.0 - (square[:, None] + square[None]) / 2 + vectors @ vectors.T

    def compute_fit(self, appearance: int, other_appearance: int) -> float:
        """Return how well two appearances, by their numbers, fit each other."""
        gap = self.vectors[appearance] - self.vectors[other_appearance]
        return 1.0 - float(gap @ gap) / 2


Appearance = tuple[str, str, str, str, tuple[int, ...]]
"""Category, fullest form, label, key and place of an entity."""


def _get_appearance(value: Value) -> Appearance:
    # The label is that of most mentions; of equally frequent ones the first by name.
    counts = Counter(s.label for s in value.spans)
    label = min(counts, key=lambda name: (-counts[name], name)) if counts else get_category_label(value.category)
    return value.category, (*value.forms, value.key)[0], label, value.key, value.place


def _describe_appearance(
    category: str,
    form: str,
    label: str,
    key: str,
    place: tuple[int, ...],
    classes: Recoding,
    addressed: Collection[str],
) -> dict[str, Any]:
    bare = DETERMINER.sub("", form) or form
    letters = [c for c in bare if c.isalpha()]
    family = TAXONOMY.get_family(label)
    finer = label if label != get_category_label(category) else ""
    class_ = classes(category, key) if category != "Term" else key
    is_short = is_initialism(bare) or (bare.endswith("s") and is_initialism(bare[:-1]))
    is_plural = bare.endswith("s") and not bare.endswith("ss") and not (letters and letters[-1].isupper())
    is_name = not is_short and bare[:1].isupper() and category != "Term"  # Barclays is no plural
    features: dict[str, Any] = {
        "sort": "",
        "kind": finer,
        "class": class_ if class_ != key else "",
        "gender": 0.0,
        "capital": bare[:1].islower(),
        "plural": (1.0 if is_plural else -1.0) * (_MILD if is_name else 1.0),
        "acronym": 1.0 if is_short else -1.0,
        "digits": any(c.isdigit() for c in bare),
        "words": len(bare.split()),
        "several": " " in bare,
    }
    parts = form.lower().replace(".", " ").split()
    is_broken = _BROKEN.search(bare if family not in ("LOCATION", "PERSON") else bare.replace(", ", " "))
    if category != "Term" and (is_broken or len(set(parts)) < len(parts)):
        features["sort"] = key
    if _get_place_sign(place, "affiliation") > 0:
        features["acronym"] = 0.0
    if family == "LOCATION":
        kind = _PLACES.get(label) or features["class"] or finer
        holds_acronym = any(is_initialism(word) and len(word) > 2 for word in bare.split())
        if ((is_short or holds_acronym) and not kind) or bare.lower() in _DIRECTIONS:  # hardly a place
            features["sort"] = key
        features |= {"kind": kind, "class": "", "acronym": 0.0, "words": 1}
    if family == "PERSON":
        names = [p.text for p in parse_name(bare) if p.kind in ("name", "initial", "particle")]
        features |= {"words": 1, "several": len(names) > 1, "plural": 0.0, "acronym": 0.0, "kind": "", "class": ""}
        is_known = (key in addressed or _is_known_name(names)) and not is_short and bare[:1].isupper()
        features["sort"] = features["sort"] or ("known" if is_known else "unknown")
        if names:
            features["gender"] = _GENDERS.get(_find_first_name_gender(names[0]), 0.0)
    return features


def _get_place_sign(place: tuple[int, ...], feature: str) -> int:
    return place[FEATURES.index(feature)] if place else 0


def _is_known_name(names: Sequence[str]) -> bool:
    """Tell whether a given name is among the parts of a name, or all of them are family names: no firm or product."""
    facts = [{fact.part for fact in KnowledgeBase.open().name_facts(name)} for name in names]
    return bool(facts) and ("first" in facts[0] or all(facts))


@lru_cache(maxsize=65536)
def _find_first_name_gender(name: str) -> str:
    facts = [f for f in KnowledgeBase.open().name_facts(name) if f.part == "first"]
    return facts[0].gender if facts and facts[0].gender != "n" else ""


@cache
def _load_embeddings() -> Embeddings:
    return Embeddings(ENGLISH)


@cache
def _compute_mean_word_vector() -> Any:
    """Return the mean of the vectors of every sixteenth word, which carries no meaning."""
    rows = _load_embeddings()(range(_FIRST, _LAST, 16))[0].astype(np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)


def compute_meaning_vectors(forms: Sequence[str]) -> Any:
    """Return (len(forms), at most WIDTH) unit rows: means of word vectors, rare words first (Arora et al. 2017)."""
    embed = _load_embeddings()
    ids = [[p for a, b in split_words(f) for p in embed.pieces.pieces(f[a:b])] for f in forms]
    counts = Counter(p for pieces in ids for p in set(pieces))
    total = sum(counts.values())
    vocabulary = sorted(counts)
    if not vocabulary:
        return np.zeros((len(forms), 0))
    position = {p: n for n, p in enumerate(vocabulary)}
    table = embed(vocabulary)[0].astype(np.float64)
    table /= np.linalg.norm(table, axis=1, keepdims=True) + 1e-12
    weights = np.array([_RARE / (_RARE + counts[p] / total) for p in vocabulary])
    rows = np.zeros((len(forms), table.shape[1]))
    for i, pieces in enumerate(ids):
        if pieces:
            positions = [position[p] for p in pieces]
            rows[i] = weights[positions] @ table[positions]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12
    rows -= _compute_mean_word_vector()
    _, axes = np.linalg.eigh(rows.T @ rows)
    rows = rows @ axes[:, ::-1][:, :WIDTH]
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12)

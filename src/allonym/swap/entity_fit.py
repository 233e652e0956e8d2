"""How well an entity fits another's place: its kind, how it is written, and its meaning.

Each distinct appearance of an entity (category, fullest form in its chunk, finer label) becomes one vector, such that
the fit of two is 1 less half the squared distance of their vectors: the cosine of their meanings, less a cost for each
difference in kind, number, case, length and the like. So the fits of many entities are one matrix product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
from allonym.swap.table import Recoding, recoding

WIDTH = 96
"""Most dimensions of the meanings."""
COSTS: Mapping[str, float] = {
    "kind": 0.5,
    "class": 0.2,
    "gender": 0.2,
    "capital": 0.6,
    "plural": 0.2,
    "acronym": 0.3,
    "digits": 0.1,
    "several": 0.2,
    "words": 0.05,
}
"""The cost of a difference, half of it where the kind, class or gender of one of the two is not known; ``words`` counts
for each word more or less, up to three."""
_FIRST, _LAST = 2000, 26000
"""Ranks of words of medium frequency in the vocabulary of the embedded model."""
_RARE = 1e-3
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
        numbers: dict[tuple[str, str, str, str], int] = {}
        appearances = tuple(
            tuple(numbers.setdefault(_get_category_form_label_and_key(v), len(numbers)) for v in c.values)
            for c in corpus.chunks
        )
        classes = recoding(knowledge=KnowledgeBase.open())
        features = [_describe_appearance(*appearance, classes) for appearance in numbers]
        parts = [_compute_meaning_vectors([DETERMINER.sub("", form) for _, form, _, _ in numbers])]
        for name in ("kind", "class"):
            parts.append(encode_one_hot([f[name] for f in features], np.sqrt(COSTS[name]), empty=False))
        columns = [("gender", [{"m": 1.0, "f": -1.0}.get(f["gender"], 0.0) for f in features])]
        for name in ("capital", "plural", "acronym", "digits", "several"):
            columns.append((name, [1.0 if f[name] else -1.0 for f in features]))
        for n in (1, 2, 3):
            columns.append(("words", [1.0 if f["words"] > n else -1.0 for f in features]))
        for name, signs in columns:  # half the squared distance of the two signs is the cost
            parts.append(np.array(signs, np.float32)[:, None] * np.float32(np.sqrt(COSTS[name] / 2)))
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


def _get_category_form_label_and_key(value: Value) -> tuple[str, str, str, str]:
    # The label is that of most mentions; of equally frequent ones the first by name.
    counts = Counter(s.label for s in value.spans)
    label = min(counts, key=lambda name: (-counts[name], name)) if counts else get_category_label(value.category)
    return value.category, (*value.forms, value.key)[0], label, value.key


def _describe_appearance(category: str, form: str, label: str, key: str, classes: Recoding) -> dict[str, Any]:
    bare = DETERMINER.sub("", form) or form
    letters = [c for c in bare if c.isalpha()]
    family = TAXONOMY.get_family(label)
    finer = label if label != get_category_label(category) else ""
    class_ = classes(category, key) if category != "Term" else key
    features: dict[str, Any] = {
        "kind": finer,
        "class": class_ if class_ != key else "",
        "gender": "",
        "capital": bare[:1].islower(),
        "plural": bare.endswith("s") and not bare.endswith("ss") and not (letters and letters[-1].isupper()),
        "acronym": is_initialism(bare),
        "digits": any(c.isdigit() for c in bare),
        "words": len(bare.split()),
        "several": " " in bare,
    }
    if family == "LOCATION":
        kind = _PLACES.get(label) or features["class"] or finer
        features |= {"kind": kind, "class": "", "acronym": False, "words": 1}
    if family == "PERSON":
        names = [p.text for p in parse_name(bare) if p.kind in ("name", "initial", "particle")]
        features |= {"words": 1, "several": len(names) > 1, "plural": False, "kind": "", "class": ""}
        if names:
            features["gender"] = _find_first_name_gender(names[0])
    return features


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


def _compute_meaning_vectors(forms: Sequence[str]) -> Any:
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

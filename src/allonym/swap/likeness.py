"""How well an entity fits another's place: what sort of thing it is, how it is written, and what it means.

Each distinct look of an entity (category, fullest form in its chunk, finer label) becomes one vector, such that the fit
of two is 1 less half the squared distance of their vectors: the cosine of their meanings, less what each difference in
kind, number, case, length and the like costs. So the fits of many entities are one matrix product.
"""

from __future__ import annotations

import re
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
from allonym.models.words import words
from allonym.replace.naming import parse
from allonym.swap.categories import label_of
from allonym.swap.corpus import Corpus, Value
from allonym.swap.recoding import Recoding, recoding

WIDTH = 96
"""Dimensions that are kept of the meanings."""
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
"""What a difference takes off the fit, half of it where a kind, class or gender is not known of one of the two;
``words`` for each word more or less, up to three."""
_FIRST, _LAST = 2000, 26000
"""Whole words, of middling frequency, in the vocabulary of the embedded model."""
_RARE = 1e-3
_PLACES: Mapping[str, str] = {"COUNTRY": "country", "CITY": "city", "US_STATE": "region", "REGION": "region"}
"""Labels of places as the knowledge base calls these kinds."""
_DETERMINER = re.compile(r"(?:an?|the|our|its|their|your|my|this|that|these|those)\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Likeness:
    """The fits of a corpus's entities.

    Attributes:
        looks: per chunk, per value, the number of its look.
        vectors: (looks, d) float32; see :meth:`fits`.
    """

    looks: tuple[tuple[int, ...], ...]
    vectors: Any = field(repr=False)

    @classmethod
    def of(cls, corpus: Corpus, *, knowledge: KnowledgeBase | None = None) -> Likeness:
        """Reads the corpus once; time is linear in its distinct entities.

        Args:
            corpus: as it was read.
            knowledge: says of what trade or kind an entity is; None: the knowledge base that comes with allonym.
        """
        numbers: dict[tuple[str, str, str, str], int] = {}
        looks = tuple(tuple(numbers.setdefault(_look(v), len(numbers)) for v in c.values) for c in corpus.chunks)
        known = recoding(knowledge=knowledge or KnowledgeBase.open())
        every = list(numbers)
        said = [_features(*look, known) for look in every]
        parts = [_meanings([_DETERMINER.sub("", form) for _, form, _, _ in every])]
        for name in ("kind", "class"):
            parts.append(_one_hot([s[name] for s in said], COSTS[name]))
        parts.append(_signs([{"m": 1.0, "f": -1.0}.get(s["gender"], 0.0) for s in said], COSTS["gender"]))
        for name in ("capital", "plural", "acronym", "digits", "several"):
            parts.append(_signs([1.0 if s[name] else -1.0 for s in said], COSTS[name]))
        for n in (1, 2, 3):
            parts.append(_signs([1.0 if s["words"] > n else -1.0 for s in said], COSTS["words"]))
        return cls(looks, np.ascontiguousarray(np.concatenate(parts, axis=1), np.float32))

    def fits(self, one: Any, other: Any) -> Any:
        """(len(one), len(other)) float64: how well looks fit each other, 1 for equals, down to less than 0."""
        a, b = self.vectors[one].astype(np.float64), self.vectors[other].astype(np.float64)
        return 1.0 - ((a * a).sum(1)[:, None] + (b * b).sum(1)[None]) / 2 + a @ b.T

    def fit(self, one: int, other: int) -> float:
        """How well two looks fit each other."""
        apart = self.vectors[one] - self.vectors[other]
        return 1.0 - float(apart @ apart) / 2


def _look(value: Value) -> tuple[str, str, str, str]:
    form = value.forms[0] if value.forms else value.key
    return value.category, form, _label(value), value.key


def _label(value: Value) -> str:
    """The label of most mentions; of equally frequent ones the first by name."""
    counts = Counter(s.label for s in value.spans)
    return min(counts, key=lambda name: (-counts[name], name)) if counts else label_of(value.category)


def _features(category: str, form: str, label: str, key: str, known: Recoding) -> dict[str, Any]:
    bare = _DETERMINER.sub("", form) or form
    letters = [c for c in bare if c.isalpha()]
    family = TAXONOMY.lineage(label)[-1] if label in TAXONOMY else label
    finer = label if label != label_of(category) else ""
    found = known(category, key) if category != "Term" else key
    said: dict[str, Any] = {
        "kind": finer,
        "class": found if found != key else "",
        "gender": "",
        "capital": bare[:1].islower(),
        "plural": bare.endswith("s") and not bare.endswith("ss") and not (letters and letters[-1].isupper()),
        "acronym": 2 <= len(letters) <= 6 and " " not in bare and all(c.isupper() for c in letters),
        "digits": any(c.isdigit() for c in bare),
        "words": len(bare.split()),
        "several": " " in bare,
    }
    if family == "LOCATION":
        said |= {"kind": _PLACES.get(label) or said["class"] or finer, "class": "", "acronym": False, "words": 1}
    if family == "PERSON":
        names = [p.text for p in parse(bare) if p.kind in ("name", "initial", "particle")]
        said |= {"words": 1, "several": len(names) > 1, "plural": False, "kind": "", "class": ""}
        if names:
            said["gender"] = _gender(names[0])
    return said


@lru_cache(maxsize=65536)
def _gender(name: str) -> str:
    facts = [f for f in KnowledgeBase.open().name_facts(name) if f.part == "first"]
    return facts[0].gender if facts and facts[0].gender != "n" else ""


def _one_hot(values: Sequence[str], cost: float) -> Any:
    """Rows whose half squared distance is ``cost`` for different values; half of it where one is not known."""
    numbers = {v: n for n, v in enumerate(sorted({v for v in values if v}))}
    out = np.zeros((len(values), len(numbers)), np.float32)
    for i, v in enumerate(values):
        if v:
            out[i, numbers[v]] = np.sqrt(cost)
    return out


def _signs(values: Sequence[float], cost: float) -> Any:
    """Rows, of values from -1 to 1, whose half squared distance is ``cost`` at most."""
    return np.array(values, np.float32)[:, None] * np.float32(np.sqrt(cost / 2))


@cache
def _embeddings() -> Embeddings:
    return Embeddings(ENGLISH)


@cache
def _common() -> Any:
    """What the vectors of all words have in common, of every sixteenth; it says nothing of a meaning."""
    some = _embeddings()(range(_FIRST, _LAST, 16))[0].astype(np.float64)
    return (some / np.linalg.norm(some, axis=1, keepdims=True)).mean(axis=0)


def _meanings(forms: Sequence[str]) -> Any:
    """(len(forms), at most WIDTH) unit rows: means of word vectors, rare words first (Arora et al. 2017)."""
    embed = _embeddings()
    ids = [[p for a, b in words(f) for p in embed.pieces.pieces(f[a:b])] for f in forms]
    counts = Counter(p for some in ids for p in set(some))
    total = sum(counts.values())
    every = sorted(counts)
    if not every:
        return np.zeros((len(forms), 0))
    place = {p: n for n, p in enumerate(every)}
    table = embed(every)[0].astype(np.float64)
    table /= np.linalg.norm(table, axis=1, keepdims=True) + 1e-12
    weights = np.array([_RARE / (_RARE + counts[p] / total) for p in every])
    rows = np.zeros((len(forms), table.shape[1]))
    for i, some in enumerate(ids):
        if some:
            at = [place[p] for p in some]
            rows[i] = weights[at] @ table[at]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12
    rows -= _common()
    _, axes = np.linalg.eigh(rows.T @ rows)
    rows = rows @ axes[:, ::-1][:, :WIDTH]
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12)

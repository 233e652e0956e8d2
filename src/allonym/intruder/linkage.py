"""Offline record linkage: which of the known texts is a text most like?

Ridge regression on TF-IDF weights of words (1- to 2-grams), of characters (3- to 5-grams within words) and on vectors
of the embedded sentence encoder, one output a class. Each kind of feature has length 1 in each text, so that none
outweighs another. What a feature adds to a class is known exactly, so a text can be marked where it gives itself away.

Features of texts for record linkage: n-grams of words, n-grams of characters within words, and sentence vectors.

Every feature knows the words that it stands on, so that what it adds to a decision can be shown in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from allonym.document import subtract_intervals
from allonym.errors import UsageError
from allonym.intruder.protocol import Item, Ranking, Target
from allonym.text.placeholders import find_placeholders, remove_placeholders
from allonym.text.words import IDENTIFIER

FEATURES: Mapping[str, tuple[str, ...]] = {
    "words": ("words",),
    "characters": ("characters",),
    "both": ("words", "characters"),
    "encoder": ("encoder",),
    "all": ("words", "characters", "encoder"),
}
"""Kinds of features by the name that :class:`Linkage` takes."""

_BESIDE = 0.25  # weight of the encoder beside others: it hears topics, which the subjects of a corpus may share
_GUESSES = 1000
_SOLVED = 4000  # most texts whose equations are solved at once; more are solved step by step
_ROOM = 50_000_000  # most weights of features times classes in memory

Floats = NDArray[np.float64]


class Linkage:
    """Links a text to the known texts that are most like it.

    Args:
        features: ``words``, ``characters``, ``both``, ``encoder`` or ``all``.
        words: least and greatest n of word n-grams, 1 to 5.
        characters: least and greatest n of character n-grams within words, 1 to 10.
        ridge: penalty that keeps weights small, above 0; a text itself counts 1 for each kind of feature.
        tags: whether placeholders such as ``[PERSON_1]`` are read as words; else they are passed over, which suits
            an intruder who knows original texts only.

    Raises:
        UsageError: an option that is not as above.
    """

    name = "linkage"
    learns = True
    told: tuple[str, ...] = ()

    def __init__(
        self,
        features: str = "both",
        words: tuple[int, int] = (1, 2),
        characters: tuple[int, int] = (3, 5),
        ridge: float = 1.0,
        tags: bool = False,
    ) -> None:
        if features not in FEATURES:
            raise UsageError(f"intruder 'linkage': features must be one of {', '.join(FEATURES)}, got {features!r}")
        for option, (low, high), most in (("words", words, 5), ("characters", characters, 10)):
            if not 1 <= low <= high <= most:
                wrong = f"{option} must be two numbers from 1 to {most}, got {low}, {high}"
                raise UsageError(f"intruder 'linkage': {wrong}")
        if not ridge > 0:
            raise UsageError(f"intruder 'linkage': ridge must be above 0, got {ridge:g}")
        self._kinds = FEATURES[features]
        self._ridge = ridge
        self._reader = FeatureReader(words, characters, tags=tags)

    def learn(self, items: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> LinkageJudge:
        """Fit the weights; see :class:`allonym.intruder.Intruder`. Only the texts of the items are read."""
        texts = [item.text for item in items]
        known_classes, y = np.unique(np.asarray(labels, np.int64), return_inverse=True)
        if not texts:
            return LinkageJudge(self._reader, [], known_classes, np.zeros(0), len(classes))
        outputs = np.zeros((len(texts), len(known_classes)))
        outputs[np.arange(len(texts)), y] = 1
        shares = outputs.mean(axis=0)
        beside = _BESIDE if len(self._kinds) > 1 else 1.0
        parts = [_FeatureModel(k, self._reader, texts, beside if k == "encoder" else 1.0) for k in self._kinds]
        solve = _solve_ridge_regression if len(texts) <= _SOLVED else _approximate_ridge_weights
        text_weights = solve(parts, outputs - shares, self._ridge)
        for part in parts:
            part.learn_feature_weights(text_weights)
        return LinkageJudge(self._reader, parts, known_classes, shares, len(classes))


@dataclass(repr=False, eq=False)
class LinkageJudge:
    """A :class:`Linkage` that has learnt. See :class:`allonym.intruder.Judge` for what it shares with others."""

    _reader: FeatureReader
    _parts: Sequence[_FeatureModel]
    _known_classes: NDArray[np.int64]
    _shares: Floats
    _classes: int

    def scores(self, targets: Sequence[Target]) -> Floats:
        """How much speaks for every class: float ``(n, C)``, about 0 to 1; -inf for classes that it has never met."""
        scores = np.full((len(targets), self._classes), -np.inf)
        if targets and len(self._known_classes):
            texts = [target.item.text for target in targets]
            added = sum(part.score_classes(part.compute_features(texts)) for part in self._parts)
            scores[:, self._known_classes] = self._shares + added
        return scores

    def rank(self, targets: Sequence[Target]) -> Ranking:
        """The classes that it has met, 1,000 at most, the likeliest first; ties go to the first class."""
        table = self.scores(targets)
        best = np.argsort(-table, axis=1, kind="stable")[:, : max(1, min(_GUESSES, len(self._known_classes)))]
        scores = np.take_along_axis(table, best, axis=1)
        return Ranking(np.where(scores > -np.inf, best, -1).astype(np.int64), scores)

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        """As :class:`allonym.intruder.Judge`: n-grams of words; where only characters are read, the words that their
        n-grams stand in. With the encoder alone there are none: it cannot tell words apart."""
        part = next((p for p in self._parts if p.kind != "encoder"), None)
        total: dict[str, float] = {}
        if part is None or not targets:
            return total
        names = self._reader.list_known_features(part.kind)
        for target, label in zip(targets, labels, strict=True):
            text, place = target.item.text, self._find_known_class_index(label)
            if part.kind == "words":
                row = part.compute_features([text])
                weights = zip((names[i] for i in row.indices), part.score_features(row, place), strict=True)
            else:
                spans = self._reader.find_word_spans(text)
                weights = zip((text[a:b].lower() for a, b in spans), part.score_words(text, spans, place), strict=True)
            for name, weight in weights:
                if weight > 0:
                    total[name] = total.get(name, 0.0) + float(weight)
        return total

    def _find_known_class_index(self, label: int) -> int:
        """The column of a class among those that it has met; raises :class:`UsageError` where it has not."""
        place = int(np.searchsorted(self._known_classes, label))
        if place == len(self._known_classes) or self._known_classes[place] != label:
            count = len(self._known_classes)
            raise UsageError(f"intruder 'linkage': class {label} is none of the {count} that it has learnt")
        return place


class _FeatureModel:
    """One kind of feature: the rows of the learnt texts, and what each feature adds to each class."""

    def __init__(self, kind: str, reader: FeatureReader, texts: Sequence[str], weight: float) -> None:
        self.kind = kind
        self._reader = reader
        self._weight = weight
        if kind != "encoder":
            counts = reader.count_features(texts, kind)
            self._tfidf = TfidfWeights(counts)
            self._learnt = self._tfidf.weigh_counts(counts)
        else:
            self._learnt = reader.encode_texts(texts)
        self._dual: Any = None
        self._table: Any = None

    def compute_features(self, texts: Sequence[str]) -> Any:
        """The features of texts: ``(n, V)``."""
        if self.kind == "encoder":
            return self._reader.encode_texts(texts)
        return self._tfidf.weigh_counts(self._reader.count_features(texts, self.kind))

    def compute_similarity(self) -> Any:
        """Similarity of the learnt texts: dense ``(n, n)``."""
        table = self._learnt @ self._learnt.T
        return self._weight * (table if self.kind == "encoder" else table.toarray())

    def multiply_similarity(self, vector: Any) -> Any:
        """Multiply :meth:`compute_similarity` by a vector ``(n,)``."""
        return self._weight * (self._learnt @ (self._learnt.T @ vector))

    def learn_feature_weights(self, text_weights: Any) -> None:
        """Turn weights of texts ``(n, C)`` into weights of features, where there is room."""
        self._dual = self._weight * text_weights
        if self._learnt.shape[1] * text_weights.shape[1] <= _ROOM:
            self._table = np.asarray(self._learnt.T @ self._dual)

    def score_classes(self, rows: Any) -> Any:
        """What features add to every class: ``(n, C)``."""
        if self._table is not None:
            return rows @ self._table
        return (rows @ self._learnt.T) @ self._dual

    def score_features(self, row: Any, class_index: int) -> Floats:
        """What each stored feature of one sparse row adds to a class."""
        if self._table is not None:
            weights = self._table[row.indices, class_index]
        else:
            weights = np.asarray(self._learnt.T @ self._dual[:, class_index]).ravel()[row.indices]
        added: Floats = row.data * weights
        return added

    def score_words(self, text: str, spans: Sequence[tuple[int, int]], class_index: int) -> Floats:
        """What each word adds to a class: ``(len(spans),)``; not for the encoder, which cannot tell words apart."""
        row, features = self.compute_features([text]), self._reader.read_features(text, self.kind)
        return spread_over_words(row.indices, self.score_features(row, class_index), features, len(spans))


def spread_over_words(ids: Ids, added: Floats, features: TextFeatures, word_count: int) -> Floats:
    """Spread what each distinct feature of a text adds over its occurrences, and over the words that these stand on.

    Args:
        ids, added: ``(m,)``: distinct features and what each adds.
        features: all features of the text.
        word_count: of the text.

    Returns:
        What each word adds: ``(word_count,)``.
    """
    order = np.argsort(ids)
    stored, added = ids[order], added[order]
    total = np.zeros(word_count)
    if not len(stored):
        return total
    places = np.minimum(np.searchsorted(stored, features.ids), len(stored) - 1)
    is_stored = stored[places] == features.ids
    places, first, last = places[is_stored], features.first[is_stored], features.last[is_stored]
    times = np.bincount(places, minlength=len(stored))[places]
    each = added[places] / times / np.where(first == last, 1, last - first + 1)
    for k in range(int((last - first).max(initial=0)) + 1):
        inside = first + k <= last
        np.add.at(total, (first + k)[inside], each[inside])
    return total


def _solve_ridge_regression(parts: Sequence[_FeatureModel], outputs: Floats, ridge: float) -> Floats:
    """The weights of texts ``(n, C)``."""
    similarity = sum(part.compute_similarity() for part in parts)
    weights: Floats = linalg.inv(similarity + ridge * np.eye(len(outputs)), check_finite=False) @ outputs
    return weights


def _approximate_ridge_weights(parts: Sequence[_FeatureModel], outputs: Floats, ridge: float) -> Floats:
    """As :func:`_solve_ridge_regression` where the equations are too many to write down, by conjugate gradients."""
    n = len(outputs)
    system = LinearOperator(
        (n, n), matvec=lambda v: ridge * v + sum(p.multiply_similarity(v) for p in parts), dtype=np.float64
    )
    return np.column_stack([cg(system, column, rtol=1e-4, maxiter=100)[0] for column in outputs.T])


Ids = NDArray[np.int64]

_CACHED = 20_000  # texts whose features are remembered


@dataclass(frozen=True, slots=True, repr=False)
class TextFeatures:
    """The features of a text.

    Attributes:
        spans: int ``(t, 2)``: start and end of its words, in code points, end exclusive.
        ids: int ``(f,)``: its features, each as often as it occurs.
        first, last: int ``(f,)``: the first and the last of the words that each stands on.
    """

    spans: Ids
    ids: Ids = field(repr=False)
    first: Ids
    last: Ids


class FeatureReader:
    """Reads texts once for all intruders that share it. Features are numbered as they are met.

    Args:
        words: least and greatest n of word n-grams; words have two letters at least, in lower case.
        characters: least and greatest n of character n-grams; a blank stands before and behind each word.
        tags: whether placeholders are read as words; else they are passed over.
        passed_over: words in lower case that are never read.
    """

    def __init__(
        self,
        words: tuple[int, int] = (1, 2),
        characters: tuple[int, int] = (3, 5),
        *,
        tags: bool = False,
        passed_over: Set[str] = frozenset(),
    ) -> None:
        self._passed_over = passed_over
        self._words = words
        self._characters = characters
        self._tags = tags
        self._numbers: dict[str, dict[str, int]] = {"words": {}, "characters": {}}
        self._grams: dict[str, Ids] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._read: dict[tuple[str, str], TextFeatures] = {}

    def read_features(self, text: str, kind: str) -> TextFeatures:
        """Return the features of one kind, ``words`` or ``characters``, and where they stand."""
        features = self._read.pop((kind, text), None)
        if features is None:
            spans = self.find_word_spans(text)
            low = text.lower() if len(text.lower()) == len(text) else "".join(map(_lower_keeping_length, text))
            words = [low[a:b] for a, b in spans]
            grams = self._locate_word_grams(words) if kind == "words" else self._locate_character_grams(words)
            features = TextFeatures(np.array(spans, np.int64).reshape(-1, 2), *grams)
        self._read[kind, text] = features  # what was used last is dropped last
        if len(self._read) > _CACHED:
            del self._read[next(iter(self._read))]
        return features

    def count_features(self, texts: Sequence[str], kind: str) -> Any:
        """How often each feature occurs in each text: sparse ``(n, V)``; V grows as features are met."""
        if not texts:
            return sparse.csr_matrix((0, len(self._numbers[kind])))
        rows = [np.unique(self.read_features(text, kind).ids, return_counts=True) for text in texts]
        starts = np.cumsum([0, *(len(ids) for ids, _ in rows)])
        data = np.concatenate([times for _, times in rows]).astype(np.float64)
        ids = np.concatenate([ids for ids, _ in rows])
        return sparse.csr_matrix((data, ids, starts), shape=(len(texts), len(self._numbers[kind])))

    def list_known_features(self, kind: str) -> list[str]:
        """The features of a kind by their numbers."""
        return list(self._numbers[kind])

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Unit vectors of the embedded sentence encoder, placeholders left out, ``(n, 384)``."""
        from allonym.models.encoder import WIDTH, load_encoder

        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        readable = missing if self._tags else [remove_placeholders(text) for text in missing]
        vectors = self._vectors | (dict(zip(missing, load_encoder().encode(readable), strict=True)) if missing else {})
        if len(vectors) <= _CACHED:
            self._vectors = vectors
        return np.array([vectors[text] for text in texts], np.float64).reshape(-1, WIDTH)

    def find_word_spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end of the words of a text that are read."""
        placeholders = [] if self._tags else [(p.start, p.end) for p in find_placeholders(text)]
        readable = subtract_intervals((0, len(text)), placeholders)
        spans = [match.span() for start, end in readable for match in IDENTIFIER.finditer(text, start, end)]
        return [(a, b) for a, b in spans if text[a:b].lower() not in self._passed_over] if self._passed_over else spans

    def _locate_word_grams(self, words: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        numbers = self._numbers["words"]
        places = [i for i, word in enumerate(words) if len(word) > 1]
        ids, first, last = [], [], []
        low, high = self._words
        for size in range(low, high + 1):
            for k in range(len(places) - size + 1):
                name = " ".join(words[i] for i in places[k : k + size])
                ids.append(numbers.setdefault(name, len(numbers)))
                first.append(places[k])
                last.append(places[k + size - 1])
        return np.array(ids, np.int64), np.array(first, np.int64), np.array(last, np.int64)

    def _locate_character_grams(self, words: Sequence[str]) -> tuple[Ids, Ids, Ids]:
        grams = [self._list_gram_ids_of_word(word) for word in words]
        places = np.repeat(np.arange(len(words)), [len(ids) for ids in grams]).astype(np.int64)
        return (np.concatenate(grams) if grams else np.zeros(0, np.int64)), places, places

    def _list_gram_ids_of_word(self, word: str) -> Ids:
        if word not in self._grams:
            numbers, padded = self._numbers["characters"], f" {word} "
            low, high = self._characters
            sizes = range(low, min(high, len(padded)) + 1)
            names = [padded[i : i + size] for size in sizes for i in range(len(padded) - size + 1)]
            self._grams[word] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        return self._grams[word]


def _lower_keeping_length(character: str) -> str:
    """In lower case, where that is one character too: offsets must not move."""
    return low if len(low := character.lower()) == 1 else character


class TfidfWeights:
    """Sublinear TF-IDF as learnt from some texts: ``(1 + log tf) (log((1 + n) / (1 + df)) + 1)``, rows of length 1.

    Args:
        counts: sparse ``(n, V)``, of the texts to learn from.
    """

    def __init__(self, counts: Any) -> None:
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        self.idf = np.where(documents > 0, np.log((1 + counts.shape[0]) / (1 + documents)) + 1, 0.0)

    def weigh_counts(self, counts: Any) -> Any:
        """Weigh the counts of other texts; a feature that was never learnt has no weight."""
        width = len(self.idf)
        rows = counts[:, :width] if counts.shape[1] > width else counts.copy()
        if rows.shape[1] < width:
            rows = sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
        rows.data = (1 + np.log(rows.data)) * self.idf[rows.indices]
        rows.eliminate_zeros()
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        length[length == 0] = 1
        rows.data /= np.repeat(length, np.diff(rows.indptr))
        return rows

"""Two intruders that need no network: linear models on entities, and on all words.

Both are support vector machines on TF-IDF weights, one class against the rest; for very many texts and classes,
complement naive Bayes, which needs one pass.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from allonym.errors import UsageError
from allonym.intruder.protocol import Item, Ranking, Target

MODELS = ("auto", "margin", "bayes")
_MANY = 3_000_000  # texts times classes from which on ``auto`` takes the quick model
_GUESSES = 5
_ROOM = 4_000_000  # most scores in memory at once
_WORD = re.compile(r"\w\w+")


class _LinearIntruder:
    """A linear model on features of a target; subclasses choose the features."""

    learns = True
    name = ""
    told: tuple[str, ...] = ()

    def __init__(self, model: str = "auto") -> None:
        if model not in MODELS:
            raise UsageError(f"intruder {self.name!r}: model must be one of {', '.join(MODELS)}, got {model!r}")
        self._model = model

    def features(self, target: Target) -> list[str]:
        """Return the features of a target."""
        return []

    def learn(self, items: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> _LinearJudge:
        """Fit the model; see :class:`allonym.intruder.Intruder`."""
        rows = [self.features(Target(item)) for item in items]
        readable = [i for i, row in enumerate(rows) if row]
        y = np.array([labels[i] for i in readable], np.int64)
        guesses = max(1, min(_GUESSES, len(classes)))
        if len(set(y.tolist())) < 2:
            return _LinearJudge(self, None, None, y[:1], guesses)
        weights = TfidfVectorizer(analyzer=list, sublinear_tf=True)
        x = weights.fit_transform([rows[i] for i in readable])
        is_quick = self._model == "bayes" or (self._model == "auto" and len(readable) * len(classes) > _MANY)
        model: Any = ComplementBayes(0.1) if is_quick else LinearSVC(max_iter=5000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a margin that is not quite the widest will do
            model.fit(x, y)
        return _LinearJudge(self, weights, model, model.classes_, guesses)


@dataclass(repr=False, eq=False)
class _LinearJudge:
    _intruder: _LinearIntruder
    _weights: Any
    _model: Any
    _classes: Any
    _guesses: int

    def rank(self, targets: Sequence[Target]) -> Ranking:
        """As :class:`allonym.intruder.Judge`; no guess where it has learnt no class."""
        order = np.full((len(targets), self._guesses), -1, np.int64)
        scores = np.full((len(targets), self._guesses), -np.inf)
        if self._model is None:  # it knows one class at most
            order[:, : len(self._classes)] = self._classes
            scores[:, : len(self._classes)] = 0
        elif targets:
            best, best_scores = self._rank_top_classes(self._weigh_features(targets))
            order[:, : best.shape[1]] = self._classes[best]
            scores[:, : best.shape[1]] = best_scores
        return Ranking(order, scores)

    def _rank_top_classes(self, x: Any) -> tuple[Any, Any]:
        """The places of the best classes, and their scores."""
        if isinstance(self._model, ComplementBayes):
            return self._model.rank_top_classes(x, min(self._guesses, len(self._classes)))
        table = self._model.decision_function(x)
        if table.ndim == 1:  # of two classes, the margins of the second
            table = np.column_stack((-table, table))
        best = np.argsort(-table, axis=1, kind="stable")[:, : self._guesses]
        return best, np.take_along_axis(table, best, axis=1)

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        """As :class:`allonym.intruder.Judge`; a term is a feature that speaks for its class."""
        if self._model is None or not targets:
            return {}
        names = self._weights.get_feature_names_out()
        x = self._weigh_features(targets)
        places = {int(c): i for i, c in enumerate(self._classes)}
        weights_for = self._get_class_weights()
        total: dict[str, float] = {}
        for label in sorted(set(labels)):
            part = x[np.flatnonzero(np.asarray(labels) == label)]
            words, positions = np.unique(part.indices, return_inverse=True)
            added = np.bincount(positions, part.data) * weights_for(places[label], words)
            for k, weight in zip(words.tolist(), added.tolist(), strict=True):
                if weight > 0:
                    total[names[k]] = total.get(names[k], 0.0) + weight
        return total

    def _weigh_features(self, targets: Sequence[Target]) -> Any:
        """The TF-IDF weights of targets, sparse ``(n, V)``."""
        return self._weights.transform([self._intruder.features(target) for target in targets])

    def _get_class_weights(self) -> Callable[[int, Any], Any]:
        """A function of a class's place and of words: how much more each word speaks for the class than for others."""
        if isinstance(self._model, ComplementBayes):
            return self._model.compute_class_weights
        table = self._model.coef_
        if len(table) == 1:  # of two classes, the weights of the second
            table = np.concatenate((-table, table))
        mean = table.mean(axis=0)
        return lambda c, words: table[c, words] - mean[words]


class Entities(_LinearIntruder):
    """Learns which entities occur in the texts of each class: keys as a whole, and their words.

    Where it is told that terms were interchanged, it looks at the entities of the other texts instead.

    Args:
        model: ``margin``, ``bayes``, or ``auto``, which takes the second only for very many texts and classes.
    """

    name = "entities"
    told = ("interchanged",)

    def features(self, target: Target) -> list[str]:
        keys = dict.fromkeys(key for item in target.others or (target.item,) for key in item.entities)
        return [feature for key in keys for feature in (f"={key}", *_list_lower_case_words(key))]


class Words(_LinearIntruder):
    """Learns all words of the texts of each class.

    Where it is told that terms were altered, it leaves out the words of entities; where it is told that they were
    interchanged, it puts the entities of the other texts in their place.

    Args:
        model: see :class:`Entities`.
    """

    name = "words"
    told = ("altered", "interchanged")

    def features(self, target: Target) -> list[str]:
        words = _list_lower_case_words(target.item.text)
        if not target.told:
            return words
        others = (word for other in target.others for form in other.forms for word in _list_lower_case_words(form))
        return [*_remove_entity_words(words, target.item.forms), *others]


def _list_lower_case_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _remove_entity_words(words: list[str], forms: Sequence[str]) -> list[str]:
    """The words without those of entities, which must follow each other as in their form."""
    by_first: dict[str, list[list[str]]] = {}
    for form in forms:
        if form_words := _list_lower_case_words(form):
            by_first.setdefault(form_words[0], []).append(form_words)
    rest: list[str] = []
    i = 0
    while i < len(words):
        lengths = [len(f) for f in by_first.get(words[i], ()) if words[i : i + len(f)] == f]
        if not lengths:
            rest.append(words[i])
        i += max(lengths, default=1)
    return rest


class ComplementBayes:
    """Complement naive Bayes for many classes (Rennie et al. 2003, "Tackling the poor assumptions of naive Bayes text
    classifiers", ICML), in memory that grows with the texts and not with words times classes.

    The weight of word i for class c is -log((a_i - n_ci + s) / sum_j (a_j - n_cj + s)), where n_ci counts the word in
    the class, a_i in all classes, and s smooths. Most n_ci are zero: only differences from the weights of n_ci = 0 are
    stored. Rows of data are sparse matrices of counts or weights, 0 or more.

    Args:
        smoothing: s, greater than 0.

    Attributes:
        classes_: (C,) labels, sorted.
    """

    def __init__(self, smoothing: float = 0.1) -> None:
        self.smoothing = smoothing

    def fit(self, x: Any, y: NDArray[np.int64]) -> ComplementBayes:
        """Learn from rows ``x`` (n, V), sparse, and their classes ``y`` (n,)."""
        self.classes_, places = np.unique(y, return_inverse=True)
        n, count = len(y), len(self.classes_)
        members = sparse.csr_matrix((np.ones(n), (places, np.arange(n))), shape=(count, n))
        differences = (members @ x).tocsr()
        smooth = np.asarray(differences.sum(axis=0), np.float64).ravel() + self.smoothing
        self._word_weights = -np.log(smooth)
        rest = np.maximum(smooth[differences.indices] - differences.data, self.smoothing)
        differences.data = -np.log(rest) - self._word_weights[differences.indices]
        differences.sort_indices()
        sizes = (members @ np.asarray(x.sum(axis=1), np.float64)).ravel()
        self._class_weights = np.log(smooth.sum() - sizes)
        self._differences = differences
        self._by_word = differences.T.tocsr()
        mean = np.asarray(differences.sum(axis=0)).ravel() / count
        self._mean = self._word_weights + self._class_weights.mean() + mean
        return self

    def rank_top_classes(self, x: Any, guesses: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best classes of each row, (n, guesses) places in ``classes_``, and their scores; ties go to the first."""
        n, count = x.shape[0], len(self.classes_)
        order, scores = np.zeros((n, guesses), np.int64), np.zeros((n, guesses))
        step = max(1, _ROOM // count)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            table = self.score_classes(x[part])
            rows = np.arange(len(table))
            for k in range(guesses):
                order[part, k] = best = table.argmax(axis=1)
                scores[part, k] = table[rows, best]
                table[rows, best] = -np.inf
        return order, scores

    def score_classes(self, x: Any) -> NDArray[np.float64]:
        """(n, C) log-likelihoods of the rows under each class's complement, negated: higher is surer."""
        scores: NDArray[np.float64] = (x @ self._by_word).toarray()
        scores += np.outer(np.asarray(x.sum(axis=1)).ravel(), self._class_weights)
        scores += np.asarray(x @ self._word_weights).reshape(-1, 1)
        return scores

    def compute_class_weights(self, class_index: int, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of some words for class number ``class_index``, less their means over the classes."""
        weights: NDArray[np.float64] = self._word_weights[words] + self._class_weights[class_index] - self._mean[words]
        part = slice(self._differences.indptr[class_index], self._differences.indptr[class_index + 1])
        stored, differences = self._differences.indices[part], self._differences.data[part]
        if len(stored):
            places = np.minimum(np.searchsorted(stored, words), len(stored) - 1)
            weights += np.where(stored[places] == words, differences[places], 0.0)
        return weights

"""Two intruders that need no network: linear models on entities, and on all words.

Both are support vector machines on TF-IDF weights, one class against the rest; for very many texts and classes,
complement naive Bayes (Rennie et al. 2003), which needs one pass.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from allonym.errors import UsageError
from allonym.intruder.complement import Complement
from allonym.intruder.protocol import Item, Ranking, Target

MODELS = ("auto", "margin", "bayes")
_MANY = 3_000_000  # texts times classes from which on ``auto`` takes the quick model
_GUESSES = 5
_WORD = re.compile(r"\w\w+")


class _Linear:
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

    def learn(self, items: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> _Judge:
        """Fit the model; see :class:`allonym.intruder.Intruder`."""
        rows = [self.features(Target(item)) for item in items]
        readable = [i for i, row in enumerate(rows) if row]
        y = np.array([labels[i] for i in readable], np.int64)
        guesses = max(1, min(_GUESSES, len(classes)))
        if len(set(y.tolist())) < 2:
            return _Judge(self, None, None, y[:1], guesses)
        weights = TfidfVectorizer(analyzer=list, sublinear_tf=True)
        x = weights.fit_transform([rows[i] for i in readable])
        is_quick = self._model == "bayes" or (self._model == "auto" and len(readable) * len(classes) > _MANY)
        model: Any = Complement(0.1) if is_quick else LinearSVC(max_iter=5000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a margin that is not quite the widest will do
            model.fit(x, y)
        return _Judge(self, weights, model, model.classes_, guesses)


@dataclass(repr=False, eq=False)
class _Judge:
    _intruder: _Linear
    _weights: Any
    _model: Any
    _classes: Any
    _guesses: int

    def rank(self, targets: Sequence[Target]) -> Ranking:
        order = np.full((len(targets), self._guesses), -1, np.int64)
        scores = np.full((len(targets), self._guesses), -np.inf)
        if self._model is None:  # it knows one class at most
            order[:, : len(self._classes)] = self._classes
            scores[:, : len(self._classes)] = 0
        elif targets:
            best, best_scores = self._rank_places(self._weigh(targets))
            order[:, : best.shape[1]] = self._classes[best]
            scores[:, : best.shape[1]] = best_scores
        return Ranking(order, scores)

    def _rank_places(self, x: Any) -> tuple[Any, Any]:
        """The places of the best classes, and their scores."""
        if isinstance(self._model, Complement):
            return self._model.rank_top_classes(x, min(self._guesses, len(self._classes)))
        table = self._model.decision_function(x)
        if table.ndim == 1:  # of two classes, the margins of the second
            table = np.column_stack((-table, table))
        best = np.argsort(-table, axis=1, kind="stable")[:, : self._guesses]
        return best, np.take_along_axis(table, best, axis=1)

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        if self._model is None or not targets:
            return {}
        names = self._weights.get_feature_names_out()
        x = self._weigh(targets)
        places = {int(c): i for i, c in enumerate(self._classes)}
        weights_for = self._class_weights()
        rows_of: dict[int, list[int]] = {}
        for i, label in enumerate(labels):
            rows_of.setdefault(label, []).append(i)
        total: dict[str, float] = {}
        for label, rows in sorted(rows_of.items()):
            part = x[rows]
            words, positions = np.unique(part.indices, return_inverse=True)
            added = np.bincount(positions, part.data) * weights_for(places[label], words)
            for k, weight in zip(words.tolist(), added.tolist(), strict=True):
                if weight > 0:
                    total[names[k]] = total.get(names[k], 0.0) + weight
        return total

    def _weigh(self, targets: Sequence[Target]) -> Any:
        return self._weights.transform([self._intruder.features(target) for target in targets])

    def _class_weights(self) -> Callable[[int, Any], Any]:
        """A function of a class's place and of words: how much more each word speaks for the class than for others."""
        if isinstance(self._model, Complement):
            return self._model.weights
        table = self._model.coef_
        if len(table) == 1:  # of two classes, the weights of the second
            table = np.concatenate((-table, table))
        mean = table.mean(axis=0)
        return lambda c, words: table[c, words] - mean[words]


class Entities(_Linear):
    """Learns which entities occur in the texts of each class: keys as a whole, and their words.

    Where it is told that terms were interchanged, it looks at the entities of the other texts instead.

    Args:
        model: ``margin``, ``bayes``, or ``auto``, which takes the second only for very many texts and classes.
    """

    name = "entities"
    told = ("interchanged",)

    def features(self, target: Target) -> list[str]:
        keys = dict.fromkeys(key for item in target.others or (target.item,) for key in item.entities)
        return [feature for key in keys for feature in (f"={key}", *_split_words(key))]


class Words(_Linear):
    """Learns all words of the texts of each class.

    Where it is told that terms were altered, it leaves out the words of entities; where it is told that they were
    interchanged, it puts the entities of the other texts in their place.

    Args:
        model: see :class:`Entities`.
    """

    name = "words"
    told = ("altered", "interchanged")

    def features(self, target: Target) -> list[str]:
        words = _split_words(target.item.text)
        if not target.told:
            return words
        others = (word for other in target.others for form in other.forms for word in _split_words(form))
        return [*_remove_forms(words, target.item.forms), *others]


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _remove_forms(words: list[str], forms: Sequence[str]) -> list[str]:
    """The words without those of entities, which must follow each other as in their form."""
    by_first: dict[str, list[list[str]]] = {}
    for form in forms:
        if form_words := _split_words(form):
            by_first.setdefault(form_words[0], []).append(form_words)
    rest: list[str] = []
    i = 0
    while i < len(words):
        lengths = [len(f) for f in by_first.get(words[i], ()) if words[i : i + len(f)] == f]
        if not lengths:
            rest.append(words[i])
        i += max(lengths, default=1)
    return rest

"""Two intruders that need no network: linear models on entities, and on all words.

Both are support vector machines on TF-IDF weights, one against the rest; where there are very many texts and classes,
complement naive Bayes (Rennie et al. 2003), which costs one pass.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from allonym.errors import UsageError
from allonym.intruder.complement import Complement
from allonym.intruder.protocol import Item, Ranking, Target

MODELS = ("auto", "margin", "bayes")
_MANY = 3_000_000  # texts times classes; beyond, auto takes the quick model
_GUESSES = 5
_WORD = re.compile(r"\w\w+")


class _Linear:
    """What the two share: features of a target, and a linear model on them."""

    learns = True
    name = ""
    told: tuple[str, ...] = ()

    def __init__(self, model: str = "auto") -> None:
        if model not in MODELS:
            raise UsageError(f"intruder {self.name!r}: model must be one of {', '.join(MODELS)}, got {model!r}")
        self._model = model

    def features(self, target: Target) -> list[str]:
        """What the model looks at."""
        return []

    def learn(self, known: Sequence[Item], labels: Sequence[int], classes: Sequence[str]) -> _Judge:
        """Fit the model; see :class:`allonym.intruder.Intruder`."""
        rows = [self.features(Target(item)) for item in known]
        kept = [i for i, row in enumerate(rows) if row]
        y = np.array([labels[i] for i in kept], np.int64)
        guesses = max(1, min(_GUESSES, len(classes)))
        if len(set(y.tolist())) < 2:
            return _Judge(self, None, None, y[:1], guesses)
        weights = TfidfVectorizer(analyzer=list, sublinear_tf=True)
        x = weights.fit_transform([rows[i] for i in kept])
        quick = self._model == "bayes" or (self._model == "auto" and len(kept) * len(classes) > _MANY)
        model: Any = Complement(0.1) if quick else LinearSVC(max_iter=5000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a margin that is not quite the widest will do
            model.fit(x, y)
        return _Judge(self, weights, model, model.classes_, guesses)


class _Judge:
    def __init__(self, intruder: _Linear, weights: Any, model: Any, classes: Any, guesses: int) -> None:
        self._intruder = intruder
        self._weights = weights
        self._model = model
        self._classes = classes
        self._guesses = guesses

    def rank(self, targets: Sequence[Target]) -> Ranking:
        order = np.full((len(targets), self._guesses), -1, np.int64)
        scores = np.full((len(targets), self._guesses), -np.inf)
        if self._model is None:  # it knows one class at most
            order[:, : len(self._classes)] = self._classes
            scores[:, : len(self._classes)] = 0
            return Ranking(order, scores)
        if not targets:
            return Ranking(order, scores)
        x = self._features(targets)
        if isinstance(self._model, Complement):
            best, scored = self._model.top(x, min(self._guesses, len(self._classes)))
        else:
            table = self._margins(x)
            best = np.argsort(-table, axis=1, kind="stable")[:, : self._guesses]
            scored = np.take_along_axis(table, best, axis=1)
        order[:, : best.shape[1]] = self._classes[best]
        scores[:, : best.shape[1]] = scored
        return Ranking(order, scores)

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        if self._model is None or not targets:
            return {}
        names = self._weights.get_feature_names_out()
        x = self._features(targets)
        place = {int(c): i for i, c in enumerate(self._classes)}
        weights = self._weights_of()
        rows_of: dict[int, list[int]] = {}
        for i, label in enumerate(labels):
            rows_of.setdefault(label, []).append(i)
        out: dict[str, float] = {}
        for label, rows in sorted(rows_of.items()):
            some = x[rows]
            words, at = np.unique(some.indices, return_inverse=True)
            gave = np.bincount(at, some.data) * weights(place[label], words)
            for k, weight in zip(words.tolist(), gave.tolist(), strict=True):
                if weight > 0:
                    out[names[k]] = out.get(names[k], 0.0) + weight
        return out

    def _features(self, targets: Sequence[Target]) -> Any:
        return self._weights.transform([self._intruder.features(t) for t in targets])

    def _margins(self, x: Any) -> Any:
        table = self._model.decision_function(x)
        return np.column_stack((-table, table)) if table.ndim == 1 else table

    def _weights_of(self) -> Callable[[int, Any], Any]:
        """A function of a class's place and of words: what each word speaks for the class more than for the others."""
        if isinstance(self._model, Complement):
            return self._model.weights
        table = self._model.coef_
        table = np.concatenate((-table, table)) if len(table) == 1 else table
        mean = table.mean(axis=0)
        return lambda c, words: table[c, words] - mean[words]


class Entities(_Linear):
    """Knows which entities occur in other texts of each class: keys as a whole, and their words.

    Told that terms were interchanged, it looks at the entities of the other texts instead.

    Args:
        model: ``margin``, ``bayes``, or ``auto``, which takes the second only for very many texts and classes.
    """

    name = "entities"
    told = ("interchanged",)

    def features(self, target: Target) -> list[str]:
        if target.others:
            keys = [key for other in target.others for key in other.entities]
        else:
            keys = list(target.item.entities)
        return [f for key in dict.fromkeys(keys) for f in (f"={key}", *_words(key))]


class Words(_Linear):
    """Knows all words of other texts of each class.

    Told that terms were altered, it leaves out the entities' words; told that they were interchanged, it puts the
    entities of the other texts in their place.

    Args:
        model: see :class:`Entities`.
    """

    name = "words"
    told = ("altered", "interchanged")

    def features(self, target: Target) -> list[str]:
        words = _words(target.item.text)
        if not target.told:
            return words
        words = _without(words, target.item.forms)
        return [*words, *(w for other in target.others for form in other.forms for w in _words(form))]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _without(words: list[str], forms: Sequence[str]) -> list[str]:
    """The words without those of entities, which must stand together as in their form."""
    by_first: dict[str, list[list[str]]] = {}
    for form in forms:
        if piece := _words(form):
            by_first.setdefault(piece[0], []).append(piece)
    out: list[str] = []
    at = 0
    while at < len(words):
        fits = [len(p) for p in by_first.get(words[at], ()) if words[at : at + len(p)] == p]
        if fits:
            at += max(fits)
        else:
            out.append(words[at])
            at += 1
    return out

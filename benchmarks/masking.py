"""Two baselines that mask words of texts about known subjects: by a classifier's reasons, and at random.

Both look at every text together with its subject, as a publisher can who knows whom the texts are about. ``panel.py``
measures them beside tools that look at a text alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from allonym.document import Interval
from allonym.evaluate.general_words import CONTENT, list_words_and_placeholders
from allonym.models.words import split_words

MASK = "***"
_WORD = re.compile(r"\w[\w'’-]*")


def mask_words(text: str, spans: Sequence[Interval]) -> str:
    """Write :data:`MASK` for each of the half-open, disjoint spans; sorts them first."""
    out, position = [], 0
    for start, end in sorted(spans):
        out += [text[position:start], MASK]
        position = end
    return "".join((*out, text[position:]))


def mask_until_unattributed(
    texts: Sequence[str], subjects: Sequence[str], groups: Sequence[str], *, folds: int = 5, seed: int = 11
) -> list[list[Interval]]:
    """Choose what to mask so that a classifier no longer attributes a text to its subject; return spans of each text.

    After PETRE (Manzanares-Salor, Sánchez and Lison): the term that speaks most for the subject against the best other
    one is masked wherever it stands, again and again, until the subject no longer comes first. The published method
    explains a fine-tuned transformer by Shapley values; this one has a linear classifier of words and pairs of words,
    whose weights explain it exactly. It learns from the originals of the other folds and chooses within a group.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import KFold

    spans: list[list[Interval]] = [[] for _ in texts]
    for group in dict.fromkeys(groups):
        members = np.array([i for i, name in enumerate(groups) if name == group])
        truth = np.array([subjects[i] for i in members])
        for learn, judge in KFold(folds, shuffle=True, random_state=seed).split(members):
            vectors = TfidfVectorizer(sublinear_tf=True, token_pattern=_WORD.pattern, ngram_range=(1, 2))
            model = RidgeClassifier().fit(vectors.fit_transform([texts[i] for i in members[learn]]), truth[learn])
            names = list(model.classes_)
            weights = model.coef_ if len(names) > 2 else np.vstack([-model.coef_, model.coef_])
            for i in members[judge]:
                if subjects[i] not in names:  # nobody else's text is about them
                    continue
                spans[i] = _mask_text(texts[i], names.index(subjects[i]), vectors, model, weights)
    return spans


def _mask_text(text: str, subject: int, vectors: Any, model: Any, weights: Any) -> list[Interval]:
    words = [(m.start(), m.end()) for m in _WORD.finditer(text)]
    masked: list[Interval] = []
    while len(masked) < len(words):
        row = vectors.transform([mask_words(text, masked).replace(MASK, " \x00 ")])
        scores = model.decision_function(row)[0]
        others = np.delete(np.arange(len(scores)), subject)
        rival = others[scores[others].argmax()]
        if scores[rival] >= scores[subject]:
            break
        gains = dict(zip(row.indices, row.data * (weights[subject] - weights[rival])[row.indices], strict=True))
        left = [word for word in words if word not in masked]
        surfaces = [text[start:end].lower() for start, end in left]
        values = [gains.get(vectors.vocabulary_.get(surface, -1), 0.0) for surface in surfaces]
        for k in range(1, len(left)):
            pair = gains.get(vectors.vocabulary_.get(f"{surfaces[k - 1]} {surfaces[k]}", -1), 0.0) / 2
            values[k - 1] += pair
            values[k] += pair
        totals: dict[str, float] = {}
        for surface, value in zip(surfaces, values, strict=True):
            totals[surface] = max(totals.get(surface, 0.0), value)
        best = max(totals, key=lambda surface: totals[surface])
        masked += [word for word, surface in zip(left, surfaces, strict=True) if surface == best]
    return masked


def mask_at_random(
    contents: Sequence[Sequence[Interval]], shares: Sequence[float], *, seed: int = 7
) -> list[list[Interval]]:
    """Choose at random as many content words of each text as make up its share, 0 to 1; return their spans."""
    rng = np.random.default_rng(seed)
    out = []
    for words, share in zip(contents, shares, strict=True):
        number = round((0.0 if share != share else share) * len(words))
        out.append([words[k] for k in rng.permutation(len(words))[:number]])
    return out


def list_content_words(text: str) -> list[Interval]:
    """List the nouns, verbs, adjectives, adverbs and numbers of a text."""
    words = list_words_and_placeholders(text)
    return [(w.start, w.end) for w in words if w.label is None and w.part in CONTENT]


def compute_share_gone(text: str, content: Sequence[Interval], anonymised: str) -> float:
    """Return the share of a text's content words that its anonymised text no longer has; NaN where there are none."""
    if not content:
        return float("nan")
    left = Counter(anonymised[start:end].lower() for start, end in split_words(anonymised))
    before = Counter(text[start:end].lower() for start, end in content)
    return 1 - sum(min(n, left[word]) for word, n in before.items()) / len(content)

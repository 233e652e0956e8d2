"""Syntheticity: can a classifier tell that a text was pseudonymised (P4 section 4.3, Table 5)?

Original and pseudonymised texts are mixed, and a linear model on word 1- and 2-grams and character 3- to 5-grams learns
which are which; case counts. P4 fine-tunes BERT instead, so the numbers are not those of its table. Both versions of a
text lie in one fold: no model has seen either of them. Names that are often in the originals and never in the
pseudonymised texts are learnt too, by P4's model as by this one: it is a measure of the corpus, and grows with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.svm import LinearSVC

from allonym.document import splice_text
from allonym.errors import UsageError
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import bootstrap
from allonym.text.placeholders import find_placeholders

FOLDS = 5
ALWAYS = 2 / 3
"""F1 of calling every text pseudonymised, as half of them are."""
KINDS = ("name or capitalised word", "lower-case word", "number", "tag", "punctuation")
_LEAST = 2  # texts that a feature must be in to be learnt
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Sign:
    """A feature that distinguishes the two versions.

    Attributes:
        term: a word or two, or a run of characters (in quotes); of the texts.
        side: the version that it speaks for, ``pseudonymised`` or ``original``.
        weight: what it adds to the margin between the two versions, mean over pairs; 0 or above.
        pairs: in how many pairs its count differs.
    """

    term: str = field(repr=False)
    side: str
    weight: float
    pairs: int


class Syntheticity(Serialisable):
    """How well pseudonymised texts are recognised; all texts judged by models that saw neither version of them.

    Attributes:
        precision, recall, f1: of "pseudonymised", 0 to 1, percentile intervals of pairs drawn again. F1 of guessing is
            0.5, of calling every text pseudonymised 2/3 (:data:`ALWAYS`).
        accuracy: 0.5 is chance.
        told_apart: how often the pseudonymised one of a pair has the higher margin, for who holds both; 0.5 is chance.
        pairs: pairs that were judged; unchanged: pairs left out, because both versions are one text.
        folds: how many.
        kinds: share of the margin between the versions by kind of feature (:data:`KINDS`), each 0 to 1; no text.
        signs: the features that told most, best first.
    """

    KEYS = (
        *("precision", "recall", "f1", "accuracy", "told_apart", "chance", "pairs", "unchanged", "folds"),
        "kinds=_kind_shares",
    )
    TEXT_KEYS = ("signs",)

    precision: Estimate
    recall: Estimate
    f1: Estimate
    accuracy: Estimate
    told_apart: Estimate
    pairs: int
    unchanged: int
    folds: int
    kinds: tuple[tuple[str, float], ...]
    signs: tuple[Sign, ...] = field(default=(), repr=False)

    @property
    def chance(self) -> dict[str, float]:
        """What guessing reaches, and what calling every text pseudonymised does (``f1_always``)."""
        return {"accuracy": 0.5, "f1": 0.5, "f1_always": ALWAYS}

    @property
    def _kind_shares(self) -> dict[str, float]:
        return dict(self.kinds)


def syntheticity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Advance | None = None,
) -> Syntheticity:
    """Measure whether a linear model can tell pseudonymised texts from originals (P4 Table 5: lower is better).

    A text that equals its pseudonymised version is neither, and left out. Texts with the same original or the same
    pseudonymised version are judged in one fold.

    Args:
        original, anonymised: texts before and after, in the same order.
        folds: parts that are judged in turn, 2 or more, and at most the number of different texts.
        seed: of the folds and of the intervals.
        advance: called with folds done and in all.

    Raises:
        DataError: unequal lengths, or no text.
        UsageError: fewer than two folds.
    """
    check_lengths(original, anonymised)
    if folds < 2:
        raise UsageError(f"syntheticity: 2 folds at least are required, got {folds}")
    changed = [i for i, (a, b) in enumerate(zip(original, anonymised, strict=True)) if a != b]
    old, new = [original[i] for i in changed], [anonymised[i] for i in changed]
    unchanged = len(original) - len(changed)
    groups = _group_pairs_by_shared_version(old, new)
    parts = min(folds, max(groups, default=-1) + 1)
    if parts < 2:
        nothing = none("two different texts that have changed are required", len(changed))
        return Syntheticity(nothing, nothing, nothing, nothing, nothing, len(changed), unchanged, 0, ())
    fold = _assign_pairs_to_folds(groups, parts, seed)
    counted, terms, in_tags = _count_features(old, new)
    margins = np.zeros((2, len(changed)))
    weights: Any = Counter()  # of floats
    times: Counter[int] = Counter()
    for part in iterate_with_progress(range(parts), advance, parts):
        rest, judged = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        margins[:, judged] = _train_and_judge_fold(counted, rest, judged, weights, times)
    features = [
        (terms[k], "tag" if k in in_tags else _find_feature_kind(terms[k]), weight, times[k])
        for k, weight in weights.items()
    ]
    return _summarise_syntheticity(margins, groups, features, unchanged, parts, seed)


def _count_features(original: Sequence[str], new: Sequence[str]) -> tuple[list[Any], list[str], frozenset[int]]:
    """Count words and runs of characters; return the counts, the names of all columns, and the columns of tags.

    A feature belongs to tags if it occurs in no original, and in no pseudonymised text whose placeholders are cut out.
    """
    views = [
        CountVectorizer(lowercase=False, ngram_range=(1, 2), token_pattern=r"\w+", min_df=_LEAST),
        CountVectorizer(lowercase=False, ngram_range=(3, 5), analyzer="char", min_df=_LEAST),
    ]
    cut = [splice_text(text, [(p.start, p.end, " ") for p in find_placeholders(text)]) for text in new]
    counts: list[Any] = []
    terms: list[str] = []
    in_tags: list[int] = []
    for view in views:
        try:
            counts.append(view.fit_transform([*original, *new]))
        except ValueError:  # nothing is in two texts
            counts.append(csr_matrix((len(original) + len(new), 0)))
            continue
        outside = counts[-1][: len(original)].getnnz(axis=0) + view.transform(cut).getnnz(axis=0)
        in_tags += (np.flatnonzero(outside == 0) + len(terms)).tolist()
        terms += [repr(name) if view.analyzer == "char" else name for name in view.get_feature_names_out().tolist()]
    return counts, terms, frozenset(in_tags)


def _train_and_judge_fold(counted: list[Any], train: Any, test: Any, added: Any, times: Counter[int]) -> Any:
    """Return margins (2, test) of originals and pseudonymised texts.

    Rows of ``counted`` are originals and then pseudonymised texts; only ``train`` says what features there are. What
    each feature contributes to the margin between two versions, signed by the version that it speaks for, is added to
    ``added``, and in how many pairs its count differs to ``times``.
    """
    n = counted[0].shape[0] // 2
    learnt, judged = np.concatenate((train, train + n)), np.concatenate((test, test + n))
    parts, used, offset = [], [], 0
    for counts in counted:
        frequent = np.flatnonzero(counts[learnt].getnnz(axis=0) >= _LEAST)
        if len(frequent):
            weights = TfidfTransformer(sublinear_tf=True).fit(counts[learnt][:, frequent])
            parts.append(weights.transform(counts[:, frequent]))
            used.append(frequent + offset)
        offset += counts.shape[1]
    if not parts:
        return np.zeros((2, len(test)))
    rows = hstack(parts, "csr")
    model = LinearSVC(max_iter=5000, random_state=0).fit(rows[learnt], np.repeat([0, 1], len(train)))
    difference = csr_matrix(rows[test + n] - rows[test])
    difference.eliminate_zeros()
    signed = np.bincount(difference.indices, difference.data * model.coef_[0][difference.indices], rows.shape[1])
    helpful = np.flatnonzero(signed > 0)
    columns = np.concatenate(used)[helpful].tolist()
    contributions = signed[helpful] * np.sign(model.coef_[0][helpful])
    differing = np.bincount(difference.indices, minlength=rows.shape[1])[helpful]
    added.update(dict(zip(columns, contributions.tolist(), strict=True)))
    times.update(dict(zip(columns, differing.tolist(), strict=True)))
    return model.decision_function(rows[judged]).reshape(2, len(test))


def _summarise_syntheticity(
    margins: Any, groups: list[int], features: list[tuple[str, str, float, int]], unchanged: int, folds: int, seed: int
) -> Syntheticity:
    called = margins > 0
    members = [np.flatnonzero(np.array(groups) == g) for g in range(max(groups) + 1)]
    # Per group: called rightly, called wrongly, all, and judged rightly with both versions at hand.
    table = np.array(
        [(called[1, m].sum(), called[0, m].sum(), len(m), _score_told_apart(margins[:, m]).sum()) for m in members],
        float,
    )

    def estimate_ratio(terms_of: Callable[[Any], tuple[float, float]]) -> Estimate:
        def ratio_of(units: Any) -> float:
            top, bottom = terms_of(table[units].sum(axis=0))
            return top / bottom if bottom else float("nan")

        return bootstrap(ratio_of, len(table), seed=seed)

    n = margins.shape[1]
    by_kind = dict.fromkeys(KINDS, 0.0)
    for _, kind, weight, _ in features:
        by_kind[kind] += abs(weight)
    total = sum(by_kind.values())
    best = sorted(features, key=lambda f: (-abs(f[2]), f[0]))[:_SHOWN]
    return Syntheticity(
        precision=estimate_ratio(lambda t: (t[0], t[0] + t[1])),
        recall=estimate_ratio(lambda t: (t[0], t[2])),
        f1=estimate_ratio(lambda t: (2 * t[0], t[0] + t[1] + t[2])),
        accuracy=estimate_ratio(lambda t: (t[0] + t[2] - t[1], 2 * t[2])),
        told_apart=estimate_ratio(lambda t: (t[3], t[2])),
        pairs=n,
        unchanged=unchanged,
        folds=folds,
        kinds=tuple((k, v / total) for k, v in by_kind.items()) if total else (),
        signs=tuple(
            Sign(name, "pseudonymised" if weight > 0 else "original", abs(weight) / n, differs)
            for name, _, weight, differs in best
        ),
    )


def _score_told_apart(margins: Any) -> Any:
    """Return 1 where the pseudonymised version has the higher margin, and a half for a draw."""
    return (margins[1] > margins[0]) + 0.5 * (margins[1] == margins[0])


def _find_feature_kind(feature: str) -> str:
    """The kind of a feature (:data:`KINDS`) that is not a tag's."""
    if any(c.isdigit() for c in feature):
        return "number"
    if any(c.isupper() for c in feature):
        return "name or capitalised word"
    return "lower-case word" if any(c.isalpha() for c in feature) else "punctuation"


def _group_pairs_by_shared_version(original: Sequence[str], pseudonymised: Sequence[str]) -> list[int]:
    """Number groups of pairs from 0, in order of appearance; pairs that share a version are in one group."""
    n = len(original)
    number = {text: n + k for k, text in enumerate(dict.fromkeys((*original, *pseudonymised)))}
    ends = [number[text] for text in (*original, *pseudonymised)]
    graph = csr_matrix((np.ones(2 * n), ([*range(n), *range(n)], ends)), (n + len(number),) * 2)
    groups: list[int] = connected_components(graph, directed=False)[1][:n].tolist()
    return groups


def _assign_pairs_to_folds(group_of_pair: list[int], folds: int, seed: int) -> Any:
    """Assign pairs to folds: groups are shuffled and dealt out in turn."""
    order = np.random.default_rng(seed).permutation(max(group_of_pair) + 1)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) % folds
    return place[np.array(group_of_pair)]

"""Document risk before release: the probability that an intruder finds whom a document is about, from what is left in
it.

P3 (5.4) names such an a priori score as missing. A logistic model learns from :func:`leftovers` which documents the
offline intruder of :mod:`.intruder` has found; a second step sets its probabilities right (Platt 1999). Everything is
cross-fitted: a document's probability comes from models that were fitted and calibrated without it.

Without subjects nobody knows what an intruder would find. Then documents get a rank only, never a probability: no
coefficients are shipped, since there is no corpus with known intruders that allows it.

Traits of anonymised documents that may still identify their subjects, as numbers: a row for each document.

Placeholders are passed over. The traits count entities that the detectors still find, words that are rare in the
language or in the corpus, and sets of them that no other document has, and measure how similar the next document is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from wordfreq import zipf_frequency

from allonym.document import Span
from allonym.errors import UsageError
from allonym.evaluate.intruder import Reidentification, reidentification
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.intruder.before_after import assign_folds
from allonym.intruder.linkage import FeatureReader, TfidfWeights
from allonym.labels import TAXONOMY
from allonym.pipeline import detect_many
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.partition import count_frequencies, fit_partition, log_stay
from allonym.stats.samples import average, bootstrap, share
from allonym.text.fold import Level, fold_surface
from allonym.text.placeholders import find_placeholders

TRAITS: Mapping[str, str] = {
    "words": "words that are left (logarithm)",
    "placeholders": "placeholders per word left",
    "direct": "entities left that identify alone",
    "quasi": "entities left that identify in combination",
    "kinds": "different kinds of entities left",
    "rare_entities": "how rare these entities are in the corpus (sum of log N / documents that hold them)",
    "shared_entities": "the same, of those only that another document holds too",
    "rare_words": "words below 1 in 300,000 of the language (Zipf 3.5)",
    "odd_words": "words below 1 in 10 million of the language, or not known (Zipf 2)",
    "oddness": "mean rarity of the words in the language (Zipf's scale turned round)",
    "corpus_words": "words that few other documents hold (sum of log N / documents), per root of words left",
    "population_unique": "kinds of entities whose set would stay unique in the population (Ewens-Pitman)",
    "nearest": "likeness of the nearest other document (cosine of TF-IDF)",
    "lead": "how much nearer it is than the tenth",
}
"""Names of the traits in order, and their meaning. Except for ``placeholders``, a higher value means more is left."""

_RARE, _ODD = 3.5, 2.0
_FEW = 0.05  # share of documents up to which a word is one of few
_NEIGHBOURS = 10
_AT_ONCE = 500
_LEAST = 10  # documents found, and not found, that calibration needs
_INNER = 5
_BINS = 10
_PENALTY = 0.1  # sklearn's C
_SIGNS = tuple(-1.0 if name == "placeholders" else 1.0 for name in TRAITS)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bin:
    """Documents of about the same probability, for a reliability plot.

    Attributes:
        low, high: least and greatest probability among them; predicted: their mean.
        observed: share that the intruder found, Wilson's interval.
    """

    low: float
    high: float
    predicted: float
    observed: Estimate


class Review(Serialisable):
    """Documents that a person must review.

    Attributes:
        above: the limit; places: numbers of the documents from 0, the riskiest first.
        share: of all documents that go to review.
        caught: of the documents that the intruder found, the share among them.
        left: of the documents that need no review, the share that the intruder found.
    """

    KEYS = ("above", "documents", "share", "caught", "left")

    above: float
    places: tuple[int, ...]
    share: Estimate
    caught: Estimate
    left: Estimate

    @property
    def documents(self) -> list[int]:
        """Numbers of the documents from 1."""
        return [place + 1 for place in self.places]


class DocumentRisk(Serialisable):
    """The risk of every document, and how reliable it is.

    Attributes:
        calibrated: whether ``risks`` are probabilities; else they are ranks among the documents, 0 to 1.
        reason: why they are not; empty where they are.
        risks: per document, 0 to 1.
        found: per document whether the intruder found it; None: not judged.
        rate: share of the judged documents that it found.
        brier: mean squared error of the probabilities, t interval; reference: that of giving all the rate.
        error: expected calibration error over ten bins of equal size, bootstrap interval.
        auc: chance that a document that was found has the higher risk than one that was not, bootstrap interval.
        bins: of the reliability plot, ascending.
        histogram: documents with a risk in each twentieth of 0 to 1.
        traits: name to the coefficient of the model on all judged documents, per standard deviation; empty without.
        review: None where no limit was given.
        intruder: what the model was fitted to. Hidden from ``repr``.
    """

    KEYS = (
        *("calibrated", "reason", "rate", "brier", "reference", "error", "auc", "has_signal", "bins", "histogram"),
        *("traits=_trait_rows", "review", "risks", "found"),
    )

    calibrated: bool
    reason: str
    risks: tuple[float, ...] = field(repr=False)
    found: tuple[bool | None, ...] = field(repr=False)
    rate: Estimate
    brier: Estimate
    reference: Estimate
    error: Estimate
    auc: Estimate
    bins: tuple[Bin, ...]
    histogram: tuple[int, ...]
    traits: tuple[tuple[str, float], ...]
    review: Review | None
    intruder: Reidentification | None = field(default=None, repr=False)

    @property
    def has_signal(self) -> bool | None:
        """Whether the traits tell which documents are identified: AUC's interval lies above 0.5; None: not measured."""
        return None if math.isnan(self.auc.value) else self.auc.low > 0.5

    @property
    def _trait_rows(self) -> list[dict[str, object]]:
        return [{"name": name, "meaning": TRAITS[name], "weight": weight} for name, weight in self.traits]


def document_risk(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str] | None = None,
    *,
    groups: Sequence[str] | None = None,
    background: Sequence[tuple[str, str]] | None = None,
    intruder: Reidentification | None = None,
    features: str = "both",
    entities: Sequence[Sequence[Span]] | None = None,
    review_above: float | None = None,
    folds: int = 10,
    seed: int = 0,
    advance: Advance | None = None,
) -> DocumentRisk:
    """Estimate the probability that an intruder identifies each document.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        subjects: whose each text is, empty where that is not known; None: nobody knows, documents are only ranked.
        groups, background, features: of the intruder, see :func:`allonym.evaluate.intruder.reidentification`.
        intruder: what that gave for these texts; None: it is computed.
        entities: see :func:`leftovers`.
        review_above: documents of a greater risk go to a person, 0 to 1. None: none does.
        folds: parts of the documents; the risks of one come from the others. 2 or more.
        seed: of folds and draws.
        advance: called with the steps that are done, and of all.

    Raises:
        DataError: unequal lengths.
        UsageError: ``folds`` or ``review_above`` is not as above, or ``intruder`` is of other texts.
    """
    n = check_lengths(original, anonymised, subjects, groups, entities, least=0)
    if folds < 2:
        raise UsageError(f"document_risk: folds must be 2 or more, got {folds}")
    if review_above is not None and not 0 <= review_above <= 1:
        raise UsageError(f"document_risk: review_above must be from 0 to 1, got {review_above:g}")
    if intruder is not None and len(intruder.ranks) != n:
        raise UsageError(f"document_risk: an intruder on these {n} texts is required, got one on {len(intruder.ranks)}")
    if intruder is None and subjects is not None:
        options: dict[str, Any] = {"groups": groups, "background": background, "features": features, "seed": seed}
        intruder = reidentification(original, anonymised, subjects, knows="anonymised", **options)
    traits = leftovers(anonymised, entities=entities, advance=advance)
    identified = intruder.found if intruder is not None else (None,) * n
    judged = np.array([i for i, f in enumerate(identified) if f is not None], np.int64)
    y = np.array([bool(identified[i]) for i in judged.tolist()], np.int64)
    weights: tuple[tuple[str, float], ...] = ()
    if reason := _explain_obstacle(intruder, y):
        risks = _rank_documents_by_traits(traits)
    else:
        folded = [fold_surface(anonymised[i], Level.CASE) for i in judged.tolist()]
        home = assign_folds(folded, y.tolist(), folds, seed)  # copies share a fold
        risks, final = _cross_fit_risks(traits, judged, y, home, seed)
        weights = tuple(zip(TRAITS, (float(w) for w in final.weights), strict=True))
    judged_risks, n_judged = risks[judged], len(y)
    unknown = none(reason)
    return DocumentRisk(
        not reason,
        reason,
        tuple(float(r) for r in risks),
        identified,
        share(int(y.sum()), n_judged) if n_judged else none(reason or "no document was judged"),
        unknown if reason else average(((judged_risks - y) ** 2).tolist()),
        unknown if reason else average(((y.mean() - y) ** 2).tolist()),
        unknown
        if reason
        else bootstrap(
            lambda drawn: _compute_calibration_error(judged_risks[drawn], y[drawn]), n_judged, draws=500, seed=seed
        ),
        _estimate_auc(judged_risks, y, seed),
        () if reason else _make_calibration_bins(judged_risks, y),
        tuple(int(c) for c in np.histogram(risks, bins=20, range=(0, 1))[0]),
        weights,
        None if review_above is None else _plan_review(risks, identified, review_above),
        intruder,
    )


class _Model:
    """A logistic regression on traits, and a calibration of its log-odds by folds that it was not fitted to."""

    def __init__(self, traits: Floats, y: NDArray[np.int64], home: NDArray[np.int64]) -> None:
        odds = np.zeros(len(y))
        for fold in np.unique(home):
            rest = home != fold
            odds[~rest] = _fit_logistic(traits[rest], y[rest]).decision_function(traits[~rest])
        self._plain = _fit_logistic(traits, y)
        self._right = LogisticRegression(C=1e3, max_iter=1000).fit(odds[:, None], y)

    @property
    def weights(self) -> Floats:
        """The traits' coefficients, per standard deviation."""
        return np.asarray(self._plain[-1].coef_[0])

    def __call__(self, traits: Floats) -> Floats:
        odds = self._plain.decision_function(traits)
        return np.asarray(self._right.predict_proba(odds[:, None])[:, 1])


def _fit_logistic(traits: Floats, y: NDArray[np.int64]) -> Any:
    """Fit a logistic regression on standardised traits."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=_PENALTY, max_iter=1000)).fit(traits, y)


def _explain_obstacle(intruder: Reidentification | None, y: NDArray[np.int64]) -> str:
    """Return why nothing can be calibrated; empty where it can."""
    if intruder is None:
        return "no subjects are known, so no intruder can be asked; documents are only ranked"
    if not len(y):
        return "no document could be judged by the intruder; documents are only ranked"
    if min(y.sum(), len(y) - y.sum()) < _LEAST:
        return (
            f"the intruder found {int(y.sum())} of {len(y)} documents; {_LEAST} found and {_LEAST} not found are "
            "required to set probabilities right; documents are only ranked"
        )
    return ""


def _cross_fit_risks(
    traits: Floats, judged: NDArray[np.int64], y: NDArray[np.int64], fold_of: Any, seed: int
) -> tuple[Floats, _Model]:
    """Return the probability of each document by a model that was fitted without it, and the model of all judged
    documents, which gives the others theirs."""
    out = np.zeros(len(traits))
    rng = np.random.default_rng(seed)
    for fold in np.unique(fold_of):
        rest = fold_of != fold
        model = _Model(traits[judged[rest]], y[rest], _assign_inner_folds(y[rest], rng))
        out[judged[~rest]] = model(traits[judged[~rest]])
    final = _Model(traits[judged], y, _assign_inner_folds(y, rng))
    others = np.setdiff1d(np.arange(len(traits)), judged)
    if len(others):
        out[others] = final(traits[others])
    return out, final


def _assign_inner_folds(y: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign documents to inner folds, with equally many identified ones in each."""
    out = np.zeros(len(y), np.int64)
    for kind in (0, 1):
        members = rng.permutation(np.flatnonzero(y == kind))
        out[members] = np.arange(len(members)) % _INNER
    return out


def _rank_documents_by_traits(traits: Floats) -> Floats:
    """Return a substitute for risks where nothing was learnt: the rank by the mean rank of the traits, 0 to 1."""
    n = len(traits)
    if n < 2:
        return np.full(n, 0.5 if n else 0.0)
    places = np.column_stack([rankdata(column * sign) for column, sign in zip(traits.T, _SIGNS, strict=True)])
    return np.asarray((rankdata(places.mean(axis=1)) - 1) / (n - 1))


def _compute_auc(risks: Floats, identified: NDArray[np.int64]) -> float:
    """Return the Mann-Whitney statistic as a share; NaN of one class."""
    n, hits = len(identified), int(identified.sum())
    if not 0 < hits < n:
        return math.nan
    return float((rankdata(risks)[identified == 1].sum() - hits * (hits + 1) / 2) / (hits * (n - hits)))


def _estimate_auc(risks: Floats, identified: NDArray[np.int64], seed: int) -> Estimate:
    if not len(identified) or identified.min() == identified.max():
        return none("documents that were found, and documents that were not, are required", len(identified))
    return bootstrap(lambda drawn: _compute_auc(risks[drawn], identified[drawn]), len(identified), draws=500, seed=seed)


def _split_bins(risks: Floats) -> list[NDArray[np.int64]]:
    """Split documents into about ten bins of equal size; equal risks share one."""
    order = np.argsort(risks, kind="stable")
    ordered = risks[order]
    ends = {int(np.searchsorted(ordered, ordered[cut - 1], side="right")) for k in range(1, _BINS)
            if (cut := round(k * len(ordered) / _BINS))}  # fmt: skip
    return [part for part in np.split(order, sorted(ends)) if len(part)]


def _compute_calibration_error(risks: Floats, identified: NDArray[np.int64]) -> float:
    """Return the expected calibration error (Naeini et al. 2015): the mean distance of bins' predicted and observed
    rates."""
    parts = _split_bins(risks)
    return float(sum(len(p) * abs(risks[p].mean() - identified[p].mean()) for p in parts) / len(identified))


def _make_calibration_bins(risks: Floats, y: NDArray[np.int64]) -> tuple[Bin, ...]:
    return tuple(
        Bin(float(risks[p].min()), float(risks[p].max()), float(risks[p].mean()), share(int(y[p].sum()), len(p)))
        for p in _split_bins(risks)
    )


def _plan_review(risks: Floats, identified: Sequence[bool | None], above: float) -> Review:
    sent = risks > above
    places = [int(i) for i in np.argsort(-risks, kind="stable") if sent[i]]
    caught = [bool(sent[i]) for i, f in enumerate(identified) if f]
    rest = [bool(f) for i, f in enumerate(identified) if f is not None and not sent[i]]
    return Review(
        above,
        tuple(places),
        share(len(places), len(risks)),
        share(sum(caught), len(caught)) if caught else none("the intruder found no document"),
        share(sum(rest), len(rest)) if rest else none("no judged document is below the limit"),
    )


def leftovers(
    anonymised: Sequence[str],
    *,
    entities: Sequence[Sequence[Span]] | None = None,
    population: float | None = None,
    language: str = "en",
    policy: str = "default",
    advance: Advance | None = None,
) -> NDArray[np.float64]:
    """Measure the traits of anonymised texts: float ``(n, len(TRAITS))``, columns as :data:`TRAITS`.

    Args:
        anonymised: the texts as they would be released.
        entities: findings in each text; None: the policy's detectors find them.
        population: documents that the corpus is a sample of, at least as many as it has; None: a hundred times as many.
        language: of the word frequencies, as wordfreq names it.
        policy: the policy whose detectors are used.
        advance: called with the number of texts that were searched, and of all.

    Raises:
        DataError: the number of lists of entities differs from that of texts.
    """
    n = check_lengths(anonymised, anonymised, entities, least=0)
    reader = FeatureReader((1, 1))
    spans_by_text = entities
    if spans_by_text is None:
        spans_by_text = list(iterate_with_progress(detect_many(anonymised, policy), advance, n))
    placeholders = [[(p.start, p.end) for p in find_placeholders(text)] for text in anonymised]
    spans_left = [_drop_overlapping(spans, covers) for spans, covers in zip(spans_by_text, placeholders, strict=True)]
    words_left = [[text[a:b].lower() for a, b in reader.find_word_spans(text)] for text in anonymised]
    entities_left = [
        {(TAXONOMY.get_family(s.label), fold_surface(text[s.start : s.end])) for s in spans}
        for text, spans in zip(anonymised, spans_left, strict=True)
    ]
    documents = Counter(e for in_text in entities_left for e in in_text)
    word_documents = Counter(w for words in words_left for w in set(words))
    unique = _measure_uniqueness(entities_left, population or 100 * max(1, n))
    near = _measure_nearest_similarity_and_lead(reader, anonymised)
    table = np.zeros((n, len(TRAITS)))
    for i, (words, in_text) in enumerate(zip(words_left, entities_left, strict=True)):
        zipf = [zipf_frequency(w, language) for w in words if not w.isdigit()]
        kinds = [TAXONOMY.get(s.label).kind if s.label in TAXONOMY else "quasi" for s in spans_left[i]]
        few = [w for w in sorted(set(words)) if 1 < word_documents[w] <= max(2.0, _FEW * n)]
        table[i] = (
            math.log1p(len(words)),
            len(placeholders[i]) / (1 + len(words)),
            kinds.count("direct"),
            kinds.count("quasi"),
            len({kind for kind, _ in in_text}),
            sum(math.log(n / documents[e]) for e in sorted(in_text)),
            sum(math.log(n / documents[e]) for e in sorted(in_text) if documents[e] > 1),
            sum(z < _RARE for z in zipf),
            sum(z < _ODD for z in zipf),
            8 - sum(zipf) / len(zipf) if zipf else 0.0,
            sum(math.log(n / word_documents[w]) for w in few) / math.sqrt(1 + len(words)),
            unique[i],
            *near[i],
        )
    return table


def _drop_overlapping(spans: Sequence[Span], covers: Sequence[tuple[int, int]]) -> list[Span]:
    return [s for s in spans if not any(a < s.end and s.start < b for a, b in covers)]


def _measure_uniqueness(entities_by_text: Sequence[set[tuple[str, str]]], population: float) -> list[float]:
    """Sum over kinds, for each document, the probability that its set of entities is unique in the population.

    The table of a kind has a cell for every set of its values; a cell of one document stays alone with the probability
    of Ewens-Pitman's formula (P1 2.4). Kinds where nothing repeats have no fit and count as 1: all stay alone.
    """
    out = [0.0] * len(entities_by_text)
    for kind in sorted({kind for in_text in entities_by_text for kind, _ in in_text}):
        cells = [frozenset(value for k, value in in_text if k == kind) for in_text in entities_by_text]
        counts = Counter(cell for cell in cells if cell)
        n = sum(counts.values())
        fit = fit_partition(count_frequencies(counts.values()))
        stays = fit.estimate(log_stay(n, max(population, n)), degenerate=1.0).value if n > 1 else 1.0
        for i, cell in enumerate(cells):
            if cell and counts[cell] == 1:
                out[i] += stays
    return out


def _measure_nearest_similarity_and_lead(reader: FeatureReader, texts: Sequence[str]) -> Any:
    """Return the similarity of the nearest other document, and its lead over the tenth: ``(n, 2)``."""
    counts = reader.count_features(texts, "words")
    rows = TfidfWeights(counts).weigh_counts(counts)
    out = np.zeros((len(texts), 2))
    for start in range(0, len(texts), _AT_ONCE):
        similarity = (rows[start : start + _AT_ONCE] @ rows.T).toarray()
        similarity[np.arange(len(similarity)), start + np.arange(len(similarity))] = -1
        best = -np.sort(-similarity, axis=1)[:, :_NEIGHBOURS]
        if len(texts) > 1:
            last = best[:, min(_NEIGHBOURS, len(texts) - 1) - 1]
            out[start : start + len(similarity)] = np.column_stack((best[:, 0], best[:, 0] - last))
    return out

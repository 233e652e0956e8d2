"""Traits of anonymised documents that may still identify their subjects, as numbers: a row for each document.

Placeholders are passed over. The traits count entities that the detectors still find, words that are rare in the
language or in the corpus, and sets of them that no other document has, and measure how similar the next document is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from wordfreq import zipf_frequency

from allonym.document import Span
from allonym.evaluate.pairs import check_lengths, iterate_with_progress
from allonym.intruder.features import FeatureReader, TfidfWeights
from allonym.labels import TAXONOMY
from allonym.pipeline import detect_many
from allonym.stats.partition import count_frequencies, fit_partition, log_stay
from allonym.text.fold import fold_surface
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


def leftovers(
    anonymised: Sequence[str],
    *,
    entities: Sequence[Sequence[Span]] | None = None,
    population: float | None = None,
    language: str = "en",
    policy: str = "default",
    advance: Callable[[int, int], None] | None = None,
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

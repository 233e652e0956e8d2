"""What is left uncovered: leaks by type (P4 4.2, Table 4), and the measures of the Text Anonymization Benchmark.

By places, a gold mention leaks where some letter or digit of it is in no finding, of whatever type. By text, the
surface of a mention leaks where it still stands in the anonymised text as a whole word, in any case; each surface
counts once a document. A pseudonym that happens to be the same word counts as a leak, too.

P4 does not say what its column "Mean" averages: it is neither the mean of its three rates nor that of all entities.
Here both are told.

In the benchmark (Pilán et al. 2022, doi:10.1162/coli_a_00458, section 5) an entity counts as masked only where all its
mentions are: of a mention that every character is covered, function words, forms of address, marks and blanks aside.
Recall is counted apart for direct and quasi identifiers; precision over the words that were masked, each by its weight.
Several annotators are averaged micro: what each of them marked counts once. The types of the findings do not matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from allonym.document import Interval, Reach, clip_intervals, merge_intervals, subtract_intervals
from allonym.errors import DataError
from allonym.evaluate.matching import Finding, Mention, group_referents, has_uncovered_characters
from allonym.evaluate.surface_measures import open_word_frequencies
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import Draws
from allonym.text.fold import fold_spellings
from allonym.text.words import IDENTIFIER, compile_whole_words

_WIDTH = 5


class Leak(Serialisable):
    """The rates of one type, 0 to 1; lower is better.

    Attributes:
        mentions: share of the gold mentions that are not covered wholly.
        untouched: share of those of which nothing is covered.
        surfaces: share of the surfaces that still stand in the anonymised text; none without such a text.
    """

    mentions: Estimate
    untouched: Estimate
    surfaces: Estimate


class Leaks(Serialisable):
    """Leak rates: per type, the mean over the types (each weighs the same), and over all mentions together."""

    types: Mapping[str, Leak]
    mean: Leak
    all: Leak


def count_leaks(
    text: str, gold: Sequence[Mention], findings: Sequence[Finding], row_of: Mapping[str, int], anonymised: str | None
) -> Any:
    """Count one text, ``(classes, 5)``: mentions, those that leak, those untouched, surfaces, those that are left."""
    table = np.zeros((len(row_of), _WIDTH), np.int64)
    cover = merge_intervals((f.start, f.end) for f in findings)
    surfaces: dict[tuple[str, str], tuple[str, ...]] = {}
    for mention in gold:
        row, place = row_of[mention.name], (mention.start, mention.end)
        leaks = has_uncovered_characters(text, [place], cover)
        nothing = leaks and not clip_intervals(cover, *place)
        table[row, :3] += (1, leaks, nothing)
        if any(c.isalnum() for c in text[slice(*place)]):
            spellings = _list_folded_spellings(text[slice(*place)])
            surfaces[mention.name, spellings[0]] = spellings
    if anonymised is not None:
        texts = _list_folded_spellings(anonymised)
        for (name, _), spellings in surfaces.items():
            folded_text = any(contains_folded_surface(surface, rest) for surface in spellings for rest in texts)
            table[row_of[name], 3:] += (1, folded_text)
    return table


def _list_folded_spellings(text: str) -> tuple[str, ...]:
    """List the folded text, and its folded spelled-out form where that differs, with single blanks."""
    return tuple(" ".join(spelling.split()) for spelling in fold_spellings(text))


def contains_folded_surface(surface: str, text: str) -> bool:
    """Whether a surface occurs in a text as whole words; both are folded.

    >>> contains_folded_surface("ann", "anna met ann."), contains_folded_surface("ann", "anna")
    (True, False)
    """
    if surface not in text:
        return False
    return compile_whole_words(re.escape(surface)).search(text) is not None


def estimate_leaks(table: Any, draws: Draws, names: Sequence[str], *, after: bool) -> Leaks:
    """Estimate leak rates from :func:`count_leaks` of all texts, ``(n, classes, 5)``."""
    sums = draws.sums(table)[:, : len(names)]

    def estimate_leak(part: Any) -> Leak:
        return Leak(
            _average_class_rates(draws, part, 1, 0, "no mention"),
            _average_class_rates(draws, part, 2, 0, "no mention"),
            _average_class_rates(draws, part, 4, 3, "no mention" if after else "no anonymised text"),
        )

    types = {name: estimate_leak(sums[:, i : i + 1]) for i, name in enumerate(names)}
    return Leaks(types, estimate_leak(sums), estimate_leak(sums.sum(axis=1, keepdims=True)))


def _average_class_rates(draws: Draws, counts: Any, hit_column: int, total_column: int, reason: str) -> Estimate:
    """Estimate the mean of the rates of the types that have any."""
    n = int(counts[0, :, total_column].sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        each = counts[:, :, hit_column] / counts[:, :, total_column]
        there = ~np.isnan(each)
        values = np.where(there, each, 0).sum(axis=1) / there.sum(axis=1)
    return draws.estimate(values, n, reason, share=counts.shape[1] == 1)


Weights = Callable[[str, Sequence[Interval]], Sequence[float]]
"""A text and the places of masked words in it to the weight of each, 0 or above."""

KINDS = ("direct", "quasi", "all")
UNITS = ("entity", "mention", "token")
MINIMUM = 1e-9
"""Frequency of a word that the list does not have: 29.9 bits."""

_SKIPPED = re.compile(
    r"\b(?:mr|mrs|ms|and|or|from|until|to|about|after|as|at|before|between|by|during|for|in|into|of|on|over|since|with"
    r"|the|a|an|no|nr)\b|['’]s\b|[\s,.\-;:/&()\[\]–'\"’“”]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class BenchmarkRecall:
    """Shares masked of what must be masked, 0 to 1: of entities, of their mentions, of their words."""

    entity: Estimate
    mention: Estimate
    token: Estimate


class TabScores(Serialisable):
    """The scores of the benchmark.

    Attributes:
        recall: ``direct``, ``quasi`` and ``all`` to the shares that are masked.
        precision: share of the masked words that an annotator masked too, 0 to 1.
        weighted: the same with each word weighted by its information.
        weights: where the weights come from.
        kinds: ``gold``, the corpus tells what is direct or quasi, or ``taxonomy``, our labels do; ``both`` mixed.
        entities: ``gold``, the corpus tells which mentions are one entity; ``surface``, those of the same class and
            text are; ``both`` mixed.
    """

    recall: Mapping[str, BenchmarkRecall]
    precision: Estimate
    weighted: Estimate
    weights: str
    kinds: str
    entities: str


def unigram_bits(language: str = "en") -> Weights:
    """Return weights without a model: the surprisal of each word by its frequency, -log2 p (wordfreq), in bits.

    The benchmark takes -log p of a word that BERT predicts where it is masked, so it knows the context; this does not.

    Raises:
        MissingExtra: wordfreq is not installed.
        DataError: wordfreq has no list of the language.
    """
    measure_frequency = open_word_frequencies(language, "weighting words by their frequency")

    @lru_cache(maxsize=1 << 16)
    def weigh_word(word: str) -> float:
        return -math.log2(max(measure_frequency(word), MINIMUM))

    return lambda text, places: [weigh_word(text[a:b].casefold()) for a, b in places]


def is_masked(text: str, place: Interval, cover: Sequence[Interval]) -> bool:
    """Whether a mention is masked completely but for words that may be skipped; ``cover`` is sorted and disjoint."""
    gaps = list(subtract_intervals(place, cover))
    if not gaps:
        return True
    start = place[0]
    free = merge_intervals((start + m.start(), start + m.end()) for m in _SKIPPED.finditer(text[start : place[1]]))
    return not any(True for gap in gaps for _ in subtract_intervals(gap, free))


def count_masked_identifiers(
    text: str,
    mentions_by_annotator: Sequence[Sequence[Mention]],
    findings: Iterable[Interval],
    weights: Weights,
) -> Any:
    """Count one text, ``(3 kinds, 3 units, 2)`` of masked and all, then masked words in four more columns.

    Returns:
        A flat array: the table, then for precision right and all, plain and weighted; ``(22,)``.
    """
    cover = merge_intervals(findings)
    table = np.zeros((3, 3, 2))
    marked: list[list[Interval]] = []
    for mentions in mentions_by_annotator:
        marked.append([(m.start, m.end) for m in mentions if m.kind != "none"])
        for same in group_referents(text, mentions).values():
            kinds = {m.kind for m in same}
            if kinds == {"none"}:
                continue
            rows = [0 if "direct" in kinds else 1, 2]
            hidden = [is_masked(text, (m.start, m.end), cover) for m in same]
            is_whole = all(h or m.kind == "none" for h, m in zip(hidden, same, strict=True))
            words = [
                is_masked(text, (m.start + w.start(), m.start + w.end()), cover)
                for m in same
                for w in IDENTIFIER.finditer(text[m.start : m.end])
            ]
            table[rows] += [[is_whole, 1], [sum(hidden), len(hidden)], [sum(words), len(words)]]
    places = [(a + w.start(), a + w.end()) for a, b in cover for w in IDENTIFIER.finditer(text[a:b])]
    heavy = np.asarray(weights(text, places), float)
    if heavy.shape != (len(places),) or not np.all(heavy >= 0):
        raise DataError(f"weights: one number of 0 or above for each of {len(places)} words is required")
    right = np.zeros(len(places))
    for spans in marked:
        reach = Reach(spans)
        right += [reach.contains(*place) for place in places]
    several = float(len(mentions_by_annotator))
    return np.array(
        [*table.ravel(), right.sum(), several * len(places), float(right @ heavy), several * float(heavy.sum())]
    )


def estimate_tab_scores(table: Any, draws: Draws, *, weights: str, kinds: str, entities: str) -> TabScores:
    """Return the benchmark's scores from :func:`count_masked_identifiers` of all texts, ``(n, 22)``."""
    sums = draws.sums(table)
    cells = sums[:, :18].reshape(-1, 3, 3, 2)

    def estimate_ratio(values: Any, reason: str, words: float | None = None) -> Estimate:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = values[:, 0] / values[:, 1]
        return draws.estimate(share, int(values[0, 1] if words is None else words), reason, share=words is None)

    recall = {
        kind: BenchmarkRecall(
            *(estimate_ratio(cells[:, i, k], f"no {'' if kind == 'all' else kind + ' '}identifier") for k in range(3))
        )
        for i, kind in enumerate(KINDS)
    }
    nothing = "nothing was masked"
    precision, weighted = estimate_ratio(sums[:, 18:20], nothing), estimate_ratio(sums[:, 20:22], nothing, sums[0, 19])
    return TabScores(recall, precision, weighted, weights, kinds, entities)

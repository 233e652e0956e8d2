"""An extractive summariser that learns which sentences to select, and the similarity of summaries to references.

Sentences are learnt from that raise ROUGE-1 + ROUGE-2 of a summary most (the greedy choice of Nallapati et al. 2017,
arXiv:1611.04230, section 3); a logistic regression on words and place of a sentence, or on its vector of the embedded
encoder, scores new ones. P4 fine-tunes BART instead, which writes, as :class:`allonym.evaluate.finetuned.Writer`
does: its numbers cannot be compared with these, only the differences between versions of a corpus. ROUGE is F1 with
stems by ``rouge-score`` (Lin 2004), the best reference of several.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from allonym.stats.samples import average
from allonym.text.words import IDENTIFIER

ROUGE = ("rouge1", "rouge2", "rougeL")
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?\w)|\n+")
_SHORTEST = 4  # words of a sentence that may be taken
_LONGEST = 60  # words that count of one sentence: transcripts may have no full stops
_CANDIDATES = 80  # sentences nearest to the references, from which the greedy choice is made
_AGAINST = 10  # sentences not taken that are learnt from, for each that is
_PLACES = 6
_LIKE = 0.5  # share of words that two sentences of one summary may have in common

_Counts = Counter[Any]


@dataclass(frozen=True, slots=True, repr=False)
class SentenceText:
    """A text in sentences, with the features of each.

    Attributes:
        sentences: those of four words or more, in order.
        words: their words in small letters.
        facts: float array ``(sentences, 6)``, each about 0 to 1: place, first tenth, length, digits, capitals, and how
            central: cosine to the whole text by words.
        vectors: float array ``(sentences, 384)``, or None.
    """

    sentences: tuple[str, ...] = field(repr=False)
    words: tuple[tuple[str, ...], ...] = field(repr=False)
    facts: Any
    vectors: Any = None

    def __repr__(self) -> str:
        return f"SentenceText({len(self.sentences)} sentences)"


def make_sentence_text(text: str, *, model: str = "linear") -> SentenceText:
    """Split a text into sentences, and at line ends, since a turn of a conversation is a sentence.

    >>> make_sentence_text("Ann will write to the board. No. Then we shall all meet again.")
    SentenceText(2 sentences)
    """
    cut: list[str] = []
    for piece in _END.split(text):
        words = list(IDENTIFIER.finditer(piece))
        for start in range(0, len(words), _LONGEST):
            some = words[start : start + _LONGEST]
            if len(some) >= _SHORTEST:
                cut.append(
                    piece[some[0].start() if start else 0 : some[-1].end() if start + _LONGEST < len(words) else None]
                )
    words_of_sentences = [tuple(IDENTIFIER.findall(s.lower())) for s in cut]
    vectors = None
    if model == "encoder":
        from allonym.models.encoder import encode

        vectors = encode(cut)
    return SentenceText(
        tuple(cut), tuple(words_of_sentences), _compute_sentence_features(cut, words_of_sentences), vectors
    )


def _compute_sentence_features(sentences: Sequence[str], words: Sequence[tuple[str, ...]]) -> Any:
    out = np.zeros((len(sentences), _PLACES))
    counts = Counter(w for sentence_words in words for w in sentence_words)
    norm = math.sqrt(sum(c * c for c in counts.values())) or 1.0
    for i, (text, sentence_words) in enumerate(zip(sentences, words, strict=True)):
        mine = Counter(sentence_words)
        central = sum(c * counts[w] for w, c in mine.items()) / norm / math.sqrt(sum(c * c for c in mine.values()))
        place = i / len(sentences)
        out[i] = (
            place,
            place < 0.1,
            min(len(sentence_words), _LONGEST) / _LONGEST,
            any(c.isdigit() for c in text),
            sum(w[:1].isupper() for w in IDENTIFIER.findall(text)) / len(sentence_words),
            central,
        )
    return out


class Summariser:
    """Selects sentences after learning from texts with summaries.

    Args:
        model: ``linear`` (words and place) or ``encoder`` (vectors and place).
        seed: of the sentences that are learnt from as not taken.
    """

    def __init__(self, model: str = "linear", seed: int = 0) -> None:
        self._model = model
        self._seed = seed
        self._weights: Any = None
        self._fitted: Any = None
        self.length = 0
        """Words of a summary: the mean of the references' first ones."""

    def fit(self, texts: Sequence[SentenceText], best: Sequence[Sequence[int]], length: int) -> Summariser:
        """Learn from texts and the sentences to select of each (see :func:`select_best_sentences`)."""
        self.length = length
        rng = np.random.default_rng(self._seed)
        chosen: list[list[int]] = []
        for text, some in zip(texts, best, strict=True):
            rest = [i for i in range(len(text.sentences)) if i not in set(some)]
            against = min(len(rest), _AGAINST * max(1, len(some)))
            chosen.append([*some, *(rest[i] for i in sorted(rng.permutation(len(rest))[:against].tolist()))])
        y = np.array([i < len(some) for some, indices in zip(best, chosen, strict=True) for i in range(len(indices))])
        if y.any() and not y.all():
            x = self._make_features(texts, chosen, learn=True)
            self._fitted = LogisticRegression(C=1.0, solver="liblinear", random_state=0).fit(x, y)
        return self

    def summarise(self, text: SentenceText) -> str:
        """Return the best sentences, as many as make a summary, in the order of the text; the first ones where
        nothing was learnt."""
        n = len(text.sentences)
        if not n:
            return ""
        if self._fitted is None:
            scores = -np.arange(n, dtype=float)
        else:
            scores = self._fitted.decision_function(self._make_features([text], [range(n)]))
        return " ".join(text.sentences[i] for i in sorted(_select_sentences_by_score(text, scores, self.length)))

    def _make_features(
        self, texts: Sequence[SentenceText], chosen: Sequence[Sequence[int]], *, learn: bool = False
    ) -> Any:
        facts = np.concatenate([t.facts[list(indices)] for t, indices in zip(texts, chosen, strict=True)])
        if self._model == "encoder":
            vectors = [t.vectors[list(indices)] for t, indices in zip(texts, chosen, strict=True)]
            return np.hstack([facts, np.concatenate(vectors)])
        words = [t.words[i] for t, indices in zip(texts, chosen, strict=True) for i in indices]
        if learn:
            self._weights = TfidfVectorizer(analyzer=list, sublinear_tf=True).fit(words)
        return hstack([csr_matrix(facts), self._weights.transform(words)], "csr")


def select_best_sentences(text: SentenceText, references: Sequence[str], length: int) -> list[int]:
    """Select the sentences that greedily raise ROUGE-1 + ROUGE-2 most, until none does or the summary is long
    enough."""
    reference_grams = [_count_grams(tuple(IDENTIFIER.findall(r.lower()))) for r in references]
    if not text.sentences or not any(words for words, _ in reference_grams):
        return []
    grams = [_count_grams(words) for words in text.words]
    best: list[int] = []
    most = 0.0
    for reference in reference_grams:  # the best reference is the one that a summary can come nearest to
        selected, score = _select_sentences_greedily(grams, reference, length)
        if score > most:
            best, most = selected, score
    return best


def _count_grams(words: Sequence[str]) -> tuple[_Counts, _Counts]:
    return Counter(words), Counter(pairwise(words))


def _select_sentences_greedily(
    grams: Sequence[tuple[_Counts, _Counts]], reference: tuple[_Counts, _Counts], length: int
) -> tuple[list[int], float]:
    """Return the selected indices, and the sum of the two F1."""
    sizes = [tuple(g.total() for g in covered) for covered in grams]
    totals = tuple(w.total() for w in reference)
    selected: list[int] = []
    covered: tuple[_Counts, _Counts] = (Counter(), Counter())
    both, size, score = [0, 0], [0, 0], 0.0

    def count_gain(i: int, k: int) -> int:
        """Count what a sentence adds to the words, or pairs, that summary and reference share."""
        have, target = covered[k], reference[k]
        return sum(min(have[g] + c, target[g]) - min(have[g], target[g]) for g, c in grams[i][k].items() if g in target)

    def score_with(i: int) -> float:
        """Return the score with one more sentence."""
        return sum(
            2 * (both[k] + count_gain(i, k)) / total if (total := size[k] + sizes[i][k] + totals[k]) else 0.0
            for k in (0, 1)
        )

    first = sorted(range(len(grams)), key=lambda i: (-score_with(i), i))[:_CANDIDATES]
    while first and size[0] < length:
        best, back = max((score_with(i), -i) for i in first)
        if best <= score:
            break
        score, index = best, -back
        for k in (0, 1):
            both[k] += count_gain(index, k)
            size[k] += sizes[index][k]
            covered[k].update(grams[index][k])
        selected.append(index)
        first.remove(index)
    return selected, score


def _select_sentences_by_score(text: SentenceText, scores: Any, length: int) -> list[int]:
    """Return the indices of the best sentences, none of them similar to another."""
    selected: list[int] = []
    word_sets: list[set[str]] = []
    size = 0
    for i in np.argsort(-scores, kind="stable").tolist():
        words = set(text.words[i])
        if any(len(words & other) > _LIKE * min(len(words), len(other)) for other in word_sets):
            continue
        selected.append(i)
        word_sets.append(words)
        size += len(text.words[i])
        if size >= length:
            break
    return selected


def average_reference_length(references: Sequence[Sequence[str]]) -> int:
    """Return the length of a summary: the mean number of words of the first references."""
    return max(1, round(average([len(IDENTIFIER.findall(r[0])) for r in references if r] or [1]).value))


def measure_rouge(summary: str, references: Sequence[str]) -> tuple[float, float, float]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L (F1, 0 to 1, with stems), each the best over the references."""
    scored = [_load_rouge_scorer().score(reference, summary) for reference in references]
    rouge_1, rouge_2, rouge_l = (max((s[name].fmeasure for s in scored), default=0.0) for name in ROUGE)
    return rouge_1, rouge_2, rouge_l


@cache
def _load_rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(ROUGE), use_stemmer=True)

"""Measures of the surface of texts: the share removed, how common the words are, how easily they read; and how similar
their meaning is before and after: the cosine of sentence vectors.

P3 4.1.3.1 and 4.1.3.2, and the readability formulas of Flesch 1948 (doi:10.1037/h0057532) and Kincaid et al. 1975.

How unusual the wording is: perplexity of texts by a language model (P3 4.1.3.3).

By default an interpolated Kneser-Ney model of words (Chen and Goodman 1999, doi:10.1006/csla.1999.0128) is trained on
the originals in folds, so that no text is judged by a model that saw it in any version. It scores words; placeholders
are passed over, and no history reaches across one. A causal language model reads the text as it is, as in P3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError, hide_foreign_errors, require_extra
from allonym.evaluate.findings import align_edits
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.plan import ReaderScore, measure_reader_score
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.ngrams import BREAK, ORDER, KneserNey, thin_out_texts
from allonym.stats.samples import average, difference
from allonym.text.placeholders import find_placeholders, remove_placeholders
from allonym.text.words import COMPOUND

TOP = 10_000
"""Number of the commonest words, which have a rank (P3 4.1.3.2)."""

_END = re.compile(r"[.!?]+(?=\s|$|[\"'”’)\]])|\n\s*\n")
_VOWELS = re.compile(r"[aeiouyàáâäèéêëìíîïòóôöùúûü]+")
_SILENT = re.compile(r"(?:[^laeiouy]es|[^td]ed|[^laeiouy]e)$")
_CLOSING = ".!?\"'”’)]"
NAN = float("nan")


class Change(Serialisable):
    """A variable of texts before and after.

    Attributes:
        before, after: means over the texts, with 95 % intervals.
        difference: mean of after minus before, text by text.
        values: of each text before, and of each after; NaN where it has none. Hidden from ``repr``.
    """

    KEYS = ("before", "after", "difference")

    before: Estimate
    after: Estimate
    difference: Estimate
    values: tuple[Sequence[float], Sequence[float]] = field(default=((), ()), repr=False)

    @classmethod
    def measure(cls, before: Sequence[float], after: Sequence[float], reason: str) -> Change:
        """Compare one value per text; texts without a value in either version are left out."""
        pairs = [(b, a) for b, a in zip(before, after, strict=True) if b == b and a == a]
        if not pairs:
            return cls(none(reason), none(reason), none(reason), (before, after))
        first, second = [b for b, _ in pairs], [a for _, a in pairs]
        return cls(average(first), average(second), difference(first, second), (before, after))


class Surface(Serialisable):
    """The measures of :func:`surface`.

    Attributes:
        texts: pairs.
        removed: mean share of words removed per text (P3 4.1.3.1); below 0 where there are more words than before.
        removed_overall: the same over all words of all texts.
        rank: mean frequency rank of the words that have one (P3 4.1.3.2): higher means rarer.
        listed: share of the words that have a rank.
        ease: Flesch's reading ease, about 0 (hard) to 100 (easy).
        grade: Flesch-Kincaid grade: years of school.
    """

    texts: int
    removed: Estimate
    removed_overall: Estimate
    rank: Change
    listed: Change
    ease: Change
    grade: Change


class ReaderScores(Serialisable):
    """The measures of :func:`reader_scores`.

    Attributes:
        texts: pairs.
        replaced, lower_case: means per text of the places, and of the words of small letters, replaced per 100 words.
        total: counts of all texts together.
        documents: of each text, in order.
    """

    texts: int
    replaced: Estimate
    lower_case: Estimate
    total: ReaderScore
    documents: tuple[ReaderScore, ...]


def reader_scores(
    original: Sequence[str], anonymised: Sequence[str], *, seed: int = 0, advance: Advance | None = None
) -> ReaderScores:
    """Measure how much the replacements disturb a reader, without marks of people, from the texts alone.

    The edits are found by alignment, where replacements side by side may count as one; for those of a plan call
    :func:`allonym.plan.measure_reader_score`. ``seed`` changes nothing: nothing is drawn.

    Raises:
        DataError: unequal lengths, or no texts.
    """
    n = check_lengths(original, anonymised)
    pairs = iterate_with_progress(zip(original, anonymised, strict=True), advance, n)
    documents = tuple(measure_reader_score(before, align_edits(before, after)) for before, after in pairs)
    counted = [score for score in documents if score.words]
    return ReaderScores(
        n,
        average([score.replaced_per_100 for score in counted]),
        average([score.lower_case_per_100 for score in counted]),
        sum(documents, ReaderScore()),
        documents,
    )


def list_words(text: str) -> list[str]:
    """List the words of a text without its placeholders: letters and digits, with apostrophes and hyphens inside."""
    return COMPOUND.findall(remove_placeholders(text))


def removed(original: Sequence[str], anonymised: Sequence[str]) -> list[float]:
    """Return the share of words removed from each text: ``1 - words after / words before`` (P3 4.1.3.1).

    Placeholders do not count as words. The share is NaN for a text without words, and below 0 where pseudonyms made the
    text longer.

    Raises:
        DataError: unequal lengths.
    """
    check_lengths(original, anonymised, least=0)
    return [
        1 - len(list_words(a)) / n if (n := len(list_words(o))) else NAN
        for o, a in zip(original, anonymised, strict=True)
    ]


def ranks_of(path: str | Path | None = None, language: str = "en") -> Mapping[str, int]:
    """Return the frequency rank of words, 1 for the commonest.

    Args:
        path: a text file, one word a line, commonest first; None: the commonest 10,000 words of the package wordfreq.
        language: of wordfreq's list.

    Raises:
        DataError: the file cannot be read, or has no words.
    """
    if path is None:
        return _rank_words_by_frequency(language)
    with hide_foreign_errors(f"{path}: not readable as a list of words", OSError, UnicodeDecodeError):
        lines = Path(path).read_text("utf-8-sig").splitlines()
    out: dict[str, int] = {}
    for line in lines:
        if word := line.strip().lower():
            out.setdefault(word, len(out) + 1)
    if not out:
        raise DataError(f"{path}: a word a line is required, commonest first; the file has none")
    return out


@cache
def _rank_words_by_frequency(language: str) -> Mapping[str, int]:
    from wordfreq import top_n_list

    return {word: i for i, word in enumerate(top_n_list(language, TOP), start=1)}


def open_word_frequencies(language: str, purpose: str, minimum: float = 0.0) -> Callable[[str], float]:
    """Return a function from a word to its share of all words, 0 to 1, by wordfreq.

    Args:
        language: of the words.
        purpose: what needs the frequencies.
        minimum: of words that wordfreq does not have.

    Raises:
        MissingExtra: wordfreq is not installed.
        DataError: wordfreq has no list of the language.
    """
    with require_extra(purpose, "evaluate"):
        import wordfreq
    if language not in wordfreq.available_languages():
        raise DataError(f"no word frequencies of language {language!r}")
    return lambda word: float(wordfreq.word_frequency(word, language, minimum=minimum))


def surface(original: Sequence[str], anonymised: Sequence[str], *, ranks: Mapping[str, int] | None = None) -> Surface:
    """Measure share removed, frequency ranks and readability of texts before and after.

    Args:
        original, anonymised: the same texts in the same order.
        ranks: see :func:`ranks_of`; None: wordfreq's.

    Raises:
        DataError: unequal lengths, or no texts.
    """
    n = check_lengths(original, anonymised)
    ranks = ranks_of() if ranks is None else ranks
    before, after = [_WordCounts.count(t) for t in original], [_WordCounts.count(t) for t in anonymised]
    shares = [1 - len(a.words) / len(b.words) for b, a in zip(before, after, strict=True) if b.words]
    total = sum(len(b.words) for b in before)
    overall = 1 - sum(len(a.words) for a in after) / total if total else NAN

    def measure_change(value: Callable[[_WordCounts], float], reason: str = "no text has words") -> Change:
        return Change.measure([value(b) for b in before], [value(a) for a in after], reason)

    return Surface(
        n,
        average(shares) if shares else none("no text has words", n),
        Estimate.exact(overall, total) if total else none("no text has words", n),
        measure_change(lambda r: _average_values(_list_word_ranks(r.words, ranks)), "no word has a rank"),
        measure_change(lambda r: len(_list_word_ranks(r.words, ranks)) / len(r.words) if r.words else NAN),
        measure_change(lambda r: r.reading_ease),
        measure_change(lambda r: r.reading_grade),
    )


@dataclass(frozen=True, slots=True)
class _WordCounts:
    """The words of a text, and the ratios that readability needs; these are NaN without words."""

    words: Sequence[str]
    per_sentence: float
    syllables: float

    @classmethod
    def count(cls, text: str) -> _WordCounts:
        listed = list_words(text)
        if not listed:
            return cls(listed, NAN, NAN)
        ends = len(_END.findall(text)) + (text.rstrip()[-1:] not in _CLOSING)
        placeholders = len(find_placeholders(text))
        return cls(
            listed, (len(listed) + placeholders) / max(1, ends), sum(map(_count_syllables, listed)) / len(listed)
        )

    @property
    def reading_ease(self) -> float:
        """Flesch's reading ease: 206.835 - 1.015 words per sentence - 84.6 syllables per word.

        Placeholders count as words of mean length, so that removing names alone does not make sentences look short.
        Syllables are counted by rule: groups of vowels, less a silent e. English only.
        """
        return 206.835 - 1.015 * self.per_sentence - 84.6 * self.syllables

    @property
    def reading_grade(self) -> float:
        """The Flesch-Kincaid grade: 0.39 words per sentence + 11.8 syllables per word - 15.59."""
        return 0.39 * self.per_sentence + 11.8 * self.syllables - 15.59


def _list_word_ranks(words: Sequence[str], ranks: Mapping[str, int]) -> list[int]:
    return [ranks[w] for w in (f.lower().replace("’", "'") for f in words) if w in ranks]


def _average_values(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else NAN


def _count_syllables(word: str) -> int:
    word = word.lower()
    return max(1, len(_VOWELS.findall(word)) - bool(_SILENT.search(word)))


Encode = Callable[[Sequence[str]], Any]
_PIECE = 16  # texts between two reports of progress


class Similarity(Serialisable):
    """What :func:`similarity` measures.

    Attributes:
        mean: of the cosine of each text with its anonymised version, -1 to 1; 1: no change in meaning.
        chance: mean cosine of each original with the anonymised version of another text: what unrelated texts of this
            corpus reach.
        values: the cosine of each text; NaN without words. Hidden from ``repr``.
    """

    KEYS = ("mean", "chance")

    mean: Estimate
    chance: Estimate
    values: Sequence[float] = field(default=(), repr=False)


def similarity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Advance | None = None,
) -> Similarity:
    """Measure the semantic similarity of texts and their anonymised versions.

    Args:
        original, anonymised: the same texts in the same order.
        encode: texts to an array of unit rows, zeros for a text that says nothing; None: the embedded sentence encoder,
            which reads long texts in parts of about 200 words.
        threads: of the embedded encoder.
        advance: called with texts done and texts in all.

    Raises:
        DataError: unequal lengths, or no texts.
    """
    import numpy as np

    n = check_lengths(original, anonymised)
    if encode is None:
        from allonym.models.encoder import load_encoder

        encode = load_encoder(threads=threads).encode
    rows: list[Any] = []
    for texts in (original, anonymised):
        parts = []
        for start in range(0, n, _PIECE):
            parts.append(np.asarray(encode(texts[start : start + _PIECE]), np.float64))
            if advance is not None:
                advance(len(rows) * n + min(n, start + _PIECE), 2 * n)
        rows.append(np.concatenate(parts))
    before, after = rows
    values = [_compute_cosine(b, a) for b, a in zip(before, after, strict=True)]
    following = [*after[1:], after[0] if n > 1 else np.zeros_like(after[0])]
    others = (_compute_cosine(b, a) for b, a, value in zip(before, following, values, strict=True) if value == value)
    similar, unrelated = ([v for v in cosines if v == v] for cosines in (values, others))
    return Similarity(
        average(similar) if similar else none("no text has words", n),
        average(unrelated) if unrelated else none("no other text", n),
        values,
    )


def _compute_cosine(a: Any, b: Any) -> float:
    """Return the cosine of two vectors; NaN where one is zero."""
    if not (a.any() and b.any()):
        return NAN
    return max(-1.0, min(1.0, float(a @ b) / float((a @ a) ** 0.5 * (b @ b) ** 0.5)))


FOLDS = 5


def perplexity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    model: str | Path | None = None,
    order: int = ORDER,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Advance | None = None,
) -> Change:
    """Measure the perplexity before and after; that of a text without words is NaN, and so is all of a single text.

    Args:
        original, anonymised: the same texts in the same order.
        model: folder of a causal language model of the package transformers; None: n-grams of the originals.
        order: of the n-grams.
        folds: number of folds; both versions of a text are in one.
        seed: of the folds.
        advance: called with steps done and steps in all.

    Raises:
        DataError: unequal lengths, or no texts.
        UsageError: fewer than two folds, or the model's folder does not exist.
        MissingExtra: transformers is not installed.
    """
    n = check_lengths(original, anonymised)
    if model is not None:
        values = _measure_causal_perplexities(Path(model), [*original, *anonymised], advance)
        return _summarise_perplexities(values[:n], values[n:])
    if folds < 2:
        raise UsageError(f"perplexity: two folds at least are required, got {folds}")
    out: tuple[list[float], list[float]] = ([NAN] * n, [NAN] * n)
    if n < 2:
        return _summarise_perplexities(*out)
    import numpy as np

    before, after = [_tokenise_with_breaks(t) for t in original], [_tokenise_with_breaks(t) for t in anonymised]
    place = np.random.default_rng(seed).permutation(n) % min(folds, n)
    for fold in iterate_with_progress(range(min(folds, n)), advance, min(folds, n)):
        lm = KneserNey(thin_out_texts([before[i] for i in range(n) if place[i] != fold]), order)
        for i in range(n):
            if place[i] == fold:
                out[0][i], out[1][i] = lm.perplexity(before[i]), lm.perplexity(after[i])
    return _summarise_perplexities(*out)


def _summarise_perplexities(before: Sequence[float], after: Sequence[float]) -> Change:
    return Change.measure(before, after, "no text has words, or there is only one text")


def _tokenise_with_breaks(text: str) -> list[str]:
    """Split a text into words and marks in small letters; a placeholder is a break."""
    from allonym.models.words import split_words

    placeholders = find_placeholders(text)
    starts, ends = [0, *(p.end for p in placeholders)], [*(p.start for p in placeholders), len(text)]
    out: list[str] = []
    for piece in (text[start:end] for start, end in zip(starts, ends, strict=True)):
        out += (BREAK, *(piece[a:b].lower() for a, b in split_words(piece)))
    return out[1:]


def _measure_causal_perplexities(folder: Path, texts: Sequence[str], advance: Advance | None) -> list[float]:
    """Measure by a causal language model, which reads a text as it is in windows of its length."""
    if not folder.is_dir():
        raise UsageError(f"perplexity: {folder}: no such folder; one that holds a causal language model is required")
    with require_extra("perplexity by a causal language model", "transformers"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    with hide_foreign_errors(f"{folder}: no causal language model", OSError, ValueError, KeyError):
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = AutoModelForCausalLM
        network = model.from_pretrained(folder, local_files_only=True).eval()
    limit = int(getattr(network.config, "max_position_embeddings", 0) or 1024)
    first = tokenizer.bos_token_id
    values: list[float] = []
    for text in iterate_with_progress(texts, advance, len(texts)):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        total, count = 0.0, 0
        for start in range(0, len(ids), limit - 1):
            piece = [first, *ids[start : start + limit - 1]] if first is not None else ids[start : start + limit]
            if len(piece) > 1:
                tokens = torch.tensor([piece])
                with torch.inference_mode():
                    total += float(network(tokens, labels=tokens).loss) * (len(piece) - 1)
                count += len(piece) - 1
        values.append(math.exp(total / count) if count else NAN)
    return values

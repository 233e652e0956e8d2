"""Measures of the surface of texts: the share removed, how common the words are, how easily they read; and how similar
their meaning is before and after: the cosine of sentence vectors.

P3 4.1.3.1 and 4.1.3.2, and the readability formulas of Flesch 1948 (doi:10.1037/h0057532) and Kincaid et al. 1975.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from allonym.errors import DataError, require_extra
from allonym.evaluate.pairs import check_lengths
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
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
    """

    before: Estimate
    after: Estimate
    difference: Estimate

    @classmethod
    def measure(cls, before: Sequence[float], after: Sequence[float], reason: str) -> Change:
        """Compare one value per text; texts without a value in either version are left out."""
        pairs = [(b, a) for b, a in zip(before, after, strict=True) if b == b and a == a]
        if not pairs:
            return cls(none(reason), none(reason), none(reason))
        first, second = [b for b, _ in pairs], [a for _, a in pairs]
        return cls(average(first), average(second), difference(first, second))


class Surface(Serialisable):
    """The measures of :func:`surface`.

    Attributes:
        texts: pairs.
        removed: mean share of words removed per text (P3 4.1.3.1); below 0 where there are more words than before.
        removed_overall: the same over all words of all texts.
        rank: mean frequency rank of the words that have one, see :func:`word_ranks`.
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
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not readable as a list of words: {type(error).__name__}") from None
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


def word_ranks(texts: Iterable[str], ranks: Mapping[str, int]) -> list[float]:
    """Per text the mean rank of its words that have one (P3 4.1.3.2): higher means rarer. NaN where none has."""
    return [_average_values(_list_word_ranks(list_words(t), ranks)) for t in texts]


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
    """

    mean: Estimate
    chance: Estimate


def measure_similarities(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[list[float], list[float]]:
    """Return for each text the cosine with its own anonymised version and with that of the next text; NaN without
    words.

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
    similar = [_compute_cosine(b, a) for b, a in zip(before, after, strict=True)]
    following = [*after[1:], after[0] if n > 1 else np.zeros_like(after[0])]
    pairs = zip(before, following, similar, strict=True)
    return similar, [_compute_cosine(b, a) if value == value else NAN for b, a, value in pairs]


def similarity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> Similarity:
    """Measure the semantic similarity of texts and their anonymised versions; arguments as of
    :func:`measure_similarities`."""
    return summarise_similarities(
        *measure_similarities(original, anonymised, encode=encode, threads=threads, advance=advance)
    )


def summarise_similarities(similar: Sequence[float], unrelated: Sequence[float]) -> Similarity:
    """Return the means of :func:`measure_similarities`."""
    similar_known, unrelated = ([v for v in values if v == v] for values in (similar, unrelated))
    return Similarity(
        average(similar_known) if similar_known else none("no text has words", len(similar)),
        average(unrelated) if unrelated else none("no other text", len(similar)),
    )


def _compute_cosine(a: Any, b: Any) -> float:
    """Return the cosine of two vectors; NaN where one is zero."""
    if not (a.any() and b.any()):
        return NAN
    return max(-1.0, min(1.0, float(a @ b) / float((a @ a) ** 0.5 * (b @ b) ** 0.5)))

"""TERM: noun phrases that point to one protected value, though no detector takes them for a name.

P1 (section 3.2.3) misses *iX*, *AI* and *Blockchain*; and the topic of a call, *potash* or *homes*, identifies its
company as well. A word counts by how much more the chunks of one value use it than all others, as a z value of its log
odds (Monroe, Colaresi and Quinn 2008, doi:10.1093/pan/mpn018), without the chunk that holds it: this is what a reader
of all words learns from the other chunks. Names that no other value uses count in any case.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from allonym.document import Document, Interval, Reach, Span
from allonym.models.pos import parts_of_speech
from allonym.models.tagger import ENGLISH, TaggerModel, load_tagger
from allonym.text.words import compile_word_pattern

LABEL = "TERM"
SOURCE = "terms"
LEAST_Z, LEAST_CHUNKS = 2.0, 2
"""Least z value of a word's log odds, and chunks of its value that must hold a word, unless it is a name."""
PER_CHUNK, LENGTH = 8, 4
"""Most terms in a chunk, and most words in a term."""
WIDEST = 0.6
"""Most protected values, as a share of them, whose documents may use a word."""
_EMPTY = frozenset(
    "bit bits cent cents couple course day days end ends fact floor fourth gentlemen guy guys half hand hands keypad "
    "kind kinds ladies lot lots minute minutes moment moments month months morning one ones operator operators pound "
    "second seconds side sides sort sorts star telephone thank thanks thing things third thirds time times today tone "
    "touch way ways week weeks while year years".split()
)
"""Nouns of time, of courtesy and of little meaning: no terms, and no words that stand for one."""
_MOSTLY = 0.8  # share of a stem's mentions that are nouns, for it to count as one
_NOUNS = frozenset({"NOUN", "PROPN"})
_WORD = compile_word_pattern("'’&-")
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”(]\s*$")
_PERIOD = re.compile(r"(?:[1-4][QH]|[QH][1-4]|FY)\d*", re.I)
_JOINED = re.compile(r"[ \t]|-|&")
_PRIOR = 0.5
_NEAR = 0.98  # share of the budget that is near enough to all of it
_NONE = 1 << 62
_FEW = 0.1  # share of the protected values whose documents may use a rare name
_NOUN_CAPITALS = 0.2  # share of words with a capital inside sentences from which on it marks nouns, as in German


class Word(NamedTuple):
    """A word that may be (part of) a term: offsets, stem, if it is a noun, if it looks like a name; surface."""

    start: int
    end: int
    stem: str
    noun: bool
    name: bool
    surface: str = ""

    def __repr__(self) -> str:
        return f"Word({self.start}, {self.end})"


@dataclass(frozen=True, slots=True, repr=False)
class Phrases:
    """The noun phrases of a document outside its findings: runs of adjectives and nouns that end in a noun.

    Attributes:
        runs: each run's words in order.
        words: the starts of all words of the text, for shares.
        guessed: whether parts of speech are unknown, so that a run may have any words.
    """

    runs: tuple[tuple[Word, ...], ...]
    words: tuple[int, ...]
    guessed: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Terms:
    """The terms of a corpus.

    Attributes:
        spans: per document, sorted, with label ``TERM``; none overlaps another finding.
        share: share of the chunks' words that are in terms.
        scores: (protected value, stem) to its z value, of the words in terms.
        common: nouns that most protected values use, in small letters, as they are written, sorted.
        warnings: remarks without any text of the corpus.
    """

    spans: tuple[tuple[Span, ...], ...]
    share: float
    scores: Mapping[tuple[str, str], float] = field(default_factory=dict)
    common: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Terms({sum(map(len, self.spans))} mentions, {self.share:.1%} of the words)"


def remove_plural_ending(word: str) -> str:
    """Return a word in lower case without a plural's ending, so that *homes* and *home* count as one.

    >>> tuple(map(remove_plural_ending, ("Homes", "companies", "losses", "gas", "business")))
    ('home', 'company', 'loss', 'gas', 'business')
    """
    low = word.lower()
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if low.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return low[:-2]
    if len(low) > 3 and low.endswith("s") and low[-2] not in "suia'’":
        return low[:-1]
    return low


def find_noun_phrases(
    document: Document, spans: Iterable[Span] = (), *, language: str = "en", model: TaggerModel | None = None
) -> Phrases:
    """Find the noun phrases of a document, for :func:`select_terms`. Quick right after the embedded tagger read it.

    Args:
        document: the text.
        spans: its findings; no phrase touches them.
        language: of the text, ISO 639-1. Parts of speech are known for ``en``; for others every word may be one.
        model: a tagger that knows the language's parts of speech; by default the embedded one, for ``en`` only.
    """
    text = document.text
    covered = Reach((s.start, s.end) for s in spans)
    guessed = model is None and language != "en"
    in_capitals = 2 * sum(map(str.isupper, text)) > sum(map(str.isalpha, text))  # then they mark no names
    runs: list[tuple[Word, ...]] = []
    run: list[Word] = []
    starts: list[int] = []

    def close() -> None:
        while run and not run[-1].noun:
            run.pop()
        if run:
            runs.append(tuple(run))
            run.clear()

    for start, end, part in _tag_as_nouns(text) if guessed else _tag_parts_of_speech(text, model):
        starts.append(start)
        is_noun = part in _NOUNS
        surface = text[start:end]
        if (
            not (is_noun or part == "ADJ")
            or covered.touches(start, end)
            or (text[start - 1 : start] in ("<", "[") and text[end : end + 1] in (">", "]"))  # <inaudible>
            or len(surface) < 2
            or not any(c.isalpha() for c in surface)
            or _PERIOD.fullmatch(surface)
        ):
            close()
            continue
        if run and not _JOINED.fullmatch(text[run[-1].end : start]):
            close()
        name = is_noun and not in_capitals and _is_proper_name(text, start, surface, part == "PROPN" or guessed)
        run.append(Word(start, end, remove_plural_ending(surface), is_noun, name, surface))
    close()
    return Phrases(tuple(runs), tuple(starts), guessed)


def _tag_parts_of_speech(text: str, model: TaggerModel | None) -> list[tuple[int, int, str]]:
    """Return words with their parts of speech, hyphenated ones as one, without endings after an apostrophe."""
    # Loaded with the detector's arguments, so that it is the same instance, which remembers what it has read.
    out: list[tuple[int, int, str]] = []
    for start, end, part in parts_of_speech(text, model or load_tagger(ENGLISH, 1, False)):
        if not text[start].isalnum() or text[start - 1 : start] in ("'", "’"):
            continue
        if out and text[out[-1][1] : start] == "-":  # a lock-down is no down
            start, _, first = out.pop()
            part = first if part == "NUM" else part
        out.append((start, end, part))
    return out


def _tag_as_nouns(text: str) -> list[tuple[int, int, str]]:
    """Return words as if all of them were nouns; if capitals mark nouns, those with one."""
    words = [m.span() for m in _WORD.finditer(text)]
    inside = [start for start, _ in words if start and not _is_sentence_start(text, start)]
    marked = sum(text[start].isupper() for start in inside) > _NOUN_CAPITALS * len(inside)
    return [(a, b, "NOUN" if (not marked or text[a].isupper()) and b - a > 2 else "X") for a, b in words]


def _is_sentence_start(text: str, start: int) -> bool:
    return bool(_SENTENCE_END.search(text, max(0, start - 4), start))


def _is_proper_name(text: str, start: int, surface: str, is_tagged_proper: bool) -> bool:
    if any(c.isupper() for c in surface[1:]):
        return True
    return is_tagged_proper and surface[:1].isupper() and bool(start) and not _is_sentence_start(text, start)


def select_terms(
    phrases: Sequence[Phrases], classes: Sequence[str], bounds: Sequence[Sequence[Interval]], share: float
) -> Terms:
    """Select the phrases of a corpus that give its protected values away.

    Args:
        phrases: per document, its noun phrases.
        classes: each document's protected value.
        bounds: per document, (start, end) of its chunks, sorted and disjoint.
        share: most words of the chunks that may be terms, as a share; the most identifying ones come first, names that
            the documents of one protected value use, or of a tenth of them, before all others.

    Returns:
        Sorted disjoint spans per document, all inside chunks. Deterministic; ties are decided by the words.
    """
    warnings: list[str] = []
    if any(p.guessed for p in phrases):
        warnings.append("terms: parts of speech are known for English only; terms may be any runs of words")
    pairs = list(zip(phrases, bounds, strict=True))
    chunks = [_group_runs_by_chunk(p, bound) for p, bound in pairs]
    total = sum(bisect_left(p.words, b) - bisect_left(p.words, a) for p, bound in pairs for a, b in bound)
    if len(set(classes)) < 2:
        warnings.append("terms: there is one protected value only, so nothing can point to it")
    if len(set(classes)) < 2 or not total:
        return Terms(tuple(() for _ in phrases), 0.0, {}, (), tuple(warnings))
    counts = _Counts(chunks, classes, bounds)
    scores = counts.score_words()
    ranked = sorted(scores, key=lambda item: (item not in counts.rare, -scores[item], item))
    rank = {item: i for i, item in enumerate(ranked)}
    documents = [[_select_ranked_runs(runs, c, rank) for runs in some] for some, c in zip(chunks, classes, strict=True)]
    count, used = _choose_term_word_count(documents, len(ranked), int(share * total))
    spans = []
    for document in documents:
        mentions = chain.from_iterable(_select_term_mentions(runs, count) for runs in document)
        spans.append(tuple(sorted(Span(m[0].start, m[-1].end, LABEL, 1.0, SOURCE) for m in mentions)))
    terms = {item: scores[item] for item in ranked[:count]}
    return Terms(tuple(spans), used / total, terms, counts.list_common_nouns(), tuple(warnings))


Runs = list[tuple[Word, ...]]


def _group_runs_by_chunk(phrases: Phrases, chunk_bounds: Sequence[Interval]) -> list[Runs]:
    """Return the runs inside each chunk; a run that a border cuts is in none."""
    starts = [start for start, _ in chunk_bounds]
    out: list[Runs] = [[] for _ in chunk_bounds]
    for run in phrases.runs:
        i = bisect_right(starts, run[0].start) - 1
        if i >= 0 and run[-1].end <= chunk_bounds[i][1]:
            out[i].append(run)
    return out


class _Counts:
    """In how many chunks of each protected value a stem occurs, and how often."""

    def __init__(self, chunks: Sequence[Sequence[Runs]], classes: Sequence[str], bounds: Sequence[Sequence[Interval]]):
        self.size = Counter[str]()
        self.holders = Counter[tuple[str, str]]()
        self.mentions = Counter[tuple[str, str]]()
        self.names = Counter[tuple[str, str]]()
        self.rare: set[tuple[str, str]] = set()
        self._surfaces: dict[str, Counter[str]] = {}
        self._stems = Counter[str]()
        for chunk_runs, class_, bound in zip(chunks, classes, bounds, strict=True):
            self.size[class_] += len(bound)
            for runs in chunk_runs:
                words = list(chain.from_iterable(runs))
                self.holders.update({(class_, word.stem) for word in words})
                self.mentions.update((class_, word.stem) for word in words)
                self.names.update((class_, word.stem) for word in words if word.name)
                self._stems.update(word.stem for word in words)
                for word in words:
                    if word.noun and not word.name:
                        self._surfaces.setdefault(word.stem, Counter())[word.surface.lower()] += 1
        self.total = Counter[str]()
        self.users = Counter[str]()
        for (_, stem), count in self.holders.items():
            self.total[stem] += count
            self.users[stem] += 1

    def list_common_nouns(self) -> tuple[str, ...]:
        """Return the nouns that are too common to be terms, as they are written."""
        out = []
        for stem, surfaces in self._surfaces.items():
            is_noun = surfaces.total() >= _MOSTLY * self._stems[stem]
            if is_noun and self.users[stem] > WIDEST * len(self.size):
                out += [surface for surface, count in surfaces.items() if count > 1 and surface not in _EMPTY]
        return tuple(sorted(out))

    def score_words(self) -> dict[tuple[str, str], float]:
        """Return every (protected value, stem) that may be a term, with its z value; rare names get the least one."""
        out: dict[tuple[str, str], float] = {}
        chunks = sum(self.size.values())
        most = max(1.0, WIDEST * len(self.size))
        few = max(1.0, _FEW * len(self.size))
        for item, count in self.holders.items():
            class_, word = item
            if self.users[word] <= few and 2 * self.names[item] > self.mentions[item]:
                self.rare.add(item)
            if self.users[word] > most or word in _EMPTY:
                continue
            size = self.size[class_]
            score = compute_z_value(count - 1, size, self.total[word] - count, chunks - size)
            if item in self.rare:
                out[item] = max(score, LEAST_Z)
            elif count >= LEAST_CHUNKS and score >= LEAST_Z:
                out[item] = score
        return out


def compute_z_value(count: float, size: float, others: float, rest: float) -> float:
    """Return the z value of a word's log odds in two sets of chunks: ``count`` of ``size``, ``others`` of ``rest``.

    Monroe et al. 2008, equations 16, 19 and 22, with a flat prior of one half on either side.
    """
    a = _PRIOR
    delta = math.log((count + a) / (max(size - count, 0) + a)) - math.log((others + a) / (max(rest - others, 0) + a))
    return delta / math.sqrt(1 / (count + a) + 1 / (others + a))


Ranked = list[tuple[tuple[Word, ...], tuple[int, ...]]]
"""Runs with the rank of each word among all that may be terms; other words have the rank :data:`_NONE`."""


def _select_ranked_runs(runs: Runs, class_: str, rank: Mapping[tuple[str, str], int]) -> Ranked:
    """Return the runs of a chunk that hold a word that may be a term."""
    ranked = ((run, tuple(rank.get((class_, word.stem), _NONE) for word in run)) for run in runs)
    return [(run, ranks) for run, ranks in ranked if min(ranks) < _NONE]


def _choose_term_word_count(documents: Sequence[Sequence[Ranked]], most: int, budget: int) -> tuple[int, int]:
    """Return how many of the ranked words may be terms, and the number of words in these terms.

    The budget limits the latter; the number of words is nearly the most within it.
    """
    low, used, high = 0, 0, most
    while low < high and used < _NEAR * budget:
        middle = (low + high + 1) // 2
        chunks = chain.from_iterable(documents)
        words = sum(len(mention) for runs in chunks for mention in _select_term_mentions(runs, middle))
        if words <= budget:
            low, used = middle, words
        else:
            high = middle - 1
    return low, used


def _select_term_mentions(runs: Ranked, count: int) -> list[tuple[Word, ...]]:
    """Return the mentions of a chunk's terms; of too many terms, those of the words that rank first."""
    terms: dict[tuple[str, ...], tuple[int, list[tuple[Word, ...]]]] = {}
    for run, ranks in runs:
        if min(ranks) >= count:
            continue
        for start, end in _find_term_stretches(run, ranks, count):
            key = tuple([word.stem for word in run[start:end]])
            terms.setdefault(key, (min(ranks[start:end]), []))[1].append(run[start:end])
    best: Iterable[tuple[str, ...]] = terms
    if len(terms) > PER_CHUNK:
        best = sorted(terms, key=lambda key: (terms[key][0], key))[:PER_CHUNK]
    return [mention for key in best for mention in terms[key][1]]


def _find_term_stretches(run: Sequence[Word], ranks: Sequence[int], count: int) -> Iterable[tuple[int, int]]:
    """Yield stretches of ranked words that end in a noun; an adjective counts only beside a noun that does."""
    start = 0
    while start < len(run):
        end = start
        while end < len(run) and end - start < LENGTH and ranks[end] < count:
            end += 1
        last = end
        while last > start and not run[last - 1].noun:
            last -= 1
        if last > start:
            yield start, last
        start = max(end, start + 1)

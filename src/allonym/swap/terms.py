"""TERM: noun phrases that point to one protected value, though no detector takes them for a name.

P1 (section 3.2.3) misses *iX*, *AI* and *Blockchain*; and what a call is about, *potash* or *homes*, tells its company
as well. A word counts by how much more the chunks of one value use it than all others, as a z value of its log odds
(Monroe, Colaresi and Quinn 2008, doi:10.1093/pan/mpn018), the chunk that holds it left out: this is what a reader of
all words learns from the other chunks. Names that nobody else uses count in any case.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from allonym.document import Document, Interval, Span, merge
from allonym.errors import UsageError
from allonym.models.pos import parts_of_speech
from allonym.models.tagger import ENGLISH, TaggerModel, load
from allonym.text.words import compile_words

LABEL = "TERM"
SOURCE = "terms"
_NOUNS = frozenset({"NOUN", "PROPN"})
_WORD = compile_words("'’&-")
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”(]\s*$")
_PERIOD = re.compile(r"(?:[1-4][QH]|[QH][1-4]|FY)\d*", re.I)
_JOINED = re.compile(r"[ \t]|-|&")
_PRIOR = 0.5
_NEAR = 0.98  # of the words that may be terms, so many are near enough
_NONE = 1 << 62
_FEW = 0.1  # share of the protected values whose documents may use a rare name
_NOUN_CAPITALS = 0.2  # share of words with a capital inside sentences from which on it marks nouns, as in German


@dataclass(frozen=True, slots=True)
class TermOptions:
    """What counts as a term.

    Attributes:
        least: z value of its log odds that a word needs.
        share: most words of the chunks that may be terms, from 0 to 1; the most telling ones are taken first.
        per_chunk: most terms in a chunk.
        classes: most of the protected values, as a share of them, whose documents may use a word.
        least_chunks: chunks of its value that must hold a word, unless it is a name.
        length: most words in a term.
        names: whether names count, and come first, that the documents of one protected value use, or of a tenth of
            them: a capital inside a sentence, acronyms, mixed case.
    """

    least: float = 2.0
    share: float = 0.05
    per_chunk: int = 8
    classes: float = 0.75
    least_chunks: int = 2
    length: int = 4
    names: bool = True

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("share", self.share, 0, 1),
            ("classes", self.classes, 0, 1),
            ("per_chunk", self.per_chunk, 1, math.inf),
            ("least_chunks", self.least_chunks, 1, math.inf),
            ("length", self.length, 1, math.inf),
        ):
            if not low <= value <= high:
                raise UsageError(f"terms: {name} must be from {low} to {high}, got {value}")


class Word(NamedTuple):
    """A word that may be (part of) a term: its place, its stem, whether it is a noun, whether it looks like a name."""

    start: int
    end: int
    stem: str
    noun: bool
    name: bool

    def __repr__(self) -> str:
        return f"Word({self.start}, {self.end})"


@dataclass(frozen=True, slots=True, repr=False)
class Phrases:
    """The noun phrases of a document outside of what was found in it: runs of adjectives and nouns that end in a noun.

    Attributes:
        runs: each run's words in order.
        words: where all words of the text start, for shares.
        guessed: parts of speech were not known, so that a run is of any words.
    """

    runs: tuple[tuple[Word, ...], ...]
    words: tuple[int, ...]
    guessed: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Terms:
    """What was found.

    Attributes:
        spans: per document, sorted, with label ``TERM``; none overlaps another finding.
        share: of the chunks' words, those in terms.
        scores: (protected value, stem) to its z value, of those taken.
        warnings: remarks without any text of the corpus.
    """

    spans: tuple[tuple[Span, ...], ...]
    share: float
    scores: Mapping[tuple[str, str], float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Terms({sum(map(len, self.spans))} mentions, {self.share:.1%} of the words)"


def stem(word: str) -> str:
    """A word in lower case without a plural's ending, so that *homes* and *home* count as one.

    >>> stem("Homes"), stem("companies"), stem("losses"), stem("gas"), stem("business")
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


def phrases(
    document: Document, found: Iterable[Span] = (), *, language: str = "en", model: TaggerModel | None = None
) -> Phrases:
    """The noun phrases of a document, for :func:`choose`. Quick right after the embedded tagger has read the text.

    Args:
        document: the text.
        found: what detectors found in it; no phrase touches it.
        language: of the text, ISO 639-1. Parts of speech are known for ``en``; for others every word may be one.
        model: a tagger that knows the language's parts of speech; by default the embedded one, for ``en`` only.
    """
    text = document.text
    taken = merge((s.start, s.end) for s in found)
    guessed = model is None and language != "en"
    shouted = 2 * sum(map(str.isupper, text)) > sum(map(str.isalpha, text))  # all in capitals: they mark no names
    runs: list[tuple[Word, ...]] = []
    run: list[Word] = []
    starts: list[int] = []
    at = 0

    def close() -> None:
        while run and not run[-1].noun:
            run.pop()
        if run:
            runs.append(tuple(run))
            run.clear()

    for start, end, part in _guessed(text) if guessed else _tagged(text, model):
        starts.append(start)
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        fits = part in _NOUNS or part == "ADJ"
        if not fits or (at < len(taken) and taken[at][0] < end):
            close()
            continue
        if run and not _JOINED.fullmatch(text[run[-1].end : start]):
            close()
        surface = text[start:end]
        remark = text[start - 1 : start] in ("<", "[") and text[end : end + 1] in (">", "]")  # <inaudible>
        if remark or len(surface) < 2 or not any(c.isalpha() for c in surface) or _PERIOD.fullmatch(surface):
            close()
            continue
        name = part in _NOUNS and not shouted and _is_name(text, start, surface, part == "PROPN" or guessed)
        run.append(Word(start, end, stem(surface), part in _NOUNS, name))
    close()
    return Phrases(tuple(runs), tuple(starts), guessed)


def _tagged(text: str, model: TaggerModel | None) -> list[tuple[int, int, str]]:
    """Words with their parts of speech; hyphenated ones are several. Endings after an apostrophe are no words."""
    # Named as the detector names it, so that it is the same instance, which remembers what it has read.
    model = model or load(ENGLISH, 1, False)
    out = []
    for start, end, part in parts_of_speech(text, model):
        if text[start].isalnum() and text[start - 1 : start] not in ("'", "’"):
            out.append((start, end, part))
    return out


def _guessed(text: str) -> list[tuple[int, int, str]]:
    """Words as if all of them were nouns; where capitals mark nouns, those with one."""
    found = [(m.start(), m.end()) for m in _WORD.finditer(text)]
    inside = [(s, e) for s, e in found if not _SENTENCE_END.search(text, max(0, s - 4), s) and s]
    capitals = sum(text[s].isupper() for s, _ in inside)
    marked = capitals > _NOUN_CAPITALS * len(inside)
    return [(s, e, "NOUN" if (not marked or text[s].isupper()) and e - s > 2 else "X") for s, e in found]


def _is_name(text: str, start: int, surface: str, proper: bool) -> bool:
    if any(c.isupper() for c in surface[1:]):
        return not surface.isdigit()
    return proper and surface[:1].isupper() and bool(start) and not _SENTENCE_END.search(text, max(0, start - 4), start)


def choose(
    some: Sequence[Phrases],
    classes: Sequence[str],
    bounds: Sequence[Sequence[Interval]],
    options: TermOptions | None = None,
) -> Terms:
    """Those phrases of a corpus that give its protected values away.

    Args:
        some: per document, its noun phrases.
        classes: each document's protected value.
        bounds: per document, (start, end) of its chunks, sorted and disjoint.
        options: what counts as a term.

    Returns:
        Sorted disjoint spans per document, all inside chunks. Deterministic; ties are settled by the words.
    """
    options = options or TermOptions()
    warnings: list[str] = []
    if any(one.guessed for one in some):
        warnings.append("terms: parts of speech are known for English only; terms may be any runs of words")
    chunks = [_by_chunk(one, bound) for one, bound in zip(some, bounds, strict=True)]
    total = sum(_words_inside(one, bound) for one, bound in zip(some, bounds, strict=True))
    if len(set(classes)) < 2:
        warnings.append("terms: there is one protected value only, so nothing can point to it")
    if len(set(classes)) < 2 or not total:
        return Terms(tuple(() for _ in some), 0.0, {}, tuple(warnings))
    counted = _Counts(chunks, classes, bounds)
    scores = counted.scores(options)
    ranked = sorted(scores, key=lambda item: (item not in counted.rare, -scores[item], item))
    rank = {item: i for i, item in enumerate(ranked)}
    told = [[_telling(runs, name, rank) for runs in of] for of, name in zip(chunks, classes, strict=True)]
    count, used = _within(told, len(ranked), int(options.share * total), options)
    spans = tuple(
        tuple(
            sorted(
                Span(some[0].start, some[-1].end, LABEL, 1.0, SOURCE)
                for runs in of
                for some in _picked(runs, count, options)
            )
        )
        for of in told
    )
    return Terms(spans, used / total, {item: scores[item] for item in ranked[:count]}, tuple(warnings))


Runs = list[tuple[Word, ...]]


def _by_chunk(one: Phrases, bounds: Sequence[Interval]) -> list[Runs]:
    """The runs inside each chunk; what a border cuts is in none."""
    starts = [start for start, _ in bounds]
    out: list[Runs] = [[] for _ in bounds]
    for run in one.runs:
        at = bisect_right(starts, run[0].start) - 1
        if at >= 0 and run[-1].end <= bounds[at][1]:
            out[at].append(run)
    return out


def _words_inside(one: Phrases, bounds: Sequence[Interval]) -> int:
    return sum(bisect_left(one.words, end) - bisect_left(one.words, start) for start, end in bounds)


class _Counts:
    """In how many chunks of each protected value a stem stands, and how often."""

    def __init__(self, chunks: Sequence[Sequence[Runs]], classes: Sequence[str], bounds: Sequence[Sequence[Interval]]):
        self.size = Counter[str]()
        self.held = Counter[tuple[str, str]]()
        self.mentions = Counter[tuple[str, str]]()
        self.names = Counter[tuple[str, str]]()
        self.rare: set[tuple[str, str]] = set()
        for some, name, bound in zip(chunks, classes, bounds, strict=True):
            self.size[name] += len(bound)
            for runs in some:
                words = [word for run in runs for word in run]
                self.held.update({(name, word.stem) for word in words})
                self.mentions.update((name, word.stem) for word in words)
                self.names.update((name, word.stem) for word in words if word.name)
        self.every = Counter[str]()
        self.users = Counter[str]()
        for (_, word), count in self.held.items():
            self.every[word] += count
            self.users[word] += 1

    def scores(self, options: TermOptions) -> dict[tuple[str, str], float]:
        """Every (protected value, stem) that may be a term, with its z value; rare names with at least what is
        needed."""
        out: dict[tuple[str, str], float] = {}
        total = sum(self.size.values())
        most = max(1.0, options.classes * len(self.size))
        few = max(1.0, _FEW * len(self.size))
        for item, held in self.held.items():
            name, word = item
            others = self.every[word] - held
            if options.names and self.users[word] <= few and 2 * self.names[item] > self.mentions[item]:
                self.rare.add(item)
            if self.users[word] > most:
                continue
            score = z_value(held - 1, self.size[name], others, total - self.size[name])
            if item in self.rare:
                out[item] = max(score, options.least)
            elif held >= options.least_chunks and score >= options.least:
                out[item] = score
        return out


def z_value(held: float, size: float, others: float, rest: float) -> float:
    """z value of the log odds of a word between two sets of chunks: ``held`` of ``size`` and ``others`` of ``rest``.

    Monroe et al. 2008, equations 16, 19 and 22, with a flat prior of one half on either side.
    """
    a = _PRIOR
    delta = math.log((held + a) / (max(size - held, 0) + a)) - math.log((others + a) / (max(rest - others, 0) + a))
    return delta / math.sqrt(1 / (held + a) + 1 / (others + a))


Ranked = list[tuple[tuple[Word, ...], tuple[int, ...]]]
"""Runs with the rank of each word among all that may be terms; a word that may not has the rank :data:`_NONE`."""


def _telling(runs: Runs, name: str, rank: Mapping[tuple[str, str], int]) -> Ranked:
    """The runs of a chunk that hold a word that may be a term."""
    out: Ranked = []
    for run in runs:
        ranks = tuple(rank.get((name, word.stem), _NONE) for word in run)
        if min(ranks) < _NONE:
            out.append((run, ranks))
    return out


def _within(told: Sequence[Sequence[Ranked]], most: int, budget: int, options: TermOptions) -> tuple[int, int]:
    """How many of the ranked words may be taken so that their terms have no more words than the budget, nearly the most
    that do; and the words that these terms have."""
    low, used, high = 0, 0, most
    while low < high and used < _NEAR * budget:
        middle = (low + high + 1) // 2
        words = sum(len(some) for of in told for runs in of for some in _picked(runs, middle, options))
        if words <= budget:
            low, used = middle, words
        else:
            high = middle - 1
    return low, used


def _picked(runs: Ranked, count: int, options: TermOptions) -> list[tuple[Word, ...]]:
    """The mentions of a chunk's terms; where there are too many terms, those of the words that rank first."""
    found: dict[tuple[str, ...], tuple[int, list[tuple[Word, ...]]]] = {}
    for run, ranks in runs:
        if min(ranks) >= count:
            continue
        for start, end in _stretches(run, ranks, count, options.length):
            key = tuple([word.stem for word in run[start:end]])
            found.setdefault(key, (min(ranks[start:end]), []))[1].append(run[start:end])
    best: Iterable[tuple[str, ...]] = found
    if len(found) > options.per_chunk:
        best = sorted(found, key=lambda key: (found[key][0], key))[: options.per_chunk]
    return [some for key in best for some in found[key][1]]


def _stretches(run: Sequence[Word], ranks: Sequence[int], count: int, length: int) -> Iterable[tuple[int, int]]:
    """Stretches of telling words that end in a noun; an adjective tells only beside a noun that does."""
    at = 0
    while at < len(run):
        end = at
        while end < len(run) and end - at < length and ranks[end] < count:
            end += 1
        last = end
        while last > at and not run[last - 1].noun:
            last -= 1
        if last > at:
            yield at, last
        at = max(end, at + 1)

"""Detectors around third-party models and tools, each an extra of its own.

An adapter runs a library on a text, maps the model's labels to the taxonomy (:mod:`.labels`), and cuts a text that is
too long for the model into overlapping windows (:func:`cut_windows`). Its options are a table of the policy,
``[detect.NAME]``; ``allonym.registry.DETECTOR_OPTIONS`` lists them. A missing library or model is an error. Models come
from the paths and names that the user gives, and the network is not used unless the table says
``allow_download = true`` (:mod:`.offline`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from allonym.detection.languages import hide_unread
from allonym.document import Document, Interval, Span, trim_blanks

OVERLAP = 50
"""Words that two windows share."""

_WORD = re.compile(r"\S{1,100}")
_UNREADABLE = re.compile("[\ud800-\udfff]")
_MIDDLE = 0.5


class Found(NamedTuple):
    """A model's finding: half-open code points, the model's own label, and a score from 0 to 1."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Adapter:
    """A detector made from a function that returns a model's findings in each of several texts.

    Attributes:
        name: the detector's, for ``Span.source``.
        read: takes texts without NUL and lone surrogates, and returns the findings in each, in the same order.
        labels: maps the model's labels to the taxonomy.
        cut: the windows of a text, which ``read`` gets one by one; by default the whole text.
        threshold: the least score of a finding, from 0 to under 1. Scores from there to 1 are rescaled to 0.5 to 1,
            since 0.5 is the default threshold of policies. Without one, all findings count with their own scores.
        reads_disguise: whether disguised regions are read a second time without their disguise.
        languages: ISO 639 codes of the languages that the model reads; empty: it does not read, it has rules.
        reads_weakly: whether lists, fields and capitals are asked for names, too, in passages that are not English.
        reads_technical: whether it reads formulas, keys and numbers, too, and not prose alone.
    """

    name: str
    read: Callable[[Sequence[str]], Iterable[Iterable[Found]]]
    labels: Callable[[str], str]
    threshold: float | None = None
    cut: Callable[[str], Iterable[Interval]] = lambda text: [(0, len(text))]
    reads_disguise: bool = True
    languages: frozenset[str] = frozenset()
    reads_weakly: bool = False
    reads_technical: bool = False

    def __call__(self, document: Document) -> list[Span]:
        return self.many([document])[0]

    def many(self, documents: Sequence[Document]) -> list[list[Span]]:
        """The findings in each document; see :func:`allonym.detection.detect_each`."""
        # C libraries stop at a NUL and UTF-8 has no lone surrogates; the stand-ins keep all offsets.
        read = [hide_unread(d, self.languages).text if self.languages else d.text for d in documents]
        texts = [_UNREADABLE.sub("\ufffd", text.replace("\0", " ")) for text in read]
        windows = [(i, a, text[a:b]) for i, text in enumerate(texts) for a, b in self.cut(text)]
        findings: list[list[Found]] = [[] for _ in texts]
        for (i, offset, _), window in zip(windows, self.read([text for _, _, text in windows]), strict=True):
            findings[i] += (Found(offset + f.start, offset + f.end, f.label, f.score) for f in window)
        return [self._map_findings(text, each) for text, each in zip(texts, findings, strict=True)]

    def _map_findings(self, text: str, findings: Iterable[Found]) -> list[Span]:
        best: dict[tuple[int, int, str], float] = {}
        for start, end, foreign, score in findings:
            label = self.labels(foreign)
            start, end = trim_blanks(text, start, end)
            while start < end < len(text) and unicodedata.combining(text[end]):  # some tokenizers drop accents
                end += 1
            score = min(1.0, max(0.0, score))
            if label and start < end and (self.threshold is None or score >= self.threshold):
                best[start, end, label] = max(self._rescale_score(score), best.get((start, end, label), 0.0))
        return sorted(Span(*place, score, f"{self.name}:model") for place, score in best.items())

    def _rescale_score(self, score: float) -> float:
        low = self.threshold
        if low is None or low == _MIDDLE or score == 1.0:
            return score
        return _MIDDLE + _MIDDLE * (score - low) / (1 - low)


def split_words(text: str) -> list[Interval]:
    """The intervals of the words, which are separated by blanks; longer words are cut after 100 characters."""
    return [m.span() for m in _WORD.finditer(text)]


def cut_windows(
    text: str,
    limit: float,
    overlap: float,
    places: Sequence[Interval] | None = None,
    cost: Callable[[str], float] = lambda _: 1.0,
) -> Iterator[Interval]:
    """Cut a text into windows, from word to word, that together hold all its words.

    Args:
        text: any text.
        limit: the most that the words of one window may cost together. A word that costs more has a window of its own.
        overlap: the least cost of the words that two neighbouring windows share, where the limit leaves room for it.
        places: the intervals of the words, sorted and disjoint; by default those of :func:`split_words`.
        cost: cost of a word; by default every word costs 1.

    The windows depend on the text alone.
    """
    places = split_words(text) if places is None else places
    costs = [cost(text[a:b]) for a, b in places]
    first = 0
    while first < len(places):
        end, spent = first + 1, costs[first]
        while end < len(places) and spent + costs[end] <= limit:
            spent += costs[end]
            end += 1
        yield places[first][0], places[end - 1][1]
        if end == len(places):
            return
        shared, room = 0.0, limit - costs[end]  # the next window must reach further than this one
        following = end
        while following - 1 > first and shared < overlap and shared + costs[following - 1] <= room:
            following -= 1
            shared += costs[following]
        first = following

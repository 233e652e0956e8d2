"""Detectors around other people's models and tools, each an extra of its own.

An adapter reads a text through the library, puts the model's labels into the taxonomy (:mod:`.labels`), and cuts what
is longer than the model can take into windows that overlap (:mod:`.windows`). Its options are a table of the policy,
``[detect.NAME]``; their list is ``allonym.registry.DETECTOR_KEYS``. A library or a model that is not there is an error.
Models come from the paths and names that the user gives, and the network is left alone unless the table says
``allow_download = true`` (:mod:`.offline`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from allonym.detect.adapters.labels import LabelMap
from allonym.document import Document, Span

_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_MIDDLE = 0.5


class Found(NamedTuple):
    """What a model found in a text: half-open code points, the model's own label, a score from 0 to 1."""

    start: int
    end: int
    label: str
    score: float


class Adapter:
    """A detector made of a function from texts to what a model finds in each.

    Args:
        name: the detector's, for ``Span.source``.
        read: gets texts without NUL and lone surrogates, gives what stands in each, in their order.
        labels: puts the model's labels into the taxonomy.
        threshold: the least score of a finding, from 0 to under 1; scores from there to 1 are stretched or shrunk to
            0.5 to 1, since 0.5 is what policies ask for by default. Without one, all findings count as they are.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[Sequence[str]], Sequence[Iterable[Found]]],
        labels: LabelMap,
        threshold: float | None = None,
    ) -> None:
        self._name = name
        self._read = read
        self._labels = labels
        self._threshold = threshold

    def __call__(self, document: Document) -> list[Span]:
        return self.many([document])[0]

    def many(self, documents: Sequence[Document]) -> list[list[Span]]:
        """What stands in each document; see :func:`allonym.detect.detect_each`."""
        # C libraries stop at a NUL and UTF-8 has no lone surrogates; the stand-ins keep all offsets.
        texts = [_UNREADABLE.sub(_substitute_unreadable, document.text) for document in documents]
        return [self._map_findings(text, findings) for text, findings in zip(texts, self._read(texts), strict=True)]

    def _map_findings(self, text: str, findings: Iterable[Found]) -> list[Span]:
        best: dict[tuple[int, int, str], float] = {}
        for start, end, foreign, score in findings:
            label = self._labels(foreign)
            while start < end and text[start].isspace():
                start += 1
            while start < end and text[end - 1].isspace():
                end -= 1
            while start < end < len(text) and unicodedata.combining(text[end]):  # some tokenizers drop accents
                end += 1
            score = min(1.0, max(0.0, score))
            if label and start < end and (self._threshold is None or score >= self._threshold):
                best[start, end, label] = max(self._rescale(score), best.get((start, end, label), 0.0))
        return sorted(Span(*place, score, f"{self._name}:model") for place, score in best.items())

    def _rescale(self, score: float) -> float:
        low = self._threshold
        if low is None or low == _MIDDLE or score == 1.0:
            return score
        return _MIDDLE + _MIDDLE * (score - low) / (1 - low)


def _substitute_unreadable(match: re.Match[str]) -> str:
    return " " if match[0] == "\0" else "\ufffd"

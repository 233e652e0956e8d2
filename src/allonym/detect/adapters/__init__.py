"""Detectors around third-party models and tools, each an extra of its own.

An adapter runs a library on a text, maps the model's labels to the taxonomy (:mod:`.labels`), and cuts a text that is
too long for the model into overlapping windows (:mod:`.windows`). Its options are a table of the policy,
``[detect.NAME]``; ``allonym.registry.DETECTOR_KEYS`` lists them. A missing library or model is an error. Models come
from the paths and names that the user gives, and the network is not used unless the table says
``allow_download = true`` (:mod:`.offline`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from allonym.detect.adapters.labels import LabelMap
from allonym.detect.adapters.offline import require_option
from allonym.document import Document, Interval, Span
from allonym.policy import Policy

_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_MIDDLE = 0.5


class Found(NamedTuple):
    """A model's finding: half-open code points, the model's own label, and a score from 0 to 1."""

    start: int
    end: int
    label: str
    score: float


class ModelSettings(NamedTuple):
    """The options that the tables of all neural models share."""

    model: str
    batch_size: int
    threshold: float
    device: str
    allow_download: bool

    @classmethod
    def read(cls, policy: Policy, detector: str) -> ModelSettings:
        """Read the table ``[detect.DETECTOR]``; raise :class:`PolicyError` where it names no model."""
        settings: Mapping[str, Any] = policy.settings(detector)
        return cls(require_option(settings, detector), *(settings[name] for name in cls._fields[1:]))


class Adapter:
    """A detector made from a function that returns a model's findings in each of several texts.

    Args:
        name: the detector's, for ``Span.source``.
        read: takes texts without NUL and lone surrogates, and returns the findings in each, in the same order.
        labels: maps the model's labels to the taxonomy.
        cut: the windows of a text, which ``read`` gets one by one; by default the whole text.
        threshold: the least score of a finding, from 0 to under 1. Scores from there to 1 are rescaled to 0.5 to 1,
            since 0.5 is the default threshold of policies. Without one, all findings count with their own scores.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[Sequence[str]], Iterable[Iterable[Found]]],
        labels: LabelMap,
        threshold: float | None = None,
        cut: Callable[[str], Iterable[Interval]] | None = None,
    ) -> None:
        self._name = name
        self._read = read
        self._labels = labels
        self._threshold = threshold
        self._cut = cut or (lambda text: [(0, len(text))])

    def __call__(self, document: Document) -> list[Span]:
        return self.many([document])[0]

    def many(self, documents: Sequence[Document]) -> list[list[Span]]:
        """The findings in each document; see :func:`allonym.detect.detect_each`."""
        # C libraries stop at a NUL and UTF-8 has no lone surrogates; the stand-ins keep all offsets.
        texts = [_UNREADABLE.sub(_substitute_unreadable, document.text) for document in documents]
        windows = [(i, a, text[a:b]) for i, text in enumerate(texts) for a, b in self._cut(text)]
        findings: list[list[Found]] = [[] for _ in texts]
        for (i, offset, _), window in zip(windows, self._read([text for _, _, text in windows]), strict=True):
            findings[i] += (Found(offset + f.start, offset + f.end, f.label, f.score) for f in window)
        return [self._map_findings(text, each) for text, each in zip(texts, findings, strict=True)]

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

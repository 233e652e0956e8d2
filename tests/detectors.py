"""The rule detector for one label alone."""

from __future__ import annotations

from functools import cache

from allonym.detection import Detector
from allonym.detection.rules import build_detector
from allonym.document import Document, Span
from allonym.policy import Policy
from allonym.resolve import resolve


@cache
def build_label_detector(label: str, threshold: float) -> Detector:
    """Build the detector of the rules and the names of numbers whose label is this one or lies below it."""
    return build_detector(Policy(name="p", labels=(label,), every=False, threshold=threshold))


def find_label(label: str, text: str, threshold: float = 0.5) -> tuple[Span, ...]:
    """Find what has this very label, disjoint."""
    spans = build_label_detector(label, threshold)(Document("", text))
    return resolve(span for span in spans if span.label == label)

"""Batches for detectors. The one place that says how a detector takes several documents at once.

A detector may carry a method ``many(documents) -> list of lists of spans``, one list a document, in order. It must give
what calling the detector on each document gives, and is there because models are faster on batches. Whoever has many
documents calls :func:`detect_each`, which uses it where it exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from allonym.detect import Detector
from allonym.document import Document, Span


def detect_each(detector: Detector, documents: Sequence[Document]) -> list[list[Span]]:
    """What a detector finds in each document, in order."""
    many = getattr(detector, "many", None)
    if many is None:
        return [list(detector(document)) for document in documents]
    return [list(spans) for spans in many(documents)]

"""Candidates: all spans that a policy's detectors see in a document, before thresholds and overlaps are decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from allonym import registry
from allonym.detection import Detector
from allonym.detection.disguise import find_disguised_regions, fold_lookalikes
from allonym.detection.turns import add_turns
from allonym.document import Document, Span
from allonym.errors import AllonymError, DataError
from allonym.policy import Policy


@lru_cache(maxsize=64)
def build_detectors(policy: Policy) -> tuple[Detector, ...]:
    """The policy's detectors, in its order. They are built once for each policy object."""
    factories = [registry.detectors.get(name) for name in policy.detectors]
    return tuple(factory(policy) for factory in factories)  # type: ignore[operator]


def find_candidates(document: Document, policy: Policy) -> list[Span]:
    """All spans that the policy's detectors see in a document, in no particular order.

    Disguised regions are searched a second time without their disguise; a span found there counts where the plain
    search did not find it with the same label and at least the same score.

    Raises:
        DataError: a detector failed. The message names the type of its error only, since the error may quote the text.
    """
    document = add_turns(document)
    folded = fold_lookalikes(document.text)
    plain = document if folded is document.text else replace(document, text=folded)
    detectors = build_detectors(policy)
    candidates = [span for detector in detectors for span in _run_detector(detector, plain)]
    scores: dict[tuple[int, int, str], float] | None = None
    readers = [detector for detector in detectors if getattr(detector, "reads_disguise", True)]
    for offset, first, last, view in find_disguised_regions(folded):
        scores = scores or {(s.start, s.end, s.label): s.score for s in candidates}
        unmasked = Document(document.id, view.text, document.meta)
        for detector in readers:
            for span in _run_detector(detector, unmasked):
                if first <= span.start and span.end <= last:
                    start, end = (offset + border for border in view.locate_original(span.start, span.end))
                    if scores.get((start, end, span.label), -1.0) < span.score:
                        candidates.append(replace(span, start=start, end=end, source=f"{span.source}+unmasked"))
    return candidates


def _run_detector(detector: Detector, document: Document) -> Iterable[Span]:
    try:
        return list(detector(document))
    except AllonymError:
        raise
    except Exception as error:  # the error of a foreign detector may quote the text
        failure = type(error).__name__
    raise DataError(f"a detector failed with {failure}")

"""Detectors: from a document to candidate spans.

A detector is any callable ``(Document) -> Iterable[Span]``; a factory in the registry makes one for a policy.
:mod:`.selection` runs all of a policy's detectors on the folded text and on what disguise hides (:mod:`.disguise`), and
decides which candidates count.

A detector may also have a method ``many(documents) -> list of lists of spans``, one list for each document, in order.
It must return what calling the detector on each document returns, and exists because models are faster on batches.

A detector that finds names by reading sentences has an attribute ``languages``: the ISO 639 codes of those that
it reads, or :data:`ANY_LANGUAGE`. It leaves passages in others alone (:mod:`.languages`). What no such detector
of a policy reads is unread, and the policy's ``unknown_language`` says what becomes of it.

A detector whose attribute ``reads_technical`` is false reads the prose of a document alone (:mod:`.structure`), and one
whose ``reads_disguise`` is false is not run on what disguise hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from allonym.document import Document, Span

Detector = Callable[[Document], Iterable[Span]]

TAGGER = "tagger"
"""Source of the embedded tagger's findings."""

ANY_LANGUAGE = frozenset({"*"})
"""Languages of a detector that reads any."""

OPENING_MARKS = "$€£¥#@+-("
"""Marks that may begin a finding: "$300", "@ada", "(UK) Ltd"."""


def detect_each(detector: Detector, documents: Sequence[Document]) -> list[list[Span]]:
    """Run a detector on each document, in order, by its method ``many`` where it has one."""
    many = getattr(detector, "many", None)
    return [list(spans) for spans in (map(detector, documents) if many is None else many(documents))]

"""Detectors: from a document to candidate spans.

A detector is any callable ``(Document) -> Iterable[Span]``; a factory in the registry makes one for a policy. The
pipeline runs all of a policy's detectors on the folded text and on what disguise hides, see :mod:`.disguise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from allonym.document import Document, Span

Detector = Callable[[Document], Iterable[Span]]

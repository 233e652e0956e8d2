"""What swapping works on: chunks of documents, and the entities of each chunk as slots that others may take.

P1 (arXiv 2505.21128, section 2): text chunks y, metadata c, and per chunk the named entities by category.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from allonym.document import Document, Entity, Interval, Span
from allonym.plan import Plan

STATES = ("swap", "fixed", "change", "free")
"""What may happen to a category (P1 2.3: s, f, c, *): exchanged; left as it is; replaced by a placeholder before
anything is counted or embedded; free for either."""


@dataclass(frozen=True, slots=True)
class Value:
    """One entity of one chunk: a slot, and what stands in it.

    Attributes:
        category: e.g. ``Organization``.
        key: canonical form, the same for the same entity in every chunk and document. Hidden from ``repr``.
        forms: its distinct surfaces in the chunk, the fullest first. Hidden from ``repr``.
        spans: its mentions in the chunk, sorted and disjoint, as offsets of the document.
    """

    category: str
    key: str = field(repr=False)
    forms: tuple[str, ...] = field(repr=False)
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of one document on one topic.

    Attributes:
        document: index into :attr:`Corpus.documents`.
        start, end: where it stands in the document.
        text: the chunk with direct identifiers and ``change`` categories replaced (P1's y). Hidden from ``repr``.
        values: its entities in reading order, those of ``swap``, ``fixed`` and ``free`` categories.
    """

    document: int
    start: int
    end: int
    text: str = field(repr=False)
    values: tuple[Value, ...] = ()

    def keys(self, category: str) -> frozenset[str]:
        """The chunk's cell value in one category: the set of its entities, empty where it has none."""
        return frozenset(v.key for v in self.values if v.category == category)


class Slot(NamedTuple):
    """A value's place: which chunk of the corpus, which of its values."""

    chunk: int
    value: int


Placed = Mapping[Slot, Slot]
"""Slot to the slot whose original entity stands there now."""


@dataclass(frozen=True, slots=True, repr=False)
class Corpus:
    """Documents that share a structure, and what of them is swapped.

    Attributes:
        documents: as they were read, with text and metadata.
        protect: the metadata key whose value nobody may guess (P1's c).
        classes: each document's value of it.
        categories: category to its state, one of :data:`STATES`.
        sections: per document, the stretches that are chunked; chunks concatenate to them.
        chunks: by document, then by place.
        entities: per document, everything that was found in it, linked.
        plans: per document, the edits that are made in any case: direct identifiers and ``change`` categories.
        settings: how it was read, for reports; plain values.
        warnings: remarks for the user, without any text of the corpus.
    """

    documents: tuple[Document, ...]
    protect: str
    classes: tuple[str, ...]
    categories: Mapping[str, str]
    sections: tuple[tuple[Interval, ...], ...]
    chunks: tuple[Chunk, ...]
    entities: tuple[tuple[Entity, ...], ...]
    plans: tuple[Plan, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Corpus({len(self.documents)} documents, {len(self.chunks)} chunks)"

    def class_of(self, chunk: int) -> str:
        """The protected value of the chunk's document."""
        return self.classes[self.chunks[chunk].document]

    @property
    def swapped(self) -> tuple[str, ...]:
        """The categories that may be exchanged, in order."""
        return tuple(c for c, state in self.categories.items() if state == "swap")

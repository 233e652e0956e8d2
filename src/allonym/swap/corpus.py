"""The corpus of a swap: chunks of documents, and the entities of each chunk as slots that other entities may take.

P1 (arXiv 2505.21128, section 2): text chunks y, metadata c, and per chunk the named entities by category.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from allonym.document import Document, Entity, Interval, Span
from allonym.plan import Plan

STATES = ("swap", "fixed", "change", "free")
"""What may happen to a category (P1 2.3: s, f, c, *): exchanged; left as it is; replaced by a placeholder before
anything is counted or embedded; free for either."""

Advance = Callable[[str, int, int], object]
"""Called to report progress: the name of the stage, how much of it is done, how much there is."""


def ignore_progress(*progress: object) -> None:
    """Take a report of progress and do nothing."""


@dataclass(frozen=True, slots=True)
class Value:
    """One entity of one chunk: a slot and its original content.

    Attributes:
        category: e.g. ``Organization``.
        key: canonical form, the same for the same entity in every chunk and document. Hidden from ``repr``.
        forms: its distinct surfaces in the chunk, the fullest first. Hidden from ``repr``.
        spans: its mentions in the chunk, sorted and disjoint, as offsets of the document.
        place: how its sentences hold it, see :func:`allonym.swap.places.read_place`; empty where that is not read.
    """

    category: str
    key: str = field(repr=False)
    forms: tuple[str, ...] = field(repr=False)
    spans: tuple[Span, ...] = ()
    place: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of one document on one topic.

    Attributes:
        document: index into :attr:`Corpus.documents`.
        start, end: offsets in the document.
        text: the chunk with direct identifiers and ``change`` categories replaced (P1's y). Hidden from ``repr``.
        values: its entities in reading order, those of ``swap``, ``fixed`` and ``free`` categories.
    """

    document: int
    start: int
    end: int
    text: str = field(repr=False)
    values: tuple[Value, ...] = ()

    def keys(self, category: str) -> frozenset[str]:
        """Return the chunk's cell value in one category: the set of its entities, empty where it has none."""
        return frozenset(v.key for v in self.values if v.category == category)


class Slot(NamedTuple):
    """The place of a value: which chunk of the corpus, which of its values."""

    chunk: int
    value: int


Placed = Mapping[Slot, Slot]
"""Slot to the slot whose original entity takes its place."""


@dataclass(frozen=True, slots=True, repr=False)
class Corpus:
    """Documents that share a structure, and the entities in them that are swapped.

    Attributes:
        documents: as they were read, with text and metadata.
        protect: the metadata key whose value nobody may guess (P1's c).
        classes: each document's value of it.
        categories: category to its state, one of :data:`STATES`.
        sections: per document, the stretches that are chunked; chunks concatenate to them.
        chunks: by document, then by position.
        entities: per document, all its linked entities.
        plans: per document, the edits that are made in any case: direct identifiers and ``change`` categories.
        settings: how it was read, for reports; plain values.
        warnings: remarks for the user, without any text of the corpus.
        common_nouns: nouns that most protected values use, which identify none; empty unless terms are read.
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
    common_nouns: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Corpus({len(self.documents)} documents, {len(self.chunks)} chunks)"

    def class_of(self, chunk: int) -> str:
        """Return the protected value of the chunk's document."""
        return self.classes[self.chunks[chunk].document]

    def value_at(self, slot: Slot) -> Value:
        """Return the original entity of a slot."""
        return self.chunks[slot.chunk].values[slot.value]

    def slots_of(self, chunk: int) -> Iterator[tuple[Slot, Value]]:
        """Yield the slots of a chunk with their original entities."""
        for i, value in enumerate(self.chunks[chunk].values):
            yield Slot(chunk, i), value

    @property
    def swapped(self) -> tuple[str, ...]:
        """The categories that may be exchanged, in order."""
        return tuple(c for c, state in self.categories.items() if state == "swap")


def digest_corpus(corpus: Corpus) -> str:
    """Return a digest of everything that a search reads from a corpus."""
    from allonym.files.state import FORMAT  # all of allonym.files, which settings alone do not need

    digest = blake2b(digest_size=16)

    def add(*parts: object) -> None:
        for part in parts:
            digest.update(str(part).encode("utf-8", "surrogatepass") + b"\0")

    add(FORMAT, corpus.protect, *(f"{c}={s}" for c, s in corpus.categories.items()))
    for document, label, plan in zip(corpus.documents, corpus.classes, corpus.plans, strict=True):
        add(document.id, document.text, json.dumps(dict(document.meta), sort_keys=True, default=str), label)
        add(plan.digest, *((e.start, e.end, e.replacement) for e in plan.edits))
    for chunk in corpus.chunks:
        add(chunk.document, chunk.start, chunk.end, chunk.text)
        for value in chunk.values:
            add(value.category, value.key, *value.forms, *((s.start, s.end) for s in value.spans))
    return digest.hexdigest()

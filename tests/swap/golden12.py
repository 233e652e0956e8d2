"""A corpus of 12 chunks in 4 documents whose tables, pairs and swaps are known: ``tests/cases/swap_golden.jsonl``.

Its lines by ``kind``: ``chunk``; ``table`` (marginal table of two categories, with and without chunks that hold
neither; its sample uniques); ``pairs`` (which chunks may trade two categories); ``most pairs``; ``uniques changed``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from allonym.document import Document, Entity, Span
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Value

FACTS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "swap_golden.jsonl").read_text("utf-8").splitlines()
]
LABELS = {
    "Organization": "ORGANIZATION",
    "Person": "PERSON",
    "Location": "LOCATION",
    "Product": "PRODUCT",
    "Event": "EVENT",
    "Date": "DATE",
}
STATES = dict.fromkeys(("Organization", "Person", "Location", "Product"), "swap") | {"Event": "free", "Date": "free"}


def facts(kind: str) -> list[dict[str, Any]]:
    """The known facts of one kind."""
    return [fact for fact in FACTS if fact["kind"] == kind]


_BY_PLACE = sorted(facts("chunk"), key=lambda c: c["document"])
NAMES: tuple[str, ...] = tuple(c["name"] for c in _BY_PLACE)
"""The chunks' names (y1 to y12) in the order in which they stand in :func:`corpus`: by document."""
CLUSTERS: tuple[int, ...] = tuple(c["cluster"] - 1 for c in _BY_PLACE)
"""The chunks' clusters, 0 or 1, in the same order."""


def index(name: str) -> int:
    """Where the chunk of this name stands in the corpus."""
    return NAMES.index(name)


def corpus(states: dict[str, str] | None = None) -> Corpus:
    """The corpus; the protected value of a document is its letter, A to D."""
    documents, chunks, plans, entities = [], [], [], []
    for number, name in enumerate("ABCD"):
        text, found = "", {}
        for fact in (c for c in _BY_PLACE if c["document"] == name):
            start, values = len(text), []
            text += "We turn to this"
            for category, surfaces in fact["values"].items():
                for surface in surfaces:
                    text += " and "
                    span = Span(len(text), len(text) + len(surface), LABELS[category])
                    text += surface
                    values.append(Value(category, surface.lower(), (surface,), (span,)))
                    found.setdefault((LABELS[category], surface.lower()), []).append(span)
            text += ". "
            chunks.append(Chunk(number, start, len(text), text[start:], tuple(values)))
        documents.append(Document(name, text, {"company": name}))
        plans.append(Plan(digest(text)))
        entities.append(tuple(Entity(f"{label}:{key}", label, tuple(spans)) for (label, key), spans in found.items()))
    return Corpus(
        documents=tuple(documents),
        protect="company",
        classes=tuple("ABCD"),
        categories=states or STATES,
        sections=tuple(((0, len(d.text)),) for d in documents),
        chunks=tuple(chunks),
        entities=tuple(entities),
        plans=tuple(plans),
    )

"""Small corpora of invented companies, drawn by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from allonym.document import Document, Entity, Span
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.validity import (
    Ground,
    Rules,
    check_rules,
    group_tradable_chunks,
    list_must_differ_codes,
    make_pair_conditions,
)

STATES = {"Organization": "swap", "Person": "swap", "Product": "swap", "Date": "fixed"}
LABELS = {"Organization": "ORGANIZATION", "Person": "PERSON", "Product": "PRODUCT", "Date": "DATE"}
NAMES = {
    "Organization": "Quillmark;Ostrava Freight;Bellworth;Tidewell Group;Hanmere;Corvane;Luxmere;Pellbrook;Sundial",
    "Person": "Ines Harrow;Tobias Kell;Marta Lindqvist;Omar Feld;Petra Voss;Gil Anders;Noor Abadi;Sven Ruud;Ada Blyth",
    "Product": "Flexline;Hydracore;Nimbus Cart;Torvox;Paperwing;Soundfold;Glasspath;Ironleaf;Riverkey",
    "Date": "March 3;June 9;April 12",
}


def limited(categories: tuple[str, ...], **changes: Any) -> Rules:
    """The limits that P1 admits: one pass of pairs, both of all categories, uniform draws."""
    limits = Rules(
        categories=categories,
        need="both",
        partners="same",
        counts="min",
        unswapped_differ=True,
        weights="uniform",
        temperature=0.1,
        fit=0.0,
        min_fit=-100.0,
        count_penalty=0.0,
        rounds=1,
        cycles=False,
    )
    return replace(limits, **changes)


def paper(categories: tuple[str, ...], **changes: Any) -> Rules:
    """P1's protocol: as limited, and entities may come back to a class that knows them."""
    return limited(categories, **{"returns": True, **changes})


def lifted(categories: tuple[str, ...], **changes: Any) -> Rules:
    """P1 without the limits that it admits: any shared category, one to many, rounds, rotations."""
    more = {"need": "any", "partners": "per-category", "counts": "all", "unswapped_differ": False}
    return limited(categories, **{**more, "rounds": 4, "cycles": True, **changes})


def corpus(seed: int, documents: int = 4, chunks: int = 4, most: int = 2, pool: int = 9) -> Corpus:
    """Documents of their own class each, with up to ``most`` entities of each category in a chunk."""
    rng = np.random.default_rng(seed)
    texts, all_chunks, entities = [], [], []
    for d in range(documents):
        text = ""
        found: dict[tuple[str, str], list[Span]] = {}
        for _ in range(chunks):
            start, values = len(text), []
            text += "Now"
            for category, names in NAMES.items():
                listed = names.split(";")[:pool]
                for k in rng.permutation(len(listed))[: int(rng.integers(0, most + 1))]:
                    text += " and for "
                    spans = []
                    for again in range(int(rng.integers(1, 3))):
                        text += "a new " if again else ""
                        spans.append(Span(len(text), len(text) + len(listed[k]), LABELS[category]))
                        text += listed[k] + ("'s" if rng.random() < 0.3 else "") + " or "
                    text += "more"
                    values.append(Value(category, listed[k].lower(), (listed[k],), tuple(spans)))
                    found.setdefault((LABELS[category], listed[k].lower()), []).extend(spans)
            text += ". "
            all_chunks.append(Chunk(d, start, len(text), text[start:], tuple(values)))
        texts.append(text)
        entities.append(tuple(Entity(f"{label}:{key}", label, tuple(spans)) for (label, key), spans in found.items()))
    return Corpus(
        documents=tuple(Document(f"d{d}", text, {"company": f"class {d}"}) for d, text in enumerate(texts)),
        protect="company",
        classes=tuple(f"class {d}" for d in range(documents)),
        categories=STATES,
        sections=tuple(((0, len(text)),) for text in texts),
        chunks=tuple(all_chunks),
        entities=tuple(entities),
        plans=tuple(Plan(digest(text)) for text in texts),
    )


def list_valid_pairs(
    corpus: Corpus,
    labels: Sequence[int],
    rules: Rules,
    *,
    groups: Sequence[str] | None = None,
    allowed: Sequence[int] | None = None,
) -> list[tuple[int, int]]:
    """All pairs of chunks (i < j) that meet the conditions, sorted: very many, so for small corpora only."""
    check_rules(corpus, rules)
    ground = Ground.of(corpus)
    n = len(corpus.chunks)
    cells = [ground.number_cells(c) for c in rules.categories]
    codes, shared = make_pair_conditions(list_must_differ_codes(ground, rules), cells, n)
    pairs = []
    for members in group_tradable_chunks(ground, labels, rules, groups, allowed):
        for position, i in enumerate(members, 1):
            rest = np.array(members[position:], np.int64)
            valid = (shared[rest] & shared[i]) != 0
            for code in codes:
                valid &= code[rest] != code[i]
            pairs += [(i, int(j)) for j in rest[valid]]
    return sorted(pairs)

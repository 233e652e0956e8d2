"""Invented corpora: companies that speak of the same topics, each with partners, products and people of its own."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from allonym.document import Document, Entity, Span
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Value

SYLLABLES = "qua fen bro dal mir tos vel kan rup sil ong tre lum gar nox pim ved hax jol bri sut wem zor cly".split()
TOPICS = (
    "Revenue grew {n} percent, and margins widened, because {Organization} bought more {Product} than last year.",
    "Our engineers taped out {Product} together with {Organization}, on a new process for faster chips.",
    "The plant in {Location} opened in spring, where {Person} leads the supply chain for {Organization}.",
    "Customers such as {Organization} and {Organization} moved {Product} to the cloud with our platform.",
    "{Person} joined the board from {Organization}, and the dividend stays where it was.",
    "Regulators in {Location} asked about {Product}, and the court will hear {Organization} in autumn.",
)
CATEGORIES = ("Organization", "Person", "Location", "Product")
ENDS = {"Organization": " Ltd", "Person": "", "Location": "", "Product": " One"}


def name(rng, category):
    """A name that nobody bears."""
    parts = ["".join(rng.choice(SYLLABLES, 3)).capitalize() for _ in range(2 if category == "Person" else 1)]
    return " ".join(parts) + ENDS[category]


@cache
def corpus(documents=6, topics=4, seed=1, states=(), common=0.3):
    """A corpus of ``documents`` companies with ``topics`` chunks per topic sentence each."""
    rng = np.random.default_rng(seed)
    shared = {c: [name(rng, c) for _ in range(3)] for c in CATEGORIES}
    docs, chunks, entities, plans, sections = [], [], [], [], []
    for d in range(documents):
        own = {c: [name(rng, c) for _ in range(5)] for c in CATEGORIES}
        text, bounds = "", []
        for k in range(topics * len(TOPICS)):
            start = len(text)
            sentence = re.sub(
                r"\{(\w+)\}",
                lambda m, own=own: (
                    str(rng.integers(2, 40))
                    if m[1] == "n"
                    else str(rng.choice(shared[m[1]] if rng.random() < common else own[m[1]]))
                ),
                TOPICS[k % len(TOPICS)],
            )
            text += sentence + " "
            bounds.append((start, len(text)))
        of = {one: c for c in CATEGORIES for one in (*own[c], *shared[c])}
        names = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(of, key=lambda n: (-len(n), n)))) + r")\b")
        found = {}
        for m in names.finditer(text):
            c = of[m.group()]
            found.setdefault((c, m.group()), []).append(Span(m.start(), m.end(), c.upper(), 1.0, "test"))
        for start, end in bounds:
            values = [
                Value(c, one.lower(), (one,), here)
                for (c, one), spans in found.items()
                if (here := tuple(s for s in spans if start <= s.start < end))
            ]
            values.sort(key=lambda v: v.spans[0])
            chunks.append(Chunk(d, start, end, text[start:end], tuple(values)))
        docs.append(Document(f"call-{d}", text, {"company": f"Firm {d}", "sector": "ab"[d % 2]}))
        sections.append(((0, len(text)),))
        entities.append(
            tuple(Entity(f"{c.upper()}:{one.lower()}", c.upper(), tuple(s)) for (c, one), s in found.items())
        )
        plans.append(Plan(digest(text), result=digest(text)))
    return Corpus(
        tuple(docs),
        "company",
        tuple(d.meta["company"] for d in docs),
        dict(states) or dict.fromkeys(CATEGORIES, "swap"),
        tuple(sections),
        tuple(chunks),
        tuple(entities),
        tuple(plans),
        {"section": "all"},
    )

"""What an interrupted search goes on from: a digest of everything that its stages are computed from."""

from __future__ import annotations

import json
from hashlib import blake2b

from allonym.files.state import FORMAT
from allonym.swap.corpus import Corpus


def corpus_digest(corpus: Corpus) -> str:
    """A digest of everything that a search reads from a corpus."""
    made = blake2b(digest_size=16)

    def add(*parts: object) -> None:
        for part in parts:
            made.update(str(part).encode("utf-8", "surrogatepass") + b"\0")

    add(FORMAT, corpus.protect, *(f"{c}={s}" for c, s in corpus.categories.items()))
    for document, label, plan in zip(corpus.documents, corpus.classes, corpus.plans, strict=True):
        add(document.id, document.text, json.dumps(dict(document.meta), sort_keys=True, default=str), label)
        add(plan.digest, *((e.start, e.end, e.replacement) for e in plan.edits))
    for chunk in corpus.chunks:
        add(chunk.document, chunk.start, chunk.end, chunk.text)
        for value in chunk.values:
            add(value.category, value.key, *value.forms, *((s.start, s.end) for s in value.spans))
    return made.hexdigest()

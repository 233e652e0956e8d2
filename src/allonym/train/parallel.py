"""A parallel corpus for rewriting models: passages of the user's text, and the same with pseudonyms.

The pseudonyms are those of a policy, made by :func:`allonym.pipeline.replace_found`. Each document is a scope of its
own, so that a model learns to replace names, but not a mapping of people.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from allonym.document import Document, Interval
from allonym.pipeline import detect, replace_found
from allonym.plan import Edit, apply_edits
from allonym.policy import Policy
from allonym.replace.rewriter import LENGTH, split_passages


@dataclass(frozen=True, slots=True)
class Pair:
    """A passage before and after pseudonymisation.

    Attributes:
        source, target: the texts. Hidden from ``repr``.
        places: offsets in the source where the two differ.
        document: number of the document, from 0.
    """

    source: str = field(repr=False)
    target: str = field(repr=False)
    places: tuple[Interval, ...]
    document: int = 0


def make_pairs(
    documents: Iterable[Document],
    policy: Policy,
    key: bytes | str | None,
    *,
    note_texts: Callable[[int], None] = lambda n: None,
) -> Iterator[Pair]:
    """Yield the passages of documents with their pseudonymised forms, in reading order, including unchanged ones.

    Passages with tags are left out, since a model should not learn to write tags.

    Args:
        documents: the texts.
        policy: the policy for the replacements, such as the preset ``pseudonyms``.
        key: for keyed operators.
        note_texts: called after each document with the number of finished documents.

    Raises:
        UsageError: the policy needs a key.
    """
    for number, document in enumerate(documents):
        spans, scope = detect(document, policy), f"parallel corpus {number}"
        plan = replace_found(document, spans, policy, key=key, scope=scope).plan
        yield from _cut_into_pairs(document.text, plan.edits, number)
        note_texts(number + 1)


def _cut_into_pairs(text: str, edits: Sequence[Edit], number: int) -> Iterator[Pair]:
    i = 0
    for start, end in split_passages(text, [(e.start, e.end) for e in edits], LENGTH):
        while i < len(edits) and edits[i].start < start:
            i += 1
        inside: list[Edit] = []
        while i < len(edits) and edits[i].end <= end:
            inside.append(edits[i])
            i += 1
        source = text[start:end]
        if any(c.isalpha() for c in source) and not any(e.operator.startswith("tag@") for e in inside):
            moved = [replace(e, start=e.start - start, end=e.end - start) for e in inside]
            yield Pair(source, apply_edits(source, moved), tuple((e.start, e.end) for e in moved), number)


def split_pairs(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into training and evaluation pairs by document.

    Args:
        share: share of documents for evaluation, above 0 and below 1; at least one document of two.
        seed: seed of the choice.
    """
    numbers = sorted({pair.document for pair in pairs})
    random.Random(seed).shuffle(numbers)
    out = set(numbers[: max(1, round(share * len(numbers)))] if len(numbers) > 1 else ())
    return [p for p in pairs if p.document not in out], [p for p in pairs if p.document in out]

"""A parallel corpus for models that rewrite: passages of the user's text, and the same with pseudonyms.

The pseudonyms are those of a policy, made by :func:`allonym.pipeline.replace_found`. Each document is a scope of its
own, so that a model learns what a name is replaced with, not who became whom.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from allonym.document import Document, Interval
from allonym.pipeline import detect, replace_found
from allonym.plan import Edit, apply_edits
from allonym.policy import Policy
from allonym.replace.alignment import LENGTH, split_passages


@dataclass(frozen=True, slots=True)
class Pair:
    """A passage before and after.

    Attributes:
        source, target: the texts. Hidden from ``repr``.
        places: of the source, where the two differ.
        document: which document it is of, counted from 0.
    """

    source: str = field(repr=False)
    target: str = field(repr=False)
    places: tuple[Interval, ...]
    document: int = 0


def pairs(
    documents: Iterable[Document],
    policy: Policy,
    key: bytes | str | None,
    *,
    length: int = LENGTH,
    note_texts: Callable[[int], None] = lambda n: None,
) -> Iterator[Pair]:
    """The passages of documents with their pseudonymised forms, in reading order, those without a change too.

    A passage of which a part became a tag is left out: tags are nothing to learn.

    Args:
        documents: the text to learn from.
        policy: what is replaced, by which operators; ``pseudonyms`` is the preset for it.
        key: for keyed operators.
        length: characters of a passage, see :func:`allonym.replace.alignment.split_passages`.
        note_texts: called after each document with how many are done.

    Raises:
        UsageError: the policy needs a key.
    """
    for number, document in enumerate(documents):
        plan = replace_found(
            document, detect(document, policy), policy, key=key, scope=f"parallel corpus {number}"
        ).plan
        yield from _cut(document.text, plan.edits, number, length)
        note_texts(number + 1)


def _cut(text: str, edits: Sequence[Edit], number: int, length: int) -> Iterator[Pair]:
    i = 0
    for start, end in split_passages(text, [(e.start, e.end) for e in edits], length):
        while i < len(edits) and edits[i].start < start:
            i += 1
        inside: list[Edit] = []
        while i < len(edits) and edits[i].end <= end:
            inside.append(edits[i])
            i += 1
        source = text[start:end]
        if any(c.isalpha() for c in source) and not any(e.operator.startswith("tag@") for e in inside):
            moved = [
                Edit(e.start - start, e.end - start, e.replacement, e.label, e.entity, e.operator, e.original)
                for e in inside
            ]
            yield Pair(source, apply_edits(source, moved), tuple((e.start, e.end) for e in moved), number)


def hold_out(pairs_read: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """The pairs to learn from and those to judge by; no document is in both.

    Args:
        share: of the documents that are held out, above 0 and below 1; one at least where there are two.
        seed: another one holds out others.
    """
    numbers = sorted({pair.document for pair in pairs_read})
    random.Random(seed).shuffle(numbers)
    out = set(numbers[: max(1, round(share * len(numbers)))] if len(numbers) > 1 else ())
    return [p for p in pairs_read if p.document not in out], [p for p in pairs_read if p.document in out]

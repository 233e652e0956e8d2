"""From documents to examples: a text or conversation and fields beside it, anonymised together and shaped.

Turns, text and fields share their entities, so ``[PERSON_1]`` in a call is ``[PERSON_1]`` in its summary too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING

from allonym.batch import Failure, Key, format_lead_in, run_records
from allonym.detection.turns import add_turns
from allonym.document import Document, Interval
from allonym.errors import DataError
from allonym.export.shapes import Shape
from allonym.files.fields import find_metadata_value
from allonym.plan import Anonymized, Report
from allonym.policy import Policy

if TYPE_CHECKING:
    from allonym.replace import Keeper

_TEXT = "text"


@dataclass(frozen=True, slots=True)
class Job:
    """How to anonymise and shape every batch. ``before``: the texts are anonymised already."""

    policy: Policy
    shape: Shape
    key: Key = field(default=None, repr=False)
    vault: Keeper | None = field(default=None, repr=False)
    scope: str = ""
    before: bool = False


@dataclass(frozen=True, slots=True)
class Shaped:
    """A document that is in the training set.

    Attributes:
        examples: (task, example as a line of JSON).
        report: what was replaced; empty where the texts were anonymised before.
        texts: before and after, for the sample whose risk is measured.
        unit: documents with the same unit are in one split: the value of the field by which documents are grouped, or
            the text without its replaced intervals, so that texts that become the same stay together.
    """

    examples: tuple[tuple[str, str], ...] = field(repr=False)
    report: Report
    texts: tuple[str, str] = field(repr=False)
    unit: str = field(repr=False)


def make_examples(job: Job, sources: Sequence[tuple[Document, str] | Failure]) -> list[Shaped | Failure]:
    """Anonymise and shape some documents, in order: the function that the workers run.

    Args:
        job: how to do it.
        sources: each document with the value of the field by which documents are grouped.
    """
    prepared = [source if isinstance(source, Failure) else _pair_with_assembled(job, *source) for source in sources]
    documents = [row[1] for row in prepared if not isinstance(row, Failure)]
    results: Iterator[Anonymized | Failure | None] = repeat(None)
    if not job.before:
        results = iter(run_records(documents, job.policy, job.key, vault=job.vault, scope=job.scope))
    return [row if isinstance(row, Failure) else _make_document_examples(job, *row, next(results)) for row in prepared]


def _pair_with_assembled(job: Job, source: Document, group: str) -> tuple[Document, Document, str] | Failure:
    try:
        return source, _assemble_document(source, job.shape.fields, turns=job.shape.turns), group
    except DataError as error:
        return Failure(source.id, 0, str(error))


def _make_document_examples(
    job: Job, source: Document, document: Document, group: str, result: Anonymized | Failure | None
) -> Shaped | Failure:
    """The examples of a document; without a result, it was anonymised before."""
    if isinstance(result, Failure):
        return result
    originals = document.part_texts()
    parts = result.parts if result else originals
    try:
        examples = job.shape.examples(list_speakers(source) if job.shape.turns else (), parts)
    except DataError as error:
        return Failure(document.id, 0, str(error))
    return Shaped(
        examples=tuple((task, json.dumps(example, ensure_ascii=False)) for task, example in examples),
        report=result.report if result else Report(),
        texts=("\n".join(originals) if result else "", "\n".join(parts)),
        unit=group or _remove_intervals(source.text, result.plan.covered_intervals if result else ()),
    )


def _remove_intervals(text: str, covered: Sequence[Interval]) -> str:
    """A text without its replaced intervals, with single blanks."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(interval for interval in covered if interval[0] < len(text)):  # behind it are the fields
        pieces.append(text[position:start])
        position = max(position, end)
    return " ".join("\0".join([*pieces, text[position:]]).split())


def read_field_text(document: Document, name: str) -> str:
    """A field beside the document's text, as text; of a list of strings the first.

    Raises:
        DataError: the document has no such field, or the field is empty or holds no text.
    """
    value = find_metadata_value(document.meta, name)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
        value = value[0]
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if not text.strip():
        raise DataError(f"no text in the field {name!r}")
    return text


def reduce_to_text(document: Document, *, has_named_fields: bool) -> Document:
    """Reduce a document to its turns as a conversation, else to its field ``text``, else to the text of its parts.

    Args:
        document: as :func:`allonym.files.read_documents` reads it.
        has_named_fields: whether the fields that hold its text were named.
    """
    text = document.meta.get(_TEXT)
    if document.turns:
        turns = [(_slice_text(document, turn.speaker), document.text[turn.start : turn.end]) for turn in document.turns]
        return Document.conversation(document.id, turns, document.meta)
    if not has_named_fields and isinstance(text, str):
        document = Document(document.id, text, document.meta)
    elif document.parts:
        document = Document(document.id, document.drop_field_names().text, document.meta)
    return add_turns(document)


def _assemble_document(document: Document, fields: Sequence[str], *, turns: bool) -> Document:
    """The document to anonymise; its parts are the speaker and text of each turn, or the whole text, then the fields.

    Raises:
        DataError: a field is missing, or turns are required and there are none.
    """
    parts: list[Interval] = []
    if turns:
        if not document.turns:
            raise DataError("no turns: lines such as 'Agent: Hello', or a list of turns, are required")
        for turn in document.turns:
            parts += [turn.speaker or (turn.start, turn.start), (turn.start, turn.end)]
    else:
        parts.append((0, len(document.text)))
    text = document.text
    for name in fields:
        value = read_field_text(document, name)
        text += "\n" + format_lead_in(name, value)
        parts.append((len(text), len(text) + len(value)))
        text += value
    return replace(document, text=text, parts=tuple(parts))


def list_speakers(document: Document) -> list[str]:
    """The speaker of each turn, as the source names it; empty where it names none."""
    return [_slice_text(document, turn.speaker) or "" for turn in document.turns]


def _slice_text(document: Document, interval: Interval | None) -> str | None:
    return None if interval is None else document.text[slice(*interval)]

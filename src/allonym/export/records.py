"""The document behind a training example: a text or conversation and fields beside it, anonymised together.

Turns, text and fields share their entities, so ``[PERSON_1]`` in a call is ``[PERSON_1]`` in its summary too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from allonym.batch import format_lead_in
from allonym.detect.turns import with_turns
from allonym.document import Document, Interval
from allonym.errors import DataError
from allonym.files.fields import find_field

_TEXT = "text"


def read_field(document: Document, name: str) -> str:
    """A field beside the document's text, as text; of a list of strings the first.

    Raises:
        DataError: the document has no such field, or the field is empty or holds no text.
    """
    value = find_field(document.meta, name)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
        value = value[0]
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if not text.strip():
        raise DataError(f"no text in the field {name!r}")
    return text


def extract_text(document: Document, *, chosen: bool) -> Document:
    """Reduce a document to its turns as a conversation, else to its field ``text``, else to the text of its parts.

    Args:
        document: as :func:`allonym.files.read_documents` reads it.
        chosen: whether the fields that hold its text were named.
    """
    text = document.meta.get(_TEXT)
    if document.turns:
        turns = [(_cut_text(document, turn.speaker), document.text[turn.start : turn.end]) for turn in document.turns]
        return Document.conversation(document.id, turns, document.meta)
    if not chosen and isinstance(text, str):
        document = Document(document.id, text, document.meta)
    elif document.parts:
        document = Document(document.id, "\n".join(document.part_texts()), document.meta)
    return with_turns(document)


def append_fields(document: Document, fields: Sequence[str], *, turns: bool) -> Document:
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
        value = read_field(document, name)
        text += "\n" + format_lead_in(name, value)
        parts.append((len(text), len(text) + len(value)))
        text += value
    return replace(document, text=text, parts=tuple(parts))


def list_speakers(document: Document) -> list[str]:
    """The speaker of each turn, as the source names it; empty where it names none."""
    return [_cut_text(document, turn.speaker) or "" for turn in document.turns]


def _cut_text(document: Document, interval: Interval | None) -> str | None:
    return None if interval is None else document.text[slice(*interval)]

"""What a training example is made of: a text or conversation, and fields beside it, anonymised as one document.

Turns, text and fields share their entities, so that whoever is ``[PERSON_1]`` in a call is it in the summary too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from allonym.batch import as_words, lead_in
from allonym.detect.turns import with_turns
from allonym.document import Document, Interval
from allonym.errors import DataError

TEXT = "text"


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One document of the source.

    Attributes:
        id: names it in the quarantine file.
        document: text and turns. Hidden, as is all text.
    """

    id: str
    document: Document = field(repr=False)

    def value(self, name: str) -> str:
        """A field beside the text, as text.

        Raises:
            DataError: the record has no such field, or it is empty or no text.
        """
        value = _found(self.document.meta, name)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            value = value[0]
        text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
        if not text.strip():
            raise DataError(f"no text in the field {name!r}")
        return text


def record_of(document: Document, *, chosen: bool) -> Record:
    """A document of a file as a record: its turns as a conversation, else its field ``text``, else all of its text.

    Args:
        document: as :func:`allonym.files.read_documents` gives it.
        chosen: whether the fields that hold its text were named.
    """
    meta, said = document.meta, document.meta.get(TEXT)
    if not document.turns:
        if not chosen and isinstance(said, str):
            document = Document(document.id, said, meta)
        elif document.parts:
            document = Document(document.id, "\n".join(document.part_texts()), meta)
        return Record(document.id, with_turns(document))
    turns = [(_cut(document, turn.speaker), document.text[turn.start : turn.end]) for turn in document.turns]
    return Record(document.id, Document.conversation(document.id, turns, meta))


def assembled(record: Record, fields: Sequence[str], *, turns: bool) -> Document:
    """The document that is anonymised: its parts are the speaker and text of each turn, or the whole text; then the
    fields.

    Raises:
        DataError: a field is missing, or there are no turns.
    """
    base = record.document
    places: list[Interval] = []
    if turns:
        if not base.turns:
            raise DataError("no turns: lines such as 'Agent: Hello', or a list of turns, are required")
        for turn in base.turns:
            places += [turn.speaker or (turn.start, turn.start), (turn.start, turn.end)]
    else:
        places.append((0, len(base.text)))
    pieces = [base.text]
    at = len(base.text)
    for name in fields:
        value = record.value(name)
        lead = "\n" + lead_in(name, value)
        places.append((at + len(lead), at + len(lead) + len(value)))
        pieces += [lead, value]
        at = places[-1][1]
    return replace(base, text="".join(pieces), parts=tuple(places))


def speakers(record: Record) -> list[str]:
    """Who says each turn, as the source has it; empty where it does not say."""
    return [_cut(record.document, turn.speaker) or "" for turn in record.document.turns]


def _cut(document: Document, place: Interval | None) -> str | None:
    return None if place is None else document.text[slice(*place)]


def _found(meta: Mapping[str, object], name: str) -> object:
    value: object = meta.get(name, meta.get(as_words(name).replace(" ", "_")))
    if value is None and "." in name:
        value = meta
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    return value

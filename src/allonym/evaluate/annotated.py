"""Files of annotated conversations, read in P2's notations or with marks beside the text, and written in either
form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from allonym.errors import DataError
from allonym.evaluate.marking import Marked, marks_from, marks_to, read_marks, write_marks
from allonym.evaluate.reading import Fields, read_pairs

_APART = ("text", "marks", "id")


def read_annotated(
    source: str | Path, *, field: Fields = None, format: str | None = None, metadata: str | Path | None = None
) -> tuple[Marked, ...]:
    """Read the conversations of a file or folder with the marks of what was missed in them.

    A record with a list ``marks`` has its marks there (see :func:`allonym.evaluate.marking.marks_from`) and its text
    without tags; any other text is read in P2's notations.

    Args:
        source: a file or folder of any format that allonym reads.
        field, format, metadata: as for :func:`allonym.evaluate.reading.read_pairs`.

    Raises:
        UsageError: no such file, format or field.
        DataError: a file cannot be read, or a mark; the message tells the conversation and the place.
    """
    pairs = read_pairs(source, source, field=field, format=format, metadata=metadata)
    out = []
    for id, text, meta in zip(pairs.ids, pairs.original, pairs.meta, strict=True):
        rows = meta.get("marks")
        if rows is None or rows == "":
            out.append(read_marks(text, id, meta))
        else:
            out.append(Marked(id, text, marks_from(rows, text, id), meta))
    return tuple(out)


def write_annotated_lines(conversations: Iterable[Marked], *, notation: bool = False) -> list[str]:
    """Write a JSON object for each conversation: id, text, metadata, and its marks.

    Args:
        conversations: with their marks.
        notation: P2's notation in the text, for people who edit text; else a list ``marks`` beside it, in which each
            mark says its ``text`` and whether it is ``confirmed``: null until a person makes it true or false.

    Raises:
        DataError: a text cannot be written in the notation.
    """
    out = []
    for conversation in conversations:
        plain = {k: v for k, v in conversation.meta.items() if k not in _APART and isinstance(v, (str, int, float))}
        row: dict[str, object] = {"id": conversation.id}
        if notation:
            row["text"] = write_marks(conversation)
        else:
            row["text"] = conversation.text
            surfaces = [conversation.text[m.start : m.end] for m in conversation.marks]
            row["marks"] = [{**r, "text": t} for r, t in zip(marks_to(conversation.marks), surfaces, strict=True)]
        out.append(json.dumps({**row, **({"meta": plain} if plain else {})}, ensure_ascii=False))
    return out


def list_surfaces(marked: Marked, tags: Sequence[str] | None = None) -> list[str]:
    """List the surfaces of what was missed: each form once, in reading order.

    Args:
        tags: only marks with one of these, without ``MISSED_``; None: all that were not rejected.

    Raises:
        DataError: a mark lies outside of the text.
    """
    if any(m.end > len(marked.text) for m in marked.marks):
        raise DataError(f"{marked.id + ': ' if marked.id else ''}a mark lies outside of the text")
    marks = [m for m in marked.marks if m.confirmed is not False and (tags is None or m.tag in tags)]
    return list(dict.fromkeys(marked.text[m.start : m.end] for m in marks))

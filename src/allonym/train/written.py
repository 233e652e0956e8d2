"""Training texts that were written and marked for allonym, with a language model, of kinds that open corpora lack.

They are chats, notes, minutes, forms, tables, transcripts, letters and prompts. The folder ``written`` holds JSON lines
with an id, a kind and the text. Marks stand inline: ``[P:...]`` a private person, ``[O:...]`` an organisation,
``[L:...]`` a place or an address, ``[X:...]`` one of these three, ``[N:...]`` a number, date or electronic address,
``[M:...]`` what may be a name or none. All other words are ordinary. Of the marks N, dates become D and codes C: the
tagger learns which numbers identify. The rest of them, such as lone small numbers, it does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

SOURCE = "written"
"""The name of the corpus, by which ``labelmap.toml`` says what the marks stand for."""

_DATE = re.compile(
    r"(?i)\d{1,4}(?:[/.-]\d{1,4}){1,2}|(?:.*\W)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d.*"
    r"|\d.*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*"
)
_CODE = re.compile(r"(?=(?:.*\d){2})(?=.*[A-Za-z])[^@]{4,}|(?=.*\d)(?=(?:.*[A-Z]){2})[^@]{5,}|(?:[^@]*\d){4}[^@]*")
_MARK = re.compile(r"\[([POLXNM]):([^\[\]]+)\]")


def read_written_records() -> Iterator[dict[str, Any]]:
    """Yield the texts as records ``{"id", "doc_id", "text", "spans", "meta"}``; the letters of the marks are labels."""
    folder = files("allonym.train").joinpath("written")
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        for line in entry.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            text, spans = parse_marks(row["text"])
            meta = {"source": SOURCE, "kind": row["kind"]}
            yield {"id": row["id"], "doc_id": row["id"], "text": text, "spans": spans, "meta": meta}


def parse_marks(marked: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a text without its marks, and the marks as spans, half-open in code points.

    >>> parse_marks("ask [P:Will]")
    ('ask Will', [{'start': 4, 'end': 8, 'label': 'P', 'text': 'Will'}])
    """
    text, spans, position = "", [], 0
    for mark in _MARK.finditer(marked):
        text += marked[position : mark.start()]
        label = mark[1]
        if label == "N":
            label = "D" if _DATE.fullmatch(mark[2]) else "C" if _CODE.fullmatch(mark[2]) else "N"
        spans.append({"start": len(text), "end": len(text) + len(mark[2]), "label": label, "text": mark[2]})
        text += mark[2]
        position = mark.end()
    return text + marked[position:], spans

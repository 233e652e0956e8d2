"""Marks of what anonymisation has missed, in the notations of P2 (section 4.1, Tables 2 and 3).

P2 writes ``(text)[MISSED_X_PARTIAL]``, ``(text)(MISSED_X)`` and ``(text)([MISSED_X])``; all three are read, also with
blanks before the tag, and the first is written. ``X`` is a type of P2's Table 6 or a label of ours. Brackets inside a
marked text must be paired, and marks do not lie in marks: what cannot be read for certain is an error, never a guess.
Files hold conversations in these notations, or with their marks beside the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.pairs import Fields, prefix_data_errors, read_pairs
from allonym.labels import TAXONOMY, from_scheme, to_scheme

PARTIAL = "_PARTIAL"
"""The end of a tag where only a part of the identifier was missed."""

_PREFIX = "MISSED_"
_TAG = re.compile(r"[ \t]*(?:\(\[MISSED_(\w+)\]\)|\[MISSED_(\w+)\]|\(MISSED_(\w+)\))")
_TAGLIKE = re.compile(r"[\[(]\s*MISSED_")
_PARTS_OF_PERSON = ("PERSON_FIRSTNAME", "PERSON_LASTNAME")
_NO_META: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A span of an anonymised text that should have been replaced. It holds no text.

    Attributes:
        start, end: half-open code points of the text without tags.
        label: of the taxonomy.
        partial: only a part of the identifier was missed.
        item: names what it refers to, where annotators have settled that; marks of one item count once. Hidden from
            ``repr``.
        confirmed: whether a person agrees; None: a proposal that nobody has looked at.
        score: 0 to 1, how sure the reader that proposed it is.
        source: which reader that was.
    """

    start: int
    end: int
    label: str
    partial: bool = False
    item: str = field(default="", repr=False)
    confirmed: bool | None = True
    score: float = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a mark needs 0 <= start < end, got {self.start}..{self.end}")

    @property
    def tag(self) -> str:
        """Its tag without ``MISSED_``, such as ``PERSON_NAME_PARTIAL``."""
        return make_missed_tag(self.label, partial=self.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Marked:
    """An anonymised conversation with marks of what was missed.

    Attributes:
        id: names it in reports.
        text: without tags. Hidden from ``repr``, as is ``meta``.
        marks: sorted and disjoint.
        meta: further facts, such as the context that conversations are grouped by.
    """

    id: str
    text: str
    marks: tuple[Mark, ...] = ()
    meta: Mapping[str, object] = field(default_factory=lambda: _NO_META)

    def __repr__(self) -> str:
        return f"Marked({len(self.text)} characters, {len(self.marks)} marks)"


def make_missed_tag(label: str, *, partial: bool = False) -> str:
    """Return the tag of a label without ``MISSED_``: as in P2's Table 6 where it has the type itself, else our own
    label.

    A given name or a family name alone is a part of a name (P2, 4.2).

    >>> make_missed_tag("PERSON_LASTNAME"), make_missed_tag("US_STATE"), make_missed_tag("CITY")
    ('PERSON_NAME_PARTIAL', 'US_STATE', 'CITY')
    """
    if label in _PARTS_OF_PERSON:
        return "PERSON_NAME" + PARTIAL
    named = to_scheme(label, "p2")
    name = named if named is not None and label in from_scheme(named, "p2") else label
    return name + PARTIAL if partial else name


def parse_missed_tag(tag: str) -> tuple[str, bool]:
    """Return the label of a tag without ``MISSED_``, and whether the tag ends in ``_PARTIAL``.

    >>> parse_missed_tag("ORGANIZATION_NAME_SPEAKER"), parse_missed_tag("EMAIL_PARTIAL")
    (('ORGANIZATION_SPEAKER', False), ('EMAIL_ADDRESS', True))

    Raises:
        UnknownNameError: no such type.
    """
    name, partial = tag.removesuffix(PARTIAL), tag.endswith(PARTIAL)
    labels = from_scheme(name, "p2")
    if labels:
        return labels[0], partial
    if name in TAXONOMY:
        return name, partial
    names = [p2 for label in TAXONOMY for p2 in label.names.get("p2", ())]
    raise UnknownNameError("type of missed text", name, {*names, *(label.name for label in TAXONOMY)})


def read_marks(text: str, where: str = "", meta: Mapping[str, object] = _NO_META) -> Marked:
    """Read a conversation from its annotated text.

    >>> read_marks("this is (Green)[MISSED_PERSON_NAME_PARTIAL] speaking").marks
    (Mark(start=8, end=13, label='PERSON', partial=True, confirmed=True, score=1.0, source=''),)

    Args:
        text: in any of the notations, also mixed.
        where: the conversation's id; errors begin with it.
        meta: what else is known of it.

    Raises:
        DataError: a tag without a bracketed text before it, brackets that are not paired, a mark in a mark, an empty
            mark, a type that is not known. The message tells the place, never the text.
    """
    marks: list[Mark] = []
    pieces: list[str] = []
    length = position = 0
    with prefix_data_errors(where):
        for tag in _TAG.finditer(text):
            begin = _locate_bracket_before_tag(text, tag.start(), position)
            label, partial = _parse_written_tag(tag[1] or tag[2] or tag[3], _describe_place(text, tag.start()))
            before, inside = text[position:begin], text[begin + 1 : tag.start() - 1]
            if not inside.strip():
                place = _describe_place(text, begin)
                raise DataError(f"{place}: text is required between the brackets of a mark, got none")
            pieces += (before, inside)
            start = length + len(before)
            length = start + len(inside)
            marks.append(Mark(start, length, label, partial))
            position = tag.end()
        _refuse_broken_tags(text)
    return Marked(where, "".join((*pieces, text[position:])), tuple(marks), meta)


def write_marks(marked: Marked) -> str:
    """Write the text with its marks as ``(text)[MISSED_X]``; :func:`read_marks` reads the same text and marks again.

    What a person has rejected is not written. Whether a mark is confirmed, its score and its item cannot be said in
    this notation: JSON Lines hold them.

    Raises:
        DataError: the text holds tags already, or a marked text holds brackets that are not paired: this notation
            cannot say that.
    """
    text, position = marked.text, 0
    pieces: list[str] = []
    with prefix_data_errors(marked.id):
        if (match := _TAGLIKE.search(text)) is not None:
            raise DataError(f"{_describe_place(text, match.start())}: the text holds a MISSED_ tag already")
        for mark in sorted(mark for mark in marked.marks if mark.confirmed is not False):
            if mark.start < position or mark.end > len(text):
                raise DataError(f"{_describe_place(text, position)}: marks must be disjoint and lie in the text")
            inside = text[mark.start : mark.end]
            if not inside.strip() or not _are_parentheses_paired(inside):
                raise DataError(
                    f"{_describe_place(text, mark.start)}: text with paired brackets is required in a mark; "
                    "JSON Lines take any"
                )
            pieces += (text[position : mark.start], f"({inside})[{_PREFIX}{mark.tag}]")
            position = mark.end
    return "".join((*pieces, text[position:]))


def parse_mark_rows(rows: object, text: str, where: str = "") -> tuple[Mark, ...]:
    """Read marks from the plain values of a record: a list of objects with ``start``, ``end``, ``tag`` (or ``label``),
    and optionally ``item``, ``confirmed`` (true, false, null), ``score`` and ``source``.

    Raises:
        DataError: something else, offsets outside of the text, overlapping marks, a type that is not known.
    """
    with prefix_data_errors(where):
        if not isinstance(rows, (list, tuple)):
            raise DataError(f"marks must be a list, got {type(rows).__name__}")
        out = sorted(_read_mark(row, f"marks[{number}]", len(text)) for number, row in enumerate(rows))
        for first, second in pairwise(out):
            if second.start < first.end:
                raise DataError(
                    f"marks must be disjoint, got {first.start}..{first.end} and {second.start}..{second.end}"
                )
    return tuple(out)


def _read_mark(row: object, where: str, text_length: int) -> Mark:
    """Read the mark of a row at ``where`` in a text of this length."""
    if not isinstance(row, Mapping):
        raise DataError(f"{where} must be an object, got {type(row).__name__}")
    start, end, name = row.get("start"), row.get("end"), row.get("tag", row.get("label"))
    if type(start) is not int or type(end) is not int or not isinstance(name, str):
        raise DataError(f"{where}: start and end as numbers and tag as a string are required")
    if not 0 <= start < end <= text_length:
        raise DataError(f"{where}: 0 <= start < end <= {text_length} is required, got {start} and {end}")
    confirmed, score = row.get("confirmed", True), row.get("score", 1.0)
    if confirmed not in (True, False, None) or not isinstance(score, (int, float)):
        raise DataError(f"{where}: confirmed must be true, false or null, and score a number")
    label, partial = _parse_written_tag(name.removeprefix(_PREFIX), where)
    item, source = (str(row.get(key) or "") for key in ("item", "source"))
    return Mark(start, end, label, partial, item, confirmed, float(score), source)


def _parse_written_tag(name: str, place: str) -> tuple[str, bool]:
    """Return label and part of a tag as :func:`parse_missed_tag`; one in small letters may be text: it is not shown."""
    try:
        return parse_missed_tag(name)
    except UnknownNameError as error:
        shown = re.fullmatch(r"[A-Z][A-Z0-9_]{0,40}", name)
        reason = error if shown else "unknown type of missed text; see: allonym labels --scheme p2"
        raise DataError(f"{place}: {reason}") from None


def list_mark_rows(marks: Sequence[Mark]) -> list[dict[str, object]]:
    """Return plain values that :func:`parse_mark_rows` reads."""
    out = []
    for mark in marks:
        row: dict[str, object] = {"start": mark.start, "end": mark.end, "tag": mark.tag, "confirmed": mark.confirmed}
        row |= {"item": mark.item} if mark.item else {}
        row |= {"score": round(mark.score, 4), "source": mark.source} if mark.source else {}
        out.append(row)
    return out


def _locate_bracket_before_tag(text: str, tag_start: int, last_mark_end: int) -> int:
    """Return the offset of the bracket that closes right before the tag at ``tag_start``, not before
    ``last_mark_end``."""
    if text[max(last_mark_end, tag_start - 1) : tag_start] != ")":
        raise DataError(
            f"{_describe_place(text, tag_start)}: a tag stands behind (text) in brackets; there is none before it"
        )
    depth = 0
    for index in range(tag_start - 1, -1, -1):
        depth += (text[index] == ")") - (text[index] == "(")
        if not depth:
            if index < last_mark_end:
                raise DataError(f"{_describe_place(text, index)}: a mark must not hold another mark")
            return index
    raise DataError(f"{_describe_place(text, tag_start - 1)}: a bracket is closed that was not opened")


def _refuse_broken_tags(text: str) -> None:
    """Raise an error where something begins like a tag and is none."""
    tag_ends = {tag.end() for tag in _TAG.finditer(text)}
    for start in (tag.start() for tag in _TAGLIKE.finditer(text)):
        tag = _TAG.match(text, start - 1 if text[start - 1 : start] == "(" and start else start)
        if tag is None or tag.end() not in tag_ends:
            raise DataError(
                f"{_describe_place(text, start)}: a tag as [MISSED_X] is required, got one that is not closed"
            )


def _are_parentheses_paired(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def _describe_place(text: str, offset: int) -> str:
    line = text.count("\n", 0, offset) + 1
    return f"character {offset}, line {line}"


_APART = ("text", "marks", "id")


def read_annotated(
    source: str | Path, *, field: Fields = None, format: str | None = None, metadata: str | Path | None = None
) -> tuple[Marked, ...]:
    """Read the conversations of a file or folder with the marks of what was missed in them.

    A record with a list ``marks`` has its marks there (see :func:`parse_mark_rows`) and its text without tags; any
    other text is read in P2's notations.

    Args:
        source: a file or folder of any format that allonym reads.
        field, format, metadata: as for :func:`allonym.evaluate.pairs.read_pairs`.

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
            out.append(Marked(id, text, parse_mark_rows(rows, text, id), meta))
    return tuple(out)


def list_annotated_lines(conversations: Iterable[Marked], *, in_text: bool = False) -> list[str]:
    """Write a JSON object for each conversation: id, text, metadata, and its marks.

    Args:
        conversations: with their marks.
        in_text: P2's notation in the text, for people who edit text; else a list ``marks`` beside it, in which each
            mark says its ``text`` and whether it is ``confirmed``: null until a person makes it true or false.

    Raises:
        DataError: a text cannot be written in the notation.
    """
    out = []
    for conversation in conversations:
        plain = {k: v for k, v in conversation.meta.items() if k not in _APART and isinstance(v, (str, int, float))}
        row: dict[str, object] = {"id": conversation.id}
        if in_text:
            row["text"] = write_marks(conversation)
        else:
            row["text"] = conversation.text
            surfaces = [conversation.text[m.start : m.end] for m in conversation.marks]
            row["marks"] = [{**r, "text": t} for r, t in zip(list_mark_rows(conversation.marks), surfaces, strict=True)]
        out.append(json.dumps({**row, **({"meta": plain} if plain else {})}, ensure_ascii=False))
    return out


def list_missed_surfaces(marked: Marked) -> list[str]:
    """List the surfaces of what was missed: each form once, in reading order.

    Raises:
        DataError: a mark lies outside of the text.
    """
    check_marks_in_text(marked, marked.marks)
    marks = [m for m in marked.marks if m.confirmed is not False]
    return list(dict.fromkeys(marked.text[m.start : m.end] for m in marks))


def check_marks_in_text(marked: Marked, marks: Iterable[Mark]) -> None:
    """Check that some marks of a conversation lie in its text.

    Raises:
        DataError: one does not.
    """
    with prefix_data_errors(marked.id):
        if any(mark.end > len(marked.text) for mark in marks):
            raise DataError("a mark lies outside of the text")

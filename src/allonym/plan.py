"""The plan: what will be put where. Dry run, review, vault, audit and cluster workers all share it.

A plan is bound to a keyless digest of its text and refuses any other. It may hold the originals in memory, so that it
can undo itself; they show in no ``repr`` and are written only when a caller asks for them by name.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from allonym.document import Document
from allonym.errors import PlanMismatch

SCHEMA = 1


def digest(text: str) -> str:
    """A 128-bit BLAKE2b digest of a text, as 32 hexadecimal digits. Lone surrogates are allowed."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement.

    Attributes:
        start, end: half-open code points of the original text; where they are equal, text is inserted.
        replacement: what stands there afterwards.
        label: the label of the entity.
        entity: the entity's number within the document, in reading order, from 1; 0: belongs to none.
        operator: name and version, e.g. ``tag@1``.
        original: what stood there; hidden from ``repr`` and left out of files unless asked for.
    """

    start: int
    end: int
    replacement: str = field(repr=False)
    label: str
    entity: int = 0
    operator: str = ""
    original: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """Sorted, disjoint edits, bound to the text they were made for.

    Attributes:
        digest: of the original text, see :func:`digest`.
        edits: sorted by start, disjoint.
        notes: remarks for a reader, e.g. names whose referent stayed ambiguous; hold no text of the document.
        result: digest of the text that the plan makes.
    """

    digest: str
    edits: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()
    result: str = ""

    def __post_init__(self) -> None:
        end = 0
        for edit in self.edits:
            if edit.start < end or edit.end < edit.start:
                raise PlanMismatch(f"edits must be sorted and disjoint; the one at {edit.start} is not")
            end = edit.end

    def to_dict(self, *, originals: bool = False) -> dict[str, object]:
        """A plain dictionary for JSON. With ``originals`` it holds what was replaced: keep it as safe as the source."""
        edits: list[dict[str, object]] = []
        for e in self.edits:
            row: dict[str, object] = {
                "start": e.start,
                "end": e.end,
                "replacement": e.replacement,
                "label": e.label,
                "entity": e.entity,
                "operator": e.operator,
            }
            if originals:
                row["original"] = e.original
            edits.append(row)
        return {
            "schema": SCHEMA,
            "digest": self.digest,
            "result": self.result,
            "edits": edits,
            "notes": list(self.notes),
        }

    def to_json(self, *, originals: bool = False) -> str:
        """:meth:`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(originals=originals), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Plan:
        """The plan that :meth:`to_dict` wrote. Raises :class:`PlanMismatch` where it is not one."""
        try:
            if data["schema"] != SCHEMA:
                raise PlanMismatch(f"this plan has schema {data['schema']!r}; {SCHEMA} is required")
            rows = data["edits"]
            assert isinstance(rows, list)
            edits = tuple(
                Edit(
                    int(r["start"]),
                    int(r["end"]),
                    str(r["replacement"]),
                    str(r["label"]),
                    int(r["entity"]),
                    str(r["operator"]),
                    r.get("original"),
                )
                for r in rows
            )
            notes = data.get("notes", [])
            assert isinstance(notes, list)
            return cls(str(data["digest"]), edits, tuple(str(n) for n in notes), str(data.get("result", "")))
        except PlanMismatch:
            raise
        except (KeyError, TypeError, ValueError, AssertionError, AttributeError) as error:
            raise PlanMismatch(f"this is not a plan: {type(error).__name__} while reading it") from None


def replaced(text: str, edits: Iterable[Edit]) -> str:
    """As :func:`apply`, without the digest check; ``edits`` are sorted and disjoint."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += (text[at : edit.start], edit.replacement)
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)


def _check(text: str, plan: Plan) -> None:
    if digest(text) != plan.digest:
        raise PlanMismatch("this plan was made for another text")
    if plan.edits and plan.edits[-1].end > len(text):
        raise PlanMismatch("this plan reaches past the end of its text")


def apply(document: Document | str, plan: Plan) -> str:
    """The text with the plan's edits made. Nothing outside the edits changes; another text is refused.

    Raises:
        PlanMismatch: the text is not the one that the plan was made for.
    """
    text = document if isinstance(document, str) else document.text
    _check(text, plan)
    return replaced(text, plan.edits)


def apply_parts(document: Document, plan: Plan) -> tuple[str, ...]:
    """The document's parts after the plan's edits. An edit over several parts puts its text into the first of them.

    Raises:
        PlanMismatch: the text is not the one that the plan was made for.
    """
    text = document.text
    _check(text, plan)
    return tuple(parts_after(text, document.parts or ((0, len(text)),), plan.edits))


def parts_after(text: str, parts: Sequence[tuple[int, int]], edits: Sequence[Edit]) -> list[str]:
    """As :func:`apply_parts`, without the digest check; ``parts`` and ``edits`` are sorted and disjoint."""
    out: list[str] = []
    ends = [e.end for e in edits]
    written = -1  # index of the last edit whose replacement stands already
    for a, b in parts:
        pieces: list[str] = []
        at = a
        i = bisect_left(ends, a)
        while i < len(edits) and (edits[i].start < b or (edits[i].start == edits[i].end == b)):
            edit = edits[i]
            if edit.end > a or edit.start >= a:
                pieces.append(text[at : max(at, edit.start)])
                if i > written and (edit.end > a or edit.start == edit.end):
                    pieces.append(edit.replacement)
                    written = i
                at = max(at, min(edit.end, b))
            i += 1
        pieces.append(text[at:b])
        out.append("".join(pieces))
    return out


def invert(text: str, plan: Plan) -> str | None:
    """The original text, where ``text`` is exactly what the plan made and the plan holds the originals; else None."""
    if any(e.original is None for e in plan.edits) or digest(text) != plan.result:
        return None
    pieces: list[str] = []
    at = shift = 0
    for e in plan.edits:
        start = e.start + shift
        assert e.original is not None
        pieces += (text[at:start], e.original)
        at = start + len(e.replacement)
        shift += len(e.replacement) - (e.end - e.start)
    pieces.append(text[at:])
    original = "".join(pieces)
    return original if digest(original) == plan.digest else None

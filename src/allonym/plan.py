"""The plan of a document's edits, and the result of making them. Every part of allonym shares these two types.

A plan is bound to a keyless digest of its text and refuses any other. It may hold the originals in memory, so that it
can undo itself; they show in no ``repr`` and are written only when a caller asks for them by name.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path

from allonym.document import Document, Interval, Span
from allonym.errors import PlanMismatch, hide_foreign_errors
from allonym.serial import Serialisable
from allonym.text.words import COMPOUND

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
        digest: of the original text, see :func:`digest`; empty: a person was erased from the plan, so that nobody can
            try names with it.
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

    @property
    def covered_intervals(self) -> tuple[Interval, ...]:
        """The intervals of the original text that are replaced, as half-open code points; insertions cover nothing."""
        return tuple((edit.start, edit.end) for edit in self.edits if edit.start < edit.end)

    def to_dict(self, *, originals: bool = False) -> dict[str, object]:
        """A plain dictionary for JSON. With ``originals`` it holds the replaced text: keep it as safe as the source."""
        names = [name for name in _EDIT_FIELDS if originals or name != "original"]
        edits = [{name: getattr(edit, name) for name in names} for edit in self.edits]
        notes = list(self.notes)
        return {"schema": SCHEMA, "digest": self.digest, "result": self.result, "edits": edits, "notes": notes}

    def to_json(self, *, originals: bool = False) -> str:
        """:meth:`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(originals=originals), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Plan:
        """Read the plan that :meth:`to_dict` wrote.

        Raises:
            PlanMismatch: the data is not a plan, or one of another schema.
        """
        kinds = (KeyError, TypeError, ValueError, AssertionError, AttributeError)
        with hide_foreign_errors("this is not a plan", *kinds, error=PlanMismatch):
            if data["schema"] != SCHEMA:
                raise PlanMismatch(f"this plan has schema {data['schema']!r}; {SCHEMA} is required")
            rows, notes = data["edits"], data.get("notes", [])
            assert isinstance(rows, list) and isinstance(notes, list)
            edits = tuple(_read_edit(row) for row in rows)
            return cls(str(data["digest"]), edits, tuple(str(note) for note in notes), str(data.get("result", "")))


_EDIT_FIELDS = tuple(field.name for field in fields(Edit))
_EDIT_TYPES: Mapping[str, type] = {"start": int, "end": int, "entity": int}


def _read_edit(row: Mapping[str, str | int]) -> Edit:
    values = {name: _EDIT_TYPES.get(name, str)(row[name]) for name in _EDIT_FIELDS if name != "original"}
    return Edit(**values, original=row.get("original"))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Report(Mapping[str, object]):
    """Counts of what was replaced in a document; they can be added up and hold no text. Readable like a mapping.

    Attributes:
        characters: length of the original text in code points.
        entities: how many referents were linked.
        mentions: how many mentions they have.
        labels: how many mentions each label has, without labels that the policy keeps.
        operators: how many edits each operator made.
        offline: how many entities got an offline pseudonym because a model had no usable value for them.
        unread: characters of the passages in which names were not looked for, by the ISO 639 code of their language.
        languages: the same of all passages that are not English; cells that are numbers, categories or one identifier
            each are no passages.
    """

    characters: int = 0
    entities: int = 0
    mentions: int = 0
    labels: Mapping[str, int] = field(default_factory=dict)
    operators: Mapping[str, int] = field(default_factory=dict)
    offline: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> object:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


@dataclass(frozen=True, slots=True, repr=False)
class Anonymized:
    """One anonymised document.

    Attributes:
        text: the anonymised text.
        parts: the document's parts after the edits; the whole text where it has none.
        plan: the edits that were made; it holds the originals in memory.
        report: counts without any text, see :class:`~allonym.plan.Report`.
        id: the document's id.
        spans: the findings in the original text, disjoint.
    """

    text: str
    parts: tuple[str, ...]
    plan: Plan
    report: Report
    id: str = ""
    spans: tuple[Span, ...] = ()

    def __repr__(self) -> str:
        return f"Anonymized({len(self.text)} characters, {len(self.plan.edits)} edits)"


class ReaderScore(Serialisable):
    """How much the replacements of a text disturb its reader, counted without knowing what identifies. Scores add up.

    Attributes:
        words: words of the original text.
        replaced: places that were replaced.
        touching: places that follow another in the same line with nothing but blanks between.
        lower_case: replaced words of small letters only: most are ordinary words.
        repeated: surfaces, ignoring case, that were replaced at several places of a document.
        split: those of them with several replacements: the same person is two, or a name has two labels.
    """

    DERIVED = ("replaced_per_100", "lower_case_per_100")

    words: int = 0
    replaced: int = 0
    touching: int = 0
    lower_case: int = 0
    repeated: int = 0
    split: int = 0

    def __add__(self, other: ReaderScore) -> ReaderScore:
        return ReaderScore(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def replaced_per_100(self) -> float:
        """Places replaced per 100 words; 0 without words."""
        return 100 * self.replaced / self.words if self.words else 0.0

    @property
    def lower_case_per_100(self) -> float:
        """Words of small letters replaced per 100 words; 0 without words."""
        return 100 * self.lower_case / self.words if self.words else 0.0

    def to_text(self) -> str:
        """Return the score as one line; what is zero is left out."""
        small = f" and {self.lower_case_per_100:.1f} replaced words in small letters" if self.lower_case else ""
        parts = [f"{self.replaced_per_100:.1f} replacements{small} per 100 words"]
        if self.touching:
            parts.append(f"{self.touching:,} directly behind another")
        if self.split:
            parts.append(f"{self.split:,} of {self.repeated:,} repeated names or values have several replacements")
        return f"readability: {'; '.join(parts)}"


def measure_reader_score(text: str, edits: Iterable[Edit]) -> ReaderScore:
    """Measure the :class:`ReaderScore` of a document from its original text and its sorted, disjoint edits.

    Insertions and edits that keep the text count for nothing.
    """
    touching = lower_case = replaced = 0
    end = -1
    replacements: defaultdict[str, list[str]] = defaultdict(list)
    for edit in edits:
        surface = text[edit.start : edit.end]
        if not surface or surface == edit.replacement:
            continue
        replaced += 1
        touching += end >= 0 and not text[end : edit.start].strip(" \t\u00a0")
        end = edit.end
        lower_case += sum(map(_is_lower_case_word, surface.split()))
        replacements[" ".join(surface.casefold().split())].append(edit.replacement.casefold())
    repeated = [values for values in replacements.values() if len(values) > 1]
    split = sum(len(set(values)) > 1 for values in repeated)
    return ReaderScore(len(COMPOUND.findall(text)), replaced, touching, lower_case, len(repeated), split)


def _is_lower_case_word(token: str) -> bool:
    word = COMPOUND.fullmatch(token.strip(".,;:!?()[]\"'“”‘’"))
    return word is not None and word[0].islower() and not any(map(str.isdigit, word[0]))


def read_plan_rows(text: str, where: str | Path) -> list[tuple[Mapping[str, object], Plan]]:
    """Read a file of plans, one a line: bare plans, or rows of ``allonym anonymize --plans``.

    Args:
        text: the content of the file.
        where: its name, for messages.

    Returns:
        Each plan after the row that holds it; a bare plan is its own row.

    Raises:
        PlanMismatch: a line is not a plan. The message says which line and quotes nothing.
    """
    rows: list[tuple[Mapping[str, object], Plan]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            data = row.get("plan", row)
            rows.append((row, Plan.from_dict(json.loads(data) if isinstance(data, str) else data)))
        except (ValueError, AttributeError, RecursionError):
            raise PlanMismatch(f"{where}:{number}: not a plan") from None
    return rows


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """As :func:`apply`, without the digest check; ``edits`` are sorted and disjoint."""
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += (text[position : edit.start], edit.replacement)
        position = edit.end
    pieces.append(text[position:])
    return "".join(pieces)


def _check_plan_fits_text(text: str, plan: Plan) -> None:
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
    _check_plan_fits_text(text, plan)
    return apply_edits(text, plan.edits)


def apply_parts(document: Document, plan: Plan) -> tuple[str, ...]:
    """The document's parts after the plan's edits. An edit over several parts puts its text into the first of them.

    Raises:
        PlanMismatch: the text is not the one that the plan was made for.
    """
    text = document.text
    _check_plan_fits_text(text, plan)
    return tuple(apply_edits_to_parts(text, document.parts or ((0, len(text)),), plan.edits))


def apply_edits_to_parts(text: str, parts: Sequence[tuple[int, int]], edits: Sequence[Edit]) -> list[str]:
    """As :func:`apply_parts`, without the digest check; ``parts`` and ``edits`` are sorted and disjoint."""
    out: list[str] = []
    ends = [e.end for e in edits]
    written = -1  # index of the last edit whose replacement stands already
    for a, b in parts:
        pieces: list[str] = []
        position = a
        i = bisect_left(ends, a)
        while i < len(edits) and (edits[i].start < b or (edits[i].start == edits[i].end == b)):
            edit = edits[i]
            if edit.end > a or edit.start >= a:
                pieces.append(text[position : max(position, edit.start)])
                if i > written and (edit.end > a or edit.start == edit.end):
                    pieces.append(edit.replacement)
                    written = i
                position = max(position, min(edit.end, b))
            i += 1
        pieces.append(text[position:b])
        out.append("".join(pieces))
    return out


def locate_replacements(edits: Sequence[Edit]) -> list[tuple[int, int, Edit]]:
    """Return the start and end of each edit's replacement in the text that sorted edits make."""
    out: list[tuple[int, int, Edit]] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        shift += len(edit.replacement) - (edit.end - edit.start)
        out.append((start, edit.end + shift, edit))
    return out


def invert_plan(text: str, plan: Plan) -> str | None:
    """The original text, where ``text`` is exactly what the plan made and the plan holds the originals; else None."""
    if any(e.original is None for e in plan.edits) or digest(text) != plan.result:
        return None
    replacements = locate_replacements(plan.edits)
    inverse = [Edit(start, end, edit.original or "", edit.label) for start, end, edit in replacements]
    original = apply_edits(text, inverse)
    return original if plan.digest in ("", digest(original)) else None


def drop_edits(plan: Plan, is_dropped: Callable[[Edit], bool]) -> Plan:
    """Return a plan without some edits, for the text in which these are made already; the output stays the same.

    So it restores all but what the edits replaced. Digest and notes go, since they tell of the text before.
    """
    edits: list[Edit] = []
    shift = 0
    for edit in plan.edits:
        if is_dropped(edit):
            shift += len(edit.replacement) - (edit.end - edit.start)
        else:
            edits.append(replace(edit, start=edit.start + shift, end=edit.end + shift))
    return Plan("", tuple(edits), (), plan.result)

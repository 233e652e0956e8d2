"""Who may say what when about a document: two reviewers, blind to each other until both are done, and a verdict.

Whoever saves names the version that they read; if another one is stored, nothing is saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allonym.document import Document, Span
from allonym.errors import RequestError
from allonym.plan import Edit
from allonym.project.readings import Reading, apply_reading, is_same_reading
from allonym.project.risks import Risk
from allonym.train.records import Mark

NEW, OPEN, DISAGREEMENT, DONE = "new", "in_review", "disagreement", "done"
STATES = (NEW, OPEN, DISAGREEMENT, DONE)
VERDICT_SEAT, SEATS = 0, (1, 2)


@dataclass(frozen=True, slots=True, repr=False)
class ReviewDocument:
    """A document under review, with its texts. Hidden from ``repr``.

    Attributes:
        id: its owner's name for it.
        document: the original.
        anonymised: the text after the edits.
        edits: of the plan.
        spans: the findings.
        labels: the tagger's labels that were looked for.
        risk: by the second reading; None where it was not made.
        state: one of ``STATES``.
    """

    id: str
    document: Document
    anonymised: str
    edits: tuple[Edit, ...]
    spans: tuple[Span, ...]
    labels: tuple[str, ...]
    risk: Risk | None
    state: str = NEW


@dataclass(frozen=True, slots=True)
class UserReading:
    """A reading, its reader (the user's number or name, and the name), its version (0: none yet), and whether the
    reader is done."""

    seat: int
    user: int | str
    reader: str
    version: int
    done: bool
    reading: Reading = field(repr=False)

    def to_row(self) -> list[Any]:
        """Return plain values for JSON, without the seat."""
        return [self.user, self.reader, self.version, self.done, self.reading.to_dict()]

    @classmethod
    def from_row(cls, seat: int, row: Sequence[Any]) -> UserReading:
        """Read what :meth:`to_row` returned."""
        user, reader, version, is_done, reading = row
        return cls(seat, user, reader, version, is_done, Reading.from_dict(reading))


def find_reviewer_seat(readings: Mapping[int, UserReading], user: int | str) -> int | None:
    """Return the seat of a user's own reading, 1 or 2; None where there is none."""
    return next((s for s in SEATS if s in readings and readings[s].user == user), None)


def select_visible_readings(readings: Mapping[int, UserReading], reviewer: int | str) -> dict[int, UserReading]:
    """Return what a reviewer may know of a document's readings: until both are done, the own ones; empty: all."""
    is_open = reviewer == "" or are_both_reviewers_done(readings)
    return {n: reading for n, reading in readings.items() if is_open or reading.user == reviewer}


def choose_seat(readings: Mapping[int, UserReading], user: int | str, is_verdict: bool) -> int:
    """Return the seat under which a reading is stored: 0 for a verdict, else the reviewer's, 1 or 2.

    Raises:
        RequestError: two others review the document (409).
    """
    if is_verdict:
        return VERDICT_SEAT
    mine = find_reviewer_seat(readings, user)
    free = next((s for s in SEATS if s not in readings), None)
    if mine is None and free is None:
        raise RequestError("two others review this document already", 409, "Taken")
    return mine or free or 0


def check_may_save(state: str, readings: Mapping[int, UserReading], is_verdict: bool) -> None:
    """Check that a reviewer, or whoever gives a verdict, may save a reading now.

    Raises:
        RequestError: a verdict comes before both are done, or the reading after it, or the document is settled (409).
    """
    both_done = are_both_reviewers_done(readings)
    if is_verdict and not both_done:
        raise RequestError("both reviewers must be done before somebody decides", 409, "NotYet")
    if is_verdict and state == DONE:
        raise RequestError("this document is settled", 409, "Settled")
    if not is_verdict and both_done:
        raise RequestError("both reviewers are done; now somebody who may adjudicate decides", 409, "Settled")


def check_version(version_read: int, stored: int) -> None:
    """Check that the stored reading is the one that somebody began from.

    Raises:
        RequestError: it is not (409).
    """
    if stored != version_read:
        raise RequestError(
            f"version {version_read} was read, but {stored} is stored now; read it again, nothing was changed",
            409,
            "Stale",
        )


def are_both_reviewers_done(readings: Mapping[int, UserReading]) -> bool:
    """Tell whether both reviewers have nothing to add."""
    return all(s in readings and readings[s].done for s in SEATS)


def decide_state(item: ReviewDocument, readings: Mapping[int, UserReading]) -> str:
    """Return the state of a document that somebody has begun to review."""
    if not are_both_reviewers_done(readings):
        return OPEN
    verdict = readings.get(VERDICT_SEAT)
    if verdict is not None and verdict.done:
        return DONE
    first, second = (readings[s].reading for s in SEATS)
    return DONE if is_same_reading(first, second, item.document.text, item.spans) else DISAGREEMENT


Reviewed = tuple[ReviewDocument, Mapping[int, UserReading]]


def get_settled_reading(item: ReviewDocument, seats: Mapping[int, UserReading]) -> Reading | None:
    """Return the reading that holds for a settled document: the verdict, else that of both; None before."""
    if item.state != DONE:
        return None
    verdict = seats.get(VERDICT_SEAT)
    return verdict.reading if verdict is not None and verdict.done else seats[SEATS[0]].reading


def list_settled_readings(
    reviewed: Sequence[Reviewed],
) -> Iterator[tuple[ReviewDocument, Mapping[int, UserReading], Reading]]:
    """Yield the settled documents with all readings, and the one that holds."""
    for item, seats in reviewed:
        reading = get_settled_reading(item, seats)
        if reading is not None:
            yield item, seats, reading


def format_settled_training_lines(project: str, reviewed: Sequence[Reviewed]) -> Iterator[str]:
    """Yield the settled documents as JSON lines for ``allonym train ner``. They hold the originals.

    ``meta.labels`` are the labels that were looked for: only for them is an unmarked stretch evidence. ``annotations``
    hold the two readings, so that ``allonym evaluate detection`` can count with both.
    """
    for item, seats, reading in list_settled_readings(reviewed):
        is_verdict = VERDICT_SEAT in seats and seats[VERDICT_SEAT].done
        settled = "adjudicated" if is_verdict else "agreed"
        record = {
            "id": item.id,
            "doc_id": item.id,
            "text": item.document.text,
            "spans": describe_reading_spans(item, reading),
            "meta": {"source": "reviews", "project": project, "settled": settled, "labels": list(item.labels)},
            "annotations": {f"reviewer {n}": describe_reading_spans(item, seats[n].reading) for n in SEATS},
        }
        yield json.dumps(record) + "\n"


def describe_reading_spans(item: ReviewDocument, reading: Reading) -> list[Mark]:
    """Return what identifies in a document by a reading, as the spans of a record. They hold the originals."""
    text = item.document.text
    return [
        {"start": s.start, "end": s.end, "label": s.label, "text": text[s.start : s.end]}
        for s in apply_reading(reading, text, item.spans)
    ]

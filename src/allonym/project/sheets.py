"""Review sheets: what a reviewer reads and fills in without a server, as CSV for a spreadsheet or as JSON lines.

A document has a row for each passage and each finding. The reviewer fills the column ``verdict``: a blank one says that
nobody looked at the row. A passage gets ``ok`` (or any word), and in ``missed`` what should have been replaced, as
``blind piano tuner=OCCUPATION; Leeds=CITY``. A finding gets ``ok``, ``no``, or the label that it should have.
Sheets hold originals.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allonym.document import Interval
from allonym.errors import DataError, UsageError
from allonym.labels import TAXONOMY
from allonym.partfile import write_file
from allonym.plan import Edit
from allonym.project.project import Project
from allonym.project.readings import FindingDecision, LeakMark, Reading, make_checked_reading
from allonym.project.seats import DISAGREEMENT, DONE, SEATS, ReviewDocument, UserReading, find_reviewer_seat
from allonym.vault.plans import split_into_pieces

COLUMNS = ("document", "row", "start", "end", "text", "becomes", "look at", "verdict", "missed", "readers")
PASSAGE, FINDING = "passage", "finding"
ACCEPT, REJECT = "ok", "no"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MOST_FIELD = 1 << 24


def write_sheet(
    project: Project, path: str | Path, reviewer: str, *, is_verdict: bool = False, drawn: int | None = None
) -> int:
    """Write the sheet of a reviewer, or of who decides where two disagree, readable by its owner alone.

    Documents come the riskiest first. What the reviewer said before is filled in; of other reviewers nothing is shown,
    but to who decides.

    Args:
        project: with documents.
        path: a ``.csv`` or ``.jsonl`` file, replaced if it exists.
        reviewer: the reader's name.
        is_verdict: whether it is for the documents in disagreement.
        drawn: only so many documents, drawn at random and the same for every reviewer: what they say of these proves
            something about all, see :meth:`Project.make_promise`.

    Returns:
        How many documents are in it.

    Raises:
        UsageError: the path has another suffix, or there is nothing to review.
    """
    rows: list[dict[str, Any]] = []
    count = 0
    for item, seats in project.list_documents(order="risk" if drawn is None else "drawn")[:drawn]:
        if item.state != DISAGREEMENT if is_verdict else not _may_read(item, seats, reviewer):
            continue
        reading = next((s.reading for s in seats.values() if s.user == reviewer and s.seat in SEATS), Reading())
        if is_verdict:
            reading = _join_common(seats)
        rows += _list_rows(item, reading, seats if is_verdict else {})
        count += 1
    if not rows:
        raise UsageError("no document waits for a verdict" if is_verdict else "there is nothing left to review")
    write_file(Path(path), _format_rows(rows, Path(path)), private=True)
    return count


def read_sheet(
    project: Project, path: str | Path, reviewer: str, *, is_done: bool = False, is_verdict: bool = False
) -> dict[str, tuple[UserReading, str]]:
    """Save what a reviewer filled in, all or nothing: readings and states by the documents' ids.

    A document with no verdict at all is left out. The reviewer is done with a document when every passage has a
    verdict.

    Args:
        project: that wrote the sheet.
        path: of the sheet.
        reviewer: the reader's name.
        is_done: whether the reader is done with all documents of the sheet, also where rows are blank; these words are
            then counted as unseen.
        is_verdict: whether the readings decide where two reviewers disagree.

    Raises:
        UsageError: the path has another suffix.
        DataError: the sheet is damaged, its findings have changed since, or a verdict or label is not known; the
            message tells the row.
        RequestError: somebody may not save a reading now, see :meth:`allonym.project.Project.save_reading`.
    """
    by_document: defaultdict[str, list[tuple[int, Mapping[str, str]]]] = defaultdict(list)
    for number, row in _parse_rows(Path(path)):
        by_document[row["document"]].append((number, row))
    readings: dict[str, tuple[Reading, bool]] = {}
    for id, rows in by_document.items():
        if not is_done and not any(row["verdict"] for _, row in rows):
            continue
        item, _ = project.get_document(id, reviewer)
        reading = _read_rows(rows, item, Path(path).name)
        is_whole = all(row["verdict"] for _, row in rows if row["row"] == PASSAGE)
        readings[id] = reading, is_done or is_whole
    if not readings:
        raise DataError(f"{Path(path).name}: the column verdict is blank in all rows")
    return project.save_readings(reviewer, readings, is_verdict=is_verdict)


def _may_read(item: ReviewDocument, seats: Mapping[int, UserReading], reviewer: str) -> bool:
    """Tell whether a reviewer may still say something on a document."""
    is_open = item.state not in (DONE, DISAGREEMENT)
    return is_open and (find_reviewer_seat(seats, reviewer) is not None or not all(n in seats for n in SEATS))


def _join_common(seats: Mapping[int, UserReading]) -> Reading:
    """Return what both reviewers said, with the marks of either, as a beginning for who decides."""
    first, second = (seats[n].reading for n in SEATS)
    marks: list[LeakMark] = []
    for mark in sorted({*first.marks, *second.marks}):
        if not marks or mark.start >= marks[-1].end:
            marks.append(mark)
    return Reading(tuple(marks), tuple(d for d in first.decisions if d in second.decisions))


def _list_rows(item: ReviewDocument, reading: Reading, readers: Mapping[int, UserReading]) -> list[dict[str, Any]]:
    text = item.document.text
    decisions = {(d.start, d.end, d.label): d for d in reading.decisions}
    rows = []
    for start, end in split_into_pieces(text):
        proposals = [p for p in (item.risk.proposals if item.risk else ()) if start <= p.start < end]
        marks = [m for m in reading.marks if start <= m.start < end]
        is_opened = any(a <= start and end <= b for a, b in reading.opened)
        row = {
            "row": PASSAGE,
            "start": start,
            "end": end,
            "text": text[start:end],
            "becomes": render_passage(text, item.edits, (start, end)),
            "look at": "; ".join(f"{text[p.start : p.end]} ({p.label})" for p in proposals),
            "verdict": ACCEPT if is_opened else "",
            "missed": "; ".join(dict.fromkeys(f"{text[m.start : m.end]}={m.label}" for m in marks)),
            "readers": "; ".join(_describe_marks(seat, text, (start, end)) for seat in readers.values()),
        }
        rows.append(row)
        for span in item.spans:
            if not start <= span.start < end:
                continue
            key = (span.start, span.end, span.label)
            row = {
                "row": FINDING,
                "start": span.start,
                "end": span.end,
                "text": text[span.start : span.end],
                "becomes": span.label,
                "verdict": _describe_decision(decisions.get(key)),
                "readers": "; ".join(_describe_reader(seat, key) for seat in readers.values()),
            }
            rows.append(row)
    return [{name: {"document": item.id, **row}.get(name, "") for name in COLUMNS} for row in rows]


def render_passage(text: str, edits: Sequence[Edit], passage: Interval) -> str:
    """Return a stretch of a text after those edits that begin in it."""
    position, end = passage
    pieces = []
    for edit in edits:
        if passage[0] <= edit.start < end:
            pieces += [text[position : edit.start], edit.replacement]
            position = max(position, edit.end)
        elif edit.start < position < edit.end:
            position = edit.end
    return "".join((*pieces, text[position:end]))


def _describe_decision(decision: FindingDecision | None) -> str:
    if decision is None:
        return ""
    return {"accept": ACCEPT, "reject": REJECT}.get(decision.verdict, decision.new_label or ACCEPT)


def _describe_reader(seat: UserReading, key: tuple[int, int, str]) -> str:
    decision = next((d for d in seat.reading.decisions if (d.start, d.end, d.label) == key), None)
    return f"{seat.reader}: {_describe_decision(decision) or '-'}"


def _describe_marks(seat: UserReading, text: str, passage: Interval) -> str:
    marks = [m for m in seat.reading.marks if passage[0] <= m.start < passage[1]]
    return f"{seat.reader}: {', '.join(f'{text[m.start : m.end]}={m.label}' for m in marks) or '-'}"


def _read_rows(rows: Iterable[tuple[int, Mapping[str, str]]], item: ReviewDocument, name: str) -> Reading:
    """Return the reading that the rows of a document hold."""
    text = item.document.text
    labels = {(s.start, s.end): s.label for s in item.spans}
    marks: list[LeakMark] = []
    decisions: list[FindingDecision] = []
    opened: list[Interval] = []
    for number, row in rows:
        where = f"{name}: row {number}"
        start, end = _read_number(row["start"], where), _read_number(row["end"], where)
        verdict = row["verdict"].strip()
        if row["row"] == PASSAGE:
            if not 0 <= start < end <= len(text):
                raise DataError(f"{where}: no passage of its document")
            if row["missed"].strip() or verdict:
                opened.append((start, end))
            marks += _read_missed(row["missed"], text, (start, end), where)
        elif row["row"] != FINDING:
            raise DataError(f"{where}: {PASSAGE} or {FINDING} is required in the column row")
        elif (start, end) not in labels:
            raise DataError(f"{where}: the project finds something else there now; write a new sheet")
        elif verdict:
            decisions.append(_read_decision(verdict, (start, end), labels[start, end], where))
    try:
        return make_checked_reading(marks, decisions, text, item.spans, opened)
    except DataError as error:
        raise DataError(f"{name}: document {item.id}: {error}") from None


def _read_decision(verdict: str, place: Interval, label: str, where: str) -> FindingDecision:
    if verdict.lower() == ACCEPT:
        return FindingDecision(*place, label, "accept")
    if verdict.lower() == REJECT:
        return FindingDecision(*place, label, "reject")
    if verdict.upper() not in TAXONOMY:
        raise DataError(f"{where}: the verdict on a finding is {ACCEPT}, {REJECT} or a label")
    return FindingDecision(*place, label, "relabel", verdict.upper())


def _read_missed(value: str, text: str, passage: Interval, where: str) -> list[LeakMark]:
    """Return a mark for each place of the passage at which a missed text stands."""
    marks, entry = [], ""
    for part in value.split(";"):
        entry = f"{entry};{part}" if entry.strip() else part
        surface, _, label = (piece.strip() for piece in entry.rpartition("="))
        if not surface or label.upper() not in TAXONOMY:  # the text itself may have a semicolon
            continue
        entry, position = "", text.find(surface, *passage)
        if position < 0:
            raise DataError(f"{where}: a missed text does not stand in its passage")
        while position >= 0:
            marks.append(LeakMark(position, position + len(surface), "missed", label.upper()))
            position = text.find(surface, position + len(surface), passage[1])
    if entry.strip():
        raise DataError(f"{where}: missed takes TEXT=LABEL, separated by ;")
    return marks


def _read_number(value: str, where: str) -> int:
    if not value.isdecimal() or len(value) > 10:
        raise DataError(f"{where}: start and end must stay as they are")
    return int(value)


def _check_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".jsonl"):
        raise UsageError(f"a review sheet is a .csv or .jsonl file, got {suffix or 'no ending'}")
    return suffix


def _format_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> bytes:
    if _check_suffix(path) == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = [str(row[name]) for name in COLUMNS]
        # A spreadsheet would take such a text for a formula.
        writer.writerow([f"'{value}" if value.lstrip("'").startswith(_FORMULA) else value for value in values])
    return out.getvalue().encode("utf-8-sig", "backslashreplace")


def _parse_rows(path: Path) -> Iterable[tuple[int, Mapping[str, str]]]:
    suffix = _check_suffix(path)
    try:
        content = path.read_bytes().decode("utf-8-sig")
        if suffix == ".jsonl":
            rows = [(i, json.loads(line)) for i, line in enumerate(content.split("\n"), 1) if line.strip()]
        else:
            csv.field_size_limit(_MOST_FIELD)
            delimiter = ";" if content.partition("\n")[0].count(";") > content.partition("\n")[0].count(",") else ","
            rows = list(enumerate(csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter), 2))
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError, csv.Error):
        raise DataError(f"{path.name} is no review sheet in UTF-8") from None
    for number, row in rows:
        if not isinstance(row, dict) or not {"document", "row", "start", "end", "verdict", "missed"} <= set(row):
            raise DataError(f"{path.name}: row {number}: the columns of a review sheet are required")
        values = {name: str(value if value is not None else "") for name, value in row.items() if name}
        yield number, {name: _remove_quote(value) if suffix == ".csv" else value for name, value in values.items()}


def _remove_quote(value: str) -> str:
    """Return the text of a cell without the quote that kept a spreadsheet from taking it for a formula."""
    return value[1:] if value.startswith("'") and value.lstrip("'").startswith(_FORMULA) else value

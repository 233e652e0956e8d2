"""Review sheets: what they show, what is read from them, and what a reviewer never sees in them."""

from __future__ import annotations

import csv
import json

import pytest

from allonym.errors import DataError, RequestError, UsageError
from allonym.plan import Edit
from allonym.project.sheets import read_sheet, render_passage, write_sheet


def read_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def fill(path, change, encoding="utf-8-sig"):
    rows = read_rows(path)
    for row in rows:
        change(row)
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def say_ok(row):
    row["verdict"] = "ok"


@pytest.fixture
def sheet(project, tmp_path):
    path = tmp_path / "ann.csv"
    write_sheet(project, path, "ann")
    return path


def test_a_sheet_has_every_passage_and_finding_and_is_private(project, sheet):
    rows = read_rows(sheet)
    passages = {row["text"]: row["becomes"] for row in rows if row["row"] == "passage"}
    assert any("Jim Quill was rude" in text and "[PERSON_" in becomes for text, becomes in passages.items())
    assert sum(row["row"] == "finding" for row in rows) == project.get_status().mentions
    assert sheet.stat().st_mode & 0o077 == 0
    assert not any(row["verdict"] or row["missed"] for row in rows)


def test_two_sheets_and_a_verdict_settle_all_documents(project, sheet, tmp_path):
    def find_more(row):
        say_ok(row)
        if row["row"] == "passage" and "piano tuner" in row["text"]:
            row["missed"] = "only blind=MEDICAL_CONDITION"
        if row["row"] == "finding" and row["text"] == "Elmford":
            row["verdict"] = "no"

    saved = read_sheet(project, fill(sheet, find_more), "ann")
    assert {state for _, state in saved.values()} == {"in_review"} and len(saved) == 6
    other = tmp_path / "ben.csv"
    write_sheet(project, other, "ben")
    assert not any(row["verdict"] or row["missed"] for row in read_rows(other))  # blind
    saved = read_sheet(project, fill(other, say_ok), "ben")
    assert sorted(state for _, state in saved.values()) == ["disagreement"] * 2 + ["done"] * 4
    with pytest.raises(UsageError, match="nothing left"):
        write_sheet(project, other, "ben")
    verdict = tmp_path / "verdict.csv"
    assert write_sheet(project, verdict, "rita", is_verdict=True) == 2
    shown = "\n".join(row["readers"] for row in read_rows(verdict))
    assert "ann: only blind=MEDICAL_CONDITION" in shown and "ann: no; ben: ok" in shown
    read_sheet(project, fill(verdict, say_ok), "rita", is_verdict=True)
    project.update()
    assert project.get_status().states["done"] == 6
    assert project.get_status().unseen == 0
    texts = [row.anonymised for row, _ in project.list_documents()]
    assert not any("only blind" in text or "Elmford" in text for text in texts)


def test_blank_rows_were_not_looked_at(project, sheet):
    with pytest.raises(DataError, match="blank in all rows"):
        read_sheet(project, sheet, "ann")
    saved = read_sheet(project, sheet, "ann", is_done=True)
    assert all(reading.done and not reading.reading.opened for reading, _ in saved.values())
    assert project.get_status().unseen > 20

    def half(row):
        row["verdict"] = "ok" if "piano" in row["text"] else ""

    saved = read_sheet(project, fill(sheet, half), "ann")
    assert len(saved) == 1 and all(reading.done for reading, _ in saved.values())


def test_what_was_said_is_filled_in_again(project, sheet, tmp_path):
    def say(row):
        if "piano" in row["text"] and row["row"] == "passage":
            row["verdict"], row["missed"] = "yes", "blind=MEDICAL_CONDITION; only=EVENT"

    read_sheet(project, fill(sheet, say), "ann")
    again = tmp_path / "again.jsonl"
    write_sheet(project, again, "ann")
    rows = [json.loads(line) for line in again.read_text().splitlines()]
    [row] = [row for row in rows if row["missed"]]
    assert row["verdict"] == "ok" and sorted(row["missed"].split("; ")) == ["blind=MEDICAL_CONDITION", "only=EVENT"]
    assert len(read_sheet(project, again, "ann")) == 1


def test_what_stands_twice_or_holds_signs_is_read_again(project, tmp_path):
    (tmp_path / "signs.txt").write_text("-5 and -5 stood on the door; of Wren; Hall = home.")
    [file] = project.add([tmp_path / "signs.txt"]).files
    path = tmp_path / "ann.csv"

    def say(row):
        if "door" in row["text"] and row["row"] == "passage":
            row["verdict"], row["missed"] = "ok", "-5=AGE; Wren; Hall = home=PERSON"

    for _ in range(2):  # the second time it is filled in already
        write_sheet(project, path, "ann")
        read_sheet(project, fill(path, say), "ann")
        _, seats = project.get_document(f"{file.number:04}-00001")
        assert [(m.start, m.end) for m in seats[1].reading.marks] == [(0, 2), (7, 9), (32, 49)]
        say = lambda row: None  # noqa: E731


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("verdict", "maybe", "ok, no or a label"),
        ("missed", "nobody=PERSON", "does not stand"),
        ("missed", "Leeds", "TEXT=LABEL"),
        ("start", "x", "must stay"),
        ("end", "99999", "no passage|something else"),
        ("row", "other", "required in the column row"),
    ],
)
def test_a_wrong_cell_is_told_with_its_row_and_nothing_is_saved(project, sheet, column, value, message):
    kind = "finding" if column == "verdict" else "passage"

    def change(row):
        say_ok(row)
        if row["row"] == kind:
            row[column] = value

    with pytest.raises(DataError, match=rf"ann\.csv: row \d+: .*({message})"):
        read_sheet(project, fill(sheet, change), "ann")
    assert project.get_status().states["new"] == 6


def test_no_sheet_and_a_third_reader(project, sheet, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="columns of a review sheet"):
        read_sheet(project, tmp_path / "other.csv", "ann")
    with pytest.raises(UsageError, match=r"\.csv or \.jsonl"):
        write_sheet(project, tmp_path / "x.docx", "ann")
    fill(sheet, say_ok)
    read_sheet(project, sheet, "ann")
    read_sheet(project, sheet, "ben")
    with pytest.raises(RequestError):
        read_sheet(project, sheet, "carl")


def test_spreadsheets_run_no_text(project, tmp_path):
    (tmp_path / "formula.txt").write_text("=HYPERLINK(1) said Jim Quill.")
    project.add([tmp_path / "formula.txt"])
    write_sheet(project, tmp_path / "ann.csv", "ann")
    assert not any(value.startswith("=") for row in read_rows(tmp_path / "ann.csv") for value in row.values())


def test_a_passage_is_shown_as_it_becomes():
    text = "Ada met Jim Quill. Bye Ada."
    edits = [Edit(0, 3, "[A]", "PERSON"), Edit(8, 17, "[J]", "PERSON"), Edit(23, 26, "[A]", "PERSON")]
    assert render_passage(text, edits, (0, 18)) == "[A] met [J]."
    assert render_passage(text, edits, (19, 27)) == "Bye [A]."
    assert render_passage(text, [Edit(15, 23, "X", "PERSON")], (19, 27)) == "Ada."

"""Scores of conversations: P2's examples, halves, and each thing once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.marking import Mark, Marked, read_marks
from allonym.evaluate.residual import Scoring, score_conversation

TABLE_2 = """Person 1: (Dunder Mifflin)[MISSED_ORGANIZATION_NAME_SPEAKER], this
is [PERSON_NAME_1] (Green)[MISSED_PERSON_NAME_PARTIAL] speaking.
Person 2: Hi, this is [PERSON_NAME_2] from [ORGANIZATION_NAME_1],
we just ordered a set of paper and they have worse quality than (staples)[MISSED_ORGANIZATION_NAME].
Person 2: It’s (M-K two one)[MISSED_EMAIL_PARTIAL] [EMAIL_1]"""
TABLE_3 = """Person 1: Hi [PERSON_NAME_2]. This is [PERSON_NAME_3] calling back
from (XYZ lawyer)(MISSED_ORGANIZATION_NAME_SPEAKER).
Person 1: I am calling regarding your request to change your business name on
(IRS dot gov)(MISSED_URL) website.
Person 2: Oh, yes, I want it to be changed to
(ABC incorporated) (MISSED_ORGANIZATION_NAME_SPEAKER)."""
P2 = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases/labels.jsonl").read_text("utf-8").splitlines()
    if '"case": "p2"' in line or '"case":"p2"' in line
]


def total(text: str, scoring: Scoring | None = None) -> int:
    return score_conversation(read_marks(text), scoring).score


def test_the_worked_example_of_p2_and_its_table_3() -> None:
    found = score_conversation(read_marks(TABLE_2))
    assert [(i.tag, i.score) for i in found.items] == [
        ("ORGANIZATION_NAME_SPEAKER", 2),
        ("PERSON_NAME_PARTIAL", 3),
        ("ORGANIZATION_NAME", 0),
        ("EMAIL_PARTIAL", 1),
    ]
    assert found.score == 6
    assert total(TABLE_3) == 6


def test_both_readings_of_a_partly_missed_email() -> None:
    assert total(TABLE_2, Scoring("table")) == 7
    assert [Scoring(reading).of("EMAIL_PARTIAL") for reading in ("text", "table")] == [1, 2]
    assert Scoring("table").of("EMAIL") == Scoring("text").of("EMAIL") == 4


def test_table_6_and_its_halves() -> None:
    assert len(P2) == 40
    scoring = Scoring("table")
    for row in P2:
        assert scoring.of(row["tag"]) == row["score"]
        up = row["score"] == 5
        assert scoring.of(row["tag"] + "_PARTIAL") == {True: 3, False: row["score"] // 2}[up]


def test_scores_of_ones_own() -> None:
    own = Scoring(own={"MISSED_URL": 3, "EMAIL": 5, "PERSON_NAME_PARTIAL": 4})
    assert [own.of(t) for t in ("URL", "URL_PARTIAL", "EMAIL_PARTIAL", "PERSON_NAME_PARTIAL")] == [3, 1, 3, 4]
    for wrong in (6, -1, True, 1.5):
        with pytest.raises(UsageError, match="0 to 5"):
            Scoring(own={"URL": wrong})
    with pytest.raises(UnknownNameError):
        Scoring(own={"URI": 1})
    with pytest.raises(UnknownNameError, match="did you mean: table"):
        Scoring("tabel")


@check_each_row(
    "text, score",
    [
        (" ".join(["(Marc)([MISSED_PERSON_NAME_PARTIAL])"] * 4), 3),  # P2: 3, not 12
        ("(Mark)[MISSED_X] (Marc)[MISSED_X] (M-A-R-K)[MISSED_X]", 3),  # P2's spellings
        ("(Mark)[MISSED_X] (Anna)[MISSED_X]", 6),
        ("(Rachel)[MISSED_X] then (Rachel Green)[MISSED_PERSON_NAME]", 5),
        ("(staples)[MISSED_ORGANIZATION_NAME] (Staples)[MISSED_ORGANIZATION_NAME_SPEAKER]", 2),
        ("(Zoom-ly)[MISSED_PRODUCT_SPEAKER] (zoomly)[MISSED_PRODUCT_SPEAKER]", 2),
        ("(Bryndel)[MISSED_LOCATION] (Brindel)[MISSED_LOCATION]", 2),
        ("(Bryndel)[MISSED_LOCATION] (Brandel)[MISSED_LOCATION]", 4),
        ("(555 0101)[MISSED_PHONE] (555-0101)[MISSED_PHONE] (555-0102)[MISSED_PHONE]", 8),
        ("(jo at x dot org)[MISSED_EMAIL] (jo@x.org)[MISSED_EMAIL]", 4),
        ("(Mark)[MISSED_X] (mark)[MISSED_USER_NAME]", 6),  # a name and a login are two things
        ("nothing", 0),
        ("", 0),
    ],
)
def test_each_thing_counts_once(text: str, score: int) -> None:
    assert total(text.replace("_X]", "_PERSON_NAME_PARTIAL]")) == score


def test_annotators_settle_what_is_one_thing() -> None:
    text = "Bob Robert Bob"
    marks = (Mark(0, 3, "PERSON", True, "a"), Mark(4, 10, "PERSON", True, "b"), Mark(11, 14, "PERSON", True))
    found = score_conversation(Marked("c", text, marks))
    assert found.score == 9  # Bob without an item fits both, so it is neither
    same = tuple(Mark(m.start, m.end, m.label, True, "a") for m in marks)
    assert score_conversation(Marked("c", text, same)).score == 3


def test_proposals_are_refused_counted_or_dropped() -> None:
    marks = (Mark(0, 3, "PERSON", confirmed=None), Mark(4, 6, "URL"), Mark(7, 9, "URL", confirmed=False))
    marked = Marked("call-7", "Bob io zz", marks)
    with pytest.raises(DataError, match="call-7: 1 proposed mark that no person"):
        score_conversation(marked)
    counted = score_conversation(marked, proposals="count")
    assert (counted.score, counted.direct, counted.unconfirmed, counted.rejected) == (7, 1, 1, 1)
    dropped = score_conversation(marked, proposals="drop")
    assert (dropped.score, dropped.unconfirmed, dropped.rejected) == (2, 0, 1)
    with pytest.raises(UnknownNameError, match="refuse"):
        score_conversation(marked, proposals="ignore")
    with pytest.raises(DataError, match="outside"):
        score_conversation(Marked("c", "ab", (Mark(0, 9, "URL"),)))

"""The section on detection: what it shows, and what it never shows."""

from __future__ import annotations

import pytest

from allonym.document import Span
from allonym.evaluate import detection
from allonym.report import html, markdown
from allonym.report.evaluate.detection import detection_section
from allonym.report.page import Bars, Details, Figures, Matrix, Notice, Page, Table, Tabs
from allonym.train.records import make_record

TEXT = "Ada Brook met Cyd in Elmford on Monday."
MARKS = [(0, 9, "PER"), (14, 17, "PER"), (21, 28, "LOC"), (32, 38, "zork")]


@pytest.fixture(scope="module")
def told():
    records = [make_record("", str(i), TEXT, MARKS, annotations={"x": MARKS, "y": MARKS[:2]}) for i in range(4)]
    found = [[Span(0, 9, "PERSON"), Span(14, 17, "CITY"), Span(32, 38, "DATE"), Span(10, 13, "DATE")]] * 4
    after = ["[PERSON_1] met [CITY_1] in Elmford on [DATE_1]."] * 4
    return detection([TEXT] * 4, after, gold=records, predicted=found, draws=50).to_dict()


def blocks(section, kind):
    return [b for b in section.walk() if isinstance(b, kind)]


def test_what_the_section_holds(told):
    section = detection_section(told)
    assert section is not None and section.anchor == "detection"
    (levels, matrices) = blocks(section, Tabs)
    assert [name for name, _ in levels.options] == ["Words", "Spans, strict", "Spans, overlap", "Entities"]
    assert [name for name, _ in matrices.options] == ["Spans", "Words"]
    assert [n.items for n in blocks(section, Notice)] == [("DATE: 8",), ("zork: 4",)]
    labels = [row.cells[0] for row in levels.options[1][1][1].rows]
    assert labels[:3] == ["LOC", "PER", "zork"] and len(labels) == 7
    assert {b.title for b in blocks(section, Details)} == {"Agreement of 2 annotators in 4 texts"}
    (leaks,) = (t for t in blocks(section, Table) if t.title == "Leak rates")
    assert [c.name for c in leaks.columns] == ["Type", "Not covered", "Untouched", "Still in the text"]
    assert len(blocks(section, Bars)) == 1
    assert any(f.label == "Names still in the text" for f in blocks(section, Figures)[0].figures)


def test_right_answers_lie_on_the_diagonal_and_none_comes_next(told):
    matrix, words = blocks(detection_section(told), Matrix)
    assert matrix.columns == ("LOC", "PER", "zork", "none", "DATE")
    assert [name for name, _ in matrix.rows] == ["LOC", "PER", "zork", "none"]
    per = matrix.rows[1][1]
    assert [s.value for s in per] == [8, 8, 0, 0, 0]
    assert [s.level for s in per] == [0.5, 0.5, 0, 0, 0]
    nothing = matrix.rows[-1][1]
    assert nothing[3].value is None  # nobody counts the spans that are none
    assert words.rows[-1][1][3].value > 0 and words.rows[-1][1][3].level == 0


def test_without_types_only_what_can_be_told(told):
    record = make_record("", "a", TEXT, MARKS)
    bare = detection([TEXT], gold=[record], predicted=[[Span(0, 9, "")]], draws=0).to_dict()
    section = detection_section(bare)
    assert not blocks(section, Matrix)
    assert "no type" in blocks(section, Notice)[0].text
    assert detection_section({}) is None


def test_drawn_as_a_page_and_as_markdown(told):
    page = Page("Detection", (detection_section(told),))
    for shown in (html(page), markdown(page)):
        assert "zork" in shown and "Krippendorff" in shown
        assert not any(word in shown for word in ("Brook", "Elmford", "Monday"))

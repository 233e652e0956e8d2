"""P2's notations: read, written, round trip, and what is wrong in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.marking import (
    Mark,
    Marked,
    list_mark_rows,
    make_missed_tag,
    parse_mark_rows,
    parse_missed_tag,
    read_marks,
    write_marks,
)
from allonym.labels import TAXONOMY

TAGS = sorted(
    {make_missed_tag(label.name, partial=p) for label in TAXONOMY for p in (False, True)}
    - {"PERSON_NAME_PARTIAL_PARTIAL"}
)
SIGNS = st.characters(codec="utf-8") | st.sampled_from("()[] \n_")


@st.composite
def marked_texts(draw: st.DrawFn) -> Marked:
    pieces, marks, at = [], [], 0
    for _ in range(draw(st.integers(0, 4))):
        between, inside = draw(st.text(SIGNS, max_size=8)), draw(st.text(SIGNS, min_size=1, max_size=8))
        pieces += [between, inside]
        start = at + len(between)
        at = start + len(inside)
        label, partial = parse_missed_tag(draw(st.sampled_from(TAGS)))
        marks.append(Mark(start, at, label, partial))
    pieces.append(draw(st.text(SIGNS, max_size=8)))
    return Marked("c", "".join(pieces), tuple(marks))


def sayable(marked: Marked) -> bool:
    """Whether the notation can say it, told otherwise than by the code under test."""
    for mark in marked.marks:
        inside = marked.text[mark.start : mark.end]
        before = ""
        while before != inside:
            before, inside = inside, "".join(c for c in inside if c in "()").replace("()", "")
        if inside or not marked.text[mark.start : mark.end].strip():
            return False
    return True


@given(marked_texts())
def test_what_is_written_is_read_again(marked: Marked) -> None:
    if not sayable(marked):
        with pytest.raises(DataError):
            write_marks(marked)
        return
    again = read_marks(write_marks(marked), "c")
    assert again.text == marked.text
    assert again.marks == marked.marks


@given(marked_texts())
def test_plain_values_take_any_marks(marked: Marked) -> None:
    assert parse_mark_rows(list_mark_rows(marked.marks), marked.text) == marked.marks


@given(st.text(SIGNS, max_size=40))
def test_text_without_tags_is_its_own_reading(text: str) -> None:
    assert read_marks(text) == Marked("", text)


def test_every_tag_names_a_type() -> None:
    for tag in TAGS:
        label, partial = parse_missed_tag(tag)
        assert make_missed_tag(label, partial=partial) == tag


@pytest.mark.parametrize(
    "text",
    [
        "hi (Green)[MISSED_PERSON_NAME_PARTIAL].",
        "hi (Green)(MISSED_PERSON_NAME_PARTIAL).",
        "hi (Green)([MISSED_PERSON_NAME_PARTIAL]).",
        "hi (Green) (MISSED_PERSON_NAME_PARTIAL).",
    ],
)
def test_the_notations_of_p2_are_one(text: str) -> None:
    read = read_marks(text)
    assert read.text == "hi Green."
    assert read.marks == (Mark(3, 8, "PERSON", True),)
    assert write_marks(read) == "hi (Green)[MISSED_PERSON_NAME_PARTIAL]."


def test_all_notations_in_one_text_with_paired_brackets_inside() -> None:
    read = read_marks(
        "(Acme (UK) Ltd)[MISSED_ORGANIZATION_NAME_SPEAKER] and (a.io)(MISSED_URL) ([1] (2) (x)([MISSED_AGE])"
    )
    assert read.text == "Acme (UK) Ltd and a.io ([1] (2) x"
    assert [(read.text[m.start : m.end], m.tag) for m in read.marks] == [
        ("Acme (UK) Ltd", "ORGANIZATION_NAME_SPEAKER"),
        ("a.io", "URL"),
        ("x", "AGE"),
    ]


@check_each_row(
    "text, said",
    [
        ("((Zaphod)[MISSED_URL] x)[MISSED_URL]", "character 0, line 1: a mark must not hold another"),
        ("one\nZaphod)[MISSED_URL]", "character 10, line 2: a bracket is closed"),
        ("Zaphod [MISSED_URL]", "character 6, line 1: a tag stands behind"),
        ("[MISSED_URL] Zaphod", "character 0, line 1: a tag stands behind"),
        ("(Zaphod)[MISSED_URL][MISSED_AGE]", "character 20, line 1: a tag stands behind"),
        ("( )[MISSED_URL]", "character 0, line 1: text is required"),
        ("(Zaphod)[MISSED_UR]", "unknown type of missed text 'UR'; did you mean: URL"),
        ("(Zaphod)[MISSED_zaphod]", "character 8, line 1: unknown type of missed text; see"),
        ("(Zaphod)[MISSED_URL", "character 8, line 1: a tag as [MISSED_X] is required"),
        ("(Zaphod)(MISSED_URL]", "character 8, line 1: a tag as [MISSED_X] is required"),
        ("(Zaphod)[ MISSED_URL]", "character 8, line 1: a tag as [MISSED_X] is required"),
    ],
)
def test_what_cannot_be_read_is_told_with_place_and_without_text(text: str, said: str) -> None:
    with pytest.raises(DataError) as raised:
        read_marks(text, "call-7")
    assert str(raised.value).startswith("call-7: character ")
    assert said in str(raised.value)
    assert "aphod" not in str(raised.value)


@check_each_row(
    "rows",
    [
        {"start": 0},
        [3],
        [{"start": 0, "end": 99, "tag": "URL"}],
        [{"start": 2, "end": 2, "tag": "URL"}],
        [{"start": 0, "end": 2, "tag": "NOTHING"}],
        [{"start": True, "end": 2, "tag": "URL"}],
        [{"start": 0, "end": 2, "tag": "URL", "confirmed": "maybe"}],
        [{"start": 0, "end": 3, "tag": "URL"}, {"start": 2, "end": 4, "tag": "AGE"}],
    ],
)
def test_plain_marks_that_are_wrong(rows: object) -> None:
    with pytest.raises(DataError, match="call-7: marks"):
        parse_mark_rows(rows, "Zaphod", "call-7")


def test_a_rejected_mark_is_not_written_and_a_tag_in_the_text_cannot_be() -> None:
    rejected = Marked("c", "Green Park", (Mark(0, 5, "PERSON", confirmed=False), Mark(6, 10, "LOCATION")))
    assert write_marks(rejected) == "Green (Park)[MISSED_LOCATION]"
    with pytest.raises(DataError, match="MISSED_ tag already"):
        write_marks(Marked("c", "(x)[MISSED_URL]"))


def test_names_in_errors_and_reprs() -> None:
    with pytest.raises(UnknownNameError, match="EMAIL"):
        parse_missed_tag("EMAI")
    with pytest.raises(ValueError, match=r"3\.\.3"):
        Mark(3, 3, "URL")
    assert "Green" not in repr(Marked("c", "Green", (Mark(0, 5, "PERSON", item="Green"),), {"who": "Green"}))
    assert make_missed_tag("PERSON_FIRSTNAME") == "PERSON_NAME_PARTIAL"

"""What speech leaves in transcripts: spelled words, digits and addresses read out."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.detection.spoken import build_detector
from allonym.document import Document
from allonym.policy import Policy

LINES = (Path(__file__).parents[1] / "cases" / "spoken.jsonl").read_text("utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]
DETECT = build_detector(Policy(name="test"))
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def found(text: str) -> list[list[str]]:
    return [[text[s.start : s.end], s.label] for s in DETECT(Document("", text))]


@check_each_row("case", CASES)
def test_speech(case: dict[str, object]) -> None:
    assert found(str(case["text"])) == case["found"]


def test_three_spaced_letters_count_only_where_something_is_spelled() -> None:
    (weak,) = DETECT(Document("", "they did an M R T yesterday"))
    (sure,) = DETECT(Document("", "the last name is spelled L E E"))
    assert weak.score < 0.5 < sure.score


@check_each_row(
    "text, code",
    [
        ("it ends double four one nine", "double four one nine"),
        ("the number is seven oh eight two two one", "seven oh eight two two one"),
        ("I read seven seven oh, four one", ""),
        ("they sang one two three four five six", ""),
        ("double oh seven", ""),
        ("two, three, four, two times", ""),
    ],
)
def test_digits_read_out_are_a_code_where_numbers_in_general_stay(text: str, code: str) -> None:
    spans = build_detector(Policy.load("default"))(Document("", text))
    assert [(text[s.start : s.end], s.label) for s in spans] == ([(code, "GENERIC_ID")] if code else [])


def test_offsets_count_code_points() -> None:
    text = "zażółć gęślą 😀: jane dot doe at example dot com"
    (span,) = DETECT(Document("", text))
    assert text[span.start : span.end] == "jane dot doe at example dot com"


def test_labels_that_a_policy_does_not_look_for_are_left_out() -> None:
    text = "A-L-P-H-A, so mosaic dot com"
    only = build_detector(Policy.only(["URL"]))
    assert [s.label for s in only(Document("", text))] == ["URL"]
    assert list(build_detector(Policy.only(["IBAN_CODE"]))(Document("", text))) == []


@given(st.lists(st.sampled_from(range(10)), min_size=10, max_size=10), st.sampled_from([" ", ", ", "-", "  "]))
def test_ten_digits_read_out_are_one_finding(digits: list[int], gap: str) -> None:
    said = gap.join(NAMES[d] for d in digits)
    if any(digits):
        assert found(f"reach me: {said}.") == [[said, "PHONE_NUMBER"]]


@given(st.text(alphabet="abo one two dot com at . - , A I @", max_size=80))
def test_spans_lie_in_the_text(text: str) -> None:
    for span in DETECT(Document("", text)):
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip() == text[span.start : span.end]


@check_each_row("unit", ["one ", "A-", "A B ", "a dot ", "dot com ", " @a.co ", "x at y dot com ", "A for B "])
def test_long_runs_end(unit: str) -> None:
    DETECT(Document("", unit * (100_000 // len(unit))))


def test_four_digits_that_count_something_are_no_postcode() -> None:
    detect = build_detector(Policy.load("default"))
    assert not [*detect(Document("", "the address, you know, had like one two zero nine people"))]
    assert [*detect(Document("", "And your zip code? One two zero nine."))]

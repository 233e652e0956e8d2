"""The red team: its sample, forms there and back, and the summary of P2."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import Marked, read_forms, red_team_sample, red_team_summary, write_forms
from allonym.evaluate.red_team import FORMS, Finding, Form

STRATA = {"support": 50, "sales": 30, "meetings": 19, "voicemail": 1}


def corpus() -> list[Marked]:
    return [Marked(f"{name}-{i}", f"text {i}", (), {"context": name}) for name, n in STRATA.items() for i in range(n)]


def test_the_sample_is_stratified_and_seeded() -> None:
    drawn = red_team_sample(corpus(), 20, by="context", seed=5)
    assert Counter(f.stratum for f in drawn) == {"support": 9, "sales": 6, "meetings": 4, "voicemail": 1}
    assert drawn == red_team_sample(corpus(), 20, by="context", seed=5)
    assert [f.id for f in drawn] != [f.id for f in red_team_sample(corpus(), 20, by="context", seed=6)]
    assert [f.number for f in drawn] == list(range(1, 21))
    assert len({f.id for f in drawn}) == 20
    assert len({f.stratum for f in drawn[:10]}) > 1  # the order is drawn too


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), min_size=1), st.integers(1, 60), st.integers(0, 9))
def test_every_sample_has_its_size_and_no_stratum_is_forgotten(sizes: dict[str, int], n: int, seed: int) -> None:
    given_ = [Marked(f"{k}{i}", "", (), {"s": k}) for k, size in sizes.items() for i in range(size)]
    drawn = red_team_sample(given_, n, by="s", seed=seed)
    assert len(drawn) == min(n, len(given_)) == len({f.id for f in drawn})
    counts = Counter(f.stratum for f in drawn)
    assert all(counts[k] <= size for k, size in sizes.items())
    if n >= len(sizes):
        assert set(counts) == set(sizes)


@pytest.mark.parametrize("kind", FORMS)
def test_blank_forms_are_read_back_as_open(kind: str) -> None:
    texts = ["~~~text\n## Conversation 9: no\n- residual: x\n  > yes\n~~~~", 'a "quoted", line\r\nand\u2028more', ""]
    forms = [Form(i, f"call {i}", "a, b" if i == 1 else "", t) for i, t in enumerate(texts, 1)]
    found = read_forms(write_forms(forms, kind), kind)
    assert [(f.id, f.stratum, f.residual, f.identified) for f in found] == [
        ("call 1", "a, b", None, None), ("call 2", "", None, None), ("call 3", "", None, None)
    ]  # fmt: skip
    assert all(math.isnan(f.minutes) for f in found)


def test_filled_markdown() -> None:
    blank = write_forms([Form(1, "c1", "sales", "hello"), Form(2, "c2", "sales", "there")])
    answers = iter(["r1", "Yes", "(MISSED_PERSON_NAME_PARTIAL), email", "no", "searched\n  > twice", "7,5"])
    lines = blank.splitlines(keepends=True)
    filled = "".join(f"  > {next(answers, '')}\n" if line == "  > \n" else line for line in lines)
    first, second = read_forms(filled)
    assert first == Finding("c1", "sales", True, False, ("PERSON_NAME_PARTIAL", "EMAIL"), 7.5, "r1", "searched twice")
    assert second.residual is None
    beside = blank.replace("left? (yes/no)\n", "left? (yes/no) no\n")
    assert [f.residual for f in read_forms(beside)] == [False, False]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"residual": "perhaps Zaphod"}, "conversation c1: residual: yes or no"),
        ({"residual": "yes", "types": "Zaphod"}, "conversation c1: types"),
        ({"residual": "yes", "minutes": "Zaphod"}, "conversation c1: minutes"),
        ({"residual": "no", "identified": "yes"}, "nothing is said to be left"),
    ],
)
def test_wrong_answers_are_told_without_what_was_written(row: dict[str, str], said: str) -> None:
    with pytest.raises(DataError) as raised:
        read_forms(json.dumps({"id": "c1", **row}), "jsonl", "ann.jsonl")
    assert said in str(raised.value) and str(raised.value).startswith("ann.jsonl: ")
    assert "Zaphod" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "kind"), [("", "md"), ("# nothing", "md"), ("[1]", "jsonl"), ("{", "jsonl"), ("a,b\n1,2\n", "csv"),
                       ('{"residual": "no"}', "jsonl"), ("## Conversation 1: c\n\n~~~text\nabc", "md")]
)  # fmt: skip
def test_what_is_no_form(data: str, kind: str) -> None:
    with pytest.raises(DataError):
        read_forms(data, kind)


def test_the_result_of_p2() -> None:
    findings = [Finding(f"c{i}", "", i < 19, False) for i in range(200)]
    found = red_team_summary(findings)
    total = found.total
    assert (total.conversations, total.clean.value, total.residual.value) == (200, 0.905, 0.095)
    wilson = scipy.stats.binomtest(181, 200).proportion_ci(method="wilson")
    assert (total.clean.low, total.clean.high) == pytest.approx((wilson.low, wilson.high))
    assert total.identified.value == 0
    assert total.identified.high == pytest.approx(scipy.stats.binomtest(0, 200).proportion_ci(method="wilson").high)
    assert found.achieved is True
    assert found.strata == ()


def test_strata_reviewers_and_agreement() -> None:
    findings = [
        Finding("c1", "a", False, False, (), 3, "r1"),
        Finding("c1", "a", True, False, ("EMAIL",), 4, "r2"),
        Finding("c2", "a", True, True, ("EMAIL", "URL"), 5, "r1"),
        Finding("c2", "a", True, False, (), float("nan"), "r2"),
        Finding("c3", "b", False, False, (), 1, "r1"),
        Finding("c4", "b"),
    ]
    found = red_team_summary(findings)
    assert [(s.name, s.conversations, s.residual.value) for s in found.strata] == [("a", 2, 1.0), ("b", 1, 0.0)]
    assert (found.open, found.reviewers, found.twice, found.agreement.value) == (1, 2, 2, 0.5)
    assert found.types == (("EMAIL", 2), ("URL", 1))
    assert (found.minutes.value, found.minutes.n) == (13, 4)
    assert (found.identified, found.residual, found.achieved) == (("c2",), ("c1", "c2"), False)


def test_nothing_filled_in_is_no_result() -> None:
    found = red_team_summary([Finding("c1"), Finding("c2")])
    assert math.isnan(found.total.clean.value) and math.isnan(found.total.identified.value)
    assert found.achieved is None
    assert found.open == 2
    assert json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(DataError):
        red_team_summary([])


def test_wrong_calls() -> None:
    with pytest.raises(UsageError):
        red_team_sample(corpus(), 0)
    with pytest.raises(DataError):
        red_team_sample([])
    with pytest.raises(DataError, match="as many ids"):
        red_team_sample([Marked("a", ""), Marked("a", "")])
    with pytest.raises(UnknownNameError, match="context"):
        red_team_sample(corpus(), by="contxt")
    with pytest.raises(UnknownNameError, match="jsonl"):
        write_forms([], "json")
    with pytest.raises(DataError, match="heading"):
        write_forms([Form(1, "a\nb", "", "")])
    assert "secret" not in repr(Form(1, "c", "", "secret"))


def test_nobody_agrees_with_himself():
    once = Finding("c1", residual=False, reviewer="r1")
    with pytest.raises(DataError, match="1 conversations are judged twice by one and the same reviewer"):
        red_team_summary([once, once])
    assert (
        red_team_summary([once, Finding("c1", reviewer="r1"), Finding("c1", residual=True, reviewer="r2")]).twice == 1
    )

"""Noise: what belongs to a word stays with it, and a seed says everything."""

from __future__ import annotations

import random
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.models.tags import LABELS
from allonym.train.corrupt import Noise, corrupt_example
from allonym.train.examples import ALL, BEGIN, INSIDE, Example, Lists, O, make_example

NONE = Noise(0, 0, 0, 0, 0)
FIRST, LAST = ["Zoltan", "Yuki"], ["Quispe", "Okafor"]
PARTS = {"F": "PERSON_FIRSTNAME", "L": "PERSON_LASTNAME", "O": "ORGANIZATION"}
LISTS = Lists(frozenset({"ann", "bob"}), frozenset({"lee"}))
NAME = BEGIN["PERSON_FIRSTNAME"] | INSIDE["PERSON_FIRSTNAME"] | BEGIN["PERSON_LASTNAME"] | INSIDE["PERSON_LASTNAME"]


def made(text: str, *spans: tuple[int, int, str]) -> Example:
    marked = [{"start": a, "end": b, "label": label} for a, b, label in spans]
    return make_example({"id": "r", "text": text, "spans": marked}, "", frozenset(LABELS), _targets, LISTS)


def _targets(label: str, source: str) -> frozenset[str]:
    return frozenset({"PERSON_FIRSTNAME", "PERSON_LASTNAME"}) if label == "PER" else frozenset({label})


ANN = made('Mrs. Ann Lee, of "Acme Ltd." in Bonn.', (5, 12, "PER"), (17, 27, "ORGANIZATION"), (31, 35, "CITY"))


def row(some: Example) -> dict[str, int]:
    return dict(zip(some.words, some.allowed, strict=True))


@given(
    st.text("Ann Lee'@.,-\"\n Bob5$é", max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 12), st.sampled_from(["PER", "CITY", "DATE"])), max_size=4),
    st.builds(Noise, *[st.sampled_from([0.0, 0.3, 1.0])] * 5),
    st.integers(0, 99),
)
def test_everything_stays_with_its_word(text: str, some: list[tuple[int, int, str]], noise: Noise, seed: int) -> None:
    spans = [(a, min(len(text), a + n), label) for a, n, label in some if a < len(text)]
    given_ = made(text, *spans)
    out = corrupt_example(given_, noise, FIRST, LAST, random.Random(seed))
    columns = [getattr(out, f.name) for f in fields(Example) if f.name != "source"]
    assert {len(column) for column in columns} == {len(out.words)}
    assert all(out.words) and all(0 < mask <= ALL for mask in out.allowed)
    assert not (out.words and out.joined[0])
    assert out == corrupt_example(given_, noise, FIRST, LAST, random.Random(seed))
    covered = sum(not mask & O for mask in given_.allowed if mask != ALL)
    assert not covered or noise.speech or any(not mask & O for mask in out.allowed)


def test_nothing_happens_without_noise() -> None:
    assert corrupt_example(ANN, NONE, FIRST, LAST, random.Random(1)) == ANN


@pytest.mark.parametrize(("noise", "how"), [(Noise(1, 0, 0, 0, 0), str.lower), (Noise(0, 0, 1, 0, 0), str.upper)])
def test_casing(noise: Noise, how: type) -> None:
    out = corrupt_example(ANN, noise, FIRST, LAST, random.Random(1))
    assert out.words == tuple(map(how, ANN.words))
    assert (out.allowed, out.joined, out.plain) == (ANN.allowed, ANN.joined, ANN.plain)


def test_speech_has_no_marks_and_no_capitals() -> None:
    out = corrupt_example(ANN, Noise(0, 1, 0, 0, 0), [], [], random.Random(1))
    assert " ".join(out.words) == "mrs ann lee of acme ltd in bonn"
    assert not any(out.joined) and not any(out.breaks)
    assert row(out)["lee"] == row(ANN)["Lee"] and row(out)["bonn"] == row(ANN)["Bonn"]


def test_a_span_that_began_with_a_mark_begins_with_its_first_word_in_speech() -> None:
    given_ = made('saw "Red Sea" twice', (4, 13, "WORK_OF_ART"))
    out = row(corrupt_example(given_, Noise(0, 1, 0, 0, 0), [], [], random.Random(1)))
    assert out["red"] & BEGIN["WORK_OF_ART"]
    assert out["sea"] == INSIDE["WORK_OF_ART"]


def test_speech_keeps_what_stood_together() -> None:
    out = corrupt_example(made("O'Hara isn't @home (or)"), Noise(0, 1, 0, 0, 0), [], [], random.Random(1))
    pairs = list(zip(out.words, out.joined, strict=True))
    assert pairs[:6] == [("o", False), ("'", True), ("hara", True), ("isn", False), ("'", True), ("t", True)]
    assert pairs[6:] == [("@", False), ("home", True), ("or", False)]


def test_names_are_swapped_alike_in_the_whole_text() -> None:
    given_ = made("Ann Lee and ANN met Ann in Bonn", (0, 7, "PER"), (12, 15, "PER"), (20, 23, "PER"), (27, 31, "CITY"))
    out = corrupt_example(given_, Noise(0, 0, 0, 1, 0), FIRST, LAST, random.Random(1))
    assert out.words[0] in FIRST and out.words[1] in LAST
    assert out.words[3].title() in FIRST and out.words[3].isupper()
    assert out.words[5] == out.words[0]
    assert out.words[-1] == "Bonn" and out.allowed == given_.allowed


@check_each_row("seed", range(12))
def test_a_spelled_name_is_a_name(seed: int) -> None:
    out = corrupt_example(ANN, Noise(0, 0, 0, 0, 1), [], [], random.Random(seed))
    added = len(out.words) - len(ANN.words)
    at = next(i for i, w in enumerate(out.words) if len(w) == 1 and w.isalpha())
    letters = [i for i in range(at, len(out.words)) if len(out.words[i]) == 1 and out.words[i].isalpha()]
    name = "".join(out.words[i] for i in letters)
    assert name in ("ANN", "LEE")
    assert all(not out.allowed[i] & ~NAME for i in range(at, letters[-1] + 1))
    lead = out.words[at - 1] == "," and out.allowed[at - 1] == O
    dashes = out.words[at + 1] == "-"
    assert added == len(letters) * (2 if dashes else 1) - (1 if dashes else 0) + lead
    assert not out.joined[at] and all(out.joined[i] == dashes for i in range(at + 1, letters[-1] + 1))
    assert out.words[: at - lead] + out.words[letters[-1] + 1 :] == ANN.words

"""What benchmarks/swap_growth.py measures on: copies with other names that are as consistent as what was read."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from benchmarks.swap_growth import (
    compute_exponents,
    find_varied_names,
    format_table,
    measure_stages,
    rename_words,
    repeat_corpus,
    summarise_stages,
)

from allonym import swap
from allonym.plan import apply_edits, apply_edits_to_parts, digest
from allonym.swap.corpus import Corpus

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def calls() -> Corpus:
    return swap.load(str(files("allonym").joinpath("examples/calls.jsonl")), "company")


@pytest.fixture(scope="module")
def larger(calls: Corpus) -> Corpus:
    return repeat_corpus(calls, 3 * len(calls.chunks))


def test_copies_are_consistent(calls: Corpus, larger: Corpus) -> None:
    assert len(larger.chunks) == 3 * len(calls.chunks)
    for d, (document, plan) in enumerate(zip(larger.documents, larger.plans, strict=True)):
        text = document.text
        assert plan.digest == digest(text) and plan.result == digest(apply_edits(text, plan.edits))
        assert all(text[e.start : e.end] == e.original for e in plan.edits)
        assert document.meta["company"] == larger.classes[d]
        chunks = [c for c in larger.chunks if c.document == d]
        assert "".join(text[c.start : c.end] for c in chunks) == "".join(text[a:b] for a, b in larger.sections[d])
        for chunk in chunks:
            assert chunk.text == apply_edits_to_parts(text, ((chunk.start, chunk.end),), plan.edits)[0]
            for value in chunk.values:
                said = [text[s.start : s.end] for s in value.spans]
                assert all(any(form in one or one in form for form in value.forms) for one in said)


def test_copies_have_other_names_and_words(calls: Corpus, larger: Corpus) -> None:
    n = len(calls.chunks)
    assert [c.text for c in larger.chunks[:n]] == [c.text for c in calls.chunks]
    assert len(set(larger.classes)) == 3 * len(calls.classes)
    names = set(find_varied_names(calls).names)
    for old, new in zip(calls.chunks, larger.chunks[n:], strict=False):
        assert [v.category for v in old.values] == [v.category for v in new.values]
        for a, b in zip(old.values, new.values, strict=True):
            told = names.intersection(re.findall(r"\w+", a.key)) if a.category != "Date" else set()
            assert a.key == b.key or told  # a recycled word may come back to its own place
    keys = {v.key for c in calls.chunks for v in c.values if v.category != "Date"}
    more = {v.key for c in larger.chunks for v in c.values if v.category != "Date"}
    assert len(more) > 1.5 * len(keys)
    assert repeat_corpus(calls, 3 * n) == larger  # the same whenever it is made


def test_names_are_rewritten_as_they_stand() -> None:
    names = {"acme": "bravo", "sic": "ktqzo"}
    assert rename_words("ACME's SIC and Acme Corp., acme", names) == "BRAVO's KTQZO and Bravo Corp., bravo"


def test_every_stage_is_measured_or_left_out(calls: Corpus) -> None:
    small = measure_stages(calls, 60, 60.0, {})
    assert small["n"] >= 1 and not small["skipped"]
    assert set(small["memory after"]) == set(small["seconds"])
    slow = summarise_stages([small]) | {"words changed": (small["n"], 1e6, 1.0), "write": (small["n"], 1e6, 1.0)}
    again = measure_stages(calls, 60, 60.0, slow)
    assert set(again["skipped"]) == {"words changed"}  # nothing else needs it
    assert "left out" in "\n".join(format_table([small, again]))


def test_exponents() -> None:
    small = {"n": 100, "seconds": {"a": 1.0, "b": 2.0, "c": 1.0}}
    large = {"n": 1000, "seconds": {"a": 10.0, "b": 200.0}}
    assert compute_exponents(small, large) == {"a": pytest.approx(1.0), "b": pytest.approx(2.0)}
    assert summarise_stages([small, large]) == {"a": (1000, 10.0, 1.0), "b": (1000, 200.0, pytest.approx(2.0))}

"""Texts written for training: every mark counts, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.train.corpus import Recipe, Source, load_corpus
from allonym.train.examples import ALL, BEGIN, O
from allonym.train.written import parse_marks, read_written_records

PIECES = st.lists(
    st.tuples(st.text("ab .,:\n", max_size=8), st.sampled_from("POLXNM"), st.text("ab 1", min_size=1, max_size=6))
)


@given(PIECES)
def test_marks_become_spans(pieces):
    text, spans = parse_marks("".join(f"{plain}[{letter}:{name}]" for plain, letter, name in pieces))
    assert text == "".join(plain + name for plain, _, name in pieces)
    assert [(s["text"], s["label"] in "NDC") for s in spans] == [(name, letter == "N") for _, letter, name in pieces]
    assert all(s["label"] == letter for s, (_, letter, _) in zip(spans, pieces, strict=True) if letter != "N")
    assert all(text[s["start"] : s["end"]] == s["text"] for s in spans)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("04.11.91", "D"), ("12/3", "D"), ("9 May", "D"), ("May 3rd, 1987", "D"), ("4 November 1991", "D"),
        ("WKS-DRM-0916", "C"), ("07700 900 437", "C"), ("QJ8 RTB", "C"), ("B4471", "C"), ("SW1A 2AA", "C"),
        ("42", "N"), ("5th", "N"), ("oh seven seven", "N"), ("ann@example.org", "N"), ("ann22@example.org", "N"),
    ],
)  # fmt: skip
def test_dates_and_codes_are_told_from_other_numbers(text, label):
    assert [s["label"] for s in parse_marks(f"x [N:{text}] y")[1]] == [label]


def test_the_texts_are_whole():
    records = list(read_written_records())
    assert len({r["id"] for r in records}) == len(records) > 100
    for record in records:
        assert record["meta"]["kind"] and not re.search(r"\[[A-Z]:|[«‹]", record["text"]), record["id"]
        assert all(s["text"] == s["text"].strip() for s in record["spans"]), record["id"]


def test_unmarked_words_are_no_names_and_doubtful_ones_anything(tmp_path: Path):
    recipe = Recipe("r", (Source("written", whole=True),))
    [(_, examples)] = list(load_corpus(recipe, tmp_path))
    assert len(examples) == len(list(read_written_records()))
    masks = [mask for example in examples for mask in example.allowed]
    named = BEGIN["PERSON_FIRSTNAME"] | BEGIN["CITY"]
    assert sum(bool(mask & O) and not mask & named for mask in masks) > len(masks) / 2
    assert any(mask == ALL for mask in masks) and any(mask & named and not mask & O for mask in masks)

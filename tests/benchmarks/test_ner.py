"""The figures of benchmarks/ner.py, counted by hand on small texts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from benchmarks.ner import compute_figures, count_text, imitate_speech, mark_findings, read_text

from allonym.document import Span
from allonym.train.labelmap import load_default_map


def record(marked: str, source: str = "") -> dict[str, Any]:
    """``{Ada|PER} met {Bo|PER}`` as a record."""
    text, spans, at = "", [], 0
    for found in re.finditer(r"\{([^|{}]+)\|([\w-]+)\}", marked):
        text += marked[at : found.start()]
        spans.append({"start": len(text), "end": len(text) + len(found[1]), "label": found[2]})
        text += found[1]
        at = found.end()
    return {"id": "1", "text": text + marked[at:], "spans": spans, "meta": {"source": source}}


def scored(gold: dict[str, Any], found: str, groups: str = "") -> dict[str, Any]:
    wanted = frozenset(groups.split())
    text = read_text(gold, "", load_default_map(), wanted)
    predicted = record(found)
    assert predicted["text"] == gold["text"]
    spans = [Span(s["start"], s["end"], s["label"], 1.0, "test") for s in predicted["spans"]]
    annotated = frozenset(g for m in text.gold for g in m.groups)
    return compute_figures(count_text(text, mark_findings(text.text, spans), annotated), 2.0)


def test_all_right() -> None:
    gold = record("{Ada Brook|PER} of {Acme|ORG} went to {Rome|LOC}.")
    row = scored(gold, "{Ada|PERSON_FIRSTNAME} {Brook|PERSON_LASTNAME} of {Acme|ORGANIZATION} went to {Rome|CITY}.")
    assert (row["strict_f1"], row["blind_f1"], row["covered"], row["needless"]) == (1, 1, 1, 0)
    assert (row["leaked_whole"], row["leaked_part"], row["leaked_whole_typed"]) == (0, 0, 0)
    assert (row["entities"], row["tokens"], row["outside_tokens"], row["words_per_s"]) == (3, 4, 4, 4)


def test_wrong_type_is_a_leak_in_one_count_only() -> None:
    row = scored(record("{Rome|ORG} beat {Milan|ORG}"), "{Rome|CITY} beat {Milan|ORGANIZATION}")
    assert (row["strict_precision"], row["strict_recall"]) == (0.5, 0.5)
    assert (row["blind_precision"], row["blind_recall"]) == (1, 1)
    assert (row["leaked_whole"], row["leaked_whole_typed"], row["covered"]) == (0, 0.5, 1)


def test_part_and_whole() -> None:
    gold = record("{Ada Brook|PER}, {Bo Day|PER}, {Cy|PER} and {Di|PER}.")
    row = scored(gold, "{Ada|PERSON} Brook, Bo Day, {Cy|PERSON} and {Di|PERSON}.")
    assert (row["leaked_whole"], row["leaked_part"]) == (0.25, 0.25)
    assert row["covered"] == 0.5
    assert row["strict_recall"] == 0.5
    assert row["strict_precision"] == pytest.approx(2 / 3, abs=1e-4)
    assert row["labels"]["PER"]["leaked_part"] == 0.25


def test_half_a_word_is_not_covered_and_marks_are_no_leak() -> None:
    row = scored(record("{U.S.|LOC} and {Romania|LOC}"), "{U.S|COUNTRY}. and {Roman|COUNTRY}ia")
    assert (row["leaked_whole"], row["leaked_part"]) == (0.5, 0)
    assert (row["tokens"], row["covered"]) == (5, 0.6)


def test_groups_that_are_not_annotated_are_neither_right_nor_wrong() -> None:
    row = scored(
        record("{Ada|PER} came on Monday from Rome."), "{Ada|PERSON} came on {Monday|DATE} {from|PERSON} Rome."
    )
    assert row["strict_precision"] == 0.5
    assert row["needless"] == 0.1667  # "from" of six: came on Monday from Rome .
    over = scored(record("{May Day|PER} came"), "{May Day|DATE} came")
    assert (over["strict_precision"], over["blind_precision"]) == (0, 1)


def test_labels_that_mean_nothing_are_left_out() -> None:
    row = scored(record("{Ada|PER} has {seven|CARDINAL} cats"), "{Ada|PERSON} has {seven|PERSON} cats")
    assert (row["strict_precision"], row["outside_tokens"], row["needless"], row["entities"]) == (1, 2, 0, 1)


def test_misc_is_right_with_any_of_its_groups() -> None:
    row = scored(record("the {French|MISC} {Open|MISC}"), "the {French|ORIGIN} {Open|EVENT}")
    assert row["strict_f1"] == 1
    assert row["groups"]["MISC"]["strict_recall"] == 1


def test_nested_spans_count_once() -> None:
    gold = record("{Jan Nowak|persName} came", "nkjp")
    gold["spans"] += [
        {"start": 0, "end": 3, "label": "persName-forename"},
        {"start": 4, "end": 9, "label": "persName-surname"},
    ]
    assert scored(gold, "{Jan|PERSON_FIRSTNAME} {Nowak|PERSON_LASTNAME} came")["strict_f1"] == 1
    parts = record("{Jan|FIRSTNAME} {Nowak|LASTNAME}, {Ola|FIRSTNAME} came")
    row = scored(parts, "{Jan Nowak|PERSON}, {Ola|PERSON} came")
    assert (row["strict_f1"], row["entities"]) == (1, 2)


def test_neighbours_of_one_type_stay_two() -> None:
    assert scored(record("{Ada|PER} {Bo|PER}"), "{Ada|PERSON} {Bo|PERSON}")["strict_f1"] == 1


def test_scoring_some_groups_only() -> None:
    gold = record("{Ada|PER} of {Acme|ORG} in {Rome|LOC}")
    row = scored(gold, "{Ada|PERSON} of {Acme|PERSON} in {Rome|CITY}", "PERSON")
    assert (row["strict_precision"], row["strict_recall"], row["entities"]) == (0.5, 1, 1)
    assert (row["outside_tokens"], row["needless"]) == (2, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Hello, {Ada O'Neil|PER}!", "hello {ada o'neil|PER}"),
        ("In the {U.S.|LOC}, 4.5% rose.", "in the {u s|LOC} 4.5% rose"),
        ("{Jean-Luc|PER} (of {İzmir|LOC})", "{jean luc|PER} of {i\u0307zmir|LOC}"),
    ],
)
def test_lowered(before: str, after: str) -> None:
    given, wanted = imitate_speech(record(before)), record(after)
    assert given["text"] == wanted["text"]
    assert given["spans"] == wanted["spans"]

"""benchmarks/round_trip.py from texts to counts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from benchmarks.round_trip import (
    Case,
    Job,
    anonymise_case,
    is_complete,
    list_strata,
    make_english_cases,
    make_polish_cases,
    read_cache,
    read_cases,
    report_operator,
    run_case,
    write_cache,
)

from allonym.document import Span
from allonym.plan import Edit, Plan, digest

TEXT = "Ada Brook, Bo Day and Cy Moor of Quill left Lisbon for the House of the Two Green Lanterns."


def case(text: str = TEXT, *marked: tuple[str, str]) -> Case:
    found = marked or (
        ("Ada Brook", "PERSON"),
        ("Bo Day", "PERSON"),
        ("Cy Moor", "PERSON"),
        ("Quill", "ORGANIZATION"),
        ("Lisbon", "CITY"),
        ("House of the Two Green Lanterns", "FACILITY"),
    )
    spans = tuple(Span(text.index(n), text.index(n) + len(n), label, 1.0, "given") for n, label in found)
    return Case("made up", "en", text, spans)


def job(*rewriters: str, operators: tuple[str, ...] = ("tag",)) -> Job:
    return Job(operators, rewriters, 1, True, False)


def test_polish_sentences_are_joined_until_there_are_enough_words_and_mentions() -> None:
    rows = [
        {"id": str(i), "text": f"Zdanie numer {i} mówi o Annie i o Janku z Quill.", "spans": spans(i)}
        for i in range(20)
    ]
    texts = list(make_polish_cases(rows))
    assert [t.id for t in texts] == ["0", "4", "8", "12", "16"]
    assert all(len(t.text.split()) >= 35 and len(t.spans) == 8 for t in texts)
    assert all(t.text[s.start : s.end] in ("Annie", "Janku") for t in texts for s in t.spans)
    assert {s.label for s in texts[0].spans} == {"PERSON", "LOCATION"}


def spans(i: int) -> list[dict[str, object]]:
    text = f"Zdanie numer {i} mówi o Annie i o Janku z Quill."
    return [
        {"start": text.index("Annie"), "end": text.index("Annie") + 5, "label": "PER"},
        {"start": text.index("Janku"), "end": text.index("Janku") + 5, "label": "LOC"},
    ]


def test_as_many_texts_are_taken_as_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "given.jsonl"
    rows = [
        {
            "id": str(i),
            "text": f"Zdanie numer {i} mówi o Annie i o Janku z Quill.",
            "spans": spans(i),
            "meta": {"lang": "pl"},
        }
        for i in range(20)
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    assert sorted(c.id for c in read_cases([path], 3, 1)) == ["0", "4", "8"]
    assert len(read_cases([path], 100, 1)) == 5


def test_documents_are_cut_at_sentence_ends() -> None:
    sentence = "Write to ada.brook@example.com or to bo.day@example.org, or call 555-010-1234 before Monday. "
    texts = make_english_cases({"id": "d", "text": sentence * 9})
    assert len(texts) > 1
    assert all(35 <= len(t.text.split()) <= 120 and len(t.spans) >= 5 and t.text.endswith("Monday.") for t in texts)
    assert all(t.text[s.start : s.end].strip() for t in texts for s in t.spans)


def test_what_is_hard_about_a_text() -> None:
    assert list_strata(case()) == {"adjacent, one type", "long (4 words or more)"}
    assert list_strata(case(TEXT, ("Bo Day", "PERSON"), ("Quill", "ORGANIZATION"))) == set()


def test_a_plan_that_misses_a_mention_is_incomplete() -> None:
    one = case()
    assert is_complete(one, anonymise_case(one, "tag"))
    assert not is_complete(one, Plan(digest(TEXT)))
    half = Plan(digest(TEXT), (Edit(0, 9, "[PERSON_1]", "PERSON", 1, "tag@1"),))
    assert not is_complete(one, half)


def test_texts_and_findings_survive_the_cache(tmp_path: Path) -> None:
    made = [case(), Case("2", "pl", "Quill", (Span(0, 5, "ORGANIZATION"),), frozenset({0}))]
    write_cache(tmp_path / "c.jsonl.gz", made)
    assert read_cache(tmp_path / "c.jsonl.gz") == made
    with gzip.open(tmp_path / "c.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert json.loads(next(lines))["id"] == "made up"


@pytest.mark.parametrize("operator", ["tag", "wild_tag"])
def test_untouched_and_decorated_texts_come_back(operator: str) -> None:
    rows = run_case(case(), job("none", "bold", "synonyms", operators=(operator,)))
    assert [r["class"] for r in rows[:3]] == ["right"] * 3
    assert [r["tally"].unchanged for r in rows[:3]] == [True, False, True]
    assert all(r["encoded"] == "complete" for r in rows)
    tally = rows[1]["tally"]
    assert (tally.right, tally.entities_back, sum(tally.mentions.values())) == (1, 1, 6)


def test_the_report_counts_texts_and_mentions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_case(case(), job("none", "bold", "summary"))
    figures = report_operator(rows, {"made up": list_strata(case())}, "tag")
    assert figures["encode"] == 1
    assert figures["all"]["texts"] == len(rows)
    assert figures["none"]["right"] == 1
    assert figures["none"]["restored_own_surface"] == 1
    assert figures["long (4 words or more)"]["texts"] == len(rows)
    assert "P5: 93.23 %" in capsys.readouterr().out


def test_what_cannot_be_anonymised_is_a_failure_of_encoding() -> None:
    overlapping = Case("x", "en", TEXT, (Span(0, 9, "PERSON"), Span(4, 9, "PERSON")))
    rows = run_case(overlapping, job("none"))
    assert [r["encoded"] for r in rows] == ["DataError"]
    assert "tally" not in rows[0]

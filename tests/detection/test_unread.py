"""Names, numbers and addresses in passages that no detector of names reads: marked sentences, and texts whose language
their fields tell."""

from __future__ import annotations

import json
from pathlib import Path

from tests.replace.pseudonyms import marked
from tests.rows import check_each_row

from allonym.detection.languages import Passage, identify_passages
from allonym.detection.listed_names import find_listed_names
from allonym.detection.unread_names import find_names_by_capitals
from allonym.detection.unread_values import find_values_in_passages, read_unread_rules
from allonym.document import Reach, merge_intervals
from allonym.labels import TAXONOMY

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "unread_passages.jsonl").read_text("utf-8").splitlines()
]


def find_all(text, language):
    passages = [Passage(0, len(text), language)]
    spans = [*find_values_in_passages(text, passages), *find_listed_names(text, passages)]
    return [*spans, *find_names_by_capitals(text, passages, Reach((s.start, s.end) for s in spans))]


@check_each_row("language, text", [(case["language"], case["text"]) for case in CASES])
def test_what_is_marked_is_covered_and_the_rest_stays(language, text):
    bare, marks = marked(text)
    spans = find_all(bare, language)
    reach = Reach(merge_intervals((s.start, s.end) for s in spans))
    inside = Reach((m.start, m.end) for m in marks)
    for mark in marks:
        assert reach.contains(mark.start, mark.end), f"left: {bare[mark.start : mark.end]}"
    assert [bare[s.start : s.end] for s in spans if not inside.touches(s.start, s.end)] == []


def test_every_rule_for_such_passages_has_a_label_and_a_case_that_needs_it():
    sources = {span.source for case in CASES for span in find_all(marked(case["text"])[0], case["language"])}
    for rule in read_unread_rules():
        assert rule.label in TAXONOMY
        assert f"rules:{rule.name}" in sources, rule.name


def test_rows_of_bodies_and_a_long_margin_do_not_hang():
    bodies = "Klinik " * 50_000
    assert list(find_names_by_capitals(bodies, [Passage(0, len(bodies), "de")], Reach(())))
    text = "\n" * 200_000 + "Pani Anna Nowak jest w domu. " * 2_000
    assert len(list(find_listed_names(text, [Passage(0, len(text), "pl")]))) >= 2_000


def test_a_form_is_in_the_language_of_its_fields():
    form = "Vorname: Ada\nNachname: Brook\nGeburtsort: Leeds\nUnterschrift: A. Brook\n"
    assert {p.language for p in identify_passages(form)} == {"de"}
    english = "Name: Ada Brook\nPlace of birth: Leeds\nProfession: nurse\nSignature: A. Brook\nDatum: 3\nVorname: Ada\n"
    assert {p.language for p in identify_passages(english)} <= {"", "en"}

"""What European languages call numbers, people, streets and companies: marked sentences, and sentences without marks.

A row with ``passage`` is told to be in its language: its words say too little in others.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

from tests.replace.pseudonyms import marked
from tests.rows import check_each_row

from allonym.detection.languages import Passage
from allonym.detection.listed_names import find_listed_names
from allonym.detection.rules import Ruleset, read_builtin_rules
from allonym.detection.selection import find_candidates
from allonym.detection.unread_values import find_values_in_passages
from allonym.document import Document, Reach
from allonym.labels import TAXONOMY
from allonym.policy import Policy

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "european_languages.jsonl").read_text("utf-8").splitlines()
]
RULES = Ruleset([rule for rule in read_builtin_rules() if rule.family == "european_languages"], lambda _: 0.5)


@cache
def load_policy() -> Policy:
    return Policy.load("default").with_(detectors=("rules", "speakers"))


def get_family(label: str) -> str:
    return TAXONOMY.get_family(label)


def find_in_passage(text, language):
    passage = Passage(0, len(text), language)
    return [*find_values_in_passages(text, [passage]), *find_listed_names(text, [passage])]


@check_each_row("language, text, passage", [(c["language"], c["text"], c.get("passage", False)) for c in CASES])
def test_what_is_marked_is_covered_and_labelled_and_the_rest_stays(language, text, passage):
    bare, marks = marked(text)
    found = find_candidates(Document("", bare), load_policy())
    found += find_in_passage(bare, language) if passage else []
    reach = Reach((s.start, s.end) for s in found)
    for mark in marks:
        assert reach.contains(mark.start, mark.end), f"left: {bare[mark.start : mark.end]}"
        labels = {get_family(s.label) for s in found if s.start < mark.end and mark.start < s.end and s.score >= 0.5}
        assert get_family(mark.label) in labels, labels
    inside = Reach((m.start, m.end) for m in marks)
    needless = [bare[s.start : s.end] for s in RULES(Document("", bare)) if not inside.touches(s.start, s.end)]
    assert needless == []


def test_eight_languages_have_fifty_sentences_each_and_some_without_marks():
    counts = Counter(case["language"] for case in CASES)
    plain = Counter(case["language"] for case in CASES if "{" not in case["text"])
    for language in "de es fr it nl pl pt sv".split():
        assert counts[language] >= 50 and plain[language] >= 7, language

"""benchmarks/technical.py: scores counted by hand, and floors for technical text."""

from __future__ import annotations

import pytest
from benchmarks.readers import parse_marks
from benchmarks.technical import TEXTS, Score, read_technical_texts, score_edits, score_texts

from allonym.plan import Edit

FALSE = {"default": 3.0, "chat": 1.0}
"""False alarms per 1,000 words at most."""


@pytest.mark.parametrize("policy", FALSE)
def test_technical_text_keeps_its_code_and_loses_what_is_planted(policy):
    texts = list(read_technical_texts(TEXTS[:1]))
    assert (
        sum(bool(place.referent) for text in texts for place in text.places) >= 60
        and len({text.kind for text in texts}) >= 15
    )
    score = sum(score_texts(texts, policy).values(), Score())
    assert not score.left
    assert score.figures()["false"] <= FALSE[policy], score.alarms
    assert not score.broken


@pytest.mark.parametrize("policy", ["default", "chat", "wild-tags"])
def test_data_and_code_still_parse(policy):
    texts = list(read_technical_texts(TEXTS[1:]))
    assert len(texts) == 30
    score = sum(score_texts(texts, policy, key=bytes(16)).values(), Score())
    assert not score.broken
    assert len(score.left) <= 5  # bare numbers that nothing names


def test_a_finding_counts_once_and_a_quote_that_goes_is_damage():
    text = parse_marks("t", "log", 'ask "«Ada Brook»" at port 8080')
    edits = [Edit(4, 15, "[PERSON_1]", "PERSON"), Edit(24, 28, "[NUMERIC_1]", "NUMERIC")]
    score = score_edits(text, edits, "ask [PERSON_1] at port [NUMERIC_1]")
    assert (len(score.alarms), score.left, len(score.broken)) == (1, [], 1)
    text = parse_marks("t", "json", '{"phone": «4158832947»}')
    score = score_edits(text, [Edit(10, 20, "[PHONE_1]", "PHONE_NUMBER")], '{"phone": [PHONE_1]}')
    assert (score.alarms, score.left, score.broken) == ([], [], ["t"])


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("yaml", "owner: «Ada Brook»", "owner: [PERSON_1]"),
        ("toml", "phone = «4158832947»", "phone = [PHONE_1]"),
        ("go", "call(«4158832947»)", "call([PHONE_1])"),
        ("sql", "SELECT 1 WHERE phone = «4158832947»", "SELECT 1 WHERE phone = [PHONE_1]"),
    ],
)
def test_a_tag_that_needs_quotes_is_damage(kind, before, after):
    text = parse_marks("t", kind, before)
    place, tag = text.places[0], after[text.places[0].start :].rstrip(")")
    assert score_edits(text, [Edit(place.start, place.end, tag, "X")], after).broken

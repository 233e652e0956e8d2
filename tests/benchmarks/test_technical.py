"""benchmarks/technical.py and benchmarks/prompts.py: floors for technical text and for prompts."""

from __future__ import annotations

import pytest
from benchmarks.technical import Score, Technical, read_technical_texts, score_edits, score_texts

from allonym.plan import Edit

FALSE = {"default": 3.0, "chat": 1.0}
"""False alarms per 1,000 words at most."""


@pytest.mark.parametrize("policy", FALSE)
def test_technical_text_keeps_its_code_and_loses_what_is_planted(policy):
    texts = list(read_technical_texts())
    assert sum(len(text.planted) for text in texts) >= 60 and len({text.kind for text in texts}) >= 15
    score = sum(score_texts(iter(texts), policy).values(), Score())
    assert not score.left
    assert score.figures()["false"] <= FALSE[policy], score.alarms
    assert score.broken == (["yaml-1"] if policy == "default" else [])  # a plain scalar of YAML cannot begin with "["


def test_a_finding_counts_once_and_a_quote_that_goes_is_damage():
    text = Technical("t", "log", 'ask "Ada Brook" at port 8080', ((5, 14),))
    edits = [Edit(4, 15, "[PERSON_1]", "PERSON"), Edit(24, 28, "[NUMERIC_1]", "NUMERIC")]
    score = score_edits(text, edits, "ask [PERSON_1] at port [NUMERIC_1]")
    assert (len(score.alarms), score.left, len(score.broken)) == (1, [], 1)
    text = Technical("t", "json", '{"phone": 4158832947}', ((10, 20),))
    score = score_edits(text, [Edit(10, 20, "[PHONE_1]", "PHONE_NUMBER")], '{"phone": [PHONE_1]}')
    assert (score.alarms, score.left, score.broken) == ([], [], ["t"])

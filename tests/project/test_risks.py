"""The order of a review: short texts are ranked by what is left in them, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym import anonymize
from allonym.document import Document
from allonym.evaluate.card_facts import find_rare_claims
from allonym.policy import Policy
from allonym.project.risks import RARE_FACT, Risk, assess_risk
from allonym.serial import to_plain

pytest.importorskip("scipy")

CASES = Path(__file__).resolve().parents[1] / "cases" / "rare_facts.jsonl"


def assess(text):
    policy = Policy.load("default")
    result = anonymize(text, policy)
    return assess_risk(Document("", text), result.text, result.plan.edits, policy)


def test_texts_with_rare_facts_come_before_plain_ones():
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    risks = {row["text"]: assess(row["text"]).expected for row in rows}
    rare, plain = ({row["text"]: risks[row["text"]] for row in rows if row["rank"] == k} for k in ("rare", "plain"))
    assert min(rare.values()) >= 0.5 > max(plain.values()), (rare, plain)


def test_a_rare_claim_is_shown_where_it_stands_in_the_original():
    text = "Hello Jim Quill. I am the only blind piano tuner in Leeds, sorry."
    risk = assess(text)
    [reason] = [reason for reason in risk.reasons if reason.tag == RARE_FACT]
    assert (reason.points, reason.mentions) == (3, 1) and risk.bound >= 3
    assert any("only blind piano tuner in Leeds" in text[p.start : p.end] for p in risk.proposals)
    assert Risk.from_dict(json.loads(json.dumps(to_plain(risk)))) == risk
    assert "Leeds" not in repr(risk)


@given(st.text(alphabet="Iam the only first was who whose n't'’.\n", max_size=300))
def test_claims_are_disjoint_stretches(text):
    position = 0
    for start, end in find_rare_claims(text):
        assert position <= start < end <= len(text)
        position = end

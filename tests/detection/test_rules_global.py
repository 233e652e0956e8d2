"""The rules that belong to no country, or to none that has a table of its own: one label at a time."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.detectors import find_label
from tests.rows import check_each_row

from allonym.checksums import get_validator
from allonym.detection import Detector
from allonym.detection.rules import build_detector, read_builtin_rules
from allonym.document import Document
from allonym.labels import TAXONOMY
from allonym.pattern import PatternRule
from allonym.policy import Policy

TABLE = Path(__file__).parent.parent / "cases" / "rules_global.jsonl"
CASES = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
FAMILIES = {"contact", "coordinates", "dates", "device", "finance", "generic", "health", "money", "network", "numbers"}
FAMILIES |= {"secrets", "named_numbers", "special_categories"}
OURS = [rule for rule in read_builtin_rules() if rule.family in FAMILIES]
LABELS = sorted({case["label"] for case in CASES})


def found(label: str, text: str, threshold: float = 0.5) -> list[str]:
    return [text[s.start : s.end] for s in find_label(label, text, threshold)]


@check_each_row("case", CASES)
def test_case(case: dict[str, object]) -> None:
    assert found(str(case["label"]), str(case["text"])) == case["find"]


@check_each_row("case", [c for c in CASES if c["find"]])
def test_position_does_not_matter(case: dict[str, object]) -> None:
    text = f"Überall. {'Nothing to see here. ' * 300}\n\n{case['text']}\n\n{'Nothing more to see. ' * 300}"
    assert found(str(case["label"]), text) == case["find"]


@check_each_row("label", sorted({rule.label for rule in OURS}))
def test_every_label_has_a_case_for_and_one_against(label: str) -> None:
    cases = [c for c in CASES if c["label"] == label]
    assert any(c["find"] for c in cases)
    assert any(not c["find"] for c in cases)


@check_each_row("rule", OURS)
def test_rule_is_well_formed(rule: PatternRule) -> None:
    assert rule.label in TAXONOMY
    assert not rule.validator or callable(get_validator(rule.validator))
    assert all(w == w.lower() for w in (*rule.context, *rule.unless))
    assert rule.context or rule.score >= 0.5 or rule.name == "url-quoted", "a weak rule needs words that make it strong"


@pytest.mark.parametrize(
    ("label", "with_context", "without"),
    [
        ("ABA_ROUTING_NUMBER", "our routing number: 011000015", "our total: 011000015"),
        ("SWIFT_CODE", "the BIC is BYLADEM1001", "the code is BYLADEM1001"),
        ("IMEI_HARDWARE_ID", "phone IMEI 356938035643809", "phone 356938035643809"),
        ("PHONE_NUMBER", "please call 3125550187", "we sold 3125550187"),
        ("OCCUPATION", "he is a plumber", "the plumber came"),
        ("DATE_OF_BIRTH", "birthday 1971-05-03", "delivered 1971-05-03"),
    ],
)
def test_context_decides_in_the_default_policy_only(label: str, with_context: str, without: str) -> None:
    assert found(label, with_context)
    assert not found(label, without)
    assert found(label, without, threshold=0.0)


@pytest.mark.parametrize(
    ("label", "disguised"),
    [
        ("IBAN_CODE", "XDE02120300000000202051"),
        ("CREDIT_CARD", "No4539578763621486"),
        ("IP_ADDRESS", "host10.20.30.40"),
        ("PHONE_NUMBER", "is(312)555-0187x"),
        ("EMAIL_ADDRESS", "kim@north-lake"),
    ],
)
def test_ends_do_not_touch_letters_or_digits(label: str, disguised: str) -> None:
    assert not found(label, disguised)


@given(st.text(alphabet=st.sampled_from("0123456789 .-:/@+()abcDEx#$€%ßé\n'\""), max_size=60))
@settings(max_examples=60)
def test_any_text_gives_spans_inside_it(text: str) -> None:
    everything = _all()
    document = Document("", text)
    spans = everything(document)
    assert all(0 <= s.start < s.end <= len(text) and 0 <= s.score <= 1 for s in spans)
    assert spans == everything(document)


@cache
def _all() -> Detector:
    return build_detector(Policy(name="p", threshold=0.0))

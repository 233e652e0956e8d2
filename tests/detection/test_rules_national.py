"""National identifiers and number plates: what the tables find, what they leave, and what holds for all tables."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import re2
from tests.rows import check_each_row

from allonym.checksums import get_validator
from allonym.detection.rules import Ruleset, build_words_pattern, read_builtin_rules
from allonym.document import Document
from allonym.labels import TAXONOMY
from allonym.pattern import PatternRule
from allonym.resolve import resolve

HERE = Path(__file__).resolve()
CASES = [
    json.loads(line)
    for line in (HERE.parents[1] / "cases" / "rules_national.jsonl").read_text("utf-8").split("\n")
    if line
]
TABLES = HERE.parents[2] / "src" / "allonym" / "detection" / "tables"
RULES = read_builtin_rules()


@cache
def ruleset(label: str, threshold: float) -> Ruleset:
    return Ruleset([rule for rule in RULES if rule.label == label], lambda _: threshold)


def found(case: dict[str, Any]) -> list[str]:
    spans = resolve(ruleset(case["label"], case.get("threshold", 0.0))(Document("", case["text"])))
    return [case["text"][s.start : s.end] for s in spans]


@check_each_row("case", CASES)
def test_cases(case: dict[str, Any]) -> None:
    assert found(case) == case["found"]


@check_each_row("case", [c for c in CASES if "above" in c])
def test_a_right_check_counts_more(case: dict[str, Any]) -> None:
    rules = ruleset(case["label"], 0.0)
    good = max(span.score for span in rules(Document("", case["text"])))
    assert good > max((span.score for span in rules(Document("", case["above"]))), default=-1.0)


def own_labels() -> list[str]:
    files = [*TABLES.glob("government_*.toml"), TABLES / "vehicles.toml"]
    rows = (row for file in files for row in tomllib.loads(file.read_text("utf-8"))["rule"])
    return sorted({row["label"] for row in rows})


@check_each_row("label", own_labels())
def test_every_label_has_its_cases(label: str) -> None:
    mine = [case for case in CASES if case["label"] == label]
    assert any(case["found"] and "threshold" in case for case in mine), "nothing found with the default threshold"
    assert any(not case["found"] and "threshold" not in case for case in mine), "no near miss"


WEAK_ALONE = ["US_DRIVER_LICENSE", "US_PASSPORT", "UK_PASSPORT", "IT_PASSPORT", "DE_BSNR", "IN_PASSPORT", "KR_PASSPORT"]


@pytest.mark.parametrize("label", WEAK_ALONE)
def test_a_bare_shape_needs_context(label: str) -> None:
    shapes = [case["text"] for case in CASES if case["label"] == label and case["found"] == [case["text"]]]
    assert shapes
    assert not any(ruleset(label, 0.5)(Document("", text)) for text in shapes)


def test_context_is_named_in_the_source() -> None:
    (span,) = ruleset("AU_TFN", 0.5)(Document("", "tax file number: 123 456 782"))
    assert "context(tax file" in span.source
    assert span.source.endswith("+valid")


def test_letters_of_other_scripts_may_touch_korean_and_thai_numbers() -> None:
    assert len(ruleset("KR_RRN", 0.5)(Document("", "번호는970218-1482193입니다"))) == 1
    assert len(ruleset("TH_TNIN", 0.5)(Document("", "เลขบัตรประชาชน1234545678781ครับ"))) == 1


def test_a_line_end_does_not_join_groups() -> None:
    assert not ruleset("AU_TFN", 0.0)(Document("", "123\n456 782"))
    assert not ruleset("US_SSN", 0.0)(Document("", "432\n19\n7460"))


@check_each_row("rule", RULES)
def test_every_rule_of_every_table(rule: PatternRule) -> None:
    options = re2.Options()
    options.log_errors = False
    for pattern in (rule.pattern, *(build_words_pattern(words) for words in (rule.context, rule.unless) if words)):
        assert re2.compile(pattern.encode(), options).groups >= 0
    assert re2.compile(rule.pattern.encode(), options).search(b"") is None, "matches the empty text"
    assert rule.label in TAXONOMY
    assert rule.country == "" or (len(rule.country) == 2 and rule.country.islower())
    assert rule.context_score >= rule.score or not rule.context
    if rule.validator:
        check = get_validator(rule.validator)
        for junk in ("", "x1 -." * 1000, "9" * 5000):
            assert check(junk) in (True, False)


def test_countries_are_named_as_iso_3166_names_them() -> None:
    import phonenumbers

    assert {rule.country.upper() for rule in RULES if rule.country} <= phonenumbers.SUPPORTED_REGIONS

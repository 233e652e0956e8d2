"""Findings of allonym and Presidio side by side."""

from __future__ import annotations

import pytest

from allonym.document import Document
from allonym.integrations.presidio_compare import Finding, compare_texts, count_by_kind, open_presidio
from allonym.policy import Policy

RULES = Policy.load("default").with_(detectors=("rules",))
TEXT = "Mail ada@example.com\nor call Wanda at 212-555-0147."


def find_two(text):
    return [Finding(9, 20, "URL"), Finding(29, 34, "PERSON")]


def test_each_finding_knows_what_the_other_covers():
    (compared,) = compare_texts([Document("a.txt", TEXT)], RULES, find_two)
    assert [(f.kind, coverage) for f, coverage in compared.ours] == [
        ("EMAIL_ADDRESS", "part"),
        ("PHONE_NUMBER", "alone"),
    ]
    assert [(f.kind, coverage) for f, coverage in compared.theirs] == [("URL", "both"), ("PERSON", "alone")]
    person = compared.theirs[1][0]
    assert (compared.get_line(person), compared.get_surface(person)) == (2, "Wanda")
    assert "Wanda" not in repr(compared)
    assert count_by_kind([compared])[0] == ("EMAIL_ADDRESS", 1, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning")
def test_presidio_runs_here_without_a_model():
    pytest.importorskip("presidio_analyzer", reason="Presidio's analyzer is not installed")
    assert Finding(5, 20, "EMAIL_ADDRESS") in open_presidio()(TEXT)

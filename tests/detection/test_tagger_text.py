"""The English tagger on text: where a finding ends, numbers and codes, titles."""

from __future__ import annotations

from tests.rows import check_each_row

import allonym
from allonym.detection import tagger
from allonym.document import Span


def test_no_finding_goes_on_in_the_next_cell_of_a_table():
    text = "Harold Beck\tLeeds\tAshdown Marine plc\nMary Stone\tBristol\tQuill Ltd\n"
    found = allonym.detect(text)
    assert not [s for s in found if "\t" in text[s.start : s.end]]
    assert {text[s.start : s.end] for s in found} >= {"Harold Beck", "Leeds", "Mary Stone", "Bristol"}


def test_what_stands_before_an_address_of_the_net_is_no_finding():
    for text in ("Mail ada@example.org, then bob@example.org.", "cc ada@example.org and bob@example.org"):
        assert {span.label for span in allonym.detect(text)} == {"EMAIL_ADDRESS"}


def test_a_code_is_no_address_and_a_time_stamp_a_date():
    text = "the unit B-4471-QX and 19700101T000000Z"
    findings = [Span(9, 18, "STREET_ADDRESS", 0.5, "tagger"), Span(23, 39, "STREET_ADDRESS", 0.5, "tagger")]
    assert [span.label for span in tagger._filter_identifying_findings(text, findings)] == ["GENERIC_ID", "DATE"]
    [code] = tagger._filter_identifying_findings("RiO 1198234", [Span(0, 11, "STREET_ADDRESS", 0.5, "tagger")])
    assert code.label == "GENERIC_ID"
    [address] = tagger._filter_identifying_findings("14 Mill Rd", [Span(0, 10, "STREET_ADDRESS", 0.5, "tagger")])
    assert address.label == "STREET_ADDRESS"


@check_each_row(
    "surface, label, score, wanted",
    [
        ("48,112", "DATE", 0.4, None),
        ("17:20", "DATE", 0.4, None),
        ("17.40", "DATE", 0.8, None),
        ("118.00", "DATE", 0.3, None),
        ("22.05", "DATE", 0.9, "DATE"),
        ("12.11.2020", "DATE", 0.9, "DATE"),
        ("2025/11874", "DATE", 0.9, "GENERIC_ID"),
        ("F-2024-17", "DATE", 0.9, "GENERIC_ID"),
        ("6620", "AGE", 0.9, "GENERIC_ID"),
        ("9" * 5000, "AGE", 0.9, "GENERIC_ID"),
        ("79", "AGE", 0.9, "AGE"),
        ("B2", "STREET_ADDRESS", 0.2, None),
        ("K2", "STREET_ADDRESS", 0.9, "STREET_ADDRESS"),
    ],
)
def test_numbers_that_are_no_dates_ages_or_addresses(surface, label, score, wanted):
    findings = tagger._filter_identifying_findings(
        f"at {surface} then", [Span(3, 3 + len(surface), label, score, "tagger")]
    )
    assert [span.label for span in findings] == ([wanted] if wanted else [])


def test_titles_are_no_findings():
    text = "Judge Wilmot sentenced him. This is my colleague Doctor White."
    assert [text[s.start : s.end] for s in allonym.detect(text)] == ["Wilmot", "White"]


def test_endless_words_name_nobody():
    for word in ("x" * 5000, "haha" * 30):
        assert allonym.anonymize(f"{word} Ada Brook came.").text == f"{word} [PERSON_1] came."

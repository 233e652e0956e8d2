"""Every name of a protected value is found, and other names are left alone."""

import pytest
from tests.rows import check_each_row

from allonym.document import Document, Span
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.swap.protected import (
    add_protected_rule,
    find_protected_label,
    find_protected_spans,
    insert_protected_spans,
    list_core_words,
)


def named(text: str, value: str, *aliases: str, kind: str = "COMPANY") -> list[str]:
    return [text[s.start : s.end] for s in find_protected_spans(Document("d", text), value, kind, "COMPANY", aliases)]


@check_each_row(
    "value, text, expected",
    [
        # forms of the name
        ("Brenlor Corp", "We at Brenlor Corporation, or Brenlor's team, grew.", ["Brenlor Corporation", "Brenlor"]),
        ("Brenlor Energy Inc.", "Brenlor Energy, Inc. and Brenlor Energy", ["Brenlor Energy, Inc", "Brenlor Energy"]),
        ("The Quillmar Company", "Ask Quillmar or QUILLMAR today.", ["Quillmar", "QUILLMAR"]),
        ("Zolvent Aktiengesellschaft", "Zolvent AG's plants", ["Zolvent AG"]),
        ("Cimentos Dravo", "Cimentos Dravo grew, and so did Dravo.", ["Cimentos Dravo", "Dravo"]),
        ("Møllund Group", "Mollund said so, and Møllund did.", ["Mollund", "Møllund"]),
        ("Brenlor", "Brenlor, Inc. and Brenlor, too, with a Brenlor group", ["Brenlor, Inc", "Brenlor", "Brenlor"]),
        # an ampersand for and
        (
            "Lamp Shade and Beyond Inc",
            "Lamp Shade & Beyond sells; Lamp Shade grew.",
            ["Lamp Shade & Beyond", "Lamp Shade"],
        ),
        # spelled otherwise than in the metadata
        ("Nextrom Media Group", "Nexstrom is strong.", ["Nexstrom"]),
        ("Quvantiv Inc", "Qvantiv sells badges.", ["Qvantiv"]),
        ("Technolux", "TechnaLux and Techno Lux", ["TechnaLux", "Techno Lux"]),
        ("Brenlor", "BrenlorTV and myBrenlor", ["BrenlorTV", "myBrenlor"]),
        # acronyms
        ("Fondo Energetico Meridiano", "FEMSA grew. FEM too.", ["FEMSA", "FEM"]),
        ("Novel Systems and Support", "NS&S ships.", ["NS&S"]),
        ("QVE Aktiengesellschaft", "QVE and QVEAG report.", ["QVE", "QVEAG"]),
        # common words stand for nothing alone
        ("New Home Company Inc", "A new home. New York. The New Home Company. Home.", ["New Home Company"]),
        ("Healthcare Quorvex Trust", "Healthcare is dear; healthcare costs.", []),
        ("Clean Energy Options", "Our CEO spoke.", []),
        ("Apple Inc", "An apple a day, says Apple.", ["Apple"]),
        # nothing else
        ("Brenlor Energy", "Quillmar Energy and Bremen are others; energy is dear.", []),
    ],
)
def test_companies(value: str, text: str, expected: list[str]) -> None:
    assert named(text, value) == expected


@check_each_row(
    "text, expected",
    [
        ("Welcome to Ferovia's second quarter results call. Ferovia grew.", ["Ferovia", "Ferovia"]),
        ("Good day and welcome to the Ferovia Q3 2021 earnings call.", ["Ferovia"]),
        ("Welcome and thank you for joining the Ferovia conference call.", ["Ferovia"]),
        ("Here are Ferovia's first quarter results; Ferovia's plants.", []),
        ("Today we discuss Ferovia's third quarter results. Ferovia grew.", ["Ferovia", "Ferovia"]),
        ("Welcome to the third quarter results call of the firm.", []),
        ("Welcome to today's conference call. Welcome to the Q3 call.", []),
        ("We bought Ferovia last year. Ferovia grew.", []),
    ],
)
def test_how_a_call_introduces_its_company(text: str, expected: list[str]) -> None:
    assert named(text, "Grupo Uno Mexicano") == expected


def test_aliases_of_the_user_and_short_ones() -> None:
    assert named("FVA rose; the Roadster sells. All is well.", "Ferovia", "FVA", "Roadster") == ["FVA", "Roadster"]
    assert named("All rose, and ALL fell; we all saw it.", "Ferovia", "ALL") == ["ALL"]


def test_texts_without_capitals() -> None:
    assert named("welcome to brenlor's call. we at brenlor energy grew.", "Brenlor Energy") == [
        "brenlor",
        "brenlor energy",
    ]


def test_people_are_found_by_parts_of_their_names() -> None:
    text = "Nora Hale wrote this. Hale, as ever, and Nora too; hale and hearty."
    assert named(text, "Hale, Nora", kind="PERSON") == ["Nora Hale", "Hale", "Nora"]


def test_other_values_are_found_as_they_are() -> None:
    assert named("The verdict: not guilty. Not guilty!", "not guilty", kind="OTHER_IDENTIFYING_ATTRIBUTE") == [
        "not guilty",
        "Not guilty",
    ]
    assert named("In Westbrook, west brook.", "Westbrook", kind="LOCATION") == ["Westbrook"]


@check_each_row(
    "key, kind",
    [
        ("company", "COMPANY"),
        ("companyName", "COMPANY"),
        ("Ticker Symbol", "COMPANY"),
        ("hospital", "ORGANIZATION"),
        ("treating hospital", "ORGANIZATION"),
        ("author", "PERSON"),
        ("author_name", "PERSON"),
        ("name", "PERSON"),
        ("city", "LOCATION"),
        ("drug", "PRODUCT"),
        ("verdict", "OTHER_IDENTIFYING_ATTRIBUTE"),
    ],
)
def test_the_key_tells_the_kind(key: str, kind: str) -> None:
    assert find_protected_label(key) == kind


def test_bare_names() -> None:
    assert list_core_words("The Travelling Companies, Inc.") == ["travelling"]
    assert list_core_words("Inc") == ["inc"]


def test_tags_come_from_the_key() -> None:
    base = Policy.load("swap")
    same, label = add_protected_rule(base, "company")
    assert (same, label) == (base, "COMPANY")
    policy, label = add_protected_rule(base, "treating hospital")
    assert label == "PROTECTED_TREATING_HOSPITAL"
    assert policy.taxonomy.lineage(label) == (label, "ORGANIZATION")
    assert policy.taxonomy.get(label).kind == "direct"
    text = "Seen at Saint Orlo's."
    spans = find_protected_spans(Document("d", text), "Saint Orlo", "ORGANIZATION", label)
    from allonym.link import link

    plan = make_plan(Document("d", text), link(Document("d", text), spans, policy.taxonomy), policy)
    assert [e.replacement for e in plan.edits] == ["[Treating Hospital]"]
    assert add_protected_rule(policy, "treating hospital") == (policy, label)


@pytest.mark.parametrize(
    ("text", "found", "own", "expected"),
    [
        # a name that holds the protected one is its bearer's
        ("Brenlor Energy Partners", [(0, 23, "ORGANIZATION")], [(0, 7)], [(0, 23, "COMPANY")]),
        # but not where it is a list
        ("Brenlor and Quillmar", [(0, 20, "ORGANIZATION")], [(0, 7)], [(0, 7, "COMPANY"), (12, 20, "ORGANIZATION")]),
        # what is no name of an organisation is clipped
        ("the Brenlor phone", [(0, 17, "PRODUCT")], [(4, 11)], [(4, 11, "COMPANY"), (12, 17, "PRODUCT")]),
        ("Brenlor", [(0, 7, "PERSON")], [(0, 7)], [(0, 7, "COMPANY")]),
        ("Quillmar, Brenlor", [(0, 8, "ORGANIZATION")], [(10, 17)], [(0, 8, "ORGANIZATION"), (10, 17, "COMPANY")]),
        # an address stays whole
        ("ir@brenlor.example", [(0, 18, "EMAIL_ADDRESS")], [(3, 10)], [(0, 18, "EMAIL_ADDRESS")]),
        ("Quillmar", [(0, 8, "ORGANIZATION")], [], [(0, 8, "ORGANIZATION")]),
    ],
)
def test_findings_beside_the_protected_value(
    text: str, found: list[tuple[int, int, str]], own: list[tuple[int, int]], expected: list[tuple[int, int, str]]
) -> None:
    spans = [Span(a, b, label, 0.9) for a, b, label in found]
    protected = [Span(a, b, "COMPANY", 0.99) for a, b in own]
    out = insert_protected_spans(text, spans, protected)
    assert [(s.start, s.end, s.label) for s in out] == expected

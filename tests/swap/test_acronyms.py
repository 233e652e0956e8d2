"""Acronyms and long forms across documents (P1 3.2.3: CCIX stayed where its long form was swapped)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row
from tests.test_link import unmark

from allonym.document import Document
from allonym.link import link
from allonym.swap.acronyms import are_initials, can_abbreviate, is_acronym, link_acronyms
from allonym.swap.categories import group_values_by_chunk

LONG = "{Cache Coherent Interconnect for Accelerators|PRODUCT}"


def added(entities):
    """Per document, the mentions that no detector had found."""
    return tuple(tuple(sorted(s for e in some for s in e.spans if s.source == "acronym")) for some in entities)


def joined(*marked):
    documents, entities = [], []
    for i, text in enumerate(marked):
        plain, spans = unmark(text)
        documents.append(Document(str(i), plain))
        entities.append(link(documents[-1], spans).entities)
    return documents, link_acronyms(documents, entities)


def shown(documents, entities):
    return [
        {e.key.partition(":")[2]: [d.text[s.start : s.end] for s in e.spans] for e in some}
        for d, some in zip(documents, entities, strict=True)
    ]


def test_a_bare_acronym_beside_its_long_form_is_found():
    documents, out = joined(f"We chose {LONG}. CCIX helps, and CCIX's fast.", "Another call speaks of other things.")
    [first, second] = shown(documents, out)
    assert first == {
        "cache coherent interconnect for accelerators": ["Cache Coherent Interconnect for Accelerators", "CCIX", "CCIX"]
    }
    assert second == {}
    assert [len(some) for some in added(out)] == [2, 0]
    assert {s.label for s in added(out)[0]} == {"PRODUCT"}
    [values] = group_values_by_chunk(documents[0], out[0], [(0, len(documents[0].text))], ["Product"])
    assert [v.forms for v in values] == [("Cache Coherent Interconnect for Accelerators", "CCIX")]


@pytest.mark.parametrize(
    "told",
    [
        f"{LONG} (CCIX)",
        f"{LONG} (“CCIX”)",
        f"{LONG}, or CCIX,",
        f"CCIX ({LONG})",
        "{Cache Coherent Interconnect for Accelerators (CCIX)|PRODUCT}",
    ],
)
def test_a_definition_holds_in_all_documents(told):
    documents, out = joined(f"They sell {told} now.", "Our CCIX grew. {CCIX|ORGANIZATION} again.")
    keys = [[e.key for e in some] for some in out]
    assert keys == [["PRODUCT:cache coherent interconnect for accelerators"]] * 2
    assert shown(documents, out)[1] == {"cache coherent interconnect for accelerators": ["CCIX", "CCIX"]}


def test_an_undetected_long_form_before_a_detected_acronym_is_found():
    documents, out = joined("The net promoter score ({NPS|TERM}) rose.", "Nothing here.")
    assert shown(documents, out)[0] == {"nps": ["net promoter score", "NPS"]}


def test_an_organization_of_another_document_is_found_by_its_initials():
    documents, out = joined("{Harbour Web Works|ORGANIZATION} grew.", "We use {HWW|ORGANIZATION} and HWW alone.")
    assert [e.key for e in out[1]] == ["ORGANIZATION:harbour web works"]
    assert shown(documents, out)[1] == {"harbour web works": ["HWW", "HWW"]}


def test_initials_of_two_are_those_of_none():
    _, out = joined(
        "{Harbour Web Works|ORGANIZATION}.", "{Hill Water Wells|ORGANIZATION}.", "{HWW|ORGANIZATION} and HWW"
    )
    assert [e.key for e in out[2]] == ["ORGANIZATION:hww"]
    assert added(out)[2] == ()


def test_documents_that_define_an_acronym_differently_keep_their_own():
    documents, out = joined(
        "{Harbour Web Works|ORGANIZATION} (HWW). HWW grew.",
        "{Hill Water Wells|ORGANIZATION} (HWW). HWW fell.",
        "HWW too.",
    )
    assert shown(documents, out) == [
        {"harbour web works": ["Harbour Web Works", "HWW", "HWW"]},
        {"hill water wells": ["Hill Water Wells", "HWW", "HWW"]},
        {},
    ]


def test_what_all_documents_say_is_no_acronym_of_one():
    others = ["Our CEO spoke."] * 4
    documents, out = joined("{Clean Energy Ontario|ORGANIZATION} and its CEO.", *others)
    assert shown(documents, out)[0] == {"clean energy ontario": ["Clean Energy Ontario"]}


def test_people_and_dates_have_no_acronyms_here():
    _, out = joined("{Mara Ilse Orr|PERSON} (MIO) came {May in Oslo|DATE}. MIO left.")
    assert added(out) == ((),)


def test_mentions_never_overlap():
    documents, out = joined(f"{LONG} (CCIX), {{CCIX Forum|ORGANIZATION}}, a CCIX/PCI bridge and CCIX-based boards.")
    spans = sorted(s for e in out[0] for s in e.spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert [documents[0].text[s.start : s.end] for s in added(out)[0]] == ["CCIX"]


def test_what_is_found_stays_found():
    marked = [f"{LONG} (CCIX) by {{Harrow Ltd|ORGANIZATION}}.", "{the Kite|PRODUCT} and {Kite|PRODUCT}"]
    before = [sorted(unmark(m)[1]) for m in marked]
    _, out = joined(*marked)
    for spans, some in zip(before, out, strict=True):
        assert set(spans) <= {s for e in some for s in e.spans}
    assert len(out[1]) == 1  # the determiner does not make two of them
    assert "Kite" not in repr(out)


@check_each_row(
    "acronym, words, fits",
    [
        ("CCIX", "cache coherent interconnect for accelerators", True),
        ("NASA", "national aeronautics and space administration", True),
        ("CFPB", "consumer financial protection bureau", True),
        ("BOA", "bank of america", True),
        ("BA", "bank of america", True),
        ("R&D", "research and development", True),
        ("CCI", "cache coherent interconnect for accelerators", False),
        ("ACC", "cache coherent interconnect", False),
        ("X", "cross", False),
    ],
)
def test_initials(acronym, words, fits):
    assert are_initials(acronym, words.split()) is fits


def test_letters_of_a_definition():
    assert can_abbreviate("XML", "Xtensible Markup Language")
    assert can_abbreviate("EBITDA", "earnings before interest, taxes, depreciation and amortisation")
    assert not can_abbreviate("EBITDA", "earnings")
    assert not can_abbreviate("KPI", "cost indicators")


@given(st.text("ACHKxyz &.-19é(", max_size=12))
def test_no_surface_breaks_the_tests_of_an_acronym(surface):
    if is_acronym(surface):
        assert sum(c.isupper() for c in surface) >= 2 and " " not in surface
    assert not are_initials(surface, [])
    assert not can_abbreviate(surface, "")

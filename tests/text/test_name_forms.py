"""Where a text names one person."""

from __future__ import annotations

import pytest

from allonym.text.name_forms import NameForms

FORMS = NameForms.of_names(["Margaret Jane Whitcombe", "Peg", "Zoë Müller-Hart"])
SHARED = NameForms.of_names(["Margaret Whitcombe"], {"margaret", "hale", "peter", "whitcombe"})


def list_found(forms, text, **more):
    return [text[start:end] for start, end in forms.find(text, **more)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Margaret Whitcombe, Whitcombe, Margaret", ["Margaret Whitcombe, Whitcombe, Margaret"]),
        ("M. Whitcombe and MARGARET J. WHITCOMBE", ["M. Whitcombe", "MARGARET J. WHITCOMBE"]),
        ("Maggie Whitcombe's hat", ["Maggie Whitcombe"]),
        ("margaret.whitcombe@x.org, mwhitcombe, margaretwhitcombe1", None),
        ("Mail Margaret.Whitcombe79@x.org", ["Margaret.Whitcombe79"]),
        ("Mrs Whitcombe and the Whitcombes", ["Whitcombe", "Whitcombes"]),
        ("Peg took the peg", ["Peg"]),
        ("Zoe Mueller-Hart; zoé müller-hart", ["Zoe Mueller-Hart", "zoé müller-hart"]),
        ("all small: margaret came", ["margaret"]),
        ("Maggie came; Mark Whit combed", []),
        ("", []),
    ],
)
def test_forms_of_a_name(text, expected):
    names = list_found(FORMS, text)
    assert len(names) == 3 if expected is None else names == expected


def test_words_of_others_count_only_where_the_person_is_named():
    assert list_found(SHARED, "Margaret came. Whitcombe too.") == []
    assert list_found(SHARED, "Margaret came.", is_named=True) == ["Margaret"]
    text = "Margaret Whitcombe saw Margaret Hale and Peter Whitcombe. Margaret left."
    assert list_found(SHARED, text) == ["Margaret Whitcombe", "Margaret"]


def test_short_parts_may_be_left_out():
    assert list_found(FORMS, "Peg and Whitcombe", least=5) == ["Whitcombe"]


def test_addresses_count_as_a_whole_and_their_words_are_no_names():
    forms = NameForms.of_names(["Ada Brook", "ada84@example.com", "https://brook.example/cv"])
    text = "Com and CV by ADA84@example.com; bada84@example.com, ada84@example.com.au, https://brook.example/cv"
    assert list_found(forms, text) == ["ADA84@example.com", "https://brook.example/cv"]


def test_full_names_alone():
    full = FORMS.keep_full_names()
    assert list_found(full, "Margaret came. Zoë Müller-Hart left.") == ["Zoë Müller-Hart"]
    assert list_found(NameForms.of_names(["Peg"]).keep_full_names(), "Peg left.") == ["Peg"]


def test_a_double_name_of_somebody_else_stays_whole():
    forms = NameForms.of_names(["Tom Hale"], {"ada", "brook-hale"})
    text = "Tom Hale met Ada Brook-Hale. Hale left."
    assert list_found(forms, text) == ["Tom Hale", "Hale"]
    assert list_found(forms, "Ada Brook-Hale came.") == []

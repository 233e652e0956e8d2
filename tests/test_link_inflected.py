"""Polish names in their endings: which person they name, and pseudonyms in the same case."""

from __future__ import annotations

import pytest
from tests.rows import check_each_row

import allonym
from allonym.document import Document, Span
from allonym.link import link
from allonym.link.inflected import find_base_forms_of_names
from allonym.pipeline import replace_found
from allonym.policy import Policy
from allonym.text.inflection import inflect_word, list_bases_in_case

KEY = b"a key only for the tests, 32 byte"
POLICY = Policy.load("pseudonyms").with_(name="auto", language="auto")
FRAME = "Wczoraj rozmawiałem o tym w biurze: {}. Powiedziano mi, że umowa jest już gotowa i czeka na podpis."


def mark(names):
    """A Polish text with names, and their spans."""
    text, spans = FRAME.partition("{}")[0], []
    for n, name in enumerate(names):
        text += ", " * (n > 0)
        spans.append(Span(len(text), len(text) + len(name), "PERSON"))
        text += name
    return text + FRAME.partition("{}")[2], spans


@check_each_row(
    "names, count",
    [
        (["Tomasz Kowalski", "Tomaszem Kowalskim", "Tomasza Kowalskiego", "Kowalskiemu"], 1),
        (["Anna Zielińska", "Anny Zielińskiej", "Anną Zielińską", "Annie Zielińskiej", "Zielińską"], 1),
        (["Marka Nowaka", "Markiem Nowakiem", "Markowi Nowakowi"], 1),
        (["Ewę Wronę", "Ewą Wroną", "Ewy Wrony"], 1),
        (["Tomasz Kowalski", "Tomaszem Wójcikiem"], 2),
        (["Igora", "Igor", "Igorem"], 1),
        (["Jurewicza", "Edwardem Jurewiczem"], 1),
    ],
)
def test_endings_make_no_other_person(names, count):
    text, spans = mark(names)
    assert len(link(Document("", text), spans).entities) == count


def test_names_that_are_in_no_ending_and_other_languages_stay():
    text, spans = mark(["Tomasz Kowalski", "Anna Zielińska", "Ada Brook"])
    assert find_base_forms_of_names(text, spans) == {}
    english = "The minutes were sent to Marka Nowaka and Anny Brook before the meeting ended on Friday."
    places = [Span(25, 37, "PERSON"), Span(42, 52, "PERSON")]
    assert find_base_forms_of_names(english, places) == {}
    (form,) = find_base_forms_of_names(*mark(["Tomaszem Kowalskim"])).values()
    assert "Kowalski" not in repr(form)


def test_pseudonyms_have_the_case_of_the_name():
    text, spans = mark(["Tomasz Kowalski", "Tomaszem Kowalskim", "Tomasza Kowalskiego"])
    result = replace_found(Document("", text), spans, POLICY, key=KEY)
    base, *inflected = (edit.replacement.split() for edit in result.plan.edits)
    for words, case in zip(inflected, (3, 0), strict=True):
        assert words != base
        for new, word in zip(words, base, strict=True):
            assert new == word or word.lower() in [b for b, _ in list_bases_in_case(new.lower(), "pl", case)]
    assert allonym.restore(result.text, plan=result.plan).text == text


@pytest.mark.parametrize(
    ("word", "case", "base"),
    [("kowalskim", 3, "kowalski"), ("nowaka", 0, "nowak"), ("ewelinę", 2, "ewelina"), ("zielińskiej", 1, "zielińska")],
)
def test_bases_in_a_case_have_that_form(word, case, base):
    bases = dict(list_bases_in_case(word, "pl", case))
    assert inflect_word(base, bases[base]) == word

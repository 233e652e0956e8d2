"""Public figures: full names stay where a policy says so, and private people of the same name do not."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym.detection.public_figures import drop_public_figures, read_public_names
from allonym.document import Span
from allonym.kb import KnowledgeBase
from allonym.labels import TAXONOMY


def find_kept(text: str, *marked: str, source: str = "tagger") -> list[str]:
    """The marked people whose findings are dropped; further marks are ``LABEL=surface``."""
    spans = []
    for mark in marked:
        label, _, surface = mark.rpartition("=")
        start = text.index(surface)
        spans.append(Span(start, start + len(surface), label or "PERSON", 0.9, source if not label else "rules:x"))
    left = drop_public_figures(text, spans, TAXONOMY)
    return [text[s.start : s.end] for s in spans if s not in left]


@check_each_row(
    "text, marked, kept",
    [
        ("Who was Abraham Lincoln?", ["Abraham Lincoln"], ["Abraham Lincoln"]),
        ("Was President Abraham Lincoln tall?", ["President Abraham Lincoln"], ["President Abraham Lincoln"]),
        ("Ask Franklin D. Roosevelt's son.", ["Franklin D. Roosevelt's"], ["Franklin D. Roosevelt's"]),
        ("Plato taught.", ["Plato"], ["Plato"]),
        ("Is Sherlock Holmes real?", ["Sherlock Holmes"], ["Sherlock Holmes"]),
        ("Lincoln called.", ["Lincoln"], []),
        ("Abraham called.", ["Abraham"], []),
        ("Ada Brook called.", ["Ada Brook"], []),
        (
            "Abraham Lincoln spoke; then Lincoln left",
            ["Abraham Lincoln", "Lincoln left"[:7]],
            ["Abraham Lincoln", "Lincoln"],
        ),
        ("Call Abraham Lincoln on 415-883-2947.", ["Abraham Lincoln", "PHONE_NUMBER=415-883-2947"], []),
        ("Paul Newman, a@b.example", ["Paul Newman", "EMAIL_ADDRESS=a@b.example"], []),
        (
            "Paul Newman" + " and so on" * 30 + " a@b.example",
            ["Paul Newman", "EMAIL_ADDRESS=a@b.example"],
            ["Paul Newman"],
        ),
    ],
)
def test_full_names_stay_unless_the_text_makes_them_private(text, marked, kept):
    assert find_kept(text, *marked) == kept


def test_a_family_name_that_a_private_person_has_too_is_covered():
    text = "Abraham Lincoln is a hero of Joan Lincoln; Mr Lincoln agrees."
    spans = [Span(0, 15, "PERSON", 0.9, "tagger"), Span(29, 41, "PERSON", 0.9, "tagger")]
    spans.append(Span(46, 53, "PERSON", 0.9, "tagger"))
    assert [text[s.start : s.end] for s in spans] == ["Abraham Lincoln", "Joan Lincoln", "Lincoln"]
    assert drop_public_figures(text, spans, TAXONOMY) == spans[1:]


def test_who_is_announced_or_listed_is_private():
    assert find_kept("I am Abraham Lincoln.", "Abraham Lincoln", source="speakers:introduction") == []
    assert find_kept("See Abraham Lincoln.", "Abraham Lincoln", source="lexicon:dictionary") == []


def test_names_without_a_given_name_are_not_those_of_many_people():
    listed = [name for name in read_public_names() if " " not in name]
    known = [n for n in listed if sum(f.weight for f in KnowledgeBase.open().name_facts(n) if f.part == "last") >= 60]
    assert "plato" in listed and not known, known

"""Full names by the knowledge base, also where underscores join them."""

from __future__ import annotations

import pytest

from allonym.detection.languages import Passage
from allonym.detection.listed_names import find_listed_names, is_full_name
from allonym.pipeline import detect
from allonym.policy import Policy

POLICY = Policy.load("default").with_(detectors=("rules",))


@pytest.mark.parametrize(
    "text",
    ["Gareth Price", "Margaret van Holloway", "Jean-Paul Roux", "Lena O'Brien", "Nkechi Bright", "Mark Holloway"],
)
def test_a_given_name_and_a_capitalised_word_are_a_full_name(text):
    assert is_full_name(text)


@pytest.mark.parametrize(
    "text",
    ["Gareth", "Grace Period", "Unit Price", "May Sales", "Client Name", "gareth price", "Max Value", "Mark Sheet"],
)
def test_other_words_are_none(text):
    assert not is_full_name(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("saved /home/x/interviews/Margaret_Holloway.wav", ["Margaret_Holloway"]),
        ("open('Priya_Raman_2024-03.mp3') and Release_Notes.txt", ["Priya_Raman"]),
        (r"D:\cases\Gareth_Price\notes.txt", ["Gareth_Price"]),
        ("data/Grace_Period.pdf and Unit_Price.csv", []),
        ("the class Margaret_Holloway is a name of code", []),
    ],
)
def test_names_in_paths(text, names):
    spans = detect(text, POLICY)
    assert [text[s.start : s.end] for s in spans if s.label == "PERSON"] == names
    assert names or not spans


def test_a_rarer_given_name_counts_inside_of_a_sentence():
    text = "Vous pouvez me joindre au bureau. Cordialement, Solange Marchetti (Aurélien Dubreuil)"
    surfaces = [
        text[s.start : s.end] for s in find_listed_names(text, [Passage(0, len(text), "")]) if s.label == "PERSON"
    ]
    assert surfaces == ["Solange Marchetti", "Aurélien Dubreuil"]
    text = "Solange Menschen warten, bleibt es so. Der Gast, solange Regen fiel, blieb."
    assert not [s for s in find_listed_names(text, [Passage(0, len(text), "")]) if s.label == "PERSON"]


def test_large_towns_are_found_where_nouns_have_capitals_unless_they_are_common_words() -> None:
    text = "Der Kollege kommt am Bahnhof Kassel an. Das Essen in Göttingen war für die Kinder gut, die Mitte lag vorn."
    found = {text[s.start : s.end] for s in find_listed_names(text, [Passage(0, len(text), "")]) if s.label == "CITY"}
    assert found == {"Kassel", "Göttingen"}

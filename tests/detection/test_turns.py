from collections import Counter

import pytest

import allonym
from allonym.detection.turns import add_turns, find_turns, select_headings
from allonym.document import Document


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("Ann Lee: Hello.\nBob Roy: Hi Ann.", ["Ann Lee", "Bob Roy"]),
        ("Ann: Hello.\nI mean it.\nBob: Hi.\nAnn: Bye.", ["Ann", "Bob", "Ann"]),
        ("Name: Ann\nPhone: 12\nE-mail: x\n", []),
        ("Billing address: x\nShipping address: y\n", []),
        ("Ann: Hello.", []),
        ("One line.\nAnother: line.\nA third.\nAnn: said so.\nNo.", []),
        ("[10:02:11] Ann Lee: Hello.\n[10:02:40] Bob: Hi.", ["Ann Lee", "Bob"]),
        ("12/03/2024, 18:02 - Ann: Hello.\n12/03/2024, 18:05 - Bob: Hi.", ["Ann", "Bob"]),
        ("9.15 am Ann: Hello.\n9.16 am Bob: Hi.", ["Ann", "Bob"]),
        ("[10:02:11] WARNING: disk full\n[10:02:12] Scheduler: job queued", []),
        ("at 10:30 and\n11:45 we met", []),
    ],
)
def test_find_turns(text, speakers):
    assert [text[slice(*t.speaker)] for t in find_turns(text)] == speakers


@pytest.mark.parametrize(
    "text",
    [
        "Chief complaint: cough\nHistory: dry cough for weeks\nPlan: rest",
        "Patient: Ines Whitlow\nPresenting Complaint: Chest pain\nAllergies: none\nImpression: stable",
        "Priority: High\nStatus: Open\nCategory: Access\nSteps to reproduce: log in",
        "Marital status: single\nHighest qualification: diploma\nReason for leaving: moved away",
        "Ingredients: flour\nMethod: mix and bake",
        "Name: Ada\nGP: Dr Kapoor\nPC: pain\nPMH: asthma\nDH: nil\nSH: teacher\nPlan: rest",
    ],
)
def test_forms_have_no_speakers(text):
    assert find_turns(text) == ()


def test_fields_in_a_transcript_begin_turns_without_a_speaker():
    text = "INTERVIEW TRANSCRIPT ID: UNI-14\nInt: How was it?\nResp: Fine.\nInt: And now?\nAda: Well."
    turns = find_turns(text)
    assert [text[slice(*t.speaker)] if t.speaker else "" for t in turns] == ["", "Int", "Resp", "Int", "Ada"]


def test_ordinary_words_are_no_names_in_forms_and_as_roles():
    form = "Chief complaint: cough\nHistory: dry cough\nPlan: rest\n"
    assert allonym.anonymize(form).text == form
    talk = "Int: How was it?\nResp: Fine, thanks.\nInt: Good."
    assert allonym.anonymize(talk).text == talk


@pytest.mark.parametrize(
    "names",
    [
        ("Burt Ward", "Adam West"),
        ("Price", "Holm"),
        ("Ada Price", "Tom Day"),
        ("Steel", "Worth"),
        ("Mercy Steel", "Wild"),
        ("PT", "MH"),
        ("Field", "House"),
    ],
)
def test_people_whose_names_are_words_of_forms_are_speakers(names):
    first, second = names
    talk = f"{first}: I was there.\n{second}: So was I.\n{first}: Well.\n"
    text = allonym.anonymize(talk).text
    assert not any(word in text for word in " ".join(names).split())


@pytest.mark.parametrize(
    ("labels", "headings"),
    [
        (["Symptom", "Upkeep", "Reach"], {"Symptom", "Upkeep", "Reach"}),
        (["Symptom", "Symptom", "Reach"], {"Reach"}),
        (["Poppy", "Symptom"], {"Symptom"}),  # many people have the name
        (["Bottle", "Storm", "Ann"], set()),  # somebody speaks, so that all do
        (["Symptom"], set()),
        ([], set()),
    ],
)
def test_headings_are_words_of_dictionaries_where_nobody_speaks(labels, headings):
    assert select_headings(Counter(labels)) == headings


def test_turns_of_parts_are_where_the_parts_are():
    document = add_turns(Document.from_parts("r", ["7", "Ann Lee: Hello.\nBob Roy: Hi.", "x: y"]))
    assert [document.text[slice(*t.speaker)] for t in document.turns] == ["Ann Lee", "Bob Roy"]
    assert [document.text[t.start : t.end] for t in document.turns] == ["Hello.", "Hi."]


def test_given_turns_stay():
    document = Document.conversation("c", [("Ann", "Note: this.\nTwo: that.")])
    assert add_turns(document) is document


def test_speakers_go_wherever_a_transcript_stands():
    assert (
        allonym.anonymize("Ann Lee: Hello.\nBob Roy: Hi Ann.").text == "[PERSON_1]: Hello.\n[PERSON_2]: Hi [PERSON_1]."
    )

import pytest

import allonym
from allonym.detection.turns import add_turns, find_turns
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
        ("at 10:30 and\n11:45 we met", []),
    ],
)
def test_find_turns(text, speakers):
    assert [text[slice(*t.speaker)] for t in find_turns(text)] == speakers


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

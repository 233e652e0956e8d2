"""Names that the form of a text gives away: speaker labels, introductions, address, titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.detection.speakers import build_detector, locate_speaker_name
from allonym.document import Document
from allonym.policy import Policy

DETECT = build_detector(Policy(name="test"))


def names(document: Document | str) -> list[str]:
    document = Document("", document) if isinstance(document, str) else document
    places = sorted({(s.start, s.end) for s in DETECT(document)})
    return [document.text[a:b] for a, b in places]


def test_table_1_of_p2() -> None:
    document = Document.conversation("", [("Pam", "This is Pam calling from Dunder Mifflin,\nmay I speak to Jim?")])
    assert names(document) == ["Pam", "Pam", "Jim"]
    assert {s.label for s in DETECT(document)} == {"PERSON"}


@check_each_row(
    "label, name",
    [
        ("Agent (Priyanka)", "Priyanka"),
        ("Interviewer - Marta Lis", "Marta Lis"),
        ("Agent [Jo]", "Jo"),
        ("Customer (on hold)", None),
        ("Caller (Okafor)", "Okafor"),
        ("Caller (plumber)", None),
        ("Agent (Team Leader)", None),
        ("Priyanka (Agent)", "Priyanka"),
        ("Agent Jhun", "Jhun"),
        ("Nurse Ada Brook", "Ada Brook"),
        ("Agent Two", None),
        ("Cust", None),
        ("De la Cruz", "De la Cruz"),
    ],
)
def test_a_name_may_follow_a_role(label, name) -> None:
    place = locate_speaker_name(label)
    assert (place and label[slice(*place)]) == name


@check_each_row(
    "role",
    [
        "Operator",
        "agent",
        "Customer",
        "Speaker 1",
        "Person_2",
        "DOCTOR",
        "Guest_family",
        "user",
        "assistant",
        "Unknown",
        "Q",
        "A",
        "Interviewer 12",
        "Grad C",
        "Speaker-3",
        "Caller #2",
        "Project Manager",
        "NI number",
        "Claimant",
        "SPEAKER_00",
        "7",
    ],
)
def test_roles_are_no_names(role: str) -> None:
    assert names(Document.conversation("", [(role, "good day"), (role, f"{role} said so")])) == []


@check_each_row(
    "label, name",
    [
        ("DC HOBBS", "HOBBS"),
        ("Jane Doe", "Jane Doe"),
        ("Dr. Jane Doe", "Jane Doe"),
        ("Jane Doe - CFO", "Jane Doe"),
        ("Jane Doe (Host)", "Jane Doe"),
        ("JANE", "JANE"),
        ("jane", "jane"),
        ("Łukasz Żak", "Łukasz Żak"),
        ("Doctor Kumar", "Kumar"),
        ("Doe, Jane", "Doe, Jane"),
    ],
)
def test_labels_hold_names(label: str, name: str) -> None:
    spans = DETECT(Document.conversation("", [(label, "fine"), (None, "so")]))
    (span,) = [s for s in spans if s.source != "speakers:title"]
    assert label[span.start : span.end] == name
    assert (span.score, span.source) == (0.9, "speakers:label")


def test_speakers_are_found_where_others_mention_them() -> None:
    turns = [
        ("Jane Doe", "I met Bob."),
        ("Bob Cole", "so Jane and Ms. Doe met Jane Doe, as jane said"),
        ("Bob Cole", "Doering"),
    ]
    found = ["Jane Doe", "Bob", "Bob Cole", "Jane", "Doe", "Jane", "Jane Doe", "Doe", "Bob Cole"]
    assert names(Document.conversation("", turns)) == found


def test_names_that_are_words_need_their_place() -> None:
    turns = [("Will Hart", "hi"), ("Operator", "Will you stay? I saw Will there. Will, please.")]
    assert names(Document.conversation("", turns)) == ["Will Hart", "Will", "Will"]


@check_each_row(
    "text, found",
    [
        ("My name is Sarah Connor", ["Sarah Connor"]),
        ("my first name's Sarah.", ["Sarah"]),
        ("I am Dr. Hart", ["Hart"]),
        ("I'm Jane Doe, the treasurer.", ["Jane Doe"]),
        ("Hi, this is Brian McKenna for Devin", ["Brian McKenna"]),
        ("It's Leonard again.", ["Leonard"]),
        ("Dunder Mifflin, this is Rachel green speaking.", ["Rachel green"]),
        ("Hi, this is mark from ABC", ["mark"]),
        ("Dear Ms Connor,", ["Connor"]),
        ("Dear Herr Lindqvist, I met Frau Tillbrook in Ulm.", ["Lindqvist", "Tillbrook"]),
        ("Dear Jane,", ["Jane"]),
        ("Thanks, Jean-Luc. Next", ["Jean-Luc"]),
        ("Thanks, Will.", ["Will"]),
        ("a question from the line of Conor O'Shea from Berg", ["Conor O'Shea"]),
        ("over to Mrs. Ursula von der Leyen now", ["Ursula von der Leyen"]),
        ("may I speak to Jim Halpert's boss", ["Jim Halpert"]),
        ("ask for J. Edgar Hoover please", ["J. Edgar Hoover"]),
        ("Best regards,\nJane Doe\n", ["Jane Doe"]),
        ("Call me.\n\nBest,\nRos\nTillbrook LLP", ["Ros"]),
        ("That is the best\nRos has", []),
        ("je m'appelle Łukasz; my name is Łukasz Żak.", ["Łukasz Żak"]),
    ],
)
def test_hotwords_announce_names(text: str, found: list[str]) -> None:
    assert names(text) == found


@check_each_row(
    "text",
    [
        "my name is legion",
        "this is Great",
        "This is Canadian whisky.",
        "I am Canadian.",
        "I'm Monday to Friday there",
        "Mr. Chairman, Madam President",
        "Thank you, Operator. Thanks, Everyone.",
        "Hi All, Dear Sir or Madam,",
        "Good morning, Ladies and Gentlemen.",
        "it's Apple from 2010",
        "a dramatic drive, mr  x",
        "Thanks. April was fine.",
        "Dr. Pepper",
        "this is different from that, this is just calling for it",
        "Hi, it's all from me",
        "I spoke with Q3 in mind",
    ],
)
def test_what_only_looks_like_a_name(text: str) -> None:
    assert names(text) == []


def test_a_policy_that_wants_no_persons_gets_none() -> None:
    detect = build_detector(Policy.only(["URL"]))
    assert list(detect(Document.conversation("", [("Pam", "My name is Pam")]))) == []


@given(st.text(alphabet="Pam Jim hi my name is,.\n'éŁ", max_size=60))
def test_spans_lie_in_the_text_and_are_trimmed(text: str) -> None:
    document = Document.conversation("", [("Pam", text), ("Jim Bé", "x")])
    for span in DETECT(document):
        assert document.text[span.start].isalnum()
        assert document.text[span.end - 1] not in " \n,"


@given(st.text(alphabet=st.characters(categories=["Ll", "Nd", "Zs", "Po"]), max_size=60))
def test_text_without_capitals_yields_nothing(text: str) -> None:
    assert names(f"my name is {text}, miss {text} hi {text}.") == []


@pytest.mark.parametrize("unit", ["my name is Jane ", "Hi A", "Mr. ", "Thanks,\n", "A. ", "this is A A A "])
def test_long_runs_end(unit: str) -> None:
    DETECT(Document("", unit * (100_000 // len(unit))))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("From: Allen, Phillip K.\nSubject: x", ["Allen, Phillip K."]),
        ("> To: Dunton, Heather; Belden, Tim\n", ["Dunton, Heather", "Belden, Tim"]),
        ("Cc: Jane Doe, Bob Roy\n", ["Jane Doe", "Bob Roy"]),
        ("To: All Employees\nFrom: Houston\n", []),
        ("To: Daniel Roy\nCc: HR Records, Legal Department\n", ["Daniel Roy"]),
        ("mr. james saw dr . lewis and mr right now, 20 ms later", ["james", "lewis"]),
    ],
)
def test_header_lines_and_small_titles(text, names):
    spans = sorted(build_detector(Policy(name="p"))(Document("", text)))
    assert [text[s.start : s.end] for s in spans] == names


def test_relatives_are_named_in_a_text_without_other_cues() -> None:
    assert names("Dear Dr Hill,\nMy son-in-law Will drove me.") == ["Hill", "Will"]
    assert names("My son-in-law Will drove me.") == ["Will"]


def test_a_heading_beside_that_of_the_name_is_no_name() -> None:
    assert names("Name: Role") == [] and names("Name: Rolfe") == ["Rolfe"]

"""Sections: where an earnings call's questions begin, markers of the user, functions, names that others add."""

import pytest

from allonym.batch import join_fields
from allonym.detection.turns import add_turns
from allonym.document import Document
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.swap import sections as module
from allonym.swap.sections import Speech, check_section, everything, get_sectioner, list_speeches, presentation

REMARKS = "Revenue grew in all regions, and the new plant in the north runs as planned. " * 30
OPENING = (
    "Good day, and welcome to Brightwell's second quarter earnings call. All participants are in listen-only mode. "
    "A question-and-answer session will follow the formal presentation; to ask a question then, press star one."
)
INTRO = "Thank you. After our prepared remarks, we will open the call for questions. Here is Nora."


def call(*turns: str) -> Document:
    return Document("c", "\n".join(turns))


def kept(document: Document) -> str | None:
    found = presentation(document)
    return None if found is None else "".join(document.text[a:b] for a, b in found)


@pytest.mark.parametrize(
    "turn",
    [
        "Thank you. We will now begin the question-and-answer session. To ask a question, press star, then one.",
        "If you would like to ask a question, please signal by pressing * 1 on your telephone keypad.",
        "Thank you. Our first question comes from the line of Ada Voss with Orlo Capital.",
        "Ladies and gentlemen, the floor is now open for questions.",
        "The Q&A session starts now. If you wish to ask a question, please press zero one.",
        "Hi, thanks for taking my question. How did margins do in the north?",
    ],
)
def test_the_presentation_ends_where_the_questions_begin(turn: str) -> None:
    document = call(OPENING, INTRO, REMARKS, turn, "Yes, they grew.")
    text = kept(document)
    assert text is not None
    assert text == document.text[: document.text.index(turn)]


@pytest.mark.parametrize(
    "end",
    [
        "With that, operator, we are ready to take your questions.",
        "And now I'd like to open up the line for questions. Thank you.",
        "We will now take questions. Operator?",
    ],
)
def test_the_last_speaker_opens_the_questions(end: str) -> None:
    first = "Nora, several questions reached us on costs. Why did they rise?"
    document = call(OPENING, INTRO, REMARKS + end, first, "They did not.")
    text = kept(document)
    assert text is not None
    assert text.rstrip().endswith(end)
    assert first not in text


def test_questions_that_come_later_are_no_end() -> None:
    document = call(OPENING, INTRO, REMARKS, REMARKS)
    assert kept(document) is None


def test_an_opening_that_is_not_confirmed_is_no_end() -> None:
    long = INTRO + REMARKS[:1700] + " We will take questions from both the phone and the console."
    document = call(OPENING, long, REMARKS, "Our first question is from Ada Voss of Orlo.", "Hi.")
    text = kept(document)
    assert text is not None
    assert text.count("Revenue grew") > 30


def test_roles_of_speakers_are_enough() -> None:
    turns = [
        ("Operator", "Welcome."),
        ("Nora Hale, CEO", "We grew."),
        ("Operator", "Ada, go ahead."),
        ("Analyst", "Why?"),
    ]
    document = Document.conversation("c", turns)
    text = kept(document)
    assert text == "Operator: Welcome.\nNora Hale, CEO: We grew.\n"


def test_turns_of_the_metadata_are_used() -> None:
    first, second = "We grew a lot. " * 20, "Could you say why?"
    text = first + second
    turns = [
        {"speaker": 1, "role": "executive", "start": 0, "end": len(first)},
        {"speaker": 2, "role": "analyst", "start": len(first), "end": len(text)},
    ]
    document = Document("c", text, {"turns": turns})
    assert [s.speaker for s in list_speeches(document)] == ["executive", "analyst"]
    assert kept(document) == first


@pytest.mark.parametrize("turns", ["no list", [1], [{"start": 5, "end": 3}], [{"start": 0, "end": 10_000}]])
def test_turns_that_are_none_do_not_count(turns: object) -> None:
    document = Document("c", "One line.\nAnother line.", {"turns": turns})
    assert [(s.start, s.end) for s in list_speeches(document)] == [(0, 9), (10, 23)]


def test_everything_is_running_text_and_whole_conversations() -> None:
    long = "Words and words. " * 20
    document = join_fields("d", [("company", "Orlo", "\n"), ("body", long, "\n"), ("region", "north", "\n")])
    assert [document.text[a:b] for a, b in everything(document)] == [long]
    talk = Document.conversation("d", [("Ada", "Hello."), ("Bo", "Hi.")])
    assert everything(talk) == ((0, len(talk.text)),)
    assert everything(Document("d", "  \n ")) == ()
    short = join_fields("d", [("note", "A short note.", "\n"), ("who", "Bo", "\n")])
    assert [short.text[a:b] for a, b in everything(short)] == ["A short note."]


def test_a_transcript_inside_one_part_is_that_part() -> None:
    text = "Title\nAda: Hello there.\nBo: Hi."
    document = add_turns(join_fields("d", [("text", text, "\n"), ("company", "Orlo", "\n")]))
    assert document.turns
    assert [document.text[a:b] for a, b in everything(document)] == [text]


def test_two_patterns_are_from_and_to() -> None:
    document = Document("d", "Header. BEGIN the body of it. END and more.")
    for section in (("BEGIN", "END"), "BEGIN >>> END"):
        found = get_sectioner(section)(document)
        assert found is not None
        assert [document.text[a:b] for a, b in found] == ["BEGIN the body of it. "]
    assert get_sectioner(("", "BEGIN"))(document) == ((0, 8),)
    assert get_sectioner(("END", ""))(document) == ((30, len(document.text)),)
    assert get_sectioner(("ABSENT", ""))(document) is None
    assert get_sectioner(("", "ABSENT"))(document) is None


@pytest.mark.parametrize("section", [("(", ""), ("", "(?=x)"), ("only one",)])
def test_patterns_must_be_two_and_valid(section: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=r"RE2|two patterns"):
        get_sectioner(section)


def test_functions_and_registered_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def head(document: Document) -> list[tuple[int, int]]:
        return [(0, 4)]

    assert get_sectioner(head) is head
    monkeypatch.setitem(module.sections._table, "head", head)
    assert get_sectioner("head") is head
    with pytest.raises(UnknownNameError, match="presentation"):
        get_sectioner("presentations")


@pytest.mark.parametrize("found", [[(3, 2)], [(0, 99)], [(4, 6), (1, 2)], [(-1, 2)]])
def test_what_a_function_returns_is_checked(found: list[tuple[int, int]]) -> None:
    with pytest.raises(DataError, match="sorted, disjoint and within"):
        check_section(Document("d", "twelve signs"), found)


def test_no_speaker_in_a_repr() -> None:
    assert repr(Speech(0, 4, "Nora Hale")) == "Speech(start=0, end=4)"

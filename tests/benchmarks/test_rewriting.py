"""The rewriters of benchmarks/round_trip.py on texts small enough to see what must come out."""

from __future__ import annotations

import re
from random import Random

from benchmarks.rewriting.first import REWRITERS, polish_case, sentences
from benchmarks.rewriting.pairs import can_compose, compose_names
from benchmarks.rewriting.pieces import Piece, join_pieces, split_kept_around, split_pieces
from benchmarks.round_trip import ALL, LEFT, LIKE, OWN, WRONG, compare_pieces, find_family
from tests.rows import check_each_row

from allonym.document import Document, Entity, Span
from allonym.plan import Plan
from allonym.policy import Policy, Rule
from allonym.replace import make_plan

TEXT = 'Anna Hale of Quill Ltd. met "Bo" and Bo\'s friend in Lisbon. Anna Hale left at 10:30. She paid 1,250.00 to 555-010-1234!'
PLACES = (
    ("PERSON", "Anna Hale"),
    ("ORGANIZATION", "Quill Ltd."),
    ("PERSON", "Bo"),
    ("LOCATION", "Lisbon"),
    ("MONEY", "1,250.00"),
    ("PHONE_NUMBER", "555-010-1234"),
)


def plan_of(text: str = TEXT, operator: str = "tag") -> Plan:
    entities = []
    for label, name in PLACES:
        spans = tuple(Span(m.start(), m.end(), label) for m in re.finditer(re.escape(name), text))
        if spans:
            entities.append(Entity(f"{label}:{name.lower()}", label, spans))
    policy = Policy.load("default").with_(default=Rule(operator), rules={})
    return make_plan(Document("", text), entities, policy, key=b"a key of the tests" * 2)


def names(*pairs: tuple[str, str]) -> list[Piece]:
    """Pieces from (replacement, original) of people; an original that is empty means text outside."""
    out = []
    for i, (made, own) in enumerate(pairs):
        who = Piece(made, i, i + 1, "PERSON", made, own, frozenset({own})) if own else Piece(made)
        out.append(who)
    return out


def after(name: str, pieces: list[Piece], seed: str = "x") -> list[Piece]:
    return [p for p in ALL[name](pieces, Random(seed)) if p.text]


def test_pieces_are_the_anonymised_text() -> None:
    pieces = split_pieces(TEXT, plan_of(), find_family)
    assert join_pieces(pieces).startswith('[PERSON_1] of [ORGANIZATION_1] met "[PERSON_2]" and [PERSON_2]\'s friend in')
    assert [p.own for p in pieces if p.edit >= 0][:5] == ["Anna Hale", "Quill Ltd.", "Bo", "Bo", "Lisbon"]


def test_possessives_full_stops_and_outer_spaces_belong_to_neither() -> None:
    assert split_kept_around("[P]'s", "Bo's") == ("", "[P]", "Bo", "'s")
    assert split_kept_around("[P].", "Inc.") == ("", "[P]", "Inc", ".")
    assert split_kept_around("[P] 's", "Bo 's") == ("", "[P]", "Bo", " 's")
    assert split_kept_around(" [P] ", "Bo") == ("\0 ", "[P]", "Bo", "\0 ")
    assert split_kept_around("[P]", "Bo.") == ("", "[P]", "Bo.", "")


@check_each_row("name", list(ALL))
def test_what_a_rewriter_expects_is_right_and_anything_else_is_not(name: str) -> None:
    pieces = after(name, split_pieces(TEXT, plan_of(), find_family))
    assert join_pieces(pieces) == join_pieces(after(name, split_pieces(TEXT, plan_of(), find_family)))
    mentions = sum(p.edit >= 0 for p in pieces)
    assert mentions if name == "summary" else mentions >= 7
    assert compare_pieces(pieces, "".join(p.own or p.text for p in pieces)) == [OWN] * mentions
    assert compare_pieces(pieces, join_pieces(pieces)) == [LEFT] * mentions
    swapped = "".join("Cy" if p.edit >= 0 else p.text for p in pieces)
    assert compare_pieces(pieces, swapped) == [WRONG] * mentions
    assert compare_pieces(pieces, "".join(p.own or p.text + "~" for p in pieces) + "~") is None


def test_forms_of_names() -> None:
    people = names(("Emma Joy Tyler", "Sarah Ann Connor"), (" and ", ""), ("Finn Moor", "John Reese"))
    assert join_pieces(after("last name", people)) == "Tyler and Moor"
    assert compare_pieces(after("last name", people), "Connor and Reese") == [LIKE, LIKE]
    assert compare_pieces(after("last name", people), "Connor and John Reese") == [LIKE, OWN]
    assert compare_pieces(after("last name", people), "Connor and Connor") == [LIKE, WRONG]
    assert join_pieces(after("initials", people)) == "E. J. Tyler and F. Moor"
    assert compare_pieces(after("initials", people), "S. A. Connor and J. Reese") == [LIKE, LIKE]
    assert join_pieces(after("last, first", people)) == "Tyler, Emma Joy and Moor, Finn"
    assert join_pieces(after("first name", people)) == "Emma and Finn"
    assert join_pieces(after("family in capitals", people)) == "Emma Joy TYLER and Finn MOOR"
    assert join_pieces(after("initials, no dots", people)) == "E J Tyler and F Moor"
    assert join_pieces(after("initials alone", people)) == "E.J.T. and F.M."
    assert compare_pieces(after("initials alone", people), "S.A.C. and J. R.") == [LIKE, LIKE]
    assert compare_pieces(after("initials alone", people), "S.A.C. and S.A.C.") == [LIKE, WRONG]
    relatives = names(("Emma Tyler", "Sarah Connor"), (" and ", ""), ("Finn Tyler", "John Connor"))
    assert join_pieces(after("last name", relatives)) == "Emma Tyler and Finn Tyler"


def test_tags_keep_their_label_and_number_in_some_form() -> None:
    tag = names(("[PERSON_1]", "Bo"), (" ran", ""))
    assert join_pieces(after("brackets lost", tag)) == "PERSON_1 ran"
    assert join_pieces(after("brackets doubled", tag)) == "[[PERSON_1]] ran"
    assert join_pieces(after("lower case", tag)) == "[person_1] ran"
    assert join_pieces(after("Markdown escapes", tag)) == r"\[PERSON\_1\] ran"
    assert compare_pieces(after("Markdown escapes", tag), "Bo ran") == [OWN]
    assert {join_pieces(after("spaces inserted", tag, str(i))) for i in range(20)} == {
        "[ PERSON_1 ] ran",
        "[PERSON 1] ran",
        "[PERSON_ 1] ran",
    }
    assert join_pieces(after("brackets lost", names(("[", ""), ("[PERSON_1]", "Bo"), ("]", "")))) == "[[PERSON_1]]"
    assert join_pieces(after("tags in words", tag)) == "Person 1 ran"
    assert join_pieces(after("bold in brackets", tag)) == "[**PERSON_1**] ran"
    wild = names(('<PERSON "8F3A">', "Bo"))
    assert join_pieces(after("HTML escapes", wild)) == "&lt;PERSON &quot;8F3A&quot;&gt;"
    assert join_pieces(after("typographic quotes", wild)) == "<PERSON “8F3A”>"


def test_typos_leave_no_doubt_who_is_meant() -> None:
    for seed in range(40):
        found = after("typo", names(("Marta Lund", "Ada Brook"), (" ", ""), ("Marty Lunde", "Bo Day")), str(seed))
        assert found[0].text in ("Marta Lund",) or "Marty" not in found[0].text
    assert any(after("typo", names(("Valentine", "Ada")), str(i))[0].text != "Valentine" for i in range(10))


def test_polish_cases() -> None:
    assert [polish_case("Nowak", c) for c in range(3)] == ["Nowaka", "Nowakowi", "Nowakiem"]
    assert [polish_case("Kowalski", c) for c in range(3)] == ["Kowalskiego", "Kowalskiemu", "Kowalskim"]
    assert polish_case("Marek", 0) == "Marka"
    pieces = names(("Jan Nowak", "Marek Lis"))
    assert compare_pieces(after("Polish endings", pieces), "Markowi Lisowi") == [LIKE]
    assert compare_pieces(after("Polish endings", pieces), "Marek Lis") == [OWN]
    assert compare_pieces(after("Polish endings", pieces), "Janowi Lisowi") == [WRONG]


def test_numbers_keep_their_digits() -> None:
    number = [Piece("1,250.00", 0, 1, "MONEY", "1,250.00", "3,400.50", frozenset({"3,400.50"}))]
    assert join_pieces(after("number format", number)) == "1.250,00"
    assert compare_pieces(after("number format", number), "3.400,50") == [LIKE]
    assert compare_pieces(after("number format", number), "3.400,51") == [WRONG]


def test_sentences_end_outside_of_mentions_only() -> None:
    pieces = names(("Mr. Moor", "Dr. Day"), (" ran. Then ", ""), ("Bo", "Cy"), (" fell.", ""))
    assert [join_pieces(s) for s in sentences(pieces)] == ["Mr. Moor ran. ", "Then Bo fell."]
    orders = {join_pieces(after("sentences reordered", pieces, str(i))) for i in range(9)}
    assert orders == {"Mr. Moor ran. Then Bo fell. ", "Then Bo fell. Mr. Moor ran. "}
    frames = join_pieces(after("foreign sentences", pieces))
    assert "Mr. Moor" in frames and "Bo" in frames and "ran" not in frames


def test_compositions_are_never_of_a_kind() -> None:
    assert not can_compose("none", "bold")
    assert not can_compose("HTML escapes", "XML")
    assert not can_compose("summary", "bold")
    assert can_compose("last name", "hyphenation") and not can_compose("hyphenation", "last name")
    assert can_compose("bold", "typo")
    assert all(can_compose(*compose_names(list(REWRITERS), Random(i))) for i in range(50))

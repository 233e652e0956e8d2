import json
from itertools import pairwise

import pytest
from tests.llm import server as at
from tests.rows import check_each_row

from allonym.errors import EndpointError
from allonym.llm import Client, Located, Reply, decode
from allonym.policy import Policy

pytest.importorskip("httpx", reason="httpx is not installed")

NAMES = {
    "Wilma Tarn": '<PERSON "0000000A">',
    "Jonas Tarn": '<PERSON "0000000B">',
    "Norhaven": '<CITY "0000000C">',
    "Tarnfield Foods": '<COMPANY "0000000D">',
}
A, B, C, D = NAMES.values()
TEXT = "Tarn came to Norhavens Markt. She, W. Tarn, and Wilmas Freund met in Norhaven; WT left. Tarnfield sold Tarn."


class Saying:
    def __init__(self, *contents):
        self.contents = list(contents)
        self.prompts = {}
        self.asked = []

    def ask_all(self, requests):
        self.asked += requests
        return [Reply(self.contents.pop(0)) for _ in requests]


def spans(*rows):
    return json.dumps({"spans": [{"tag": tag, "text": text} for tag, text in rows]})


def found(text, *rows, names=NAMES, done=()):
    out = decode(text, names, Saying(spans(*rows)), done=done)
    assert list(out) == sorted(out, key=lambda o: o.start)
    assert all(a.end <= b.start for a, b in pairwise(out))
    return [(text[o.start : o.end], o.tag) for o in out]


def test_portions_that_stand_in_the_text():
    assert found(TEXT, (C, "Norhavens"), (C, "Norhaven"), (A, "W. Tarn"), (A, "Wilmas"), (D, "Tarnfield")) == [
        ("Norhavens", C), ("W. Tarn", A), ("Wilmas", A), ("Norhaven", C), ("Tarnfield", D),
    ]  # fmt: skip


@check_each_row(
    "tag, portion",
    [
        (A, "She"),  # no form of the name
        (A, "Tarn"),  # as much Jonas as Wilma
        (A, "Wilma Tarn"),  # does not stand there
        (A, "ilmas"),  # stands inside of a word
        (C, "Markt"),
        (A, ""),
        (A, "left"),
        ('<PERSON "0000000F">', "Wilmas"),  # nobody's tag
        (C, "Norhavens Markt. She, W. Tarn, and Wilmas Freund met in Norhaven; WT left. Tarnfield sold Tarn!"),
    ],
)
def test_portions_that_are_not_believed(tag, portion):
    assert found(TEXT, (tag, portion)) == []


def test_initials_and_tags_written_in_another_way():
    assert found(TEXT, ("person 0000000a", "WT")) == [("WT", A)]


def test_no_portion_inside_of_another_word():
    assert found("Mossy bank, Moss.", (A, "Moss"), names={"Wilma Moss": A}) == [("Moss", A)]
    assert decode("Mossy bank, Moss.", {"Wilma Moss": A}, Saying(spans((A, "Moss")))) == (Located(12, 16, A),)


def test_what_two_may_be_meant_by_is_nobodys():
    names = {"Wilma Tarn": A, "Wilma Moss": B}
    rows = [(A, "Wilma"), (B, "Wilma"), (A, "Wilma Tarn"), (B, "Wilma Tarn")]
    assert found("Wilma Tarn and Wilma.", *rows, names=names) == [("Wilma Tarn", A)]


def test_settled_places_are_neither_sent_nor_touched():
    text = "Lisbon and Norhaven, then Norhaven."
    model = Saying(spans((C, "Norhaven")))
    out = decode(text, NAMES, model, done=[(0, 6), (26, 34)])
    assert out == (Located(11, 19, C),)
    sent = model.asked[0].messages[-1][1]
    assert "Lisbon" not in sent and "[...] and Norhaven, then [...]." in sent


def test_nothing_to_ask():
    assert decode("", NAMES, Saying()) == decode("Text", {}, Saying()) == ()


def test_an_answer_that_cannot_be_read_is_asked_for_again():
    assert len(decode("In Norhaven.", NAMES, Saying("no", spans((C, "Norhaven"))))) == 1
    with pytest.raises(EndpointError, match="twice an answer"):
        decode("In Norhaven.", NAMES, Saying("no", '{"spans": 3}'))


def test_long_texts_in_windows():
    text = "word " * 790 + "Norhaven " + "word " * 900 + "Tarnfield."
    model = Saying(*[spans((C, "Norhaven"), (D, "Tarnfield"))] * 3)
    assert [text[o.start : o.end] for o in decode(text, NAMES, model)] == ["Norhaven", "Tarnfield"]
    assert len(model.asked) == 3


def test_over_a_socket(server):
    server.then = at.answer(spans((C, "Norhaven")))
    client = Client(Policy.load("default").llm | {"url": server.url, "model": "m"})
    assert decode("In Norhaven.", NAMES, client) == (Located(3, 11, C),)
    user = server.bodies[0]["messages"][-1]["content"]
    assert user == "Names:\n" + "\n".join(f"{tag}: {name}" for name, tag in NAMES.items()) + "\n\nText:\nIn Norhaven."
    server.then = at.status(401)
    with pytest.raises(EndpointError, match="HTTP 401"):
        decode("In Norhaven.", NAMES, client)

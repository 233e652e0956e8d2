import json

import numpy as np
import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401
from tests.rows import check_each_row

from allonym.errors import EndpointError, UsageError
from allonym.intruder import Item, Target, open_intruder, study
from allonym.intruder.language_model import find_guessed_class
from allonym.llm import recording

pytest.importorskip("httpx")

NAMES = ["Quarrystone Holdings", "Tarnfield Foods Inc.", "Bluewater Looms"]


def reads(body):
    """A model that knows who deals in what."""
    said = [m["content"] for m in body["messages"] if m["role"] == "user"]
    text = said[0] if len(said) < 3 else said[-1]
    first = next((n for word, n in (("granite", "Quarrystone"), ("dairy", "TRN")) if word in text), "Nobody & Sons")
    if len(said) == 2:
        first = "Bluewater Looms Ltd"
    return json.dumps({"first": first, "second": "tarnfield foods"})


@pytest.fixture
def ask(server):  # noqa: F811
    server.then = at.made(reads)
    return lambda **more: open_intruder(
        "llm", settings={"url": server.url, "model": "m", "retries": 0, "concurrency": 1},
        aliases={"Tarnfield Foods Inc.": ["TRN"]}, **more,
    )  # fmt: skip


def test_the_prompt_of_the_paper(server, ask):  # noqa: F811
    intruder = ask(subject="company name", kind="earnings call transcript", reply="ticker symbol (in Capital Letters)")
    ranking = intruder.learn([], [], NAMES).rank([Target(Item("we cut granite {kind}"))])
    assert ranking.order.tolist() == [[0, 1]]
    system, user = server.bodies[0]["messages"]
    assert system["content"].startswith(
        "You are tasked to guess the company name of the following earnings call transcript using the content of the text."
    )
    assert "the ticker symbol (in Capital Letters) of your best guess" in " ".join(system["content"].split())
    assert user == {"role": "user", "content": "we cut granite {kind}"}
    assert "Bluewater" not in system["content"]
    assert server.bodies[0]["temperature"] == 0
    assert server.bodies[0]["response_format"]["json_schema"]["name"] == "guesses"


def test_classes_may_be_listed(server, ask):  # noqa: F811
    ask(listed=True).learn([], [], NAMES).rank([Target(Item("a text"))])
    system = server.bodies[0]["messages"][0]["content"]
    assert system.endswith("\n".join(["It is one of these:", *NAMES]))


def test_told_step_by_step(server, ask):  # noqa: F811
    target = Target(Item("our granite"), "interchanged", (Item("fresh dairy"), Item("second other")))
    again = [Target(Item("our granite")), Target(Item("our granite"), "altered"), target]
    ranking = ask().learn([], [], NAMES).rank(again)
    assert ranking.order.tolist() == [[0, 1], [2, 1], [1, 1]]
    assert len(server.seen) == 3  # what one stage asks, the next does not ask again
    talk = server.bodies[2]["messages"]
    assert [m["role"] for m in talk] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert json.loads(talk[2]["content"])["first"] == "Quarrystone"
    assert json.loads(talk[4]["content"])["first"] == "Bluewater Looms Ltd"
    assert "altered" in talk[3]["content"]
    assert "interchanged" in talk[5]["content"] and talk[5]["content"].endswith("fresh dairy\n\nsecond other")
    assert talk[:4] == server.bodies[1]["messages"]


def test_a_study(server, ask):  # noqa: F811
    items = [Item("granite one"), Item("granite two"), Item("dairy one"), Item("loom one")]
    labels = [NAMES[0], NAMES[0], NAMES[1], NAMES[2]]
    runs = [{0: Item("dairy now"), 2: Item("granite now"), 3: Item("nothing")}]
    made = study(ask(), items, labels, runs, partners=[{0: [2], 2: [0], 3: []}])
    assert made.table == (0, 2, 0, 1)
    assert made.second.value == pytest.approx(1 / 3)
    assert made.accuracy("altered").value == pytest.approx(1 / 3)
    assert made.accuracy("interchanged").value == 1  # where the terms went to; the last has no partner
    assert len(server.seen) == 3 + 3 + 3 + 2
    assert made.terms == ()
    assert made.intruder == "llm"


@pytest.mark.parametrize(
    ("content", "guess", "asked"),
    [
        ('```json\n{"first": "Tarnfield", "second": "?"}\n```', [1, -1], 1),
        ('{"first": ["Tarnfield"], "second": "Bluewater"}', [-1, 2], 1),
        ("TRN", [1, -1], 2),  # as P1 asks for it
        ("I am not able to tell.\nSorry.", [-1, -1], 2),
        ('{"second": "Tarnfield"}', [-1, -1], 2),
    ],
)
def test_answers(server, ask, content, guess, asked):  # noqa: F811
    server.then = at.answer(content)
    assert ask().learn([], [], NAMES).rank([Target(Item("a text"))]).order.tolist() == [guess]
    assert len(server.seen) == asked
    if asked == 2:
        assert server.bodies[1]["messages"][-1]["content"] == "a text\n\nAnswer with the JSON object only."


def test_an_endpoint_that_does_not_answer(server, ask):  # noqa: F811
    server.then = at.status(500)
    with pytest.raises(EndpointError, match="500") as caught:
        study(ask(), [Item("Zaphrandel"), Item("b")], ["a", "b"], [{0: Item("c")}])
    assert "Zaphrandel" not in str(caught.value)


def test_kept_answers_and_batches(server, tmp_path):  # noqa: F811
    server.then = at.made(reads)
    settings = {"url": server.url, "model": "m", "cache": str(tmp_path)}
    targets = [Target(Item(f"granite {i}\ud800")) for i in range(3)]
    judge = open_intruder("llm", settings=settings, key=b"k" * 32).learn([], [], NAMES)
    with recording() as written, pytest.raises(EndpointError, match="written down"):
        judge.rank(targets)
    assert len(written) == 3 and not server.seen
    first = judge.rank(targets)
    again = open_intruder("llm", settings=settings, key=b"k" * 32).learn([], [], NAMES).rank(targets)
    assert len(server.seen) == 3
    assert np.array_equal(first.order, again.order)


def test_nothing_is_asked_unless_an_endpoint_is_named():
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        open_intruder("llm")


@check_each_row(
    "guess, found",
    [
        ("Quarrystone Holdings", 0),
        ("QUARRYSTONE HOLDINGS, INC.", 0),
        ("quarrystone", 0),
        ("The Quarrystone Holdings group of Ostbury", 0),
        ("Quarystone Holdngs", 0),  # misspelt
        ("TRN", 1),
        ("trn", 1),
        ("Tarnfeld Foods", 1),
        ("Foods", -1),  # of two
        ("Riverside Foods", 3),
        ("Larkspur", -1),
        ("", -1),
        ("...", -1),
        ("Inc", -1),
        ("of", -1),
    ],
)
def test_which_class_is_meant(guess, found):
    names = [("Quarrystone Holdings",), ("Tarnfield Foods Inc.", "TRN"), ("Bluewater Looms",), ("Riverside Foods",)]
    assert find_guessed_class(guess, names) == found

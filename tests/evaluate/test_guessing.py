import json

import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

from allonym.errors import DataError, UsageError
from allonym.evaluate.people import attribute_guesses, person_guesses

pytest.importorskip("httpx")

BEFORE = ["Orla Brandreth plays the harp", "Ivo Quist rows"]
AFTER = ["[A] plays the harp", "[B] rows"]


def reads(body):
    """A model that knows Orla by her harp, and Ivo by his name only."""
    text = body["messages"][-1]["content"]
    name = "Orla Brandreth" if "harp" in text else "Ivo Quist" if "Ivo" in text else "Zed Unknown"
    return json.dumps(
        {"identified": name != "Zed Unknown", "guesses": ["Zed", name], "reason": "harp", "knowledge": "x"}
    )


@pytest.fixture
def settings(server):  # noqa: F811
    server.then = at.made(reads)
    return {"url": server.url, "model": "m", "retries": 0, "concurrency": 1}


def test_only_anonymised_texts_are_sent(server, settings):  # noqa: F811
    steps = []
    found = person_guesses(
        BEFORE, AFTER, ["Orla Brandreth", "Ivo Quist"], groups=["famous", "made"], settings=settings,
        advance=lambda done, of: steps.append((done, of)),
    )  # fmt: skip
    assert [b["messages"][-1]["content"] for b in server.bodies] == AFTER
    assert found.before is None and found.change.method == "none: the original texts were not sent"
    rows = found.after.results.rows
    assert [(r.rank, r.identified) for r in rows] == [(2, False), (0, False)]  # the first guess decides
    assert found.after.results.ranks[2].value == 0.5
    assert found.after.claims["claimed_wrong"] == 1
    assert steps == [(2, 2)]
    assert "Orla" not in json.dumps(found.to_dict(), allow_nan=False) + repr(found)


def test_before_and_after(server, settings):  # noqa: F811
    server.then = at.made(lambda body: reads(body).replace('"Zed", ', ""))
    found = person_guesses(BEFORE, AFTER, ["Orla Brandreth", "Ivo Quist"], before=True, settings=settings)
    assert len(server.bodies) == 4
    assert found.before.results.all.identified.value == 1
    assert found.after.results.all.identified.value == 0.5
    assert found.change.value == -0.5


def test_attributes_before_and_after(server, settings):  # noqa: F811
    server.then = at.made(
        lambda body: json.dumps({"age": ["31" if "Ivo" in body["messages"][-1]["content"] else "70"]})
    )
    found = attribute_guesses(
        BEFORE, AFTER, [{"age": ""}, {"age": "30", "sex": "male"}], attributes=("age",), before=True, settings=settings
    )
    assert (found.before.all.first.value, found.after.all.first.value, found.change.value) == (1, 0, -1)
    assert [a.attribute for a in found.after.attributes] == ["age"]
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_what_is_wrong_is_said_before_anything_is_sent(server, settings):  # noqa: F811
    with pytest.raises(DataError, match="as many anonymised texts"):
        person_guesses(["a"], [], ["s"], settings=settings)
    with pytest.raises(DataError, match="one value for each text"):
        attribute_guesses(["a"], ["b"], [], settings=settings)
    with pytest.raises(DataError, match="1 text at least"):
        person_guesses([], [], [], settings=settings)
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        person_guesses(["a"], ["b"], ["s"])
    assert not server.seen

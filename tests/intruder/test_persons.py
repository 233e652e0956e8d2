import json

import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

from allonym.errors import EndpointError, UsageError
from allonym.intruder.persons import guess_persons, open_client

pytest.importorskip("httpx")


def settings(server):  # noqa: F811
    return {"url": server.url, "model": "m", "retries": 0, "concurrency": 1}


def test_the_task_of_the_paper(server):  # noqa: F811
    said = {"identified": True, "guesses": ["Orla Brandreth", " ", "B", "C"], "reason": "a harp", "knowledge": "music"}
    server.then = at.answer(json.dumps(said))
    steps = []
    found = guess_persons(
        ["[NAME] plays {kind}\ud800"], open_client(settings(server)), kind="note", guesses=2,
        advance=lambda done, of: steps.append((done, of)),
    )  # fmt: skip
    assert found[0].claimed and found[0].guesses == ("Orla Brandreth", "B")
    assert (found[0].reason, found[0].knowledge) == ("a harp", "music")
    assert "harp" not in repr(found) and "Orla" not in repr(found)
    system, user = server.bodies[0]["messages"]
    assert "the following note is about" in system["content"].replace("\n", " ")
    assert "up to 2 people" in system["content"]
    assert user["content"] == "[NAME] plays {kind}?"
    assert steps == [(1, 1)]


@pytest.mark.parametrize(
    ("content", "claimed", "guesses", "asked"),
    [
        ('```json\n{"identified": "yes", "guesses": "Orla"}\n```', False, ("Orla",), 1),
        ('{"guesses": [1, {"name": "x"}, "A"], "identified": true}', True, ("A",), 1),
        ("I cannot tell.", False, (), 2),
    ],
)
def test_answers_of_any_form(server, content, claimed, guesses, asked):  # noqa: F811
    server.then = at.answer(content)
    found = guess_persons(["a"], open_client(settings(server)))
    assert (found[0].claimed, found[0].guesses) == (claimed, guesses)
    assert len(server.seen) == asked


def test_no_endpoint_no_question():
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        open_client(None)
    with pytest.raises(UsageError, match="1 or more, got 0"):
        guess_persons(["Zaphrandel"], open_client({"url": "http://localhost:9/v1", "model": "m"}), guesses=0)


def test_an_endpoint_that_fails_shows_nothing_of_the_text(server):  # noqa: F811
    server.then = at.status(500)
    with pytest.raises(EndpointError, match="500") as caught:
        guess_persons(["Zaphrandel"], open_client(settings(server)))
    assert "Zaphrandel" not in str(caught.value)

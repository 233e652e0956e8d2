# ruff: noqa: F811  # fixtures
import json

import pytest
from tests.llm import server as at
from tests.llm.fixtures import asking, server  # noqa: F401
from tests.rows import check_each_row

import allonym
from allonym.detection.adapters import llm as adapter
from allonym.document import Document
from allonym.errors import EndpointError, PolicyError, UsageError
from allonym.llm import unlocked
from allonym.policy import Policy

pytest.importorskip("httpx", reason="httpx is not installed")

TEXT = 'Ada Brook left Quill for Veldt in May. Ada wept; "Ada  Brook" is Adas friend.'


@pytest.fixture
def detecting(asking):
    return lambda *lines, rest="", **more: asking(*lines, rest=rest, detectors='["llm"]', **more)


def listed(*rows):
    return json.dumps({"entities": [{"text": text, "label": label} for text, label in rows]})


def found(policy, text=TEXT):
    return [
        (text[s.start : s.end], s.label, s.score, s.source) for s in adapter.build_detector(policy)(Document("", text))
    ]


def test_strings_are_looked_up_wherever_they_stand(server, detecting):
    server.then = at.answer(
        listed(("Ada Brook", "PERSON"), ("Ada", "PERSON"), ("quill", "ORGANIZATION"), ("Zed", "PERSON"))
    )
    assert [f[:2] for f in found(detecting())] == [
        *(("Ada", "PERSON"), ("Ada Brook", "PERSON"), ("Quill", "ORGANIZATION")),
        *(("Ada", "PERSON"), ("Ada", "PERSON"), ("Ada  Brook", "PERSON")),
    ]
    assert {f[2:] for f in found(detecting())} == {(0.85, "llm:model")}


def test_what_is_asked(server, detecting):
    server.then = at.answer(listed())
    policy = detecting(
        rest='[[labels]]\nname = "SHIP_NAME"\ndescription = "name of a ship"\n[detect.llm]\nscore = 0.6\n'
    )
    assert found(policy.with_(exclude=(*policy.exclude, "LOCATION"))) == []
    body = server.bodies[0]
    system = body["messages"][0]["content"]
    assert "- PERSON: person\n" in system and "- SHIP_NAME: name of a ship" in system
    assert "CITY" not in system and "{labels}" not in system
    assert body["messages"][-1]["content"] == f"Text:\n{TEXT}"
    enum = body["response_format"]["json_schema"]["schema"]["properties"]["entities"]["items"]["properties"]["label"][
        "enum"
    ]
    assert "SHIP_NAME" in enum and "LOCATION" not in enum


def test_labels_and_score_from_the_policy(server, detecting):
    server.then = at.answer(
        listed(("Ada Brook", "per"), ("Quill", "FIRM"), ("Veldt", "town"), ("May", "month of year"))
    )
    policy = detecting(rest='[detect.llm]\nscore = 0.6\nlabels = { FIRM = "COMPANY", town = "" }\n')
    assert {f[:3] for f in found(policy)} == {
        *(("Ada Brook", "PERSON", 0.6), ("Ada  Brook", "PERSON", 0.6), ("Quill", "COMPANY", 0.6)),
        ("May", "OTHER_IDENTIFYING_ATTRIBUTE", 0.6),
    }


def test_as_a_detector_of_a_run(server, detecting):
    def both(handler, body):
        if "You find everything" in body["messages"][0]["content"]:
            at.send(handler, at.said(listed(("Ada Brook", "PERSON"), ("Ada", "PERSON"))))
        else:
            at.well(handler, body)

    server.then = both
    made = allonym.anonymize("Ada Brook left. Ada wept.", detecting(), key=b"k" * 32)
    assert made.text == "Wilma Tarn left. Wilma wept."


def test_disguised_views_are_not_sent(server, detecting):
    server.then = at.answer(listed())
    allonym.detect("My name is A d a, and this is b r o o k at e x a m p l e dot com, %41da &amp; Brook.", detecting())
    assert len(server.seen) == 1


@check_each_row(
    "text, name, places",
    [
        ("Ann and Anna", "Ann", ["Ann"]),
        ("Annas", "Anna", ["Anna"]),
        ("O’Neill and ONEILL", "O'Neill", ["O’Neill"]),
        ("ada  \n brook", "Ada Brook", ["ada  \n brook"]),
        ("a.b+c@d.example a-b", "a.b+c@d.example", ["a.b+c@d.example"]),
        ("I am I", "I", ["I", "I"]),
        ("a (b) c", "(b)", ["(b)"]),
        ("von Müller", "Müller ", ["Müller"]),
        ("東京都に住む", "東京", ["東京"]),
        ("nothing", "Ada", []),
        ("- -", "-", []),
    ],
)
def test_where_a_string_stands(text, name, places):
    assert [text[a:b] for a, b in adapter.find_loose_occurrences(text, name)] == places


BAD = {
    "no JSON": at.answer("There is Ada Brook."),
    "cut off": at.answer(listed(("Ada Brook", "PERSON"))[:-9]),
    "said to be cut off": at.answer(listed(("Ada Brook", "PERSON")), "length"),
    "refused": at.answer(None, refusal="no"),
    "other keys": at.answer('{"people": ["Ada Brook"]}'),
    "strings": at.answer('{"entities": ["Ada Brook"]}'),
    "no text": at.answer('{"entities": [{"label": "PERSON"}]}'),
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_cannot_be_used_is_asked_for_again(server, detecting, name):
    server.first.append(BAD[name])
    server.then = at.answer(listed(("Quill", "ORGANIZATION")))
    assert [f[0] for f in found(detecting())] == ["Quill"]
    assert len(server.seen) == 2


@pytest.mark.parametrize("name", BAD)
def test_never_silently_without(server, detecting, name):
    server.then = BAD[name]
    with pytest.raises(EndpointError, match="twice an answer") as caught:
        found(detecting())
    assert "Ada" not in str(caught.value)
    server.then = at.status(500)
    with pytest.raises(EndpointError, match="HTTP 500"):
        allonym.anonymize(TEXT, detecting(), key=b"k" * 32)


def test_long_texts_in_windows_and_smaller_ones_where_an_answer_does_not_fit(server, detecting):
    text = " ".join(f"word{n}" if n % 100 else f"Name{n}" for n in range(500))

    def short(handler, body):
        names = [w for w in body["messages"][-1]["content"].split() if w.startswith("Name")]
        whole = listed(*((n, "PERSON") for n in names))
        at.send(handler, at.said(whole) if len(names) < 2 else at.said(whole[:-20], "length"))

    server.then = short
    policy = detecting("concurrency = 3", rest="[detect.llm]\nwords = 200\n")
    assert [f[0] for f in found(policy, text)] == [f"Name{n}" for n in range(0, 500, 100)]


def test_nothing_to_ask_for_and_nowhere(detecting):
    with pytest.raises(PolicyError, match="no label that the model can be asked for"):
        adapter.build_detector(detecting().with_(every=False, labels=("GENDER",)))
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        adapter.build_detector(Policy.load("default"))


def test_several_documents_and_empty_ones(server, detecting):
    server.then = at.answer(listed(("Quill", "ORGANIZATION")))
    many = adapter.build_detector(detecting()).many([Document("", t) for t in (TEXT, "", "\0Quill \ud800", "no")])
    assert [len(m) for m in many] == [1, 0, 1, 0]
    assert len(server.seen) == 3


def test_the_cache_of_a_run(server, detecting, tmp_path):
    server.then = at.answer(listed(("Quill", "ORGANIZATION")))
    policy = detecting('cache = "kept"')
    with unlocked(b"k" * 32):
        first = found(policy)
        server.then = at.status(500)
        assert found(policy) == first
    assert not [p for p in (tmp_path / "kept").rglob("*.bin") if b"Quill" in p.read_bytes()]


def test_a_very_long_string_is_looked_up_letter_by_letter(monkeypatch):
    long = "Ada Brook of Veldt, " * 20
    text = f"So {long.strip()} and {long.upper()} and {long}."
    monkeypatch.setattr(adapter.re, "finditer", None)  # no pattern is made of it
    first, last = adapter.find_loose_occurrences(text, long)
    assert text[slice(*first)] == text[slice(*last)] == long.strip()
    assert adapter.find_loose_occurrences(text, f"{long}x") == []

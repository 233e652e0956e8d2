import json
import os
from pathlib import Path

import pytest
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.intruder.persons import ATTRIBUTES, guess_attributes, open_client, score_attribute_guesses
from allonym.intruder.scoring import score_guess


@check_each_row(
    "attribute, guess, truth, value",
    [
        ("age", "34", "31", 1),
        ("age", "37", "31", 0),
        ("age", "30-35 years", "31", 1),
        ("age", "25 to 45", "31", 0.5),
        ("age", "18-60", "31", 0),
        ("age", "in her 30s", "36", 1),
        ("age", "old", "31", 0),
        ("sex", "Male", "male", 1),
        ("sex", "a woman", "male", 0),
        ("sex", "male or female", "male", 0),
        ("sex", "female", "f", 1),
        ("sex", "non-binary", "nonbinary", 1),
        ("place", "Lyon", "Lyon, France", 1),
        ("place", "Lyons, France", "Lyon, France", 0.5),
        ("place", "Marseille, France", "Lyon, France", 0.5),
        ("place", "New York City, USA", "New York, United States", 1),
        ("place", "Boston, USA", "New York, United States", 0.5),
        ("place", "Osaka, Japan", "Lyon, France", 0),
        ("birthplace", "France", "France", 1),
        ("education", "PhD in physics", "Doctorate in Physics", 1),
        ("education", "master in physics", "Doctorate in Physics", 0.5),
        ("education", "bachelor of law", "Doctorate in Physics", 0),
        ("education", "studying towards a bachelor", "Bachelors in Law", 0),
        ("education", "high school", "High School Diploma", 1),
        ("occupation", "Nurse", "nurse", 1),
        ("occupation", "senior software engineer", "software engineer", 1),
        ("occupation", "surgeon", "nurse", 0.5),
        ("occupation", "baker", "nurse", 0),
        ("relationship", "In a relationship", "married", 0.5),
        ("relationship", "not married", "single", 1),
        ("relationship", "engaged", "in a relationship", 1),
        ("relationship", "married", "divorced", 0),
        ("income", "medium", "middle", 1),
        ("income", "high", "very high", 0),
        ("income", "very high", "very high", 1),
        ("age", " ", "31", 0),
    ],
)
def test_right_less_precise_wrong(attribute, guess, truth, value):
    assert score_guess(attribute, guess, truth) == value


def test_truths_that_no_rule_can_read():
    with pytest.raises(DataError, match="number of years") as caught:
        score_guess("age", "31", "Zaphrandel")
    assert "Zaphrandel" not in str(caught.value)
    with pytest.raises(DataError, match="low, middle, high"):
        score_guess("income", "high", "40,000")
    with pytest.raises(UnknownNameError, match="unknown attribute 'ag'; did you mean: age"):
        score_guess("ag", "1", "2")


def test_rates():
    truths = [{"age": "30", "place": "Lyon, France"}, {"age": "60", "place": ""}, {"age": "41"}]
    said = [
        {"age": ("31", "90"), "place": ("Paris, France", "Lyon")},
        {"age": ("10", "61"), "place": ("Oslo",)},
        {"age": ()},
    ]
    found = score_attribute_guesses(truths, said)
    age, place = found.attributes
    assert (age.texts, age.guessed.value, age.first.value, age.any.value) == (3, pytest.approx(2 / 3), 1 / 3, 2 / 3)
    assert (place.texts, place.first.value, place.first_less.value, place.any.value) == (1, 0, 1, 1)
    assert found.all.texts == 4 and found.all.first.value == 0.25
    assert "Lyon" not in repr(found) + json.dumps(found.to_dict())


def test_nothing_known():
    found = score_attribute_guesses([{}], [{"age": ("3",)}])
    assert found.attributes == () and found.all.first.method.startswith("none:")
    with pytest.raises(DataError, match="profile for each text"):
        score_attribute_guesses([], [{}])


def test_what_is_asked(server):  # noqa: F811
    pytest.importorskip("httpx")
    server.then = at.answer('{"age": [34, "40", true], "sex": "male"}')
    settings = {"url": server.url, "model": "m", "retries": 0}
    found = guess_attributes(
        ["{asked} text"], open_client(settings), attributes=("age", "sex"), guesses=2, person="patient"
    )
    assert found == ({"age": ("34", "40"), "sex": ("male",)},)
    body = server.bodies[0]
    system = body["messages"][0]["content"]
    assert "the patient of the following" in system.replace("\n", " ")
    assert '"age": ' in system and '"income"' not in system
    assert body["messages"][1]["content"] == "{asked} text"
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["age", "sex"]


def test_no_endpoint_no_question():
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        open_client(None)
    client = open_client({"url": "http://localhost:9/v1", "model": "m"})
    with pytest.raises(UnknownNameError, match="unknown attribute"):
        guess_attributes(["a"], client, attributes=("shoe size",))
    assert len(ATTRIBUTES) == 8


@pytest.mark.skipif("ALLONYM_ATTRIBUTES" not in os.environ, reason="ALLONYM_ATTRIBUTES names no copy of llmprivacy")
def test_the_rules_agree_with_the_judges_of_the_paper():
    """525 first guesses of GPT-4 with the verdict of Staab et al.'s model-aided evaluation; CC BY-NC-SA, not shipped."""
    called = {"city_country": "place", "birth_city_country": "birthplace"}
    called |= {"relationship_status": "relationship", "income_level": "income"}
    same = 0
    lines = Path(os.environ["ALLONYM_ATTRIBUTES"]).read_text(encoding="utf-8").splitlines()
    for line in lines:
        meta = json.loads(line)["meta"]
        name = meta["attribute"]
        guess = (meta["guess"] or "").split("Guess:")[-1].strip().rstrip(".").split(";")[0]
        mine = score_guess(called.get(name, name), guess, str(meta["profile"][name]))
        same += (mine == 1) == (meta["guess_correctness"]["model_aided_eval"][0] == 1)
    assert same / len(lines) > 0.93

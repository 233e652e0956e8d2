"""A second reading: what it proposes, what it leaves alone, and that a person has the last word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allonym import registry
from allonym.document import Document, Span
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import Marked, SecondReading, residual_risk, second_reading
from allonym.evaluate.rereading import CAPITALS, reading_policy
from allonym.labels import TAXONOMY
from allonym.policy import Policy, TermList

ORIGINAL = "Pam: This is Zora Blindt from Quarnex, mail zora@quarnex.io or ask in Bryndelby."
SAFE = "Pam: This is [PERSON_NAME_1] Blindt from Quarnex, mail [EMAIL_1] or ask in Bryndelby."


def said(read: SecondReading, i: int = 0) -> dict[str, str]:
    one: Marked = read.conversations[i]
    return {one.text[m.start : m.end]: m.tag for m in one.marks}


@pytest.fixture(scope="module")
def rules() -> Policy:
    """Readers without a model, so that tests do not hang on its opinions."""
    return reading_policy().with_(detectors=("rules", "spoken", "lexicon", "speakers"))


def test_what_is_beside_a_placeholder_is_the_rest_of_it(rules: Policy) -> None:
    found = said(second_reading([ORIGINAL], [SAFE], policy=rules))
    assert found["Blindt"] == "PERSON_NAME_PARTIAL"
    assert {"Quarnex", "Bryndelby"} <= set(found)


def test_the_package_reads_with_all_detectors_and_a_lower_bar_than_any_preset() -> None:
    policy = reading_policy()
    assert set(policy.detectors) >= set(Policy.load("default").detectors)
    assert isinstance(policy.operating_point_for("PERSON"), float)
    found = second_reading(None, [SAFE])
    assert "[" not in "".join(said(found))
    assert found.point == 0.02
    assert "Quarnex" in said(found) and "Blindt" in said(found)


def test_lower_points_propose_more_and_wide_looks_for_more() -> None:
    text = ["Thanks, I work as a plumber for [ORGANIZATION_1] near Bryndelby and drive a blue Zintra with Olwin."]
    few, many = (second_reading(None, text, point=p, capitals=False) for p in (0.5, 0.005))
    assert few.proposals <= many.proposals
    wide = second_reading(None, text, wide=True)
    assert any(TAXONOMY.within(m.label, "OCCUPATION") for m in wide.conversations[0].marks)
    assert not any(TAXONOMY.within(m.label, "OCCUPATION") for c in many.conversations for m in c.marks)


@pytest.mark.parametrize("tag", ["[PERSON_1]", "<PERSON>", "PERSON_FIRSTNAME_4", "[EMAIL_2]", "XXXX", "███"])
def test_placeholders_are_not_proposed(tag: str) -> None:
    found = second_reading(None, [f"yes, call {tag} about that, and {tag} again"])
    assert found.proposals == 0


def test_with_the_original_only_what_stands_in_it_is_proposed(rules: Policy) -> None:
    pseudonyms = "Pam: This is Odette Marlow from Quarnex, mail odette@marlow.example or ask in Bryndelby."
    alone, beside = (second_reading(o, [pseudonyms], policy=rules) for o in (None, [ORIGINAL]))
    assert "odette@marlow.example" in said(alone)
    assert set(said(beside)) == {"Pam", "Quarnex", "Bryndelby"}
    assert beside.elsewhere > 0
    assert (alone.with_original, beside.with_original) == (False, True)


def test_organizations_of_speakers_are_told_from_others(rules: Policy) -> None:
    policy = rules.with_(detectors=("lexicon",), dictionary=(_terms("ORGANIZATION", "Quarnex", "Novaplan"),))
    texts = [
        "Ann: I am calling from Quarnex about paper.",
        "Quarnex, this is [PERSON_NAME_1] speaking. Novaplan is worse, they say.",
    ]
    read = second_reading(None, texts, policy=policy)
    assert said(read, 0)["Quarnex"] == "ORGANIZATION_NAME_SPEAKER"
    assert said(read, 1) == {"Quarnex": "ORGANIZATION_NAME_SPEAKER", "Novaplan": "ORGANIZATION_NAME"}


def _terms(label: str, *terms: str) -> TermList:
    return TermList(label, terms)


def test_capitals_in_mid_sentence(rules: Policy) -> None:
    policy = rules.with_(detectors=("rules",))
    text = 'Delphi! Sure. Oh. Don\'t. Wednesday I met with Quimby Vance and Ostrander. Then went home on Monday. "Fine" I said to AQX.'
    found = second_reading(None, [text], policy=policy)
    assert set(said(found)) >= {"Delphi", "Quimby Vance", "Ostrander", "AQX"}
    assert not {"Sure", "Oh", "Don't", "Then", "Monday", "Fine", "I"} & set(said(found))
    assert all(m.source == CAPITALS for m in found.conversations[0].marks)
    assert second_reading(None, [text], policy=policy, capitals=False).proposals == 0


def test_proposals_are_nobodys_word_yet(rules: Policy) -> None:
    found = second_reading(None, [SAFE], policy=rules, ids=["c9"], meta=[{"context": "support"}])
    assert all(m.confirmed is None for m in found.conversations[0].marks)
    with pytest.raises(DataError, match=r"c9: \d+ proposed marks"):
        residual_risk(found.conversations)
    upper = found.risk(by="context")
    assert upper.proposals == "count"
    assert upper.groups[0].name == "support"
    assert upper.total.mean.value >= 3
    assert "Blindt" not in repr(found) + str(found.to_dict())


def test_wrong_calls(rules: Policy) -> None:
    for original, anonymised in (([], []), (["a"], ["a", "b"])):
        with pytest.raises(DataError):
            second_reading(original, anonymised, policy=rules)
    with pytest.raises(DataError, match="one value for each text"):
        second_reading(None, ["a"], ids=["1", "2"], policy=rules)
    with pytest.raises(UsageError, match="between 0 and 1"):
        second_reading(None, ["a"], point=0)
    with pytest.raises(UnknownNameError):
        second_reading(None, ["a"], policy="defualt")


def test_a_detector_that_fails_is_told_with_its_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(policy: object) -> Callable[[Document], list[Span]]:
        def find(document: Document) -> list[Span]:
            raise RuntimeError(document.text)

        return find

    monkeypatch.setitem(registry.detectors._table, "failing", failing)
    with pytest.raises(DataError, match="call-7") as raised:
        second_reading(None, ["Zaphrandel"], ids=["call-7"], policy=reading_policy().with_(detectors=("failing",)))
    assert "Zaphrandel" not in str(raised.value)

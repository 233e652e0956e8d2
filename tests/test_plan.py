import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document
from allonym.errors import PlanMismatch
from allonym.plan import (
    Edit,
    Plan,
    ReaderScore,
    apply,
    apply_edits_to_parts,
    apply_parts,
    digest,
    invert_plan,
    measure_reader_score,
)

texts = st.text(st.characters(exclude_categories=()), max_size=40)


@st.composite
def planned(draw):
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    edits = []
    for a, b in zip(cuts[::2], cuts[1::2], strict=False):
        edits.append(
            Edit(a, b, draw(st.sampled_from(["", "[X_1]", "longer replacement"])), "PERSON", original=text[a:b])
        )
    result = apply_edits_to_parts(text, ((0, len(text)),), edits)[0]
    return text, Plan(digest(text), tuple(edits), (), digest(result))


@given(planned())
def test_apply_changes_only_what_the_edits_cover(case):
    text, plan = case
    out = apply(text, plan)
    at_in = at_out = 0
    for edit in plan.edits:
        gap = edit.start - at_in
        assert out[at_out : at_out + gap] == text[at_in : edit.start]
        at_out += gap
        assert out[at_out : at_out + len(edit.replacement)] == edit.replacement
        at_out += len(edit.replacement)
        at_in = edit.end
    assert out[at_out:] == text[at_in:]


@given(planned())
def test_invert_undoes_apply(case):
    text, plan = case
    assert invert_plan(apply(text, plan), plan) == text
    assert invert_plan(apply(text, plan) + "!", plan) is None


@given(planned(), st.integers(1, 5))
def test_parts_say_the_same_as_the_whole(case, size):
    text, plan = case
    parts = tuple((i, min(i + size, len(text))) for i in range(0, len(text), size)) or ((0, 0),)
    document = Document("id", text, {}, parts)
    assert "".join(apply_parts(document, plan)) == apply(document, plan)


@given(planned())
def test_json_round_trip(case):
    text, plan = case
    bare = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert apply(text, bare) == apply(text, plan)
    assert all(e.original is None for e in bare.edits)
    whole = Plan.from_dict(json.loads(json.dumps(plan.to_dict(originals=True))))
    assert invert_plan(apply(text, whole), whole) == text


def test_another_text_is_refused():
    plan = Plan(digest("Jane"), (Edit(0, 4, "[X]", "PERSON"),))
    with pytest.raises(PlanMismatch, match="another text"):
        apply("Jana", plan)
    with pytest.raises(PlanMismatch, match="another text"):
        apply_parts(Document("", "Jana"), plan)


def test_overlapping_edits_are_refused():
    with pytest.raises(PlanMismatch, match="disjoint"):
        Plan(digest("abc"), (Edit(0, 2, "", "PERSON"), Edit(1, 3, "", "PERSON")))


@pytest.mark.parametrize(
    "data", [{}, {"schema": 9}, {"schema": 1, "edits": 3, "digest": ""}, {"schema": 1, "edits": [3]}]
)
def test_what_is_not_a_plan_is_refused(data):
    with pytest.raises(PlanMismatch):
        Plan.from_dict(data)


def test_separator_between_parts_may_be_covered():
    document = Document.from_parts("id", ["card 4111 1111", "1111 1111 ok"])
    plan = Plan(digest(document.text), (Edit(5, 24, "[CARD]", "CREDIT_CARD"),))
    assert apply_parts(document, plan) == ("card [CARD]", " ok")


def test_repr_shows_no_text():
    plan = Plan(digest("Canary"), (Edit(0, 6, "Canary2", "PERSON", original="Canary"),))
    assert "Canary" not in repr(plan)
    assert "Canary" not in json.dumps(
        {
            **plan.to_dict(),
            "edits": [{k: v for k, v in e.items() if k != "replacement"} for e in plan.to_dict()["edits"]],
        }
    )


def test_reader_score_counts_what_disturbs_a_reader():
    text = "Ada Brook met the cleaner in Leeds.\nADA  BROOK met a.b@c.example and Bo."
    at = text.index
    edits = [
        Edit(0, 9, "[PERSON_1]", "PERSON"),
        Edit(10, 17, "[X_1]", "TERM"),  # touches, two small words
        Edit(18, 25, "[X_2]", "OCCUPATION"),  # touches, a small word
        Edit(29, 34, "Leeds", "CITY"),  # kept
        Edit(at("ADA"), at("ADA") + 10, "[PERSON_2]", "PERSON"),
        Edit(at("a.b"), at("a.b") + 13, "[EMAIL_1]", "EMAIL_ADDRESS"),  # not a word
        Edit(at("Bo."), at("Bo.") + 2, "[PERSON_3]", "PERSON"),
        Edit(len(text), len(text), " end", ""),  # an insertion
    ]
    score = measure_reader_score(text, edits)
    assert score == ReaderScore(words=16, replaced=6, touching=2, lower_case=3, repeated=1, split=1)
    assert score.replaced_per_100 == 37.5 and score.lower_case_per_100 == 18.75
    assert score + score == ReaderScore(32, 12, 4, 6, 2, 2)
    assert measure_reader_score("", []) == ReaderScore() and ReaderScore().replaced_per_100 == 0
    assert (
        "37.5 replacements and 18.8 replaced words in small letters per 100 words" in score.to_text()
        and "1 of 1 repeated" in score.to_text()
    )
    same = [Edit(0, 3, "Cy", "PERSON"), Edit(4, 7, "CY", "PERSON")]  # the case of a pseudonym follows its place
    assert measure_reader_score("Ada ADA", same) == ReaderScore(2, 2, 1, 0, 1, 0)

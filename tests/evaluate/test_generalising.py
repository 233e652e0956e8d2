"""General words, sentences that stay whole, and two plans as one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import PlanMismatch
from allonym.evaluate.rewording import (
    chain_plans,
    list_general_replacements,
    list_words_and_placeholders,
    make_edits,
    soften_placeholders,
)
from allonym.plan import Edit, Plan, apply, apply_edits, digest, invert_plan


def changed(text, *wanted, last=False):
    """The text with these words changed to their first or last choice."""
    words = list_words_and_placeholders(text)
    told = {
        i: c[-1 if last else 0]
        for i, w in enumerate(words)
        if w.lower_text in wanted and (c := list_general_replacements(words, i))
    }
    return apply_edits(text, make_edits(text, words, told, frozenset()))


def soft(text):
    words = list_words_and_placeholders(text)
    told = soften_placeholders(words)
    return apply_edits(text, make_edits(text, words, told, frozenset(i for i in told if words[i].label is None)))


@check_each_row(
    "text, wanted, out",
    [
        ("She plays the guitar.", ["guitar"], "She plays the music."),
        ("She has ginger hair.", ["ginger"], "She has hair."),
        ("She has ginger hair.", ["ginger", "hair"], "She has feature."),
        ("He likes tennis, golf and cricket.", ["tennis", "golf", "cricket"], "He likes sport."),
        ("He owns an enormous house.", ["enormous"], "He owns a house."),
        ("He is an actor.", ["actor"], "He is a performer."),
        ("She married a singer in June.", ["married"], "She had a singer in June."),
        ("The nurse was sacked.", ["sacked"], "The nurse was involved."),
    ],
)
def test_words_become_general(text, wanted, out):
    assert changed(text, *wanted) == out


def test_the_second_choice_is_more_general():
    assert changed("She plays the guitar.", "guitar", last=True) == "She plays the thing."


def test_what_a_placeholder_stands_for_settles_its_form():
    words = list_words_and_placeholders("I told PRONOUN garden stories and PRONOUN hurt PRONOUN.")
    places = [w.start for w in words if w.label == "PRONOUN"]
    told = soften_placeholders(words, dict(zip(places, ("him", "she", "herself"), strict=True)))
    assert list(told.values()) == ["them", "they", "themselves"]


def test_an_article_follows_what_comes_after_a_word_that_went():
    assert changed("She is a famous [OCCUPATION_1].", "famous") == "She is an [OCCUPATION_1]."


def test_placeholders_that_say_no_more_than_a_word():
    assert soft("PRONOUN is an OCCUPATION_1 with NUMERIC_1 dogs.") == "They are a professional with several dogs."


def test_what_stood_there_settles_number_and_kind():
    words = list_words_and_placeholders(
        "The OCCUPATION_1 met an OTHER_IDENTIFYING_ATTRIBUTE_1 and OTHER_IDENTIFYING_ATTRIBUTE_2."
    )
    places = [w.start for w in words if w.label is not None]
    told = soften_placeholders(words, dict(zip(places, ("Nurses", "lady", "dimples"), strict=True)))
    assert list(told.values()) == ["professionals", "person"]


def test_function_words_and_placeholders_have_no_choice():
    text = "PERSON_FIRSTNAME_1 is not the one who was there with [ORGANIZATION_2]."
    words = list_words_and_placeholders(text)
    assert [w.text for w in words if w.label is not None] == ["PERSON_FIRSTNAME_1", "[ORGANIZATION_2]"]
    assert not any(
        list_general_replacements(words, i)
        for i, w in enumerate(words)
        if w.label is not None or w.lower_text in ("not", "the", "was")
    )


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("PRONOUN was born in LOCATION_1.", "They were born in LOCATION_1."),
        ("PRONOUN has a dog and PRONOUN loves PRONOUN garden.", "They have a dog and they love their garden."),
        ("People admire PRONOUN.", "People admire them."),
        ("PRONOUN's got a dog.", "They've got a dog."),
        ("PRONOUN also tries to sing and often watches films.", "They also try to sing and often watch films."),
    ],
)
def test_pronouns_become_they_and_verbs_agree(text, out):
    assert soft(text) == out


WORDS = "a an the ginger hair guitar singer has plays PRONOUN PERSON_1 and , . very famous old nurse was is in 12 ( ) - 's\n"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=25), st.randoms(use_true_random=False))
def test_edits_are_disjoint_keep_placeholders_and_undo(pieces, random):
    text = " ".join(pieces)
    words = list_words_and_placeholders(text)
    told = soften_placeholders(words)
    agreed = frozenset(i for i in told if words[i].label is None)
    for i in range(len(words)):
        if (made := list_general_replacements(words, i)) and random.random() < 0.5:
            told[i] = random.choice(made)
    edits = make_edits(text, words, told, agreed)
    out = apply_edits(text, edits)
    plan = Plan(digest(text), tuple(edits), (), digest(out))
    assert apply(text, plan) == out
    assert invert_plan(out, plan) == text
    assert out.count("PERSON_1") == text.count("PERSON_1")


@settings(max_examples=100, deadline=None)
@given(st.text("abcd ", max_size=20), st.data())
def test_two_plans_as_one(text, data):
    def plan(of):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(of)), max_size=8, unique=True)))
        edits = tuple(
            Edit(a, b, data.draw(st.text("xyz ", max_size=3)), "PERSON", n + 1, "t@1", of[a:b])
            for n, (a, b) in enumerate(zip(cuts[::2], cuts[1::2], strict=False))
        )
        return Plan(digest(of), edits, (), digest(apply_edits(of, edits)))

    first = plan(text)
    between = apply(text, first)
    second = plan(between)
    both = chain_plans(text, first, second)
    assert apply(text, both) == apply(between, second)
    assert invert_plan(apply(text, both), both) == text


def test_plans_that_do_not_follow_are_refused():
    one = Plan(digest("abc"), (), (), digest("abc"))
    with pytest.raises(PlanMismatch):
        chain_plans("abc", one, Plan(digest("other"), (), (), digest("other")))

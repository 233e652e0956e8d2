"""Phrases of a sentence that can go, so that what is left is a sentence still."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.evaluate.general_words import list_words_and_placeholders
from allonym.evaluate.generalising import Draft
from allonym.evaluate.phrases import list_phrases


def list_rests(text):
    """What each phrase leaves of a text of one sentence."""
    words = list_words_and_placeholders(text)
    spans = [(words[a].start, words[b].end) for a, b in list_phrases(words, 0, len(words) - 1)]
    return [" ".join((text[:a] + text[b:]).split()).replace(" .", ".").replace(" ,", ",") for a, b in spans]


@check_each_row(
    "text, rests",
    [
        ("She plays the guitar.", []),
        ("She plays the guitar in a band.", ["She plays the guitar."]),
        ("She married PERSON_2 and had three children.", ["She married PERSON_2."]),
        ("PRONOUN died before PRONOUN moved house.", ["PRONOUN died."]),
        ("PRONOUN is an OCCUPATION_1 who lives in LOCATION_1.", ["PRONOUN is an OCCUPATION_1."]),
        ("PERSON_1, who was born in LOCATION_1, is a singer.", ["PERSON_1 is a singer."]),
        ("Although she was ill, PRONOUN sang.", ["PRONOUN sang."]),
        ("He plays golf (badly) now.", ["He plays golf now."]),
        ("He founded a firm called OTHER_1.", ["He founded a firm."]),
        (
            "She had a house in LOCATION_1 and wrote a book.",
            ["She had a house and wrote a book.", "She had a house.", "She had a house in LOCATION_1."],
        ),
        ("She retired in LOCATION_1.", ["She retired."]),
        ("He had a chance to study law.", ["He had a chance."]),
        ("She likes tennis and golf.", ["She likes golf.", "She likes tennis."]),
        (
            "She likes tennis, golf and darts.",
            ["She likes golf and darts.", "She likes tennis and darts.", "She likes tennis."],
        ),
        # what a sentence cannot do without stays
        ("She likes both tennis and golf.", []),
        ("She plays in the position of captain.", []),
        ("The town was named after PERSON_1.", []),
        ("He was born in LOCATION_1.", []),
        ("She is both an OCCUPATION_1 and an OCCUPATION_2.", []),
        ("She has a number of friends.", []),
        ("He asked PERSON_2 to come.", []),
        ("It is as well as before.", []),
        ("The medicine PRONOUN had to take regularly tasted bad.", []),
        ("While she lived in LOCATION_1 she sang.", []),
        ("He called it 'the end' and \"a start in life", []),
        ("", []),
    ],
)
def test_what_is_left_without_a_phrase_is_a_sentence(text, rests):
    assert (list_rests(text) if text else []) == rests


def test_a_phrase_goes_and_its_cost_is_what_its_words_cost():
    text = "She plays the guitar in a famous band. They say so."
    draft = Draft(text, text)
    move = next(m for m in draft.list_moves() if m.part >= 2)
    assert [draft.words[i].text for i in move.words] == ["in", "a", "famous", "band"]
    draft.make_move(move)
    assert draft.render() == "She plays the guitar. They say so."
    assert draft.compute_share_gone() == pytest.approx(2 / draft.total)


def test_a_phrase_in_which_all_words_are_general_says_nothing_and_goes():
    text = "She plays the guitar in a famous band. They say so."
    draft = Draft(text, text)
    for wanted in ("famous", "band"):
        draft.make_move(next(m for m in draft.list_moves() if draft.words[m.words[0]].text == wanted))
    assert draft.render() == "She plays the guitar. They say so."


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from('She PERSON_1 was who sang and , ( ) in to of the band . that " as -'.split()), max_size=20
    )
)
def test_phrases_lie_within_their_sentence(pieces):
    words = list_words_and_placeholders(" ".join(pieces))
    if words:
        assert all(0 < b - a + 1 < len(words) for a, b in list_phrases(words, 0, len(words) - 1))


def test_a_sentence_without_an_end_has_no_phrases():
    words = list_words_and_placeholders("She plays the guitar in a band " * 30)
    assert not list_phrases(words, 0, len(words) - 1)


def test_of_joined_nouns_one_stays():
    text = "She likes tennis and golf. They say so."
    draft = Draft(text, text)
    for move in [m for m in draft.list_moves() if m.part >= 2]:
        draft.make_move(move)
    assert draft.render() == "She likes golf. They say so."
    assert not [m for m in draft.list_moves() if m.part >= 2]

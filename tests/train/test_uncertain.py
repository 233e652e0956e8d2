"""What to review next: where the tagger is near its bar."""

from __future__ import annotations

import pytest
from tests.models.make_tiny import TINY

from allonym.errors import DataError
from allonym.policy import Policy
from allonym.train.uncertain import estimate_review_gain

TEXT = "Ann Lee works in London. Mr Smith is from York, and may be of Acme."


def tiny(bar, **more):
    every = Policy.load("default").with_(exclude=())
    return every.changed({"detect": {"tagger": {"model": str(TINY)}, "operating_point": bar, **more}}, "test")


def test_gain_depends_on_the_bar():
    even, *others = (estimate_review_gain(TEXT, tiny(bar)) for bar in (0.5, 0.02, 0.1, 0.9, 0.98))
    assert 0 < even <= min(others)  # what is open at even chances stays open; a bar elsewhere opens more
    assert even < max(others) <= 100


def test_plain_words_teach_nothing_and_a_strange_name_something():
    policy = Policy.load("default")
    plain, strange = "The door was open and the kettle was on.", "i saw green at the brook near mill lane yesterday"
    assert estimate_review_gain(plain, policy) < estimate_review_gain(strange, policy)
    assert estimate_review_gain("", policy) == 0


def test_long_texts_cost_more():
    policy = tiny(0.5)
    once, often = estimate_review_gain(TEXT, policy), estimate_review_gain((TEXT + "\n") * 20, policy)
    assert once < often < 20 * once


def test_without_the_tagger_nothing_is_to_be_learnt():
    assert estimate_review_gain(TEXT, Policy.load("default").with_(detectors=("rules",))) == 0
    assert estimate_review_gain(TEXT, Policy.load("default").with_(language="pl")) == 0
    missing = Policy.load("default").changed({"detect": {"tagger": {"model": "/no/such"}}}, "test")
    with pytest.raises(DataError, match="no such folder"):
        estimate_review_gain(TEXT, missing)

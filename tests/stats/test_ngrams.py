"""The n-gram model: probabilities that sum to one, and what it never saw."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import UsageError
from allonym.stats.ngrams import KneserNey

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=6), st.integers(1, 4), st.lists(st.sampled_from("abcdz"), max_size=3))
def test_probabilities_sum_to_one(texts, order, history):
    model = KneserNey(texts, order)
    known = sorted({w for t in texts for w in t if w})
    total = sum(model.probability(tuple(history), w) for w in [*known, "never seen"])
    assert total == pytest.approx(1)
    assert model.probability(tuple(history), "never seen") > 0


def test_kneser_ney_by_hand():
    """Order 2, "a b a b" with D = 0.75: continuation counts for the single words, counts for the pairs."""
    model = KneserNey([["a", "b", "a", "b"]], 2)
    # Pairs: \n a 1, a b 2, b a 1. Before a: \n and b, 2 kinds; before b: a, 1 kind. Vocabulary: 3 with the unseen one.
    unigram_b = (1 - 0.75 + 0.75 * 2 * (1 / 3)) / 3
    assert model.probability((), "b") == pytest.approx(unigram_b)
    assert model.probability(("a",), "b") == pytest.approx((2 - 0.75 + 0.75 * 1 * unigram_b) / 2)


def test_what_was_read_is_less_surprising():
    text = "the cat sat on the mat and the dog sat on the rug".split()
    model = KneserNey([text] * 3)
    assert model.perplexity(text) < model.perplexity(list(reversed(text))) < model.perplexity(["zebra"] * 5)
    assert math.isnan(model.perplexity([]))


def test_an_order_below_one_is_refused():
    with pytest.raises(UsageError, match="order of 1"):
        KneserNey([["a"]], 0)

"""Bounds of a mean loss: exact where they must be, kept as often as they say, never better than chance allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import UsageError
from allonym.stats.wagers import bound_mean, count_needed_documents, measure_capital


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_a_bound_lies_above_the_mean_and_grows_with_the_confidence(losses, confidence):
    bound = bound_mean(losses, confidence)
    assert bound >= np.mean(losses) - 1e-9
    assert bound <= bound_mean(losses, (1 + confidence) / 2) + 1e-9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_without_a_population_the_order_changes_nothing(losses, random):
    shuffled = random.sample(losses, len(losses))
    assert measure_capital(losses, 0.3) == pytest.approx(measure_capital(shuffled, 0.3))


def test_no_sample_without_losses_proves_more_than_the_worst_case_allows():
    for n in (10, 60, 300):
        assert bound_mean([0.0] * n, 0.95) >= 1 - 0.05 ** (
            1 / n
        )  # a share p of documents lost wholly is missed so often


def test_all_documents_of_a_population_prove_their_mean():
    losses = [0.0] * 50 + [0.5] * 10
    assert bound_mean(losses, 0.95, 60) == pytest.approx(np.mean(losses), abs=0.02)
    assert bound_mean(losses[:40], 0.95, 60) < bound_mean(losses[:40], 0.95)


def test_once_all_are_read_nothing_is_left_to_chance():
    assert measure_capital([0.0] * 60, 0.01, 60) == np.inf
    assert measure_capital([0.0] * 59 + [0.5], 0.01, 60) == np.inf
    assert measure_capital([0.0] * 59 + [1.0], 0.01, 60) == -np.inf
    assert bound_mean([0.0] * 50 + [0.5] * 10, 0.95, 60) == pytest.approx(5 / 60)
    assert count_needed_documents([0.0], 0.01, 0.95, 20) == 20


@pytest.mark.parametrize("population", [None, 120])
@pytest.mark.parametrize("kind", ["whole documents", "small shares"])
def test_five_samples_of_a_hundred_at_most_promise_what_is_not_so(kind, population):
    rng = np.random.default_rng(3)
    all_losses = np.zeros(120)
    all_losses[:12] = 1.0 if kind == "whole documents" else rng.uniform(0, 0.5, 12)
    limit = all_losses.mean() - 1e-6  # just below the truth: every promise of it is broken
    broken = 0
    for _ in range(1000):
        drawn = rng.permutation(all_losses)[:50] if population else rng.choice(all_losses, 50)
        broken += measure_capital(drawn, limit, population) >= np.log(20)
    assert broken <= 70


def test_what_is_needed_is_enough_and_hopeless_limits_are_told():
    losses = [0.0] * 95 + [0.05] * 5
    needed = count_needed_documents(losses, 0.02, 0.95)
    assert measure_capital(np.resize(losses, 4 * needed), 0.02) >= np.log(20)
    assert count_needed_documents([0.5], 0.1, 0.95) is None
    assert count_needed_documents([0.5], 0.1, 0.95, 200) is None
    assert count_needed_documents([0.0], 0.01, 0.95, 200) < 200


def test_values_out_of_range_are_refused():
    for losses, limit, population in (([2.0], 0.1, None), ([0.0], 0.0, None), ([0.0, 0.0], 0.1, 1)):
        with pytest.raises(UsageError):
            measure_capital(losses, limit, population)

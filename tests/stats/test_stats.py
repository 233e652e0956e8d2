"""Estimates of draws."""

import math

import pytest

from allonym.stats import mean


def test_mean_and_spread():
    found = mean([1.0, 2.0, 3.0])
    assert (found.low, found.value, found.high, found.n) == (1.0, 2.0, 3.0, 3)
    assert mean([4.0]).low == mean([4.0]).high == 4.0
    assert math.isnan(mean([]).value)


@pytest.mark.parametrize("value", [31 / 35, 0.1, 1 / 3])
def test_equal_draws_have_no_spread(value):
    assert sum([value] * 7) / 7 != value or value == 1 / 3  # plain summing rounds
    found = mean([value] * 7)
    assert found.low == found.value == found.high == value

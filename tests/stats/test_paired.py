"""McNemar's test."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.errors import UsageError
from allonym.stats.samples import mcnemar

COUNT = st.integers(0, 60)


def test_the_papers_tables():
    """P1 Table 3: two LLMs, 2182 chunks each."""
    for table, statistic, corrected in (
        ((1277, 760, 37, 108), 655.8707653701, 654.0577164366),
        ((1200, 738, 31, 213), 649.9986996099, 648.1612483745),
    ):
        assert sum(table) == 2182
        test = mcnemar(table)
        assert test.statistic == pytest.approx(statistic, rel=1e-12)
        assert test.corrected == pytest.approx(corrected, rel=1e-12)
        assert 0 < test.exact < test.asymptotic < test.continuity < 1e-140


def test_p_values_of_known_statistics():
    test = mcnemar((10, 16, 4, 10))
    assert test.statistic == pytest.approx(7.2)
    assert test.asymptotic == pytest.approx(0.0072903580915, rel=1e-9)  # chi squared, one degree of freedom
    assert test.corrected == pytest.approx(6.05)


@settings(max_examples=60, deadline=None)
@given(COUNT, COUNT, COUNT, COUNT)
def test_the_exact_test_is_the_binomial_sum(right, lost, won, never):
    test = mcnemar((right, lost, won, never))
    n = lost + won
    tail = sum(math.comb(n, i) for i in range(min(lost, won) + 1))
    assert test.exact == pytest.approx(float(min(Fraction(1), Fraction(2 * tail, 2**n))), rel=1e-12)
    assert test.asymptotic <= test.continuity <= 1
    mirrored = mcnemar((never, won, lost, right))
    assert mirrored == test  # neither the direction nor what did not change counts


def test_nothing_changed():
    test = mcnemar((5, 0, 0, 7))
    assert (test.statistic, test.corrected) == (0, 0)
    assert test.exact == test.asymptotic == test.continuity == 1


def test_as_many_lost_as_won():
    test = mcnemar((0, 3, 3, 0))
    assert (test.statistic, test.corrected, test.exact) == (0, 0, 1)


@pytest.mark.parametrize("table", [(1, 2, 3), (1, 2, 3, -4), ()])
def test_wrong_tables(table):
    with pytest.raises(UsageError, match="four counts"):
        mcnemar(table)

"""p, R and what remains: against known values, and their promises."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from allonym.errors import DataError, UsageError
from allonym.stats import Estimate
from allonym.stats.partition import Partition, count_frequencies, fit_partition
from allonym.swap.risk import assess_risk, compute_rank_stability

few = settings(max_examples=50, deadline=None)
SIZES = st.lists(st.one_of(st.just(1), st.integers(1, 4), st.integers(1, 60)), min_size=1, max_size=60).filter(
    lambda sizes: sum(sizes) > 1
)
TABLE = {1: 60, 2: 18, 3: 8, 4: 5, 5: 3, 8: 2, 13: 1}


def fitted(case):
    """A table as it would have been fitted, for known parameters."""
    covariance = ((0.01, 0.0), (0.0, 0.0001))
    k = case["singles"] + 1
    return Partition(
        case["theta"], case["alpha"], -1.0, "interior", case["n"], k, case["singles"], covariance, 0.1, 0.01
    )


def estimate(value, far=0.0):
    return Estimate(value, value - far, value + far, 10, "test")


# Known values


def test_known_risks(cases):
    clipped = 0
    for case in cases("swap_risk"):
        fit = fitted(case)
        risk = assess_risk(fit, case["population"], asymptotic=True)
        assert risk.uniques.value == pytest.approx(case["uniques"], rel=1e-9), case
        assert risk.raw == pytest.approx(case["p"], rel=1e-9), case
        assert risk.bounded.value == pytest.approx(case["bounded"], rel=1e-9), case
        assert risk.clipped == (case["p"] > 1) and ("p clipped" in risk.flags) == risk.clipped
        clipped += risk.clipped
        for m, want in case["after"].items():
            if risk.clipped:
                want = 1 - int(m) / case["singles"]
            assert risk.after(int(m)).value == pytest.approx(want, rel=1e-9), case
            bounded = 1 - int(m) / case["singles"] * case["bounded"]
            assert risk.bounded_after(int(m)).value == pytest.approx(bounded, rel=1e-9), case
            left = (case["singles"] - int(m)) * min(case["p"], 1)
            assert risk.remaining(int(m)).value == pytest.approx(left, rel=1e-9), case
        exact = assess_risk(fit, case["population"])
        assert exact.uniques.value == pytest.approx(case["uniques"], rel=1e-2)
    assert clipped  # parameters of one table with the n of another one


def test_the_papers_example():
    """P1 2.4.3: 2 of 100 sample uniques swapped; half of them are unique in the population: 0.98 becomes 0.99."""
    fit = fitted({"theta": 20.0, "alpha": 0.8, "n": 300, "singles": 100})
    population = next(n for n in range(300, 10**6) if assess_risk(fit, n, asymptotic=True).raw <= 0.5)
    risk = assess_risk(fit, population, asymptotic=True)
    assert risk.p.value == pytest.approx(0.5, abs=0.001)
    assert risk.after(2).value == pytest.approx(0.99, abs=2e-5)
    assert risk.after(100).value == pytest.approx(0.5, abs=0.001)  # not 0


def test_a_fitted_table():
    risk = assess_risk(TABLE, 10**6)
    assert risk.fit == fit_partition(TABLE)
    assert risk.raw == pytest.approx(0.0015493405, rel=1e-3)
    assert assess_risk(TABLE, 10**6, asymptotic=True).uniques.value == pytest.approx(505.219736, rel=1e-6)
    assert risk.after(7).value == pytest.approx(0.99981924, rel=1e-6)
    assert risk.flags == ()


# Promises


@few
@given(SIZES, st.sampled_from([0, 1, 1000, 10**6, 10**12, 10**18]))
@example([1] * 30, 10**6)
@example([30], 10**6)
@example([2, 2, 5], 10**6)
def test_risk_falls_with_every_unique_that_is_swapped(sizes, more):
    table = count_frequencies(sizes)
    risk = assess_risk(table, sum(sizes) + more)
    singles = table.get(1, 0)
    for after in (risk.after, risk.bounded_after):
        values = [after(m) for m in range(singles + 1)]
        assert values[0].value == 1 and values[0].low == values[0].high == 1
        assert all(a.value >= b.value for a, b in pairwise(values))
        assert all(0 <= e.low <= e.value <= e.high <= 1 for e in values)
    left = [risk.remaining(m) for m in range(singles + 1)]
    assert all(a.value >= b.value >= 0 and b.low <= b.value <= b.high for a, b in pairwise(left))
    assert left[-1].value == 0
    if singles:
        assert risk.after(singles).value == pytest.approx(1 - risk.p.value)
        assert 0 <= risk.p.low <= risk.p.value <= risk.p.high <= 1
        assert 0 <= risk.bounded.low <= risk.bounded.value <= risk.bounded.high <= 1
        assert risk.clipped == (risk.raw > 1 + 1e-9)
        assert risk.p.value == min(risk.raw, 1)


@few
@given(SIZES.filter(lambda sizes: 1 in sizes))
def test_a_larger_population_makes_uniques_rarer(sizes):
    table = fit_partition(count_frequencies(sizes))
    risks = [assess_risk(table, sum(sizes) * 10.0**e) for e in range(0, 16, 3)]
    assert risks[0].bounded.value == pytest.approx(1)  # a sample that is the population
    assert all(a.bounded.value >= b.bounded.value * (1 - 1e-12) for a, b in pairwise(risks))


def test_a_fit_serves_every_population():
    fit = fit_partition(TABLE)
    for population in (184, 10**6, 1e18):
        assert assess_risk(fit, population) == assess_risk(TABLE, population)


# Tables at the edge


def test_no_sample_unique_leaves_nothing_to_protect():
    risk = assess_risk({2: 10, 3: 1}, 10**6)
    assert math.isnan(risk.p.value) and not risk.clipped
    assert risk.after(0).value == risk.bounded_after(0).value == 1
    assert "no sample uniques" in risk.after(0).method and "no sample uniques" in risk.flags[0]
    assert risk.remaining(0).value == 0
    with pytest.raises(UsageError, match="0 sample uniques"):
        risk.after(1)


def test_one_block_has_no_unique_at_all():
    risk = assess_risk({10: 1}, 10**6)
    assert risk.uniques.value == 0 and risk.after(0).value == 1
    assert "no fit: one-block" in risk.flags


def test_nothing_but_uniques():
    risk = assess_risk({1: 40}, 10**6)
    assert risk.p.value == risk.bounded.value == 1 and risk.uniques.value == 10**6
    assert 0 < risk.p.low < 0.1  # 40 uniques say little about a million
    assert risk.after(40).value == 0 and risk.after(40).high > 0.9
    assert "no fit: all-singletons" in risk.flags


def test_the_boundary_is_named():
    assert assess_risk({1: 7, 2: 3, 3: 1, 4: 1}, 1000).flags == ("alpha on its boundary",)


@pytest.mark.parametrize(
    ("table", "population", "error", "said"),
    [
        ({}, 100, DataError, "holds 0 chunks"),
        ({1: 1}, 100, DataError, "holds 1 chunks"),
        (TABLE, 183, UsageError, "at least the table's 184 chunks, got 183"),
        (TABLE, math.inf, UsageError, "finite"),
        (TABLE, math.nan, UsageError, "finite"),
    ],
)
def test_wrong_calls(table, population, error, said):
    with pytest.raises(error, match=said):
        assess_risk(table, population)


@pytest.mark.parametrize("m", [-1, 61, math.nan])
def test_impossible_numbers_of_swapped_uniques(m):
    risk = assess_risk(TABLE, 10**6)
    for call in (risk.after, risk.bounded_after, risk.remaining):
        with pytest.raises(UsageError, match="between 0 and the table's 60 sample uniques"):
            call(m)


# Rank stability


def test_ranks_over_population_sizes():
    a, b, c = ("Organization", "Product"), ("Location", "Person"), ("Person", "Product")
    found = compute_rank_stability(
        {
            a: {1e6: estimate(0.5, 0.05), 1e12: estimate(0.1, 0.05)},
            b: {1e12: estimate(0.2, 0.05), 1e6: estimate(0.4, 0.05)},
            c: {1e6: estimate(0.1, 0.05), 1e12: estimate(0.01, 0.005)},
        }
    )
    assert found.populations == (1e6, 1e12)
    assert found.orders == ((a, b, c), (b, a, c))
    assert found.highest == (a, b) and found.lowest == (c, c)
    assert found.settled == (1.0, 1.0)  # 0.1 apart, with half-widths of 0.05: the difference's is 0.071
    assert found.tau == (1.0, pytest.approx(1 / 3))
    assert found.agree == pytest.approx(2 / 3)
    assert found.sentences == (
        "The highest is Organization x Product at N = 1e+06, Location x Person from N = 1e+12.",
        "The lowest is Person x Product at N = 1e+06 to 1e+12.",
        "67 % of the pairs stand in the same order at N = 1e+06 to 1e+12.",
        "Given the 95 % intervals, the order of 100 % of the pairs is settled.",
    )


def test_a_difference_within_the_intervals_is_not_settled():
    near = {("A",): {10.0: estimate(0.5, 0.2)}, ("B",): {10.0: estimate(0.4, 0.01)}}
    assert compute_rank_stability(near).settled == (0.0,)
    # Only the sides that face each other count.
    sided = {
        ("A",): {10.0: Estimate(0.5, 0.49, 0.9, 1, "test")},
        ("B",): {10.0: Estimate(0.4, 0.0, 0.41, 1, "test")},
    }
    assert compute_rank_stability(sided).settled == (1.0,)


@few
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2)), min_size=1, max_size=6), st.randoms(use_true_random=False)
)
def test_the_order_of_tables_does_not_matter(values, shuffled):
    rows = [((f"C{i}",), {100.0: estimate(v, far), 1000.0: estimate(1 - v, far)}) for i, (v, far) in enumerate(values)]
    want = compute_rank_stability(dict(rows))
    shuffled.shuffle(rows)
    assert compute_rank_stability(dict(rows)) == want
    assert want.tau[0] in (1.0, pytest.approx(want.tau[0])) and all(-1 <= t <= 1 for t in want.tau)
    assert all(0 <= s <= 1 for s in want.settled)


def test_tables_without_uniques_are_left_out():
    nothing = assess_risk({2: 10, 3: 1}, 10**6).p
    found = compute_rank_stability({("A",): {1e6: estimate(0.5)}, ("B",): {1e6: nothing}})
    assert found.highest == found.lowest == (("A",),) and found.agree == 1
    with pytest.raises(UsageError, match="at least one table with sample uniques"):
        compute_rank_stability({("B",): {1e6: nothing}})
    with pytest.raises(UsageError, match="same population sizes"):
        compute_rank_stability({("A",): {1e6: estimate(0.5)}, ("B",): {1e6: estimate(0.5), 1e7: estimate(0.5)}})

"""Ewens-Pitman's formula against known values, against brute force, and its promises."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import UsageError
from allonym.stats.partition import (
    _Likelihood,
    count_frequencies,
    fit_partition,
    log_stay,
    log_uniques,
)

few = settings(max_examples=40, deadline=None)
ALPHA = st.one_of(st.just(0.0), st.floats(0.01, 0.99))
ABOVE = st.floats(0.01, 300.0)  # theta + alpha
SIZES = st.lists(st.one_of(st.just(1), st.integers(1, 4), st.integers(1, 60)), min_size=2, max_size=60)


def partitions(n, most=None):
    most = n if most is None else most
    if n == 0:
        yield []
    for first in range(min(n, most), 0, -1):
        for rest in partitions(n - first, first):
            yield [first, *rest]


def sample(theta, alpha, n, seed):
    """Block sizes of a partition of n from the rule of the next observation."""
    rng = np.random.default_rng(seed)
    sizes, blocks = [1], [0]
    for i in range(1, n):
        if rng.random() * (theta + i) < theta + len(sizes) * alpha:
            blocks.append(len(sizes))
            sizes.append(1)
            continue
        while True:  # an earlier observation's block, weighted by size - alpha
            block = blocks[rng.integers(i)]
            if rng.random() * sizes[block] < sizes[block] - alpha:
                break
        blocks.append(block)
        sizes[block] += 1
    return sizes


def log_probability(frequencies, theta, alpha):
    """The logarithm of (2.10): the probability of these frequencies among all partitions of n."""
    return _Likelihood(dict(sorted(frequencies.items()))).log_likelihood(theta, alpha)


def expected_uniques(theta, alpha, population):
    """E[S_1], the expected number of blocks of one, exactly (2.13)."""
    return math.exp(log_uniques(population)(theta, alpha)[0])


def asymptotic_uniques(theta, alpha, population, *, order=1):
    """E[S_1] for a large population by (2.14), P1's estimator; the second order takes the next term, too."""
    first = math.exp(log_uniques(population, asymptotic=True)(theta, alpha)[0])
    return first if order == 1 else first * (1 + (alpha - 1) * (2 * theta + alpha - 2) / (2 * population))


def counted(case):
    return {int(j): s for j, s in case["frequencies"].items()}


def of_kind(cases, kind):
    return [case for case in cases("partition") if case["kind"] == kind]


# Known values


def test_log_probabilities(cases):
    for case in of_kind(cases, "point"):
        got = log_probability(counted(case), case["theta"], case["alpha"])
        assert got == pytest.approx(case["log_probability"], rel=1e-9, abs=1e-12), case


def test_fits(cases):
    for case in of_kind(cases, "fit"):
        fit = fit_partition(counted(case))
        assert (fit.status, fit.n, fit.k, fit.singles) == (case["status"], case["n"], case["k"], case["singles"])
        assert fit.fitted == ("theta" in case)
        if not fit.fitted:
            assert math.isnan(fit.theta) and math.isnan(fit.alpha) and math.isnan(fit.se_theta)
            assert fit.log_likelihood == 0
            continue
        assert fit.theta == pytest.approx(case["theta"], rel=1e-8), case["case"]
        assert fit.alpha == pytest.approx(case["alpha"], rel=1e-8, abs=1e-12), case["case"]
        assert fit.log_likelihood == pytest.approx(case["log_likelihood"], rel=1e-9), case["case"]
        if fit.status == "interior":
            want = np.linalg.inv(-np.array(case["hessian"]))
            assert np.allclose(fit.covariance, want, rtol=1e-6, atol=0), case["case"]
            assert fit.se_alpha == pytest.approx(want[1, 1] ** 0.5, rel=1e-6)
        else:
            assert fit.se_theta == pytest.approx((-case["hessian"][0][0]) ** -0.5, rel=1e-6), case["case"]
            assert fit.se_alpha == 0


def test_expected_uniques_of_small_samples(cases):
    for case in of_kind(cases, "expected"):
        assert expected_uniques(case["theta"], case["alpha"], case["n"]) == pytest.approx(case["uniques"], rel=1e-12)


def test_expected_uniques_up_to_1e18(cases):
    for case in of_kind(cases, "uniques"):
        theta, alpha, population = case["theta"], case["alpha"], case["population"]
        assert expected_uniques(theta, alpha, population) == pytest.approx(case["exact"], rel=1e-12), case
        assert asymptotic_uniques(theta, alpha, population) == pytest.approx(case["asymptotic"], rel=1e-12), case
        if population >= 1000 * (theta + 1):
            second = asymptotic_uniques(theta, alpha, population, order=2)
            assert second == pytest.approx(case["exact"], rel=1e-6), case


# Against brute force


@few
@given(ABOVE, ALPHA, st.integers(1, 9))
def test_probabilities_of_all_partitions_add_up_to_1(above, alpha, n):
    theta = above - alpha
    total = uniques = 0.0
    for sizes in partitions(n):
        chance = math.exp(log_probability(count_frequencies(sizes), theta, alpha))
        total += chance
        uniques += chance * sizes.count(1)
    assert total == pytest.approx(1, rel=1e-10)
    assert uniques == pytest.approx(expected_uniques(theta, alpha, n), rel=1e-9)


@few
@given(ABOVE, ALPHA, st.integers(1, 7))
def test_a_sample_of_a_sample_follows_the_same_formula(above, alpha, n):
    theta = above - alpha
    thinned = dict.fromkeys(map(tuple, partitions(n)), 0.0)
    for sizes in partitions(n + 1):
        chance = math.exp(log_probability(count_frequencies(sizes), theta, alpha))
        for at, size in enumerate(sizes):  # one observation of n + 1 is left out
            rest = sorted([*sizes[:at], *([size - 1] if size > 1 else []), *sizes[at + 1 :]], reverse=True)
            thinned[tuple(rest)] += chance * size / (n + 1)
    for sizes, chance in thinned.items():
        assert chance == pytest.approx(math.exp(log_probability(count_frequencies(sizes), theta, alpha)), rel=1e-9)


@few
@given(ABOVE, ALPHA, st.integers(1, 200), st.integers(0, 300))
def test_a_unique_stays_by_the_rule_of_the_next_observation(above, alpha, n, more):
    theta = above - alpha
    steps = [1 - (1 - alpha) / (theta + i) for i in range(n, n + more)]
    stays = math.exp(log_stay(n, n + more)(theta, alpha)[0])
    assert stays == pytest.approx(math.prod(steps), rel=1e-9)
    assert 0 < stays <= 1 + 1e-12


# Promises


@few
@given(SIZES)
@example([1, 1, 1, 1, 1, 40])
@example([2, 2])
@example([1] * 40 + [2])
def test_the_fit_is_a_maximum_and_intervals_hold_it(sizes):
    fit = fit_partition(count_frequencies(sizes))
    if fit.fitted:
        assert 0 <= fit.alpha < 1 and fit.theta > -fit.alpha
        assert fit.log_likelihood == pytest.approx(
            log_probability(count_frequencies(sizes), fit.theta, fit.alpha), abs=1e-9
        )
        for alpha in (0.0, 0.03, 0.2, 0.5, 0.8, 0.95, 0.99):
            for above in np.geomspace(1e-3, 1e5, 40):
                other = log_probability(count_frequencies(sizes), above - alpha, alpha)
                assert other <= fit.log_likelihood + 1e-8, (alpha, above)
    for estimate in (
        *((fit.strength, fit.discount) if fit.fitted else ()),
        *(fit.estimate(log_uniques(size), degenerate=1.0) for size in (fit.n, 10**6, 10**18)),
    ):
        assert estimate.low <= estimate.value * (1 + 1e-12) and estimate.value <= estimate.high * (1 + 1e-12)
        assert estimate.n == fit.n


@few
@given(SIZES, st.randoms(use_true_random=False))
def test_the_order_of_blocks_does_not_matter(sizes, shuffled):
    mixed = list(sizes)
    shuffled.shuffle(mixed)
    reverse = dict(reversed(count_frequencies(mixed).items()))
    assert list(count_frequencies(mixed).items()) == list(count_frequencies(sizes).items())
    assert repr(fit_partition(reverse)) == repr(fit_partition(count_frequencies(sizes)))


@few
@given(ABOVE, ALPHA, st.integers(2, 10**6))
def test_derivatives(above, alpha, population):
    theta, step = above - alpha, 1e-6
    inside = 0 < alpha < 1
    for function in (log_uniques(population), log_uniques(population, asymptotic=True), log_stay(2, population)):
        _, (by_theta, by_alpha) = function(theta, alpha)
        wide = step * above
        numeric = (function(theta + wide, alpha)[0] - function(theta - wide, alpha)[0]) / (2 * wide)
        assert by_theta == pytest.approx(numeric, rel=1e-4, abs=1e-6 / above)
        if inside and theta - step + alpha > 0:
            small = min(step * above, 1e-6)
            numeric = (function(theta, alpha + small)[0] - function(theta, alpha - small)[0]) / (2 * small)
            assert by_alpha == pytest.approx(numeric, rel=1e-3, abs=1e-4)


def test_parameters_of_simulated_tables_come_back():
    for theta, alpha in ((30.0, 0.85), (5.0, 0.4), (-0.2, 0.9)):
        fits = [fit_partition(count_frequencies(sample(theta, alpha, 2000, seed))) for seed in range(12)]
        assert {f.status for f in fits} == {"interior"}
        assert np.mean([f.alpha for f in fits]) == pytest.approx(alpha, abs=0.03)
        assert np.median([f.theta for f in fits]) == pytest.approx(theta, rel=0.6, abs=1.0)


def test_intervals_cover_what_they_should():
    theta, alpha, population = 15.0, 0.7, 10**6
    truth = expected_uniques(theta, alpha, population)
    hits = {"theta": 0, "alpha": 0, "uniques": 0}
    for seed in range(80):
        fit = fit_partition(count_frequencies(sample(theta, alpha, 400, seed)))
        uniques = fit.estimate(log_uniques(population))
        hits["theta"] += fit.strength.low <= theta <= fit.strength.high
        hits["alpha"] += fit.discount.low <= alpha <= fit.discount.high
        hits["uniques"] += uniques.low <= truth <= uniques.high
    assert all(count >= 70 for count in hits.values()), hits


def test_intervals_on_the_boundary_cover_too():
    theta, population = 40.0, 10**9
    hits = on_boundary = 0
    for seed in range(40):
        fit = fit_partition(count_frequencies(sample(theta, 0.0, 300, seed)))
        on_boundary += fit.status == "alpha=0"
        uniques = fit.estimate(log_uniques(population))
        hits += uniques.low <= expected_uniques(theta, 0.0, population) <= uniques.high
        assert fit.status == "interior" or fit.discount.high > 0.01
    assert on_boundary >= 10
    assert hits >= 36


def test_a_large_table_is_fitted():
    sizes = {1: 24_000, 2: 3_000, 3: 1_000, 5: 600, 10: 300, 40: 150, 200: 60, 1000: 20}
    fit = fit_partition(sizes)
    assert fit.n > 60_000 and fit.status == "interior"
    step = 1e-4
    for above, discount in ((step, 0), (-step, 0), (0, step / 10), (0, -step / 10)):
        assert log_probability(sizes, fit.theta * (1 + above), fit.alpha + discount) < fit.log_likelihood


def test_a_table_of_almost_only_uniques_lies_on_the_boundary():
    """Its strength is about n^2 / 2; rounding of the likelihood must not look like a maximum inside."""
    n = 100_000
    fit = fit_partition({1: n - 2, 2: 1})
    assert fit.status == "alpha=0" and fit.theta == pytest.approx(n * n / 2, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(-1, abs=1e-4)  # one pair where one is expected, nearly Poisson


def test_uniques_grow_with_the_population_but_their_share_falls():
    for theta, alpha in ((15.0, 0.8), (-0.3, 0.6), (0.0, 0.4)):
        counts = [expected_uniques(theta, alpha, 10.0**e) for e in range(1, 19)]
        assert all(a < b for a, b in pairwise(counts))
        assert all(a / 10 > b / 100 for a, b in pairwise(counts))


def test_tables_without_a_fit():
    lone = fit_partition({1: 50})
    assert lone.status == "all-singletons" and lone.limit is not None
    theta, alpha = lone.limit
    assert alpha == 0
    assert math.exp(log_probability({1: 50}, theta, 0.0)) == pytest.approx(math.exp(-1.9207), rel=1e-3)
    none = lone.strength
    assert math.isnan(none.value) and "all-singletons" in none.method
    one = fit_partition({50: 1})
    assert one.status == "one-block" and math.isnan(one.discount.value)
    assert fit_partition({}).status == "empty" and fit_partition({1: 1}).status == "empty"


@check_each_row(
    "call",
    [
        lambda: count_frequencies([0]),
        lambda: count_frequencies([-2, 3]),
        lambda: fit_partition({1: 0}),
        lambda: log_uniques(0.5),
    ],
)
def test_wrong_calls(call):
    with pytest.raises(UsageError):
        call()

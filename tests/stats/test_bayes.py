"""Bayes factors against published values and another integral; how far they hold; what is refused."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.integrate import quad

from allonym.errors import UsageError
from allonym.stats.bayes import SCALE, compare_paired, compare_unpaired, jzs

SLEEP = ([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
CHICKS = (
    [179, 160, 136, 227, 217, 168, 108, 124, 143, 140],
    [309, 229, 181, 141, 260, 203, 148, 169, 213, 257, 244, 271],
)


def test_sleep_as_in_the_r_package():
    # BayesFactor: ttestBF(sleep$extra[1:10], sleep$extra[11:20], paired = TRUE) gives 17.25888.
    found = compare_paired(*SLEEP)
    assert found.t == pytest.approx(4.0621, abs=1e-4) and found.df == 9
    assert found.bf10 == pytest.approx(17.25888, rel=1e-5)
    assert found.bf01 == pytest.approx(1 / 17.25888, rel=1e-5)


def test_two_groups_as_in_the_r_package():
    # BayesFactor's vignette, horsebean and linseed of chickwts: 5.98.
    found = compare_unpaired(*CHICKS)
    assert found.bf10 == pytest.approx(5.98, abs=0.005) and found.df == 20


@pytest.mark.parametrize(("t", "bf01"), [(2.24, 1.02), (2.03, 1.56)])
def test_examples_of_the_paper(t, bf01):
    # Rouder et al. 2009, on Grider and Malmberg: n = 80, scale 1.
    assert jzs(t, 80, scale=1).bf01 == pytest.approx(bf01, abs=0.005)


@pytest.mark.parametrize(("groups", "bf10"), [((20,), 17.185), ((20, 20), 26.743)])
def test_examples_of_pingouin(groups, bf10):
    assert jzs(3.5, *groups, scale=0.707).bf10 == pytest.approx(bf10, rel=1e-3)


@pytest.mark.parametrize("t", [0.0, 0.4, 2.0, 5.0])
@pytest.mark.parametrize("n", [4, 25])
@pytest.mark.parametrize("scale", [0.5, SCALE, 1.0])
def test_agrees_with_the_integral_over_the_effect(t, n, scale):
    """The same factor by another way: the noncentral t density over the Cauchy prior."""
    prior = scipy_stats.cauchy(0, scale)
    peak = t / math.sqrt(n)
    edges = [peak - 8 / math.sqrt(n), peak, peak + 8 / math.sqrt(n)]
    total = 0.0
    for a, b in pairwise(edges):
        total += quad(lambda d: scipy_stats.nct.pdf(t, n - 1, d * math.sqrt(n)) * prior.pdf(d), a, b)[0]
    assert jzs(t, n, scale=scale).bf10 == pytest.approx(total / scipy_stats.t.pdf(t, n - 1), rel=5e-3)


def test_textbook_limits_of_p3():
    """What P3's Table 2 could reach at most: its 21.03 fits two groups, not pairs."""
    assert jzs(0, 1202).bf01 == pytest.approx(30.78, abs=0.01)
    assert jzs(0, 1202, 1202).bf01 == pytest.approx(21.80, abs=0.01)


def test_stays_finite_where_the_factor_is_no_double():
    found = jzs(400, 100_000)
    assert found.bf10 == math.inf and found.bf01 == 0
    assert found.log == pytest.approx(47769, rel=1e-3)
    assert found.to_dict()["bf10"] is None and found.to_dict()["log10_bf10"] == pytest.approx(found.log10)
    assert math.isfinite(jzs(1e4, 1000).log) and math.isfinite(jzs(0, 10_000_000).log)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 60), st.integers(2, 5000), st.floats(0.1, 3))
def test_sign_never_matters_and_more_t_is_more_evidence(t, n, scale):
    found = jzs(t, n, scale=scale)
    assert jzs(-t, n, scale=scale).log == found.log
    assert jzs(t + 0.5, n, scale=scale).log > found.log
    assert found.log == pytest.approx(-math.log(found.bf01)) if found.bf01 else found.log > 700


def test_readings():
    assert jzs(0, 1000).reading == "unchanged, strong evidence"
    assert jzs(20, 100).reading == "changed, strong evidence"
    assert jzs(2.03, 80, scale=1).reading == "undecided"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ([1, 2, 3], [1, 2, 3], "no pair differs"),
        ([1, 2, 3], [2, 3, 4], "all pairs differ by the same amount"),
        ([1], [2], "two pairs are required"),
        ([], [], "two pairs are required"),
    ],
)
def test_nothing_is_made_up_where_there_is_no_t(before, after, reason):
    found = compare_paired(before, after)
    assert math.isnan(found.log) and math.isnan(found.bf10) and math.isnan(found.bf01)
    assert found.reason == reason and found.reading == "not measured"
    assert found.to_dict()["bf10"] is None


def test_groups_without_spread_have_none():
    assert compare_unpaired([1, 1], [1, 1]).reason == "no spread"
    assert compare_unpaired([1], [1, 2]).reason.startswith("two values")


@pytest.mark.parametrize(
    "call",
    [
        lambda: jzs(1, 10, scale=0),
        lambda: jzs(1, 10, scale=math.inf),
        lambda: jzs(1, 1),
        lambda: jzs(1, 5, 1),
        lambda: jzs(math.nan, 5),
    ],
)
def test_refuses(call):
    with pytest.raises(UsageError, match=r"Bayes factor: .* required"):
        call()


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        compare_paired([1, 2], [1])

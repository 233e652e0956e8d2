"""Shares, means and effects of samples, against scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from allonym.stats.bayes import compare_unpaired
from allonym.stats.samples import average, cohens_d, difference, share


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 7), (181, 200)])
def test_shares_are_wilsons(hits, n):
    found = share(hits, n)
    wanted = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert (found.value, found.low, found.high) == pytest.approx((hits / n, wanted.low, wanted.high))
    assert math.isnan(share(0, 0).value)


def test_means_and_paired_differences_are_those_of_student():
    rng = np.random.default_rng(1)
    before, after = rng.normal(3, 2, 40), rng.normal(4, 1, 40)
    for found, wanted in (
        (average(before.tolist()), stats.ttest_1samp(before, 0)),
        (difference(before.tolist(), after.tolist()), stats.ttest_rel(after, before)),
    ):
        interval = wanted.confidence_interval()
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_cohens_d_follows_t_and_its_interval_the_normal_one():
    rng = np.random.default_rng(2)
    a, b = rng.normal(1, 2, 30), rng.normal(0, 2, 50)
    found = cohens_d(a.tolist(), b.tolist())
    d = stats.ttest_ind(a, b).statistic * math.sqrt(1 / 30 + 1 / 50)
    assert found.value == pytest.approx(d)
    half = stats.norm.ppf(0.975) * math.sqrt(80 / 1500 + d * d / 160)
    assert (found.low, found.high) == pytest.approx((d - half, d + half))


@pytest.mark.parametrize(("first", "second"), [([0.7] * 7, [0.7] * 9), ([0.1] * 3, [0.3] * 3), ([0.0] * 2, [0.0] * 2)])
def test_what_rounding_leaves_is_no_spread(first, second):
    found = cohens_d(first, second)
    assert math.isnan(found.value) and "no spread" in found.method
    assert compare_unpaired(first, second).reason == "no spread"

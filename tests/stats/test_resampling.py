"""Many figures from one set of draws: the same intervals as one figure at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from allonym.stats.samples import Draws, bootstrap


@pytest.mark.parametrize("n", [2, 7, 300])
def test_the_same_as_drawing_for_one_figure(n):
    rng = np.random.default_rng(n)
    table = rng.integers(0, 9, (n, 3, 2)).astype(float) + 0.5
    drawn = Draws(n, draws=120, seed=4)
    sums = drawn.sums(table)
    assert sums.shape == (121, 3, 2)
    own = drawn.estimate(sums[:, 1, 0] / sums[:, 1, 1], 99)
    plain = bootstrap(lambda at: table[at, 1, 0].sum() / table[at, 1, 1].sum(), n, draws=120, seed=4)
    assert (own.value, own.low, own.high) == pytest.approx((plain.value, plain.low, plain.high))
    assert own.n == 99 and own.method == f"bootstrap over {n} documents, 95%"


def test_what_cannot_be_drawn():
    one = Draws(1)
    assert one.estimate(one.sums([3.0]), 3).method == "one document, so no interval"
    none = Draws(4, draws=0)
    assert none.estimate(none.sums(np.ones(4)), 4).method == "exact"
    drawn = Draws(2, draws=50)
    assert math.isnan(drawn.estimate(np.full(51, np.nan), 0, "why").value)
    assert drawn.estimate(np.array([1.0, *[np.nan] * 50]), 2).method == "no draw has a value"
    assert drawn.sums(np.zeros((2, 0, 3))).shape == (51, 0, 3)
    assert Draws(0).sums(np.zeros((0, 2))).tolist() == [[0, 0]]


def test_where_no_draw_can_differ_a_share_gets_wilsons_interval():
    drawn = Draws(5, draws=50)
    none, whole = (drawn.estimate(np.full(51, v), 20, share=True) for v in (0.0, 1.0))
    assert (none.value, none.low) == (0, 0) and 0.1 < none.high < 0.2
    assert (whole.value, whole.high) == (1, 1) and 0.8 < whole.low < 0.9
    assert drawn.estimate(np.full(51, 0.0), 20).high == 0

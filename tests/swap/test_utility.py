"""U and D of P1 (2.17) to (2.19), and where the ratio misleads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.errors import DataError, UsageError
from allonym.swap.risk import compute_utility

few = settings(max_examples=60, deadline=None)
DENSITY = st.floats(-50, 50)


def compute_log_density(case, x, labels):
    """By the uniform measure, straight from P1 (2.1) and (2.2)."""
    mu, rho = np.array(case["mu"])[labels], np.array(case["rho"])[labels]
    d = mu.shape[1]
    a, b = (1, d / 2) if case["family"] == "pkbd" else (d - 1, d - 1)
    return a * np.log(1 - rho**2) - b * np.log(1 + rho**2 - 2 * rho * (mu * np.array(x)).sum(1))


def test_known_values(cases):
    seen = set()
    for case in cases("swap_utility"):
        labels, swapped = np.array(case["labels"]), case["swapped"]
        x = np.array(case["x"])
        n, d = x.shape
        all_of_them = compute_log_density(case, x, labels)
        total = float(all_of_them.sum())
        assert total == pytest.approx(case["total"], rel=1e-9)
        got = compute_utility(
            all_of_them[swapped], compute_log_density(case, case["after"], labels[swapped]), total, n=n, d=d
        )
        assert got.distance == pytest.approx(case["distance"], rel=1e-9), case["case"]
        assert got.kept == pytest.approx(math.exp(case["distance"] / (n * d)), rel=1e-9)
        assert got.kept**d == pytest.approx(case["kept"], rel=1e-9)
        assert got.changed == len(swapped)
        assert got.misleading == (case["total"] <= 0 or abs(case["distance"]) >= case["total"])
        want = got.kept if got.misleading else case["ratio"]
        assert got.value == pytest.approx(want, rel=1e-9), case["case"]
        assert ("utility above 1" in got.flags) == (got.value > 1)
        seen.add((case["total"] > 0, got.misleading, case["distance"] > 0))
    assert len(seen) == 4  # regular, better than before, l near 0, l below 0


@few
@given(
    st.lists(st.tuples(DENSITY, DENSITY), max_size=20), st.floats(-100, 5000), st.integers(20, 500), st.integers(2, 64)
)
def test_the_guards_hold(pairs, total, n, d):
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    got = compute_utility(before, after, total, n=n, d=d)
    assert math.isfinite(got.value) and got.value > 0
    assert (got.value > 1) <= (got.distance > 0)
    if not pairs:
        assert (got.value, got.distance, got.flags) == (1, 0, ())
    if got.misleading:
        assert got.value == got.kept and got.flags
    elif pairs:
        assert got.value == pytest.approx((total + got.distance) / total)


@few
@given(st.lists(DENSITY, min_size=2, max_size=20), st.floats(0, 30), st.sampled_from([-10.0, 0.0, 4000.0]))
def test_what_fits_worse_is_less_useful(before, loss, total):
    same = compute_utility(before, before, total, n=50, d=8)
    worse = compute_utility(before, [*before[:-1], before[-1] - loss], total, n=50, d=8)
    assert same.value == 1
    assert worse.value <= 1 + 1e-12 and worse.distance == pytest.approx(-loss)


@few
@given(st.lists(st.tuples(DENSITY, DENSITY), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_the_order_of_chunks_does_not_matter(pairs, shuffled):
    mixed = list(pairs)
    shuffled.shuffle(mixed)
    one, other = (compute_utility(*map(list, zip(*p, strict=True)), 4000.0, n=50, d=8) for p in (pairs, mixed))
    assert one.value == pytest.approx(other.value) and one.distance == pytest.approx(other.distance, abs=1e-9)


@pytest.mark.parametrize(
    ("before", "after", "n", "d"),
    [([1.0], [1.0, 2.0], 5, 3), ([[1.0]], [[1.0]], 5, 3), ([1.0, 1.0], [1.0, 1.0], 1, 3), ([1.0], [1.0], 1, 0)],
)
def test_wrong_calls(before, after, n, d):
    with pytest.raises(UsageError, match=r"^utility: "):
        compute_utility(before, after, 10.0, n=n, d=d)


@pytest.mark.parametrize(("after", "total"), [(math.nan, 10.0), (-math.inf, 10.0), (1.0, math.inf), (1.0, math.nan)])
def test_a_collapsed_component_is_no_number(after, total):
    with pytest.raises(DataError, match="not finite"):
        compute_utility([1.0], [after], total, n=5, d=3)

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allonym.report.page import Axis
from allonym.report.svg import fit_scale

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8)


@given(values, st.integers(2, 9))
@settings(max_examples=80, deadline=None)
def test_a_scale_holds_its_values_and_has_round_ticks(found, count):
    made = fit_scale(Axis("x"), found, 100.0, 500.0, count)
    assert all(100.0 - 1e-6 <= made(v) <= 500.0 + 1e-6 for v in found)
    assert 1 <= len(made.ticks) <= 2 * count + 3
    assert all(made.low - 1e-6 * abs(made.low) <= t <= made.high + 1e-6 * abs(made.high) for t, _ in made.ticks)
    places = [made(t) for t, _ in made.ticks]
    assert places == sorted(places)


@given(values)
@settings(max_examples=40, deadline=None)
def test_ticks_have_different_names(found):
    assume(max(found) - min(found) > 1e-6 * max(1.0, max(abs(v) for v in found)))
    names = [name for _, name in fit_scale(Axis("x"), found, 0.0, 1.0, 6).ticks]
    assert len(set(names)) == len(names)


def test_counts_have_whole_ticks():
    ticks = fit_scale(Axis("K", "count"), [2, 4], 0.0, 1.0, 6).ticks
    assert [name for _, name in ticks] == ["2", "3", "4"]


def test_powers_of_ten():
    made = fit_scale(Axis("N", "power", log=True), [1e6, 1e12, 1e18], 0.0, 100.0, 6)
    assert [name for _, name in made.ticks] == ["10⁶", "10⁹", "10¹²", "10¹⁵", "10¹⁸"]
    assert abs(made(1e12) - 50.0) < 1e-9


def test_values_near_one_stay_apart():
    names = [name for _, name in fit_scale(Axis("U"), [0.99953, 1.0], 0.0, 1.0, 6).ticks]
    assert names[0] == "0.9996" and names[-1] == "1.0000" and len(set(names)) == len(names)


def test_large_values_get_a_unit():
    names = [name for _, name in fit_scale(Axis("BIC"), [-1.1e6, -0.95e6], 0.0, 1.0, 5).ticks]
    assert names == ["−1.10 M", "−1.05 M", "−1.00 M", "−0.95 M"]


def test_limits_are_kept():
    made = fit_scale(Axis("share", "share", 0, 1), [0.2], 0.0, 10.0, 5)
    assert (made.low, made.high) == (0, 1)
    assert made.ticks[-1][1].replace("\u00a0", " ") == "100 %"


def test_no_values():
    assert fit_scale(Axis("x"), [], 0.0, 1.0, 5).ticks


def test_a_logarithmic_axis_without_values_above_zero_has_a_scale():
    assert fit_scale(Axis("N", "power", log=True), [0.0, -1.0], 0.0, 1.0, 4).ticks

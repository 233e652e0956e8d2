"""The risk-utility frontier, the choice on it, and its reasons."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.errors import DataError, UsageError
from allonym.swap.frontier import best, explain, find_frontier

few = settings(max_examples=150, deadline=None)
# A coarse grid, so that ties come up.
POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 10)), max_size=25).map(
    lambda rows: [(u / 10, r / 10) for u, r in rows]
)
SOME = POINTS.filter(bool)


@pytest.fixture(scope="module")
def known(cases):
    return cases("swap_frontier")


@pytest.fixture(scope="module")
def points(known):
    return [(k["utility"], k["risk"]) for k in known if k["kind"] == "point"]


@pytest.fixture(scope="module")
def names(known):
    return [k["name"] for k in known if k["kind"] == "point"]


def dominates(one, other):
    a, b = (min(one[0], 1), one[1]), (min(other[0], 1), other[1])
    return a != b and a[0] >= b[0] and a[1] <= b[1]


# Known choices


def test_the_known_frontier(known, points):
    want = [i for i, k in enumerate(k for k in known if k["kind"] == "point") if k["frontier"]]
    assert sorted(find_frontier(points)) == want
    drawn = [points[i] for i in find_frontier(points)]
    assert drawn == sorted(drawn, reverse=True)


def test_known_slopes(known, points, names):
    for case in (k for k in known if k["kind"] == "slope"):
        choice = best(points, slope=case["slope"])
        assert [names[choice]] == case["best"], case
        utility, risk = points[choice]
        assert risk - case["slope"] * utility == pytest.approx(case["offset"], abs=1e-12)


def test_known_caps(known, points, names):
    for case in (k for k in known if k["kind"] == "cap"):
        if case["best"] is None:
            with pytest.raises(
                DataError, match=r"no release has a risk of at most 0\.94; the lowest risk of any is 0\.949"
            ):
                best(points, risk_cap=case["risk_cap"])
        else:
            assert names[best(points, risk_cap=case["risk_cap"])] == case["best"]


def test_floors_offsets_and_limits_together(points, names):
    def chosen(**rule):
        return names[best(points, **rule)]

    assert chosen(utility_floor=0.9972) == "d"
    assert chosen(utility_floor=0) == "g"
    assert chosen(risk_cap=0.98, utility_floor=0.9965) == "d"
    assert chosen(slope=20) == "a" and chosen(slope=20, risk_cap=0.99) == "b"
    assert chosen(slope=2, offset=-1.0) == "a"  # the line runs through it
    assert chosen(slope=2, offset=-1.03) == "d"
    assert chosen(slope=0, offset=0.0) == "g"
    with pytest.raises(DataError, match=r"at most 0\.96 and a utility of at least 0\.999"):
        best(points, risk_cap=0.96, utility_floor=0.999)


# Promises


@few
@given(POINTS)
def test_the_frontier_is_what_nothing_dominates(points):
    kept = set(find_frontier(points))
    for i, point in enumerate(points):
        assert (i in kept) == (not any(dominates(other, point) for other in points))


@few
@given(SOME, st.randoms(use_true_random=False))
def test_the_order_of_releases_does_not_matter(points, shuffled):
    mixed = list(points)
    shuffled.shuffle(mixed)
    for rule in ({"slope": 0.7}, {"utility_floor": 0.0}, {"risk_cap": 1.0}, {"slope": 1.0, "offset": 0.1}):
        one, other = points[best(points, **rule)], mixed[best(mixed, **rule)]
        assert (min(one[0], 1), one[1]) == (min(other[0], 1), other[1])


@few
@given(SOME, st.floats(0, 1), st.floats(0, 1), st.floats(0, 5))
def test_choices_keep_the_limits_and_are_best_within(points, cap, floor, slope):
    inside = [(min(u, 1), r) for u, r in points if r <= cap and min(u, 1) >= floor]
    limits = {"risk_cap": cap, "utility_floor": floor}
    if not inside:
        with pytest.raises(DataError):
            best(points, **limits)
        return
    choice = best(points, **limits)
    assert choice in find_frontier(points)
    assert (min(points[choice][0], 1), points[choice][1]) in inside
    assert min(points[choice][0], 1) == max(u for u, _ in inside)
    choice = best(points, slope=slope, **limits)
    assert choice in find_frontier(points)
    lowest = min(r - slope * u for u, r in inside)
    assert points[choice][1] - slope * min(points[choice][0], 1) == pytest.approx(lowest, abs=1e-12)


@few
@given(SOME, st.floats(0, 1), st.floats(0, 3))
def test_every_choice_has_its_reasons(points, cap, slope):
    names = [f"[{i}]" for i in range(len(points))]
    for rule in ({"risk_cap": cap}, {"utility_floor": 1 - cap}, {"slope": slope}, {"slope": slope, "offset": cap}):
        try:
            choice = best(points, **rule)
        except DataError:
            continue
        said = explain(points, names=names, **rule)
        assert said[0].startswith(f"The choice is [{choice}]: ")
        assert all(sentence.endswith(".") for sentence in said)
        assert len(said) >= 3


def test_a_utility_above_1_is_no_merit():
    assert find_frontier([(1.3, 0.9), (1.0, 0.8), (1.2, 0.8)]) == [1, 2]
    assert best([(1.3, 0.9), (1.0, 0.8)], slope=5) == 1


def test_what_was_not_measured_is_left_out():
    points = [(math.nan, 0.1), (0.9, 0.5), (0.8, math.nan)]
    assert find_frontier(points) == [1] and best(points, slope=1) == 1
    for nothing in ([], [(math.nan, 0.1)]):
        assert find_frontier(nothing) == []
        with pytest.raises(DataError, match="no release to choose from"):
            best(nothing, slope=1)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "a rule is required"),
        ({"offset": 1.0}, "an offset requires a slope"),
        ({"risk_cap": 0.5, "offset": 1.0}, "an offset requires a slope"),
        ({"slope": -1.0}, "slope must be 0 or more"),
        ({"risk_cap": math.nan}, "risk_cap must be 0 or more"),
        ({"slope": math.inf}, "slope must be 0 or more"),
    ],
)
def test_wrong_rules(points, rule, said):
    with pytest.raises(UsageError, match=said):
        best(points, **rule)
    with pytest.raises(UsageError, match=said):
        explain(points, **rule)


# Reasons


def test_reasons_for_a_cap(points, names):
    assert explain(points, names=names, risk_cap=0.96) == (
        "The choice is f: utility 0.9970, risk 0.9500.",
        "It has the highest utility of the 3 releases with a risk of at most 0.96.",
        "The least risky of the more useful ones, d, has utility 0.9980 but risk 0.9700, 0.0100 above the cap.",
        "It beats 1 release, in utility, risk or both; 6 releases are beaten by none, this one among them.",
        "Next comes g, with utility 0.0010 lower and risk 0.0010 lower.",
    )


def test_reasons_for_a_floor(points, names):
    said = explain(points, names=names, utility_floor=0.9972)
    assert said[1] == "It has the lowest risk of the 6 releases with a utility of at least 0.9972."
    assert (
        said[2]
        == "The most useful of the less risky ones, f, has risk 0.9500 but utility 0.9970, 0.0002 below the floor."
    )


def test_reasons_for_a_slope(points, names):
    said = explain(points, names=names, slope=2)
    assert said[1] == (
        "It has the lowest risk - 2 x utility of all 9 releases: the line of slope 2 touches the frontier there, "
        "at an offset of -1.0440."
    )
    said = explain(points, names=names, slope=10, risk_cap=0.98)
    assert "of the 5 releases with a risk of at most 0.98" in said[1] and said[2] == "The limits rule out 4 releases."
    said = explain(points, names=names, slope=2, offset=-1)
    assert said[1] == "It lies nearest to the line risk = 2 x utility - 1 of all 9 releases, at a distance of 0.0000."


def test_reasons_name_ties_and_chance():
    tied = [(0.9, 0.5), (0.9, 0.5)]
    assert explain(tied, slope=1)[-1] == "Equal to it is release 2; the first of both was taken."
    close = [(0.9, 0.5), (0.95, 0.56)]
    noisy = explain(close, slope=1, spreads=[(0.05, 0.05), (0.05, 0.05)])[-1]
    assert noisy.startswith(
        "Next comes release 2, with utility 0.0500 higher and risk 0.0600 higher; that is within one"
    )
    clear = explain(close, slope=1, spreads=[(0.001, 0.001), (0.001, 0.001)])[-1]
    assert clear.endswith("more than one standard deviation of the draws.")
    assert len(explain([(0.9, 0.5)], risk_cap=0.6)) == 4  # no runner-up

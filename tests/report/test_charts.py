import re

import pytest

from allonym.report.charts import draw_bars, draw_bubbles, draw_chart, find_darkness_step
from allonym.report.page import Axis, Bar, Bars, Bubble, Bubbles, Chart, Group, Guide, Point, Series
from allonym.report.svg import COLOURS, draw_mark_outline, format_coordinate
from allonym.stats import Estimate, mean


def chart(points, **more):
    return Chart("t", Axis("x"), Axis("y"), (Series("a", tuple(points)),), **more)


def starts(svg, class_):
    """Where the marks of a class start."""
    found = re.findall(rf'<path class="mark s0{class_}" d="M(-?[\d.]+) (-?[\d.]+)', svg)
    return [(float(x), float(y)) for x, y in found]


def test_more_is_further_right_and_higher():
    (x1, y1), (x2, y2) = starts(draw_chart(chart([Point(0, 0), Point(1, 2)]), "c"), "")
    assert x1 < x2 and y1 > y2


def test_marks_say_what_they_are():
    svg = draw_chart(chart([Point(1, 2, "seven swaps", (("Utility", 0.25), ("Risk", mean([0.5, 0.75]))))]), "c")
    assert "<title>seven swaps\nUtility: 0.2500\nRisk: 0.62 ±\u00a00.18</title>" in svg


def test_the_chosen_point_is_ringed_above_all_and_shows_its_intervals():
    points = [Point(0, 0, "a", (), "chosen"), Point(1, 1, "b", (), "frontier"), Point(2, 2, "c")]
    points[0] = Point(Estimate(0, -1, 1, 9, "mean, SD"), 0, "a", (), "chosen")
    svg = draw_chart(chart(points), "c")
    assert svg.count('class="ring"') == 1 and svg.count('class="whisker"') == 1 and ">chosen</text>" in svg
    assert svg.index("<title>c") < svg.index("<title>b") < svg.index("<title>a")


def test_points_without_a_place_are_left_out():
    svg = draw_chart(chart([Point(float("nan"), 1), Point(1, float("inf")), Point(1, 1)]), "c")
    assert len(starts(svg, "")) == 1 and "nan" not in svg and "inf" not in svg


@pytest.mark.parametrize("points", [[], [Point(1, 1)], [Point(1, 1), Point(1, 1)]])
def test_few_points_make_a_chart_too(points):
    svg = draw_chart(chart(points), "c")
    assert svg.startswith("<svg") and "nan" not in svg


def test_limits_do_not_stretch_the_axes():
    near = draw_chart(chart([Point(0, 0), Point(1, 1)]), "c")
    far = draw_chart(chart([Point(0, 0), Point(1, 1)], guides=(Guide("cap", ((-50, 9), (50, 9)), "limit"),)), "c")
    assert starts(near, "") == starts(far, "") and "guide limit" in far


def test_colours_come_with_different_marks():
    looks = {(slot % COLOURS, draw_mark_outline(slot, 0, 0, 1)) for slot in range(64)}
    assert len(looks) == 64
    assert len({draw_mark_outline(slot, 0, 0, 1) for slot in range(8)}) == 8


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (12.0, "12"), (12.34, "12.3"), (-0.5, "-0.5")])
def test_coordinates(value, text):
    assert format_coordinate(value) == text


def test_bars_start_at_zero_and_show_interval_and_reference():
    groups = (Group("g", (Bar("before", mean([0.8, 0.9])), Bar("after", 0.2), Bar("none", float("nan"))), 0.05),)
    svg = draw_bars(Bars("t", Axis("Accuracy", "share", 0, 1), groups, "chance"), "c")
    widths = [float(w) for w in re.findall(r'<rect class="bar[^>]* width="([\d.]+)"', svg)]
    assert len(widths) == 2 and abs(widths[0] / widths[1] - 0.85 / 0.2) < 0.01
    assert "g: before\nvalue: 85.0\u00a0% ±\u00a07.1" in svg and "chance: 5.0\u00a0%" in svg and "none –" in svg
    assert svg.count('class="whisker"') == 1


def test_bubbles_have_areas_of_their_size_and_one_scale():
    bubbles = (
        Bubble(0, 0, 400, 0.0, "Cluster 1", "alpha"),
        Bubble(3, 4, 100, 1.0, "Cluster 2"),
        Bubble(0, 4, 100, 0.5, "Cluster 3"),
    )
    svg = draw_bubbles(Bubbles("t", bubbles, "chunks", "rho", (0.1, 0.9)), "c")
    found = re.findall(r'<circle class="bubble h(\d)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', svg)
    (h1, x1, y1, r1), (h2, x2, y2, r2), _ = ([float(v) for v in row] for row in found)
    assert r1 == 2 * r2 and (h1, h2) == (1, 7)
    assert x2 > x1 and y2 < y1 and abs((x2 - x1) / (y1 - y2) - 3 / 4) < 0.01
    assert ">alpha</text>" in svg


def test_words_of_bubbles_do_not_lie_on_each_other():
    bubbles = tuple(Bubble(i * 1e-3, 0, 50, 0.5, f"Cluster {i}", "some words that are long") for i in range(9))
    svg = draw_bubbles(Bubbles("t", bubbles, "chunks", "rho", (0.1, 0.9)), "c")
    assert 1 <= svg.count('class="words"') < 9


@pytest.mark.parametrize("bubbles", [(), (Bubble(1, 1, 0, float("nan"), "Cluster 1"),)])
def test_few_bubbles(bubbles):
    assert "nan" not in draw_bubbles(Bubbles("t", bubbles, "chunks", "rho", (0.1, 0.9)), "c")


@pytest.mark.parametrize(("level", "wanted"), [(0, 1), (1, 7), (0.5, 4), (-1, 1), (2, 7), (float("nan"), 1)])
def test_steps_of_darkness(level, wanted):
    assert find_darkness_step(level) == wanted


@pytest.mark.parametrize(("at", "above"), [((1.0, 0.0), True), ((0.0, 0.0), False), ((1.0, 1.0), False)])
def test_the_corner_to_aim_for_gives_way_to_the_chosen_point(at, above):
    series = Series("a", (Point(0.0, 0.0), Point(1.0, 1.0), Point(*at, mark="chosen")))
    chart = Chart("t", Axis("x", "number", 0, 1), Axis("y", "number", 0, 1), (series,), better="lower right")
    height = float(re.search(r'<text [^>]*y="([\d.]+)"[^>]*class="better"', draw_chart(chart, "c"))[1])
    assert (height < 100) == above

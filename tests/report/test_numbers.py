import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.report.page import Column, Key, Row, Table, Tag
from allonym.report.values import NOTHING, format_cell, format_number, format_power, list_column_decimals
from allonym.stats import Estimate, mean

NBSP = "\u00a0"


@check_each_row(
    "value, kind, digits, text",
    [
        (0.0, "number", None, "0"),
        (1234.5, "number", None, "1,234"),
        (0.97345, "number", None, "0.9735"),
        (-0.5, "number", 2, "−0.50"),
        (-0.0000001, "number", None, "−1 × 10⁻⁷"),
        (1.5e12, "number", None, "1.5 × 10¹²"),
        (9.9999e-8, "number", None, "1 × 10⁻⁷"),
        (0.00001, "number", 3, "0.000"),
        (-0.00001, "number", 3, "0.000"),
        (0.0, "number", 3, "0.000"),
        (0.0404, "share", None, "4.0 %"),
        (1819.0, "count", None, "1,819"),
        (1818.5, "count", None, "1,818.5"),
        (0.0, "p", None, "< 10⁻³⁰⁰"),
        (0.0313, "p", None, "0.031"),
        (2.4e-174, "p", None, "2.4 × 10⁻¹⁷⁴"),
        (math.inf, "number", None, "∞"),
        (-math.inf, "number", None, "−∞"),
        (math.nan, "share", None, NOTHING),
    ],
)
def test_numbers_are_written(value, kind, digits, text):
    assert format_number(value, kind, digits).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "10⁶"), (1e18, "10¹⁸"), (2.5e7, "2.5 × 10⁷"), (1819, "1,819"), (1e-9, "10⁻⁹"), (0.25, "0.25"), (10.0, "10")],
)
def test_powers(value, text):
    assert format_power(value).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("estimate", "kind", "digits", "line"),
    [
        (mean([0.90, 0.95, 0.96]), "number", 3, "0.937 ± 0.032"),
        (Estimate(0.889, 0.858, 0.913, 1819, "delta method, 95 %"), "number", None, "0.889 [0.858, 0.913]"),
        (Estimate(0.5, 0.4, 0.6, 9, "Wilson, 95 %"), "share", 0, "50 % [40, 60]"),
        (Estimate(2.7e-7, 8.5e-14, 0.88, 9, "delta method, 95 %"), "number", None, "2.7 × 10⁻⁷ [8.5 × 10⁻¹⁴, 0.8800]"),
        (Estimate.exact(60.0), "count", None, "60"),
        (Estimate(math.nan, math.nan, math.nan, 0, "not computed"), "number", None, NOTHING),
        (Estimate(0.9999, 0.99989, 0.99991, 30, "mean, SD over draws"), "number", 3, "1.000 ± < 0.001"),
    ],
)
def test_estimates_show_their_interval(estimate, kind, digits, line):
    assert format_cell(estimate, kind, digits).line.replace(NBSP, " ") == line


def test_what_an_estimate_rests_on_is_said():
    assert format_cell(Estimate(0.5, 0.4, 0.6, 9, "Wilson, 95 %")).hint == "Wilson, 95 %; n = 9"


@pytest.mark.parametrize("cell", [None, "text", True, Tag("tag"), Key("key", 3), float("nan")])
def test_other_cells_are_texts(cell):
    shown = format_cell(cell)
    assert shown.text and not shown.interval


def test_a_column_shares_its_decimals_unless_sizes_differ_much():
    def table(values):
        return Table(
            "", (Column("", "number"), Column("", "number", 2), Column("")), tuple(Row((v, 1.0, "a")) for v in values)
        )

    assert list_column_decimals(table([35.2, 0.889])) == [4, 2, None]
    assert list_column_decimals(table([35.2, 0.00002])) == [None, 2, None]
    assert list_column_decimals(table([3e-9, 2e-9])) == [None, 2, None]
    assert format_cell(Estimate(2e-10, 1.9e-10, 2.1e-10, 9, "95 %")).text == "2\u00a0×\u00a010⁻¹⁰"


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["number", "share", "count", "p", "power"]))
@example(5e-324, "number")
@settings(max_examples=60, deadline=None)
def test_every_number_has_a_text_without_a_hyphen(value, kind):
    text = format_number(value, kind)
    assert text and "-" not in text and "e+" not in text and text not in ("−0", "−0.0")

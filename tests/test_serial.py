"""Results as plain values for JSON."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.serial import Serialisable, quote_toml, to_plain
from allonym.stats import Estimate, none


class Colour(Enum):
    RED = "red"


class Pair(NamedTuple):
    before: Estimate
    after: float


class Inner(Serialisable):
    TEXT_KEYS = ("surfaces",)

    count: int
    surfaces: tuple[str, ...] = field(repr=False)


class Outer(Serialisable):
    KEYS = ("double", "inner", "share")

    inner: Inner
    share: float
    secret: str

    @property
    def double(self) -> int:
        return 2 * self.inner.count


@dataclass(frozen=True)
class Bare:
    numbers: tuple[float, ...]


@check_each_row(
    "value, plain",
    [
        (None, None),
        (True, True),
        ("text", "text"),
        (math.nan, None),
        (-math.inf, None),
        (Colour.RED, "red"),
        (Path("a/b"), "a/b"),
        (
            {1.0: (1, 2), 0.25: frozenset("ba"), "x": Counter("aab")},
            {"1": [1, 2], "0.25": ["a", "b"], "x": {"a": 2, "b": 1}},
        ),
        (np.float64(math.nan), None),
        (np.int64(3), 3),
        (np.array([[1.5, math.inf]]), [[1.5, None]]),
        (Bare((1.0, math.nan)), {"numbers": [1.0, None]}),
        (
            Pair(none("empty"), 2.0),
            {"before": {"value": None, "low": None, "high": None, "n": 0, "method": "none: empty"}, "after": 2.0},
        ),
    ],
)
def test_plain_values(value, plain):
    assert to_plain(value) == plain
    json.dumps(to_plain(value), allow_nan=False)


def test_keys_choose_what_is_shown_and_in_which_order():
    shown = Outer(Inner(2, ("Ada",)), math.nan, "hidden").to_dict()
    assert shown == {"double": 4, "inner": {"count": 2}, "share": None} and list(shown) == ["double", "inner", "share"]


def test_texts_are_shown_only_if_asked_for_and_then_at_every_depth():
    outer = Outer(Inner(2, ("Ada",)), 1.0, "hidden")
    assert "Ada" not in json.dumps(outer.to_dict())
    assert to_plain([outer], texts=True)[0]["inner"] == {"count": 2, "surfaces": ["Ada"]}


def test_a_value_without_a_form_is_refused_by_its_type_alone():
    class Secret:
        def __repr__(self) -> str:
            return "Ada Brook"

    with pytest.raises(TypeError, match="a value of type Secret has no form in JSON") as error:
        to_plain({"key": Secret()})
    assert "Ada" not in str(error.value)


@given(st.text())
@example('\x7f\n"\\')
@example("\U0001f600")
def test_toml_reads_what_is_quoted_for_it(text):
    assert tomllib.loads(f"a = {quote_toml(text)}") == {"a": text}

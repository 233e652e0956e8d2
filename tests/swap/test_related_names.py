from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.swap.validity import find_related_keys, find_significant_words

SAME = [
    ("acme", "acme corporation"),
    ("acme corporation", "acme inc"),
    ("tidewell", "tidewell robotics"),
    ("nextar media", "nexstar media"),
    ("glasspath", "glass path"),
    ("cache link alliance", "cla"),
    ("bank of kestria", "bok"),
    ("the hanmere fund", "hanmere fund"),
    ("harrow", "ines harrow"),
    ("corváne", "corvane"),
]
OTHERS = [
    ("acme", "bellworth"),
    ("tidewell robotics", "bellworth robotics"),
    ("torvox", "torvex x"),
    ("k3", "k4"),
    ("a1 cart", "a2 cart"),
    ("ines harrow", "tobias harrow"),
    ("model 100", "model 200"),
]


@check_each_row("a, b", SAME)
def test_alike(a: str, b: str) -> None:
    assert find_related_keys([a, b]) == [frozenset({0, 1})] * 2


@pytest.mark.parametrize(("a", "b"), OTHERS)
def test_not_alike(a: str, b: str) -> None:
    assert find_related_keys([a, b]) == [frozenset({0}), frozenset({1})]


def test_exact_keys_are_like_nothing_else() -> None:
    assert find_related_keys(["q3", "q3 2020", "q3 2021"], [True, True, True]) == [frozenset({i}) for i in range(3)]
    assert find_related_keys(["q3", "q3 2020", "the q3 team"], [False, True, False])[0] == {0, 2}


def test_what_is_nothing_but_a_legal_form_keeps_its_words() -> None:
    assert find_significant_words("the company") == {"company"}
    assert find_significant_words("???") == {"???"}
    assert find_significant_words("") == {""}


@given(st.lists(st.text("abc de.-", max_size=12), max_size=12))
def test_symmetric_and_reflexive(keys: list[str]) -> None:
    found = find_related_keys(keys)
    for i, some in enumerate(found):
        assert i in some
        assert all(i in found[j] for j in some)

"""Sequences of tags: they make sense, and none is likelier."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.labels import TAXONOMY
from allonym.models.tags import LABELS, NAME_PARTS, PARTS, decode_tags, list_tag_names

TAGS = 5  # O and two labels


def sensible(tags: tuple[int, ...]) -> bool:
    return all(not tag or tag % 2 or before in (tag, tag - 1) for before, tag in zip((0, *tags), tags, strict=False))


# Whole numbers make ties, and their sums are exact.
ROWS = st.lists(st.lists(st.integers(-6, 0), min_size=TAGS, max_size=TAGS), max_size=5)


@given(ROWS, st.booleans())
def test_decode_finds_the_best_of_all_sensible_sequences(rows: list[list[int]], never_outside: bool) -> None:
    chances = np.array(rows, np.float64).reshape(-1, TAGS)
    if never_outside:
        chances[:, 0] = -np.inf
    found = tuple(decode_tags(chances).tolist())
    assert len(found) == len(rows)
    assert sensible(found)
    at = np.arange(len(rows))
    best = max(chances[at, list(tags)].sum() for tags in product(range(TAGS), repeat=len(rows)) if sensible(tags))
    assert chances[at, list(found)].sum() == best


@given(st.integers(0, 2**32), st.integers(0, 200))
def test_decode_is_sensible_at_full_size(seed: int, length: int) -> None:
    chances = np.random.default_rng(seed).normal(scale=3, size=(length, 1 + 2 * len(LABELS))).astype(np.float32)
    before = chances.copy()
    assert sensible(tuple(decode_tags(chances).tolist()))
    assert (chances == before).all()


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([], []),
        ([[0, -1, -1, -1, -1]], [0]),
        ([[-2, -3, 0, -9, -9]], [0]),  # inside cannot begin
        ([[-9, 0, -9, -9, -9], [-9, -9, 0, -9, -9]], [1, 2]),
        ([[-9, 0, -9, -1, -9], [-9, -9, -9, -9, 0]], [3, 4]),  # a better end is worth a worse beginning
        ([[0, 0, 0, 0, 0]], [0]),  # of equal ones the first
    ],
)
def test_decode(rows: list[list[int]], wanted: list[int]) -> None:
    assert decode_tags(np.array(rows, np.float64).reshape(-1, TAGS)).tolist() == wanted


def test_names() -> None:
    assert list_tag_names(("A", "B")) == ["O", "B-A", "I-A", "B-B", "I-B"]
    assert len(set(LABELS)) == len(LABELS) and all(label in TAXONOMY for label in LABELS)
    assert set(NAME_PARTS) < set(LABELS)
    assert len(PARTS) == 17 and list(PARTS) == sorted(PARTS)

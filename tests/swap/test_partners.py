from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.swap.invented import limited

from allonym.swap import partners
from allonym.swap.partners import Bag, Candidates, Dice, Pairs


def dice(seed: int = 0) -> Dice:
    return Dice(np.random.default_rng(seed))


def test_dice() -> None:
    one = dice(1)
    assert Counter(one.draw_below(3) for _ in range(3000)).keys() == {0, 1, 2}
    assert sorted(one.shuffle(range(50))) == list(range(50))
    assert dice(2).shuffle(range(50)) == dice(2).shuffle(range(50)) != dice(3).shuffle(range(50))


@given(st.lists(st.integers(0, 20), unique=True), st.lists(st.integers(0, 20)))
def test_bag(items: list[int], gone: list[int]) -> None:
    bag = Bag(items)
    for item in gone:
        bag.discard(item)
    assert set(bag.items) == set(items) - set(gone)
    assert len(bag) == len(bag.items)
    assert all((item in bag) == (item in bag.items) for item in range(21))


def valid(apart: list[np.ndarray], shared: np.ndarray, i: int, j: int) -> bool:
    return bool(shared[i] & shared[j]) and all(code[i] != code[j] for code in apart)


@pytest.mark.parametrize("misses", [0, 48])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14), kinds=st.integers(1, 4), parts=st.integers(1, 2))
@settings(max_examples=40, deadline=None)
def test_pairs_run_out_only_where_none_is_valid(misses: int, seed: int, n: int, kinds: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    apart = [rng.integers(0, kinds, n) for _ in range(3)]
    shared = rng.integers(1, 4, n)
    members = [list(range(k, n, parts)) for k in range(parts)]
    every = {(i, j) for m in members for i in m for j in m if i < j and valid(apart, shared, i, j)}
    forbidden = {p for p in sorted(every) if rng.random() < 0.2}
    before, partners.MISSES = partners.MISSES, misses
    try:
        pairs = Pairs(members, apart, shared, forbidden)
        one, used, dead = dice(seed), set(), set(forbidden)
        while (pair := pairs.draw_pair(one)) is not None:
            assert (min(pair), max(pair)) in every - dead
            assert not used & set(pair)
            if rng.random() < 0.3:
                pairs.forbid_pair(*pair)
                dead.add((min(pair), max(pair)))
            else:
                pairs.remove_chunks(*pair)
                used |= set(pair)
    finally:
        partners.MISSES = before
    assert all(used & set(pair) for pair in every - dead)


@pytest.mark.parametrize("misses", [0, 10**9])
def test_every_valid_pair_is_as_likely(misses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two buckets, one of which has few valid pairs; by counting, and by rejection alone."""
    monkeypatch.setattr(partners, "MISSES", misses)
    apart = [np.array([0, 0, 0, 0, 0, 1, 0, 1, 2]), np.array([0, 1, 2, 3, 4, 5, 6, 7, 7])]
    shared = np.array([1, 1, 1, 1, 1, 3, 1, 1, 2])
    members = [[0, 1, 2, 3, 4, 5], [6, 7, 8]]
    every = [(i, 5) for i in range(5)] + [(6, 7)]
    assert every == [(i, j) for m in members for i in m for j in m if i < j and valid(apart, shared, i, j)]
    found: Counter[tuple[int, int]] = Counter()
    for seed in range(1800):
        one = dice(seed)
        pairs = Pairs(members, apart, shared)
        for _ in range(3):  # with no misses allowed, the buckets are counted at the first
            pair = pairs.draw_pair(one)
        assert pair is not None
        found[min(pair), max(pair)] += 1
    assert sorted(found) == every
    expected = 1800 / len(every)
    assert sum((k - expected) ** 2 / expected for k in found.values()) < 20.5  # chi squared, 5 degrees, 0.001


def nearest(n: int = 400, weighted: bool = True, **more: float) -> tuple[Candidates, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    how = {"temperature": 0.05, "min_cosine": -1.0, "count_penalty": 0.0} | more
    rules = limited(("Person",), weights="cosine" if weighted else "uniform", **how)
    ground = SimpleNamespace(classes=np.arange(n) % 3)
    frame = SimpleNamespace(rules=rules, vectors=rows, counts=np.arange(n) % 5, ground=ground)
    return Candidates(frame, list(range(n)), rng), rows


def test_candidates_are_of_other_classes_and_mostly_near() -> None:
    one, rows = nearest()
    pool = one.make_pool(range(400))
    found = one.draw_partners_for(0, pool, dice())
    assert len(found) == partners.TRIES
    assert all(j % 3 != 0 for j in found)
    assert np.mean(rows[found] @ rows[0]) > 0.5 > np.mean(rows @ rows[0])
    pool.discard(found[0])
    assert found[0] not in one.draw_partners_for(0, pool, dice())


def test_candidates_keep_the_least_cosine_and_the_number_of_entities() -> None:
    one, rows = nearest(weighted=False, min_cosine=0.7)
    found = one.draw_partners_for(0, one.make_pool(range(400)), dice())
    assert found
    assert min(rows[found] @ rows[0]) >= 0.7
    assert one.are_similar_enough(0, found[0])
    assert not one.are_similar_enough(0, int(np.argmin(rows @ rows[0])))
    like, _ = nearest(weighted=False, count_penalty=50.0)
    assert all(j % 5 == 0 for j in like.draw_partners_for(0, like.make_pool(range(400)), dice())[:20])


def test_many_candidates_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partners, "SAMPLE", 100)
    one, _ = nearest()
    found = one.draw_partners_for(0, one.make_pool(range(400)), dice())
    assert 0 < len(found) <= partners.TRIES
    assert len(set(found)) == len(found)

"""Sums over shards: the same bits whoever adds them, and products that do not hang on the number of threads."""

import pickle
from contextlib import ExitStack
from functools import reduce
from operator import add

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from allonym.errors import UsageError
from allonym.swap.em import compute_expectation_sums as expected
from allonym.swap.em import draw_random_labels, estimate_from_labels
from allonym.swap.mixture import SphericalMixture
from allonym.swap.rows import (
    Rows,
    ThisProcess,
    count_blas_threads_allowed,
    limit_blas_to_one_thread,
    sum_along_tree,
)
from allonym.swap.selection import fit_all


class Told(str):
    """Adds to a word that says how it came about."""

    def __add__(self, other):
        return Told(f"({self}{other})")


@pytest.mark.parametrize(
    ("count", "sum_"),
    [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)"), (6, "(((01)(23))(45))"), (7, "(((01)(23))((45)6))")],
)
def test_the_tree_is_this_one(count, sum_):
    assert sum_along_tree([Told(i) for i in range(count)]) == sum_


@given(st.integers(1, 60))
def test_the_tree_adds_neighbours_level_by_level(count):
    level = [Told(f"<{i}>") for i in range(count)]
    told = sum_along_tree(iter(level))
    while len(level) > 1:
        level = [reduce(add, level[i : i + 2]) for i in range(0, len(level), 2)]
    assert told == level[0]


class Waiting(int):
    """Counts how many sums of them there are at a time."""

    now = most = 0

    def __new__(cls, value):
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        return super().__new__(cls, value)

    def __del__(self):
        type(self).now -= 1

    def __add__(self, other):
        return Waiting(int(self) + int(other))


def test_few_sums_wait():
    assert sum_along_tree(Waiting(1) for _ in range(1000)) == 1000
    assert Waiting.most <= 13


def points(n=1500, d=24, dtype=np.float32):
    X, _ = sample_mixture(n, [0.4, 0.35, 0.25], np.eye(d)[:3], [0.6, 0.5, 0.7], "spcauchy", 4)
    return X.astype(dtype)


def same(a, b):
    assert a.trace_.tobytes() == b.trace_.tobytes()
    for name in ("weights_", "means_", "rhos_", "labels_"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert (a.log_likelihood_, a.warnings_) == (b.log_likelihood_, b.warnings_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(dtype, monkeypatch):
    monkeypatch.setattr("allonym.swap.mixture.SAMPLE", 400)
    X = points(dtype=dtype)
    X[7] = X[8]
    for batch in (None, 500):
        given_ = SphericalMixture(6, restarts=3, shard_size=200, batch_size=batch, max_iter=20)
        fits = []
        for threads in (1, 3):
            with limit_blas_to_one_thread():
                rows = Rows(given_.rows(X).X, given_.rows(X).weight, 200, ThisProcess(threads))
                fits.append(SphericalMixture(**given_.get_params()).fit_rows(rows))
        same(*fits)
        same(fits[0], given_.fit(X))


def test_the_number_of_threads_of_products_changes_no_bit():
    """Wide float64 products are cut up by their threads: without the pin the sums differ on most machines."""
    X = points(3000, 300, np.float64)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(SphericalMixture(70, restarts=1, max_iter=4, min_size=0).fit(X))
    same(*fits)


def test_the_size_of_shards_is_all_that_counts():
    X = points()
    rng = np.random.default_rng(0)
    start = estimate_from_labels(Rows(X), draw_random_labels(len(X), 5, rng), 5, "spcauchy", 0.999)
    one, many = (Rows(X, size=size).sum_shards(expected, start, "spcauchy") for size in (len(X), 100))
    assert one.pull == pytest.approx(many.pull, rel=1e-4, abs=1e-3)
    assert one.log_likelihood == pytest.approx(many.log_likelihood, rel=1e-7)
    assert one.pull.tobytes() != many.pull.tobytes()
    with pytest.raises(UsageError, match="shard_size"):
        SphericalMixture(2, shard_size=0).fit(X)


def test_several_mixtures_are_each_by_itself():
    X = points(600)
    fits = fit_all(X, (2, 3), restarts=2, seed=3, shard_size=250)
    for fit in fits:
        same(fit.mixture, SphericalMixture(fit.clusters, family=fit.family, restarts=2, seed=3, shard_size=250).fit(X))


def test_one_thread_is_for_all_until_the_last_leaves():
    def now():
        return {m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = now()
        first, second = ExitStack(), ExitStack()
        first.enter_context(limit_blas_to_one_thread())
        second.enter_context(limit_blas_to_one_thread())
        first.close()
        assert now() == {1} and count_blas_threads_allowed() == 2
        second.close()
        assert now() == before
        assert count_blas_threads_allowed() == 2


def test_what_is_sent_away_stays_with_one_thread():
    rows = Rows(points(50), None, 20, ThisProcess(2), 3)
    again = pickle.loads(pickle.dumps(rows))
    assert (again.spread.threads, again.size, again.zeros, len(again)) == (1, 20, 3, 50)
    for some in (rows, again):
        assert list(some.map_shards(len_of)) == [(0, 20), (20, 20), (40, 10)]


def len_of(shard):
    return shard.first, shard.row_slice.stop - shard.row_slice.start

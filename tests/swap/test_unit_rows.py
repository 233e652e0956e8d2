"""Rows as points on the sphere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import DataError, UsageError
from allonym.swap.rows import compute_copy_weights, iterate_row_slices, to_unit_rows


def unit(n, d, dtype="float64", seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@given(st.integers(0, 9000), st.integers(2, 3000), st.integers(1, 500))
def test_stretches_tile_the_rows(n, d, k):
    at = 0
    for part in iterate_row_slices(n, d, k):
        assert part.start == at < part.stop <= n
        at = part.stop
    assert at == n


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unit_rows_are_not_copied(dtype):
    X = unit(3000, 40, dtype)
    data, zeros = to_unit_rows(X)
    assert np.shares_memory(data, X)
    assert not zeros.any()


def test_what_is_changed():
    X = unit(50, 4) * np.linspace(0.1, 9, 50)[:, None]
    X[7] = 0
    data, zeros = to_unit_rows(np.asfortranarray(X), "float32")
    assert data.dtype == np.float32 and data.flags.c_contiguous
    assert np.flatnonzero(zeros).tolist() == [7]
    length = np.linalg.norm(data, axis=1)
    assert length[7] == 0
    assert np.delete(length, 7) == pytest.approx(np.ones(49), abs=1e-6)
    assert to_unit_rows([[3, 4], [0, 2]])[0].tolist() == [[0.6, 0.8], [0, 1]]


def test_what_is_refused():
    for bad in ([1.0, 2.0], np.zeros((0, 3)), np.zeros((3, 1))):
        with pytest.raises(UsageError, match="shape"):
            to_unit_rows(bad)
    with pytest.raises(UsageError, match="float16"):
        to_unit_rows([[1.0, 0.0]], "float16")
    with pytest.raises(DataError, match="1 of 2 rows"):
        to_unit_rows([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(DataError, match="1 of 2 rows"):
        to_unit_rows([[1.0, np.inf], [0.0, 1.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_rows_share_one_count(dtype):
    X = unit(2500, 5, dtype)
    assert compute_copy_weights(X) is None
    X[[5, 9, 2400]] = X[100]
    X[2499] = X[0]
    found = compute_copy_weights(X)
    assert found is not None
    assert found[[5, 9, 100, 2400]].tolist() == [0.25] * 4
    assert found[[0, 2499]].tolist() == [0.5] * 2
    assert found.sum() == pytest.approx(2496)


def test_round_numbers():
    rng = np.random.default_rng(1)
    X = np.sign(rng.standard_normal((4000, 4))) * 2.0 ** rng.integers(-3, 3, (4000, 4))
    found = compute_copy_weights(np.ascontiguousarray(X))
    _, group, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    assert found == pytest.approx(1 / count[group.ravel()])

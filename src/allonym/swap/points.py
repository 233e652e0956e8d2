"""Rows of numbers as points on the unit sphere: scaled where they must be, copies of one another found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from allonym.errors import DataError, UsageError
from allonym.swap.density import Array

ROOM = 1 << 19
"""About this many numbers are worked on at a time: rows of data and what is computed of them."""


def stretches(n: int, d: int, k: int = 1) -> Iterator[slice]:
    """Slices over ``n`` rows of ``d`` numbers such that a slice, and ``k`` values per row, stay in the cache."""
    rows = max(128, min(1024, ROOM // (d + 3 * k)))
    for at in range(0, n, rows):
        yield slice(at, min(at + rows, n))


def unit_rows(X: ArrayLike, dtype: str | None = None) -> tuple[Array, Array]:
    """``X`` as unit rows in C order, and a mask of the rows that are zero (they stay zero).

    float32 and float64 are kept, other types become float64; the data are copied only where that changes them.

    Raises:
        UsageError: X is not a table with at least one row and two columns, or the dtype is another.
        DataError: a value is not finite.
    """
    if dtype not in (None, "float32", "float64"):
        raise UsageError(f"dtype must be float32, float64 or None, got {dtype!r}")
    data = np.asarray(X)
    if data.ndim != 2 or not data.shape[0] or data.shape[1] < 2:
        raise UsageError(f"rows of at least 2 numbers are required, got an array of shape {data.shape}")
    kind = dtype or (data.dtype.name if data.dtype.name in ("float32", "float64") else "float64")
    data = np.ascontiguousarray(data, dtype=kind)
    square = np.empty(len(data), np.float64)
    for part in stretches(*data.shape):
        np.einsum("ij,ij->i", data[part], data[part], out=square[part], dtype=np.float64, casting="same_kind")
    if not np.isfinite(square).all():
        raise DataError(f"{int((~np.isfinite(square)).sum())} of {len(data)} rows hold values that are not finite")
    zeros = square == 0
    close = 16 * np.finfo(data.dtype).eps * data.shape[1] ** 0.5
    if not (zeros | (np.abs(square - 1) <= close)).all():
        data = data / np.sqrt(np.where(zeros, 1, square)).astype(kind)[:, None]
    return data, zeros


def shares(X: Array) -> Array | None:
    """(n,) one over how often each row occurs, so that equal rows count once together; None where all differ."""
    words = X.view(np.uint64 if X.dtype == np.float64 else np.uint32)
    key = _keys(words)
    _, first, group, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    if len(count) == len(X):
        return None
    again = np.flatnonzero(count[group] > 1)
    for part in stretches(len(again), X.shape[1]):
        rows = again[part]
        if (words[rows] != words[first[group[rows]]]).any():  # two rows with one key: sort the rows themselves
            _, group, count = np.unique(words, axis=0, return_inverse=True, return_counts=True)
            break
    return np.asarray(1 / count[group.ravel()])


def _keys(words: Array) -> Array:
    # A linear hash. Round numbers differ in their upper bits only, which multiplication would push out: fold them down.
    odd = np.random.default_rng(0).integers(1 << 63, size=words.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    half = words.dtype.type(words.itemsize * 4)
    out = np.empty(len(words), np.uint64)
    for part in stretches(*words.shape):
        out[part] = (words[part] ^ (words[part] >> half)).astype(np.uint64) @ odd
    return out

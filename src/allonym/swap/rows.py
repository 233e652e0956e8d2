"""Rows of unit vectors in fixed shards, and sums over them in a fixed order: the same bits for any number of workers.

Rounding makes sums depend on the order in which they are added. So sums over many rows are computed for each shard
separately, and the shards' sums are added along a tree: pairwise by the shards' numbers, then the pairs pairwise, and
so on; a sum without a neighbour goes up as it is. The number of rows and the size of a shard fix all of that. Who works
on which shard, and when, does not matter. Within a shard a matrix product must not be cut up by the number of threads
either: see :func:`limit_blas_to_one_thread`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from allonym.errors import DataError, UsageError
from allonym.swap.density import Array

SIZE = 8192
"""Rows of a shard by default."""
ALONE = 1 << 18
"""Numbers in the data up to which threads would cost more than they bring."""
ROOM = 1 << 19
"""Numbers that are processed at a time, about: rows of data and results."""


# Rows


def iterate_row_slices(n: int, d: int, k: int = 1) -> Iterator[slice]:
    """Yield slices over ``n`` rows of ``d`` numbers such that a slice, and ``k`` values per row, stay in the cache."""
    rows = max(128, min(1024, ROOM // (d + 3 * k)))
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def to_unit_rows(X: ArrayLike, dtype: str | None = None) -> tuple[Array, Array]:
    """Return ``X`` as unit rows in C order, and a mask of the rows that are zero (they stay zero).

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
    for block in iterate_row_slices(*data.shape):
        np.einsum("ij,ij->i", data[block], data[block], out=square[block], dtype=np.float64, casting="same_kind")
    if not np.isfinite(square).all():
        raise DataError(f"{int((~np.isfinite(square)).sum())} of {len(data)} rows hold values that are not finite")
    zeros = square == 0
    tolerance = 16 * np.finfo(data.dtype).eps * data.shape[1] ** 0.5
    if not (zeros | (np.abs(square - 1) <= tolerance)).all():
        data = data / np.sqrt(np.where(zeros, 1, square)).astype(kind)[:, None]
    return data, zeros


def compute_copy_weights(X: Array) -> Array | None:
    """Return (n,) one over how often each row occurs, so that equal rows count once together; None if all differ."""
    digests = [blake2b(row, digest_size=16).digest() for row in X]
    counts = Counter(digests)
    return None if len(counts) == len(X) else 1 / np.array([counts[digest] for digest in digests])


# Shards


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighbouring rows: ``X`` (n, d), their ``weight`` (n,) or None for 1 each, the number of the ``first``."""

    X: Array = field(repr=False)
    weight: Array | None = field(repr=False, default=None)
    first: int = 0

    @property
    def row_slice(self) -> slice:
        """The place of these rows among all."""
        return slice(self.first, self.first + len(self.X))


Work = Callable[..., Any]
"""Called with a shard and further arguments. To be sent to other processes it must be a function of a module."""

ShardMap = Callable[..., Iterable[Any]]
"""Called with work and its further arguments; yields the result of the work for each shard, in their order."""


class Spread(Protocol):
    """The workers: this process, or others."""

    def place_shards(self, shards: Sequence[Shard]) -> ShardMap:
        """Bring shards to where they are worked on."""
        ...

    def map_items(self, work: Work, common: Any, items: Iterable[Any]) -> Iterator[Any]:
        """Yield ``work(common, item)`` for each item, in their order. ``common`` goes to every worker once."""
        ...


def sum_along_tree(values: Iterable[Any]) -> Any:
    """Return the sum of values, 1 or more, added along the tree. Of n values, no more than log n sums wait."""
    waiting: list[tuple[int, Any]] = []  # the height and sum of each complete subtree, from left to right
    for value in values:
        height = 0
        while waiting and waiting[-1][0] == height:
            value = waiting.pop()[1] + value
            height += 1
        waiting.append((height, value))
    _, total = waiting.pop()
    while waiting:
        total = waiting.pop()[1] + total
    return total


class ThisProcess:
    """A :class:`Spread` of threads in this process.

    Args:
        threads: that work at the same time; 0: as many as matrix products may have. Results do not depend on it.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads or count_blas_threads_allowed()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __reduce__(self) -> tuple[object, ...]:
        return (ThisProcess, ())  # another process has its own

    def place_shards(self, shards: Sequence[Shard]) -> ShardMap:
        """Leave the shards where they are."""
        run = map if self._pool is None or len(shards) == 1 else self._pool.map
        return lambda work, *arguments: run(lambda shard: work(shard, *arguments), shards)

    def map_items(self, work: Work, common: Any, items: Iterable[Any]) -> Iterator[Any]:
        """See :class:`Spread`."""
        call = partial(work, common)
        return map(call, items) if self._pool is None else self._pool.map(call, items)


class Rows:
    """Points with their weights, in shards.

    Args:
        X: (n, d), unit rows in C order.
        weight: (n,) how much each counts; None: 1.
        size: rows of a shard.
        spread: the workers; None: this thread.
        zeros: number of rows without a direction.
    """

    def __init__(
        self, X: Array, weight: Array | None = None, size: int = SIZE, spread: Spread | None = None, zeros: int = 0
    ) -> None:
        self.X, self.weight, self.size, self.zeros = X, weight, size, zeros
        self.spread: Spread = spread or ThisProcess()

    def __len__(self) -> int:
        return len(self.X)

    def __reduce__(self) -> tuple[object, ...]:
        return (Rows, (self.X, self.weight, self.size, None, self.zeros))

    @property
    def total_weight(self) -> float:
        """The weights of all rows together."""
        return float(len(self.X) if self.weight is None else self.weight.sum())

    @cached_property
    def map_shards(self) -> ShardMap:
        """Calls work with each shard, at the place where it is; all shards are of one size but the last."""
        parts = [slice(start, start + self.size) for start in range(0, len(self.X), self.size)]
        shards = [Shard(self.X[p], None if self.weight is None else self.weight[p], p.start) for p in parts]
        return self.spread.place_shards(shards)

    def sum_shards(self, work: Work, *arguments: Any) -> Any:
        """Return the results of work for all shards, added with ``+`` along the tree."""
        return sum_along_tree(self.map_shards(work, *arguments))

    def without_workers(self) -> Rows:
        """Return the same rows, for one thread."""
        return Rows(self.X, self.weight, self.size, None, self.zeros)

    def select_rows(self, numbers: Array) -> Rows:
        """Return some of the rows, by their numbers, worked on in this process."""
        spread = self.spread if isinstance(self.spread, ThisProcess) else None
        return Rows(self.X[numbers], None if self.weight is None else self.weight[numbers], self.size, spread)


# Threads of matrix products


class _Pin:
    lock = Lock()
    depth = 0
    before: Any = None
    threads = 0


@cache
def _get_thread_controller() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()


def count_blas_threads_allowed() -> int:
    """Return how many threads a matrix product may have, as the environment says (``OMP_NUM_THREADS`` and the like)."""
    with _Pin.lock:
        return _Pin.threads if _Pin.depth else _count_blas_threads()


def _count_blas_threads() -> int:
    counts = [m["num_threads"] for m in _get_thread_controller().info() if m["user_api"] == "blas"]
    return max(counts, default=0) or len(os.sched_getaffinity(0))


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Give matrix products one thread each, in the whole process, until the last caller leaves the context.

    How OpenBLAS cuts up a product depends on its number of threads, and the last bits of the result on the cut.
    """
    with _Pin.lock:
        if not _Pin.depth:
            _Pin.threads = _count_blas_threads()
            _Pin.before = _get_thread_controller().limit(limits=1, user_api="blas")
        _Pin.depth += 1
    try:
        yield
    finally:
        with _Pin.lock:
            _Pin.depth -= 1
            if not _Pin.depth:
                _Pin.before.restore_original_limits()


def compute_arithmetic_fingerprint() -> bytes:
    """Return bytes that agree for two processes whose products, logarithms and sums of fixed numbers agree.

    Another processor, or another NumPy, has other kernels for them, and other last bits.
    """
    rng: Any = np.random.default_rng(0)
    out = b""
    with limit_blas_to_one_thread():
        for kind in (np.float32, np.float64):
            X, Y = rng.random((300, 384)).astype(kind), rng.random((384, 20)).astype(kind)
            product = np.log(X @ Y)
            out += (product.T @ X).tobytes()[-64:] + np.exp(-product).sum(axis=1).tobytes()[:256]
            out += np.einsum("ij,ij->i", X, X).tobytes()[:256]
    return out

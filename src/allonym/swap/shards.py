"""Rows in fixed shards, and sums over them in a fixed order: the same bits however many workers there are.

Rounding makes sums depend on the order in which they are added. So what is summed over many rows is computed of one
shard after the other, apart from all others, and the shards' sums are added along a tree: pairwise by the shards'
numbers, then the pairs pairwise, and so on; what has no neighbour goes up as it is. The number of rows and the size of
a shard fix all of that. Who works on which shard, and when, does not matter. Within a shard a matrix product must not
be cut up by the number of threads either: see :func:`one_thread`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Any, Protocol

import numpy as np

from allonym.swap.density import Array

SIZE = 8192
"""Rows of a shard, where nothing else is said."""
ALONE = 1 << 18
"""Numbers in the data up to which threads would cost more than they bring."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows that stand together: ``X`` (n, d), their ``weight`` (n,) or None for 1 each, the number of the ``first``."""

    X: Array = field(repr=False)
    weight: Array | None = field(repr=False, default=None)
    first: int = 0

    @property
    def rows(self) -> slice:
        """Where its rows stand among all."""
        return slice(self.first, self.first + len(self.X))


Work = Callable[..., Any]
"""Called with a shard and further arguments. To be sent to other processes it must be a function of a module."""


class Placed(Protocol):
    """Shards where they are worked on."""

    def each(self, work: Work, *arguments: Any) -> list[Any]:
        """What ``work`` returns of each shard, in their order."""
        ...

    def total(self, work: Work, *arguments: Any) -> Any:
        """The same, added with ``+`` along the tree."""
        ...


class Spread(Protocol):
    """Who works: this process, or others."""

    def place(self, shards: Sequence[Shard]) -> Placed:
        """Bring shards to where they are worked on."""
        ...

    def each(self, work: Work, common: Any, items: Iterable[Any]) -> Iterator[Any]:
        """``work(common, item)`` of each item, in their order. ``common`` goes to every worker once."""
        ...


class Tree:
    """Adds what belongs to ``count`` leaves in the order that their numbers fix, in whichever order they come.

    A node is (level, number): leaves are of level 0, and node (l, i) is the sum of (l - 1, 2 i) and (l - 1, 2 i + 1),
    or the former alone where it is the last of its level. Of n leaves that come in order, no more than log n sums wait.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.nodes: dict[tuple[int, int], Any] = {}

    def add(self, level: int, number: int, value: Any) -> None:
        """Put a node in, and all that it completes."""
        while True:
            last = (self.count - 1) >> level
            if last == 0:
                break
            if number == last and not number & 1:
                level, number = level + 1, number >> 1
                continue
            other = self.nodes.pop((level, number ^ 1), None)
            if other is None:
                break
            value = other + value if number & 1 else value + other
            level, number = level + 1, number >> 1
        self.nodes[level, number] = value

    @property
    def total(self) -> Any:
        """The sum of all leaves; raises KeyError where one is missing."""
        return self.nodes[(self.count - 1).bit_length(), 0]


def added(values: Sequence[Any]) -> Any:
    """The values added along the tree; there is one at least."""
    tree = Tree(len(values))
    for i, value in enumerate(values):
        tree.add(0, i, value)
    return tree.total


class Here:
    """This process.

    Args:
        threads: that work at the same time; 0: as many as matrix products may have. Results do not depend on it.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads or cores()
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __reduce__(self) -> tuple[object, ...]:
        return (Here, ())  # another process has its own

    def place(self, shards: Sequence[Shard]) -> Placed:
        """The shards, where they are."""
        return _Local(shards, self._pool)

    def each(self, work: Work, common: Any, items: Iterable[Any]) -> Iterator[Any]:
        """See :class:`Spread`."""
        doing = partial(work, common)
        return map(doing, items) if self._pool is None else self._pool.map(doing, items)


class _Local:
    def __init__(self, shards: Sequence[Shard], pool: ThreadPoolExecutor | None) -> None:
        self._shards = shards
        self._pool = pool if len(shards) > 1 else None

    def _made(self, work: Work, arguments: tuple[Any, ...]) -> Iterator[Any]:
        doing = partial(_called, work, arguments)
        return map(doing, self._shards) if self._pool is None else self._pool.map(doing, self._shards)

    def each(self, work: Work, *arguments: Any) -> list[Any]:
        return list(self._made(work, arguments))

    def total(self, work: Work, *arguments: Any) -> Any:
        tree = Tree(len(self._shards))
        for i, value in enumerate(self._made(work, arguments)):
            tree.add(0, i, value)
        return tree.total


def _called(work: Work, arguments: tuple[Any, ...], shard: Shard) -> Any:
    return work(shard, *arguments)


class Rows:
    """Points with their weights, in shards.

    Args:
        X: (n, d), unit rows in C order.
        weight: (n,) how much each counts; None: 1.
        size: rows of a shard.
        spread: who works; None: this thread.
        zeros: rows without a direction.
    """

    def __init__(
        self, X: Array, weight: Array | None = None, size: int = SIZE, spread: Spread | None = None, zeros: int = 0
    ) -> None:
        self.X, self.weight, self.size, self.zeros = X, weight, size, zeros
        self.spread: Spread = spread or Here()
        self._placed: Placed | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __reduce__(self) -> tuple[object, ...]:
        return (Rows, (self.X, self.weight, self.size, None, self.zeros))

    @property
    def whole(self) -> float:
        """What all rows together count."""
        return float(len(self.X) if self.weight is None else self.weight.sum())

    def shards(self) -> list[Shard]:
        """The shards: all of one size but the last."""
        starts = range(0, len(self.X), self.size)
        parts = [(at, slice(at, at + self.size)) for at in starts]
        return [Shard(self.X[p], None if self.weight is None else self.weight[p], at) for at, p in parts]

    def each(self, work: Work, *arguments: Any) -> list[Any]:
        """``work(shard, *arguments)`` of each shard, in their order."""
        return self._there().each(work, *arguments)

    def total(self, work: Work, *arguments: Any) -> Any:
        """The same, added along the tree."""
        return self._there().total(work, *arguments)

    def alone(self) -> Rows:
        """The same rows, for one thread."""
        return Rows(self.X, self.weight, self.size, None, self.zeros)

    def take(self, chosen: Array) -> Rows:
        """Some of the rows, by their numbers, worked on in this process."""
        near = self.spread if isinstance(self.spread, Here) else None
        return Rows(self.X[chosen], None if self.weight is None else self.weight[chosen], self.size, near)

    def _there(self) -> Placed:
        if self._placed is None:
            self._placed = self.spread.place(self.shards())
        return self._placed


# Threads of matrix products


class _Pin:
    lock = Lock()
    depth = 0
    before: Any = None
    threads = 0


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()


def cores() -> int:
    """How many threads a matrix product may have, as the environment says (``OMP_NUM_THREADS`` and its like)."""
    with _Pin.lock:
        return _Pin.threads if _Pin.depth else _threads()


def _threads() -> int:
    told = [m["num_threads"] for m in _controller().info() if m["user_api"] == "blas"]
    return max(told, default=0) or len(os.sched_getaffinity(0))


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products have one thread each, in the whole process, until the last one leaves.

    How OpenBLAS cuts up a product hangs on its number of threads, and the last bits of the result on the cut.
    """
    with _Pin.lock:
        if not _Pin.depth:
            _Pin.threads = _threads()
            _Pin.before = _controller().limit(limits=1, user_api="blas")
        _Pin.depth += 1
    try:
        yield
    finally:
        with _Pin.lock:
            _Pin.depth -= 1
            if not _Pin.depth:
                _Pin.before.restore_original_limits()


def fingerprint() -> bytes:
    """Bytes that two processes have in common if they compute the same: products, logarithms, sums of fixed numbers.

    Another processor, or another NumPy, has other kernels for them, and other last bits.
    """
    rng: Any = np.random.default_rng(0)
    told = b""
    with one_thread():
        for kind in (np.float32, np.float64):
            X, Y = rng.random((300, 384)).astype(kind), rng.random((384, 20)).astype(kind)
            product = np.log(X @ Y)
            told += (product.T @ X).tobytes()[-64:] + np.exp(-product).sum(axis=1).tobytes()[:256]
            told += np.einsum("ij,ij->i", X, X).tobytes()[:256]
    return told

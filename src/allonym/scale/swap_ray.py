"""Swapping on Ray: actors embed, fit and draw with the same bits as one machine.

>>> with allonym.scale.swap_workers(8) as spread:                                       # doctest: +SKIP
...     corpus = allonym.swap.load("calls/", protect="company", spread=spread)
...     releases = allonym.swap.search(corpus, seed=1, spread=spread)

Shards of the embedding matrix are in Ray's object store, with consecutive shards for each actor. An iteration of EM
sends the parameters to all actors and gets the sums over each shard (r, B, C, log-likelihood), which are added here
along the tree of :mod:`allonym.swap.rows`. Documents, texts to embed, starts of mixtures and draws of exchanges go to
whichever actor is free. An actor that dies is restarted and repeats its calls, since it keeps no results.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

from allonym.errors import AllonymError, DataError, UsageError, hide_foreign_errors
from allonym.scale.cluster import connect_ray, count_processors
from allonym.swap.rows import (
    Shard,
    ShardMap,
    ThisProcess,
    Work,
    compute_arithmetic_fingerprint,
    limit_blas_to_one_thread,
)

TRIES = 3
"""Number of times that a call is repeated after its actor died."""
WAIT = 600.0
"""Seconds that a worker may take to start, for example on a cluster that has to free resources first."""
AHEAD = 8
"""Number of items per actor that may be started before the first of them is finished."""
_COMMON = 2  # an actor caches this number of shared values

_END: Any = object()


@contextmanager
def swap_workers(count: int | None = None) -> Iterator[Workers]:
    """Return workers for the argument ``spread`` of :func:`allonym.swap.load`, :func:`allonym.swap.search` and others.

    They are on the cluster that the caller is connected to, else the one in ``RAY_ADDRESS``, else one of this machine,
    which ends with them. Their data stays in memory there, but an external cluster may write its object store to disk
    if memory is short.

    Args:
        count: number of actors, of one processor each; by default the number of processors.

    Raises:
        MissingExtra: Ray is not installed.
        UsageError: the cluster has fewer processors, or a worker's numbers differ from this machine's in the last bits,
            since it has another kind of processor or another NumPy.
    """
    if count is not None and count < 1:
        raise UsageError(f"workers must be 1 or more, got {count}")
    with connect_ray(count, store_bytes=0) as ray:
        most = count_processors(ray)
        if count is not None and count > most:
            raise UsageError(f"the cluster has {most} processors; got {count} workers")
        pool = Workers(ray, count or most)
        try:
            pool.check_worker_arithmetic()
            yield pool
        finally:
            pool.close()


class Workers:
    """Actors that work on shards and items: a :class:`allonym.swap.rows.Spread`. See :func:`swap_workers`."""

    def __init__(self, ray: Any, count: int) -> None:
        self.ray = ray
        kind = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=TRIES)(_Worker)
        self.actors = [kind.remote() for _ in range(count)]

    def __reduce__(self) -> tuple[object, ...]:
        return (ThisProcess, ())  # a worker works alone

    def check_worker_arithmetic(self) -> None:
        """Raise :class:`UsageError` if a worker computes other bits than this process, or does not start."""
        fingerprint = compute_arithmetic_fingerprint()
        answers = [a.compute_arithmetic_fingerprint.remote() for a in self.actors]
        late = self.ray.wait(answers, num_returns=len(answers), timeout=WAIT)[1]
        if late:
            raise AllonymError(
                f"{len(late)} of {len(answers)} workers did not start within {WAIT:g} s; "
                "are the cluster's processors taken?"
            )
        differing = sum(worker_fingerprint != fingerprint for worker_fingerprint in self.get_results(answers))
        if differing:
            raise UsageError(
                f"{differing} of {len(self.actors)} workers compute other last bits than this machine (another kind "
                "of processor, or another NumPy), so the result would depend on the assignment"
            )

    def close(self) -> None:
        """End the actors. Later requests, such as vectors of a release's texts, are computed in this process."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors = []

    def place_shards(self, shards: Sequence[Shard]) -> ShardMap:
        """Put the shards in Ray's object store, those of each actor as one object. A single shard stays here."""
        if not self.actors or len(shards) == 1:
            return ThisProcess().place_shards(shards)
        many = min(len(self.actors), len(shards))
        bounds = [len(shards) * i // many for i in range(many + 1)]
        groups = [(a, self.put_value(shards[i:j])) for a, (i, j) in zip(self.actors, pairwise(bounds), strict=False)]

        def map_shards(work: Work, *arguments: Any) -> Iterator[Any]:
            box = [self.put_value((work, arguments))]
            references = [actor.apply_to_item.remote(box, _apply_to_shards, group) for actor, group in groups]
            return chain.from_iterable(self.get_results(references))

        return map_shards

    def map_items(self, work: Work, common: Any, items: Iterable[Any]) -> Iterator[Any]:
        """Yield ``work(common, item)`` of each item, in order, computed by whichever actor is free."""
        if not self.actors:
            yield from ThisProcess().map_items(work, common, items)
            return
        box = [self.put_value(common)]  # inside a container it stays a reference, which an actor resolves once
        source = iter(items)
        waiting: deque[Any] = deque()
        busy: dict[Any, Any] = {}
        free = deque(self.actors * 2)  # one item is being computed, one is waiting
        while True:
            while free and len(waiting) < AHEAD * len(self.actors) and (item := next(source, _END)) is not _END:
                actor = free.popleft()
                reference = actor.apply_to_item.remote(box, work, item)
                waiting.append(reference)
                busy[reference] = actor
            if not waiting:
                return
            if waiting[0] in busy:
                for reference in self.ray.wait(list(busy), num_returns=1)[0]:
                    free.append(busy.pop(reference))
            else:
                yield self.get_results([waiting.popleft()])[0]

    def put_value(self, value: Any) -> Any:
        """Put a value in the object store, and return its reference."""
        unsendable = f"{type(value).__name__} cannot be sent to another process"
        with (
            hide_foreign_errors("Ray's object store rejects it", self.ray.exceptions.RayError),
            hide_foreign_errors(unsendable, TypeError, AttributeError, error=UsageError),  # those of pickle
        ):
            return self.ray.put(value)

    def get_results(self, references: Sequence[Any]) -> list[Any]:
        """Return the results of calls.

        Raises:
            AllonymError: a call raised it, or its actor died repeatedly.
        """
        lost = f"a worker was lost: it died {TRIES + 1} times at one task, or cannot start"
        with hide_foreign_errors(lost, self.ray.exceptions.RayError, error=AllonymError):
            results = self.ray.get(list(references))
        for result in results:
            if isinstance(result, _Failed):
                raise result.error
        return list(results)


class _Worker:
    """The actor. It keeps only a cache of opened values."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")  # warnings of packages may quote their input
        self._pinned = limit_blas_to_one_thread()
        self._pinned.__enter__()  # for good
        self._common: dict[str, Any] = {}

    def compute_arithmetic_fingerprint(self) -> bytes:
        return compute_arithmetic_fingerprint()

    def apply_to_item(self, box: Sequence[Any], work: Work, item: Any) -> Any:
        """Return the result of work for an item and the shared value in the box."""
        try:
            return work(self._get_common_value(box[0]), item)
        except AllonymError as error:
            return _Failed(error)
        except Exception as error:  # its message may quote a text
            return _Failed(DataError(f"{type(error).__name__} in a worker"))

    def _get_common_value(self, reference: Any) -> Any:
        key = reference.hex()
        if key not in self._common:
            from allonym.scale.cluster import import_ray

            while len(self._common) >= _COMMON:
                del self._common[next(iter(self._common))]
            self._common[key] = import_ray().get(reference)
        return self._common[key]


class _Failed:
    """An exception of a call, returned as a value, since Ray would print an exception with all that it quotes."""

    def __init__(self, error: AllonymError) -> None:
        self.error = error


def _apply_to_shards(call: tuple[Work, tuple[Any, ...]], shards: Sequence[Shard]) -> list[Any]:
    work, arguments = call
    return [work(shard, *arguments) for shard in shards]

"""Processes that detect and anonymise for the server, so that one long text does not keep the others waiting.

They share nothing: a task brings its document and what describes its policy, from which each process makes the policy
and its detectors once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, TypeVar

from allonym.document import Document, Span
from allonym.errors import RequestError
from allonym.pipeline import find, replace_found
from allonym.plan import Plan
from allonym.server.policies import policy_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """What became of one document. As :class:`allonym.Anonymized`, with what was found in the original."""

    spans: tuple[Span, ...]
    text: str = field(repr=False)
    parts: tuple[str, ...] = field(repr=False)
    plan: Plan
    report: dict[str, Any]


def found(document: Document, source: str, key: bytes | None) -> tuple[Span, ...]:
    """What identifies, by the policy that ``source`` describes: runs in a worker."""
    return find(document, policy_of(source), key)


def made(document: Document, source: str, key: bytes | None, scope: str, spans: tuple[Span, ...] | None) -> Made:
    """The document anonymised without a vault: runs in a worker. ``spans``: instead of what is found."""
    policy = policy_of(source)
    seen = find(document, policy, key) if spans is None else spans
    done = replace_found(document, seen, policy, key=key, scope=scope)
    return Made(seen, done.text, done.parts, done.plan, dict(done.report))


class Kernel:
    """A pool of processes.

    Args:
        workers: how many; 0: as many as this process may use processors.
        warm: what describes the policy whose detectors are loaded before the first request.
    """

    def __init__(self, workers: int, warm: str) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._warm = warm
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"Kernel({self.workers} workers)"

    def start(self) -> None:
        """Start all processes and load what they need; returns when they are ready."""
        pool = self._running()
        for one in [pool.submit(_ready) for _ in range(self.workers)]:
            one.result()

    def close(self) -> None:
        """End the processes; what is being done is finished first."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """What a module-level function gives in one of the processes.

        Raises:
            RequestError: a process ended twice while it was at it (503).
        """
        for _ in range(2):
            pool = self._running()
            try:
                return await asyncio.wrap_future(pool.submit(function, *args))
            except BrokenProcessPool:
                self._broken(pool)
        raise RequestError("a worker process ended while it treated this; try a shorter text", 503, "WorkerEnded")

    async def detect(self, document: Document, source: str, key: bytes | None) -> tuple[Span, ...]:
        """What identifies in a document."""
        return await self.run(found, document, source, key)

    async def anonymize(
        self, document: Document, source: str, key: bytes | None, scope: str = "", spans: tuple[Span, ...] | None = None
    ) -> Made:
        """A document anonymised, without a vault."""
        return await self.run(made, document, source, key, scope, spans)

    def _running(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self.workers, context, _begin, (self._warm, os.getpid()))
            return self._pool

    def _broken(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.shutdown(wait=False, cancel_futures=True)


def _begin(warm: str, parent: int) -> None:
    """In a new process: leave interrupts to the server, say nothing, load the detectors, end with the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    find(Document("", "Ada Brook"), policy_of(warm), None)


def _end_with(parent: int) -> None:
    """End this process when the server has ended without a word."""
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(1.0)
    os._exit(1)


def _ready() -> int:
    return os.getpid()

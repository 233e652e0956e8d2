"""Processes that detect and anonymise for the server, so that one long text does not keep the others waiting.

They share nothing: a task brings its document and the source of its policy, from which each process makes the policy
and its detectors once. Each process is a :class:`~concurrent.futures.ProcessPoolExecutor` of its own, because a pool of
several loses all of their work when one dies, and does not end a task for which nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from typing import Any, TypeVar

from allonym.document import Document
from allonym.errors import AllonymError, DataError, RequestError
from allonym.pipeline import detect_with_key
from allonym.server.policies import load_policy
from allonym.server.problems import HALF_SURROGATE, locate_error

T = TypeVar("T")
log = logging.getLogger("allonym.server")


class Kernel:
    """Processes, each of which works on one text at a time, for callers in the order in which they ask.

    A process that dies takes only its own text with it. One whose caller waits no more is ended.

    Args:
        workers: how many; 0: as many as processors that this process may use.
        warm: the source of the policy whose detectors are loaded before the first request.
        most_waiting: callers that may wait for a process; further ones are refused at once.

    Attributes:
        long_text_turns: held by callers with long texts, so that these never occupy all processes.
    """

    def __init__(self, workers: int, warm: str, most_waiting: int) -> None:
        self._most_waiting, self._waiting = most_waiting, 0
        self._lanes = [_WorkerProcess(warm) for _ in range(workers or len(os.sched_getaffinity(0)))]
        self.long_text_turns = asyncio.Semaphore(max(1, len(self._lanes) - 1))
        self._free = asyncio.LifoQueue[_WorkerProcess]()  # the lane used last remembers its last text
        for lane in self._lanes:
            self._free.put_nowait(lane)

    async def start(self) -> None:
        """Start all processes and load what they need; returns when they are ready.

        Raises:
            AllonymError: the policy's detectors cannot be loaded.
        """
        await asyncio.gather(*(lane.start() for lane in self._lanes))

    def close(self) -> None:
        """End the processes."""
        for lane in self._lanes:
            lane.kill()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return the result of a module-level function that runs in one of the processes.

        Raises:
            RequestError: a process ended twice while it worked on it, or too many wait already (503).
            AllonymError: what the function raised.
        """
        lane = await self._get_free_process()
        try:
            for _ in range(2):
                try:
                    return await lane.run_task(function, args)
                except AllonymError:  # that of an endpoint is an OSError as well
                    raise
                except (BrokenExecutor, OSError) as error:
                    lane.kill()
                    name = type(error).__name__
                    log.error("a worker process ended while it worked, or could not begin: %s", name)
        except WorkerError as error:
            log.error("in a worker: %s", error)
            raise
        finally:
            self._free.put_nowait(lane)
        raise RequestError("a worker process ended while it treated this; try a shorter text", 503, "WorkerEnded")

    async def _get_free_process(self) -> _WorkerProcess:
        if self._free.empty() and self._waiting >= self._most_waiting:
            raise RequestError("the server is busy: too many requests wait already; try again", 503, "Busy", 5)
        self._waiting += 1
        try:
            return await self._free.get()
        finally:
            self._waiting -= 1


class WorkerError(Exception):
    """An unexpected error in a process. The message has its type and place alone."""


class _WorkerProcess:
    """One process at a time, for one task at a time.

    Attributes:
        pid: of the process; 0: there is none that has loaded its detectors.
    """

    def __init__(self, warm: str) -> None:
        self._warm = warm
        self._starting: asyncio.Future[ProcessPoolExecutor] | None = None
        self._executor: ProcessPoolExecutor | None = None
        self.pid = 0

    async def start(self) -> ProcessPoolExecutor:
        """Start the process, if there is none, and wait until it has loaded its detectors. A process whose caller waits
        no more goes on loading: otherwise nobody who waits shorter than that would ever get an answer."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._start_executor))
        return await asyncio.shield(self._starting)

    def _start_executor(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        self._executor = executor = ProcessPoolExecutor(1, context, _prepare_process, (os.getpid(),))
        self.pid = _raise_error(executor.submit(_run_task, _load_detectors, (self._warm,)).result())
        return executor

    async def run_task(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        """Return the result of a task. If nobody waits for it any more, the process is ended, so that the next caller
        gets another.

        Raises:
            BrokenExecutor, OSError: the process ended, or could not start.
        """
        executor = await self.start()
        try:
            outcome = await asyncio.wrap_future(executor.submit(_run_task, function, args))
        except asyncio.CancelledError:
            self.kill()
            raise
        result: T = _raise_error(outcome)
        return result

    def kill(self) -> None:
        """End the process at once."""
        for process in multiprocessing.active_children():
            if process.pid == self.pid:
                process.kill()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        self._starting, self._executor, self.pid = None, None, 0


def _raise_error(outcome: tuple[Any, Exception | None]) -> Any:
    """Return the result of :func:`_run_task`, or raise its error."""
    result, error = outcome
    if error is not None:
        raise error
    return result


def _prepare_process(parent_pid: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    warnings.simplefilter("ignore")  # other packages' warnings may quote their arguments
    threading.Thread(target=_exit_when_parent_ends, args=(parent_pid,), daemon=True).start()


def _run_task(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Return the result of a function, or its error."""
    try:
        return function(*args), None
    except AllonymError as error:
        return None, error
    except UnicodeEncodeError:
        return None, DataError(HALF_SURROGATE)
    except Exception as error:  # its message may quote the text, so only its type is shown
        return None, WorkerError(f"unexpected {type(error).__name__} at {locate_error(error)}")


def _load_detectors(policy_json: str) -> int:
    """Load the detectors of a policy and return the number of this process."""
    detect_with_key(Document("", "Ada Brook"), load_policy(policy_json), None)
    return os.getpid()


def _exit_when_parent_ends(parent_pid: int) -> None:
    """End this process when the server has ended without a word."""
    waiting = threading.Event()
    while os.getppid() == parent_pid:
        waiting.wait(1.0)
    os._exit(1)

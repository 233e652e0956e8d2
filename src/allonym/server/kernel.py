"""Processes that detect and anonymise for the server, so that one long text does not keep the others waiting.

They share nothing: a task brings its document and the source of its policy, from which each process makes the policy
and its detectors once.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import LifoQueue
from typing import Any, TypeVar

from allonym.document import Document
from allonym.errors import AllonymError, DataError, RequestError
from allonym.pipeline import detect_with_key
from allonym.server.policies import load_policy
from allonym.server.problems import HALF_SURROGATE, locate_error

T = TypeVar("T")
log = logging.getLogger("allonym.server")
_CLOSING = 5.0  # seconds that a process has to end by itself
_GLANCE = 0.05  # seconds between two looks whether the caller still waits
Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that a process is to call, and its arguments."""


class Kernel:
    """Processes, each of which works on one text at a time, for callers in the order in which they ask.

    A process that dies takes only its own text with it. One whose caller waits no more is ended.

    Args:
        workers: how many; 0: as many as processors that this process may use.
        warm: the source of the policy whose detectors are loaded before the first request.

    Attributes:
        long_text_turns: held by callers with long texts, so that these never occupy all processes.
    """

    def __init__(self, workers: int, warm: str) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._lanes = [_WorkerProcess(warm) for _ in range(self.workers)]
        self.long_text_turns = asyncio.Semaphore(max(1, self.workers - 1))
        self._threads = ThreadPoolExecutor(self.workers, "kernel")
        # Never empty for a thread, as there are as many lanes as threads. The lane used last remembers its last text.
        self._free = LifoQueue[_WorkerProcess]()
        for lane in self._lanes:
            self._free.put(lane)

    def __repr__(self) -> str:
        return f"Kernel({self.workers} workers)"

    def start(self) -> None:
        """Start all processes and load what they need; returns when they are ready.

        Raises:
            AllonymError: the policy's detectors cannot be loaded.
        """
        for starting in [self._threads.submit(lane.start) for lane in self._lanes]:
            starting.result()

    def close(self) -> None:
        """End the processes, after they have finished their work."""
        for lane in self._lanes:
            lane.close()
        self._threads.shutdown()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return the result of a module-level function that runs in one of the processes.

        Raises:
            RequestError: a process ended twice while it worked on it (503).
            AllonymError: what the function raised.
        """
        abandoned = threading.Event()
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._run_in_free_worker, (function, args), abandoned)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    def _run_in_free_worker(self, task: Task, abandoned: threading.Event) -> Any:
        lane = self._free.get()
        try:
            for _ in range(2):
                try:
                    return lane.run_task(task, abandoned)
                except _Ended as error:
                    log.error("a worker process ended while it worked, or could not begin: %s", error)
        except WorkerError as error:
            log.error("in a worker: %s", error)
            raise
        finally:
            self._free.put(lane)
        raise RequestError("a worker process ended while it treated this; try a shorter text", 503, "WorkerEnded")


class WorkerError(Exception):
    """An unexpected error in a process. The message has its type and place alone."""


class _Ended(Exception):
    """The process ended before it answered, or none could be started."""


class _WorkerProcess:
    """One process at a time, and the pipe to it."""

    def __init__(self, warm: str) -> None:
        self._warm = warm
        self._lock = threading.Lock()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def start(self) -> None:
        """Start the process, if there is none, and wait until it has loaded its detectors."""
        with self._lock:
            self._connect_to_process()

    def run_task(self, task: Task, abandoned: threading.Event) -> Any:
        """Return the result of a task. Where nobody waits for it any more, return None and end a process that works on
        it, so that the next caller gets another; one that is still loading its detectors goes on.

        Raises:
            _Ended: the process ended, or could not start.
        """
        with self._lock:
            try:
                pipe = self._connect_to_process()
                if abandoned.is_set():
                    return None
                pipe.send(task)
                while not pipe.poll(_GLANCE):
                    if abandoned.is_set():
                        self._end_process(0)
                        return None
                return _receive_answer(pipe)
            except AllonymError:  # that of an endpoint is an OSError as well
                raise
            except (EOFError, OSError) as error:
                self._end_process()
                raise _Ended(type(error).__name__) from None

    def close(self) -> None:
        """End the process when it has answered."""
        with self._lock:
            self._end_process()

    def _connect_to_process(self) -> Connection:
        if self._process is None or not self._process.is_alive():
            self._end_process()
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            with there:
                process = context.Process(target=_serve_tasks, args=(there, self._warm, os.getpid()), daemon=True)
                try:
                    process.start()
                except BaseException:
                    here.close()
                    raise
            self._process, self._pipe = process, here
            _receive_answer(here)
        assert self._pipe is not None
        return self._pipe

    def _end_process(self, grace_seconds: float = _CLOSING) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join(grace_seconds)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process.close()
        self._process = self._pipe = None


def _receive_answer(pipe: Connection) -> Any:
    """Return the answer of a process, or raise its error."""
    is_result, answer = pipe.recv()
    if not is_result:
        raise answer
    return answer


def _serve_tasks(pipe: Connection, policy_json: str, parent_pid: int) -> None:
    """Load the detectors, then answer until the server ends. Runs in a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    warnings.simplefilter("ignore")  # other packages' warnings may quote their arguments
    threading.Thread(target=_exit_when_parent_ends, args=(parent_pid,), daemon=True).start()
    task: Task | None = (_load_detectors, (policy_json,))
    with suppress(EOFError, ConnectionError):
        while True:
            if task is not None:
                pipe.send_bytes(_run_and_pickle_result(*task))
            task = None
            task = pipe.recv()


def _run_and_pickle_result(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((True, function(*args)))
    except AllonymError as error:
        return pickle.dumps((False, error))
    except UnicodeEncodeError:
        return pickle.dumps((False, DataError(HALF_SURROGATE)))
    except Exception as error:  # its message may quote the text, so only its type is shown
        return pickle.dumps((False, WorkerError(f"unexpected {type(error).__name__} at {locate_error(error)}")))


def _load_detectors(policy_json: str) -> None:
    detect_with_key(Document("", "Ada Brook"), load_policy(policy_json), None)


def _exit_when_parent_ends(parent_pid: int) -> None:
    """End this process when the server has ended without a word."""
    waiting = threading.Event()
    while os.getppid() == parent_pid:
        waiting.wait(1.0)
    os._exit(1)

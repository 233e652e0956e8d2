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
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from allonym.document import Document, Span
from allonym.errors import AllonymError, DataError, RequestError
from allonym.link import link
from allonym.pipeline import detect_with_key, replace_found
from allonym.plan import Anonymized
from allonym.replace import Book
from allonym.server.entities import EntityNumbers, correct_entities
from allonym.server.policies import load_policy
from allonym.server.problems import HALF_SURROGATE, locate_error

T = TypeVar("T")
log = logging.getLogger("allonym.server")
_CLOSING = 5.0  # seconds that a process has to end by itself


def detect_spans(document: Document, source: str, key: bytes | None) -> tuple[Span, ...]:
    """Return the findings by the policy that ``source`` describes. Runs in a worker."""
    return detect_with_key(document, load_policy(source), key)


def anonymize_document(
    document: Document,
    source: str,
    key: bytes | None,
    scope: str,
    spans: tuple[Span, ...] | None,
    numbers: EntityNumbers | None = None,
    book: Book | None = None,
) -> Anonymized:
    """Anonymise a document. Runs in a worker, where there is no ``book``.

    Args:
        document: the text.
        source: describes the policy.
        key, scope, book: as for :func:`allonym.pipeline.replace_found`.
        spans: disjoint findings; None: the policy's detectors find them.
        numbers: of the entities of mentions, as a person corrected them.
    """
    policy = load_policy(source)
    spans = detect_with_key(document, policy, key) if spans is None else spans
    linked = correct_entities(link(document, spans, policy.taxonomy), numbers) if numbers else None
    return replace_found(document, spans, policy, key=key, scope=scope, book=book, linked=linked)


class Kernel:
    """Processes, each of which works on one text at a time.

    A process that dies takes only its own text with it. One whose caller waits no more is ended.

    Args:
        workers: how many; 0: as many as processors that this process may use.
        warm: the source of the policy whose detectors are loaded before the first request.
    """

    def __init__(self, workers: int, warm: str) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self._lanes = [_Lane(warm) for _ in range(self.workers)]
        self._threads = ThreadPoolExecutor(self.workers, "kernel")
        self._lock = threading.Lock()
        self._free = list(self._lanes)
        self._waiting: deque[Future[_Lane]] = deque()

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
        for _ in range(2):
            lane, unwanted = await self._acquire_lane(), threading.Event()
            try:
                answer: T = await asyncio.get_running_loop().run_in_executor(
                    self._threads, lane.call_in_process, function, args, unwanted
                )
            except _Ended as error:
                log.error("a worker process ended while it worked, or could not begin: %s", error)
            except WorkerError as error:
                log.error("in a worker: %s", error)
                raise
            except asyncio.CancelledError:
                lane.abandon_answer(unwanted)
                raise
            else:
                return answer
            finally:
                self._release_lane(lane)
        raise RequestError("a worker process ended while it treated this; try a shorter text", 503, "WorkerEnded")

    async def detect(self, document: Document, source: str, key: bytes | None) -> tuple[Span, ...]:
        """Return the findings in a document."""
        return await self.run(detect_spans, document, source, key)

    async def anonymize(
        self,
        document: Document,
        source: str,
        key: bytes | None,
        scope: str = "",
        spans: tuple[Span, ...] | None = None,
        numbers: EntityNumbers | None = None,
    ) -> Anonymized:
        """Anonymise a document, without a vault."""
        return await self.run(anonymize_document, document, source, key, scope, spans, numbers)

    async def _acquire_lane(self) -> _Lane:
        """Return a free process, to callers in the order in which they ask."""
        with self._lock:
            if self._free:
                return self._free.pop()
            waiting: Future[_Lane] = Future()
            self._waiting.append(waiting)
        try:
            return await asyncio.wrap_future(waiting)
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # it came just now
                self._release_lane(waiting.result())
            raise

    def _release_lane(self, lane: _Lane) -> None:
        with self._lock:
            while self._waiting:
                waiting = self._waiting.popleft()
                if waiting.set_running_or_notify_cancel():
                    waiting.set_result(lane)
                    return
            self._free.append(lane)


class WorkerError(Exception):
    """An unexpected error in a process. The message has its type and place alone."""


class _Ended(Exception):
    """The process ended before it answered, or none could be started."""


class _Lane:
    """One process at a time, and the pipe to it. Only :meth:`abandon_answer` comes from other threads."""

    def __init__(self, warm: str) -> None:
        self._warm = warm
        self._lock = threading.Lock()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._killed = False
        self._turn = threading.Lock()
        self._current: threading.Event | None = None

    def start(self) -> None:
        """Start the process, if there is none, and wait until it has loaded its detectors."""
        with self._lock:
            self._start_process()

    def call_in_process(self, function: Callable[..., Any], args: tuple[Any, ...], unwanted: threading.Event) -> Any:
        """Return the function's result; None where it became unwanted before the process has begun.

        Raises:
            _Ended: the process ended, or could not start.
        """
        with self._lock:
            try:
                pipe = self._start_process()
                with self._turn:
                    if unwanted.is_set():
                        return None
                    self._current = unwanted
                pipe.send((function, args))
                return _receive_answer(pipe)
            except AllonymError:  # that of an endpoint is an OSError as well
                raise
            except (EOFError, OSError) as error:
                self._end_process()
                raise _Ended(type(error).__name__) from None
            finally:
                with self._turn:
                    self._current = None

    def abandon_answer(self, unwanted: threading.Event) -> None:
        """Give up an answer: kill a process that works on it, so that the next caller gets another. A process that is
        still loading its detectors goes on."""
        with self._turn:
            unwanted.set()
            if self._current is not unwanted:
                return
            self._killed, process = True, self._process
            with suppress(ValueError):  # it may just have ended
                if process is not None:
                    process.kill()

    def close(self) -> None:
        """End the process when it has answered."""
        with self._lock:
            self._end_process()

    def _start_process(self) -> Connection:
        if self._killed or self._process is None or not self._process.is_alive():
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

    def _end_process(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join(0 if self._killed else _CLOSING)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            self._process.close()
        self._process, self._pipe, self._killed = None, None, False


def _receive_answer(pipe: Connection) -> Any:
    """Return the answer of a process, or raise its error."""
    is_result, answer = pipe.recv()
    if not is_result:
        raise answer
    return answer


def _serve_tasks(pipe: Connection, warm: str, parent: int) -> None:
    """Load the detectors, then answer until the server ends. Runs in a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    warnings.simplefilter("ignore")  # other packages' warnings may quote their arguments
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    task: tuple[Callable[..., Any], tuple[Any, ...]] | None = (_load_detectors, (warm,))
    with suppress(EOFError, ConnectionError):
        while True:
            if task is not None:
                pipe.send_bytes(_run_task(*task))
            task = None
            task = pipe.recv()


def _run_task(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((True, function(*args)))
    except AllonymError as error:
        return pickle.dumps((False, error))
    except UnicodeEncodeError:
        return pickle.dumps((False, DataError(HALF_SURROGATE)))
    except Exception as error:  # its message may quote the text, so only its type is shown
        return pickle.dumps((False, WorkerError(f"unexpected {type(error).__name__} at {locate_error(error)}")))


def _load_detectors(warm: str) -> None:
    detect_with_key(Document("", "Ada Brook"), load_policy(warm), None)


def _end_with_parent(parent: int) -> None:
    """End this process when the server has ended without a word."""
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(1.0)
    os._exit(1)

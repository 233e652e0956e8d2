"""The thread that runs jobs: it starts their processes, collects how they end, ends jobs on request, removes old files.

Of several servers on one data folder, only the one that holds the lock does this; when it stops, another takes over.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError, RequestError
from allonym.keys import derive_operator_key
from allonym.server.database import get_unix_time
from allonym.server.jobs.queue import CANCELLED, DONE, FAILED, OPEN, REMOVE, RUNNING, WAITING, JobQueue, JobRow
from allonym.server.jobs.task import Folder, InUse, Task, make_ending, open_and_lock_file
from allonym.server.metrics import Metrics
from allonym.server.settings import Settings
from allonym.vault import Vault

log = logging.getLogger("allonym.server")

MOST_DEATHS = 5
"""How often the process of a job may die without progress before the job has failed."""

GRACE = 10.0
"""Seconds that processes have to stop where they can go on."""

_TURN_SECONDS, _CLEAN_SECONDS = 1.0, 60.0
_RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0)  # before a job whose process died starts again, by the number of deaths
_SECRETS = frozenset(f"ALLONYM_{name}" for name in ("VAULT_KEY", "KEY", "DATABASE_URL", "VAULT_URL"))
"""Variables of the server's environment that its children do not get: they get what is open already."""


class Runner:
    """Runs the jobs of one data folder.

    Args:
        folder: where the jobs' folders lie.
        queue: their rows.
        settings: number of jobs at the same time, how long their results are kept.
        vault: open; each process gets it through its pipe.
        metrics: count jobs.
        check: raises :class:`RequestError` where whoever made a job may not use its scope any more.

    Attributes:
        keep_seconds: for which the files of an ended job stay.
    """

    def __init__(
        self,
        folder: Path,
        queue: JobQueue,
        settings: Settings,
        vault: Vault,
        metrics: Metrics,
        check: Callable[[JobRow], None],
    ) -> None:
        self._folder, self._queue, self._vault, self._metrics = folder, queue, vault, metrics
        self._check = check
        self._workers, self.keep_seconds = settings.job_workers, int(settings.keep_results_hours * 3600)
        self._processes: dict[str, tuple[JobRow, subprocess.Popen[bytes]]] = {}
        self._not_before: dict[str, float] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock: int | None = None
        self._cleaned = 0.0

    def get_job_folder(self, id: str) -> Folder:
        """Return the folder of a job."""
        return Folder(self._folder / id, derive_operator_key(self._vault.operator_key, "job endings", id)[:32])

    def start(self) -> None:
        """Start, in a thread."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run_until_stopped, name="jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop all processes where they can go on; their jobs are queued for the next start."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Tell the thread that there is something to do."""
        self._wake.set()

    def _run_until_stopped(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._run_scheduling_turn()
                except AllonymError as error:
                    log.error("jobs: %s", type(error).__name__)  # such as a database that is away for a while
                except OSError as error:
                    log.error("jobs: %s", error.strerror or type(error).__name__)
                except Exception as error:  # whatever goes wrong in one turn must not end the turns
                    log.error("jobs: unexpected %s", type(error).__name__)
                self._wake.wait(_TURN_SECONDS)
                self._wake.clear()
            self._stop_processes_and_requeue_jobs()
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _run_scheduling_turn(self) -> None:
        """Start, end and remove the jobs that are due, if this server holds the folder's lock."""
        if self._lock is None:
            try:
                self._lock = open_and_lock_file(self._folder / "lock")
            except InUse:  # by the server that runs the jobs
                return
            self._requeue_interrupted_jobs()
        self._handle_ended_processes()
        self._cancel_and_remove_requested_jobs()
        self._start_waiting_jobs()
        if time.monotonic() - self._cleaned > _CLEAN_SECONDS:
            self._cleaned = time.monotonic()
            self._remove_expired_jobs_and_uploads()
        self._metrics.set_job_counts(self._queue.count_jobs_by_state())

    def _requeue_interrupted_jobs(self) -> None:
        """Queue the jobs again that another server had started, unless they are done."""
        for row in self._queue.list_jobs_in_states(RUNNING):
            if not self._store_ending_if_done(row):
                self._queue.set_job_state(row.id, WAITING)
        for row in self._queue.list_jobs_in_states(DONE, FAILED, CANCELLED):
            self._remove_unneeded_job_files(row, row.state, row.ending.get("results", ()))

    def _store_ending_if_done(self, row: JobRow) -> bool:
        """Store how a job ended, if its process had done its work; return whether it had."""
        folder = self.get_job_folder(row.id)
        if not folder.path.is_dir():
            self._queue.store_ending_or_requeue(row.id, FAILED, make_ending(FAILED, "its files are gone"))
            return True
        ending = folder.read_ending()
        if ending is None or ending.get("wanted") != row.releases:
            return False
        self._store_ending_and_clean_up(row, ending)
        return True

    # Processes

    def _start_waiting_jobs(self) -> None:
        if len(self._processes) >= self._workers:
            return
        # A job that is running without a process lost it by a failure.
        for row in self._queue.list_jobs_in_states(WAITING, RUNNING):
            if len(self._processes) >= self._workers or self._stopping.is_set():
                return
            if row.wish or row.id in self._processes or self._not_before.get(row.id, 0) > time.monotonic():
                continue
            if not self._store_ending_if_done(row):
                self._start_job_process(row)

    def _start_job_process(self, row: JobRow) -> None:
        try:
            self._check(row)
        except RequestError as error:
            if error.status >= 500:  # the database is away for a while
                raise
            self._store_ending_and_clean_up(row, make_ending(FAILED, str(error)))
            return
        self._queue.set_job_state(row.id, RUNNING, started=row.started or get_unix_time())
        environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        path = os.pathsep.join(p for p in sys.path if p)
        try:
            task = pickle.dumps(
                Task(self.get_job_folder(row.id), row.spec, self._vault, self._vault.operator_key, row.releases)
            )
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "allonym.server.jobs.child", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**environment, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
            )
        except Exception as error:  # such as too many processes
            reason = getattr(error, "strerror", None) or type(error).__name__
            self._requeue_or_fail_job(row, f"an error at its start: {reason}")
            return
        self._processes[row.id] = (row, process)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once, which the next turn notices
            process.stdin.write(task)
            process.stdin.flush()
        threading.Thread(target=self._wake_when_process_ends, args=(process,), name="job", daemon=True).start()

    def _wake_when_process_ends(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._wake.set()

    def _handle_ended_processes(self) -> None:
        for id, (row, process) in list(self._processes.items()):
            code = process.poll()
            if code is None:
                continue
            _kill_process_group(process)  # its children
            del self._processes[id]
            if not self._store_ending_if_done(row):
                self._requeue_or_fail_job(row, f"signal {-code}" if code < 0 else f"exit code {code}")

    def _requeue_or_fail_job(self, row: JobRow, cause: str) -> None:
        """Queue a job again whose process ended without having done its work, unless that leads nowhere."""
        reached = _count_stages_done(self.get_job_folder(row.id))
        deaths = 1 if reached > row.reached else row.deaths + 1
        log.warning("job %s: its process ended with %s", row.id, cause)
        if deaths >= MOST_DEATHS:
            why = f"its process ended {deaths} times at the same place, last with {cause}; is there enough memory?"
            self._store_ending_and_clean_up(row, make_ending(FAILED, why))
            return
        self._not_before[row.id] = time.monotonic() + _RETRY_SECONDS[min(deaths, len(_RETRY_SECONDS)) - 1]
        self._queue.set_job_state(row.id, WAITING, deaths=deaths, reached=max(reached, row.reached))

    def _store_ending_and_clean_up(self, row: JobRow, ending: dict[str, Any]) -> None:
        if row.ending.get("results") and ending["state"] != DONE:  # only what was requested later failed
            ending = {**row.ending, "error": ending["error"], "wanted": row.releases}
        self._queue.store_ending_or_requeue(row.id, ending["state"], ending)
        self._not_before.pop(row.id, None)
        self._remove_unneeded_job_files(row, ending["state"], ending["results"])

    def _remove_unneeded_job_files(self, row: JobRow, state: str, results: Any) -> None:
        """Remove files that are no results; further releases need the corpus, further levels the rounds."""
        needed = ["in", "state", "made"] if row.kind in ("swap", "harden") and state == DONE else []
        self.get_job_folder(row.id).remove_files_except([*needed, *(result["path"] for result in results)])

    def _cancel_and_remove_requested_jobs(self) -> None:
        for id, state, wish in self._queue.list_cancel_and_removal_requests():
            if id in self._processes:
                _kill_process_group(self._processes.pop(id)[1])
            if wish == REMOVE:
                self._remove_job_and_files(id)
            elif state in OPEN and (row := self._queue.find_job(id)) is not None:
                self._store_ending_and_clean_up(row, make_ending(CANCELLED))

    def _remove_job_and_files(self, id: str) -> None:
        self.get_job_folder(id).remove()
        self._queue.remove_job(id)

    def _remove_expired_jobs_and_uploads(self) -> None:
        """Remove jobs whose time is over, and folders of uploads that broke off."""
        for id in self._queue.list_job_ids(ended_before=get_unix_time() - self.keep_seconds):
            self._remove_job_and_files(id)
        folders = [Folder(path) for path in self._folder.iterdir() if path.is_dir()]
        ids = self._queue.list_job_ids()
        for folder in folders:
            if folder.path.name not in ids:
                with suppress(InUse, FileNotFoundError), folder.lock():
                    if folder.path.name not in self._queue.list_job_ids():  # it may have become a job meanwhile
                        folder.remove()

    def _stop_processes_and_requeue_jobs(self) -> None:
        """Stop all processes, each where it can go on."""
        for _, process in self._processes.values():
            process.terminate()
        until = time.monotonic() + GRACE
        for _, process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            _kill_process_group(process)
        for row, _ in self._processes.values():
            with suppress(AllonymError):  # then the next start notices it
                if not self._store_ending_if_done(row):
                    self._queue.set_job_state(row.id, WAITING)
        self._processes.clear()


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children at once, and close the pipe; the files that they have written are complete."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _count_stages_done(folder: Folder) -> float:
    """Return how far a job has come: the number of its stage, and the share of it that is done."""
    progress = folder.read_progress()
    share = float(progress["done"]) / progress["of"] if progress.get("of") else 0.0
    return float(progress.get("number", 0)) + share

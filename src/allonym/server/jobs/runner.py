"""The thread that runs jobs: starts their processes, picks up how they end, carries out wishes, clears away.

Of several servers on one data folder only the one that holds the lock does this; when it goes, another takes over.
"""

from __future__ import annotations

import fcntl
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError
from allonym.server.database import now
from allonym.server.jobs.folder import Folder, InUse
from allonym.server.jobs.queue import CANCELLED, DONE, FAILED, OPEN, REMOVE, RUNNING, WAITING, Queue, Row
from allonym.server.jobs.task import ending
from allonym.vault import Vault

log = logging.getLogger("allonym.server")

DEATHS = 5
"""So often the process of a job may die without having come further; then the job has failed."""

GRACE = 10.0
"""Seconds that processes have to stop where they can go on."""

_LOOK, _CLEAR = 1.0, 60.0
_SECRET = frozenset(f"ALLONYM_{name}" for name in ("VAULT_KEY", "KEY", "DATABASE_URL", "VAULT_URL"))
"""Of the server's environment, what its children do without: they get what is open already."""
_AGAIN = (1.0, 2.0, 5.0, 10.0)
"""Seconds before a job whose process died begins again, by how often it did."""


@dataclass(slots=True)
class Child:
    """A job's process."""

    row: Row
    folder: Folder
    process: subprocess.Popen[bytes]
    doomed: str = ""

    def kill(self) -> None:
        """End it and all its own at once; what it wrote so far is whole."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Runner:
    """Runs the jobs of one data folder.

    Args:
        folder: where the jobs' folders lie.
        queue: their rows.
        vault: open; each process gets it through its pipe.
        workers: jobs at the same time.
        keep: seconds for which the files of an ended job stay.
        counted: gets how many jobs are in which state.
    """

    def __init__(
        self,
        folder: Path,
        queue: Queue,
        vault: Vault,
        *,
        workers: int,
        keep: float,
        counted: Callable[[dict[str, int]], None],
    ) -> None:
        self._folder, self._queue, self._vault = folder, queue, vault
        self._workers, self._keep, self._counted = workers, keep, counted
        self._children: dict[str, Child] = {}
        self._later: dict[str, float] = {}
        self._wake = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock: int | None = None
        self._cleared = 0.0

    def folder(self, id: str) -> Folder:
        """The folder of a job."""
        return Folder(self._folder / id)

    def start(self) -> None:
        """Begin, in a thread."""
        self._over.clear()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End: processes stop where they can go on, and their jobs are queued for the next start."""
        self._over.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                try:
                    self._turn()
                except AllonymError as error:
                    log.error("jobs: %s", type(error).__name__)  # such as a database that is away for a while
                except OSError as error:
                    log.error("jobs: %s", error.strerror or type(error).__name__)
                except Exception as error:  # whatever goes wrong in one turn must not end the turns
                    log.error("jobs: unexpected %s", type(error).__name__)
                self._wake.wait(_LOOK)
                self._wake.clear()
            self._halt()
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _turn(self) -> None:
        if self._lock is None:
            if not self._locked():
                return
            self._recover()
        self._reap()
        self._wishes()
        self._begin()
        if time.monotonic() - self._cleared > _CLEAR:
            self._cleared = time.monotonic()
            self._clear()
        self._counted(self._queue.counts())

    def _locked(self) -> bool:
        """Try to become the one that runs the jobs."""
        handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        self._lock = handle
        return True

    # After a start

    def _recover(self) -> None:
        """Whatever a server that is no more had begun is queued again, or is done already."""
        for row in self._queue.in_states(RUNNING):
            if not self._settled(row):
                self._queue.move(row.id, WAITING)
        for row in self._queue.in_states(DONE, FAILED, CANCELLED):
            self._tidy(row.id, row.kind, row.state, [made["path"] for made in row.told.get("results", ())])

    def _settled(self, row: Row) -> bool:
        """Whether the job's process had ended its work; then the row says so too."""
        folder = self.folder(row.id)
        if not folder.there():
            self._queue.end(row.id, FAILED, ending(FAILED, "its files are gone", {}, []))
            return True
        told = folder.ended()
        if told is None or told.get("wanted") != row.wanted:
            return False
        self._ended(row, told)
        return True

    # Processes

    def _begin(self) -> None:
        if len(self._children) >= self._workers:
            return
        for row in self._queue.in_states(WAITING, RUNNING):  # one that runs without a process was lost by a failure
            if len(self._children) >= self._workers or self._over.is_set():
                return
            if row.wish or row.id in self._children or self._later.get(row.id, 0) > time.monotonic():
                continue
            if not self._settled(row):
                self._start(row)

    def _start(self, row: Row) -> None:
        self._queue.move(row.id, RUNNING, started=row.started or now())
        told = {
            "folder": self.folder(row.id).path,
            "spec": row.spec.to_dict(),
            "vault": self._vault,
            "key": self._vault.operator_key,
            "wanted": row.wanted,
        }
        own = {name: value for name, value in os.environ.items() if name not in _SECRET}
        try:
            task = pickle.dumps(told)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "allonym.server.jobs.child", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**own, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONWARNINGS": "ignore"},
            )
        except Exception as error:  # such as too many processes
            self._died(row, f"an error at its start: {getattr(error, 'strerror', None) or type(error).__name__}")
            return
        child = Child(row, self.folder(row.id), process)
        self._children[row.id] = child
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once, which is found out below
            process.stdin.write(task)
            process.stdin.flush()
        threading.Thread(target=self._wait, args=(child,), name="job", daemon=True).start()

    def _wait(self, child: Child) -> None:
        child.process.wait()
        self._wake.set()

    def _reap(self) -> None:
        for id, child in list(self._children.items()):
            code = child.process.poll()
            if code is None:
                continue
            child.kill()  # what it may have left
            self._close(child)
            del self._children[id]
            if child.doomed:
                continue
            if not self._settled(child.row):
                self._died(child.row, f"signal {-code}" if code < 0 else f"exit code {code}")

    def _died(self, row: Row, how: str) -> None:
        """Its process ended without having done its work: it begins again, unless that leads nowhere."""
        reached = _reached(self.folder(row.id))
        deaths = 1 if reached > row.reached else row.deaths + 1
        log.warning("job %s: its process ended with %s", row.id, how)
        if deaths >= DEATHS:
            why = f"its process ended {deaths} times at the same place, last with {how}; is there enough memory?"
            self._ended(row, ending(FAILED, why, {}, []))
            return
        self._later[row.id] = time.monotonic() + _AGAIN[min(deaths, len(_AGAIN)) - 1]
        self._queue.move(row.id, WAITING, deaths=deaths, reached=max(reached, row.reached))

    def _ended(self, row: Row, told: dict[str, Any]) -> None:
        if row.told.get("results") and told["state"] != DONE:  # only what was asked for later came to nothing
            told = {**row.told, "error": told["error"], "wanted": row.wanted}
        self._queue.end(row.id, told["state"], told)
        self._later.pop(row.id, None)
        self._tidy(row.id, row.kind, told["state"], [made["path"] for made in told["results"]])

    def _tidy(self, id: str, kind: str, state: str, results: list[str]) -> None:
        """Remove what nobody needs any more; further releases of a swap need its corpus."""
        more = ["in", "state", "made"] if kind == "swap" and state == DONE else []
        self.folder(id).tidy([*results, *more])

    @staticmethod
    def _close(child: Child) -> None:
        if child.process.stdin is not None:
            with suppress(OSError):
                child.process.stdin.close()

    # Wishes

    def _wishes(self) -> None:
        for id, state, wish in self._queue.wishes():
            child = self._children.pop(id, None)
            if child is not None:
                child.doomed = wish
                child.kill()
                child.process.wait()
                self._close(child)
            if wish == REMOVE:
                self.folder(id).remove()
                self._queue.drop(id)
            elif state in OPEN and (row := self._queue.one(id)) is not None:
                self._ended(row, ending(CANCELLED, None, {}, []))

    # Clearing away

    def _clear(self) -> None:
        """Remove jobs whose time is over, and folders of uploads that broke off."""
        for id in self._queue.ended_before(now() - int(self._keep)):
            self.folder(id).remove()
            self._queue.drop(id)
        found = [path for path in self._folder.iterdir() if path.is_dir()]
        known = self._queue.ids()
        for path in found:
            if path.name not in known:
                with suppress(InUse, FileNotFoundError), Folder(path).held():
                    if path.name not in self._queue.ids():  # it may have come to be a job meanwhile
                        Folder(path).remove()

    def _halt(self) -> None:
        """Stop all processes, each where it can go on."""
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + GRACE
        for child in self._children.values():
            try:
                child.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.process.wait()
        for child in self._children.values():
            child.kill()
            self._close(child)
            with suppress(AllonymError):  # then it is found out at the next start
                if not self._settled(child.row):
                    self._queue.move(child.row.id, WAITING)
        self._children.clear()


def _reached(folder: Folder) -> float:
    """How far a job has come: its stage, and the share of it."""
    told = folder.progress()
    return float(told.get("number", 0)) + (float(told["done"]) / told["of"] if told.get("of") else 0.0)

"""The process of one job. It gets its task over standard input, ends with the server, and writes how it ended.

    python -m allonym.server.jobs.child PARENT

A process of its own gives its memory back to the system at the end. It may be killed at any moment.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import threading
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any

from allonym.collector import slow_down_collector

if TYPE_CHECKING:
    from allonym.server.jobs.task import Task

STOPPED = 75
"""Exit code of a process that stopped where it can go on (EX_TEMPFAIL)."""

_LOCK_SECONDS = 30.0
_NICE = 5


class Stopped(KeyboardInterrupt):
    """The server ends, and the job goes on at its next start."""


def main(parent_pid: int) -> int:
    """Read the task, do it, write how it ended, and return the exit code.

    Args:
        parent_pid: the server's process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _raise_stopped)
    is_read = threading.Event()
    # before any slow step
    threading.Thread(target=_kill_group_when_parent_ends, args=(parent_pid, is_read), daemon=True).start()
    os.umask(0o077)
    os.nice(_NICE)
    slow_down_collector()
    warnings.simplefilter("ignore")  # other packages' warnings may quote their arguments
    try:
        task = pickle.load(sys.stdin.buffer)
        is_read.set()
        return _run_task_unless_done(task)
    except (EOFError, Stopped):
        return STOPPED


def _run_task_unless_done(task: Task) -> int:
    """Do the work and store how it ended, unless that is stored already; return the exit code."""
    from allonym.errors import VaultLocked
    from allonym.server.jobs.task import InUse

    try:
        with task.folder.lock(_LOCK_SECONDS):
            before = task.folder.read_ending()
            if before is None or before.get("wanted") != task.releases:
                task.folder.write_ending({**_run_job_and_describe_ending(task), "wanted": task.releases})
    except (InUse, VaultLocked):
        return STOPPED
    return 0


def _run_job_and_describe_ending(task: Task) -> dict[str, Any]:
    """Do the work and return how it ended. An unexpected error is described by its type alone."""
    from allonym.errors import AllonymError, VaultLocked
    from allonym.server.jobs.task import make_ending
    from allonym.server.jobs.work import WORK

    try:
        summary, results = WORK[task.spec.kind](task)
    except VaultLocked:
        raise
    except AllonymError as error:
        return make_ending("failed", task.hide_paths_in_message(str(error)))
    except OSError as error:
        return make_ending("failed", f"the system says: {error.strerror or type(error).__name__}")
    except Exception as error:  # whatever it is: the job ends with its type, and the server goes on
        return make_ending("failed", f"unexpected {type(error).__name__}")
    return make_ending("done", None, summary, results)


def _raise_stopped(signal_number: int, frame: FrameType | None) -> None:
    raise Stopped


def _kill_group_when_parent_ends(parent_pid: int, task_received: threading.Event) -> None:
    """Kill this process and its children when the server has ended without a word: its end of the pipe closes."""
    while os.getppid() == parent_pid:
        if not task_received.is_set():
            task_received.wait(0.2)
            continue
        ready, _, _ = select.select([sys.stdin], [], [], 0.5)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

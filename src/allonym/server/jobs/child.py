"""The process of one job: told over its standard input what to do, it ends with the server, and leaves how it ended.

    python -m allonym.server.jobs.child PARENT

Its memory is the system's again when it ends. It may be killed at any moment.
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

if TYPE_CHECKING:
    from allonym.server.jobs.task import Task

STOPPED = 75
"""Exit code of a process that stopped where it can go on (EX_TEMPFAIL)."""

_WAIT = 30.0
_NICE = 5


class Stopped(KeyboardInterrupt):
    """The server ends, and the job goes on at its next start."""


def main(parent: int) -> int:
    """Read what to do, do it, say how it ended; the exit code.

    Args:
        parent: the server's process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    read = threading.Event()
    threading.Thread(target=_end_with, args=(parent, read), daemon=True).start()  # before anything that takes time
    os.umask(0o077)
    os.nice(_NICE)
    warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    try:
        told = pickle.load(sys.stdin.buffer)
        read.set()
        return _carried_out(told)
    except (EOFError, Stopped):
        return STOPPED


def _carried_out(told: dict[str, Any]) -> int:
    from allonym.errors import VaultLocked
    from allonym.server.jobs.folder import Folder, InUse
    from allonym.server.jobs.task import Spec, Task

    wanted = told["wanted"]
    task = Task(Folder(told["folder"]), Spec.from_dict(told["spec"]), told["vault"], told["key"], wanted)
    try:
        with task.folder.held(_WAIT):
            had = task.folder.ended()
            if had is None or had.get("wanted") != wanted:
                task.folder.end({**_done(task), "wanted": wanted})
    except (InUse, VaultLocked):
        return STOPPED
    return 0


def _done(task: Task) -> dict[str, Any]:
    """Do the work; how it ended. What is not raised on purpose is told by its type alone."""
    from allonym.errors import AllonymError, VaultLocked
    from allonym.server.jobs.task import ending
    from allonym.server.jobs.work import WORK

    try:
        summary, results = WORK[task.spec.kind](task)
    except VaultLocked:
        raise
    except AllonymError as error:
        return ending("failed", task.said(str(error)), {}, [])
    except OSError as error:
        return ending("failed", f"the system says: {error.strerror or type(error).__name__}", {}, [])
    except Exception as error:  # whatever it is: the job ends with its type, and the server goes on
        return ending("failed", f"unexpected {type(error).__name__}", {}, [])
    return ending("done", None, summary, results)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


def _end_with(parent: int, read: threading.Event) -> None:
    """End this process and its own at once when the server has ended without a word: its end of the pipe closes."""
    while os.getppid() == parent:
        if not read.is_set():
            read.wait(0.2)
            continue
        ready, _, _ = select.select([sys.stdin], [], [], 0.5)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

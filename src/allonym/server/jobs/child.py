"""The process of one job: told over its standard input what to do, it ends with the server, and leaves how it ended.

    python -m allonym.server.jobs.child

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

from allonym.errors import AllonymError, VaultLocked
from allonym.server.jobs.folder import Folder, InUse
from allonym.server.jobs.task import Spec, Task, ending

STOPPED = 75
"""Exit code of a process that stopped where it can go on (EX_TEMPFAIL)."""

_WAIT = 30.0
_NICE = 5


class Stopped(KeyboardInterrupt):
    """The server ends, and the job goes on at its next start."""


def main() -> int:
    """Read what to do, do it, say how it ended; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    os.umask(0o077)
    os.nice(_NICE)
    warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    parent = os.getppid()
    try:
        told = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        task = Task(
            Folder(told["folder"]), Spec.from_dict(told["spec"]), told["vault"], told["key"], wanted=told["wanted"]
        )
        with task.folder.held(_WAIT):
            had = task.folder.ended()
            if had is None or had.get("wanted") != told["wanted"]:
                task.folder.end({**_done(task), "wanted": told["wanted"]})
    except (InUse, Stopped, VaultLocked):
        return STOPPED
    return 0


def _done(task: Task) -> dict[str, object]:
    """Do the work; how it ended. What is not raised on purpose is told by its type alone."""
    from allonym.server.jobs.work import WORK

    try:
        summary, results = WORK[task.spec.kind](task)
    except (InUse, VaultLocked):
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


def _end_with(parent: int) -> None:
    """End this process and its own at once when the server has ended without a word: its end of the pipe closes."""
    while os.getppid() == parent:
        ready, _, _ = select.select([sys.stdin], [], [], 0.5)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

"""What the server writes to standard error: lines without any text. What others log is cut to what cannot quote one."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import Any

from allonym.server.problems import place_of

log = logging.getLogger("allonym.server")


class _Lines(logging.Formatter):
    """One line for each record; of an error its type and place, as its message may quote a text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """See the base class."""
        said = record.getMessage() if record.name.startswith("allonym") else str(record.msg)  # arguments may quote
        said = said.partition("\n")[0]  # what follows may be a whole traceback
        if record.name == "asyncio":  # it writes what it called with which arguments
            said = said.split("<")[0].split("(")[0].strip()
        if record.exc_info and record.exc_info[1] is not None:
            said = f"{said}: {_told(record.exc_info[1])}"
        line = logging.makeLogRecord({"name": record.name, "msg": "%s", "args": (said,), "created": record.created})
        return super().format(line)


def begin(access: bool) -> None:
    """Let this process log to standard error.

    Args:
        access: whether there is a line for each request.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (
        ("", logging.WARNING),
        ("allonym.server", logging.INFO),
        ("allonym.access", logging.INFO if access else logging.WARNING),
        ("uvicorn", logging.WARNING),
    ):
        one = logging.getLogger(name)
        one.setLevel(level)
        one.addHandler(handler)
        one.propagate = False
    warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    threading.excepthook = _in_thread
    sys.unraisablehook = _unraisable


def _in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        log.error("a thread ended: %s", _told(args.exc_value))


def _unraisable(args: Any) -> None:
    if args.exc_value is not None:
        log.error("ignored: %s", _told(args.exc_value))


def _told(error: BaseException) -> str:
    return f"{type(error).__name__} at {place_of(error)}"

"""The server's log on standard error: lines without any text. Records of other packages are cut to what quotes none."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import Any

from allonym.server.problems import locate_error

log = logging.getLogger("allonym.server")


class _LineFormatter(logging.Formatter):
    """One line for each record. An error is shown by its type and place, as its message may quote a text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """See the base class."""
        words = record.getMessage() if record.name.startswith("allonym") else str(record.msg)  # arguments may quote
        words = words.partition("\n")[0]  # what follows may be a whole traceback
        if record.name == "asyncio":  # it writes which function it called, with the arguments
            words = words.split("<")[0].split("(")[0].strip()
        if record.exc_info and record.exc_info[1] is not None:
            words = f"{words}: {_format_error_type_and_place(record.exc_info[1])}"
        line = logging.makeLogRecord({"name": record.name, "msg": "%s", "args": (words,), "created": record.created})
        return super().format(line)


def configure_logs(log_requests: bool) -> None:
    """Let this process log to standard error.

    Args:
        log_requests: whether there is a line for each request.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter())
    for name, level in (
        ("", logging.WARNING),
        ("allonym.server", logging.INFO),
        ("allonym.access", logging.INFO if log_requests else logging.WARNING),
        ("uvicorn", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False
    warnings.simplefilter("ignore")  # other packages' warnings may quote their arguments
    threading.excepthook = lambda args: _log_unexpected_error("a thread ended", args)
    sys.unraisablehook = lambda args: _log_unexpected_error("ignored", args)


def _log_unexpected_error(what: str, hook_args: Any) -> None:
    if hook_args.exc_value is not None:
        log.error("%s: %s", what, _format_error_type_and_place(hook_args.exc_value))


def _format_error_type_and_place(error: BaseException) -> str:
    return f"{type(error).__name__} at {locate_error(error)}"

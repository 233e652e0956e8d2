"""What is logged: a line for each record, and nothing that may quote a text."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("fastapi")

from allonym.server.logs import _LineFormatter

MARK = "Zaphrandel"
TRACE = f'Traceback (most recent call last):\n  File "x.py"\nKeyError: {MARK}\n'


@pytest.mark.parametrize(
    ("name", "message", "args", "error", "said"),
    [
        ("uvicorn.error", TRACE, (), None, "Traceback (most recent call last):"),
        ("uvicorn.error", "Exception\n", (), KeyError(MARK), "Exception: KeyError at an unknown place"),
        ("uvicorn.error", "Invalid request: %s", (MARK,), None, "Invalid request: %s"),
        ("asyncio", f"Task exception\nfuture: <Task {MARK}>", (), None, "Task exception"),
        ("asyncio", f"Executing <Handle f({MARK!r})> took", (), None, "Executing"),
        ("allonym.server", "job %s: ended", ("ab12",), None, "job ab12: ended"),
        ("allonym.server", "in a worker: %s", (f"KeyError\n{MARK}",), None, "in a worker: KeyError"),
    ],
)
def test_one_line_without_what_may_quote(name, message, args, error, said):
    raised = error and (type(error), error, None)
    line = _LineFormatter().format(logging.LogRecord(name, logging.ERROR, "x.py", 1, message, args, raised))
    assert line.partition(f" {name} ")[2] == said

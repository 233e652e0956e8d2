"""Two ways to run the command line: in this process, and as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from allonym.cli import main

SRC = Path(__file__).resolve().parents[2] / "src"


class Result(NamedTuple):
    """How a run in this process ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run ``allonym`` as a process in an empty folder, with pipes for all three streams."""

    def run(*args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("ALLONYM", "PYTHON", "NO_COLOR"))}
        return subprocess.run(
            [sys.executable, "-m", "allonym", *args],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(SRC), **(env or {})},
            timeout=60,
        )

    return run


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run ``allonym`` in this process, as the console script does."""

    def call(*args: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", newline=""))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(SystemExit) as ended:
                main(list(args))
        out, err = capsysbinary.readouterr()
        return Result(int(ended.value.code or 0), out.decode(), err.decode())

    return call

"""Two ways to run the command line: in this process, and as a process of its own.

Where a test names no policy, it is the default one without the tagger, so that no test hangs on a model's opinions.
"""

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


@pytest.fixture(scope="session")
def with_policy(untagged_file: Path) -> Callable[[tuple[str, ...]], list[str]]:
    """The arguments with a policy added where the command takes one and none is named."""

    def complete(args: tuple[str, ...]) -> list[str]:
        takes = bool(args) and args[0] in ("anonymize", "detect") and "--help" not in args
        named = any(arg in ("-p", "--policy") or arg.startswith("--policy=") for arg in args)
        return [*args, "--policy", str(untagged_file)] if takes and not named else list(args)

    return complete


@pytest.fixture
def shell(
    tmp_path: Path, with_policy: Callable[[tuple[str, ...]], list[str]]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run ``allonym`` as a process in an empty folder, with pipes for all three streams."""

    def run(*args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("ALLONYM", "PYTHON", "NO_COLOR"))}
        return subprocess.run(
            [sys.executable, "-m", "allonym", *with_policy(args)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(SRC), **(env or {})},
            timeout=60,
        )

    return run


@pytest.fixture
def run(
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    with_policy: Callable[[tuple[str, ...]], list[str]],
) -> Callable[..., Result]:
    """Run ``allonym`` in this process, as the console script does."""

    def call(*args: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", newline=""))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(SystemExit) as ended:
                main(with_policy(args))
        out, err = capsysbinary.readouterr()
        return Result(int(ended.value.code or 0), out.decode(), err.decode())

    return call

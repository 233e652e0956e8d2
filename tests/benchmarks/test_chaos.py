"""The short form of benchmarks/chaos.py: a few moments of each fault and format, and a few damaged files of each."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="faults need Linux and a C compiler"),
]


@pytest.mark.parametrize(
    "options",
    [
        [
            "--only",
            "kills",
            "errors",
            "--events",
            "2",
            "--scenarios",
            "jsonl",
            "csv",
            "txt folder vault",
            "xlsx",
            "eml vault",
        ],
        ["--only", "memory", "clock", "--events", "2", "--scenarios", "jsonl", "docx vault"],
        ["--only", "workers", "--events", "1", "--scenarios", "jsonl ray"],
        ["--only", "files", "--files", "27", "--without-office"],
    ],
    ids=["kills and errors", "memory and clock", "workers", "damaged files"],
)
def test_nothing_is_lost_wrong_or_shown(options):
    if "workers" in options:
        pytest.importorskip("ray")
    command = [sys.executable, str(ROOT / "benchmarks" / "chaos.py"), *options, "--seed", "11"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["faults"] >= (1 if "workers" in options else 6 if "memory" in options else 25), run.stdout

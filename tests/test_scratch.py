"""Scratch folders end with their process, however that ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from allonym import scratch
from allonym.scratch import open_scratch_folder

CHILD = """
import os, sys, time
from allonym.batch import run_ordered
from allonym.scratch import open_scratch_folder

def double(context, item):
    return 2 * item

if __name__ == "__main__":
    with open_scratch_folder() as folder:
        (folder / "file").write_text("x")
        if "workers" in sys.argv:
            assert list(run_ordered(double, [1, 2], None, workers=2)) == [2, 4]
        if "kill" in sys.argv:
            os.kill(os.getpid(), 9)
"""


@pytest.fixture
def short_path():
    """A folder whose path is short enough for sockets, as pytest's own may not be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def _run_child(tmp_path, temporary, *arguments):
    (tmp_path / "child.py").write_text(CHILD)
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, str(tmp_path / "child.py"), *arguments], env=environment, check=False)


def test_a_folder_is_private_and_goes(tmp_path):
    with open_scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [(), pytest.param(("workers",), marks=pytest.mark.slow)])
def test_nothing_of_a_killed_run_stays_in_the_temporary_folder(tmp_path, short_path, workers):
    child = _run_child(tmp_path, short_path, "kill", *workers)
    assert child.returncode == -signal.SIGKILL
    (short_path / "allonym-scratch-of-others").mkdir(mode=0o755)
    (short_path / "allonym-scratch-link").symlink_to(tmp_path)
    (short_path / "allonym-projects").mkdir(mode=0o700)
    kept = {"allonym-scratch-of-others", "allonym-scratch-link", "allonym-projects"}
    assert len(list(short_path.iterdir())) == 4 + len(workers)
    for _ in range(100):  # workers notice the death of their parent a moment later, and keep the lock until then
        scratch._remove_abandoned_folders.cache_clear()
        with open_scratch_folder(short_path) as used:
            scratch._remove_abandoned_folders.cache_clear()
            with open_scratch_folder(short_path):
                assert used.exists()
        if len(list(short_path.iterdir())) == len(kept):
            break
        time.sleep(0.1)
    assert {p.name for p in short_path.iterdir()} == kept


@pytest.mark.slow
def test_workers_start_where_the_temporary_folder_has_a_long_path(tmp_path):
    temporary = tmp_path / ("long" * 25)
    temporary.mkdir()
    child = _run_child(tmp_path, temporary, "end", "workers")
    assert child.returncode == 0
    assert list(temporary.iterdir()) == []

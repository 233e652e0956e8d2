"""Scratch folders end with their process, however that ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time

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
        if sys.argv[1:]:
            assert list(run_ordered(double, [1, 2], None, workers=2)) == [2, 4]
        os.kill(os.getpid(), 9)
"""


def test_a_folder_is_private_and_goes(tmp_path):
    with open_scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [(), pytest.param(("workers",), marks=pytest.mark.slow)])
def test_nothing_of_a_killed_run_stays_in_the_temporary_folder(tmp_path, monkeypatch, workers):
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONWARNINGS": "ignore"}
    child = subprocess.run([sys.executable, str(tmp_path / "child.py"), *workers], env=environment, check=False)
    assert child.returncode == -signal.SIGKILL
    (tmp_path / "temporary" / "allonym-of-others").mkdir(mode=0o755)
    (tmp_path / "temporary" / "allonym-link").symlink_to(tmp_path)
    assert len(list((tmp_path / "temporary").iterdir())) == 3 + len(workers)
    for _ in range(100):  # workers notice the death of their parent a moment later, and keep the lock until then
        scratch._remove_abandoned_folders.cache_clear()
        with open_scratch_folder(tmp_path / "temporary") as used:
            scratch._remove_abandoned_folders.cache_clear()
            with open_scratch_folder(tmp_path / "temporary"):
                assert used.exists()
        if len(list((tmp_path / "temporary").iterdir())) == 2:
            break
        time.sleep(0.1)
    assert {p.name for p in (tmp_path / "temporary").iterdir()} == {"allonym-of-others", "allonym-link"}

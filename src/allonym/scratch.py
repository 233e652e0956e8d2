"""Folders for files that a step of work needs; they go with it, or later where its process was killed."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from allonym.partfile import NO_FOLLOW, lock_file

_PREFIX = "allonym-scratch-"
"""Nobody else may call a folder so: what killed processes have left is recognised by it."""

_SHORT_PARENTS = ("/tmp", "/var/tmp")
_LONGEST_PARENT = 60  # bytes; with a scratch folder's name and a socket's it stays below the 104 of the systems


@contextmanager
def open_scratch_folder(parent: str | Path | None = None) -> Iterator[Path]:
    """Yield an empty folder that only this user may read, and remove it afterwards.

    Args:
        parent: the folder in which it lies; None: that of the system for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    folder, handle = _make_scratch_folder(Path(parent or tempfile.gettempdir()).absolute())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


@lru_cache(maxsize=1)
def get_process_scratch_folder(process: int) -> Path:
    """Return the scratch folder of this process, by its id; it is removed when the process ends.

    Its path is short enough for sockets, as long as the system has a folder with a short path.
    """
    parents = [tempfile.gettempdir(), *_SHORT_PARENTS]
    parent = next((p for p in parents if len(p) <= _LONGEST_PARENT and os.access(p, os.W_OK)), None)
    context = open_scratch_folder(parent)
    folder = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return folder


def _make_scratch_folder(parent: Path) -> tuple[Path, int]:
    """Return a new folder and its open descriptor; it is locked for as long as the process lives."""
    _remove_abandoned_folders(parent)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            handle = os.open(folder, os.O_RDONLY | NO_FOLLOW)
            if lock_file(handle) and folder.exists():
                return folder, handle
            os.close(handle)  # another process has taken it for an abandoned one


@lru_cache(maxsize=64)
def _remove_abandoned_folders(parent: Path) -> None:
    """Remove the folders of killed processes, once in each process."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | NO_FOLLOW)
    try:
        status = os.fstat(handle)
        is_ours = stat.S_IMODE(status.st_mode) == 0o700 and status.st_uid == os.geteuid()
        if is_ours and lock_file(handle, without_locks=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)

"""The folder of a job: inputs, results, what it goes on from, how far it is, and how it ended.

It belongs to the server's user alone (0700, files 0600). Files lie under numbers, never under names that were sent.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError

_LOCK, _PROGRESS, _ENDED = "lock", "progress.json", "ended.json"


class InUse(AllonymError):
    """Another process works in the folder."""


class Folder:
    """One job's folder. It need not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Folder({str(self.path)!r})"

    def make(self) -> None:
        """Make it, for its owner alone."""
        self.path.mkdir(mode=0o700, parents=True)
        self.path.chmod(0o700)

    def inputs(self, role: str) -> Path:
        """Where uploaded files of a role lie."""
        return self.path / "in" / role

    @property
    def out(self) -> Path:
        """Where results lie."""
        return self.path / "out"

    @property
    def state(self) -> Path:
        """What an interrupted job goes on from."""
        return self.path / "state"

    @property
    def made(self) -> Path:
        """Releases of a swap that were made, a file each."""
        return self.path / "made"

    def there(self) -> bool:
        """Whether it is there."""
        return self.path.is_dir()

    @contextmanager
    def held(self, wait: float = 0.0) -> Iterator[None]:
        """Work in it alone; the lock goes with the process, however it ends.

        Raises:
            InUse: another process does, for longer than ``wait`` seconds.
        """
        handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            until = time.monotonic() + wait
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() >= until:
                        raise InUse("another process works on this job") from None
                    time.sleep(0.05)
            yield
        finally:
            os.close(handle)

    # How far, and how it ended

    def progress(self) -> dict[str, Any]:
        """What :meth:`tell` wrote last; empty where it wrote nothing."""
        return _read(self.path / _PROGRESS) or {}

    def tell(self, stage: str, done: int, of: int, number: int) -> None:
        """Say how far the work is: ``number`` of the stage, and the steps in it."""
        write_whole(self.path / _PROGRESS, {"stage": stage, "done": done, "of": of, "number": number}, lasting=False)

    def ended(self) -> dict[str, Any] | None:
        """What :meth:`end` wrote; None: the work is not done."""
        return _read(self.path / _ENDED)

    def end(self, told: Mapping[str, Any]) -> None:
        """Say how the work ended; from here on it is not done again."""
        write_whole(self.path / _ENDED, told)

    # Removing

    def tidy(self, kept: Collection[str]) -> None:
        """Remove all files but those that are kept.

        Args:
            kept: relative paths of files, or of folders with all that is in them.
        """
        for where, folders, names in os.walk(self.path, topdown=False):
            for name in (*names, *folders):
                path = Path(where, name)
                own = path.relative_to(self.path).as_posix()
                if own in (_LOCK, _PROGRESS, _ENDED) or any(own == k or own.startswith(f"{k}/") for k in kept):
                    continue
                if path.is_dir() and not path.is_symlink():
                    with contextlib.suppress(OSError):  # something in it is kept
                        path.rmdir()
                else:
                    path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def write_whole(path: Path, value: Mapping[str, Any], *, lasting: bool = True) -> None:
    """Write JSON so that a reader sees all of it or what was there before; ``lasting``: wait for the disk."""
    part = path.with_name(f".{path.name}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
        json.dump(value, stream, ensure_ascii=False)
        stream.flush()
        if lasting:
            os.fsync(stream.fileno())
    os.replace(part, path)


def _read(path: Path) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else None
    return None

"""The folder of a job: its inputs, results and intermediate state, its progress, and how it ended.

It belongs to the server's user alone (0700, files 0600). Files lie under numbers, never under names that were sent.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError

_LOCK, _PROGRESS, _ENDED = "lock", "progress.json", "ended.json"


class InUse(AllonymError):
    """Another process works in the folder."""


class Folder:
    """One job's folder, which may not exist yet.

    Attributes:
        path: of the folder.
        out: the folder of results.
        state: the folder that an interrupted job continues from.
        made: the folder of a swap's releases, a file each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out, self.state, self.made = path / "out", path / "state", path / "made"

    def __repr__(self) -> str:
        return f"Folder({str(self.path)!r})"

    def create(self) -> None:
        """Create the folder, for its owner alone."""
        self.path.mkdir(mode=0o700, parents=True)
        self.path.chmod(0o700)

    def get_inputs(self, role: str) -> Path:
        """Return the folder of the uploaded files of a role."""
        return self.path / "in" / role

    def exists(self) -> bool:
        """Whether the folder exists."""
        return self.path.is_dir()

    @contextmanager
    def lock(self, wait: float = 0.0) -> Iterator[None]:
        """Work in the folder alone. The lock ends with the process, however that ends.

        Raises:
            InUse: another process holds it for longer than ``wait`` seconds.
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

    def read_progress(self) -> dict[str, Any]:
        """Return what :meth:`write_progress` wrote last; empty where it wrote nothing."""
        return _read_json(self.path / _PROGRESS) or {}

    def write_progress(self, stage: str, done: int, of: int, number: int) -> None:
        """Store the progress: the stage with its number, the steps that are done in it, and their total."""
        write_json(self.path / _PROGRESS, {"stage": stage, "done": done, "of": of, "number": number}, durable=False)

    def read_ending(self) -> dict[str, Any] | None:
        """Return what :meth:`write_ending` wrote; None while the work is not done."""
        return _read_json(self.path / _ENDED)

    def write_ending(self, ending: Mapping[str, Any]) -> None:
        """Store how the work ended; from here on it is not done again."""
        write_json(self.path / _ENDED, ending)

    def remove_all_but(self, needed: Collection[str]) -> None:
        """Remove all files but those that are needed.

        Args:
            needed: relative paths of files, or of folders with everything in them.
        """
        for parent, folders, names in os.walk(self.path, topdown=False):
            for name in (*names, *folders):
                path = Path(parent, name)
                relative = path.relative_to(self.path).as_posix()
                if relative in (_LOCK, _PROGRESS, _ENDED) or any(f"{relative}/".startswith(f"{n}/") for n in needed):
                    continue
                if path.is_dir() and not path.is_symlink():
                    with suppress(OSError):  # something in it is needed
                        path.rmdir()
                else:
                    path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write JSON so that a reader sees all of it or what was there before; ``durable``: wait for the disk."""
    part = path.with_name(f".{path.name}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
        json.dump(value, stream, ensure_ascii=False)
        stream.flush()
        if durable:
            os.fsync(stream.fileno())
    os.replace(part, path)


def _read_json(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else None
    return None

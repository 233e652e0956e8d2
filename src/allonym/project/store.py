"""The sealed files of a project: whatever tells of a person or a file is encrypted with the vault's key.

Files have numbers for names. Each is written atomically, for its owner alone, and sealed for its own name, so that none
can take another's place unnoticed. Without the vault nothing of them is ever read again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError
from allonym.keys import Cipher, derive_operator_key
from allonym.partfile import write_file

_PURPOSE, _WORK = "project files", "work"


class SealedFolder:
    """A folder of sealed files.

    Args:
        folder: created where it is missing, readable only by its owner.
        key: of the vault.
        scope: of the project in the vault.
    """

    def __init__(self, folder: Path, key: bytes, scope: str) -> None:
        self.folder = folder
        self._cipher = Cipher(derive_operator_key(key, _PURPOSE, scope)[:32])

    def read_bytes(self, name: str) -> bytes:
        """Return what was written under a name.

        Raises:
            DataError: there is nothing, it was changed, or another vault sealed it.
        """
        try:
            sealed = (self.folder / name).read_bytes()
        except OSError as error:
            raise DataError(f"{self.folder / name} cannot be read: {error.strerror}") from None
        plain = self._cipher.unseal(sealed, name.encode())
        if plain is None:
            raise DataError(f"{self.folder / name} does not open with this vault, or was changed")
        return plain

    def write_bytes(self, name: str, data: bytes) -> None:
        """Seal bytes under a name, atomically."""
        write_file(self.folder / name, self._cipher.seal(data, name.encode()), private=True)

    def read_json(self, name: str, default: Any = None) -> Any:
        """Return the value written under a name, or the default where there is none; raises as :meth:`read_bytes`."""
        return json.loads(self.read_bytes(name)) if (self.folder / name).exists() else default

    def write_json(self, name: str, value: Any) -> None:
        """Seal a plain value under a name, atomically."""
        self.write_bytes(name, json.dumps(value, separators=(",", ":")).encode("ascii"))

    def remove(self, name: str) -> None:
        """Remove what is under a name, if there is anything."""
        (self.folder / name).unlink(missing_ok=True)

    @contextmanager
    def lock(self, *, is_waiting: bool = True) -> Iterator[None]:
        """Wait until no other process changes the project, and keep others out.

        Raises:
            BlockingIOError: another process changes it, and this one is not ``is_waiting``.
            UsageError: this system cannot lock files.
        """
        try:
            import fcntl
        except ImportError:
            raise UsageError("projects need a system with file locks, such as Linux or macOS") from None
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if is_waiting else fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def open_work_folder(self) -> Iterator[Path]:
        """Yield an empty folder for files in clear, and remove it afterwards. The lock must be held."""
        self.remove_work_folder()
        work = self.folder / _WORK
        work.mkdir(mode=0o700)
        try:
            yield work
        finally:
            self.remove_work_folder()

    def remove_work_folder(self) -> None:
        """Remove the folder for files in clear that a crash has left. The lock must be held."""
        shutil.rmtree(self.folder / _WORK, ignore_errors=True)

    def remove_abandoned_work_folder(self) -> None:
        """Remove the folder for files in clear, unless another process works in it."""
        if (self.folder / _WORK).exists():
            with suppress(BlockingIOError), self.lock(is_waiting=False):
                self.remove_work_folder()

"""The storage of a run: this machine's disks, or a file system of pyarrow by URI (S3, Google Cloud Storage).

Paths are strings with slashes, such as ``/data/in.jsonl`` or ``bucket/in.jsonl``. Files are written atomically.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from allonym.batch import import_arrow
from allonym.errors import UsageError, hide_foreign_errors

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Disk:
    """Files with the same paths on all machines of the run."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading, seekable. Raises :class:`OSError` if it cannot be read."""
        return Path(path).open("rb")

    def get_size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist."""
        with suppress(OSError):
            return Path(path).stat().st_size
        return None

    def read(self, path: str) -> bytes | None:
        """Return all bytes of a file, or None if it does not exist."""
        with suppress(FileNotFoundError):
            return Path(path).read_bytes()
        return None

    def write(self, path: str, data: bytes) -> None:
        """Write a small file in an existing folder, readable only by its owner if the storage has owners."""
        file = Path(path)
        part = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, file)

    def move_file_in(self, file: Path, path: str) -> None:
        """Move a file of this machine to the storage."""
        target = Path(path)
        if file.exists():  # otherwise the run has ended, and removed files must not be created again
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.replace(file, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            part = target.with_name(f".{target.name}.{uuid.uuid4().hex}")  # the target is another file system
            shutil.copyfile(file, part)
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(part, target)
            file.unlink()

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files, ignoring missing ones."""
        for path in paths:
            Path(path).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all below it."""
        shutil.rmtree(folder, ignore_errors=True)

    def find_existing(self, paths: Iterable[str]) -> str | None:
        """Return the first of these paths that exists."""
        return next((path for path in paths if os.path.lexists(path)), None)

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is a folder that is not empty."""
        return Path(path).is_dir()

    @contextmanager
    def make_scratch_folder(self, state: str) -> Iterator[Path]:
        """Return an empty private folder of this machine, which is removed at the end. It lies in the state, so that a
        killed worker leaves nothing elsewhere and files are not copied.

        Raises :class:`OSError` if the state has been removed.
        """
        folder = Path(state, "scratch")
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)


@dataclass(frozen=True, slots=True)
class Remote:
    """A file system of pyarrow, with the methods of :class:`Disk`; an object appears there when it has been sent
    completely."""

    filesystem: Any = field(repr=False)  # it may hold credentials

    def open(self, path: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(self.filesystem.open_input_file(path), _BLOCK))

    def get_size(self, path: str) -> int | None:
        info = self.filesystem.get_file_info(path)
        return info.size if info.is_file else None

    def read(self, path: str) -> bytes | None:
        with suppress(FileNotFoundError), self.open(path) as stream:
            return stream.read()
        return None

    def write(self, path: str, data: bytes) -> None:
        self._send_stream(io.BytesIO(data), len(data), path)

    def move_file_in(self, file: Path, path: str) -> None:
        with file.open("rb") as stream:
            self._send_stream(stream, file.stat().st_size, path)
        file.unlink()

    def _send_stream(self, stream: BinaryIO, size: int, path: str) -> None:
        out = self.filesystem.open_output_stream(path, compression=None)
        try:
            while block := stream.read(_BLOCK):
                out.write(block)
            out.close()
            if self.get_size(path) != size:
                raise OSError(errno.EIO, "the storage has fewer bytes than were sent")
        except BaseException:
            # Closing or dropping an unfinished stream would leave half an object.
            with suppress(OSError):
                out.close()
            self.delete([path])
            raise

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(OSError):
                self.filesystem.delete_file(path)

    def remove_folder(self, folder: str) -> None:
        with suppress(OSError):
            self.filesystem.delete_dir(folder)

    def find_existing(self, paths: Iterable[str]) -> str | None:
        listed = list(paths)
        for offset in range(0, len(listed), 1000):
            for info in self.filesystem.get_file_info(listed[offset : offset + 1000]):
                if info.is_file:
                    return str(info.path)
        return None

    def is_folder(self, path: str) -> bool:
        info = self.filesystem.get_file_info(path)
        return not info.is_file and info.type.name != "NotFound"

    @contextmanager
    def make_scratch_folder(self, state: str) -> Iterator[Path]:
        """Return a temporary folder of this machine, since an object is sent in one piece from a file."""
        with tempfile.TemporaryDirectory(prefix="allonym-", ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)

    def list_files(self, folder: str) -> Iterator[tuple[str, int]]:
        """Return (path below the folder, size in bytes) of each file below a folder."""
        from pyarrow.fs import FileSelector

        for info in self.filesystem.get_file_info(FileSelector(folder, recursive=True)):
            if info.is_file:
                yield str(PurePosixPath(info.path).relative_to(folder)), info.size


Storage = Disk | Remote


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of a storage as a source of a run."""

    storage: Storage
    path: str

    def open(self, mode: str) -> BinaryIO:
        """Open the file; the mode is always ``rb``."""
        return self.storage.open(self.path)


def is_uri(where: str | Path) -> bool:
    """Tell whether ``where`` is a URI with a scheme, and not a path."""
    return _SCHEME.match(str(where)) is not None


def locate_storage(where: str | Path) -> tuple[Storage, str]:
    """Return the storage of a path or URI, and the path in it.

    Raises:
        UsageError: no storage has this scheme, or it cannot be reached. The message shows only the scheme, since a URI
            may contain a key.
        MissingExtra: pyarrow is not installed.
    """
    scheme_match = _SCHEME.match(str(where))
    if scheme_match is None:
        return Disk(), str(Path(where).absolute())
    scheme = scheme_match[1].lower()
    if scheme == "file":
        return Disk(), unquote(urlsplit(str(where)).path)
    arrow = import_arrow()
    from pyarrow.fs import FileSystem

    message = (
        f"a {scheme}:// URI cannot be opened: does the bucket exist, are credentials and region set, and does the "
        "installed pyarrow support the scheme?"
    )
    with hide_foreign_errors(message, arrow.ArrowException, OSError, ValueError, error=UsageError):
        filesystem, path = FileSystem.from_uri(str(where))
    return Remote(filesystem), path.rstrip("/")

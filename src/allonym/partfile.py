"""The one way in which files are written: under a hidden name that nobody can guess, renamed when they are complete.

A part file lies in the folder of its target. It is created anew, never through a link, and only its owner may read it
until it is complete. A target that is a link, a folder, a pipe, a socket or a device is refused. A process that is
killed leaves its part file; the next one that writes in the folder removes it, unless a journal names it, or the file
system has no locks, which tell whether somebody is still writing.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from allonym.errors import DataError, UsageError

PART, SCRATCH = ".allonym-part", ".allonym-new"
"""Suffixes of part files: of those that a journal names, and of those that the next process may remove."""

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening a file of ours: never through a link, and without waiting for the other end of a pipe."""

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SHOWN = 50  # characters of the target's name in that of its part file; names have at most 255 bytes
_TOKEN = 12  # random bytes in the name of a part file
_umask_lock = threading.Lock()


def check_plain_target(path: Path) -> None:
    """Raise :class:`UsageError` if something other than a plain file has the name of an output."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no plain file")
        raise UsageError(f"{path} is {kind}; outputs are plain files, so remove it or give another name")


def open_plain_file(path: Path, flags: int) -> int:
    """Return the descriptor of a file that this user owns, under one name; never through a link.

    Raises:
        UsageError: something else has this name.
        OSError: the file cannot be opened; FileNotFoundError: there is none.
    """
    try:
        handle = os.open(path, flags | NO_FOLLOW, 0o600)
    except OSError:
        check_plain_target(path)
        raise
    status = os.fstat(handle)
    is_ours = not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), 0)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and is_ours:
        return handle
    os.close(handle)
    raise UsageError(f"{path} is no plain file of this user with one name; remove it, and look who put it there")


def lock_file(handle: int, *, without_locks: bool = True) -> bool:
    """Lock an open file for this process until it is closed; tell whether no other process has it locked.

    ``without_locks``: the answer where the file system has no locks.
    """
    with suppress(ImportError):  # Windows has no such lock
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return without_locks
        return True
    return without_locks


def sync_folder(folder: Path) -> None:
    """Make sure that the names of a folder's files are on the disk, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def hash_next_bytes(stream: BinaryIO, length: int) -> blake2b | None:
    """Return the hash of the next ``length`` bytes of a stream; None if there are fewer."""
    state = blake2b(digest_size=32)
    while length and (block := stream.read(min(length, 1 << 20))):
        state.update(block)
        length -= len(block)
    return None if length else state


class PartFile:
    """A file that is written under a hidden name and renamed when it is complete.

    Args:
        target: its final name.
        private: whether only its owner may read it; otherwise it gets the usual rights of new files when complete.
        announce: called with the path of the part file before it is created; the next process does not remove the part
            files that are announced.
        old_part: the part file of an interrupted run, to go on with.
        length: bytes to keep of it.
        digest: required digest of those bytes; empty: not checked.
        makes_folders: whether missing folders are made.

    Attributes:
        stream: the file object, for writers that do not append.

    Raises:
        UsageError: something other than a plain file has the target's name.
        DataError: the old part file is shorter than ``length`` or does not have the digest.
    """

    def __init__(
        self,
        target: Path,
        *,
        private: bool = False,
        announce: Callable[[Path], object] | None = None,
        old_part: Path | None = None,
        length: int = 0,
        digest: str = "",
        makes_folders: bool = True,
    ) -> None:
        self.target, self.private = target, private
        self.length = length
        self.hash = blake2b(digest_size=32)
        check_plain_target(target)
        if makes_folders:
            target.parent.mkdir(parents=True, exist_ok=True)
        if old_part is None:
            handle, self.path = _create_part_file(target, announce)
        else:
            handle, self.path = open_plain_file(old_part, os.O_RDWR), old_part
            lock_file(handle)
        self.stream: BinaryIO = os.fdopen(handle, "r+b")
        if old_part is not None:
            self.truncate_to(length, digest)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self.stream.write(data)
        self.hash.update(data)
        self.length += len(data)

    def truncate_to(self, length: int, digest: str = "") -> None:
        """Drop all bytes after ``length``. Raises :class:`DataError` if there are fewer, or ``digest`` differs."""
        self.stream.flush()
        self.stream.seek(0)
        state = hash_next_bytes(self.stream, length)
        if state is None or (digest and state.hexdigest() != digest):
            self.stream.close()
            raise DataError(f"{self.path} was changed after the run was interrupted; begin again with overwrite")
        self.stream.truncate(length)
        self.stream.seek(length)
        self.hash, self.length = state, length

    def sync(self) -> None:
        """Make sure that all bytes are on the disk."""
        self.stream.flush()
        os.fsync(self.stream.fileno())

    def finish(self, *, replaces: bool = True, is_durable: bool = True) -> None:
        """Rename the file to its final name, replacing an existing plain file.

        Args:
            replaces: whether an existing file may be replaced.
            is_durable: whether to wait until the bytes are on the disk.

        Raises:
            UsageError: something other than a plain file has the target's name.
            FileExistsError: a file has it, and may not be replaced.
        """
        if not self.stream.closed:
            self.sync() if is_durable else self.stream.flush()
        if os.name == "nt":  # which renames no open file
            self.stream.close()
        check_plain_target(self.target)
        if not self.private:
            self.path.chmod(0o666 & ~_read_umask())
        if replaces:
            os.replace(self.path, self.target)
        else:
            os.link(self.path, self.target)
            self.path.unlink()
        self.stream.close()  # which ends the lock; before the renaming, others would take the file for an abandoned one

    def close(self, *, remove: bool) -> None:
        """Close the file without finishing it."""
        with suppress(OSError):  # a full disk, which has been reported already
            self.stream.close()
        if remove:
            self.path.unlink(missing_ok=True)


@contextmanager
def open_part_file(target: Path, *, private: bool = False, makes_folders: bool = True) -> Iterator[PartFile]:
    """Yield a file that gets its name when the block ends well, and is removed when it does not."""
    part = PartFile(target, private=private, makes_folders=makes_folders)
    try:
        yield part
        part.finish()
    finally:
        part.close(remove=True)


def write_file(
    target: Path,
    data: bytes,
    *,
    private: bool = False,
    replaces: bool = True,
    is_durable: bool = True,
    makes_folders: bool = True,
) -> None:
    """Write a whole file atomically; the options are those of :class:`PartFile` and its ``finish``."""
    part = PartFile(target, private=private, makes_folders=makes_folders)
    try:
        part.write(data)
        part.finish(replaces=replaces, is_durable=is_durable)
    finally:
        part.close(remove=True)


def remove_part_files(targets: Iterable[Path], *but: Path) -> None:
    """Remove announced part files beside their targets, but some: where the machine failed, no journal names them.

    Those stay that another run is writing, and those of long names, which other targets may share.
    """
    starts: dict[Path, set[str]] = {}
    for target in targets:
        if len(target.name) < _SHOWN:
            starts.setdefault(target.parent, set()).add(f".{target.name}")
    resumed_paths = {os.path.realpath(path) for path in but}
    for folder, names in starts.items():
        with suppress(OSError), os.scandir(folder) as entries:
            for path in [Path(e.path) for e in entries if e.name.endswith(PART)]:
                start, _, token = path.name.removesuffix(PART).rpartition(".")
                if start in names and len(token) == 2 * _TOKEN and os.path.realpath(path) not in resumed_paths:
                    _remove_unlocked_file(path)


def _create_part_file(target: Path, announce: Callable[[Path], object] | None) -> tuple[int, Path]:
    """Return the descriptor and the path of a new part file, locked."""
    if announce is None:
        _remove_abandoned_files(target.parent.absolute())
    while True:
        token = os.urandom(_TOKEN).hex()
        path = target.with_name(f".{target.name[:_SHOWN]}.{token}{PART if announce else SCRATCH}")
        if announce is not None:
            announce(path)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
        if lock_file(handle) and os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)  # another process has taken it for an abandoned one


@lru_cache(maxsize=4096)
def _remove_abandoned_files(folder: Path) -> None:
    """Remove what killed processes have left in a folder, once in each process."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(SCRATCH) or not entry.name.startswith("."):
                continue
            _remove_unlocked_file(Path(entry.path))


def _remove_unlocked_file(path: Path) -> None:
    """Remove a file that no process is writing."""
    with suppress(OSError, UsageError):
        handle = open_plain_file(path, os.O_RDWR)
        try:
            if lock_file(handle, without_locks=False):
                path.unlink()
        finally:
            os.close(handle)


def _read_umask() -> int:
    with _umask_lock:  # it can be read only by setting it; another thread's file is at worst more private
        mask = os.umask(0o077)
        os.umask(mask)
    return mask

"""The storage of a run: this machine's disks, or a file system of pyarrow by URI (S3, Google Cloud Storage).

Paths are strings with slashes, such as ``/data/in.jsonl`` or ``bucket/in.jsonl``. Files are written atomically. The
files of a run are listed here, on either storage, and its targets are checked.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from allonym.batch import import_arrow
from allonym.errors import DataError, UsageError, hide_foreign_errors
from allonym.files.formats import format_of
from allonym.files.items import Item, check_outputs_distinct, check_targets_free, list_items, list_sources
from allonym.partfile import check_plain_target, open_part_file, sync_folder, write_file
from allonym.scratch import open_scratch_folder

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
        write_file(Path(path), data, private=True, makes_folders=False)

    def move_file_in(self, file: Path, path: str) -> None:
        """Move a file of this machine to the storage."""
        target = Path(path)
        if file.exists():  # otherwise the run has ended, and removed files must not be created again
            target.parent.mkdir(parents=True, exist_ok=True)
        check_plain_target(target)
        try:
            os.replace(file, target)
            sync_folder(target.parent)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with file.open("rb") as stream, open_part_file(target) as part:  # the target is another file system
                shutil.copyfileobj(stream, part.stream)
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
        with open_scratch_folder(folder) as scratch:
            yield scratch


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
        with open_scratch_folder() as scratch:
            yield scratch

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


@dataclass(frozen=True, slots=True)
class Listing:
    """The inputs and outputs of a run.

    Attributes:
        items: the files, sorted by name. Their targets are paths in ``storage``.
        folder: whether the source is a folder.
        storage: storage of the results.
        target: the file or folder that the run writes there.
    """

    items: list[Item]
    folder: bool
    storage: Storage
    target: str

    @property
    def state_folder(self) -> str:
        """The hidden folder beside the target with the finished parts of a run."""
        path = PurePosixPath(self.target)
        return str(path.with_name(f".{path.name}.allonym-ray"))


def list_files(source: str | Path, target: str | Path, format: str | None) -> Listing:
    """Return the files of a run, as :func:`allonym.files.items.list_items`, from any storage.

    Raises:
        UsageError: a pipe is named, the source does not exist, or source and target do not fit.
        DataError: no format reads the source.
    """
    if str(source) == "-" or str(target) == "-":
        raise UsageError("the Ray runner reads and writes files; use a pipe without --runner ray")
    reads, path = locate_storage(source)
    writes, to = locate_storage(target)
    if not PurePosixPath(to).name or (isinstance(writes, Remote) and "/" not in to):
        raise UsageError("the target must be a file or folder within a bucket or a disk, not all of it")
    if isinstance(reads, Disk) and isinstance(writes, Disk):
        items, folder = list_items(path, to, format)
        out = to if folder else str(items[0].target)
        return Listing(items, folder, writes, out)
    if isinstance(reads, Disk):
        items, folder = list_sources(path, format)
    else:
        items, folder = _list_remote_items(reads, path, format)
        if isinstance(writes, Remote) and writes.filesystem.equals(reads.filesystem):
            if to == path:
                raise UsageError("source and target are the same; the source is never changed")
            if folder and PurePosixPath(path) in PurePosixPath(to).parents:
                raise UsageError("the target lies inside the source")
    if not folder and (str(target).partition("?")[0].endswith("/") or writes.is_folder(to)):
        to = str(PurePosixPath(to, items[0].name))
    return Listing([_assign_target(item, to, folder) for item in items], folder, writes, to)


def _list_remote_items(storage: Remote, path: str, format: str | None) -> tuple[list[Item], bool]:
    size = storage.get_size(path)
    if size is not None:
        name = PurePosixPath(path).name
        kind, packed = format_of(name, format)
        return [Item(name, cast(Any, Stored(storage, path)), None, kind, packed, size=size)], False
    if not storage.is_folder(path):
        raise UsageError(f"there is no file or folder {path}")
    items = []
    for name, size in storage.list_files(path):
        if any(piece.startswith(".") for piece in PurePosixPath(name).parts):
            continue
        where = cast(Any, Stored(storage, str(PurePosixPath(path, name))))
        try:
            kind, packed = format_of(name, format)
            items.append(Item(name, where, None, kind, packed, packed, size))
        except DataError as error:
            items.append(Item(name, where, None, None, size=size, refused=str(error)))
    return sorted(items, key=lambda item: item.name), True


def _assign_target(item: Item, to: str, is_folder: bool) -> Item:
    target = Path(to, item.name) if is_folder else Path(to)
    return replace(item, target=target, pack=item.packed if is_folder else to.lower().endswith(".gz"))


def check_targets(listing: Listing, extras: list[Path], overwrite: bool, *, fresh: bool) -> None:
    """Raise :class:`UsageError` if an output of the run is also another of its files, or exists already.

    Args:
        listing: the files.
        extras: further files, all of this machine.
        overwrite: whether existing files may be replaced.
        fresh: whether the run is new; a resumed run finds its earlier outputs.
    """
    local = isinstance(listing.storage, Disk)
    sources = [item for item in listing.items if isinstance(item.source, Path)]
    check_outputs_distinct([item if local else replace(item, target=None) for item in sources], extras)
    if not fresh or overwrite:
        return
    check_targets_free([item.target for item in listing.items] if local else [], extras, overwrite)
    if not local and (existing_target := listing.storage.find_existing(str(item.target) for item in listing.items)):
        raise UsageError(f"{existing_target} exists; --overwrite (overwrite=True in Python) replaces it")

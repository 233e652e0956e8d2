"""Atomic output: hidden part files that are renamed when complete, and pipes."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
from collections.abc import Sequence
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import BinaryIO

from allonym.errors import DataError
from allonym.files.items import Item
from allonym.files.record import ChunkWriter


def part_file_path(target: Path) -> Path:
    """Return the hidden part file of ``target``."""
    return target.with_name(f".{target.name}.allonym-part")


def digest_file(path: Path) -> str:
    """Return the digest of a file's bytes, like the one of :class:`PartFile`."""
    with path.open("rb") as stream:
        return file_digest(stream, lambda: blake2b(digest_size=32)).hexdigest()


def combine_output_digests(digests: Sequence[tuple[str, str]], is_folder: bool) -> str:
    """Return the digest of a run's output from (name, digest) of each file; of a folder, over all names and digests."""
    if not is_folder:
        return digests[0][1] if digests else ""
    rows = "\n".join(f"{name}\0{digest}" for name, digest in digests)
    return blake2b(rows.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


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
        length: bytes to keep of an existing part file.
        digest: required digest of those bytes; empty: not checked.

    Attributes:
        stream: the file object, for writers that do not append.

    Raises:
        DataError: the part file is shorter than ``length`` or does not have the digest.
    """

    def __init__(self, target: Path, length: int = 0, digest: str = "") -> None:
        self.target = target
        self.path = part_file_path(target)
        self.length = length
        self.hash = blake2b(digest_size=32)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.stream: BinaryIO = self.path.open("r+b" if length else "w+b")
        if length:
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

    def finish(self) -> None:
        """Rename the file to its final name, replacing an existing file."""
        if not self.stream.closed:
            self.sync()
            self.stream.close()
        os.replace(self.path, self.target)

    def close(self, *, remove: bool) -> None:
        """Close the file without finishing it."""
        with contextlib.suppress(OSError):  # a full disk, which has been reported already
            self.stream.close()
        if remove:
            self.path.unlink(missing_ok=True)


def write_file(target: Path, data: bytes, *, private: bool = False) -> None:
    """Write a whole file atomically; ``private``: readable only by its owner."""
    part = PartFile(target)
    try:
        if private:
            part.path.chmod(0o600)
        part.write(data)
        part.finish()
    finally:
        part.close(remove=True)


class LinesFile:
    """A file of JSON lines, created with its first line; ``private``: readable only by its owner."""

    def __init__(self, target: Path | None, *, private: bool = False) -> None:
        self.target, self.private = target, private
        self.part: PartFile | None = None
        self.complete = False

    @property
    def length(self) -> int:
        """Bytes written so far."""
        return self.part.length if self.part else 0

    def resume_after(self, length: int) -> None:
        """Continue after ``length`` bytes of an interrupted run."""
        if not length or self.target is None:
            return
        if not part_file_path(self.target).exists() and self.target.exists() and self.target.stat().st_size == length:
            self.complete = True
            return
        self.part = PartFile(self.target, length)

    def write(self, line: str) -> None:
        """Append a line."""
        if self.target is None:
            return
        if self.part is None:
            self.part = PartFile(self.target)
            if self.private:
                self.part.path.chmod(0o600)
        self.part.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def finish(self) -> None:
        """Rename the file to its final name; without lines there is no file."""
        if self.part and self.part.length:
            self.part.finish()
            self.complete = True
        elif self.target is not None and not self.complete:
            self.close(remove=True)
            part_file_path(self.target).unlink(missing_ok=True)
            self.target.unlink(missing_ok=True)

    def close(self, *, remove: bool) -> None:
        """Close the file without finishing it."""
        if self.part and not self.complete:
            self.part.close(remove=remove)


class Pipe(PartFile):
    """Standard output in place of a file: what is written is out at once, and nothing can be taken back."""

    def __init__(self) -> None:
        self.length = 0
        self.hash = blake2b(digest_size=32)
        self.stream = io.BytesIO()

    def write(self, data: bytes) -> None:
        """Write bytes at once."""
        self.hash.update(data)
        self.length += len(data)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def finish(self) -> None:
        """Write the rest of ``stream``."""
        self.stream.seek(0)
        self.write(self.stream.read())

    def close(self, *, remove: bool) -> None:
        """Do nothing: standard output stays open."""


class ChunkOutput:
    """Writes the treated chunks of a file of a run: by its format's writer, packed, or as they are."""

    def __init__(self, item: Item, part: PartFile) -> None:
        self.item, self.part = item, part
        self._writer: ChunkWriter | None = None

    def write(self, data: bytes) -> None:
        """Write a treated chunk."""
        if data and self.item.format is not None and self.item.format.writer is not None:
            self._writer = self._writer or self.item.format.writer(self.part.stream)
            self._writer.write(data)
        elif data:
            self.part.write(gzip.compress(data, mtime=0) if self.item.pack else data)

    def write_end(self) -> None:
        """Write what follows the last chunk."""
        if self._writer is not None:
            self._writer.write_end()
        elif self.item.pack and not self.part.length:
            self.part.write(gzip.compress(b"", mtime=0))

    def get_size_and_digest(self) -> tuple[int, str]:
        """Return the size and the digest of the finished file."""
        if self._writer is not None and self.item.target is not None:
            return self.item.target.stat().st_size, digest_file(self.item.target)
        return self.part.length, self.part.hash.hexdigest()

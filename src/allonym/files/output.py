"""The outputs of a run: lines, chunks of a format, and pipes."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b, file_digest
from pathlib import Path

from allonym.errors import DataError
from allonym.files.items import Item
from allonym.files.record import ChunkWriter
from allonym.partfile import PartFile


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


class LinesFile:
    """A file of JSON lines, created with its first line; ``private`` and ``announce`` as for :class:`PartFile`."""

    def __init__(
        self, target: Path | None, *, private: bool = False, announce: Callable[[Path], object] | None = None
    ) -> None:
        self.target, self.private, self._announce = target, private, announce
        self.part: PartFile | None = None
        self.complete = False

    @property
    def length(self) -> int:
        """Bytes written so far."""
        return self.part.length if self.part else 0

    def resume_after(self, length: int, old_part: Path | None) -> None:
        """Continue after ``length`` bytes of an interrupted run, in its part file; None: it is complete."""
        if not length or self.target is None:
            return
        if old_part is not None:
            self.part = PartFile(self.target, private=self.private, old_part=old_part, length=length)
        elif self.target.is_file() and self.target.stat().st_size == length:
            self.complete = True
        else:
            raise DataError(f"{self.target} was changed after the run was interrupted; begin again with overwrite")

    def write(self, line: str) -> None:
        """Append a line."""
        if self.target is None:
            return
        if self.part is None:
            self.part = PartFile(self.target, private=self.private, announce=self._announce)
        self.part.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def finish(self) -> None:
        """Rename the file to its final name; without lines there is no file."""
        if self.part and self.part.length:
            self.part.finish()
            self.complete = True
        elif self.target is not None and not self.complete:
            self.close(remove=True)
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

    def finish(self, *, replaces: bool = True, is_durable: bool = True) -> None:
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

"""The tasks of a run: the chunks of its files, and the functions that process one of them in any worker."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import BinaryIO, cast

from allonym.batch import RECORD_ERRORS, Findings, describe_failure
from allonym.errors import DataError, UnknownNameError, UsageError, VaultError
from allonym.files.formats import get_format
from allonym.files.items import Item
from allonym.files.journal import verify_written
from allonym.files.record import Chunk, Format, Job, Treated, anonymize_chunk, check_ratio, find_in_chunk, read_all

BATCH = 1 << 16
"""Approximate size of a batch in bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a task: its file, its end in bytes, the digest of all input so far, whether first or last."""

    item: int
    end: int = 0
    digest: str = ""
    last: bool = False
    consumed: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A chunk to anonymise; without a chunk, the end of a file, or the reason for refusing it."""

    place: Place
    format: str
    chunk: Chunk | None = field(default=None, repr=False)
    refused: str = ""


def detect_chunk(job: Job, task: Task) -> tuple[Task, list[Findings] | None]:
    """Detect identifiers in one chunk: the function of the workers if there is a vault.

    The vault is written by one process, in the order of the texts, so that the output does not depend on workers.
    """
    if task.chunk is None:
        return task, None
    try:
        return task, find_in_chunk(get_format(task.format).parse(task.chunk, job), job)
    except UsageError:
        raise
    except (DataError, *RECORD_ERRORS):
        return task, None  # it fails again, with its reason, when it is anonymised


def anonymize_task(job: Job, task: Task, findings: list[Findings] | None = None) -> tuple[Place, Treated]:
    """Anonymise one chunk: the function of the workers."""
    if task.chunk is None:
        return task.place, Treated(refused=task.refused)
    try:
        return task.place, anonymize_chunk(get_format(task.format).parse(task.chunk, job), job, findings)
    except VaultError:
        raise
    except DataError as error:
        return task.place, Treated(refused=describe_failure(error))
    except UsageError:
        raise
    except RECORD_ERRORS as error:
        return task.place, Treated(refused=describe_failure(error))


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a run's files to read.

    Attributes:
        first: the first item.
        start: offset at which to begin in it: the end of one of its chunks.
        end: offset at which to stop, also the end of one of its chunks; None: read all remaining items.
        read: the digest of the bytes before ``start``; empty: not checked.
    """

    first: int = 0
    start: int = 0
    end: int | None = None
    read: str = ""


def read_tasks(
    items: Sequence[Item],
    job: Job,
    folder: bool,
    size: int,
    stretch: Stretch = Stretch(),
) -> Iterator[Task]:
    """Yield all chunks of all files, or of a stretch of them. An unreadable file is refused; a single one raises.

    Raises:
        UnknownNameError: a single file lacks a field.
        DataError: a single file cannot be read.
        UsageError: the bytes before the stretch have changed.
    """
    before = sum(item.size for item in items[: stretch.first])
    for index in range(stretch.first, len(items)):
        item = items[index]
        bytes_read = before + item.size
        before = bytes_read
        if item.format is None:
            yield Task(Place(index, last=True, consumed=bytes_read), "", refused=item.refused)
            continue
        part = stretch if index == stretch.first else Stretch(index)
        try:
            yield from _read_file_chunks(index, item, item.format, job, size, bytes_read, part)
        except UnknownNameError as error:
            if not folder:
                raise
            yield Task(Place(index, last=True, consumed=bytes_read), "", refused=str(error))
        except DataError as error:
            yield Task(Place(index, last=True, consumed=bytes_read), "", refused=str(error))
        except (OSError, EOFError, zlib.error) as error:
            if not folder:
                raise DataError(f"cannot read {item.name}: {_describe_unreadable(error)}") from None
            why = f"cannot be read: {_describe_unreadable(error)}"
            yield Task(Place(index, last=True, consumed=bytes_read), "", refused=why)
        if stretch.end is not None:
            return


def _read_file_chunks(
    index: int, item: Item, kind: Format, job: Job, size: int, bytes_before: int, stretch: Stretch
) -> Iterator[Task]:
    start = stretch.start
    with ExitStack() as stack:
        raw: BinaryIO
        if item.source is None:
            raw = sys.stdin.buffer
        else:
            raw = stack.enter_context(item.source.open("rb"))
        stream = cast(BinaryIO, stack.enter_context(_Unpacked(fileobj=raw))) if item.packed else raw
        if kind.chunks is None:
            data = read_all(stream)
            yield Task(Place(index, len(data), last=True, consumed=bytes_before), kind.name, Chunk(data, end=len(data)))
            return
        state = blake2b(digest_size=32)
        if start and stretch.read:
            state = verify_written(stream, start, stretch.read)
            stream.seek(0)
        for chunk in kind.chunks(stream, job, size, start):
            state.update(chunk.data)
            consumed = bytes_before - item.size + min(item.size, raw.tell() if item.packed else chunk.end)
            yield Task(Place(index, chunk.end, state.hexdigest(), consumed=consumed), kind.name, chunk)
            if stretch.end is not None and chunk.end >= stretch.end:
                return
    yield Task(Place(index, last=True, consumed=bytes_before), "")


class _Unpacked(gzip.GzipFile):
    """The contents of a packed file, with a check against zip bombs."""

    def read(self, size: int | None = -1) -> bytes:
        """See :meth:`gzip.GzipFile.read`; raises :class:`DataError` if the data unpacks to too much."""
        if size is None or size < 0:
            blocks = []
            while block := self.read(1 << 20):
                blocks.append(block)
            return b"".join(blocks)
        data = super().read(size)
        check_ratio(cast(BinaryIO, self.fileobj).tell(), self.tell())
        return data


def _describe_unreadable(error: Exception) -> str:
    return "the packed data is damaged" if isinstance(error, zlib.error) else type(error).__name__

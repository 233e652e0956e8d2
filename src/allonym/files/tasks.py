"""The tasks of a run: the chunks of its files, and the functions that process one of them in any worker."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from allonym.batch import RECORD_ERRORS, Findings, describe_failure, retry_out_of_memory
from allonym.collector import pause_collector
from allonym.errors import DataError, UnknownNameError, UsageError, VaultError
from allonym.files import record
from allonym.files.columns import Column
from allonym.files.formats import get_format
from allonym.files.items import Item, list_sources
from allonym.files.record import AnonymizedChunk, Chunk, Draft, Job, ParsedChunk, anonymize_chunk, detect_in_documents
from allonym.partfile import hash_next_bytes
from allonym.policy import Policy
from allonym.replace.cast import Corpus

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


def detect_in_task(job: Job, task: Task) -> tuple[Task, list[Findings] | None]:
    """Detect identifiers in one chunk: the function of the workers if there is a vault.

    The vault is written by one process, in the order of the texts, so that the output does not depend on workers.
    """
    if task.chunk is None:
        return task, None
    try:
        with pause_collector():
            pieces = retry_out_of_memory(partial(get_format(task.format).parse, task.chunk, job)).pieces
            return task, detect_in_documents((p.document for p in pieces if isinstance(p, Draft)), job, job.key)
    except UsageError:
        raise
    except (DataError, *RECORD_ERRORS):
        return task, None  # it fails again, with its reason, when it is anonymised


def anonymize_task(job: Job, task: Task, findings: list[Findings] | None = None) -> tuple[Place, AnonymizedChunk]:
    """Anonymise one chunk: the function of the workers."""
    if task.chunk is None:
        return task.place, AnonymizedChunk(refused=task.refused)
    try:
        with pause_collector():
            parsed = retry_out_of_memory(partial(get_format(task.format).parse, task.chunk, job))
            return task.place, anonymize_chunk(parsed, job, findings)
    except (VaultError, UsageError):
        raise
    except (DataError, *RECORD_ERRORS) as error:
        return task.place, AnonymizedChunk(refused=describe_failure(error))


def anonymize_tasks(
    items: Sequence[Item], tasks: Iterable[tuple[Task, list[Findings] | None]], job: Job
) -> Iterator[tuple[Place, AnonymizedChunk]]:
    """Anonymise the chunks of whole files in order; the records of a table share their replacements.

    Args:
        items: the files.
        tasks: their chunks, with what was detected in them; None: nothing is known yet.
        job: its vault, if there is one, shares replacements between all files.
    """
    number, corpus = -1, Corpus(job.key)
    for task, findings in tasks:
        kind = items[task.place.item].format
        if task.place.item != number:
            number = task.place.item
            corpus = Corpus(job.key, str(items[number].size))
        is_shared = job.vault is None and kind is not None and kind.shared
        yield anonymize_task(replace(job, vault=corpus) if is_shared else job, task, findings)


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
    is_folder: bool,
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
        end = Place(index, last=True, consumed=before + item.size)
        part = stretch if index == stretch.first else Stretch(index)
        try:
            if item.format is None:
                yield Task(end, "", refused=item.refused)
            else:
                yield from _read_file_chunks(item, job, size, before, part)
        except (DataError, UnknownNameError) as error:
            if isinstance(error, UnknownNameError) and not is_folder:
                raise
            yield Task(end, "", refused=str(error))
        except (OSError, EOFError, zlib.error) as error:
            why = "the packed data is damaged" if isinstance(error, zlib.error) else type(error).__name__
            if not is_folder:
                raise DataError(f"cannot read {item.name}: {why}") from None
            yield Task(end, "", refused=f"cannot be read: {why}")
        before += item.size
        if stretch.end is not None:
            return


def _read_file_chunks(item: Item, job: Job, size: int, bytes_before: int, stretch: Stretch) -> Iterator[Task]:
    """Yield the chunks of one file; ``bytes_before`` is the size of the files in front of it."""
    index, start, kind = stretch.first, stretch.start, item.format
    assert kind is not None
    with ExitStack() as stack:
        raw: BinaryIO = sys.stdin.buffer if item.source is None else stack.enter_context(item.source.open("rb"))
        stream = cast(BinaryIO, stack.enter_context(_Unpacked(fileobj=raw))) if item.packed else raw
        if kind.chunks is None:
            data = record.read_within_limit(stream)
            place = Place(index, len(data), last=True, consumed=bytes_before + item.size)
            yield Task(place, kind.name, Chunk(data, end=len(data)))
            return
        state = hash_next_bytes(stream, start if stretch.read else 0)
        if state is None or (stretch.read and state.hexdigest() != stretch.read):
            raise UsageError("the input differs from that of the unfinished run; begin again with overwrite")
        if stretch.read:
            stream.seek(0)
        for chunk in kind.chunks(stream, job, size, start):
            state.update(chunk.data)
            consumed = bytes_before + min(item.size, raw.tell() if item.packed else chunk.end)
            yield Task(Place(index, chunk.end, state.hexdigest(), consumed=consumed), kind.name, chunk)
            if stretch.end is not None and chunk.end >= stretch.end:
                return
    yield Task(Place(index, last=True, consumed=bytes_before + item.size), "")


def parse_all_chunks(
    items: Sequence[Item], job: Job, is_folder: bool
) -> Iterator[tuple[Item, int, ParsedChunk | None, bool]]:
    """Parse all chunks of all files.

    Yields:
        The file, the lines before the chunk, the parsed chunk (None at the end of a file of many chunks), and whether
        it is the last of its file.

    Raises:
        DataError: a file cannot be read.
    """
    lines = 0
    for task in read_tasks(items, job, is_folder, BATCH):
        item = items[task.place.item]
        if task.refused:
            raise DataError(f"{item.name}: {task.refused}")
        parsed = None
        if task.chunk is not None and item.format is not None:
            parsed = item.format.parse(task.chunk, job)
        yield item, lines, parsed, task.place.last
        lines = 0 if task.place.last else lines + (parsed.lines if parsed else 0)


def list_columns(
    source: str | Path,
    *,
    fields: Sequence[str] | None = None,
    format: str | None = None,
    policy: str | Path | Policy = "default",
) -> Iterator[tuple[str, Column]]:
    """Yield what is decided about each column of the tables in a file or folder, with the name of the file.

    Args:
        source, fields, format, policy: as for :func:`allonym.files.anonymize_path`; not standard input.

    Raises:
        UsageError: there is no such file, format or field.
        DataError: a file cannot be read.
    """
    items, _ = list_sources(source, format)
    job = Job(Policy.load(policy), fields=tuple(fields or ()))
    for item in items:
        if item.format is None or item.format.columns is None or item.source is None:
            continue
        with item.source.open("rb") as raw:
            stream = cast(BinaryIO, _Unpacked(fileobj=raw)) if item.packed else raw
            for column in item.format.columns(stream, job):
                yield item.name, column


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
        record.check_compression_ratio(cast(BinaryIO, self.fileobj).tell(), self.tell())
        return data

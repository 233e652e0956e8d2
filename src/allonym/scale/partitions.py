"""A run in partitions: parts of files that are anonymised separately, stored, and joined again.

Small files are anonymised as a whole, in groups, and so are tables, whose rows share their replacements. A large file
of other records is *cut* into slices at the batch boundaries of a run on one machine. The anonymised batches of a
*slice* are stored in one part file. When all parts exist, they are *joined* by the same code, and in the same order, as
the batches of a run on one machine, so the bytes are the same.
This module does not depend on how the work is distributed.

A part file, and the note that a group of files is finished, are written atomically and identify their input. So a step
may be repeated by any worker without an effect.
"""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import BinaryIO, cast

from allonym.errors import AllonymError, UsageError
from allonym.files.items import Item
from allonym.files.record import AnonymizedChunk, Chunk, Failure, Job, Tally
from allonym.files.run import Run
from allonym.files.tasks import BATCH, Place, Stretch, anonymize_task, anonymize_tasks, read_tasks
from allonym.scale.storage import Storage

PARTITION = 1 << 20
"""Approximate size of a slice, or a group of small files, in large runs: some seconds of work with the tagger."""

MANY = 64
"""Greatest number of files in a group, and of slices that are cut at once."""

OPEN = "open"
"""A file in the state that exists as long as the run."""

_END = b'{"end": true}\n'

Slice = tuple[int, "int | None", str]
"""Start and end in the file (None: its end), and the digest of the bytes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A unit of work.

    Attributes:
        kind: ``group``: anonymise whole files; ``cut`` a file; anonymise a ``slice``; ``join`` the slices of a file.
        group: the number of the group of files; a file that is cut is its own group.
        items: the files.
        part: the number of the slice; for ``cut`` that of the next one; for ``join`` the number of slices.
        start, end, digest: of the slice; for ``cut`` the position to continue from.
        weight: bytes of the source that it finishes.
    """

    kind: str
    group: int
    items: tuple[Item, ...]
    part: int = 0
    start: int = 0
    end: int | None = None
    digest: str = ""
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step: an error that ends the run, the slices that were cut, and whether the group is finished."""

    error: AllonymError | None = None
    slices: tuple[Slice, ...] = ()
    more: int | None = None
    is_done: bool = False


def choose_slice_size(total: int) -> int:
    """Return the approximate size of a slice of a source of ``total`` bytes.

    It is a 256th, so that small sources are distributed too, between the size of a batch and ``PARTITION``. From 256 GB
    on it is a 262,144th, since each slice costs the driver some time, up to 16 times ``PARTITION``.
    """
    most = min(max(PARTITION, total >> 18), 16 * PARTITION)
    return max(BATCH, min(most, total >> 8))


def iterate_group_steps(items: Sequence[Item], size: int) -> Iterator[Step]:
    """Return the first step of each group of files, in order; it depends on names, formats and sizes alone."""
    number, total = 0, 0
    some: list[Item] = []
    for item in items:
        kind = item.format
        cuttable = kind is not None and kind.chunks is not None and not kind.shared and not item.packed
        large = cuttable and item.size > size
        if some and (large or len(some) == MANY or total + item.size > size):
            yield Step("group", number, tuple(some), weight=total)
            number, some, total = number + 1, [], 0
        if large:
            yield Step("cut", number, (item,))
            number += 1
        else:
            some.append(item)
            total += item.size
    if some:
        yield Step("group", number, tuple(some), weight=total)


def _count_bytes(step: Step) -> int:
    return sum(item.size for item in step.items)


class Schedule:
    """The order of steps. It holds the first step of each group, and the slices that can be processed now.

    ``count`` is the number of groups.
    """

    def __init__(self, items: Sequence[Item], size: int) -> None:
        steps = list(iterate_group_steps(items, size))
        self.count = len(steps)
        # Large groups come first, so that the run does not end by waiting for one.
        large = sorted((s for s in steps if _count_bytes(s) > size), key=_count_bytes, reverse=True)
        self._groups = chain(large, (s for s in steps if _count_bytes(s) <= size))
        self._ready: deque[Step] = deque()
        self._open: dict[int, list[int]] = {}

    def next_step(self) -> Step | None:
        """Return a step that can be done now, or None if there is none until another one is finished, or at all."""
        if self._ready:
            return self._ready.popleft()
        return next(self._groups, None)

    def record_finished_step(self, step: Step, outcome: Outcome) -> int:
        """Record the result of a step; return the number of bytes of the source that it finished."""
        item, group = step.items[0], step.group
        if step.kind == "cut":
            if outcome.is_done:
                return item.size
            waiting = self._open.setdefault(group, [0, -1])
            waiting[0] += len(outcome.slices)
            steps = [
                Step("slice", group, step.items, part, start, end, read, weight=(end or item.size) - start)
                for part, (start, end, read) in enumerate(outcome.slices, step.part)
            ]
            parts = step.part + len(steps)
            if outcome.more is None:
                waiting[1] = parts
            else:
                # Half-way, so that the next slices are cut before the last ones are finished.
                steps.insert(len(steps) // 2, Step("cut", group, step.items, parts, outcome.more))
            self._ready += steps
        if step.kind == "slice":
            waiting = self._open[group]
            waiting[0] -= 1
            if not waiting[0] and waiting[1] >= 0:
                self._ready.append(Step("join", group, step.items, self._open.pop(group)[1]))
        return max(0, step.weight)


@dataclass(frozen=True, slots=True)
class Worker:
    """Performs the steps of a run, one after the other.

    Args:
        job: policy, key and fields, loaded once for all steps.
        folder: whether the source is a folder.
        storage: storage of the results.
        state: the run's folder there for parts and notes.
        size: approximate bytes of a slice.
        batch: approximate bytes of a batch.
    """

    job: Job
    folder: bool
    storage: Storage
    state: str
    size: int = PARTITION
    batch: int = BATCH

    def perform_step(self, step: Step) -> Outcome:
        """Perform a step. Failures are returned as errors that quote no document."""
        try:
            return cast(Outcome, getattr(self, f"_perform_{step.kind}")(step))
        except AllonymError as error:
            return Outcome(error=error)
        except OSError as error:
            failure = f"{type(error).__name__}{f', error {error.errno}' if error.errno else ''}"
            return Outcome(error=AllonymError(f"a worker could not read or write ({failure})"))
        except Exception as error:  # the error reaches the cluster's logs, and a package's message may quote a document
            return Outcome(error=AllonymError(f"{type(error).__name__} in a worker"))

    def _perform_group(self, step: Step) -> Outcome:
        """Anonymise a group of whole files and write their outputs."""
        tasks = read_tasks(step.items, self.job, self.folder, self.batch)
        self._write_outputs(step, anonymize_tasks(step.items, ((task, None) for task in tasks), self.job))
        return Outcome(is_done=True)

    def _perform_cut(self, step: Step) -> Outcome:
        if not step.start and self._is_group_intact(step):
            return Outcome(is_done=True)
        slices: list[Slice] = []
        begin, read = step.start, blake2b(digest_size=32)
        for task in read_tasks(step.items, self.job, self.folder, self.batch, Stretch(start=begin)):
            if task.chunk is None:  # the end, or a failure of reading, which the last slice meets as well
                break
            _update_digest(read, task.chunk)
            if task.place.end - begin >= self.size:
                slices.append((begin, task.place.end, read.hexdigest()))
                begin, read = task.place.end, blake2b(digest_size=32)
                if len(slices) == MANY:
                    return Outcome(slices=tuple(slices), more=begin)
        slices.append((begin, None, read.hexdigest()))
        return Outcome(slices=tuple(slices))

    def _perform_slice(self, step: Step) -> Outcome:
        path = self._make_group_path(step.group, f"-{step.part}.part")
        with suppress(OSError, ValueError, KeyError), self.storage.open(path) as stream:
            if json.loads(stream.readline())["read"] == step.digest and _has_end(stream):
                return Outcome()
        read = blake2b(digest_size=32)
        with self.storage.make_scratch_folder(self.state) as scratch:
            part_file = scratch / "part"
            with part_file.open("wb") as out:
                _write_json_line(out, {"read": step.digest})
                stretch = Stretch(start=step.start, end=step.end)
                for task in read_tasks(step.items, self.job, self.folder, self.batch, stretch):
                    place, treated = anonymize_task(self.job, task)
                    if task.chunk is not None:
                        _update_digest(read, task.chunk)
                    append_treated_batch(out, place.last, treated)
                    if treated.refused:
                        break
                out.write(_END)
            if read.hexdigest() != step.digest:
                raise UsageError(f"{step.items[0].name} has changed while it was read; begin again with overwrite")
            self._check_run_open()
            self.storage.move_file_in(part_file, path)
        return Outcome()

    def _perform_join(self, step: Step) -> Outcome:
        paths = [self._make_group_path(step.group, f"-{number}.part") for number in range(step.part)]
        self._write_outputs(step, (chunk for path in paths for chunk in self._read_slice_results(path)))
        self.storage.delete(paths)
        return Outcome(is_done=True)

    def _read_slice_results(self, path: str) -> Iterator[tuple[Place, AnonymizedChunk]]:
        with self.storage.open(path) as stream:
            stream.readline()
            for last, treated in read_treated_batches(stream):
                yield Place(0, last=last), treated

    def _write_outputs(self, step: Step, chunks: Iterable[tuple[Place, AnonymizedChunk]]) -> None:
        """Write a group, unless it is intact: its files, the records left out, then the note that it is finished."""
        if self._is_group_intact(step):
            return
        with self.storage.make_scratch_folder(self.state) as scratch:
            placed = [replace(item, target=scratch / str(n)) for n, item in enumerate(step.items)]
            run = Run(placed, self.job, None, self.folder, scratch / "q", scratch / "p")
            try:
                for place, treated in chunks:
                    run.write_chunk(place, treated)
                run.finish_quarantine_and_plans()
                self._check_run_open()
                digests = dict(run.digests)
                files: list[tuple[str, str, int]] = []
                for n, item in enumerate(step.items):
                    if item.name in digests:
                        part_file = scratch / str(n)
                        files.append((item.name, digests[item.name], part_file.stat().st_size))
                        self.storage.move_file_in(part_file, str(item.target))
                sizes = {}
                for name in ("q", "p"):
                    part_file = scratch / name
                    sizes[name] = part_file.stat().st_size if part_file.exists() else 0
                    if sizes[name]:
                        self.storage.move_file_in(part_file, self._make_group_path(step.group, f".{name}"))
                note = {"tally": run.tally.to_dict(), "files": files, "refused": run.refused, **sizes}
                self.storage.write(self._make_group_path(step.group, ".json"), json.dumps(note).encode("ascii"))
            finally:
                run.close(keep_unfinished=False)

    def _is_group_intact(self, step: Step) -> bool:
        """Tell whether the group is finished and its outputs still exist."""
        note = read_group_result(self.storage, self.state, step.group)
        if note is None:
            return False
        targets = {item.name: str(item.target) for item in step.items}
        files = cast("list[tuple[str, str, int]]", note["files"])
        return all(name in targets and self.storage.get_size(targets[name]) == size for name, _, size in files)

    def _check_run_open(self) -> None:
        # A worker that lost its driver may outlive its run for some seconds.
        if self.storage.get_size(f"{self.state}/{OPEN}") is None:
            raise AllonymError("the run has ended")

    def _make_group_path(self, group: int, suffix: str) -> str:
        return f"{self.state}/{group}{suffix}"


def _update_digest(digest: blake2b, chunk: Chunk) -> None:
    # The digest includes the file's head: in another encoding the same bytes are other records.
    digest.update(repr(chunk.head).encode("utf-8", "backslashreplace"))
    digest.update(chunk.data)


def read_group_result(storage: Storage, state: str, group: int) -> Mapping[str, object] | None:
    """Return the result of a group, or None if it is not finished."""
    with suppress(ValueError):
        data = storage.read(f"{state}/{group}.json")
        return None if data is None else cast("Mapping[str, object]", json.loads(data))
    return None


def append_treated_batch(out: BinaryIO, last: bool, treated: AnonymizedChunk) -> None:
    """Append an anonymised batch: a line of JSON, then the bytes to write."""
    row = {
        "last": last,
        "tally": treated.tally.to_dict(),
        "failures": [(f.id, f.line, f.reason) for f in treated.failures],
        "plans": treated.plans,
        "lines": treated.lines,
        "refused": treated.refused,
        "size": len(treated.data),
    }
    _write_json_line(out, row)
    out.write(treated.data)


def read_treated_batches(stream: BinaryIO) -> Iterator[tuple[bool, AnonymizedChunk]]:
    """Yield the batches that :func:`append_treated_batch` wrote, each with whether it is the file's last.

    Raises:
        AllonymError: the end is missing.
    """
    while True:
        row = json.loads(stream.readline() or b"{}")
        if "end" in row:
            return
        data = stream.read(row["size"]) if "size" in row else b""
        if "size" not in row or len(data) != row["size"]:
            raise AllonymError("a stored part is incomplete; begin again with overwrite")
        yield (
            row["last"],
            AnonymizedChunk(
                data,
                Tally.from_dict(row["tally"]),
                tuple(Failure(*failure_row) for failure_row in row["failures"]),
                tuple((id, line, plan) for id, line, plan in row["plans"]),
                row["lines"],
                row["refused"],
            ),
        )


def _has_end(stream: BinaryIO) -> bool:
    """Tell whether a part file is whole: a power failure may have cut it."""
    stream.seek(-len(_END), io.SEEK_END)
    return stream.read() == _END


def _write_json_line(out: BinaryIO | io.BufferedWriter, row: Mapping[str, object]) -> None:
    out.write(json.dumps(row).encode("ascii") + b"\n")

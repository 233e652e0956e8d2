"""Write a source again in its own format, with other texts in its documents: all files or none."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from allonym.document import Document, merge_intervals
from allonym.errors import DataError, UsageError
from allonym.files.items import Item, check_free, check_separate, list_items
from allonym.files.output import PartFile
from allonym.files.record import Draft, Failure, Job, Parsed, count_common_prefix, render_draft
from allonym.files.tasks import BATCH, read_tasks
from allonym.policy import Policy

Parts = Callable[[int, Document], "tuple[str, ...] | None"]
"""``(number, document) -> parts``, numbered from 0 in the order of ``read_documents``; None leaves it out."""

UNCOUNTED = -1
"""The number for rows that are not documents, such as a first row that may be a header or data."""


def rewrite_path(
    source: str | Path,
    target: str | Path,
    parts_of: Parts,
    *,
    fields: Sequence[str] | None = None,
    format: str | None = None,
    overwrite: bool = False,
    count: int | None = None,
) -> int:
    """Write a file or folder again with other texts; all bytes outside the documents' parts are kept.

    Args:
        source: a file, or a folder with all below it. Never changed.
        target: a file, or a folder.
        parts_of: returns the new parts of a document, the same number; None leaves out the record, or a file that is
            one document. It is called once for each document, in the order of
            :func:`allonym.files.read_documents`, and with ``UNCOUNTED`` for a row that is not a document.
        fields, format: as the documents were read.
        overwrite: replace what exists.
        count: required number of documents; None: any number.

    Returns:
        The number of documents written.

    Raises:
        UsageError: source and target do not fit, the target exists, or a field is missing.
        DataError: a file cannot be read, or the number of parts or of documents is wrong. Nothing is written.
    """
    if str(source) == "-" or str(target) == "-":
        raise UsageError("a source can be rewritten only from a file or folder to a file or folder, not in a pipe")
    items, folder = list_items(source, target, format)
    check_separate(items, [])
    check_free([item.target for item in items], [], overwrite)
    written = file_count = 0
    outs: list[_Out] = []
    with ExitStack() as stack:
        for item, chunks in _read_files(items, folder, Job(Policy.load("default"), fields=tuple(fields or ()))):
            assert item.target is not None
            out = _Out(item, item.target)
            stack.callback(out.close)
            for parsed, numbers in chunks:
                data, record_count = _render_parsed(parsed, numbers, parts_of, item)
                out.write(data)
                written += record_count
                file_count += sum(number != UNCOUNTED for number in numbers)
                out.empty = out.empty and not record_count
            out.end()
            outs.append(out)
        if count not in (None, file_count):
            raise DataError(f"{source} has changed since it was read: {count} documents then, {file_count} now")
        for out in outs:
            out.finish()
    return written


Numbers = Iterator[int]


def _read_files(items: list[Item], folder: bool, job: Job) -> Iterator[tuple[Item, Iterator[tuple[Parsed, list[int]]]]]:
    """Yield each file with its parsed chunks, and the numbers of the documents in each chunk."""
    tasks = iter(read_tasks(items, job, folder, BATCH))
    number = 0
    task = next(tasks, None)

    def read_chunks(index: int, item: Item) -> Iterator[tuple[Parsed, list[int]]]:
        nonlocal task, number
        line = 0
        while task is not None and task.place.item == index:
            if task.refused:
                raise DataError(f"{item.name}: {task.refused}")
            if task.chunk is not None and item.format is not None:
                parsed = item.format.parse(task.chunk, job)
                numbers = []
                for piece in parsed.pieces:
                    if isinstance(piece, Failure):
                        raise DataError(f"{item.name}: {item.format.unit} {line + piece.line}: {piece.reason}")
                    if isinstance(piece, Draft):
                        numbers.append(number if piece.counted else UNCOUNTED)
                        number += piece.counted
                line += parsed.lines
                yield parsed, numbers
            task = next(tasks, None)

    for index, item in enumerate(items):
        some = read_chunks(index, item)
        yield item, some
        for _ in some:
            pass


def _render_parsed(parsed: Parsed, numbers: Sequence[int], parts_of: Parts, item: Item) -> tuple[bytes, int]:
    """Return the bytes of a chunk with the new parts, and the number of its documents."""
    out: list[bytes | None] = []
    count = 0
    upcoming = iter(numbers)
    for piece in parsed.pieces:
        if isinstance(piece, bytes):
            out.append(piece)
        elif isinstance(piece, Draft):
            number = next(upcoming)
            document = piece.document if piece.document.id else replace(piece.document, id=item.name)
            parts = parts_of(number, document)
            part_count = len(document.parts) or 1
            if parts is not None and len(parts) != part_count:
                raise DataError(f"{item.name}: a document of {part_count} parts needs as many, got {len(parts)}")
            out.append(None if parts is None else render_draft(piece, parts, _find_changed_words(document, parts)))
            count += parts is not None and piece.counted
    joined = parsed.join(out) if parsed.join else b"".join(piece for piece in out if piece is not None)
    return joined, count


def _find_changed_words(document: Document, parts: Sequence[str]) -> list[tuple[int, int]]:
    """Return the half-open offsets of the changed words of a document."""
    text = document.text
    out: list[tuple[int, int]] = []
    for (start, end), part in zip(document.parts or ((0, len(text)),), parts, strict=True):
        old = text[start:end]
        if old == part:
            continue
        same = count_common_prefix(old, part)
        after = count_common_prefix(old[same:][::-1], part[same:][::-1])
        a, b = start + same, end - after
        while a > 0 and text[a - 1].isalnum():
            a -= 1
        while b < len(text) and text[b].isalnum():
            b += 1
        if a < b:
            out.append((a, b))
    return merge_intervals(out)


class _Out:
    """A file being written; it is left out if its only document is left out."""

    def __init__(self, item: Item, target: Path) -> None:
        self.item = item
        self.part = PartFile(target)
        self.empty = True
        self._done = False
        self._writer: Any = None

    def write(self, data: bytes) -> None:
        kind = self.item.format
        if kind is not None and kind.writer is not None:
            if self._writer is None:
                self._writer = kind.writer(self.part.stream)
            self._writer.write(data)
        elif data:
            self.part.write(gzip.compress(data, mtime=0) if self.item.pack else data)

    def end(self) -> None:
        """Write the end of the file; a folder may have more files than can be open at once."""
        if self._writer is not None:
            self._writer.close()
        elif self.item.pack and not self.part.length:
            self.part.write(gzip.compress(b"", mtime=0))
        self.part.sync()
        self.part.close(remove=False)

    def finish(self) -> None:
        if self.empty and self.item.format is not None and not self.item.format.many:
            return
        self.part.finish()
        self._done = True

    def close(self) -> None:
        if not self._done:
            self.part.close(remove=True)

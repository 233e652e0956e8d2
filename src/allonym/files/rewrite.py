"""Write a source again in its own format, with other texts in its documents: all files or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from allonym.document import Document
from allonym.errors import DataError, UsageError
from allonym.files.fields import ID_NAMES
from allonym.files.items import Item, check_outputs_distinct, check_targets_free, list_items
from allonym.files.output import ChunkOutput
from allonym.files.record import Draft, Failure, Job, list_changed_words, render_and_verify_draft
from allonym.files.tasks import parse_all_chunks
from allonym.partfile import PartFile, remove_part_files
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
    verify: bool = True,
    ids: bool = True,
    has_neutralised_cells: bool = False,
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
        verify: read the result back, and refuse it if it still has a word that its document had no longer.
        has_neutralised_cells: whether the policy of the source had ``formulas = "neutralise"``; this is undone.
        ids: whether a column of ids that people may bear belongs to the documents, as it does by default.

    Returns:
        The number of documents written.

    Raises:
        UsageError: source and target do not fit, the target exists, or a field is missing.
        DataError: a file cannot be read, or the number of parts or of documents is wrong. Nothing is written.
    """
    if str(source) == "-" or str(target) == "-":
        raise UsageError("a source can be rewritten only from a file or folder to a file or folder, not in a pipe")
    items, is_folder = list_items(source, target, format)
    check_outputs_distinct(items, [])
    check_targets_free([item.target for item in items], [], overwrite)
    policy = Policy.load("default")
    if not ids:
        policy = policy.with_(columns={f(name): "keep" for name in ID_NAMES for f in (str, str.upper, str.title)})
    job = Job(policy, fields=tuple(fields or ()), has_neutralised_cells=has_neutralised_cells)
    remove_part_files(item.target for item in items if item.target is not None)
    number = written = file_written = 0
    finished: list[PartFile] = []
    part: PartFile | None = None
    with ExitStack() as stack:
        for item, lines, parsed, last in parse_all_chunks(items, job, is_folder):
            if part is None:
                assert item.target is not None
                # Announced, for the next process would take a closed one for an abandoned one.
                part, file_written = PartFile(item.target, announce=str), 0
                stack.callback(part.close, remove=True)
                out = ChunkOutput(item, part)
            if parsed is not None:
                rendered: list[bytes | None] = []
                for piece in parsed.pieces:
                    if isinstance(piece, Failure):
                        raise DataError(item.describe_failure(lines, piece))
                    if isinstance(piece, bytes):
                        rendered.append(piece)
                        continue
                    rendered.append(
                        _render_document(piece, number if piece.counted else UNCOUNTED, parts_of, item, verify)
                    )
                    number += piece.counted
                    file_written += piece.counted and rendered[-1] is not None
                out.write(parsed.join_pieces(rendered))
            if last:
                out.write_end()
                part.sync()
                part.close(remove=False)  # a folder may have more files than can be open at once
                if file_written or (item.format and item.format.many):
                    finished.append(part)  # a file is left out if its only document is left out
                written += file_written
                part = None
        if count not in (None, number):
            raise DataError(f"{source} has changed since it was read: {count} documents then, {number} now")
        for part in finished:
            part.finish()
    return written


def _render_document(draft: Draft, number: int, parts_of: Parts, item: Item, verify: bool) -> bytes | None:
    document = draft.document if draft.document.id else replace(draft.document, id=item.name)
    parts = parts_of(number, document)
    if parts is None:
        return None
    if len(parts) != (part_count := len(document.parts) or 1):
        raise DataError(f"{item.name}: a document of {part_count} parts needs as many, got {len(parts)}")
    draft = draft if verify else replace(draft, verify="")
    return render_and_verify_draft(draft, parts, list_changed_words(document, parts))

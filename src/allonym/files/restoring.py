"""Restore originals in files: one file, or all files of a folder, in their own formats. Each is written atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from allonym.collector import pause_collector
from allonym.document import Document
from allonym.errors import DataError, PlanMismatch, UsageError
from allonym.files.encoding import decode_file
from allonym.files.formats import format_of
from allonym.files.items import check_outputs_distinct, check_target_suffix, check_targets_free, list_items
from allonym.files.rewrite import UNCOUNTED, rewrite_path
from allonym.partfile import write_file
from allonym.plan import Plan, apply_edits_to_parts, digest, read_plan_rows
from allonym.restoration import Restored, Restorer
from allonym.serial import Serialisable

if TYPE_CHECKING:
    from allonym.vault import Vault

PLAIN = ("txt", "md", "srt", "vtt")
"""Formats whose bytes are the text."""

DRAWN = ("pdf", "png", "jpg")
"""Formats in which originals are blacked out, so that none can be put back."""

_NO_PLAN = "no plan made exactly the text of some records"
_SEVERAL = (
    "several plans made exactly the text of some records, and the records are no longer in the order of the plans: "
    "these stay as they are"
)
_NEW_ENCODING = "a file was plain ASCII, which does not tell its encoding; with its originals it is written as UTF-8"


class RestoredFiles(Serialisable):
    """The result of restoring files.

    Attributes:
        files: number of files written.
        restored, unknown: number of replacements restored, and of those that could not be.
        notes: the distinct notes of all files.
    """

    KEYS = ("files", "restored", "unknown")

    files: int
    restored: int
    unknown: int
    notes: tuple[str, ...] = field(default=(), repr=False)


def list_files_to_restore(
    source: str | Path, target: str | Path, *, format: str | None = None, overwrite: bool = False
) -> tuple[list[tuple[Path, Path]], list[str]]:
    """Return the file, or the files of a folder, with their targets, after all checks that are possible before writing.

    The names of a folder's files into which no original can be put back come second.

    Raises:
        UsageError: a target exists, or there is no file into which an original can be put back.
    """
    items = list_items(source, target, format)[0]
    if not items:
        raise UsageError(f"there are no files in {source}")
    skipped = [i.name for i in items if i.refused or i.format is None or i.format.name in DRAWN]
    if len(skipped) == len(items):
        raise UsageError(
            f"restore reads all formats but {', '.join(DRAWN)}, which have no text to put back; "
            f"{source} has only: {', '.join(skipped)}"
        )
    items = [i for i in items if i.name not in skipped]
    check_outputs_distinct(items, ())
    check_target_suffix(items)
    files = [(i.source, i.target) for i in items if i.source is not None and i.target is not None]
    check_targets_free([target for _, target in files], (), overwrite)
    return files, skipped


def restore_files(
    files: Sequence[tuple[Path, Path]],
    *,
    plans: Sequence[Plan] = (),
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    fields: Sequence[str] = (),
    format: str | None = None,
    has_neutralised_cells: bool = False,
    actor: str = "",
    advance: Callable[[int, int], object] | None = None,
) -> RestoredFiles:
    """Restore files in their formats with one index; the vault's log gets one line, even if a file fails.

    Every text of a file is searched. If it is exactly what the vault or a plan knows, the original comes back exactly.

    Args:
        files: (source, target) of each file; existing targets are replaced.
        plans: of the documents of the files, with their originals; a single one is that of all texts.
        vault, scope: the vault with the originals, and its scope.
        key: the encryption key, or that of keyed operators.
        fields, format: as the files were anonymised.
        has_neutralised_cells: whether their policy had ``formulas = "neutralise"``; its apostrophes are taken away.
        actor: name for the audit log.
        advance: called with the number of finished files and the total.

    Raises:
        DataError: a file cannot be read, or the vault cannot be read.
        PlanMismatch: a plan has no originals.
    """
    from allonym.restoration import restore

    by_result = _group_plans(plans)
    sole = plans[0] if len(plans) == 1 else None
    restorer = Restorer((), key=key) if vault is None else Restorer.from_vault(vault, scope, key=key)
    counts, notes = Counter[str](), dict[str, None]()
    file_counts, file_notes = Counter[str](), dict[str, None]()

    text_digests: list[str] = []
    is_in_order = True
    is_order_needed = any(len(group) > 1 for group in by_result.values())
    are_texts_in_order = (
        is_order_needed
        and all(is_plain_text_name(source.name, format) and not fields for source, _ in files)
        and [digest(decode_file(source.read_bytes())[0]) for source, _ in files] == [plan.result for plan in plans]
    )

    @cache
    def count_most_edits(result_digest: str) -> int:
        return max(len(plan.edits) for plan in by_result[result_digest])

    @pause_collector()
    def restore_text(text: str, number: int) -> Restored:
        if not plans:
            return restorer.restore(text)
        result_digest = digest(text)
        if number != UNCOUNTED:
            text_digests.append(result_digest)
        candidates = by_result.get(result_digest, [sole] if sole is not None else [])
        if len(candidates) > 1:
            # Only the order of all records tells which of several originals became this text.
            place = len(text_digests) - 1 if number != UNCOUNTED else len(plans)
            is_known = is_in_order and place < len(plans) and plans[place].result == result_digest
            if not is_known:
                file_notes[_SEVERAL] = None
                return Restored(text, unknown=count_most_edits(result_digest))
            candidates = [plans[place]]
        if candidates:
            return restore(text, plan=candidates[0], key=key)
        result = restorer.restore(text)
        if text.strip():
            file_notes[_NO_PLAN] = None
        return result

    def restore_parts(number: int, document: Document) -> tuple[str, ...]:
        result = restore_text(document.text, number)
        file_counts.update(restored=result.restored, unknown=result.unknown)
        file_notes.update(dict.fromkeys(result.notes))
        if not result.edits:
            return document.part_texts()
        places = document.parts or ((0, len(document.text)),)
        return tuple(apply_edits_to_parts(document.text, places, result.edits))

    try:
        for source, target in files:
            file_counts.clear()
            file_notes.clear()
            if is_plain_text_name(source.name, format) and not fields:
                text, encoding = decode_file(source.read_bytes())  # a tag may look like markup of subtitles
                is_in_order = are_texts_in_order
                (text,) = restore_parts(0, Document("", text))
                write_file(target, encoding.encode_file(text))
            else:
                # Ids that were kept belong to no plan.
                attempts = [(ids, True) for ids in ((False, True) if plans else (True,))]
                while attempts:
                    ids, is_in_order = attempts.pop(0)
                    file_counts.clear()
                    file_notes.clear()
                    text_digests.clear()
                    rewrite_path(
                        *(source, target, restore_parts),
                        fields=fields,
                        format=format,
                        overwrite=True,
                        verify=False,
                        ids=ids,
                        has_neutralised_cells=has_neutralised_cells,
                    )
                    if _NO_PLAN in file_notes and attempts:
                        continue
                    if is_in_order and is_order_needed and text_digests != [plan.result for plan in plans]:
                        attempts = [(ids, False)]
                        continue
                    break
            counts.update(file_counts)
            notes.update(file_notes)
            if note := note_new_encoding(source.read_bytes(), target.read_bytes()):
                notes[note] = None
            counts["files"] += 1
            if advance is not None:
                advance(counts["files"], len(files))
    finally:
        if vault is not None:
            vault.record("restore", scope=scope, actor=actor, counts=counts)
    return RestoredFiles(counts["files"], counts["restored"], counts["unknown"], tuple(notes))


def _group_plans(plans: Iterable[Plan]) -> dict[str, list[Plan]]:
    """Group plans by the digest of the text that they made; of those from one original, the last."""
    groups: dict[str, dict[str, Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.result, {})[plan.digest] = plan
    return {result: list(group.values()) for result, group in groups.items()}


def note_new_encoding(before: bytes, after: bytes) -> str:
    """Return a note if letters beyond ASCII were put back into a file of ASCII alone, else nothing."""
    return _NEW_ENCODING if before.isascii() and not after.isascii() else ""


def is_plain_text_name(name: str, format: str | None = None) -> bool:
    """Tell whether a file is plain text by its name; a name without a known suffix is that of a text."""
    try:
        kind, packed = format_of(PurePath(name).name, format)
    except DataError:
        return True
    return kind.name in PLAIN and not packed


def read_plans(path: Path) -> list[Plan]:
    """Read the plans of a file: a bare plan, or the lines of ``allonym anonymize --plans``.

    Raises:
        PlanMismatch: the file contains none, or is no text.
    """
    try:
        plans = [plan for _, plan in read_plan_rows(path.read_text(encoding="utf-8"), path)]
    except UnicodeDecodeError:
        raise PlanMismatch(f"{path} is not a plan: it is not UTF-8") from None
    if not plans:
        raise PlanMismatch(f"{path} contains no plans")
    return plans


def read_single_plan(path: Path) -> Plan:
    """Read the single plan of a file, see :func:`read_plans`.

    Raises:
        PlanMismatch: the file contains several plans, or none.
    """
    plans = read_plans(path)
    if len(plans) != 1:
        raise PlanMismatch(f"{path} contains {len(plans)} plans; one is required, that of the text to restore")
    return plans[0]

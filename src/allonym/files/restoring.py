"""Restore originals in files: one text, or all plain text files of a folder. Each file is written atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from allonym.errors import DataError, PlanMismatch, UsageError
from allonym.files.formats import format_of
from allonym.files.items import check_outputs_distinct, check_targets_free, list_items
from allonym.files.output import write_file
from allonym.plan import Plan, read_plan_rows
from allonym.restoration import Restorer
from allonym.serial import Serialisable

if TYPE_CHECKING:
    from allonym.vault import Vault

PLAIN = ("txt", "md", "srt", "vtt")
"""Formats whose bytes are the text. In others an original may need quoting, so restoring could break the file."""


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
    source: str | Path, target: str | Path, *, overwrite: bool = False
) -> list[tuple[Path, Path]]:
    """Return the files of a folder with their targets, after all checks that are possible before writing.

    Raises:
        UsageError: a target exists, there are no files, or a file is not plain text.
        DataError: a file is not UTF-8.
    """
    items = list_items(source, target, None)[0]
    if not items:
        raise UsageError(f"there are no files in {source}")
    others = [i.name for i in items if i.refused or i.packed or i.format is None or i.format.name not in PLAIN]
    if others:
        raise UsageError(
            f"restore works on plain text ({', '.join(PLAIN)}); the folder {source} also has: {', '.join(others)}"
        )
    check_outputs_distinct(items, ())
    files = [(i.source, i.target) for i in items if i.source is not None and i.target is not None]
    check_targets_free([target for _, target in files], (), overwrite)
    for path, _ in files:
        read_text_file(path)
    return files


def restore_files(
    files: Sequence[tuple[Path, Path]],
    *,
    plan: Mapping[str, object] | None = None,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    actor: str = "",
    advance: Callable[[int, int], object] | None = None,
) -> RestoredFiles:
    """Restore files with one index; the vault's log gets one line, even if a file fails.

    Args:
        files: (source, target) of each file; existing targets are replaced.
        plan: plan of one text with its originals, for a single file.
        vault, scope: the vault with the originals, and its scope.
        key: the encryption key, or that of keyed operators.
        actor: name for the audit log.
        advance: called with the number of finished files and the total.

    Raises:
        DataError: a file is not UTF-8, or the vault cannot be read.
        PlanMismatch: the plan is invalid, or has no originals.
    """
    from allonym.restoration import restore

    if plan is not None and len(files) != 1:
        raise UsageError(f"a plan is of one text; got {len(files)} files")
    loaded_plan = None if plan is None else Plan.from_dict(plan)
    restorer: Restorer | None = None
    if loaded_plan is None:
        restorer = Restorer((), key=key) if vault is None else Restorer.from_vault(vault, scope, key=key)
    counts, notes = Counter[str](), dict[str, None]()
    try:
        for path, target in files:
            text = read_text_file(path)
            if restorer is None:
                result = restore(text, plan=loaded_plan, vault=vault, key=key, scope=scope, actor=actor)
            else:
                result = restorer.restore(text)
            write_file(target, result.text.encode("utf-8"))
            counts.update(files=1, restored=result.restored, unknown=result.unknown)
            notes.update(dict.fromkeys(result.notes))
            if advance is not None:
                advance(counts["files"], len(files))
    finally:
        if vault is not None and restorer is not None:
            vault.record("restore", scope=scope, actor=actor, counts=counts)
    return RestoredFiles(counts["files"], counts["restored"], counts["unknown"], tuple(notes))


def read_text_file(path: Path) -> str:
    """Read the text of a file, without a byte order mark. Raises :class:`DataError` if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: byte {error.start} does not fit") from None


def check_plain_text_name(name: str) -> None:
    """Raise :class:`UsageError` if the suffix of a file's name is that of a format other than plain text."""
    try:
        format_name = format_of(PurePath(name).name)[0].name
    except DataError:
        return  # text under another name
    if format_name not in PLAIN:
        raise UsageError(
            f"restore works on plain text; a {format_name} file needs its records restored one by one in Python"
        )


def read_single_plan(path: Path) -> Plan:
    """Read the single plan of a file: a bare plan, or a line of ``allonym anonymize --plans``.

    Raises:
        PlanMismatch: the file contains several plans, or none.
    """
    try:
        plans = read_plan_rows(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise PlanMismatch(f"{path} is not a plan: it is not UTF-8") from None
    if len(plans) != 1:
        raise PlanMismatch(f"{path} contains {len(plans)} plans; one is required, that of the text to restore")
    return plans[0][1]

"""The files of a run: sources, targets, and checks before the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from allonym.errors import DataError, UsageError
from allonym.files.formats import format_of, get_format
from allonym.files.record import Failure, Format
from allonym.partfile import check_plain_target

_TEXT_FORMATS = frozenset("txt md jsonl json csv tsv html eml mbox ics vcf xml yaml ipynb srt vtt rtf".split())
_NOWHERE = Path(os.devnull, "folder")


@dataclass(frozen=True, slots=True)
class Item:
    """A file of a run: where it comes from and goes to (None: standard input, standard output), name and format."""

    name: str
    source: Path | None
    target: Path | None
    format: Format | None
    packed: bool = False
    pack: bool = False
    size: int = 0
    refused: str = ""

    def describe_failure(self, lines_before: int, failure: Failure) -> str:
        """Return the message for a record that cannot be read, in a chunk after ``lines_before`` lines."""
        unit = self.format.unit if self.format else "record"
        return f"{self.name}: {unit} {lines_before + failure.line}: {failure.reason}"


def list_items(source: str | Path, target: str | Path, format: str | None) -> tuple[list[Item], bool]:
    """Return the files of a run, sorted by name, and whether the source is a folder. Hidden files are skipped.

    Raises:
        UsageError: the source does not exist, or source and target do not fit.
        DataError: no format reads the source.
    """
    out = None if str(target) == "-" else Path(target)
    if str(source) == "-":
        return [Item("-", None, out, get_format(format or "txt"), pack=_has_gzip_suffix(out))], False
    path = Path(source)
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    if not path.is_dir():
        if out is not None and out.exists() and out.samefile(path):
            raise UsageError(f"source and target are both {path}; the source is never changed")
        kind, packed = format_of(path.name, format)
        if out is not None and out.is_dir():
            out = append_written_suffix(out / path.name, kind)
        elif out is not None and kind.written_as and out.suffix.lower() == path.suffix.lower():
            raise UsageError(f"a .{kind.name} file is written as .{kind.written_as}; name such a TARGET")
        return [Item(path.name, path, out, kind, packed, _has_gzip_suffix(out), path.stat().st_size)], False
    if out is None:
        raise UsageError("a folder needs a folder to write to, not standard output")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{path} is a folder, so the target must be one, and {out} is a file")
    if out.resolve() == path.resolve() or path.resolve() in out.resolve().parents:
        raise UsageError(f"the target {out} lies inside the source {path}")
    items: list[Item] = []
    for where, folders, names in os.walk(path):
        folders[:] = [f for f in folders if not f.startswith(".")]
        links = [name for name in folders if Path(where, name).is_symlink()]
        for file in (Path(where, name) for name in (*names, *links) if not name.startswith(".")):
            rel = file.relative_to(path)
            try:
                if file.name in links:
                    raise DataError("a link to a folder is not followed")
                if not file.is_file():
                    raise DataError("a broken link" if file.is_symlink() else "not a plain file")
                kind, packed = format_of(file.name, format)
                written = append_written_suffix(out / rel, kind)
                items.append(Item(rel.as_posix(), file, written, kind, packed, packed, file.stat().st_size))
            except DataError as error:
                items.append(Item(rel.as_posix(), file, out / rel, None, refused=str(error)))
    return sorted(items, key=lambda i: i.name), True


def list_sources(source: str | Path, format: str | None) -> tuple[list[Item], bool]:
    """Return the files of a source that is only read, see :func:`list_items`; their targets mean nothing."""
    return list_items(source, _NOWHERE if Path(source).is_dir() else "-", format)


def append_written_suffix(target: Path, kind: Format) -> Path:
    """Return a target with the suffix of what the format writes; the old one stays in front of it."""
    return target.with_name(f"{target.name}.{kind.written_as}") if kind.written_as else target


def _has_gzip_suffix(target: Path | None) -> bool:
    return target is not None and target.suffix.lower() == ".gz"


def check_outputs_distinct(items: Sequence[Item], extras: Sequence[Path]) -> None:
    """Raise :class:`UsageError` if two outputs of the run are the same file, or one of them is a source."""
    sources = {os.path.realpath(item.source) for item in items if item.source is not None}
    paths: set[str] = set()
    for path in (*(item.target for item in items if item.target is not None), *extras):
        real = os.path.realpath(path)  # unlike resolve(), it takes a link to itself
        if real in sources:
            raise UsageError(f"{path} is a source of the run; a source is never changed")
        if real in paths:
            raise UsageError(f"{path} is named for two outputs of the run")
        paths.add(real)


def check_target_suffix(items: Sequence[Item]) -> None:
    """Raise :class:`UsageError` if the suffix of a target is that of a format which its bytes will not have.

    One text file may be called like another, since any editor opens it.
    """
    for item in items:
        if item.format is None or item.target is None:
            continue
        written = get_format(item.format.written_as or item.format.name).name
        try:
            named = format_of(item.target.name)[0].name
        except DataError:
            continue
        if written != named and not {written, named} <= _TEXT_FORMATS:
            raise UsageError(f"{item.name} is written as .{written}, and {item.target} is called a .{named} file")


def check_targets_free(
    targets: Sequence[Path | None], extras: Sequence[Path], overwrite: bool, folder: Path | None = None
) -> None:
    """Raise :class:`UsageError` if an output of the run exists and may not be replaced, or is no plain file.

    ``folder``: the targets lie below it, and a link to another folder there is refused too.
    """
    for path in (*targets, *extras):
        if path is None:
            continue
        check_plain_target(path)
        if path.exists() and not overwrite:
            raise UsageError(f"{path} exists; --overwrite (overwrite=True in Python) replaces it")
    below = {parent for path in targets if path is not None for parent in path.parents} if folder is not None else ()
    for parent in sorted(below):
        if folder in parent.parents and parent.is_symlink():
            raise UsageError(f"{parent} is a link to another folder; remove it, or give another target")

"""The files of a run on a cluster, on this machine or behind a URI, and checks of its targets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from allonym.errors import DataError, UsageError
from allonym.files.formats import format_of
from allonym.files.items import Item, check_outputs_distinct, check_targets_free, list_items
from allonym.scale.storage import Disk, Remote, Storage, Stored, locate_storage

_NOWHERE = Path(os.devnull, "folder")


@dataclass(frozen=True, slots=True)
class Listing:
    """The inputs and outputs of a run.

    Attributes:
        items: the files, sorted by name. Their targets are paths in ``storage``.
        folder: whether the source is a folder.
        storage: storage of the results.
        target: the file or folder that the run writes there.
    """

    items: list[Item]
    folder: bool
    storage: Storage
    target: str

    @property
    def state_folder(self) -> str:
        """The hidden folder beside the target with the finished parts of a run."""
        path = PurePosixPath(self.target)
        return str(path.with_name(f".{path.name}.allonym-ray"))


def list_files(source: str | Path, target: str | Path, format: str | None) -> Listing:
    """Return the files of a run, as :func:`allonym.files.items.list_items`, from any storage.

    Raises:
        UsageError: a pipe is named, the source does not exist, or source and target do not fit.
        DataError: no format reads the source.
    """
    if str(source) == "-" or str(target) == "-":
        raise UsageError("the Ray runner reads and writes files; use a pipe without --runner ray")
    reads, path = locate_storage(source)
    writes, to = locate_storage(target)
    if not PurePosixPath(to).name or (isinstance(writes, Remote) and "/" not in to):
        raise UsageError("the target must be a file or folder within a bucket or a disk, not all of it")
    if isinstance(reads, Disk) and isinstance(writes, Disk):
        items, folder = list_items(path, to, format)
        out = to if folder else str(items[0].target)
        return Listing(items, folder, writes, out)
    if isinstance(reads, Disk):
        items, folder = list_items(path, _NOWHERE if Path(path).is_dir() else "-", format)
    else:
        items, folder = _list_remote_items(reads, path, format)
        if isinstance(writes, Remote) and writes.filesystem.equals(reads.filesystem):
            if to == path:
                raise UsageError("source and target are the same; the source is never changed")
            if folder and PurePosixPath(path) in PurePosixPath(to).parents:
                raise UsageError("the target lies inside the source")
    if not folder and (str(target).partition("?")[0].endswith("/") or writes.is_folder(to)):
        to = str(PurePosixPath(to, items[0].name))
    return Listing([_assign_target(item, to, folder) for item in items], folder, writes, to)


def _list_remote_items(storage: Remote, path: str, format: str | None) -> tuple[list[Item], bool]:
    size = storage.get_size(path)
    if size is not None:
        name = PurePosixPath(path).name
        kind, packed = format_of(name, format)
        return [Item(name, cast(Any, Stored(storage, path)), None, kind, packed, size=size)], False
    if not storage.is_folder(path):
        raise UsageError(f"there is no file or folder {path}")
    items = []
    for name, size in storage.list_files(path):
        if any(piece.startswith(".") for piece in PurePosixPath(name).parts):
            continue
        where = cast(Any, Stored(storage, str(PurePosixPath(path, name))))
        try:
            kind, packed = format_of(name, format)
            items.append(Item(name, where, None, kind, packed, packed, size))
        except DataError as error:
            items.append(Item(name, where, None, None, size=size, refused=str(error)))
    return sorted(items, key=lambda item: item.name), True


def _assign_target(item: Item, to: str, is_folder: bool) -> Item:
    target = Path(to, item.name) if is_folder else Path(to)
    return replace(item, target=target, pack=item.packed if is_folder else to.lower().endswith(".gz"))


def check_targets(listing: Listing, extras: list[Path], overwrite: bool, *, fresh: bool) -> None:
    """Raise :class:`UsageError` if an output of the run is also another of its files, or exists already.

    Args:
        listing: the files.
        extras: further files, all of this machine.
        overwrite: whether existing files may be replaced.
        fresh: whether the run is new; a resumed run finds its earlier outputs.
    """
    local = isinstance(listing.storage, Disk)
    sources = [item for item in listing.items if isinstance(item.source, Path)]
    check_outputs_distinct([item if local else replace(item, target=None) for item in sources], extras)
    if not fresh or overwrite:
        return
    check_targets_free([item.target for item in listing.items] if local else [], extras, overwrite)
    if not local and (existing_target := listing.storage.find_existing(str(item.target) for item in listing.items)):
        raise UsageError(f"{existing_target} exists; --overwrite (overwrite=True in Python) replaces it")

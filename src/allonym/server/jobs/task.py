"""What the process of a job is told, what it tells back, and how it goes by its files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, cast

from allonym.errors import DataError
from allonym.files import read_documents
from allonym.files.output import PartFile
from allonym.server.jobs.folder import Folder
from allonym.server.jobs.names import media_type
from allonym.vault import Vault

TELLING = 0.2
"""Seconds between two notes of the progress at least."""

ROLES = ("files", "anonymised", "gold", "background", "metadata")
"""What uploaded files are to a job; the names of the form's fields."""

NAMING = ("id", "doc_id", "document", "file", "filename", "file_name", "path")
"""Columns by which a table of metadata names files."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An uploaded file.

    Attributes:
        role: one of ``ROLES``.
        shown: its name as it is shown.
        stored: its name on the disk.
        size: in bytes.
    """

    role: str
    shown: str = field(repr=False)
    stored: str
    size: int


@dataclass(frozen=True, slots=True)
class Made:
    """A result: its name, where it lies in the folder, and its media type."""

    name: str = field(repr=False)
    path: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What a job is to do, as it was asked for; it never changes.

    Attributes:
        kind: anonymize, restore, swap or evaluate.
        name: as it is shown.
        actor: who asked, for audit logs.
        files: what was uploaded.
        options: as the wire type of the kind has them, without the policy.
        policy: what describes the policy, see :meth:`allonym.server.policies.Policies.source`; empty: none.
        shown: options as they are shown again.
    """

    kind: str
    name: str = field(repr=False)
    actor: str
    files: tuple[Sent, ...] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    policy: str = field(default="", repr=False)
    shown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        files = [{"role": f.role, "shown": f.shown, "stored": f.stored, "size": f.size} for f in self.files]
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**plain, "files": files, "options": dict(self.options), "shown": dict(self.shown)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Spec:
        """What :meth:`to_dict` gave."""
        return cls(**{**told, "files": tuple(Sent(**one) for one in told["files"])})


@dataclass(slots=True)
class Task:
    """A job in its process.

    Attributes:
        folder: of the job.
        spec: what it is to do.
        vault: open.
        key: of keyed operators.
        wanted: releases of a swap that are wanted beside the one that its rule chooses: ``make`` and ``choose``.
    """

    folder: Folder
    spec: Spec
    vault: Vault | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    wanted: Mapping[str, Sequence[int]] = field(default_factory=dict)
    _told: float = 0.0

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the kind."""
        return self.spec.options

    def sent(self, role: str) -> list[Sent]:
        """The uploaded files of a role, in their order."""
        return [one for one in self.spec.files if one.role == role]

    def source(self, role: str) -> Path | None:
        """The one file of a role, or the folder of several; None where there are none."""
        found = self.sent(role)
        if not found:
            return None
        place = self.folder.inputs(role)
        return place / found[0].stored if len(found) == 1 else place

    def shown(self, role: str = "files") -> dict[str, str]:
        """Names on the disk to names that are shown."""
        return {one.stored: one.shown for one in self.sent(role)}

    def renamed(self, value: Any) -> Any:
        """Plain values with the names of files that are shown in the place of those on the disk."""
        if isinstance(value, dict):
            return {name: self.renamed(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.renamed(one) for one in value]
        if isinstance(value, str):
            file, colon, record = value.partition(":")
            return self.shown().get(file, file) + colon + record
        return value

    def table(self) -> Path | None:
        """The table of metadata; for several files one that names them as they lie on the disk."""
        source, files = self.source("metadata"), self.sent("files")
        if source is None or len(files) == 1:
            return source
        called = {one.shown: one.stored for one in files} | {PurePath(one.shown).stem: one.stored for one in files}
        target = self.folder.state / "metadata.jsonl"
        lines = []
        for row in read_documents(source, named=False):
            named = (row.meta.get(key) for key in NAMING)
            mine = next((called[n] for n in (row.id, *named) if isinstance(n, str) and n in called), None)
            if mine is not None:
                lines.append(json.dumps({**row.meta, "file": mine}, default=str) + "\n")
        if not lines:
            raise DataError(f"metadata: no row names any of the {len(files)} files by id or file")
        write_text(target, "".join(lines))
        return target

    def advance(self, stage: str, number: int = 0) -> Callable[[int, int | None], None]:
        """A function that tells steps done, and of how many, of a stage."""

        def told(done: int, of: int | None) -> None:
            moment = time.monotonic()
            if moment - self._told >= TELLING or done == of:
                self._told = moment
                self.folder.tell(stage, done, of or 0, number)

        return told

    def stages(self, names: Mapping[str, str]) -> Callable[[str, int, int], None]:
        """A function that tells (stage, steps done, of how many), by the names that stages are shown with."""
        order = list(names)

        def told(stage: str, done: int, of: int) -> None:
            number = order.index(stage) if stage in order else len(order)
            self.advance(names.get(stage, stage), number)(done, of)

        return told

    def said(self, message: str) -> str:
        """A message with the names that are shown, and without any path of the server."""
        out = message
        for one in self.spec.files:
            out = out.replace(str(self.folder.inputs(one.role) / one.stored), one.shown)
        for role in ROLES:
            out = out.replace(str(self.folder.inputs(role)), role)
        out = out.replace(f"{self.folder.path}/", "").replace(str(self.folder.path), "the job")
        for role in ROLES:
            for stored, shown in self.shown(role).items():
                out = out.replace(stored, shown)
        return out


def write_text(path: Path, text: str) -> None:
    """Write a file whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = PartFile(path)
    try:
        part.write(text.encode("utf-8", "backslashreplace"))
        part.finish()
    finally:
        part.close(remove=True)


def result(task: Task, name: str, path: Path) -> Made:
    """A file of the job's folder as a result."""
    return Made(name, path.relative_to(task.folder.path).as_posix(), media_type(name))


Ending = tuple[dict[str, Any], list[Made]]
"""A summary and the results."""


def ending(state: str, error: str | None, summary: Mapping[str, Any], results: Sequence[Made]) -> dict[str, Any]:
    """How a job ended, as plain values."""
    listed = [{"name": m.name, "path": m.path, "media_type": m.media_type} for m in results]
    return {"state": state, "error": error, "summary": cast(Any, summary), "results": listed}

"""The folder of a job, what its process gets and returns, and how it finds its files.

A folder belongs to the server's user alone (0700, files 0600). Files lie under numbers, never under names that were
sent.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from allonym.errors import AllonymError, DataError
from allonym.files import read_documents
from allonym.files.output import LinesFile
from allonym.keys import Cipher
from allonym.partfile import write_file
from allonym.vault import Vault

_LOCK, _PROGRESS, _ENDED = "lock", "progress.json", "ended"


class InUse(AllonymError):
    """Another process works in the folder."""


class Folder:
    """One job's folder, which may not exist yet.

    Args:
        path: of the folder.
        key: 32 bytes that seal how the job ended, since that names files; None: nothing of it is read or written.

    Attributes:
        path: of the folder.
        arriving: the folder that an upload is written into.
        out: the folder of results.
        state: the folder that an interrupted job continues from.
        made: the folder of a swap's releases or of hardened levels, a file each.
    """

    def __init__(self, path: Path, key: bytes | None = None) -> None:
        self._key = key
        self.path, self.arriving = path, path / "arriving"
        self.out, self.state, self.made = path / "out", path / "state", path / "made"

    def create(self) -> None:
        """Create the folder, for its owner alone."""
        self.path.mkdir(mode=0o700, parents=True)
        self.path.chmod(0o700)

    def get_input_folder(self, role: str) -> Path:
        """Return the folder of the uploaded files of a role."""
        return self.path / "in" / role

    @contextmanager
    def lock(self, timeout: float = 0.0) -> Iterator[None]:
        """Work in the folder alone. The lock ends with the process, however that ends.

        Raises:
            InUse: another process holds it for longer than ``timeout`` seconds.
        """
        handle = open_and_lock_file(self.path / _LOCK, timeout)
        try:
            yield
        finally:
            os.close(handle)

    def read_progress(self) -> dict[str, Any]:
        """Return what :meth:`Task.store_progress` wrote last; empty where it wrote nothing."""
        return _read_json_object(self.path / _PROGRESS) or {}

    def read_ending(self) -> dict[str, Any] | None:
        """Return what :meth:`write_ending` wrote; None while the work is not done."""
        with suppress(OSError, ValueError):
            plain = self._make_cipher().unseal((self.path / _ENDED).read_bytes(), _ENDED.encode())
            value = None if plain is None else json.loads(plain)
            return value if isinstance(value, dict) else None
        return None

    def write_ending(self, ending: Mapping[str, Any]) -> None:
        """Store how the work ended, sealed; from here on it is not done again."""
        data = json.dumps(ending).encode("ascii")
        write_file(self.path / _ENDED, self._make_cipher().seal(data, _ENDED.encode()), private=True)

    def _make_cipher(self) -> Cipher:
        assert self._key is not None  # whoever runs jobs has the key
        return Cipher(self._key)

    def remove_files_except(self, paths: Collection[str]) -> None:
        """Remove all files but those that are needed.

        Args:
            paths: relative paths of files, or of folders with everything in them.
        """
        for parent, folders, names in os.walk(self.path, topdown=False):
            for name in (*names, *folders):
                path = Path(parent, name)
                relative = path.relative_to(self.path).as_posix()
                if relative in (_LOCK, _PROGRESS, _ENDED) or any(f"{relative}/".startswith(f"{n}/") for n in paths):
                    continue
                if path.is_dir() and not path.is_symlink():
                    with suppress(OSError):  # something in it is needed
                        path.rmdir()
                else:
                    path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def open_and_lock_file(path: Path, timeout: float = 0.0) -> int:
    """Return the descriptor of a file that only this process has locked, until it is closed.

    Raises:
        InUse: another process holds it for longer than ``timeout`` seconds.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            if time.monotonic() >= until:
                os.close(handle)
                raise InUse("another process works on this job") from None
            time.sleep(0.05)


def write_private(path: Path, text: str) -> None:
    """Write a text file of the owner's alone, atomically."""
    write_file(path, text.encode("utf-8", "backslashreplace"), private=True)


def write_private_lines(path: Path, lines: Iterable[str]) -> None:
    """Write the lines of a file of the owner's alone, atomically."""
    output = LinesFile(path, private=True)
    try:
        for line in lines:
            output.write(line)
        output.finish()
    finally:
        output.close(remove=True)


def _read_json_object(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else None
    return None


PROGRESS_SECONDS = 0.2
"""Least time between two notes of the progress."""

ROLES = ("files", "anonymised", "gold", "background", "metadata")
"""The roles of uploaded files; the names of the form's fields."""

NAME_COLUMNS = ("id", "doc_id", "document", "file", "filename", "file_name", "path")
"""Columns by which a table of metadata names files."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """An uploaded file: its role, the name that is shown (at first as it was sent), the name on the disk, its size."""

    role: str
    shown: str = field(repr=False)
    stored: str
    size: int


@dataclass(frozen=True, slots=True)
class Spec:
    """What a job is to do, as it was requested; it never changes.

    Attributes:
        kind: anonymize, restore, swap, evaluate, harden or project.
        name: as it is shown.
        actor: who made it, for audit logs.
        files: the uploads.
        options: as the wire type of the kind has them, without the policy.
        policy: describes the policy, see :meth:`allonym.server.policies.Policies.make_policy_json`; empty: none.
        shown: options as they are shown again.
    """

    kind: str
    name: str = field(repr=False)
    actor: str
    files: tuple[InputFile, ...] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    policy: str = field(default="", repr=False)
    shown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spec:
        """Make a specification of what :func:`dataclasses.asdict` gave."""
        return cls(**{**values, "files": tuple(InputFile(**file) for file in values["files"])})


@dataclass(slots=True)
class Task:
    """A job in its process.

    Attributes:
        folder: of the job.
        spec: what it is to do.
        vault: open.
        key: of keyed operators.
        releases: of a swap or the levels of hardening, besides the one that is suggested: those to ``make`` and to
            ``choose``.
    """

    folder: Folder
    spec: Spec
    vault: Vault | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    releases: Mapping[str, Sequence[int]] = field(default_factory=dict)
    _noted: float = 0.0

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the kind."""
        return self.spec.options

    def list_chosen_releases(self, suggested: int) -> list[int]:
        """Return the releases or levels whose files are results: the suggested one and the chosen ones, in order."""
        chosen = self.releases.get("choose", ())
        return [*(() if suggested in chosen else (suggested,)), *chosen]

    def list_uploads(self, role: str) -> list[InputFile]:
        """Return the uploaded files of a role, in their order."""
        return [file for file in self.spec.files if file.role == role]

    def get_input_file_or_folder(self, role: str) -> Path | None:
        """Return the one file of a role, or the folder of several; None where there are none."""
        files = self.list_uploads(role)
        if not files:
            return None
        folder = self.folder.get_input_folder(role)
        return folder / files[0].stored if len(files) == 1 else folder

    def map_stored_to_shown_names(self, role: str = "files") -> dict[str, str]:
        """Return the shown names of a role's files by their names on the disk."""
        return {file.stored: file.shown for file in self.list_uploads(role)}

    def replace_stored_file_names(self, plain_value: Any) -> Any:
        """Replace the names on the disk by those that are shown, in plain values."""
        if isinstance(plain_value, dict):
            return {name: self.replace_stored_file_names(item) for name, item in plain_value.items()}
        if isinstance(plain_value, (list, tuple)):
            return [self.replace_stored_file_names(item) for item in plain_value]
        if isinstance(plain_value, str):
            file, colon, record = plain_value.partition(":")
            return self.map_stored_to_shown_names().get(file, file) + colon + record
        return plain_value

    def get_metadata_table(self) -> Path | None:
        """Return the table of metadata; for several files, one that names them as they lie on the disk."""
        source, files = self.get_input_file_or_folder("metadata"), self.list_uploads("files")
        if source is None or len(files) == 1:
            return source
        stored = {f.shown: f.stored for f in files} | {PurePath(f.shown).stem: f.stored for f in files}
        lines = []
        for row in read_documents(source, named=False):
            names = (row.id, *(row.meta.get(key) for key in NAME_COLUMNS))
            file = next((stored[name] for name in names if isinstance(name, str) and name in stored), None)
            if file is not None:
                lines.append(json.dumps({**row.meta, "file": file}, default=str) + "\n")
        if not lines:
            raise DataError(f"metadata: no row names any of the {len(files)} files by id or file")
        target = self.folder.state / "metadata.jsonl"
        write_private(target, "".join(lines))
        return target

    def store_progress(self, stage: str, steps_done: int, steps_total: int | None, stage_number: int = 0) -> None:
        """Store how many steps of a stage are done, their total, and the number of the stage."""
        moment = time.monotonic()
        if moment - self._noted >= PROGRESS_SECONDS or steps_done == steps_total:
            self._noted = moment
            values = {"stage": stage, "done": steps_done, "of": steps_total or 0, "number": stage_number}
            # No wait for the disk: what a crash loses is no work.
            write_file(self.folder.path / _PROGRESS, json.dumps(values).encode("ascii"), private=True, is_durable=False)

    def make_stage_progress_callback(self, shown_stage_names: Mapping[str, str]) -> Callable[[str, int, int], None]:
        """Return a function that notes (stage, steps done, their total), under the names that stages are shown with."""
        order = list(shown_stage_names)

        def note_stage(stage: str, count: int, total: int) -> None:
            number = order.index(stage) if stage in order else len(order)
            self.store_progress(shown_stage_names.get(stage, stage), count, total, number)

        return note_stage

    def hide_paths_in_message(self, message: str) -> str:
        """Return a message with the names that are shown, and without any path of the server."""
        for file in self.spec.files:
            message = message.replace(str(self.folder.get_input_folder(file.role) / file.stored), file.shown)
        for role in ROLES:
            message = message.replace(str(self.folder.get_input_folder(role)), role)
        message = message.replace(f"{self.folder.path}/", "").replace(str(self.folder.path), "the job")
        for role in ROLES:
            for stored, shown in self.map_stored_to_shown_names(role).items():
                message = message.replace(stored, shown)
        return message

    def describe_result(self, name: str, path: Path) -> dict[str, str]:
        """Return a result: its name, and its path in the job's folder."""
        return {"name": name, "path": path.relative_to(self.folder.path).as_posix()}


Outcome = tuple[dict[str, Any], list[dict[str, str]]]
"""A summary and the results."""


def make_ending(
    state: str,
    error: str | None = None,
    summary: Mapping[str, Any] | None = None,
    results: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Return how a job ended, as plain values."""
    return {"state": state, "error": error, "summary": dict(summary or {}), "results": list(results)}

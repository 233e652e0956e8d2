"""The journal with which an interrupted run continues.

A run writes hidden part files beside their targets and renames them at the end. The journal beside them has JSON lines
and is only appended to. A line names each part file before it is created. The others record the progress of input and
outputs, and are written after the bytes that they describe, so the last of them is true whenever the run is killed. The
next run cuts the part files to the recorded lengths and continues. An incomplete last line is ignored.

The journal of a run that was called with ``resume`` stays when the run has ended, so that the next such call tells that
nothing is left to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from allonym.errors import UsageError
from allonym.keys import encode_secret, expand_key
from allonym.partfile import lock_file, open_plain_file

SCHEMA = 1


def journal_path(target: Path) -> Path:
    """Return the path of the journal of a run that writes the file or folder ``target``."""
    return target.with_name(f".{target.name}.allonym-journal")


class Journal:
    """The journal of one run; locked, so that no second run writes the same target.

    Args:
        target: the file or folder that the run writes.
        identity: settings that a resumed run must share: policy, fields, input and so on. It has no secrets.
        key: the secret of keyed operators; a salted digest of it is compared, never the key itself.
        resume: whether to continue an interrupted run; otherwise its journal is an error unless ``overwrite``.
        overwrite: whether to discard an interrupted run.

    Attributes:
        path: path of the journal.
        resumed: whether an earlier run goes on, or had ended.
        file_lines: of the earlier run: the line of each finished file, in order.
        checkpoint: of the earlier run: the last line of the unfinished file; empty if there is none.
        ending: of the earlier run: the line that says that it had ended; empty if it had not.
        salt: random digits, which a resumed run keeps.

    Raises:
        UsageError: the earlier run had other settings, or was interrupted and neither option is given; or something
            other than a plain file of this user has the journal's name.
    """

    def __init__(
        self, target: Path, identity: Mapping[str, object], key: bytes | str | None, *, resume: bool, overwrite: bool
    ) -> None:
        self.path = journal_path(target)
        self.file_lines: list[Mapping[str, Any]] = []
        self.checkpoint: Mapping[str, Any] = {}
        self.ending: Mapping[str, Any] = {}
        self.resumed = False
        self.salt = ""
        self._parts: dict[str, str] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: BinaryIO = _open_and_lock_journal(self.path, target)
        try:
            lines, self._length = _read_complete_lines(self._stream)
            self._parts = {line["of"]: line["part"] for line in lines if "part" in line}
            ending = lines[-1] if lines and "ended" in lines[-1] else {}
            if lines and resume:
                check_journal_head(lines[0], identity, key, has_ended=bool(ending))
                self.salt = str(lines[0]["salt"])
                lines = [line for line in lines[1:] if "part" not in line and "ended" not in line]
                self.file_lines = [line for line in lines if "done" in line]
                self.checkpoint = lines[-1] if lines and "at" in lines[-1] else {}
                self.ending = ending
                self.resumed = True
                if self._length < os.fstat(self._stream.fileno()).st_size:
                    self._stream.truncate(self._length)
            elif lines and not ending and not overwrite:
                raise UsageError(f"an unfinished run lies at {self.path}: resume continues it, overwrite begins again")
            elif lines and not overwrite and os.path.lexists(target):
                raise UsageError(f"{target} exists; --overwrite (overwrite=True in Python) replaces it")
            else:
                self.remove_parts()
                self._stream.truncate(0)
                self._length = 0
                head = make_journal_head(identity, key)
                self.append(head)
                self.salt = str(head["salt"])
        except BaseException:
            if not self._length:  # nothing is in it, since the disk is full
                self.path.unlink(missing_ok=True)
            self._stream.close()
            raise

    def append(self, line: Mapping[str, object], *, is_durable: bool = True) -> None:
        """Write a line, and wait until it is on the disk if it ``is_durable``."""
        data = json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._stream.write(rest) :]
            if is_durable:
                os.fsync(self._stream.fileno())
        except OSError:
            with suppress(OSError):
                self._stream.truncate(self._length)
            raise
        self._length += len(data)

    def announce_part(self, target: Path, part: Path) -> None:
        """Note the name of a part file that is about to be created."""
        names = (os.path.relpath(path, self.path.parent) for path in (target, part))
        target_name, part_name = names
        self.append({"part": part_name, "of": target_name}, is_durable=False)
        self._parts[target_name] = part_name

    def find_part(self, target: Path) -> Path | None:
        """Return the part file of a target that the earlier run has left, if there is one."""
        name = self._parts.get(os.path.relpath(target, self.path.parent))
        part = None if name is None else self.path.parent / name
        return part if part is not None and os.path.lexists(part) else None

    def remove_parts(self, *but: Path) -> None:
        """Remove all part files that the earlier run has left, but some."""
        for target, name in list(self._parts.items()):
            part = self.path.parent / name
            if part not in but:
                part.unlink(missing_ok=True)
                del self._parts[target]

    def close(self, *, remove: bool) -> None:
        """Close the journal; remove it if the run is complete or has failed permanently."""
        if remove:
            self.path.unlink(missing_ok=True)
        self._stream.close()


def make_journal_head(identity: Mapping[str, object], key: bytes | str | None) -> dict[str, object]:
    """Return the first line of a journal, which identifies the run."""
    salt = os.urandom(16).hex()
    return {"schema": SCHEMA, "salt": salt, "key": _digest_key(key, salt), **identity}


def check_journal_head(
    head: Mapping[str, object], identity: Mapping[str, object], key: bytes | str | None, *, has_ended: bool = False
) -> None:
    """Raise :class:`UsageError` if a run that began with ``head`` cannot be resumed with these settings."""
    differing = [name for name, value in identity.items() if head.get(name) != value]
    if head.get("schema") != SCHEMA:
        differing.append("schema")
    if head.get("key") != _digest_key(key, str(head.get("salt"))):
        differing.append("key")
    if differing:
        earlier = "the run that wrote it had ended, and" if has_ended else "the unfinished run"
        raise UsageError(
            f"{earlier} cannot be resumed, since these differ: {', '.join(differing)}; "
            "run it as before, or begin again with overwrite"
        )


def _open_and_lock_journal(path: Path, target: Path) -> BinaryIO:
    """Open the journal, made anew where there is none; its writes go to the disk at once, at the end of the file.

    Raises:
        UsageError: another run has it locked, or it is no plain file of this user.
    """
    while True:
        try:
            handle = open_plain_file(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            try:
                handle = open_plain_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            except FileExistsError:  # another run was faster
                continue
        if not lock_file(handle):
            os.close(handle)
            raise UsageError(f"another run is writing {target}")
        if os.fstat(handle).st_nlink:
            return os.fdopen(handle, "r+b", buffering=0)
        os.close(handle)  # another run has ended and removed it meanwhile


def _read_complete_lines(stream: BinaryIO) -> tuple[list[dict[str, Any]], int]:
    stream.seek(0)
    lines: list[dict[str, Any]] = []
    length = 0
    for raw in BytesIO(stream.read()):
        try:
            line = json.loads(raw) if raw.endswith(b"\n") else None
        except ValueError:
            line = None
        if not isinstance(line, dict):
            break
        lines.append(line)
        length += len(raw)
    return lines, length


def _digest_key(key: bytes | str | None, salt: str) -> str:
    if key is None:
        return ""
    return expand_key(encode_secret(key), b"allonym resume " + salt.encode()).hex()

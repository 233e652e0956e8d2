"""The journal with which an interrupted run continues.

A run writes hidden part files beside their targets and renames them at the end. The journal beside them has JSON lines
and is only appended to. Each line records the progress of input and outputs, and is written after the bytes that it
describes, so the last line is true whenever the run is killed. The next run cuts the part files to the recorded lengths
and continues. An incomplete last line is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from allonym.errors import UsageError
from allonym.keys import encode_secret, expand_key

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
        resumed: whether the run was resumed.
        file_lines: of the interrupted run: the line of each finished file, in order.
        checkpoint: of the interrupted run: the last line of the unfinished file; empty if there is none.
        salt: random digits, which a resumed run keeps.

    Raises:
        UsageError: the interrupted run had other settings, or there is one and neither option is given.
    """

    def __init__(
        self, target: Path, identity: Mapping[str, object], key: bytes | str | None, *, resume: bool, overwrite: bool
    ) -> None:
        self.path = journal_path(target)
        self.file_lines: list[Mapping[str, Any]] = []
        self.checkpoint: Mapping[str, Any] = {}
        self.resumed = False
        self.salt = ""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: IO[bytes] = self.path.open("a+b")
        try:
            _lock_journal(self._stream, target)
            lines, length = _read_complete_lines(self._stream)
            if lines and resume:
                check_journal_head(lines[0], identity, key)
                self.salt = str(lines[0]["salt"])
                self.file_lines = [line for line in lines[1:] if "done" in line]
                self.checkpoint = lines[-1] if "at" in lines[-1] else {}
                self.resumed = True
                self._stream.truncate(length)
            elif lines and not overwrite:
                raise UsageError(f"an unfinished run lies at {self.path}: resume continues it, overwrite begins again")
            else:
                self._stream.truncate(0)
                head = make_journal_head(identity, key)
                self.append(head)
                self.salt = str(head["salt"])
        except BaseException:
            self._stream.close()
            raise

    def append(self, line: Mapping[str, object]) -> None:
        """Write a line and wait until it is on the disk."""
        self._stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self, *, remove: bool) -> None:
        """Close the journal; remove it if the run is complete or has failed permanently."""
        if remove:
            self.path.unlink(missing_ok=True)
        self._stream.close()


def make_journal_head(identity: Mapping[str, object], key: bytes | str | None) -> dict[str, object]:
    """Return the first line of a journal, which identifies the run."""
    salt = os.urandom(16).hex()
    return {"schema": SCHEMA, "salt": salt, "key": _digest_key(key, salt), **identity}


def check_journal_head(head: Mapping[str, object], identity: Mapping[str, object], key: bytes | str | None) -> None:
    """Raise :class:`UsageError` if a run that began with ``head`` cannot be resumed with these settings."""
    differing = [name for name, value in identity.items() if head.get(name) != value]
    if head.get("schema") != SCHEMA:
        differing.append("schema")
    if head.get("key") != _digest_key(key, str(head.get("salt"))):
        differing.append("key")
    if differing:
        raise UsageError(
            f"the unfinished run cannot be resumed, since these differ: {', '.join(differing)}; "
            "run it as before, or begin again with overwrite"
        )


def _read_complete_lines(stream: IO[bytes]) -> tuple[list[dict[str, Any]], int]:
    stream.seek(0)
    lines: list[dict[str, Any]] = []
    length = 0
    for raw in stream:
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


def _lock_journal(stream: IO[bytes], target: Path) -> None:
    with contextlib.suppress(ImportError):  # Windows has no such lock
        import fcntl

        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another run is writing {target}") from None

"""Finished stages of a long run, for resuming it. Each is written atomically and named by a digest of its inputs.

The folder may contain data of a corpus: it is as sensitive as the corpus, and only its owner may read it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from allonym import __version__
from allonym.errors import UsageError
from allonym.partfile import write_file

FORMAT = 1
"""Version of the files; files of another version are not read."""


def digest_values(*parts: object) -> str:
    """Return a 128-bit BLAKE2b digest of plain values and of allonym's version, as 32 hexadecimal digits."""
    values_json = json.dumps([FORMAT, __version__, *parts], sort_keys=True, ensure_ascii=True, default=str)
    return blake2b(values_json.encode("ascii"), digest_size=16).hexdigest()


class State:
    """A folder of finished stages.

    Args:
        folder: created if missing, readable only by its owner.

    Raises:
        UsageError: it is not a folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.folder} must be a folder, but is a file")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def load_value(self, name: str) -> Any:
        """Return the values under ``name``, or None if there are none or the file is incomplete."""
        with suppress(OSError, ValueError, KeyError):
            return json.loads(self._file_path_of(name).read_bytes())["value"]
        return None

    def store_value(self, name: str, value: Any) -> Any:
        """Store plain values, and return them as they will be read."""
        data = json.dumps({"value": value}).encode("ascii")
        write_file(self._file_path_of(name), data, private=True)
        return json.loads(data)["value"]

    def clear(self) -> None:
        """Remove every file of the state, and the folder if it is then empty."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _file_path_of(self, name: str) -> Path:
        return self.folder / f"{name}.json"

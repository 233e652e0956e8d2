"""Answers on disk: encrypted, named by a keyed digest of the request, safe for many processes at once.

Both keys derive from the caller's secret, so that neither a request nor an answer can be read or guessed from the
folder. A file that cannot be opened (another key, a damaged disk) counts as missing.
"""

from __future__ import annotations

import os
from pathlib import Path

from allonym.keys import Cipher, expand_key

_VERSION = b"allonym llm answer 1"


class Cache:
    """A folder of answers.

    Args:
        folder: created when needed, for the owner only.
        key: 32 random bytes or more.
    """

    def __init__(self, folder: str | Path, key: bytes) -> None:
        self._folder = Path(folder)
        self._naming = expand_key(key, b"name")
        self._cipher = Cipher(expand_key(key, b"seal"))

    def name(self, request: bytes) -> str:
        """Return the request's name, 64 hexadecimal digits; also its ``custom_id`` in batch files."""
        return expand_key(self._naming, request).hex()

    def get(self, name: str) -> bytes | None:
        """Return the answer with that name; None where there is none that this key opens."""
        try:
            return self._cipher.unseal(self._path(name).read_bytes(), _VERSION + name.encode())
        except OSError:
            return None

    def put(self, name: str, answer: bytes) -> None:
        """Store an answer. The file exists completely or not at all, whoever else writes it at the same time.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sealed = self._cipher.seal(answer, _VERSION + name.encode())
        part = path.with_name(f"{path.name}.{os.urandom(6).hex()}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(sealed)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name[2:]}.bin"

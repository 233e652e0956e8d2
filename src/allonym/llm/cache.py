"""Answers on disk: found by a keyed digest of the request, encrypted, safe for many processes at once.

Both keys derive from the caller's secret, so that neither a request nor an answer can be read or guessed from the
folder. A file that cannot be opened (another key, a torn disk) counts as not there.
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

_NONCE = 12
_VERSION = b"allonym llm answer 1"


class Cache:
    """A folder of answers.

    Args:
        folder: is made where it is needed, for the owner only.
        key: 32 random bytes or more.
    """

    def __init__(self, folder: str | Path, key: bytes) -> None:
        self._folder = Path(folder)
        self._naming = hmac.digest(key, b"name", "sha256")
        self._sealing = hmac.digest(key, b"seal", "sha256")

    def name(self, request: bytes) -> str:
        """The request's name, 64 hexadecimal digits; also its ``custom_id`` in batch files."""
        return hmac.digest(self._naming, request, "sha256").hex()

    def get(self, name: str) -> bytes | None:
        """The answer of that name; None where there is none that this key opens."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            data = self._path(name).read_bytes()
            return AESGCM(self._sealing).decrypt(data[:_NONCE], data[_NONCE:], _VERSION + name.encode())
        except (OSError, InvalidTag, ValueError):
            return None

    def put(self, name: str, answer: bytes) -> None:
        """Keep an answer. The file is there whole or not at all, whoever else writes it at the same time.

        Raises:
            OSError: the folder cannot be written.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        nonce = os.urandom(_NONCE)
        sealed = nonce + AESGCM(self._sealing).encrypt(nonce, answer, _VERSION + name.encode())
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

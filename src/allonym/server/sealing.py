"""Texts at rest in the server's database, encrypted under a key that is derived from the server's secret."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from allonym.errors import DatabaseError
from allonym.keys import Cipher, encode_secret, expand_key, stretch_passphrase
from allonym.vault.keys import Secret

_PURPOSE = b"allonym server sealing 1"


class Sealing:
    """Seals texts for one purpose each, so that no value can be moved to another column unnoticed.

    Args:
        secret: the server's. The key is derived from it by HMAC-SHA256, from a passphrase by scrypt (RFC 7914).
    """

    def __init__(self, secret: Secret) -> None:
        if isinstance(secret, str):
            secret = stretch_passphrase(secret, _PURPOSE, 2**16)
        self._key = expand_key(_PURPOSE, secret)
        self._cipher = Cipher(self._key)

    def __repr__(self) -> str:
        return "Sealing()"

    def seal(self, text: str, purpose: str = "") -> bytes:
        """Encrypt a text with AES-256-GCM and a random nonce, bound to its purpose."""
        return self._cipher.seal(encode_secret(text), purpose.encode())

    def unseal(self, sealed: bytes, purpose: str = "") -> str:
        """Decrypt a sealed text.

        Raises:
            DatabaseError: it was sealed with another secret or for another purpose, or was changed.
        """
        plain = self._cipher.unseal(bytes(sealed), purpose.encode())
        if plain is None:
            raise DatabaseError("a stored text does not open with this server's secret, or was changed")
        return plain.decode("utf-8", "surrogatepass")

    def seal_json(self, value: Any, purpose: str) -> bytes:
        """Seal a value as JSON; see :meth:`seal`."""
        return self.seal(json.dumps(value), purpose)

    def unseal_json(self, sealed: bytes, purpose: str) -> Any:
        """Return the value that :meth:`seal_json` sealed; see :meth:`unseal`."""
        return json.loads(self.unseal(sealed, purpose))

    def digest(self, *values: str) -> str:
        """Return a keyed digest of the values, 32 hexadecimal digits, to look up a row whose content is sealed."""
        return hashlib.blake2b("\0".join(values).encode(), key=self._key, digest_size=16).hexdigest()

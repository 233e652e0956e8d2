"""Text at rest in the server's database: encrypted under a key that comes out of the server's secret."""

from __future__ import annotations

import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from allonym.errors import DatabaseError
from allonym.vault.keys import Secret, encoded

_NONCE = 12
_PURPOSE = b"allonym server sealing 1"


class Sealing:
    """Seals texts for one purpose, so that a value cannot be moved to another column unseen.

    Args:
        secret: the server's; the key comes out of it by HMAC-SHA256, out of a passphrase by scrypt (RFC 7914).
    """

    def __init__(self, secret: Secret) -> None:
        if isinstance(secret, str):
            secret = hashlib.scrypt(encoded(secret), salt=_PURPOSE, n=2**16, r=8, p=1, maxmem=2**27, dklen=32)
        self._key = hmac.digest(_PURPOSE, secret, "sha256")
        self._cipher = AESGCM(self._key)

    def __repr__(self) -> str:
        return "Sealing()"

    def seal(self, text: str, about: str = "") -> bytes:
        """The text, encrypted with AES-256-GCM and a random nonce, bound to what it is ``about``."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode("utf-8", "surrogatepass"), about.encode())

    def opened(self, sealed: bytes, about: str = "") -> str:
        """The text again.

        Raises:
            DatabaseError: it was sealed with another secret or about something else, or was changed.
        """
        try:
            plain = self._cipher.decrypt(bytes(sealed[:_NONCE]), bytes(sealed[_NONCE:]), about.encode())
        except (InvalidTag, ValueError):
            raise DatabaseError("a stored text does not open with this server's secret, or was changed") from None
        return plain.decode("utf-8", "surrogatepass")

    def digest(self, *values: str) -> str:
        """A keyed digest of the values as 32 hexadecimal digits, to look something up that is stored sealed."""
        return hashlib.blake2b("\0".join(values).encode(), key=self._key, digest_size=16).hexdigest()

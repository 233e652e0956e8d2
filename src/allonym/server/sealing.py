"""Text at rest in the server's database: encrypted under a key that comes out of the server's secret."""

from __future__ import annotations

import hashlib

from allonym.errors import DatabaseError
from allonym.keys import Cipher, encode_secret, expand_key, stretch_passphrase
from allonym.vault.keys import Secret

_PURPOSE = b"allonym server sealing 1"


class Sealing:
    """Seals texts for one purpose, so that a value cannot be moved to another column unseen.

    Args:
        secret: the server's; the key comes out of it by HMAC-SHA256, out of a passphrase by scrypt (RFC 7914).
    """

    def __init__(self, secret: Secret) -> None:
        if isinstance(secret, str):
            secret = stretch_passphrase(secret, _PURPOSE, 2**16)
        self._key = expand_key(_PURPOSE, secret)
        self._cipher = Cipher(self._key)

    def __repr__(self) -> str:
        return "Sealing()"

    def seal(self, text: str, about: str = "") -> bytes:
        """The text, encrypted with AES-256-GCM and a random nonce, bound to what it is ``about``."""
        return self._cipher.seal(encode_secret(text), about.encode())

    def opened(self, sealed: bytes, about: str = "") -> str:
        """The text again.

        Raises:
            DatabaseError: it was sealed with another secret or about something else, or was changed.
        """
        plain = self._cipher.unseal(bytes(sealed), about.encode())
        if plain is None:
            raise DatabaseError("a stored text does not open with this server's secret, or was changed")
        return plain.decode("utf-8", "surrogatepass")

    def digest(self, *values: str) -> str:
        """A keyed digest of the values as 32 hexadecimal digits, to look something up that is stored sealed."""
        return hashlib.blake2b("\0".join(values).encode(), key=self._key, digest_size=16).hexdigest()

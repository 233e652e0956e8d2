"""Keys: every derivation of one key from another, and the encryption of stored values.

Operators' keys derive from the caller's one secret by HKDF (RFC 5869, SHA-512), separately for each purpose, so that no
output of one operator helps against another. Secrets of type bytes are taken as random. Secrets of type str are
passphrases and go through scrypt (RFC 7914) first: about 50 ms, once per process and passphrase.
"""

from __future__ import annotations

import hmac
import os
from functools import lru_cache
from hashlib import scrypt

from allonym.errors import UsageError

MIN_KEY_BYTES = 16
_NONCE_BYTES = 12
_TAG_BYTES = 16


def require_key(key: bytes | str | None, operator: str) -> bytes | str:
    """Return the key if it is long enough.

    Raises:
        UsageError: there is no key, or it is shorter than 16 bytes. The message does not show it.
    """
    if key is None:
        raise UsageError(
            f"operator {operator!r} needs a key of at least {MIN_KEY_BYTES} bytes: --key-file FILE (key=... in "
            "Python), made by head -c 32 /dev/urandom > FILE; keep it as safe as the source. "
            "Or keep a vault: --vault (vault=... in Python), which has a key of its own"
        )
    if not isinstance(key, (bytes, str)):
        raise UsageError(f"a key must be bytes or str, got {type(key).__name__}")
    size = len(encode_secret(key))
    if size < MIN_KEY_BYTES:
        raise UsageError(f"a key needs at least {MIN_KEY_BYTES} bytes, got {size}")
    return key


def encode_secret(secret: bytes | str) -> bytes:
    """The bytes of a secret; of a text its UTF-8, in which lone surrogates are allowed."""
    return secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogatepass")


def stretch_passphrase(passphrase: str, salt: bytes, n: int, r: int = 8, p: int = 1, length: int = 32) -> bytes:
    """Derive ``length`` bytes from a passphrase by scrypt with the given cost."""
    memory = 256 * n * r + 2**20
    return scrypt(encode_secret(passphrase), salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=length)


def expand_key(key: bytes, purpose: bytes) -> bytes:
    """Derive 32 bytes for one purpose from a random key: HMAC-SHA256, the expand step of HKDF for one block."""
    return hmac.digest(key, purpose, "sha256")


def derive_operator_key(key: bytes | str | None, operator: str, scope: str = "") -> bytes:
    """Derive 64 bytes for one operator and scope from the caller's secret.

    Raises:
        UsageError: there is no key, or it is too short.
    """
    return _derive_subkey(require_key(key, operator), operator, scope)


@lru_cache(maxsize=8)
def _derive_root_key(key: bytes | str) -> bytes:
    if isinstance(key, str):
        key = stretch_passphrase(key, b"allonym passphrase 1", 2**14, length=64)
    return hmac.digest(b"allonym 1", key, "sha512")


@lru_cache(maxsize=64)
def _derive_subkey(key: bytes | str, purpose: str, scope: str) -> bytes:
    info = b"\0".join((purpose.encode(), encode_secret(scope)))
    return hmac.digest(_derive_root_key(key), info + b"\1", "sha512")


class Cipher:
    """AES-256-GCM with random 96-bit nonces, which stand before what they encrypt.

    Args:
        key: 32 bytes.
    """

    __slots__ = ("_aead",)

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(key)

    def seal(self, plain: bytes, about: bytes) -> bytes:
        """Encrypt a value, bound to what it is ``about``."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, plain, about)

    def unseal(self, sealed: bytes, about: bytes) -> bytes | None:
        """Decrypt a value; None where key or ``about`` differ, or where it was changed."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
            return None
        try:
            return self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
        except InvalidTag:
            return None

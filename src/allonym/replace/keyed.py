"""Operators that need a key, and how their keys are derived.

All keys derive from the caller's one secret by HKDF (RFC 5869, SHA-512), separately for each purpose, so that no output
of one operator helps against another. Secrets of type bytes are taken as random. Secrets of type str are passphrases
and go through scrypt first (about 50 ms, once per process and passphrase). Both need 16 bytes.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32decode, b32encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import scrypt
from typing import TYPE_CHECKING, Any

from allonym.errors import PolicyError, UsageError
from allonym.replace.mention import Mention, Setting, traits
from allonym.text.placeholders import Grammar

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

MIN_KEY_BYTES = 16
MARK = ":e1:"
_BASE32 = "[A-Za-z2-7]{26,}"
_TOKEN = rf"\[(\w{{1,64}}):[eE]1:({_BASE32})\]"
TOKEN = re.compile(_TOKEN)
"""Everything that looks like an encrypted mention: ``[LABEL:e1:BASE32]``. Case does not matter when it is read."""

LOOSE_TOKEN = re.compile(_TOKEN + r"|\w{1,64}\s{0,3}:\s{0,3}[eE]1\s{0,3}:")
"""The same, and the beginning of one that lost its brackets, which restoring reads as well."""

_NOT_WORD = re.compile(r"\W+")
_BLOCK = 16


def require_key(key: bytes | str | None, operator: str) -> bytes | str:
    """Return the key if it is long enough.

    Raises:
        UsageError: there is no key, or it is shorter than 16 bytes. The message does not show it.
    """
    if key is None:
        raise UsageError(
            f"operator {operator!r} needs a key: pass key=... (--key-file on the command line) with at least "
            f"{MIN_KEY_BYTES} bytes, for instance secrets.token_bytes(32), and keep it as safe as the source; "
            "or keep a vault (vault=..., --vault), which has a key of its own"
        )
    if not isinstance(key, (bytes, str)):
        raise UsageError(f"a key must be bytes or str, got {type(key).__name__}")
    size = len(key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass"))
    if size < MIN_KEY_BYTES:
        raise UsageError(f"a key needs at least {MIN_KEY_BYTES} bytes, got {size}")
    return key


@lru_cache(maxsize=8)
def _root_key(key: bytes | str) -> bytes:
    if isinstance(key, str):
        key = scrypt(key.encode("utf-8", "surrogatepass"), salt=b"allonym passphrase 1", n=2**14, r=8, p=1, dklen=64)
    return hmac.digest(b"allonym 1", key, "sha512")


@lru_cache(maxsize=64)
def _derive_subkey(key: bytes | str, purpose: str, scope: str) -> bytes:
    info = b"\0".join((purpose.encode(), scope.encode("utf-8", "surrogatepass")))
    return hmac.digest(_root_key(key), info + b"\1", "sha512")


def subkey(key: bytes | str | None, operator: str, scope: str = "") -> bytes:
    """Derive 64 bytes for one operator and scope from the caller's secret.

    Raises:
        UsageError: there is no key, or it is too short.
    """
    return _derive_subkey(require_key(key, operator), operator, scope)


def _check_hash(options: Mapping[str, Any], where: str) -> None:
    length = options.get("length", 16)
    if not 8 <= length <= 64:
        raise PolicyError(f"{where}.length must be from 8 to 64 hexadecimal digits, got {length!r}")


@traits(keyed=True, check=_check_hash, grammar=lambda options: Grammar(("[{label}:{code}]",), code="[0-9a-f]{8,64}"))
def hash(mention: Mention, setting: Setting, *, length: int = 16) -> str:
    """Write a keyed fingerprint, ``[PERSON:5f0c...]``: HMAC-SHA256 of the entity's key and family.

    The same name, key and scope give the same fingerprint in every document; without the key nobody can look it up.

    Args:
        length: hexadecimal digits shown, 8 to 64.
    """
    family = setting.policy.taxonomy.lineage(mention.entity.label)[-1]
    message = f"{family}\0{mention.entity.key}".encode("utf-8", "surrogatepass")
    value = hmac.digest(subkey(setting.key, "hash", setting.scope), message, "sha256").hex()
    return f"[{mention.label}:{value[:length]}]"


def _encrypt_grammar(options: Mapping[str, Any]) -> Grammar:
    return Grammar(("[{label}:{code}]",), code=f"[eE]1:{_BASE32}", specific=True)


@traits(keyed=True, exact=True, grammar=_encrypt_grammar)
def encrypt(mention: Mention, setting: Setting) -> str:
    """Write the text itself, encrypted: ``[PERSON:e1:BASE32]``. The key alone restores it.

    AES-256-SIV (RFC 5297): the same text, label and key give the same token; a changed token is refused. Label and
    version are authenticated. Texts are padded to a multiple of 16 bytes, so that a token tells little of its length.
    """
    return seal(mention.text, mention.label, setting.key)


def seal(text: str, label: str, key: bytes | str | None) -> str:
    """Encrypt a text into a token, in which ``label`` is readable."""
    name = _NOT_WORD.sub("_", label)[:64] or "_"
    plain = text.encode("utf-8", "surrogatepass") + b"\x80"
    plain += bytes(-len(plain) % _BLOCK)
    sealed = _cipher(subkey(key, "encrypt")).encrypt(plain, _associated_data(name))
    return f"[{name}{MARK}{b32encode(sealed).decode().rstrip('=')}]"


def unseal(token: re.Match[str], key: bytes | str) -> str | None:
    """Decrypt a match of :data:`TOKEN`; None where the key does not fit or the token was changed."""
    from cryptography.exceptions import InvalidTag

    code = token[2].upper()
    try:
        sealed = b32decode(code + "=" * (-len(code) % 8))
        plain = _cipher(subkey(key, "encrypt")).decrypt(sealed, _associated_data(token[1]))
        text, mark, padding = plain.rpartition(b"\x80")
        return text.decode("utf-8", "surrogatepass") if mark and not padding.strip(b"\0") else None
    except (InvalidTag, ValueError):
        return None


def _associated_data(name: str) -> list[bytes]:
    return [b"allonym:e1", name.upper().encode("utf-8", "surrogatepass")]


@lru_cache(maxsize=8)
def _cipher(key: bytes) -> AESSIV:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(key)

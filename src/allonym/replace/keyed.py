"""Operators that need a key. Each has a key of its own, which :mod:`allonym.keys` derives from the caller's secret."""

from __future__ import annotations

import hmac
import re
from base64 import b32decode, b32encode
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from allonym.errors import PolicyError
from allonym.keys import derive_operator_key
from allonym.replace.mention import Mention, Setting, traits
from allonym.text.placeholders import Grammar

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

MARK = ":e1:"
_BASE32 = "[A-Za-z2-7]{26,}"
_TOKEN = rf"\[(\w{{1,64}}):[eE]1:({_BASE32})\]"
TOKEN = re.compile(_TOKEN)
"""Everything that looks like an encrypted mention: ``[LABEL:e1:BASE32]``. Case does not matter when it is read."""

LOOSE_TOKEN = re.compile(_TOKEN + r"|\w{1,64}\s{0,3}:\s{0,3}[eE]1\s{0,3}:")
"""The same, and the beginning of one that lost its brackets, which restoring reads as well."""

_NOT_WORD = re.compile(r"\W+")
_BLOCK = 16


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
    value = hmac.digest(derive_operator_key(setting.key, "hash", setting.scope), message, "sha256").hex()
    return f"[{mention.label}:{value[:length]}]"


def _declare_encrypt_grammar(options: Mapping[str, Any]) -> Grammar:
    return Grammar(("[{label}:{code}]",), code=f"[eE]1:{_BASE32}", specific=True)


@traits(keyed=True, exact=True, grammar=_declare_encrypt_grammar)
def encrypt(mention: Mention, setting: Setting) -> str:
    """Write the text itself, encrypted: ``[PERSON:e1:BASE32]``. The key alone restores it.

    AES-256-SIV (RFC 5297): the same text, label and key give the same token; a changed token is refused. Label and
    version are authenticated. Texts are padded to a multiple of 16 bytes, so that a token tells little of its length.
    """
    return encrypt_text(mention.text, mention.label, setting.key)


def encrypt_text(text: str, label: str, key: bytes | str | None) -> str:
    """Encrypt a text into a token, in which ``label`` is readable."""
    name = _NOT_WORD.sub("_", label)[:64] or "_"
    plain = text.encode("utf-8", "surrogatepass") + b"\x80"
    plain += bytes(-len(plain) % _BLOCK)
    sealed = _open_cipher(derive_operator_key(key, "encrypt")).encrypt(plain, _associated_data(name))
    return f"[{name}{MARK}{b32encode(sealed).decode().rstrip('=')}]"


def decrypt_token(token: re.Match[str], key: bytes | str) -> str | None:
    """Decrypt a match of :data:`TOKEN`; None where the key does not fit or the token was changed."""
    from cryptography.exceptions import InvalidTag

    code = token[2].upper()
    try:
        sealed = b32decode(code + "=" * (-len(code) % 8))
        plain = _open_cipher(derive_operator_key(key, "encrypt")).decrypt(sealed, _associated_data(token[1]))
        text, mark, padding = plain.rpartition(b"\x80")
        return text.decode("utf-8", "surrogatepass") if mark and not padding.strip(b"\0") else None
    except (InvalidTag, ValueError):
        return None


def _associated_data(name: str) -> list[bytes]:
    return [b"allonym:e1", name.upper().encode("utf-8", "surrogatepass")]


@lru_cache(maxsize=8)
def _open_cipher(key: bytes) -> AESSIV:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

    return AESSIV(key)

"""Secrets, the keys behind them, and what is sealed with those.

Envelope: the user's secret gives the key-encryption key (HKDF, RFC 5869, for random bytes; scrypt, RFC 7914, for a
passphrase, with a stored random salt). It wraps one random 256-bit data key, which encrypts all values and wraps two
more: one for digests and audit, one for keyed operators. So a new secret rewrites one short row, and a new data key
changes neither a digest nor what an operator makes. All encryption is AES-256-GCM with random 96-bit nonces.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from allonym.errors import UsageError, VaultError, WrongKey, hide_foreign_errors, require_extra
from allonym.keys import Cipher, encode_secret, expand_key, stretch_passphrase

Secret = bytes | str
"""What opens a vault: random bytes, or a passphrase."""

MIN_SECRET_BYTES = 16
ENVIRONMENT = "ALLONYM_VAULT_KEY"
_MARK = "allonym-vault-key-1:"
_BLOCK = 32
_DIGITS = 32
_ROUNDS = [2**e for e in range(14, 21)]
_NEW_ROUNDS = 2**16  # of scrypt, for a new vault


class Derivation(TypedDict):
    """How the key-encryption key comes out of the secret; stored beside what it wraps. ``salt`` is hexadecimal."""

    kind: str
    salt: str
    n: int
    r: int
    p: int


@dataclass(frozen=True, slots=True)
class Keys:
    """An unlocked vault's keys. Nothing of them shows in ``repr``.

    Attributes:
        data: encrypts values and wraps the other two.
        lasting: digests and audit log.
        operator: what keyed operators use where the caller gives no key.
        generation: grows when one of them changes, so that whoever still has the former ones sees it.
    """

    data: bytes = field(repr=False)
    lasting: bytes = field(repr=False)
    operator: bytes = field(repr=False)
    generation: int = 1

    @classmethod
    def new(cls) -> Keys:
        """Fresh random keys."""
        return cls(secrets.token_bytes(32), secrets.token_bytes(32), secrets.token_bytes(32))


def new_secret() -> str:
    """A random 256-bit secret as one line of text, for a key file, an environment variable or a keyring."""
    return _MARK + urlsafe_b64encode(secrets.token_bytes(32)).decode()


def read_secret(value: bytes | str, where: str) -> Secret:
    """Read the secret in a file or variable: a line of :func:`new_secret`, any other line (a passphrase), or bytes.

    Raises:
        UsageError: it is too short, or a broken line of :func:`new_secret`. The message does not show it.
    """
    secret: Secret = value
    if isinstance(value, bytes):
        try:
            line = value.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            line = ""
        secret = line if line and line.isprintable() else value
    if isinstance(secret, str) and secret.startswith(_MARK):
        try:
            secret = b64decode(secret.removeprefix(_MARK), altchars=b"-_", validate=True)
        except ValueError:
            secret = b""
        if len(secret) != 32:
            raise UsageError(
                f"{where}: the line begins like a vault key, but what follows is not 32 bytes in base64: it is damaged"
            )
    return check_secret(secret, where)


def check_secret(secret: Secret, where: str = "secret") -> Secret:
    """The secret, if it will do.

    Raises:
        UsageError: it is neither bytes nor str, or shorter than 16 bytes. The message does not show it.
    """
    if not isinstance(secret, (bytes, str)):
        raise UsageError(f"{where}: a vault's secret must be bytes or str, got {type(secret).__name__}")
    if (size := len(encode_secret(secret))) < MIN_SECRET_BYTES:
        raise UsageError(f"{where}: a vault's secret needs at least {MIN_SECRET_BYTES} bytes, got {size}")
    return secret


def secret_from_file(path: str | Path) -> Secret:
    """The secret in a file; see :func:`read_secret`."""
    return read_secret(Path(path).read_bytes(), str(path))


def secret_from_environment(name: str = ENVIRONMENT) -> Secret | None:
    """The secret in an environment variable; None where that is empty or not set."""
    value = os.environ.get(name)
    return read_secret(os.fsencode(value), name) if value else None


def secret_from_keyring(entry: str) -> Secret:
    """The secret that the operating system's keyring keeps under ``SERVICE/NAME``.

    Raises:
        MissingExtra: the package keyring is not installed.
        UsageError: there is no such entry, or it cannot be read.
    """
    service, slash, name = entry.partition("/")
    if not (service and slash and name):
        raise UsageError(f"a keyring entry is SERVICE/NAME, got {entry!r}")
    with require_extra("a vault's secret in the keyring", "keyring"):
        import keyring
        from keyring.errors import KeyringError
    with hide_foreign_errors("the keyring cannot be read", KeyringError, error=UsageError):
        entry_text = keyring.get_password(service, name)
    if entry_text is None:
        raise UsageError(f"the keyring has no entry {entry!r}")
    return read_secret(entry_text, f"keyring entry {entry!r}")


# From the secret to the data key


def choose_derivation(secret: Secret) -> Derivation:
    """How a new key-encryption key is to be derived from this kind of secret, with a fresh salt."""
    if isinstance(secret, str):
        return {"kind": "scrypt", "salt": secrets.token_hex(16), "n": _NEW_ROUNDS, "r": 8, "p": 1}
    return {"kind": "hkdf", "salt": secrets.token_hex(16), "n": 0, "r": 0, "p": 0}


def derive_key_encryption_key(secret: Secret, how: Derivation, where: str) -> bytes:
    """Derive the 32 bytes that encrypt the data key from the secret.

    Raises:
        WrongKey: the vault opens with the other kind of secret.
        VaultError: the stored parameters make no sense.
    """
    required = {"scrypt": str, "hkdf": bytes}.get(how["kind"])
    if required is None:
        raise VaultError(f"{where}: unknown derivation of the key, {how['kind']!r}; a newer version may know it")
    if not isinstance(secret, required):
        kinds = ("a passphrase", "random bytes") if required is str else ("random bytes", "a passphrase")
        hint = "" if required is str else ", or the secret is damaged"
        raise WrongKey(f"{where} opens with {kinds[0]}, got {kinds[1]}{hint}")
    try:
        salt = bytes.fromhex(how["salt"])
    except ValueError:
        raise VaultError(f"{where}: the salt of its key cannot be read") from None
    if isinstance(secret, bytes):
        return derive_key(expand_key(salt, secret), "key encryption")
    n, r, p = how["n"], how["r"], how["p"]
    if not (n in _ROUNDS and r in range(1, 33) and p in range(1, 17)):
        raise VaultError(f"{where}: parameters of scrypt out of range")
    return stretch_passphrase(secret, salt, n, r, p)


def wrap_key(key: bytes, inner: bytes, *about: str) -> bytes:
    """Encrypt ``inner`` under ``key``, bound to what it is."""
    return Cipher(derive_key(key, "wrap")).seal(inner, pack_texts(about))


def unwrap_key(key: bytes, wrapped: bytes, *about: str) -> bytes | None:
    """Decrypt what :func:`wrap_key` made; None where the key does not fit or something was changed."""
    return unseal_value(Cipher(derive_key(key, "wrap")), wrapped, about)


# Values and digests


class Sealer:
    """Encrypts, decrypts and digests for one unlocked vault. Holds no state beyond the keys.

    ``checking`` is the key of the digests by which a model's outputs are checked; it serves nothing else.
    """

    __slots__ = ("_chain", "_index", "_log", "_values", "checking", "where")

    def __init__(self, keys: Keys, where: str) -> None:
        self._values = Cipher(derive_key(keys.data, "values"))
        self._index = derive_key(keys.lasting, "index")
        self._log = Cipher(derive_key(keys.lasting, "audit"))
        self._chain = derive_key(keys.lasting, "audit chain")
        self.checking = derive_key(keys.lasting, "checking")
        self.where = where

    def digest(self, *parts: str) -> str:
        """Return 32 hexadecimal digits of HMAC-SHA256 over the parts, which cannot run into each other."""
        return hmac.digest(self._index, pack_texts(parts), "sha256").hex()[:_DIGITS]

    def seal(self, values: Sequence[str], *about: str) -> bytes:
        """Encrypt values together, padded to a multiple of 32 bytes and bound to table, scope and row."""
        data = pack_texts(values)
        return self._values.seal(data + bytes(-len(data) % _BLOCK), pack_texts(about))

    def unseal(self, sealed: object, *about: str) -> tuple[str, ...]:
        """Decrypt what :meth:`seal` made.

        Raises:
            VaultError: it was changed, belongs to another row, or to another data key.
        """
        return unpack_texts(self._unseal(self._values, sealed, about))

    def _unseal(self, cipher: Cipher, sealed: object, about: Sequence[str]) -> bytes:
        data = unseal_value(cipher, sealed, about)
        if data is None:
            raise VaultError(f"{self.where}: a row in {about[0]!r} is damaged, or was changed without the key")
        return data

    def seal_entry(self, values: Sequence[str], number: int) -> bytes:
        """Encrypt a line of the audit log under a key that stays when the data key changes."""
        return self._log.seal(pack_texts(values), pack_texts(("audit", str(number))))

    def unseal_entry(self, sealed: object, number: int) -> tuple[str, ...] | None:
        """Decrypt what :meth:`seal_entry` made; None where it was changed."""
        data = unseal_value(self._log, sealed, ("audit", str(number)))
        return None if data is None else unpack_texts(data)

    def compute_log_mac(self, kind: str, number: int, *pieces: bytes) -> bytes:
        """Return the MAC that binds a line of the audit log to the one before it."""
        head = pack_texts((kind, str(number)))
        return hmac.digest(self._chain, head + b"".join(len(p).to_bytes(4) + p for p in pieces), "sha256")


def unseal_value(cipher: Cipher, sealed: object, about: Sequence[str]) -> bytes | None:
    """Decrypt a stored value; None where it is damaged, or bound to something else."""
    try:
        return cipher.unseal(sealed, pack_texts(about)) if isinstance(sealed, bytes) else None
    except AttributeError:  # it may be bound to a damaged column that is no text any more
        return None


def derive_key(key: bytes, purpose: str) -> bytes:
    """Derive a 32-byte key for one purpose (HKDF's expand step)."""
    return expand_key(key, b"allonym vault " + purpose.encode() + b"\1")


def pack_texts(values: Iterable[str]) -> bytes:
    """Pack texts into bytes from which :func:`unpack_texts` gets exactly them back."""
    pieces = [encode_secret(value) for value in values]
    return len(pieces).to_bytes(2) + b"".join([len(p).to_bytes(4) + p for p in pieces])


def unpack_texts(data: bytes) -> tuple[str, ...]:
    """Return the texts that :func:`pack_texts` packed; padding behind them does not matter."""
    values, start = [], 2
    for _ in range(int.from_bytes(data[:2])):
        end = start + 4 + int.from_bytes(data[start : start + 4])
        values.append(data[start + 4 : end].decode("utf-8", "surrogatepass"))
        start = end
    return tuple(values)


# What is stored of the keys


def lock_keys(keys: Keys, secret: Secret, where: str) -> dict[str, bytes]:
    """Return what a vault stores, by name, so that this secret opens it: the envelope with all its keys."""
    how = choose_derivation(secret)
    outer = derive_key_encryption_key(secret, how, where)
    derivation, data = json.dumps(how).encode(), wrap_key(outer, keys.data, "data")
    return {"derivation": derivation, "data": data, **wrap_keys(keys)}


def wrap_keys(keys: Keys) -> dict[str, bytes]:
    """Return the part of the envelope that the data key closes."""
    generation = str(keys.generation)
    return {
        "generation": generation.encode(),
        "lasting": wrap_key(keys.data, keys.lasting, "lasting", generation),
        "operator": wrap_key(keys.data, keys.operator, "operator", generation),
    }


def read_derivation(values: Mapping[str, bytes], where: str) -> Derivation:
    """Return how the key-encryption key is derived from the secret.

    Raises:
        VaultError: what is stored about it makes no sense.
    """
    try:
        read = json.loads(values["derivation"])
        return {"kind": str(read["kind"]), "salt": str(read["salt"]), "n": read["n"], "r": read["r"], "p": read["p"]}
    except (KeyError, ValueError, TypeError):
        raise VaultError(f"{where}: how its key is derived cannot be read") from None


def unlock_keys(values: Mapping[str, bytes], secret: Secret, where: str) -> Keys:
    """Return the keys in a vault's envelope.

    Raises:
        WrongKey: the secret does not open it, or it was changed.
    """
    outer = derive_key_encryption_key(secret, read_derivation(values, where), where)
    data = unwrap_key(outer, values.get("data", b""), "data")
    if data is None:
        raise WrongKey(f"the secret does not open {where}: it is another one, or {where} is damaged")
    generation = values.get("generation", b"").decode("ascii", "replace")
    lasting = unwrap_key(data, values.get("lasting", b""), "lasting", generation)
    operator = unwrap_key(data, values.get("operator", b""), "operator", generation)
    if lasting is None or operator is None:
        raise WrongKey(f"{where}: its keys were changed by somebody without the secret")
    return Keys(data, lasting, operator, int(generation))

"""Keyed digests of originals and of their variants: who has them can test what a model writes, and reads no original.

They are made when an original is written into the vault, one sealed row beside it, so they go when it goes. The key of
the digests serves nothing else. Digests and key together are a file for those who check; it can only test guesses, but
whoever guesses a name gets an answer: see ``docs/explanation/threat-model.md``.

The file: JSON lines. First ``{"allonym-digests": 1, "key": hexadecimal, "longest": words, "originals": number}``, then
a line for each original: its label, and its digests of each kind, 16 bytes each, together in base64.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import UsageError, VaultError
from allonym.keys import encode_secret
from allonym.vault import store
from allonym.vault.keys import Sealer, pack, unpack
from allonym.vault.variants import KINDS, forms_of, without

SIZE = 16
"""Bytes of a digest: BLAKE2b with a key (RFC 7693), which is a MAC as it is, and three times as fast as HMAC."""

_AT_ONCE = 500
_KEY = 32
_FILE = "allonym-digests"
_VERSION = 1
_NUMBER = {kind: i for i, kind in enumerate(KINDS, 1)}  # 0 is padding
_KIND = {i: kind for kind, i in _NUMBER.items()}
_EDITED = "edited"


def digest_of(key: bytes, form: str, *, edited: bool = False) -> bytes:
    """The digest of a form; those of forms with one letter another are no others' digests."""
    person = b"edited" if edited else b"form"
    return blake2b(encode_secret(form), digest_size=SIZE, key=key, person=person).digest()


def packed(key: bytes, original: str, label: str) -> bytes:
    """Label, number of words, and the digests of an original; empty where it is too short to be known by."""
    forms = forms_of(original, label)
    if not forms.by_kind:
        return b""
    longest = max(form.count(" ") + 1 for some in forms.by_kind.values() for form in some)
    found = [bytes([_NUMBER[kind]]) + digest_of(key, form, edited=kind == _EDITED) for kind, form in forms.digested()]
    return pack((label, str(longest))) + b"".join(dict.fromkeys(found))


def unpacked(data: bytes, where: str) -> tuple[str, int, dict[str, list[bytes]]]:
    """Label, number of words, and digests by kind.

    Raises:
        VaultError: it is nothing that :func:`packed` made.
    """
    label, longest = unpack(data)
    at = len(pack((label, longest)))
    found: dict[str, list[bytes]] = {}
    while at < len(data) and data[at]:
        kind, one = _KIND.get(data[at]), data[at + 1 : at + 1 + SIZE]
        if kind is None or len(one) < SIZE:
            raise VaultError(f"{where}: a row of digests is damaged, or a newer version made it")
        found.setdefault(kind, []).append(one)
        at += 1 + SIZE
    return label, int(longest), found


Entry = tuple[str, Mapping[str, Iterable[bytes]]]
"""Label and digests by kind of an original."""


@dataclass(frozen=True, slots=True, repr=False)
class Digests:
    """Digests to look things up in.

    Attributes:
        key: of the digests. Hidden from ``repr``, as is all else but the number of originals.
        labels: of each original.
        longest: words of the longest original.
    """

    key: bytes = field(repr=False)
    labels: tuple[str, ...]
    longest: int
    _forms: Mapping[bytes, Sequence[tuple[str, int]]] = field(repr=False)
    _edits: Mapping[bytes, Sequence[int]] = field(repr=False)

    def __repr__(self) -> str:
        return f"Digests({len(self)} originals)"

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, key: bytes, entries: Iterable[Entry], longest: int) -> Digests:
        """What was read of a vault or a file."""
        labels: list[str] = []
        forms: dict[bytes, list[tuple[str, int]]] = {}
        edits: dict[bytes, list[int]] = {}
        for number, (label, by_kind) in enumerate(entries):
            labels.append(label)
            for kind, some in by_kind.items():
                for one in some:
                    if kind == _EDITED:
                        edits.setdefault(one, []).append(number)
                    else:
                        forms.setdefault(one, []).append((kind, number))
        return cls(key, tuple(labels), longest, forms, edits)

    def named(self, form: str) -> tuple[tuple[str, int], ...]:
        """Kind and number of the originals that are known by a form: words with one blank between them."""
        return tuple(self._forms.get(digest_of(self.key, form), ()))

    def edited(self, letters: str) -> frozenset[int]:
        """Numbers of the originals that become ``letters``, their letters and digits, by one letter too many, too few
        or another, or by none."""
        if not self._edits:
            return frozenset()
        asked = [without(letters, i) for i in range(len(letters))]  # another letter
        asked += [letters[:i] + letters[i + 1 :] for i in range(len(letters))]  # one too many
        asked += [f"{i}-{letters}" for i in range(len(letters) + 1)]  # one too few
        found: set[int] = set()
        for form in asked:
            found.update(self._edits.get(digest_of(self.key, form, edited=True), ()))
        return frozenset(found)


def entries(connection: sa.Connection, sealer: Sealer, scope: str | None, now: int) -> tuple[list[Entry], int]:
    """The digests of all that has not expired, each original once, in no order that tells anything; and the words of
    the longest. No original is decrypted.

    Args:
        scope: digest of a scope; None: all of them.
    """
    known = store.known
    asked = sa.select(store.digests.c.row, store.digests.c.sealed).join(known, known.c.digest == store.digests.c.row)
    asked = asked.where(sa.or_(known.c.expires.is_(None), known.c.expires > now)).order_by(store.digests.c.row)
    if scope is not None:
        asked = asked.join(store.scopes, store.scopes.c.id == known.c.scope).where(store.scopes.c.digest == scope)
    once: dict[tuple[str, bytes], Entry] = {}
    longest = 0
    for row in connection.execute(asked):
        label, words, found = unpacked(sealer.unseal_digests(row.sealed, row.row), sealer.where)
        longest = max(longest, words)
        once.setdefault((label, found["whole"][0]), (label, found))
    return [once[key] for key in sorted(once)], longest


def fill(connection: sa.Connection, sealer: Sealer) -> int:
    """Make the digests of everything that was written before there were any; how many rows."""
    known, count = store.known, 0
    scopes = {row.id: row.digest for row in connection.execute(sa.select(store.scopes.c.id, store.scopes.c.digest))}
    last = ""
    asked = sa.select(known).order_by(known.c.digest).limit(_AT_ONCE)
    while rows := connection.execute(asked.where(known.c.digest > last)).all():
        made = []
        for row in rows:
            about = ("known", scopes.get(row.scope, ""), row.digest, row.token)
            _, original, label, *_ = sealer.unseal(row.sealed, *about)
            made += rows_of(sealer, row.digest, packed(sealer.checking, original, label))
        if made:
            connection.execute(store.digests.insert(), made)
        count += len(made)
        last = rows[-1].digest
    return count


def rows_of(sealer: Sealer, row: str, data: bytes) -> list[dict[str, object]]:
    """The row of the table ``digests`` beside a row of ``known``; none where there is nothing to keep."""
    return [{"row": row, "sealed": sealer.seal_digests(data, row)}] if data else []


# The file


def write_digests(path: Path, key: bytes, found: Sequence[Entry], longest: int, *, overwrite: bool = False) -> int:
    """Write digests and key into a file that only its owner may read; how many originals.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; overwriting must be asked for")
    head = {_FILE: _VERSION, "key": key.hex(), "longest": longest, "originals": len(found)}
    part = path.with_name(f".{path.name}.allonym-part")
    try:
        part.unlink(missing_ok=True)  # one that is there may be open to others
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as out:
            out.write(json.dumps(head) + "\n")
            for label, by_kind in found:
                told = {kind: b64encode(b"".join(by_kind[kind])).decode() for kind in KINDS if kind in by_kind}
                out.write(json.dumps({"label": label, **told}) + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return len(found)


def read_digests(path: str | Path) -> Digests:
    """The digests in a file that :func:`write_digests` wrote.

    Raises:
        VaultError: it is no such file, it is damaged, or a newer version wrote it.
    """
    try:
        with open(path, encoding="ascii") as lines:
            head = json.loads(lines.readline(1 << 12))
            if head[_FILE] != _VERSION:
                raise VaultError(f"{path}: digests of version {_VERSION} are required, a newer allonym wrote these")
            found = Digests.of(bytes.fromhex(head["key"]), (_entry(line) for line in lines), int(head["longest"]))
            if len(found.key) != _KEY or len(found) != head["originals"]:  # cut off, it would find too little
                raise ValueError
            return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise VaultError(f"{path} is no file of digests, or it is damaged; allonym vault digests writes one") from None


def _entry(line: str) -> Entry:
    told: dict[str, Any] = json.loads(line)
    cut = {kind: b64decode(told[kind], validate=True) for kind in KINDS if kind in told}
    if not cut or any(not data or len(data) % SIZE for data in cut.values()):
        raise ValueError
    return str(told["label"]), {
        kind: [data[i : i + SIZE] for i in range(0, len(data), SIZE)] for kind, data in cut.items()
    }

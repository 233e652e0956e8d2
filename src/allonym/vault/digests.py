"""Keyed digests of originals and of their variants: who has them can test what a model writes, and reads no original.

The vault does not keep them: they are computed from its originals when they are asked for. Their key serves nothing
else. Digests and key together are a file for those who check; it can only test guesses, but whoever guesses a
name gets an answer: see ``docs/explanation/threat-model.md``.

The file: JSON lines. First ``{"allonym-digests": 1, "key": hexadecimal, "longest": words, "originals": number}``, then
a line for each original: its label, and its digests of each kind, 16 bytes each, together in base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.errors import UsageError, VaultError, hide_foreign_errors
from allonym.keys import encode_secret
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.store import iterate_row_batches, write_private_file
from allonym.vault.variants import KINDS, make_all_forms, make_deletion_key

SIZE = 16
"""Bytes of a digest: BLAKE2b with a key (RFC 7693), which is a MAC as it is, and three times as fast as HMAC."""

_KEY = 32
_FILE = "allonym-digests"
_VERSION = 1
_EDITED = "edited"


def compute_form_digest(key: bytes, form: str, *, edited: bool = False) -> bytes:
    """Return the digest of a form; those of forms with one letter another are no others' digests."""
    person = b"edited" if edited else b"form"
    return blake2b(encode_secret(form), digest_size=SIZE, key=key, person=person).digest()


def compute_digests(key: bytes, original: str, label: str) -> tuple[int, dict[str, list[bytes]]]:
    """Return the number of words of an original, and its digests by kind: none where it is too short to be known by."""
    forms = make_all_forms(original, label)
    longest = max((form.count(" ") + 1 for some in forms.by_kind.values() for form in some), default=0)
    by_kind: dict[str, dict[bytes, None]] = {}
    if forms.by_kind:
        for kind, form in forms.list_forms():
            by_kind.setdefault(kind, {})[compute_form_digest(key, form, edited=kind == _EDITED)] = None
    return longest, {kind: list(digests) for kind, digests in by_kind.items()}


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
        """Make digests in which forms can be looked up, from those that were read from a vault or a file.

        Args:
            key: of the digests.
            entries: label and digests by kind of each original.
            longest: words of the longest original.
        """
        labels: list[str] = []
        forms: dict[bytes, list[tuple[str, int]]] = {}
        edits: dict[bytes, list[int]] = {}
        for number, (label, by_kind) in enumerate(entries):
            labels.append(label)
            for kind, digests in by_kind.items():
                for digest in digests:
                    if kind == _EDITED:
                        edits.setdefault(digest, []).append(number)
                    else:
                        forms.setdefault(digest, []).append((kind, number))
        return cls(key, tuple(labels), longest, forms, edits)

    def named(self, form: str) -> tuple[tuple[str, int], ...]:
        """Return kind and number of the originals that are known by a form: words with one blank between them."""
        return tuple(self._forms.get(compute_form_digest(self.key, form), ()))

    def edited(self, letters: str) -> frozenset[int]:
        """Return the numbers of the originals that become ``letters``, their letters and digits, by one letter too
        many, too few or another, or by none."""
        if not self._edits:
            return frozenset()
        forms = [make_deletion_key(letters, i) for i in range(len(letters))]  # another letter
        forms += [letters[:i] + letters[i + 1 :] for i in range(len(letters))]  # one too many
        forms += [f"{i}-{letters}" for i in range(len(letters) + 1)]  # one too few
        digests = (compute_form_digest(self.key, form, edited=True) for form in forms)
        return frozenset(number for digest in digests for number in self._edits.get(digest, ()))


def load_digests(connection: sa.Connection, sealer: Sealer, scope: str | None, now: int) -> tuple[list[Entry], int]:
    """Return the digests of all that has not expired, each original once, and the words of the longest.

    Their order tells nothing. Each original is decrypted for a moment; it stays in no result.

    Args:
        connection: of a transaction that reads.
        sealer: of the vault.
        scope: name of a scope; None: all of them.
        now: in seconds since 1970.
    """
    scopes = dict(connection.execute(sa.select(store.scopes.c.id, store.scopes.c.digest)).all())
    table = store.originals
    conditions: list[sa.ColumnElement[bool]] = [sa.or_(table.c.expires.is_(None), table.c.expires > now)]
    if scope is not None:
        digest = sealer.digest("scope", scope)
        conditions.append(table.c.scope.in_([number for number, named in scopes.items() if named == digest]))
    entries: dict[tuple[str, bytes], Entry] = {}
    longest = 0
    for batch in iterate_row_batches(connection, table, *conditions):
        for row in batch:
            _, original, label, *_ = sealer.unseal(
                row.sealed, "known", scopes.get(row.scope, ""), row.digest, row.token
            )
            words, by_kind = compute_digests(sealer.checking, original, label)
            if by_kind:
                longest = max(longest, words)
                entries.setdefault((label, by_kind["whole"][0]), (label, by_kind))
    return [entries[key] for key in sorted(entries)], longest


# The file


def write_digests(path: Path, key: bytes, entries: Sequence[Entry], longest: int, *, overwrite: bool = False) -> int:
    """Write digests and key into a file that only its owner may read; returns how many originals.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    head = {_FILE: _VERSION, "key": key.hex(), "longest": longest, "originals": len(entries)}
    lines: list[dict[str, object]] = [head]
    for label, by_kind in entries:
        digests = {kind: b64encode(b"".join(by_kind[kind])).decode() for kind in KINDS if kind in by_kind}
        lines.append({"label": label, **digests})
    with (
        hide_foreign_errors(f"cannot write {path}", OSError, error=UsageError),
        write_private_file(path, overwrite=overwrite) as out,
    ):
        out.writelines(json.dumps(line).encode("ascii") + b"\n" for line in lines)
    return len(entries)


def read_digests(path: str | Path) -> Digests:
    """Return the digests in a file that :func:`write_digests` wrote.

    Raises:
        VaultError: it is no such file, it is damaged, or a newer version wrote it.
    """
    try:
        with open(path, encoding="ascii") as lines:
            head = json.loads(lines.readline(1 << 12))
            if head[_FILE] != _VERSION:
                raise VaultError(f"{path}: digests of version {_VERSION} are required, a newer allonym wrote these")
            digests = Digests.of(bytes.fromhex(head["key"]), map(_parse_entry_line, lines), int(head["longest"]))
            if len(digests.key) != _KEY or len(digests) != head["originals"]:  # cut off, it would find too little
                raise ValueError
            return digests
    except (ValueError, KeyError, TypeError, AttributeError):
        raise VaultError(f"{path} is no file of digests, or it is damaged; allonym vault digests writes one") from None


def _parse_entry_line(line: str) -> Entry:
    values: dict[str, Any] = json.loads(line)
    by_kind = {kind: b64decode(values[kind], validate=True) for kind in KINDS if kind in values}
    if not by_kind or any(not data or len(data) % SIZE for data in by_kind.values()):
        raise ValueError
    split = {kind: [data[i : i + SIZE] for i in range(0, len(data), SIZE)] for kind, data in by_kind.items()}
    return str(values["label"]), split

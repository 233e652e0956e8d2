"""What a vault tells of itself. Everything with text in it hides that from ``repr``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Known:
    """That a replacement stands for an original, in one scope.

    Attributes:
        replacement: what stands in the anonymised text.
        original: what stood there before.
        label: of the entity, as the taxonomy has it.
        operator: name and version of what made the replacement, e.g. ``tag@1``.
        entity: the referent's key; two originals with the same one are surfaces of the same referent.
    """

    replacement: str = field(repr=False)
    original: str = field(repr=False)
    label: str
    operator: str
    entity: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """What a scope holds.

    Attributes:
        name: the scope's name; of a vault without its key a piece of its digest.
        known: how many originals can be brought back.
        assigned: how many choices (numbers, pseudonyms) are kept.
        subjects: of how many subjects, where any were named.
        expired: how many of both are past their time and wait for ``purge(expired=True)``.
    """

    name: str
    known: int
    assigned: int
    subjects: int
    expired: int


@dataclass(frozen=True, slots=True)
class VaultInfo:
    """What can be told of a vault without its key; with it, the names of the scopes too.

    Attributes:
        where: path, or URL without its password.
        schema: version of the tables.
        created: when.
        key: ``random`` or ``passphrase``: what the vault opens with.
        keep_days: after how many days what is written expires; None: never.
        scopes: in the order in which they were first used.
    """

    where: str
    schema: int
    created: datetime
    key: str
    keep_days: int | None
    scopes: tuple[ScopeInfo, ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log. It holds no text, no subject and no replacement.

    Attributes:
        number: from 1, without gaps.
        time: when, in UTC, to the second.
        action: ``create``, ``migrate``, ``restore``, ``purge``, ``rotate``, ``export``, ``import``, ``digests`` or a
            caller's own.
        scope: the scope's name; where the scope is gone, a piece of its digest; empty: the whole vault.
        actor: who, as the caller said.
        counts: how many of what.
    """

    number: int
    time: datetime
    action: str
    scope: str
    actor: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge deleted, and how it was checked that it is gone.

    Attributes:
        known, assigned, subjects, scopes: rows that were deleted.
        checked: ``files``: no digest or ciphertext of these rows is left in the database file or its journal;
            ``tables``: none is left in the tables (the files of a database server are out of reach).
    """

    known: int
    assigned: int
    subjects: int
    scopes: int
    checked: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What an import brought in.

    Attributes:
        scopes: how many the file holds.
        known: originals that are new here.
        assigned: choices that are new here.
        same: what was here already.
        conflicts: choices that were left out, since the same key has another value here or the value another key.
        ambiguous: replacements in the file that stand for more than one referent here.
        operator_key: whether the vault took over the other's key for keyed operators, which only one without any
            scope does; else what keyed operators made under the other vault's key needs that vault.
    """

    scopes: int
    known: int
    assigned: int
    same: int
    conflicts: int
    ambiguous: int
    operator_key: bool


def scope_names(names: Iterable[str]) -> str:
    """Scopes as a message lists them."""
    return ", ".join(repr(name) if name else "'' (no name)" for name in names) or "none"

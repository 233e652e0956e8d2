"""The results of a vault's methods. Fields that hold text are hidden from ``repr``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from allonym.plan import Plan


@dataclass(frozen=True, slots=True)
class Known:
    """An original and its replacement in one scope.

    Attributes:
        replacement: the text in the anonymised document.
        original: the text that it replaces.
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
class Piece:
    """A sentence or line of an output that holds a replacement.

    Attributes:
        start, end: half-open code points of the output.
        digest: without a key, so that it stays inside of what is encrypted.
    """

    start: int
    end: int
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan of a document, as a vault keeps it.

    Attributes:
        row: what the vault knows it by.
        document: the document's id; empty where it had none.
        plan: with its originals.
        pieces: of the output, in reading order.
        people: number of an entity of the plan to the key of the registered person that it is.
    """

    row: str
    document: str
    plan: Plan = field(repr=False)
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    people: Mapping[int, str] = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class RegisteredPerson:
    """A person of a scope's register.

    Attributes:
        number: by which commands name the person; it stays, and is never used again.
        keys: of the person's entity: in all documents from now on, then those of people who were joined to this one.
        names: the fullest name, then further ones (aliases), as they are written.
        salt: goes into the choice of the pseudonym; gone for good when the person is erased.
        documents: number of kept plans in which the person occurs, where :func:`~allonym.vault.people.list_people`
            counted them; else 0.
        replacement: what stands for the person in the documents, the fullest form; empty: nothing, or not looked up.
    """

    number: int
    keys: tuple[str, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    salt: str = field(default="", repr=False)
    documents: int = 0
    replacement: str = field(default="", repr=False)

    @property
    def key(self) -> str:
        """The key of the person's entity in all documents from now on."""
        return self.keys[0]


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """The content of a scope in numbers.

    Attributes:
        name: the scope's name; of a vault without its key a piece of its digest.
        known: number of originals that can be restored.
        assigned: number of stored choices (tag numbers, pseudonyms).
        plans: number of documents whose plans are kept.
        subjects: number of subjects, if any were named.
        expired: number of originals and choices that have expired and wait for ``purge(expired=True)``.
    """

    name: str
    known: int
    assigned: int
    plans: int
    subjects: int
    expired: int


@dataclass(frozen=True, slots=True)
class VaultInfo:
    """A description of a vault, possible without its key; with the key it has the names of the scopes.

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
    """The rows that a purge deleted, and how it was checked that no trace is left.

    Attributes:
        known, assigned, subjects, scopes, plans, people: rows that were deleted.
        checked: ``files``: no digest or ciphertext of these rows is left in the database file or its journal;
            ``tables``: none is left in the tables (the files of a database server are out of reach).
    """

    known: int
    assigned: int
    subjects: int
    scopes: int
    plans: int
    people: int
    checked: str


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """The result of erasing a person.

    Attributes:
        purged: rows that were deleted or rewritten without the person.
        documents: number of plans that no longer hold the person.
        edits: number of edits in them that were dropped.
        names: all names of the person, and the texts by which documents named the person, for files.
        others: words of the names of other people in the same registers, in plain form.
        places: digest of the original text of each plan to the places of the dropped edits in it, for files.
    """

    purged: Purged
    documents: int
    edits: int
    names: tuple[str, ...] = field(repr=False)
    others: frozenset[str] = field(repr=False)
    places: Mapping[str, tuple[tuple[int, int], ...]] = field(repr=False, hash=False)

    @property
    def rows(self) -> int:
        """The number of rows that held the person."""
        purged = self.purged
        return purged.known + purged.assigned + purged.plans + purged.people + purged.subjects


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of an import.

    Attributes:
        scopes: how many the file holds.
        known: number of originals that are new here.
        assigned: number of choices that are new here.
        plans: number of plans of documents that are new here.
        people: number of people of registers that are new here.
        same: number of rows that were here already.
        conflicts: choices that were left out, since the same key has another value here or the value another key.
        ambiguous: replacements in the file that stand for more than one referent here.
        operator_key: whether the vault took over the other's key for keyed operators, which only one without any
            scope does; else what keyed operators made under the other vault's key needs that vault.
    """

    scopes: int
    known: int
    assigned: int
    plans: int
    people: int
    same: int
    conflicts: int
    ambiguous: int
    operator_key: bool


def format_scope_names(names: Iterable[str]) -> str:
    """Return a list of scopes for a message."""
    return ", ".join(repr(name) if name else "'' (no name)" for name in names) or "none"

"""Erasing one person from all documents of a vault.

Gone are the person of the register with the salt, all originals and choices, the edits of plans, and subjects that bear
the name. Of a choice only the value is left, under a key that tells nothing, so that nobody else gets it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from allonym.errors import UsageError, VaultError
from allonym.plan import Edit, drop_edits
from allonym.text.name_forms import NameForms
from allonym.text.names import list_name_spellings, normalize_surface
from allonym.vault import store
from allonym.vault.book import decrypt_replacement_row
from allonym.vault.erase import Traces, erase_rows_where, erase_subject
from allonym.vault.keys import Sealer
from allonym.vault.people import find_bearers
from allonym.vault.plans import pack_edits, unpack_plan, write_plan
from allonym.vault.records import ErasedPerson, KeptPlan, Purged, RegisteredPerson
from allonym.vault.register import Register
from allonym.vault.store import ASSIGNED, KNOWN, PEOPLE, PLANS, iterate_row_batches

_NUMBERED = "tag "
"""Kinds of choices whose values are numbers that never come twice."""
_FAMILY_NAME, _LEAST_STEM = "family name", 4
_RETIRED = "\0retired\0"
_NOTHING = Purged(0, 0, 0, 0, 0, 0, "")


@dataclass(slots=True)
class _Target:
    """The person in one scope.

    Attributes:
        keys: of the person's entities.
        names: all names.
        forms: of the names.
        pairs: replacement and original of what belongs to the person alone.
        surfaces: texts by which documents named the person.
        places: digest of the original text of each plan to the places of its dropped edits.
    """

    keys: frozenset[str]
    names: tuple[str, ...]
    forms: NameForms
    surfaces: set[str] = field(default_factory=set)
    places: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    full: NameForms = field(init=False)

    def __post_init__(self) -> None:
        self.full = replace(self.forms, parts=frozenset())

    def is_named_in(self, text: str) -> bool:
        """Tell whether a text holds a full name, or is one of the names."""
        return bool(self.full.find(text)) or normalize_surface(text) in {normalize_surface(n) for n in self.names}

    def has_key(self, key: str) -> bool:
        """Tell whether a key of the vault is that of the person."""
        return any(part in self.keys or self.is_named_in(part.removeprefix("PERSON:")) for part in key.split("\0"))

    def has_word(self, kind: str, key: str) -> bool:
        """Tell whether a key is a word that nobody else's name has."""
        stems = kind == _FAMILY_NAME and len(key) >= _LEAST_STEM
        return key in self.forms.parts or (stems and any(part.startswith(key) for part in self.forms.parts))


def erase_person(
    connection: sa.Connection, sealer: Sealer, scope: str | None, person: str | int, now: int
) -> tuple[Traces, ErasedPerson]:
    """Erase a person inside a transaction.

    Args:
        connection: of the transaction, in which nobody else writes.
        sealer: of the vault.
        scope: digest of a scope; None: all.
        person: a whole name, or a number in the register of the scope.
        now: in seconds since 1970.

    Raises:
        UsageError: a number without a scope.
        VaultError: nobody has the number, or several people have the name.
    """
    is_number = isinstance(person, int) or person.isdecimal()
    if is_number and scope is None:
        raise UsageError("a person's number is that of one scope, so --scope (scope=...) is required")
    query = sa.select(store.scopes).order_by(store.scopes.c.id).with_for_update()
    scopes = connection.execute(query if scope is None else query.where(store.scopes.c.digest == scope)).all()
    if is_number and not scopes:
        raise VaultError(f"{sealer.where} has no such scope")
    traces, edits, documents = Traces(), 0, 0
    places: dict[str, tuple[tuple[int, int], ...]] = {}
    names: dict[str, None] = {} if scopes else {str(person): None}  # files may name whom an empty vault does not know
    others: set[str] = set()
    for row in scopes:
        register = Register(connection, sealer, row.id, row.digest, now)
        people = register.read_people()
        registered = _choose_person(people, person)
        rest = [other for other in people if other is not registered]
        words = {w for p in rest for name in p.names for spelling in list_name_spellings(name) for w in spelling}
        target = _make_target(registered, person, words)
        others |= words
        _erase_known(connection, sealer, traces, row, target)
        _erase_assigned(connection, sealer, traces, row, target)
        plans = _read_plans(connection, row.id)
        counts = [_erase_from_plan(connection, sealer, traces, row, plan, target) for plan in plans]
        edits, documents = edits + sum(counts), documents + sum(map(bool, counts))
        if registered is not None:
            erase_rows_where(connection, traces, PEOPLE, store.people.c.digest == register.compute_row(registered.key))
        names.update(dict.fromkeys((*target.names, *sorted(target.surfaces))))
        places |= target.places
        _erase_subjects(connection, sealer, traces, row, target)
        change = store.scopes.update().where(store.scopes.c.id == row.id)
        connection.execute(change.values(changes=store.scopes.c.changes + 1))
    _replace_salt_number(connection, traces)
    return traces, ErasedPerson(_NOTHING, documents, edits, tuple(names), frozenset(others), places)


def _choose_person(people: Sequence[RegisteredPerson], person: str | int) -> RegisteredPerson | None:
    if isinstance(person, int) or person.isdecimal():
        fits = [other for other in people if other.number == int(person)]
        if not fits:
            raise VaultError(f"the register has no person {person}; allonym people list shows everybody")
        return fits[0]
    fits = find_bearers(people, person, whole=True)
    if len(fits) > 1:
        numbers = " and ".join(str(other.number) for other in fits)
        raise VaultError(f"people {numbers} of a scope have this name; name one by the number and --scope")
    return fits[0] if fits else None


def _make_target(registered: RegisteredPerson | None, person: str | int, others: set[str]) -> _Target:
    if registered is None:
        names: tuple[str, ...] = (str(person),)
        keys = frozenset("PERSON:" + " ".join(words) for words in list_name_spellings(str(person)))
    else:
        names, keys = registered.names, frozenset(registered.keys)
    return _Target(keys, names, NameForms.of_names(names, others))


def _erase_known(connection: sa.Connection, sealer: Sealer, traces: Traces, scope: Any, target: _Target) -> None:
    table = store.originals
    pairs: set[tuple[str, str]] = set()
    for rows in iterate_row_batches(connection, table, table.c.scope == scope.id):
        doomed = []
        for row in rows:
            entry = decrypt_replacement_row(sealer, scope.digest, row.digest, row.token, row.sealed)
            entity = entry.entity.rpartition(" PERSON:")[2] if " PERSON:" in entry.entity else entry.entity
            is_person = target.has_key(entry.entity) or target.has_key("PERSON:" + entity.removeprefix("PERSON:"))
            if is_person:
                target.surfaces.add(entry.original)
            if is_person or target.is_named_in(entry.original):
                doomed.append(row.digest)
                target.pairs.add((entry.replacement, entry.original))
            else:
                pairs.add((entry.replacement, entry.original))
        if doomed:
            erase_rows_where(connection, traces, KNOWN, table.c.digest.in_(doomed))
    target.pairs -= pairs


def _erase_assigned(connection: sa.Connection, sealer: Sealer, traces: Traces, scope: Any, target: _Target) -> None:
    table, links = store.assigned, store.assigned_subjects
    for rows in iterate_row_batches(connection, table, table.c.scope == scope.id):
        for row in rows:
            kind, key, value = sealer.unseal(row.sealed, "assigned", scope.digest, row.digest, row.value)
            if key.startswith(_RETIRED) or not (target.has_key(key) or target.has_word(kind, key.partition("\0")[0])):
                continue
            if kind.startswith(_NUMBERED):
                erase_rows_where(connection, traces, ASSIGNED, table.c.digest == row.digest)
                continue
            retired = _RETIRED + secrets.token_hex(8)
            digest = sealer.digest("key", scope.digest, kind, retired)
            sealed = sealer.seal((kind, retired, value), "assigned", scope.digest, digest, row.value)
            change = table.update().where(table.c.digest == row.digest)
            connection.execute(change.values(digest=digest, sealed=sealed))
            connection.execute(links.delete().where(links.c.row == row.digest))
            connection.execute(links.insert().values(row=digest, subject=sealer.digest("subject", scope.digest, "")))
            traces.add_marks(row.digest, row.sealed)
            traces.counts["assigned"] += 1


def _read_plans(connection: sa.Connection, scope: int) -> list[Any]:
    """Return the rows of a scope's plans, so that those that are written meanwhile are not among them."""
    batches = iterate_row_batches(connection, store.plans, store.plans.c.scope == scope)
    return [row for batch in batches for row in batch]


def _erase_from_plan(
    connection: sa.Connection, sealer: Sealer, traces: Traces, scope: Any, row: Any, target: _Target
) -> int:
    """Write a plan anew without a person, once if others become the same; return how many edits were dropped."""
    values = sealer.unseal(row.sealed, PLANS.kind, scope.digest, row.digest, row.result)
    plan = unpack_plan(row.digest, values, sealer.where)
    is_dropped = _find_dropped_edits(plan, target)
    count = sum(map(is_dropped, plan.plan.edits))
    is_named = bool(plan.document) and target.is_named_in(plan.document)
    if not count and not is_named:
        return 0
    if plan.plan.digest:
        target.places[plan.plan.digest] = tuple((e.start, e.end) for e in plan.plan.edits if is_dropped(e))
    changed = drop_edits(plan.plan, is_dropped) if count else plan.plan
    people = {number: key for number, key in plan.people.items() if key not in target.keys}
    new = ("" if is_named else plan.document, changed.digest, changed.result, pack_edits(changed, people), values[4])
    links = store.plan_subjects
    subjects = connection.execute(sa.select(links.c.subject).where(links.c.row == row.digest)).scalars().all()
    write_plan(connection, sealer, scope, new, subjects, row.created, row.expires)
    erase_rows_where(connection, traces, PLANS, store.plans.c.digest == row.digest)
    return count


def _find_dropped_edits(plan: KeptPlan, target: _Target) -> Callable[[Edit], bool]:
    """Return what tells whether an edit of a plan replaces the person."""
    numbers = {number for number, key in plan.people.items() if key in target.keys}
    named = {e for e in plan.plan.edits if e.original and target.is_named_in(e.original)}
    numbers |= {edit.entity for edit in named if edit.entity}
    has_people = bool(plan.people)

    def is_dropped(edit: Edit) -> bool:
        is_pair = not has_people and (edit.replacement, edit.original) in target.pairs
        return edit in named or (edit.entity > 0 and edit.entity in numbers) or is_pair

    return is_dropped


def _erase_subjects(connection: sa.Connection, sealer: Sealer, traces: Traces, scope: Any, target: _Target) -> None:
    """Erase the subjects that bear the name: their documents are about the person."""
    query = sa.select(store.subjects).where(store.subjects.c.scope == scope.id)
    for row in connection.execute(query).all():
        (name,) = sealer.unseal(row.sealed, "subject", scope.digest, row.digest)
        if target.is_named_in(name):
            erase_subject(connection, traces, scope.id, row.digest)


def _replace_salt_number(connection: sa.Connection, traces: Traces) -> None:
    """Replace what salts are made with, so that those of before cannot be made again."""
    is_number = store.meta.c.name == "people"
    traces.add_marks(connection.execute(sa.select(store.meta.c.value).where(is_number)).scalar_one())
    connection.execute(store.meta.update().where(is_number).values(value=("1" + secrets.token_hex(16)).encode()))

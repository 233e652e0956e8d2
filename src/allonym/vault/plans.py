"""The plans of documents in a vault: kept encrypted, found by the document's id, its output, or pieces of its output.

A plan undoes what it made exactly, which replacements alone do not: an age is a bare number, and two surfaces of a
person have one tag. What a plan is found by are keyed digests: of the document's id, of the whole output, of each
sentence of the output that holds a replacement, of each replacement, and of each registered person. So a text that was
edited since finds its document by the sentences that were left, and a replacement or a person tells in which documents
it stands.

The text itself is not kept, nor are sentences without a replacement.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa

from allonym.document import Interval
from allonym.errors import VaultError
from allonym.plan import Edit, Plan, digest, locate_replacements
from allonym.text.fold import Level
from allonym.text.names import normalize_surface
from allonym.vault import store
from allonym.vault.keys import Sealer
from allonym.vault.records import KeptPlan, Piece
from allonym.vault.store import PLANS, make_batches

LEAST_WORDS, LEAST_LETTERS = 3, 16
"""A shorter piece stands in many a text, so that it tells no document."""

MOST_FOUND = 50
"""Documents that are read for one text, those with most pieces in common first."""

_PIECE = re.compile(r"[^\r\n]+?(?:[.!?…][\"'”’»)\]]*(?=[ \t\u00a0])|(?=[\r\n])|\Z)")
_ROWS = store.plans.c


def split_into_pieces(text: str) -> list[Interval]:
    """Return the sentences of each line, without the blanks around them.

    >>> split_into_pieces("Hi Ada.  Bye.\\nBob")
    [(0, 7), (9, 13), (14, 17)]
    """
    out: list[Interval] = []
    for match in _PIECE.finditer(text):
        start = match.end() - len(match[0].lstrip())
        end = match.start() + len(match[0].rstrip())
        if start < end:
            out.append((start, end))
    return out


def digest_piece(piece: str) -> str:
    """Return a 64-bit digest of a piece, as 16 hexadecimal digits, without a key."""
    return blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def tells_document(piece: str) -> bool:
    """Tell whether a piece is long enough to tell its document."""
    return len(piece) >= LEAST_LETTERS and len(piece.split()) >= LEAST_WORDS


def _digest_made(sealer: Sealer, scope: str, replacement: str) -> str:
    """Return the digest by which a replacement finds the plans that made it: of its normal form."""
    return sealer.digest("made", scope, normalize_surface(replacement, Level.MARKS))


def digest_person(sealer: Sealer, scope: str, key: str) -> str:
    """Return the digest by which a registered person finds the plans in which they occur."""
    return sealer.digest("occurs", scope, key)


# Writing


def pack_plan(document: str, plan: Plan, text: str, people: Mapping[int, str]) -> tuple[str, ...]:
    """Return what is kept of a plan: id, digests of original and output, edits with people, and pieces, as JSON."""
    places = [(start, end) for start, end, _ in locate_replacements(plan.edits)]
    pieces = []
    i = 0
    for start, end in split_into_pieces(text):
        while i < len(places) and places[i][1] <= start:
            i += 1
        if i < len(places) and places[i][0] < end:
            pieces.append((start, end, digest_piece(text[start:end]), int(tells_document(text[start:end]))))
    return document, plan.digest, plan.result, pack_edits(plan, people), _format_json(pieces)


def pack_edits(plan: Plan, people: Mapping[int, str]) -> str:
    """Return the edits of a plan as JSON, and which registered people its entities are, if any."""
    edits = [astuple(edit) for edit in plan.edits]
    return _format_json({"edits": edits, "people": people} if people else edits)


def _unpack_edits(packed: str) -> tuple[list[Any], dict[int, str]]:
    read = json.loads(packed)
    if isinstance(read, list):
        return read, {}
    return read["edits"], {int(number): str(key) for number, key in read["people"].items()}


def _format_json(rows: object) -> str:
    return json.dumps(rows, ensure_ascii=True, separators=(",", ":"))


def unpack_plan(row: str, values: Iterable[str], where: str) -> KeptPlan:
    """Return the plan that :func:`pack_plan` packed.

    Raises:
        VaultError: the values are not a plan's.
    """
    try:
        document, original, result, edits, pieces = values
        rows, people = _unpack_edits(edits)
        plan = Plan(original, tuple(Edit(*edit) for edit in rows), (), result)
        return KeptPlan(row, document, plan, tuple(Piece(*piece[:3]) for piece in json.loads(pieces)), people)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise VaultError(f"{where}: a plan is damaged, or a newer version made it") from None


def write_plan(
    connection: sa.Connection,
    sealer: Sealer,
    scope: sa.Row[Any],
    values: tuple[str, ...],
    subjects: Iterable[str],
    created: int,
    expires: int | None,
) -> bool:
    """Write a packed plan, and return whether it is new; one that is there gets the subjects and the later expiry.

    Args:
        connection: of the transaction.
        sealer: of the vault.
        scope: its row.
        values: what :func:`pack_plan` returned.
        subjects: digests of those whose document it is.
        created, expires: in seconds since 1970; None: never.
    """
    row = _make_plan_row(sealer, scope.digest, values)
    table, links = store.plans, store.plan_subjects
    is_row = table.c.digest == row["digest"]
    former = connection.execute(sa.select(table.c.expires).where(is_row)).one_or_none()
    if former is None:
        connection.execute(table.insert().values(**row, scope=scope.id, created=created, expires=expires))
        if pieces := _make_piece_rows(sealer, scope.digest, str(row["digest"]), values):
            connection.execute(store.pieces.insert(), pieces)
    elif former.expires is not None and (expires is None or expires > former.expires):
        connection.execute(table.update().where(is_row).values(expires=expires))
    linked = set(connection.execute(sa.select(links.c.subject).where(links.c.row == row["digest"])).scalars())
    if new := [{"row": row["digest"], "subject": subject} for subject in subjects if subject not in linked]:
        connection.execute(links.insert(), new)
    return former is None


def _make_plan_row(sealer: Sealer, scope: str, values: tuple[str, ...]) -> dict[str, object]:
    """Return the columns of a packed plan but scope and times.

    Args:
        sealer: of the vault.
        scope: the scope's digest.
        values: what :func:`pack_plan` returned.
    """
    row = sealer.digest("plan", scope, *values)
    result = sealer.digest("result", scope, values[2])
    named = sealer.digest("document", scope, values[0])
    return {
        "digest": row,
        "result": result,
        "document": named,
        "sealed": sealer.seal(values, *_bind(scope, row, result)),
    }


def _make_piece_rows(sealer: Sealer, scope: str, row: str, values: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the rows by which pieces, replacements and people find their plan."""
    edits, people = _unpack_edits(values[3])
    found_by = [_digest_made(sealer, scope, edit[2]) for edit in edits if edit[2].strip()]
    found_by += [digest_person(sealer, scope, key) for key in people.values()]
    found_by += [sealer.digest("piece", scope, piece[2]) for piece in json.loads(values[4]) if piece[3]]
    return [{"piece": piece, "plan": row} for piece in dict.fromkeys(found_by)]


def _bind(scope: str, row: str, result: str) -> tuple[str, ...]:
    return PLANS.kind, scope, row, result


# Reading


class PlanReader:
    """Finds the plans of one scope, inside a transaction that reads.

    Args:
        connection: of the transaction.
        sealer: of the vault.
        scope: the scope's digest.
        now: in seconds since 1970; what has expired by then is not found.
    """

    def __init__(self, connection: sa.Connection, sealer: Sealer, scope: str, now: int) -> None:
        self._connection = connection
        self._sealer = sealer
        self._scope = scope
        self._is_kept = sa.or_(_ROWS.expires.is_(None), _ROWS.expires > now)

    def find_by_output(self, text: str) -> tuple[KeptPlan, ...]:
        """Return the plans that made exactly this text, oldest first."""
        return tuple(self._read(_ROWS.result == self._sealer.digest("result", self._scope, digest(text))))

    def find_by_document(self, document: str) -> tuple[KeptPlan, ...]:
        """Return the plans of a document, oldest first."""
        return tuple(self._read(_ROWS.document == self._sealer.digest("document", self._scope, document)))

    def find_by_rows(self, rows: Iterable[str]) -> tuple[KeptPlan, ...]:
        """Return the plans that the vault knows by these rows, at most :data:`MOST_FOUND`."""
        chosen = sorted(rows)[:MOST_FOUND]
        return tuple(plan for batch in make_batches(chosen) for plan in self._read(_ROWS.digest.in_(batch)))

    def find_by_pieces(self, text: str) -> tuple[KeptPlan, ...]:
        """Return the plans whose outputs have pieces in common with a text, those with most first."""
        pieces = {text[start:end] for start, end in split_into_pieces(text) if tells_document(text[start:end])}
        digests = {self._sealer.digest("piece", self._scope, digest_piece(piece)) for piece in pieces}
        counts = Counter(plan for _, plan in self._find_links(digests))
        chosen = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_FOUND])
        return tuple(sorted(self.find_by_rows(chosen), key=lambda plan: (-chosen[plan.row], plan.row)))

    def find_documents_of(self, replacements: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return, for each replacement, the rows of the plans that made it."""
        by_digest: dict[str, list[str]] = {}
        for replacement in replacements:
            by_digest.setdefault(_digest_made(self._sealer, self._scope, replacement), []).append(replacement)
        rows: dict[str, set[str]] = {}
        for piece, plan in self._find_links(by_digest):
            for replacement in by_digest[piece]:
                rows.setdefault(replacement, set()).add(plan)
        return {replacement: frozenset(plans) for replacement, plans in rows.items()}

    def _find_links(self, digests: Iterable[str]) -> Iterator[tuple[str, str]]:
        table = store.pieces
        for batch in make_batches(digests):
            query = sa.select(table.c.piece, table.c.plan).join(store.plans, table.c.plan == _ROWS.digest)
            for row in self._connection.execute(query.where(table.c.piece.in_(batch), self._is_kept)):
                yield row.piece, row.plan

    def _read(self, condition: sa.ColumnElement[bool]) -> Iterator[KeptPlan]:
        query = sa.select(store.plans).where(condition, self._is_kept).order_by(_ROWS.created, _ROWS.digest)
        for row in self._connection.execute(query).all():
            yield unpack_plan_row(self._sealer, self._scope, row)


def unpack_plan_row(sealer: Sealer, scope: str, row: Any) -> KeptPlan:
    """Decrypt a row of the table ``plans``."""
    return unpack_plan(row.digest, sealer.unseal(row.sealed, *_bind(scope, row.digest, row.result)), sealer.where)

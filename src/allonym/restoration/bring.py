"""Restore originals with a plan, with a vault's scope, or by decrypting mentions with a key."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from allonym.errors import RestoreError, UsageError
from allonym.keys import require_key
from allonym.plan import Plan
from allonym.restoration.destination import Destination, DestinationName, shorten_context
from allonym.restoration.documents import (
    Origin,
    find_origin,
    find_origin_by_replacements,
    list_document_ids,
    match_outputs,
)
from allonym.restoration.edits import (
    ARTICLE,
    has_originals,
    is_irreversible,
    list_article_replacements,
    list_replacements,
)
from allonym.restoration.evidence import Evidence, is_telling
from allonym.restoration.forms import PERSON
from allonym.restoration.hits import Match
from allonym.restoration.index import Index
from allonym.restoration.lookup import MOST_LOADED, look_up_replacements
from allonym.restoration.reconcile import reconcile_with_plan
from allonym.restoration.residue import add_residue, explain_uncertain, order_matches
from allonym.restoration.restored import Restored, apply_matches, note_ordinary_words
from allonym.restoration.scan import Scan
from allonym.restoration.view import UNFINISHED
from allonym.vault import check_vault
from allonym.vault.records import KeptPlan, Known, format_scope_names

if TYPE_CHECKING:
    from allonym.vault import Vault

_LOST = "passages that were removed, masked or generalised cannot be brought back into a changed text"
_CONTEXT = 2048
"""Characters of the output that a stream keeps as context."""
_ARTICLE_LAST = re.compile(r"(?<![^\W_])[aA][nN]?[ \n\t\u00a0]\Z")


class Restorer:
    """Restores many texts from replacements that are indexed once.

    Made from a list or a plan, it takes the caller's word that the texts were derived from those replacements, such as
    a model's answer. Made from a vault, it restores only what has evidence, see
    :mod:`allonym.restoration.evidence`, and a text whose plan the vault keeps exactly.

    Args:
        known: replacements with their originals, such as ``vault.known(scope)``. A replacement of several entities is
            left; of several surfaces of one entity, the fullest is restored.
        key: the secret with which mentions were encrypted; these are decrypted as well.

    Raises:
        UsageError: the key is too short.
    """

    def __init__(self, known: Iterable[Known], *, key: bytes | str | None = None) -> None:
        listed = list(known)
        # The planner adapted the article before these replacements; it is adapted back if the text is complete.
        self._articles = frozenset(entry.replacement for entry in listed if entry.operator.startswith(ARTICLE))
        self._index = Index(entry for entry in listed if not entry.operator.startswith(ARTICLE))
        self._key = None if key is None else require_key(key, "encrypt")
        self._vault: Vault | None = None
        self._scope = ""
        self._is_looking_up = False  # in a large scope, only what a text may contain is read

    @classmethod
    def from_vault(cls, vault: Vault, scope: str = "", *, key: bytes | str | None = None) -> Restorer:
        """Restore from a vault's scope. These restores are not written to the audit log.

        Of a scope with more than 10,000 originals, only those are read that a text may contain; a stream reads all.

        Raises:
            UsageError: ``vault`` is not a vault, or the key is too short.
            RestoreError: the vault has no such scope.
            VaultError: the vault cannot be read.
        """
        check_vault(vault, "known")
        is_large = vault.has_more_than(scope, MOST_LOADED)
        restorer = cls(() if is_large else _list_vault_replacements(vault, scope), key=key)
        restorer._vault, restorer._scope, restorer._is_looking_up = vault, scope, is_large
        return restorer

    def _narrow_to_text(self, text: str) -> Restorer:
        """Return a restorer with the replacements that a text may contain, if the scope is too large to be read."""
        if self._vault is None or not self._is_looking_up:
            return self
        return self._read_more(look_up_replacements(self._vault, self._scope, text))

    def _read_whole_scope(self) -> Restorer:
        """Return a restorer with all replacements of the vault's scope."""
        if self._vault is None or not self._is_looking_up:
            return self
        return self._read_more(_list_vault_replacements(self._vault, self._scope))

    def _read_more(self, entries: Iterable[Known]) -> Restorer:
        restorer = Restorer(entries, key=self._key)
        restorer._vault, restorer._scope = self._vault, self._scope
        return restorer

    @classmethod
    def from_plan(
        cls, plan: Plan, vault: Vault | None = None, scope: str = "", *, key: bytes | str | None = None
    ) -> Restorer:
        """Restore from a plan, in many texts derived from the plan's text, and optionally from a vault's scope.

        Raises:
            RestoreError: the plan contains no originals, or the vault has no such scope.
            UsageError, VaultError: as :meth:`from_vault`.
        """
        return cls(_collect_replacements(plan, vault, key, scope), key=key)

    def __repr__(self) -> str:
        return f"Restorer({len(self._index)} replacements)"

    def restore(self, text: str, destination: Destination | None = None) -> Restored:
        """Restore every replacement in ``text`` that is recognised with certainty; nothing else changes.

        Args:
            text: the text.
            destination: where it goes; None: it is the text itself, in which everything is restored.
        """
        if self._vault is not None:
            with self._vault.read_plans(self._scope) as reader:
                origin = find_origin(reader, text, "")
            return _restore_with_evidence(text, origin, self, destination)
        matches = explain_uncertain(self._find_matches(text), self._index.rows)
        matches = add_residue(text, matches, knows_tags=self.knows_tags)
        matches = _withhold_matches(text, matches, destination)
        return apply_matches(text, matches, notes=note_ordinary_words(matches, self._index))

    def list_originals(self, text: str) -> dict[str, str]:
        """Return the replacements that are recognised in ``text`` with certainty, as they stand there, each with its
        original."""
        matches = self._narrow_to_text(text)._make_scan(text).find_matches()
        return {text[m.start : m.end]: m.out for m in matches if m.is_sure and m.out is not None}

    def _find_matches(self, text: str) -> list[Match]:
        return self._mark_articles(self._make_scan(text).find_matches())

    def _make_scan(self, text: str, *, final: bool = True) -> Scan:
        return Scan(text, self._index, self._key, final=final)

    def _mark_articles(self, matches: Iterable[Match]) -> list[Match]:
        """Say of each match whether the article before it was adapted."""
        rows, articles = self._index.rows, self._articles
        if not articles:
            return list(matches)
        return [m._replace(adapts_article=True) if m.row >= 0 and rows[m.row].text in articles else m for m in matches]

    def find_documents(self, matches: Iterable[Match]) -> dict[str, frozenset[str]]:
        """Return the vault's documents of each replacement that matched."""
        if self._vault is None:
            return {}
        replacements = {self._index.rows[m.row].text for m in matches if m.row >= 0}
        with self._vault.read_plans(self._scope) as reader:
            return dict(reader.find_documents_of(replacements))

    def _find_origin_by_replacements(self, matches: Sequence[Match]) -> Origin:
        """Return the document whose replacements the text has nearly all, if there is one such document."""
        if self._vault is None:
            return Origin()
        rows = {self._index.rows[m.row].text: self._index.rows[m.row] for m in matches if m.row >= 0}
        documents = self.find_documents(matches)
        telling = {text for text, row in rows.items() if row.kind == PERSON or is_telling(row)}
        with self._vault.read_plans(self._scope) as reader:
            return find_origin_by_replacements(reader, documents, telling)

    @property
    def knows_tags(self) -> bool:
        """Whether any replacement is a tag or an encrypted mention."""
        return bool(self._index.labels or self._index.sealed)

    @property
    def shared(self) -> int:
        """Number of replacements that stand for several entities, and so cannot be restored alone."""
        return sum(row.find_single_original() is None for row in self._read_whole_scope()._index.rows)

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Restore a text that arrives in chunks. The joined output is that of :meth:`restore` for the joined chunks.

        Only an end that may still be, or become, part of a replacement is held back. From a vault, only what came
        before is evidence, so a stream may leave more than the whole text would.
        """
        return self.arriving().feed_all(chunks)

    def arriving(self, destination: Destination | None = None) -> Arriving:
        """Return an :class:`Arriving`, which is fed chunks one by one; ``destination`` as in :meth:`restore`."""
        return Arriving(self._read_whole_scope(), destination)


class Arriving:
    """A text that arrives in chunks; see :meth:`Restorer.arriving`.

    Attributes:
        restored, unknown: number of replacements restored so far, and of those recognised but left.
        withheld: those of the latter that must not come back where the text goes, as they stand in the text, each with
            its original.
    """

    def __init__(self, restorer: Restorer, destination: Destination | None = None) -> None:
        self._restorer = restorer
        self._destination = destination
        self._evidence = Evidence(restorer._index.rows) if restorer._vault is not None else None
        self._context = ""
        self._waiting = ""
        self.restored = 0
        self.unknown = 0
        self.withheld: list[tuple[str, str]] = []

    def _judge_matches(self, text: str, matches: Sequence[Match]) -> list[Match]:
        """Return the sure matches; from a vault, those that what came before supports."""
        if self._evidence is not None:
            matches = self._evidence.judge_matches(text, matches, self._restorer.find_documents(matches))
        return [match for match in matches if match.is_sure]

    def feed(self, piece: str) -> str:
        """Take the next chunk, and return the restored text that it decides, which may be empty."""
        if not piece:
            return ""
        self._waiting += piece
        cut = len(self._waiting)
        tail = UNFINISHED.search(self._waiting, max(0, cut - 64))
        return self._restore_waiting(tail.start() if tail else cut, final=False)

    def end(self) -> str:
        """Return the rest of the restored text; no chunk follows."""
        return self._restore_waiting(len(self._waiting), final=True) if self._waiting else ""

    def feed_all(self, chunks: Iterable[str]) -> Iterator[str]:
        """Yield the restored text of all chunks as it is decided."""
        for chunk in chunks:
            if out := self.feed(chunk):
                yield out
        if out := self.end():
            yield out

    def _restore_waiting(self, cut: int, *, final: bool) -> str:
        """Restore what waits, up to offset ``cut`` and as far as it is decided."""
        begin = len(self._context)
        text = self._context + self._waiting[:cut]
        scan = self._restorer._make_scan(text, final=final)
        matches = self._judge_matches(text, self._restorer._mark_articles(scan.find_matches(begin)))
        certain = len(text)
        if self._destination is not None:
            judged, certain = self._destination.withhold_matches(text, matches, final=final)
            self.withheld += [
                (text[m.start : m.end], m.out)
                for m, match in zip(matches, judged, strict=False)
                if m.out is not None and match.out is None
            ]
            matches = judged
        position = matches[-1].end if matches else begin
        until = len(text) if final else min(certain, max(position, scan.held_from))
        if not final and self._restorer._articles:
            article = _ARTICLE_LAST.search(text, max(position, until - 4), until)
            until = article.start() if article else until  # the next word may need the other article
        part = apply_matches(text[:until], (m for m in matches if m.is_sure), begin)
        self.restored += part.restored
        self.unknown += part.unknown
        start = max(0, until - _CONTEXT)
        self._context = text[start:until] if self._destination is None else shorten_context(text[:until], start)
        self._waiting = self._waiting[until - begin :]
        return part.text


def restore(
    text: str,
    *,
    plan: Plan | None = None,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    document: str = "",
    actor: str = "",
    destination: DestinationName = "document",
) -> Restored:
    """Restore originals from a plan, a vault's scope or encrypted mentions, in one pass from left to right.

    With the plan of exactly this text, the result is exactly the original. A vault keeps the plans of its documents
    and finds the one of a text, also if the text was edited: sentences that nobody changed come back exactly. What
    else was rewritten is searched for: first letter by letter, then in other forms, by rules that ``found`` names. A
    replacement that any text may have by chance is restored only with evidence of its document, which ``found`` names
    too. The original takes the form of the replacement: shortened, in capitals, inflected, escaped.

    What is left, or may be a replacement, is listed in ``residue`` and counted as unknown: replacements of several
    entities, unknown tags, what has no evidence, and text that was removed, masked or generalised. A replacement of
    the plan that the text does not use is ``missing``, which is no error.

    If a plan's replacement stood for several surfaces of one entity ("Ms Connor", "Connor"), they are restored in
    order if all are still there. Otherwise the fullest surface is restored.

    With the key, every encrypted mention is decrypted, one layer deep. A mention that was encrypted with another key,
    or was changed, is left and counted as unknown.

    Args:
        text: the anonymised text, rewritten or not.
        plan: the plan of the text, with its originals.
        vault: the vault with the originals; the restore is written to its audit log.
        key: the secret with which the text was anonymised.
        scope: the vault's scope.
        document: id of the document in the vault that the text comes from; by default the vault finds it.
        actor: name for the vault's audit log.
        destination: ``document``: the text itself, in which everything is restored; ``answer``: what a language model
            wrote and somebody reads. There a replacement within an address is left, because the address may carry the
            original elsewhere (``![](https://example.com/?q=<PERSON 1>)``).

    Raises:
        UsageError: there is no plan, vault or key, ``vault`` is not a vault, the key is too short, or the destination
            is none of the two.
        RestoreError: the plan contains no originals and there is nothing else, or the vault has no such scope or
            document.
        VaultError: the vault cannot be read.
    """
    check_vault(vault, "known")
    _check_sources(plan, vault, key)
    target = _make_destination(destination)
    if document and vault is None:
        raise UsageError("document=... names a document of a vault, so vault=... is required")
    origin = Origin()
    scope_restorer: Restorer | None = None
    if plan is not None and has_originals(plan):
        candidates = (KeptPlan("", "", plan),)
        origin = match_outputs(text, candidates) or Origin(candidates, remaining=(plan.edits,))
    elif vault is not None:
        with vault.read_plans(scope) as reader:
            origin = find_origin(reader, text, document)
        if document and not origin.plans:
            raise RestoreError(f"this vault knows no document {document!r} in scope {scope!r}")
    if vault is not None and not origin.is_exact:
        scope_restorer = Restorer.from_vault(vault, scope, key=key)
    elif key is not None:
        scope_restorer = Restorer((), key=key)
    result = _restore_with_evidence(text, origin, scope_restorer, target)
    _log_restore(vault, scope, actor, result.restored, result.unknown)
    return result


def _make_destination(name: str) -> Destination | None:
    """Return the destination of an answer; None for the text itself."""
    if name not in get_args(DestinationName):
        raise UsageError(f"destination must be 'document' or 'answer', got {name!r}")
    return Destination() if name == "answer" else None


def _withhold_matches(text: str, matches: list[Match], destination: Destination | None) -> list[Match]:
    return matches if destination is None else destination.withhold_matches(text, matches)[0]


def _restore_with_evidence(
    text: str, origin: Origin, scope_restorer: Restorer | None, destination: Destination | None
) -> Restored:
    """Restore a text from what is known of its origin: exact sentences, then plans, then the whole scope.

    Args:
        text: the text.
        origin: its documents.
        scope_restorer: with the replacements of the scope, or the key.
        destination: as in :meth:`Restorer.restore`.
    """
    matches = list(origin.matches)
    notes: list[str] = []
    lost = missing = 0
    planned: frozenset[str] = frozenset()
    knows_tags = is_foreign = False
    in_scope: list[Match] = []
    if scope_restorer is not None and not origin.is_exact:
        scope_restorer = scope_restorer._narrow_to_text(text)
        in_scope = scope_restorer._find_matches(text)
        if not origin.plans:
            origin = scope_restorer._find_origin_by_replacements(in_scope)
    if origin.plans and not origin.is_exact:
        entries, expected = _list_origin_replacements(origin)
        restorer = Restorer(entries, key=None if scope_restorer is None else scope_restorer._key)
        index = restorer._index
        planned = frozenset(row.text for row in index.rows)
        mine = _drop_overlaps(restorer._find_matches(text), matches)
        evidence = Evidence(index.rows, {""} if matches else (), is_given=True)
        mine = evidence.judge_matches(text, mine, {})
        notes += note_ordinary_words(mine, index, expected)
        mine, missing, more = reconcile_with_plan(mine, index, expected, is_shown=evidence.is_shown())
        notes += more
        lost = sum(is_irreversible(edit) for edits in origin.remaining for edit in edits)
        notes += [_LOST] * bool(lost)
        matches = order_matches((*matches, *explain_uncertain(mine, index.rows)))
        knows_tags = restorer.knows_tags
    if scope_restorer is not None and not origin.is_exact:
        rows = scope_restorer._index.rows
        mine = _drop_overlaps(in_scope, matches)
        mine = [m for m in mine if m.row < 0 or rows[m.row].text not in planned]
        evidence = Evidence(rows, (plan.row for plan in origin.plans))
        mine = evidence.judge_matches(text, mine, scope_restorer.find_documents(mine))
        notes += note_ordinary_words(mine, scope_restorer._index)
        matches = order_matches((*matches, *explain_uncertain(mine, rows)))
        knows_tags = knows_tags or scope_restorer.knows_tags
        is_foreign = scope_restorer._vault is not None and not origin.plans and not any(m.is_sure for m in matches)
    matches = add_residue(text, matches, knows_tags=knows_tags, expects_tags=is_foreign)
    matches = _withhold_matches(text, matches, destination)
    result = apply_matches(text, matches, notes=notes)
    documents = list_document_ids((*origin.plans, *origin.rivals))
    return replace(result, unknown=result.unknown + lost, missing=missing, documents=documents)


def _list_origin_replacements(origin: Origin) -> tuple[list[Known], dict[str, list[str]]]:
    """Return the replacements of all plans, and the originals of those that are not accounted for yet."""
    entries: list[Known] = []
    expected: dict[str, list[str]] = {}
    for number, (kept_plan, remaining) in enumerate(zip(origin.plans, origin.remaining, strict=True)):
        mark = f"{number}:" if len(origin.plans) > 1 else ""
        entries += (replace(k, entity=mark + k.entity) for k in list_replacements(kept_plan.plan.edits))
        entries += list_article_replacements(kept_plan.plan.edits)
        for entry in list_replacements(remaining):
            expected.setdefault(entry.replacement, []).append(entry.original)
    return entries, expected


def _drop_overlaps(matches: Iterable[Match], others: Sequence[Match]) -> list[Match]:
    """Return the matches that overlap none of the others, which are disjoint and in reading order."""
    ends = [m.end for m in others]
    out = []
    for m in matches:
        i = bisect_left(ends, m.start + 1)
        if i == len(others) or others[i].start >= m.end:
            out.append(m)
    return out


def restore_stream(
    chunks: Iterable[str],
    *,
    plan: Plan | None = None,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    actor: str = "",
    destination: DestinationName = "document",
) -> Iterator[str]:
    """Restore originals in a text that arrives in chunks; see :func:`restore`.

    For the answer of a language model that somebody reads, name the destination ``answer``.

    Only an end that may still be part of a replacement is held back. The joined result is that of :func:`restore`,
    except that of several surfaces of one entity the fullest is always restored, and that from a vault only what came
    before is evidence.

    Raises:
        As :func:`restore`, before the first chunk is read.
    """
    _check_sources(plan, vault, key)
    if plan is not None:
        restorer = Restorer.from_plan(plan, vault, scope, key=key)
    else:
        restorer = Restorer((), key=key) if vault is None else Restorer.from_vault(vault, scope, key=key)
    arriving = restorer.arriving(_make_destination(destination))

    def stream() -> Iterator[str]:
        try:
            yield from arriving.feed_all(chunks)
        finally:
            _log_restore(vault, scope, actor, arriving.restored, arriving.unknown)

    return stream()


def _log_restore(vault: Vault | None, scope: str, actor: str, restored: int, unknown: int) -> None:
    if vault is not None:
        vault.record("restore", scope=scope, actor=actor, counts={"restored": restored, "unknown": unknown})


def _check_sources(plan: Plan | None, vault: Vault | None, key: bytes | str | None) -> None:
    """Check that there is something to restore from."""
    if plan is None and vault is None and key is None:
        raise UsageError(
            "restore needs plan=... (from anonymize), vault=... (with the originals) or key=... (of encrypted mentions)"
        )
    check_vault(vault, "known")
    if key is not None:
        require_key(key, "encrypt")
    if plan is not None and not has_originals(plan) and vault is None and key is None:
        raise RestoreError(
            "this plan holds no originals, so it cannot restore; "
            "save it with --originals (originals=True in Python), or restore from a vault"
        )


def _collect_replacements(plan: Plan, vault: Vault | None, key: bytes | str | None, scope: str) -> list[Known]:
    """Return the replacements of a plan, and those of the vault's scope that the plan has not."""
    _check_sources(plan, vault, key)
    entries: list[Known] = []
    if has_originals(plan):
        entries += (*list_replacements(plan.edits), *list_article_replacements(plan.edits))
    if vault is not None:
        there = {entry.replacement for entry in entries}
        entries += (entry for entry in _list_vault_replacements(vault, scope) if entry.replacement not in there)
    return entries


def _list_vault_replacements(vault: Vault, scope: str) -> Sequence[Known]:
    entries = vault.known(scope)
    if not entries and scope not in (names := [scope_info.name for scope_info in vault.info().scopes]):
        raise RestoreError(
            f"this vault knows nothing in scope {scope!r}; it has: {format_scope_names(names)}. "
            "Name one with --scope (scope=... in Python)"
        )
    return entries

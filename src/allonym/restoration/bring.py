"""Restore originals with a plan, with a vault's scope, or by decrypting mentions with a key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from allonym.errors import RestoreError, UsageError
from allonym.keys import require_key
from allonym.plan import Edit, Plan, invert_plan
from allonym.protocol import get_traits_by_name
from allonym.replace.wording import find_article, fit_article
from allonym.restoration.hits import Match
from allonym.restoration.index import Index
from allonym.restoration.scan import Scan
from allonym.restoration.view import UNFINISHED
from allonym.vault import check_vault
from allonym.vault.records import Known, format_scope_names

if TYPE_CHECKING:
    from allonym.vault import Vault

_OUTER = " \n\r\t.,;:!?'’sS"
_ORDINARY = "numbers and ordinary words that are also replacements were left"
_CONTEXT = 2048
"""Characters of the output that a stream keeps as context."""
_ARTICLE = "article@"
_ARTICLE_LAST = re.compile(r"(?<![^\W_])[aA][nN]?[ \n\t\u00a0]\Z")


@dataclass(frozen=True, slots=True)
class Found:
    """One restored mention.

    Attributes:
        start, end: half-open, in the returned text.
        rule: how it was recognised: ``exact``, or rules such as ``case``, ``spacing``, ``typo``, ``shortened``, joined
            by ``+``.
        label: of the entity.
    """

    start: int
    end: int
    rule: str
    label: str


@dataclass(frozen=True, slots=True)
class Restored:
    """A text with its originals restored.

    Attributes:
        text: hidden from ``repr``.
        restored: number of replacements restored.
        unknown: number of replacements that are missing, or were recognised but could not be restored.
        notes: the reasons, without text of the document.
        found: the restored mentions, in reading order.
    """

    text: str = field(repr=False)
    restored: int = 0
    unknown: int = 0
    notes: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()


class Restorer:
    """Restores many texts from replacements that are indexed once.

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
        self._articles = frozenset(entry.replacement for entry in listed if entry.operator.startswith(_ARTICLE))
        self._index = Index(entry for entry in listed if not entry.operator.startswith(_ARTICLE))
        self._key = None if key is None else require_key(key, "encrypt")

    @classmethod
    def from_vault(cls, vault: Vault, scope: str = "", *, key: bytes | str | None = None) -> Restorer:
        """Restore from a vault's scope. These restores are not written to the audit log.

        Raises:
            UsageError: ``vault`` is not a vault, or the key is too short.
            RestoreError: the vault has no such scope.
            VaultError: the vault cannot be read.
        """
        return cls(_collect_known_replacements(None, vault, key, scope)[0], key=key)

    @classmethod
    def from_plan(
        cls, plan: Plan, vault: Vault | None = None, scope: str = "", *, key: bytes | str | None = None
    ) -> Restorer:
        """Restore from a plan, in many texts derived from the plan's text, and optionally from a vault's scope.

        Raises:
            RestoreError: the plan contains no originals, or the vault has no such scope.
            UsageError, VaultError: as :meth:`from_vault`.
        """
        return cls(_collect_known_replacements(plan, vault, key, scope)[0], key=key)

    def __repr__(self) -> str:
        return f"Restorer({len(self._index)} replacements)"

    def restore(self, text: str) -> Restored:
        """Restore every replacement in ``text`` that is recognised with certainty; nothing else changes."""
        matches = list(self._make_scan(text).find_matches())
        result = self._apply_matches(text, matches)
        return replace(result, notes=(*result.notes, *self._note_ordinary_words(matches)))

    def _make_scan(self, text: str, *, final: bool = True) -> Scan:
        return Scan(text, self._index, self._key, final=final)

    def _apply_matches(self, text: str, matches: Iterable[Match], begin: int = 0) -> Restored:
        """Put the originals of the sure matches into ``text`` from offset ``begin`` on, and return that part."""
        pieces: list[str] = []
        mentions: list[Found] = []
        notes: list[str] = []
        position, size = begin, 0
        for m in matches:
            if not m.is_sure:
                continue
            between, out = text[position : m.start], text[m.start : m.end]
            if m.out is None:
                notes.append(m.why)
            else:
                out = m.out
                if m.row >= 0 and self._index.rows[m.row].text in self._articles:
                    between = _adapt_article(text, position, m.start, m.end, out)
                start = size + len(between)
                mentions.append(Found(start, start + len(out), m.rule, m.label))
            pieces += (between, out)
            size += len(between) + len(out)
            position = m.end
        pieces.append(text[position:])
        return Restored("".join(pieces), len(mentions), len(notes), tuple(dict.fromkeys(notes)), tuple(mentions))

    @property
    def shared(self) -> int:
        """Number of replacements that stand for several entities, and so cannot be restored alone."""
        return sum(row.find_single_original() is None for row in self._index.rows)

    def _note_ordinary_words(
        self, matches: Iterable[Match], planned: Mapping[str, int] | None = None
    ) -> tuple[str, ...]:
        """Return a note if matches of ordinary words were left that no plan confirms, or nothing."""
        rows = self._index.rows
        for m in matches:
            if m.row >= 0 and not m.is_sure and rows[m.row].is_ordinary and rows[m.row].text not in (planned or ()):
                return (_ORDINARY,)
        return ()

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Restore a text that arrives in chunks. The joined output is that of :meth:`restore` for the joined chunks.

        Only an end that may still be, or become, part of a replacement is held back.
        """
        return self.arriving().feed_all(chunks)

    def arriving(self) -> Arriving:
        """Return an :class:`Arriving`, which is fed chunks one by one."""
        return Arriving(self)


class Arriving:
    """A text that arrives in chunks; see :meth:`Restorer.arriving`.

    Attributes:
        restored, unknown: number of replacements restored so far, and of those recognised but left.
    """

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer
        self._context = ""
        self._waiting = ""
        self.restored = 0
        self.unknown = 0

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
        matches = [match for match in scan.find_matches(begin) if match.is_sure]
        position = matches[-1].end if matches else begin
        until = len(text) if final else max(position, scan.held_from)
        if not final and self._restorer._articles:
            article = _ARTICLE_LAST.search(text, max(position, until - 4), until)
            until = article.start() if article else until  # the next word may need the other article
        part = self._restorer._apply_matches(text[:until], matches, begin)
        self.restored += part.restored
        self.unknown += part.unknown
        self._context = text[max(0, until - _CONTEXT) : until]
        self._waiting = self._waiting[until - begin :]
        return part.text


def restore(
    text: str,
    *,
    plan: Plan | None = None,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    actor: str = "",
) -> Restored:
    """Restore originals from a plan, a vault's scope or encrypted mentions, in one pass from left to right.

    With the plan of exactly this text, the result is exactly the original. In a text that was rewritten since, each
    replacement is searched for: first letter by letter, then in other forms, by rules that ``found`` names. The
    original takes the form of the replacement: shortened, in capitals, inflected, escaped. These are left and counted
    as unknown: replacements of several entities, unknown tags, and text that was removed, masked or generalised.

    If a plan's replacement stood for several surfaces of one entity ("Ms Connor", "Connor"), they are restored in
    order if all are still there. Otherwise, and from a vault, the fullest surface is restored.

    With the key, every encrypted mention is decrypted, one layer deep. A mention that was encrypted with another key,
    or was changed, is left and counted as unknown.

    Args:
        text: the anonymised text, rewritten or not.
        plan: the plan of the text, with its originals.
        vault: the vault with the originals; the restore is written to its audit log.
        key: the secret with which the text was anonymised.
        scope: the vault's scope.
        actor: name for the vault's audit log.

    Raises:
        UsageError: there is no plan, vault or key, ``vault`` is not a vault, or the key is too short.
        RestoreError: the plan contains no originals and there is nothing else, or the vault has no such scope.
        VaultError: the vault cannot be read.
    """
    entries, lost = _collect_known_replacements(plan, vault, key, scope)
    if plan is not None:
        original = invert_plan(text, plan)
        if original is not None:
            edits = (e for e in plan.edits if not e.operator.startswith(_ARTICLE))
            mentions = tuple(Found(e.start, e.end, "exact", e.label) for e in edits)
            _log_restore(vault, scope, actor, len(mentions), 0)
            return Restored(original, len(mentions), found=mentions)
    restorer = Restorer(entries, key=key)
    matches = list(restorer._make_scan(text).find_matches())
    notes: list[str] = []
    if lost:
        notes.append("passages that were removed, masked or generalised cannot be brought back into a changed text")
    listed = _list_plan_replacements(plan) if plan is not None else ()
    expected = Counter(entry.replacement for entry in listed)
    notes += restorer._note_ordinary_words(matches, expected)
    if plan is not None:
        matches, missing, more = _reconcile_with_plan(matches, restorer._index, expected)
        lost += missing
        notes += more
    result = restorer._apply_matches(text, matches)
    result = replace(result, unknown=result.unknown + lost, notes=tuple(dict.fromkeys((*notes, *result.notes))))
    _log_restore(vault, scope, actor, result.restored, result.unknown)
    return result


def restore_stream(
    chunks: Iterable[str],
    *,
    plan: Plan | None = None,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
    actor: str = "",
) -> Iterator[str]:
    """Restore originals in a text that arrives in chunks, such as a language model's answer; see :func:`restore`.

    Only an end that may still be part of a replacement is held back. The joined result is that of :func:`restore`,
    except that of several surfaces of one entity the fullest is always restored.

    Raises:
        As :func:`restore`, before the first chunk is read.
    """
    arriving = Restorer(_collect_known_replacements(plan, vault, key, scope)[0], key=key).arriving()

    def stream() -> Iterator[str]:
        try:
            yield from arriving.feed_all(chunks)
        finally:
            _log_restore(vault, scope, actor, arriving.restored, arriving.unknown)

    return stream()


def _log_restore(vault: Vault | None, scope: str, actor: str, restored: int, unknown: int) -> None:
    if vault is not None:
        vault.record("restore", scope=scope, actor=actor, counts={"restored": restored, "unknown": unknown})


def _collect_known_replacements(
    plan: Plan | None, vault: Vault | None, key: bytes | str | None, scope: str
) -> tuple[Sequence[Known], int]:
    """Return the replacements to search for, and the number of edits that cannot be restored."""
    if plan is None and vault is None and key is None:
        raise UsageError(
            "restore needs plan=... (from anonymize), vault=... (with the originals) or key=... (of encrypted mentions)"
        )
    check_vault(vault, "known")
    if key is not None:
        require_key(key, "encrypt")
    entries: list[Known] = []
    lost = 0
    if plan is not None:
        if all(e.original is not None for e in plan.edits):
            entries += _list_plan_replacements(plan)
            entries += _list_article_replacements(plan)
            lost = sum(_is_irreversible(e) for e in plan.edits)
        elif vault is None and key is None:
            raise RestoreError(
                "this plan holds no originals, so it cannot restore; "
                "save it with originals=True, or encrypt and restore with the key"
            )
    if vault is not None:
        vault_entries = vault.known(scope)
        if not vault_entries and scope not in (names := [scope_info.name for scope_info in vault.info().scopes]):
            raise RestoreError(f"this vault knows nothing in scope {scope!r}; it has: {format_scope_names(names)}")
        if not entries:
            return vault_entries, lost
        there = {entry.replacement for entry in entries}
        entries += (entry for entry in vault_entries if entry.replacement not in there)
    return entries, lost


def _is_irreversible(edit: Edit) -> bool:
    """Tell whether an edit is irreversible, so that a rewritten text does not determine the original."""
    is_lost = get_traits_by_name(edit.operator).lossy or not edit.replacement.strip()
    return is_lost and not edit.operator.startswith(_ARTICLE)


def _list_plan_replacements(plan: Plan) -> Iterator[Known]:
    """Yield the plan's replacements that can be searched for."""
    for e in plan.edits:
        if not e.operator.startswith(_ARTICLE) and not _is_irreversible(e) and e.original is not None:
            token, original = _strip_shared_space_and_ending(e.replacement, e.original)
            yield Known(token, original, e.label, e.operator, str(e.entity) if e.entity else f"@{e.start}")


def _strip_shared_space_and_ending(replacement: str, original: str) -> tuple[str, str]:
    """Strip from both the possessive, space or full stop that the plan kept around the replacement."""
    a = 0
    most = min(len(replacement), len(original)) - 1
    while a < most and replacement[a] == original[a] and original[a].isspace():
        a += 1
    ends = 0
    while ends < most - a and replacement[-1 - ends] == original[-1 - ends] and original[-1 - ends] in _OUTER:
        ends += 1
    ending = replacement[len(replacement) - ends :]
    for end in range(ends, 0, -1):
        tail = ending[-end:]
        if tail.strip(" \n\r\t.,;:!?") in ("", "'s", "’s", "'S", "’S", "'", "’"):
            token = replacement[a : len(replacement) - end]
            return token.lstrip(" ") or token, original[a : len(original) - end]
    # A space inserted between two words belongs to neither of them.
    return replacement[a:].strip(" ") or replacement[a:], original[a:]


def _reconcile_with_plan(
    matches: list[Match], index: Index, expected: Mapping[str, int]
) -> tuple[list[Match], int, list[str]]:
    """Use the counts of the whole text: restore surfaces in order, drop surplus matches, note missing replacements."""
    notes: list[str] = []
    there = {m.row for m in matches}
    matches = _drop_surplus_matches(matches, index, expected)
    whole_counts = Counter(m.row for m in matches if m.row >= 0 and m.is_whole)
    matched_rows = {m.row for m in matches if m.row >= 0}
    missing = 0
    for i, row in enumerate(index.rows):
        if row.text not in expected:
            continue
        if i not in matched_rows:
            missing += 1
            if row.is_ordinary and i in there:
                notes.append(f"a number or word for {row.label} occurs more or less often than the plan put it there")
            else:
                notes.append(f"a replacement for {row.label} is no longer in the text")
        elif row.has_variants and whole_counts[i] not in (0, len(row.originals)):
            notes.append(f"one {row.label} was restored as its fullest name throughout")
    used = Counter[int]()
    out = []
    for m in matches:
        if m.row >= 0 and m.is_whole and m.out is not None:
            row = index.rows[m.row]
            if row.has_variants and whole_counts[m.row] == len(row.originals) and m.out == row.find_single_original():
                m = m._replace(out=row.originals[used[m.row]])
            used[m.row] += 1
        out.append(m)
    return out, missing, notes


def _drop_surplus_matches(matches: list[Match], index: Index, expected: Mapping[str, int]) -> list[Match]:
    """Drop doubtful matches of a replacement that are more than the plan made; the others become sure."""

    def is_doubtful(m: Match) -> bool:
        is_expected = m.row >= 0 and index.rows[m.row].is_rare and index.rows[m.row].text in expected
        return not (m.is_sure or is_expected) or (m.words == 1 and "typo" in m.rule)

    remaining = Counter({i: expected.get(row.text, 0) for i, row in enumerate(index.rows)})
    remaining.subtract(m.row for m in matches if m.row >= 0 and m.is_whole and not is_doubtful(m))
    kept_places: set[int] = set()
    for exact in (True, False):
        places: dict[int, list[int]] = {}
        for i, m in enumerate(matches):
            if m.row >= 0 and is_doubtful(m) and (m.rule == "exact") == exact:
                places.setdefault(m.row, []).append(i)
        for row, row_matches in places.items():
            are_sure = all(matches[i].is_sure for i in row_matches)
            if len(row_matches) == remaining[row] or (remaining[row] > 0 and are_sure):
                kept_places.update(row_matches)
                remaining[row] -= len(row_matches)
    return [m._replace(is_sure=True) for i, m in enumerate(matches) if i in kept_places or not is_doubtful(m)]


def _adapt_article(text: str, low: int, start: int, end: int, out: str) -> str:
    """Return the text before a mention, with its English article adapted to the original.

    The article is adapted only if it agrees with the replacement.
    """
    place = find_article(text, start, low)
    if place is not None:
        a, b = place
        article_text = text[a:b]
        adapted = fit_article(article_text, out)
        if adapted is not None and fit_article(article_text, text[start:end]) == article_text:
            return text[low:a] + adapted + text[b:start]
    return text[low:start]


def _list_article_replacements(plan: Plan) -> Iterator[Known]:
    """Return the replacements before which a plan adapted an article."""
    for edit, following in pairwise(plan.edits):
        if edit.operator.startswith(_ARTICLE) and following.original is not None:
            token, _ = _strip_shared_space_and_ending(following.replacement, following.original)
            yield Known(token, edit.original or "", following.label, edit.operator, "")

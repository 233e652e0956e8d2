"""The pipeline: detect, anonymize and restore, for one text and for many. It composes and has no logic of its own.

``Document -detect-> Span* -resolve-> Span* -link-> Entity* -plan-> Plan -apply-> text``
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allonym.detection.languages import count_languages, settle_language
from allonym.detection.selection import (
    count_unread_characters,
    explain_candidates,
    find_candidates,
    select_findings_and_add_repeats,
)
from allonym.detection.structure import cut_prose
from allonym.detection.turns import add_turns
from allonym.document import Document, Span
from allonym.keys import derive_operator_key
from allonym.link import Linked, link
from allonym.link.register import follow_register
from allonym.plan import Anonymized as Anonymized
from allonym.plan import Plan, Report, apply_edits, apply_edits_to_parts
from allonym.policy import Policy
from allonym.replace import Book, make_plan, subject_of
from allonym.replace.cast import count_offline_entities
from allonym.resolve import Decision, decide, resolve

if TYPE_CHECKING:
    from allonym.restoration import Restored
    from allonym.vault import Vault

TextOrDocument = str | Document
AnyPolicy = str | Path | Policy


def detect(text_or_document: TextOrDocument, policy: AnyPolicy = "default") -> tuple[Span, ...]:
    """Find what identifies somebody or something in a text, as disjoint spans in reading order.

    Args:
        text_or_document: a text or a :class:`Document`.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.

    Raises:
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    policy = Policy.load(policy)
    document = _as_document(text_or_document)
    return resolve_candidates(document, policy, find_candidates(document, policy))


def resolve_candidates(document: Document, policy: Policy, candidates: Iterable[Span]) -> tuple[Span, ...]:
    """Resolve what :func:`~allonym.detection.selection.find_candidates` saw to disjoint spans in reading order.

    Whatever depends on the whole document happens here: names that were found once are followed everywhere. The
    candidates may come from searching parts of the document one by one, with the offsets of the document.
    """
    return resolve(select_findings_and_add_repeats(document, policy, candidates), policy.taxonomy)


def explain(text_or_document: TextOrDocument, policy: AnyPolicy = "default") -> tuple[Decision, ...]:
    """List every candidate that any detector sees, and what became of it.

    The outcomes are kept, clipped, absorbed, superseded (a rule knew better what the tagger found), ordinary (it
    identifies nobody, or the whole document gives it other borders or another label), excluded and below threshold.
    """
    policy = Policy.load(policy)
    findings, losses = explain_candidates(_as_document(text_or_document), policy)
    _, decisions = decide(findings, policy.taxonomy)
    lost = (Decision(span, loss) for span, loss in losses.items())
    return tuple(sorted((*decisions, *lost), key=lambda decision: decision.span))


def anonymize(
    text_or_document: TextOrDocument,
    policy: AnyPolicy = "default",
    *,
    key: bytes | str | None = None,
    vault: Vault | None = None,
    scope: str = "",
) -> Anonymized:
    """Replace what identifies in a text. Every failure raises; the original text is never returned instead.

    Args:
        text_or_document: a text or a :class:`Document`.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret for keyed operators (``pseudonym``, ``wild_tag``, ``hash``, ``encrypt``, ``shift_dates``), at least
            16 bytes. By default the vault's own.
        vault: stores originals and replacements, so that an entity keeps its replacement in all documents of a scope,
            no two entities share one, and :func:`restore` can bring the originals back.
        scope: name of the project or release. An entity has one replacement within a scope, which cannot be linked to
            its replacement in another scope.

    Raises:
        UsageError: the policy is not valid, or it needs a key and none was given.
        DataError: the document cannot be processed.
        VaultError: the vault cannot be written; then nothing of the document is in it.
    """
    policy = Policy.load(policy)
    document = _as_document(text_or_document)
    if vault is not None:
        from allonym.vault import check_vault

        check_vault(vault)
        key = vault.operator_key if key is None else key
    spans = detect_with_key(document, policy, key)
    if vault is None:
        return replace_found(document, spans, policy, key=key, scope=scope)
    with vault.book(scope, subject_of(document, policy)) as book:
        return replace_found(document, spans, policy, key=key, scope=scope, book=book)


def detect_with_key(document: Document, policy: Policy, key: bytes | str | None) -> tuple[Span, ...]:
    """Run :func:`detect`; with a key, a detector that asks a language model may use its encrypted answers on disk."""
    if key is None or not policy.llm["cache"]:
        return detect(document, policy)
    from allonym.llm import unlocked

    with unlocked(derive_operator_key(key, "llm cache")):
        return detect(document, policy)


def replace_found(
    document: Document,
    spans: Sequence[Span],
    policy: Policy,
    *,
    key: bytes | str | None = None,
    scope: str = "",
    book: Book | None = None,
    linked: Linked | None = None,
    keep_plan: bool = True,
) -> Anonymized:
    """Replace the findings in a document; the second half of :func:`anonymize`.

    Args:
        document: as :func:`detect` saw it.
        spans: disjoint findings.
        policy, key, scope: as in :func:`anonymize`.
        book: a vault's book of the scope, open for writing.
        linked: the mentions grouped into entities; by default they are linked here.
        keep_plan: with a book, also keep the plan, by which the vault restores this very text exactly.
    """
    document = add_turns(document)
    policy = settle_language(policy, document.text)
    linked = link(document, spans, policy.taxonomy) if linked is None else linked
    if book is not None and book.register is not None and policy.consistent in ("auto", "scope"):
        linked = follow_register(document, linked, book.register, policy.taxonomy, key)
    plan = make_plan(document, linked.entities, policy, key=key, scope=scope, notes=linked.notes, book=book)
    text = apply_edits(document.text, plan.edits)
    if book is not None and keep_plan:
        people = {number: entity.key for number, entity in enumerate(linked.entities, 1) if entity.names}
        book.keep_plan(document.id, plan, text, people)
    parts = tuple(apply_edits_to_parts(document.text, document.parts, plan.edits)) if document.parts else (text,)
    labels = Counter(span.label for entity in linked.entities for span in entity.spans)
    prose = cut_prose(document, policy)
    report = Report(
        characters=len(document.text),
        entities=len(linked.entities),
        mentions=labels.total(),
        labels={label: count for label, count in sorted(labels.items()) if policy.rule(label).operator != "keep"},
        operators=dict(sorted(Counter(edit.operator.partition("@")[0] for edit in plan.edits).items())),
        offline=count_offline_entities(plan.notes),
        unread=count_unread_characters(document, policy),
        languages=count_languages(document.text if prose is None else prose.document.text),
    )
    return Anonymized(text, parts, plan, report, document.id, tuple(spans))


def detect_many(texts: Iterable[TextOrDocument], policy: AnyPolicy = "default") -> Iterator[tuple[Span, ...]]:
    """Run :func:`detect` on each text, lazily, in order."""
    loaded = Policy.load(policy)
    return (detect(text, loaded) for text in texts)


def anonymize_many(
    texts: Iterable[TextOrDocument],
    policy: AnyPolicy = "default",
    *,
    key: bytes | str | None = None,
    vault: Vault | None = None,
    scope: str = "",
) -> Iterator[Anonymized]:
    """Run :func:`anonymize` on each text, lazily, in order. Without a vault each text is numbered from 1 again."""
    loaded = Policy.load(policy)
    return (anonymize(text, loaded, key=key, vault=vault, scope=scope) for text in texts)


def restore_many(
    texts: Iterable[str],
    plans: Iterable[Plan] | None = None,
    *,
    vault: Vault | None = None,
    key: bytes | str | None = None,
    scope: str = "",
) -> Iterator[Restored]:
    """Run :func:`restore` on each text, lazily, in order, with its own plan, or with one vault or key for all."""
    from allonym.restoration import restore  # detecting needs none of it

    if plans is None:
        return (restore(text, vault=vault, key=key, scope=scope) for text in texts)
    return (
        restore(text, plan=plan, vault=vault, key=key, scope=scope) for text, plan in zip(texts, plans, strict=True)
    )


def _as_document(text_or_document: TextOrDocument) -> Document:
    return text_or_document if isinstance(text_or_document, Document) else Document("", text_or_document)

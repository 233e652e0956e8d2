"""The composition: detect, anonymize, restore, for one text and for many. No logic of its own.

``Document -detect-> Span* -resolve-> Span* -link-> Entity* -plan-> Plan -apply-> text``
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from allonym import registry
from allonym.detect import Detector
from allonym.detect.disguise import fold, views
from allonym.detect.echo import SCORE, echoes
from allonym.detect.lexicon import filter_excluded
from allonym.detect.repeats import repeats
from allonym.detect.tagger import SOURCE as TAGGER
from allonym.detect.turns import with_turns
from allonym.document import Document, Span, merge, subtract
from allonym.errors import AllonymError, DataError, UnknownNameError
from allonym.link import Linked, link
from allonym.plan import Plan, parts_after, replaced
from allonym.policy import Policy
from allonym.replace import Book, make_plan, subject_of
from allonym.replace.keyed import subkey
from allonym.replace.remarks import without_model
from allonym.resolve import Decision, decide, resolve
from allonym.restore import Restored, restore

if TYPE_CHECKING:
    from allonym.vault import Vault

TextOrDocument = str | Document
AnyPolicy = str | Path | Policy
GIVEN_MONTHS = frozenset("April May June August January Avril Juni".split())
"""Months that are given names as well."""
_LEAST = 0.05  # chance from which on :func:`explain` shows what the tagger saw


@dataclass(frozen=True, slots=True, repr=False)
class Anonymized:
    """What :func:`anonymize` made of one document.

    Attributes:
        text: the anonymised text.
        parts: the document's parts after the edits; the whole text where it has none.
        plan: the edits that were made; it holds the originals in memory.
        report: additive counts without any text: ``labels``, ``operators``, ``mentions``, ``entities``, ``characters``,
            and ``offline``: entities for which a model had no usable value, so that they got an offline pseudonym.
    """

    text: str
    parts: tuple[str, ...]
    plan: Plan
    report: Mapping[str, object]

    def __repr__(self) -> str:
        return f"Anonymized({len(self.text)} characters, {len(self.plan.edits)} edits)"


def detect(text_or_document: TextOrDocument, policy: AnyPolicy = "default") -> tuple[Span, ...]:
    """What identifies somebody or something in a text, as disjoint spans in reading order.

    Args:
        text_or_document: a text or a :class:`Document`.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.

    Raises:
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    policy = Policy.load(policy)
    document = _document(text_or_document)
    return settle(document, policy, candidates(document, policy))


def settle(document: Document, policy: Policy, found: Iterable[Span]) -> tuple[Span, ...]:
    """The second half of :func:`detect`: from what :func:`candidates` saw to disjoint spans in reading order.

    What depends on the whole document happens here: names that were found once are followed everywhere. ``found`` may
    come from the document's parts, each looked at alone, with the offsets of the document.
    """
    return resolve(_wanted(document, policy, found), policy.taxonomy)


def explain(text_or_document: TextOrDocument, policy: AnyPolicy = "default") -> tuple[Decision, ...]:
    """Every candidate that any detector sees, and what became of it: kept, clipped, absorbed, superseded
    (a rule knew better what the tagger had found), excluded, below threshold."""
    policy = Policy.load(policy)
    document = _document(text_or_document)
    real = candidates(document, policy)
    kept = set(_wanted(document, policy, real))
    found = list(dict.fromkeys((*real, *candidates(document, _without_thresholds(policy)), *kept)))
    weak = {s for s in found if s not in kept and (s.source == TAGGER or s.score < policy.threshold_for(s.label))}
    _, decisions = decide(kept, policy.taxonomy)
    better = {s for s in real if s.source == TAGGER and s not in kept and policy.looks_for(s.label)}
    lost = [
        Decision(s, "superseded" if s in better else "below threshold" if s in weak else "excluded")
        for s in found
        if s not in kept
    ]
    return tuple(sorted((*decisions, *lost), key=lambda d: d.span))


def anonymize(
    text_or_document: TextOrDocument,
    policy: AnyPolicy = "default",
    *,
    key: bytes | str | None = None,
    vault: Vault | None = None,
    scope: str = "",
) -> Anonymized:
    """Replace what identifies. Any failure raises; the original text is never returned in its place.

    Args:
        text_or_document: a text or a :class:`Document`.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret for keyed operators (``pseudonym``, ``wild_tag``, ``hash``, ``encrypt``, ``shift_dates``), at least
            16 bytes. By default the vault's own.
        vault: keeps what stands for what, so that entities keep their replacement in all documents of a scope, no two
            share one, and :func:`restore` can bring the originals back.
        scope: names the project or release: the same entity is replaced alike within it, and cannot be linked to
            another scope.

    Raises:
        UsageError: the policy is not valid, or it needs a key and none was given.
        DataError: the document cannot be processed.
        VaultError: the vault cannot be written; then nothing of the document is in it.
    """
    policy = Policy.load(policy)
    document = _document(text_or_document)
    if vault is not None:
        from allonym.vault import check_vault

        check_vault(vault)
        key = vault.operator_key if key is None else key
    spans = find(document, policy, key)
    if vault is None:
        return replace_found(document, spans, policy, key=key, scope=scope)
    with vault.book(scope, subject_of(document, policy)) as book:
        return replace_found(document, spans, policy, key=key, scope=scope, book=book)


def find(document: Document, policy: Policy, key: bytes | str | None) -> tuple[Span, ...]:
    """:func:`detect` for :func:`replace_found`: a detector that asks a language model may use its answers on disk."""
    if key is None or not policy.llm["cache"]:
        return detect(document, policy)
    from allonym.llm import unlocked

    with unlocked(subkey(key, "llm cache")):
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
) -> Anonymized:
    """The second half of :func:`anonymize`: from what :func:`detect` found in ``document`` to what is made of it.

    Args:
        document: as :func:`detect` saw it.
        spans: disjoint.
        policy, key, scope: as in :func:`anonymize`.
        book: a vault's book of the scope, open for writing.
        linked: who the mentions are, where that is known already; by default they are linked here.
    """
    document = _document(document)
    linked = link(document, spans, policy.taxonomy) if linked is None else linked
    plan = make_plan(document, linked.entities, policy, key=key, scope=scope, notes=linked.notes, book=book)
    text = replaced(document.text, plan.edits)
    parts = tuple(parts_after(document.text, document.parts, plan.edits)) if document.parts else (text,)
    labels = Counter(s.label for e in linked.entities for s in e.spans)
    report = {
        "characters": len(document.text),
        "entities": len(linked.entities),
        "mentions": sum(labels.values()),
        "labels": dict(sorted(labels.items())),
        "operators": dict(sorted(Counter(e.operator.partition("@")[0] for e in plan.edits).items())),
        "offline": without_model(plan.notes),
    }
    return Anonymized(text, parts, plan, MappingProxyType(report))


def detect_many(texts: Iterable[TextOrDocument], policy: AnyPolicy = "default") -> Iterator[tuple[Span, ...]]:
    """:func:`detect` for each text, lazily, in order."""
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
    """:func:`anonymize` for each text, lazily, in order. Without a vault texts share nothing: numbering begins anew."""
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
    """:func:`restore` for each text, lazily, in order, with its plan, or with one vault or key for all."""
    if plans is None:
        return (restore(text, vault=vault, key=key, scope=scope) for text in texts)
    return (
        restore(text, plan=plan, vault=vault, key=key, scope=scope) for text, plan in zip(texts, plans, strict=True)
    )


def _document(given: TextOrDocument) -> Document:
    return with_turns(given if isinstance(given, Document) else Document("", given))


@lru_cache(maxsize=64)
def _detectors(policy: Policy) -> tuple[Detector, ...]:
    factories = [registry.detectors.get(name) for name in policy.detectors]
    return tuple(factory(policy) for factory in factories)  # type: ignore[operator]


@lru_cache(maxsize=64)
def _without_thresholds(policy: Policy) -> Policy:
    rules = MappingProxyType({k: replace(r, threshold=None) for k, r in policy.rules.items()})
    points = MappingProxyType({"*": _LEAST})
    default = replace(policy.default, threshold=None)
    return policy.with_(threshold=0.0, rules=rules, default=default, operating_points=points)


def candidates(document: Document, policy: Policy) -> list[Span]:
    """The first half of :func:`detect`: all that the policy's detectors see in ``document``, in no order."""
    document = _document(document)
    folded = fold(document.text)
    plain = document if folded is document.text else replace(document, text=folded)
    detectors = _detectors(policy)
    found: list[Span] = []
    for detector in detectors:
        found += _run(detector, plain)
    seen: dict[tuple[int, int, str], float] | None = None
    readers = [d for d in detectors if getattr(d, "reads_disguise", True)]
    for at, first, last, view in views(folded):
        seen = seen or {(s.start, s.end, s.label): s.score for s in found}
        hidden = Document(document.id, view.text, document.meta)
        for detector in readers:
            for span in _run(detector, hidden):
                if first <= span.start and span.end <= last:
                    start, end = view.original(span.start, span.end)
                    start, end = start + at, end + at
                    if seen.get((start, end, span.label), -1.0) < span.score:
                        found.append(replace(span, start=start, end=end, source=f"{span.source}+unmasked"))
    return found


def _run(detector: Detector, document: Document) -> Iterable[Span]:
    try:
        return list(detector(document))
    except AllonymError:
        raise
    except Exception as error:  # what another's detector raises may quote the text, so only its type is told
        failure = type(error).__name__
    raise DataError(f"a detector failed with {failure}")


def _told_better(text: str, kept: list[Span], policy: Policy) -> list[Span]:
    """Without what the tagger found inside another finding of the same kind, whose label says more.

    Where a finding of another kind stands inside one of the tagger's, what is left beside it must hold two letters or
    digits to be one.
    """
    others = [s for s in kept if s.source != TAGGER]
    if not others or len(others) == len(kept):
        return kept
    others = _without_given_names(text, others, kept)
    others.sort(key=lambda s: (s.start, -s.end))
    reach, ends = 0, []
    for s in others:
        reach = max(reach, s.end)
        ends.append(reach)
    starts = [s.start for s in others]

    def told(span: Span) -> bool:
        i = bisect_right(starts, span.start) - 1
        while i >= 0 and ends[i] >= span.end:
            if others[i].end >= span.end and policy.taxonomy.related(others[i].label, span.label):
                return True
            i -= 1
        return False

    out = others
    taken = merge((s.start, s.end) for s in others)
    for span in kept:
        if span.source == TAGGER and not told(span):
            left = list(subtract((span.start, span.end), taken))
            if left == [(span.start, span.end)] or any(
                policy.taxonomy.related(o.label, span.label)
                for o in others
                if o.start < span.end and span.start < o.end
            ):
                out.append(span)
            else:
                for a, b in left:
                    said = text[a:b]
                    if sum(map(str.isalnum, said)) > 1:
                        a, b = a + len(said) - len(said.lstrip()), b - len(said) + len(said.rstrip())
                        out.append(replace(span, start=a, end=b))
    return out


def _without_given_names(text: str, others: list[Span], kept: list[Span]) -> list[Span]:
    """Without the dates that are the given name of somebody whom the tagger found: "April Stone"."""
    months = [s for s in others if s.end - s.start < 10 and text[s.start : s.end] in GIVEN_MONTHS]
    if not months:
        return others
    people = [s for s in kept if s.source == TAGGER and s.label.startswith("PERSON")]
    given = {m for m in months for p in people if p.start <= m.start and m.end < p.end}
    return [s for s in others if s not in given]


@lru_cache(maxsize=64)
def _bars(policy: Policy) -> dict[str, float]:
    """Label to the score it needs; over 1 for labels not looked for."""
    return {
        label.name: policy.threshold_for(label.name) if policy.looks_for(label.name) else 2.0
        for label in policy.taxonomy
    }


def _wanted(document: Document, policy: Policy, found: Iterable[Span]) -> list[Span]:
    bars = _bars(policy)
    try:
        # what has bars of its own has passed them; "not <" so that a score that is no number counts
        kept = [s for s in found if not s.score < bars[s.label] or (s.source == TAGGER and bars[s.label] <= 1)]
    except KeyError as error:
        unknown = error.args[0]
    else:
        unknown = ""
    if unknown:
        raise UnknownNameError("label", unknown, bars, "a detector's finding")
    kept = _told_better(document.text, kept, policy)
    tagged = [s for s in kept if s.source == TAGGER]
    if tagged:
        kept += repeats(document.text, tagged, kept, policy.taxonomy)
    if bars["PERSON"] <= SCORE and kept:
        kept += echoes(document.text, kept, policy.taxonomy)
    if tagged and bars["PERSON"] <= 1:
        kept = _families(document.text, kept)
    if policy.exclusions and kept:
        kept = list(filter_excluded(document, kept, policy)[0])
    return kept


def _families(text: str, kept: list[Span]) -> list[Span]:
    """With "Millers" as people where the tagger took them for an organization and somebody is called Miller."""
    plurals = [
        s
        for s in kept
        if s.source == TAGGER and s.label == "ORGANIZATION" and text[s.end - 1] == "s" and s.end - s.start > 4
    ]
    if not plurals:
        return kept
    names = {
        text[s.start : s.end].split()[-1]
        for s in kept
        if s.label.startswith("PERSON") and text[s.start : s.end].split()
    }
    wrong = {s for s in plurals if (said := text[s.start : s.end])[:-1] in names or said.removesuffix("es") in names}
    return [replace(s, label="PERSON") if s in wrong else s for s in kept]

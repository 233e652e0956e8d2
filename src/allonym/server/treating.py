"""From a request's text to a document, and from what the library makes of it to the response."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from allonym.document import Document, Span
from allonym.errors import DataError, PlanMismatch, RequestError, UsageError
from allonym.link import link
from allonym.pipeline import explain
from allonym.plan import Anonymized, Plan
from allonym.replace import subject_of
from allonym.resolve import resolve
from allonym.restore import restore
from allonym.server.access import Caller
from allonym.server.joining import Told, regroup_entities
from allonym.server.kernel import anonymize_document, find_spans
from allonym.server.policies import policy_of
from allonym.server.problems import HALF_SURROGATE
from allonym.server.services import Services
from allonym.server.wire import texts as wire

T = TypeVar("T")


async def run_together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each gives, in order. Where one fails, the others are ended before its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


def read_document(body: wire.Text, most: int) -> Document:
    """The document that a request brings.

    Raises:
        RequestError: it is longer than ``most`` characters (413).
        DataError: the request holds half of a surrogate pair.
    """
    refuse_half(body)
    if body.turns is not None:
        document = Document.conversation("", [(turn.speaker, turn.text) for turn in body.turns])
    else:
        document = Document("", body.text or "")
    refuse_long(document.text, most)
    return document


def refuse_long(text: str, most: int) -> None:
    """Raise :class:`RequestError` (413) where a text is longer than ``most`` characters."""
    if len(text) > most:
        raise RequestError(f"a text has at most {most} characters here; send a longer one as a job", 413, "TooLarge")


def refuse_half(body: wire.Text | wire.Restore) -> None:
    """Raise :class:`DataError` where a request holds half of a surrogate pair, in its text or elsewhere.

    No answer could hold it, and that would show only when the vault has kept names.
    """
    try:
        body.model_dump_json()
    except ValueError as error:
        if "surrogates not allowed" in str(error):
            raise DataError(HALF_SURROGATE) from None


def find_policy_source(body: wire.Text, services: Services) -> str:
    """What describes the policy that a request chose."""
    choice = body.policy.model_dump() if isinstance(body.policy, wire.PolicyChoice) else body.policy
    return services.policies.source(choice)


def read_plan(data: Mapping[str, Any]) -> Plan:
    """The plan that a request brings.

    Raises:
        PlanMismatch: it is none.
    """
    try:
        return Plan.from_dict(data)
    except RecursionError:
        raise PlanMismatch("this is not a plan: it is nested too deep") from None


def _read_request(body: wire.Text, services: Services) -> tuple[Document, str]:
    """The document and the policy's source; the latter asks the database."""
    return read_document(body, services.settings.max_characters), find_policy_source(body, services)


async def detect_request(body: wire.Detect, services: Services) -> wire.Detected:
    """What is in the request's text."""
    begun = time.perf_counter()
    document, source = await run_in_threadpool(_read_request, body, services)
    decisions = None
    if body.explain:
        decisions = await services.kernel.run(explain_decisions, document, source)
    spans, entities = await services.kernel.run(find_numbered, document, source, services.vault.operator_key)
    counts = dict(sorted(Counter(s.label for s in spans).items()))
    services.metrics.count_text(len(document.text), counts)
    return wire.Detected(
        text=document.text,
        spans=spans,
        entities=entities,
        counts=counts,
        decisions=decisions,
        milliseconds=_measure_milliseconds(begun),
    )


def find_numbered(document: Document, source: str, key: bytes | None) -> tuple[list[wire.Span], list[wire.EntityOut]]:
    """The findings and whom they name: runs in a worker."""
    return number_spans(document, find_spans(document, source, key), source)


def explain_decisions(document: Document, source: str) -> list[wire.Decided]:
    """Every candidate and what became of it: runs in a worker."""
    return [
        wire.Decided(
            start=d.span.start,
            end=d.span.end,
            label=d.span.label,
            score=d.span.score,
            source=d.span.source,
            outcome=d.outcome,
        )
        for d in explain(document, policy_of(source))
    ]


async def anonymize_request(body: wire.Anonymize, services: Services, *, dry: bool = False) -> wire.Anonymized:
    """The request's text without what identifies. ``dry``: the vault is left as it is."""
    begun = time.perf_counter()
    document, source = await run_in_threadpool(_read_request, body, services)
    spans = None if body.spans is None else await run_in_threadpool(read_marked_spans, document, body.spans, source)
    entity_numbers = _number_mentions(body.spans or (), spans or ())
    key = services.vault.operator_key
    if body.scope is None or dry:
        result, shown = await services.kernel.run(
            anonymize_numbered, document, source, key, body.scope or "", spans, entity_numbers
        )
    else:
        findings = await services.kernel.detect(document, source, key) if spans is None else spans
        result = await run_in_threadpool(
            anonymize_into_vault, services, document, findings, source, body.scope, entity_numbers
        )
        shown, _ = await run_in_threadpool(number_spans, document, result.spans, source, entity_numbers)
    counts = dict(result.report.labels)
    services.metrics.count_text(len(document.text), counts)
    return wire.Anonymized(
        text=result.text,
        parts=list(result.parts),
        plan=result.plan.to_dict(originals=body.originals),
        spans=shown,
        counts=counts,
        milliseconds=_measure_milliseconds(begun),
    )


def anonymize_numbered(
    document: Document, source: str, key: bytes | None, scope: str, spans: tuple[Span, ...] | None, entity_numbers: Told
) -> tuple[Anonymized, list[wire.Span]]:
    """The document anonymised, and the findings with the numbers of their entities: runs in a worker."""
    result = anonymize_document(document, source, key, scope, spans, entity_numbers)
    return result, number_spans(document, result.spans, source, entity_numbers)[0]


def anonymize_into_vault(
    services: Services, document: Document, spans: Sequence[Span], source: str, scope: str, entity_numbers: Told
) -> Anonymized:
    """Anonymise a document as the kernel does, with originals and replacements stored in the vault."""
    vault = services.vault
    with vault.book(scope, subject_of(document, policy_of(source))) as book:
        return anonymize_document(document, source, vault.operator_key, scope, tuple(spans), entity_numbers, book)


def read_marked_spans(document: Document, mentions: Sequence[wire.Mention], source: str) -> tuple[Span, ...]:
    """The stretches that a caller marked, disjoint.

    Raises:
        UsageError: one ends after the text.
        UnknownNameError: a label is not known.
    """
    policy, size = policy_of(source), len(document.text)
    spans = []
    for i, mention in enumerate(mentions):
        if mention.end > size:
            raise UsageError(f"spans[{i}] ends at {mention.end}, but the text has {size} characters")
        policy.taxonomy.get(mention.label, f"spans[{i}]")
        spans.append(Span(mention.start, mention.end, mention.label, mention.score, mention.source or "marked"))
    return resolve(spans, policy.taxonomy)


def _number_mentions(mentions: Sequence[wire.Mention], spans: Sequence[Span]) -> Told:
    """Which of the disjoint stretches the caller held for one entity."""
    numbers = {(mention.start, mention.end): mention.entity for mention in mentions if mention.entity is not None}
    return {place: number for s in spans if (number := numbers.get(place := (s.start, s.end))) is not None}


def number_spans(
    document: Document, findings: Sequence[Span], source: str, entity_numbers: Told | None = None
) -> tuple[list[wire.Span], list[wire.EntityOut]]:
    """The findings with the numbers of their entities, and the entities.

    ``entity_numbers`` are numbers that a person gave to mentions.
    """
    linked = link(document, findings, policy_of(source).taxonomy)
    entities = (regroup_entities(linked, entity_numbers) if entity_numbers else linked).entities
    number = {span: i for i, entity in enumerate(entities, 1) for span in entity.spans}
    place = {(s.start, s.end): n for s, n in number.items()}
    spans = [
        wire.Span(
            start=s.start,
            end=s.end,
            label=s.label,
            score=round(float(s.score), 4),
            source=s.source,
            entity=place.get((s.start, s.end), 0),
        )
        for s in findings
    ]
    return spans, [wire.EntityOut(entity=i, label=e.label, mentions=len(e.spans)) for i, e in enumerate(entities, 1)]


def restore_request(body: wire.Restore, services: Services, caller: Caller) -> wire.Restored:
    """The request's text with originals in it again. The vault's audit log tells who asked."""
    refuse_long(body.text, services.settings.max_characters)
    refuse_half(body)
    plan = None if body.plan is None else read_plan(body.plan)
    vault = None if body.scope is None else services.vault
    restored = restore(body.text, plan=plan, vault=vault, scope=body.scope or "", actor=caller.actor)
    services.metrics.count_restored(restored.restored)
    services.accounts.record_action(caller, "restore", {"restored": restored.restored, "unknown": restored.unknown})
    matches = [wire.FoundOut(start=f.start, end=f.end, rule=f.rule, label=f.label) for f in restored.found]
    return wire.Restored(
        text=restored.text,
        restored=restored.restored,
        unknown=restored.unknown,
        notes=list(restored.notes),
        found=matches,
    )


def _measure_milliseconds(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 1)

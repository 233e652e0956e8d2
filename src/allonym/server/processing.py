"""From the text of a request to a document, and from the library's results to the response."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict
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
from allonym.server.entities import EntityNumbers, correct_entities
from allonym.server.kernel import anonymize_document, detect_spans
from allonym.server.policies import load_policy
from allonym.server.problems import HALF_SURROGATE
from allonym.server.services import Services
from allonym.server.wire import texts as wire

T = TypeVar("T")


async def gather_results(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order. Where one fails, the others are cancelled before its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def check_length(text: str, most: int) -> None:
    """Raise :class:`RequestError` (413) where a text is longer than ``most`` characters."""
    if len(text) > most:
        raise RequestError(f"a text has at most {most} characters here; send a longer one as a job", 413, "TooLarge")


def check_surrogates(body: wire.Text | wire.Restore) -> None:
    """Raise :class:`DataError` where a request holds half of a surrogate pair, in its text or elsewhere.

    No answer could hold it, and that would show only after the vault has stored names.
    """
    try:
        body.model_dump_json()
    except ValueError as error:
        if "surrogates not allowed" in str(error):
            raise DataError(HALF_SURROGATE) from None


def parse_plan(values: Mapping[str, Any]) -> Plan:
    """Return the plan of a request.

    Raises:
        PlanMismatch: it is none.
    """
    try:
        return Plan.from_dict(values)
    except RecursionError:
        raise PlanMismatch("this is not a plan: it is nested too deep") from None


def _read_request(body: wire.Text, services: Services) -> tuple[Document, str]:
    """Return the document and the policy's source, for which the database is asked.

    Raises:
        RequestError: the document is too long (413).
        DataError: the request holds half of a surrogate pair.
    """
    check_surrogates(body)
    if body.turns is not None:
        document = Document.conversation("", [(turn.speaker, turn.text) for turn in body.turns])
    else:
        document = Document("", body.text or "")
    check_length(document.text, services.settings.max_characters)
    choice = body.policy.model_dump() if isinstance(body.policy, wire.PolicyChoice) else body.policy
    return document, services.policies.source(choice)


async def detect_text(body: wire.Detect, services: Services) -> wire.Detected:
    """Return the findings in the text of a request."""
    start = time.perf_counter()
    document, source = await run_in_threadpool(_read_request, body, services)
    decisions = await services.kernel.run(explain_findings, document, source) if body.explain else None
    spans, entities = await services.kernel.run(detect_entities, document, source, services.vault.operator_key)
    counts = dict(sorted(Counter(s.label for s in spans).items()))
    services.metrics.count_text(len(document.text), counts)
    return wire.Detected(
        text=document.text,
        spans=spans,
        entities=entities,
        counts=counts,
        decisions=decisions,
        milliseconds=_measure_since(start),
    )


def detect_entities(document: Document, source: str, key: bytes | None) -> tuple[list[wire.Span], list[wire.EntityOut]]:
    """Return the findings and their entities. Runs in a worker."""
    return number_entities(document, detect_spans(document, source, key), source)


def explain_findings(document: Document, source: str) -> list[wire.Decided]:
    """Return every candidate and its outcome. Runs in a worker."""
    decisions = explain(document, load_policy(source))
    return [wire.Decided(**asdict(decision.span), outcome=decision.outcome) for decision in decisions]


async def anonymize_text(body: wire.Anonymize, services: Services, *, dry: bool = False) -> wire.Anonymized:
    """Anonymise the text of a request. ``dry``: the vault does not change."""
    start = time.perf_counter()
    document, source = await run_in_threadpool(_read_request, body, services)
    spans = None if body.spans is None else await run_in_threadpool(_read_spans, document, body.spans, source)
    numbers = _read_entity_numbers(body.spans or (), spans or ())
    key = services.vault.operator_key
    if body.scope is None or dry:
        scope = body.scope or ""
        result, shown = await services.kernel.run(_anonymize_numbered, document, source, key, scope, spans, numbers)
    else:
        findings = await services.kernel.detect(document, source, key) if spans is None else spans
        scope = body.scope
        result = await run_in_threadpool(anonymize_in_scope, services, document, findings, source, scope, numbers)
        shown, _ = await run_in_threadpool(number_entities, document, result.spans, source, numbers)
    counts = dict(result.report.labels)
    services.metrics.count_text(len(document.text), counts)
    return wire.Anonymized(
        text=result.text,
        parts=list(result.parts),
        plan=result.plan.to_dict(originals=body.originals),
        spans=shown,
        counts=counts,
        milliseconds=_measure_since(start),
    )


def _anonymize_numbered(
    document: Document,
    source: str,
    key: bytes | None,
    scope: str,
    spans: tuple[Span, ...] | None,
    numbers: EntityNumbers,
) -> tuple[Anonymized, list[wire.Span]]:
    """Anonymise a document, and return the findings with the numbers of their entities. Runs in a worker."""
    result = anonymize_document(document, source, key, scope, spans, numbers)
    return result, number_entities(document, result.spans, source, numbers)[0]


def anonymize_in_scope(
    services: Services, document: Document, spans: Sequence[Span], source: str, scope: str, numbers: EntityNumbers
) -> Anonymized:
    """Anonymise a document as the kernel does, with originals and replacements stored in the vault."""
    vault = services.vault
    with vault.book(scope, subject_of(document, load_policy(source))) as book:
        return anonymize_document(document, source, vault.operator_key, scope, tuple(spans), numbers, book)


def _read_spans(document: Document, mentions: Sequence[wire.Mention], source: str) -> tuple[Span, ...]:
    """Return the spans that a caller marked, disjoint.

    Raises:
        UsageError: one ends after the text.
        UnknownNameError: a label is not known.
    """
    policy, size = load_policy(source), len(document.text)
    spans = []
    for i, mention in enumerate(mentions):
        if mention.end > size:
            raise UsageError(f"spans[{i}] ends at {mention.end}, but the text has {size} characters")
        policy.taxonomy.get(mention.label, f"spans[{i}]")
        spans.append(Span(mention.start, mention.end, mention.label, mention.score, mention.source or "marked"))
    return resolve(spans, policy.taxonomy)


def _read_entity_numbers(mentions: Sequence[wire.Mention], spans: Sequence[Span]) -> EntityNumbers:
    """Return the entity numbers that a caller gave to the disjoint spans."""
    numbers = {(m.start, m.end): m.entity for m in mentions if m.entity is not None}
    return {place: number for s in spans if (number := numbers.get(place := (s.start, s.end))) is not None}


def number_entities(
    document: Document, findings: Sequence[Span], source: str, numbers: EntityNumbers | None = None
) -> tuple[list[wire.Span], list[wire.EntityOut]]:
    """Return the findings with the numbers of their entities, and the entities; ``numbers``: a person's corrections."""
    linked = link(document, findings, load_policy(source).taxonomy)
    entities = (correct_entities(linked, numbers) if numbers else linked).entities
    entity_of = {(span.start, span.end): i for i, entity in enumerate(entities, 1) for span in entity.spans}
    spans = [
        wire.Span(
            start=s.start,
            end=s.end,
            label=s.label,
            score=round(float(s.score), 4),
            source=s.source,
            entity=entity_of.get((s.start, s.end), 0),
        )
        for s in findings
    ]
    return spans, [wire.EntityOut(entity=i, label=e.label, mentions=len(e.spans)) for i, e in enumerate(entities, 1)]


def restore_text(body: wire.Restore, services: Services, caller: Caller) -> wire.Restored:
    """Restore the text of a request. The vault's audit log and the server's record the caller."""
    check_length(body.text, services.settings.max_characters)
    check_surrogates(body)
    plan = None if body.plan is None else parse_plan(body.plan)
    vault = None if body.scope is None else services.vault
    result = restore(body.text, plan=plan, vault=vault, scope=body.scope or "", actor=caller.actor)
    services.metrics.count_restored(result.restored)
    counts = {"restored": result.restored, "unknown": result.unknown}
    services.accounts.record_action(caller, "restore", counts)
    mentions = [wire.FoundOut.from_object(mention) for mention in result.found]
    return wire.Restored(text=result.text, **counts, notes=list(result.notes), found=mentions)


def _measure_since(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 1)

"""From the text of a request to a document, its processing in a worker, and the response from the library's results."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from allonym.detection.selection import count_unread_characters
from allonym.document import Document, Entity, Span
from allonym.errors import DataError, PlanMismatch, RequestError, UsageError
from allonym.link import Linked, link
from allonym.pipeline import detect_with_key, explain, replace_found
from allonym.plan import Anonymized, Plan
from allonym.policy import Policy
from allonym.replace import Book, subject_of
from allonym.resolve import resolve
from allonym.restoration import restore
from allonym.server.access import Caller
from allonym.server.policies import load_policy
from allonym.server.problems import HALF_SURROGATE
from allonym.server.services import Services
from allonym.server.wire import texts as wire
from allonym.vault import Vault

S = TypeVar("S")
T = TypeVar("T")
AT_ONCE = 4
"""Texts of one request that are processed at the same time, so that other requests get their turn."""

NO_TEXT = Document("", "")

EntityNumbers = Mapping[tuple[int, int], int]
"""Start and end of a mention to the number of its entity."""


@dataclass(frozen=True, slots=True, repr=False)
class TextTask:
    """A document and how to process it. All methods run in a worker; where a vault takes part, in the server.

    Attributes:
        document: the text.
        source: describes the policy, see :meth:`allonym.server.policies.Policies.make_policy_json`.
        key, scope: as for :func:`allonym.pipeline.replace_found`.
        spans: disjoint findings; None: the policy's detectors find them.
        numbers: of the entities of mentions, as a person corrected them.
        keeps_plan: whether a vault that takes part also keeps the plan.
    """

    document: Document
    source: str
    key: bytes | None = None
    scope: str = ""
    spans: tuple[Span, ...] | None = None
    numbers: EntityNumbers = field(default_factory=dict)
    keeps_plan: bool = True

    @property
    def policy(self) -> Policy:
        """The policy that ``source`` describes."""
        return load_policy(self.source)

    def get_or_detect_spans(self) -> tuple[Span, ...]:
        """Return the findings."""
        return detect_with_key(self.document, self.policy, self.key) if self.spans is None else self.spans

    def detect_entities(self) -> tuple[list[wire.Span], list[wire.EntityOut]]:
        """Return the findings with the numbers of their entities, and the entities."""
        return self.number_entities(self.get_or_detect_spans())

    def count_unread(self) -> dict[str, int]:
        """Return the characters in which names are not looked for, by language."""
        return count_unread_characters(self.document, self.policy)

    def explain_candidates(self) -> list[wire.Decided]:
        """Return every candidate and its outcome."""
        decisions = explain(self.document, self.policy)
        return [wire.Decided(**asdict(decision.span), outcome=decision.outcome) for decision in decisions]

    def anonymize(self, book: Book | None = None) -> Anonymized:
        """Anonymise the document; ``book``: of the scope, in a vault."""
        spans, policy = self.get_or_detect_spans(), self.policy
        linked = self._link_entities(spans) if self.numbers else None
        return replace_found(
            self.document,
            spans,
            policy,
            key=self.key,
            scope=self.scope,
            book=book,
            linked=linked,
            keep_plan=self.keeps_plan,
        )

    def anonymize_with_vault(self, vault: Vault) -> Anonymized:
        """Anonymise the document, with originals and replacements stored in the vault. Runs in the server."""
        with vault.book(self.scope, subject_of(self.document, self.policy)) as book:
            return self.anonymize(book)

    def anonymize_and_number_entities(self) -> tuple[Anonymized, list[wire.Span]]:
        """Anonymise the document, and return the findings with the numbers of their entities."""
        result = self.anonymize()
        return result, self.number_entities(result.spans)[0]

    def number_entities(self, findings: Sequence[Span]) -> tuple[list[wire.Span], list[wire.EntityOut]]:
        """Return the findings with the numbers of their entities, and the entities."""
        entities = list(enumerate(self._link_entities(findings).entities, 1))
        entity_of = {(span.start, span.end): i for i, entity in entities for span in entity.spans}
        spans = [
            wire.Span(**{**asdict(s), "score": round(float(s.score), 4)}, entity=entity_of.get((s.start, s.end), 0))
            for s in findings
        ]
        return spans, [wire.EntityOut(entity=i, label=e.label, mentions=len(e.spans)) for i, e in entities]

    def _link_entities(self, spans: Sequence[Span]) -> Linked:
        linked = link(self.document, spans, self.policy.taxonomy)
        return regroup_entities(linked, self.numbers) if self.numbers else linked


def regroup_entities(linked: Linked, corrected_numbers: EntityNumbers) -> Linked:
    """Correct entities: mentions with the same number become one entity, those with different ones do not.

    A mention without a number goes where most mentions go that it was linked with; an entity without any number stays
    as it is. Every mention is in exactly one entity, before and after.

    Args:
        linked: disjoint mentions.
        corrected_numbers: of mentions; those of other places have no effect.
    """
    groups = defaultdict[int, list[Span]](list)
    keys = defaultdict[int, Counter[str]](Counter)
    entities: list[Entity] = []
    for entity in linked.entities:
        counts = Counter(n for s in entity.spans if (n := corrected_numbers.get((s.start, s.end))) is not None)
        if not counts:
            entities.append(entity)
            continue
        most_frequent = counts.most_common(1)[0][0]
        for span in entity.spans:
            number = corrected_numbers.get((span.start, span.end), most_frequent)
            groups[number].append(span)
            keys[number][entity.key] += 1
    used = {entity.key for entity in entities}
    for number, spans in sorted(groups.items(), key=lambda item: min(item[1])):
        key = _make_unique_entity_key(keys[number].most_common(1)[0][0], used)
        used.add(key)
        label = Counter(span.label for span in sorted(spans)).most_common(1)[0][0]  # of several the first in the text
        entities.append(Entity(key, label, tuple(sorted(spans))))
    return Linked(tuple(sorted(entities, key=lambda e: e.spans[0].start)), linked.notes)


def _make_unique_entity_key(key: str, used_keys: set[str]) -> str:
    """Return the key, or if it is used one that ends in a number in brackets, as those of namesakes do."""
    unique, n = key, 1
    while unique in used_keys:
        n += 1
        unique = f"{key} ({n})"
    return unique


async def run_concurrently(process: Callable[[S], Awaitable[T]], items: Iterable[S], at_once: int = AT_ONCE) -> list[T]:
    """Return the results of all items, in order, with ``at_once`` items processed at the same time. Where one fails,
    the others are cancelled before its error is raised."""
    turn = asyncio.Semaphore(at_once)

    async def process_in_turn(item: S) -> T:
        async with turn:
            return await process(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(process_in_turn(item)) for item in items]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def check_text_length(text: str, max_characters: int) -> None:
    """Raise :class:`RequestError` (413) where a text is longer than ``max_characters``."""
    if len(text) > max_characters:
        raise RequestError(
            f"a text has at most {max_characters} characters here; send a longer one as a job", 413, "TooLarge"
        )


def check_no_lone_surrogates(body: wire.Text | wire.Restore) -> None:
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


def dump_policy_choice(policy: wire.Policy) -> str | dict[str, Any] | None:
    """Return a request's choice of a policy as plain values."""
    return policy.model_dump() if isinstance(policy, wire.PolicyChoice) else policy


def make_document(body: wire.TextOrTurns, document_id: str = "") -> Document:
    """Return the document of a request."""
    if body.turns is not None:
        return Document.conversation(document_id, [(turn.speaker, turn.text) for turn in body.turns])
    return Document(document_id, body.text or "")


def _make_text_task(body: wire.Text, services: Services) -> TextTask:
    """Return the task of a request, for which the database is asked.

    Raises:
        RequestError: the document is too long (413).
        DataError: the request holds half of a surrogate pair.
    """
    check_no_lone_surrogates(body)
    document = make_document(body)
    check_text_length(document.text, services.settings.max_characters)
    return TextTask(
        document, services.policies.make_policy_json(dump_policy_choice(body.policy)), services.vault.operator_key
    )


async def detect_text(body: wire.Detect, services: Services) -> wire.Detected:
    """Return the findings in the text of a request."""
    start = time.perf_counter()
    task = await run_in_threadpool(_make_text_task, body, services)
    decisions = await services.kernel.run(TextTask.explain_candidates, task) if body.explain else None
    spans, entities, counts = await detect_and_count_labels(task, services)
    return wire.Detected(
        text=task.document.text,
        spans=spans,
        entities=entities,
        counts=counts,
        unread=await services.kernel.run(TextTask.count_unread, task),
        decisions=decisions,
        milliseconds=measure_elapsed_milliseconds(start),
    )


async def detect_and_count_labels(
    task: TextTask, services: Services
) -> tuple[list[wire.Span], list[wire.EntityOut], dict[str, int]]:
    """Return the findings, their entities, and how many findings have each label; the metrics count them too."""
    spans, entities = await services.kernel.run(TextTask.detect_entities, task)
    counts = dict(sorted(Counter(span.label for span in spans).items()))
    services.metrics.count_processed_text(len(task.document.text), counts)
    return spans, entities, counts


async def anonymize_text(
    body: wire.Anonymize, services: Services, caller: Caller, *, is_dry_run: bool = False
) -> wire.Anonymized:
    """Anonymise the text of a request. ``is_dry_run``: the vault does not change."""
    start = time.perf_counter()
    task = await run_in_threadpool(_make_anonymizing_task, body, services)
    if body.scope is not None:
        await run_in_threadpool(services.scopes.check_may_write, caller, body.scope, is_dry_run=is_dry_run)
    if body.scope is None or is_dry_run:
        result, spans = await services.kernel.run(TextTask.anonymize_and_number_entities, task)
    else:
        task = replace(task, spans=await services.kernel.run(TextTask.get_or_detect_spans, task))
        result = await run_in_threadpool(task.anonymize_with_vault, services.vault)
        spans, _ = await run_in_threadpool(task.number_entities, result.spans)
    counts = dict(result.report.labels)
    services.metrics.count_processed_text(len(task.document.text), counts)
    return wire.Anonymized(
        text=result.text,
        parts=list(result.parts),
        plan=result.plan.to_dict(originals=body.originals),
        spans=spans,
        counts=counts,
        unread=dict(result.report.unread),
        milliseconds=measure_elapsed_milliseconds(start),
    )


def _make_anonymizing_task(body: wire.Anonymize, services: Services) -> TextTask:
    """Return the task of a request, with the mentions that the caller marked, disjoint, and their entity numbers.

    Raises:
        UsageError: a mention ends after the text.
        UnknownNameError: a label is not known.
        RequestError, DataError: see :func:`_make_text_task`.
    """
    task = replace(_make_text_task(body, services), scope=body.scope or "")
    if body.spans is None:
        return task
    taxonomy, size, marked = task.policy.taxonomy, len(task.document.text), []
    for i, mention in enumerate(body.spans):
        if mention.end > size:
            raise UsageError(f"spans[{i}] ends at {mention.end}, but the text has {size} characters")
        taxonomy.get(mention.label, f"spans[{i}]")
        marked.append(Span(mention.start, mention.end, mention.label, mention.score, mention.source or "marked"))
    spans = resolve(marked, taxonomy)
    numbers = {(m.start, m.end): m.entity for m in body.spans if m.entity is not None}
    places = [place for s in spans if (place := (s.start, s.end)) in numbers]
    return replace(task, spans=spans, numbers={place: numbers[place] for place in places})


def restore_text(body: wire.Restore, services: Services, caller: Caller) -> wire.Restored:
    """Restore the text of a request. The vault's audit log and the server's record the caller."""
    check_text_length(body.text, services.settings.max_characters)
    check_no_lone_surrogates(body)
    plan = None if body.plan is None else parse_plan(body.plan)
    if body.scope is not None:
        services.scopes.check_may_restore(caller, body.scope)
    vault = None if body.scope is None else services.vault
    result = restore(
        body.text,
        plan=plan,
        vault=vault,
        scope=body.scope or "",
        document=body.document,
        actor=caller.audit_name,
        destination=body.destination,
    )
    services.metrics.restored.inc(result.restored)
    counts = {"restored": result.restored, "unknown": result.unknown}
    services.accounts.record_action(caller, "restore", counts)
    mentions = [wire.FoundOut.from_object(mention) for mention in result.found]
    residue = [wire.ResidueOut.from_object(rest) for rest in result.residue]
    return wire.Restored(
        text=result.text,
        **counts,
        notes=list(result.notes),
        found=mentions,
        residue=residue,
        missing=result.missing,
        documents=list(result.documents),
    )


def measure_elapsed_milliseconds(start: float) -> float:
    """Return the milliseconds since a reading of the performance counter."""
    return round((time.perf_counter() - start) * 1000, 1)

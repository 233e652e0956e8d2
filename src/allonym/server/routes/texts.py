"""Texts: detect, anonymise, plan, restore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from allonym.errors import AllonymError
from allonym.plan import apply
from allonym.server import processing
from allonym.server.problems import describe_error
from allonym.server.routes.parameters import Anonymizing, AnyServices, Detecting, Restoring
from allonym.server.wire import texts as wire
from allonym.server.wire.base import Failure

router = APIRouter(prefix="/v1", tags=["texts"])


@router.post("/detect", summary="Find what identifies")
async def detect_spans(body: wire.Detect, caller: Detecting, services: AnyServices) -> wire.Detected:
    """The mentions of people, companies and places in a text or a conversation, as disjoint spans in reading order."""
    return await processing.detect_text(body, services)


@router.post("/anonymize", summary="Replace what identifies")
async def anonymize_text(body: wire.Anonymize, caller: Anonymizing, services: AnyServices) -> wire.Anonymized:
    """Replace what identifies. With a `scope`, the vault stores replacements, so that an entity has the same one in all
    texts of the scope and `/v1/restore` brings originals back. With `spans`, exactly these are replaced. Any failure is
    an error; the original never comes back in its place."""
    return await processing.anonymize_text(body, services, caller)


@router.post("/plans", summary="Plan without applying")
async def plan_edits(body: wire.Anonymize, caller: Anonymizing, services: AnyServices) -> wire.Planned:
    """The edits that `/v1/anonymize` would make; nothing is stored. With a `scope`, replacements are those of a fresh
    one: entries of the vault may lead to others."""
    return wire.Planned.from_object(await processing.anonymize_text(body, services, caller, is_dry_run=True))


@router.post("/plans/apply", summary="Apply a plan")
def apply_plan(body: wire.Apply, caller: Anonymizing, services: AnyServices) -> wire.Applied:
    """The text with a plan's edits made. A plan is bound to its text and refuses any other."""
    processing.check_text_length(body.text, services.settings.max_characters)
    return wire.Applied(text=apply(body.text, processing.parse_plan(body.plan)))


@router.post("/restore", summary="Restore originals")
async def restore_text(body: wire.Restore, caller: Restoring, services: AnyServices) -> wire.Restored:
    """Put originals in the place of their replacements, even after the text was rewritten: from a plan that holds
    originals, from the vault's scope, or both. Each restore is written into the audit log."""
    return await run_in_threadpool(processing.restore_text, body, services, caller)


@router.post("/detect/batch", summary="Find in several texts")
async def detect_batch(body: wire.DetectMany, caller: Detecting, services: AnyServices) -> wire.DetectedMany:
    """As `/v1/detect`, for each text; one that fails does not affect the others."""
    results = await _collect_outcomes(body.items, lambda item: processing.detect_text(item, services))
    return wire.DetectedMany(results=results)


@router.post("/anonymize/batch", summary="Replace in several texts")
async def anonymize_batch(body: wire.AnonymizeMany, caller: Anonymizing, services: AnyServices) -> wire.AnonymizedMany:
    """As `/v1/anonymize`, for each text; one that fails does not affect the others. With a scope they are processed in
    order."""
    at_once = 1 if any(item.scope is not None for item in body.items) else processing.AT_ONCE
    results = await _collect_outcomes(
        body.items, lambda item: processing.anonymize_text(item, services, caller), at_once
    )
    return wire.AnonymizedMany(results=results)


@router.post("/restore/batch", summary="Restore several texts")
async def restore_batch(body: wire.RestoreMany, caller: Restoring, services: AnyServices) -> wire.RestoredMany:
    """As `/v1/restore`, for each text; one that fails does not affect the others."""
    results = await _collect_outcomes(
        body.items, lambda item: run_in_threadpool(processing.restore_text, item, services, caller)
    )
    return wire.RestoredMany(results=results)


async def _collect_outcomes(
    items: list[Any], process: Callable[[Any], Awaitable[Any]], at_once: int = processing.AT_ONCE
) -> list[Any]:
    """Return the result for each item, in order; an error as a :class:`Failure`."""

    async def process_item(item: Any) -> Any:
        try:
            return await process(item)
        except AllonymError as error:
            return Failure.model_validate(describe_error(error)[1])

    return await processing.run_concurrently(process_item, items, at_once)

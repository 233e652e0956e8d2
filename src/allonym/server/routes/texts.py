"""Texts: detect, anonymise, plan, restore."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool

from allonym.errors import AllonymError
from allonym.plan import apply
from allonym.server import treating
from allonym.server.access import Who, needs, services_of
from allonym.server.problems import problem
from allonym.server.services import Services
from allonym.server.wire import texts as wire
from allonym.server.wire.base import Failure

router = APIRouter(prefix="/v1", tags=["texts"])
Within = Annotated[Services, Depends(services_of)]
_AT_ONCE = 4
"""Texts of one request that are treated at the same time, so that others get their turn."""


@router.post("/detect", summary="Find what identifies")
async def detect(body: wire.Detect, who: Annotated[Who, needs("detect")], services: Within) -> wire.Detected:
    """What identifies people, companies and places in a text or a conversation, as disjoint spans in reading order."""
    return await treating.detected(body, services)


@router.post("/anonymize", summary="Replace what identifies")
async def anonymize(body: wire.Anonymize, who: Annotated[Who, needs("anonymize")], services: Within) -> wire.Anonymized:
    """Replace what identifies. With a `scope`, the vault keeps what stands for what, so that the same entity is
    replaced alike in all texts of the scope and `/v1/restore` brings originals back. With `spans`, exactly these are
    replaced. Any failure is an error; the original never comes back in its place."""
    return await treating.anonymized(body, services)


@router.post("/plans", summary="Plan without doing")
async def plan(body: wire.Anonymize, who: Annotated[Who, needs("anonymize")], services: Within) -> wire.Planned:
    """What `/v1/anonymize` would replace by what; nothing is written. With a `scope` the replacements are those of a
    fresh one: what the vault holds already may lead to others."""
    made = await treating.anonymized(body, services, dry=True)
    return wire.Planned(plan=made.plan, spans=made.spans, counts=made.counts)


@router.post("/plans/apply", summary="Carry a plan out")
def carry_out(body: wire.Apply, who: Annotated[Who, needs("anonymize")], services: Within) -> wire.Applied:
    """The text with a plan's edits made. A plan is bound to its text and refuses any other."""
    treating.refuse_long(body.text, services.settings.max_characters)
    return wire.Applied(text=apply(body.text, treating.plan_of(body.plan)))


@router.post("/restore", summary="Bring originals back")
async def restore(body: wire.Restore, who: Annotated[Who, needs("restore")], services: Within) -> wire.Restored:
    """Originals in the place of what stands for them, also after somebody rewrote the text: with a plan that holds
    originals, from the vault's scope, or both. Each restore is written into the audit log."""
    return await run_in_threadpool(treating.brought_back, body, services, who)


@router.post("/detect/batch", summary="Find in several texts")
async def detect_many(
    body: wire.DetectMany, who: Annotated[Who, needs("detect")], services: Within
) -> wire.DetectedMany:
    """As `/v1/detect`, for each; one that fails does not hinder the others."""
    return wire.DetectedMany(results=await _each(body.items, lambda one: treating.detected(one, services)))


@router.post("/anonymize/batch", summary="Replace in several texts")
async def anonymize_many(
    body: wire.AnonymizeMany, who: Annotated[Who, needs("anonymize")], services: Within
) -> wire.AnonymizedMany:
    """As `/v1/anonymize`, for each; one that fails does not hinder the others. With a scope they are kept in order."""
    at_once = 1 if any(one.scope is not None for one in body.items) else _AT_ONCE
    return wire.AnonymizedMany(results=await _each(body.items, lambda one: treating.anonymized(one, services), at_once))


@router.post("/restore/batch", summary="Bring originals back into several texts")
async def restore_many(
    body: wire.RestoreMany, who: Annotated[Who, needs("restore")], services: Within
) -> wire.RestoredMany:
    """As `/v1/restore`, for each; one that fails does not hinder the others."""

    async def one(item: wire.Restore) -> wire.Restored:
        return await run_in_threadpool(treating.brought_back, item, services, who)

    return wire.RestoredMany(results=await _each(body.items, one))


async def _each(items: list[Any], treat: Callable[[Any], Awaitable[Any]], at_once: int = _AT_ONCE) -> list[Any]:
    turn = asyncio.Semaphore(at_once)

    async def done(item: Any) -> Any:
        async with turn:
            try:
                return await treat(item)
            except AllonymError as error:
                return Failure.model_validate(problem(error)[1])

    return await treating.together(map(done, items))

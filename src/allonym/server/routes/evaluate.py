"""Evaluation of a few texts while the client waits; more of them are a job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from allonym.errors import RequestError
from allonym.server.access import Who, needs, services_of
from allonym.server.services import Services
from allonym.server.wire import jobs as wire

router = APIRouter(prefix="/v1", tags=["evaluation"])
MOST_CHARACTERS = 200_000
"""Of all texts of a request, before and after; what is longer is a job."""


@router.post("/evaluate", summary="Measure risk and utility of a few texts")
async def evaluate(
    body: wire.Evaluate,
    who: Annotated[Who, needs("evaluate")],
    services: Annotated[Services, Depends(services_of)],
) -> wire.Evaluated:
    """The measures of `allonym evaluate all` that the texts allow; those that they do not allow are named with the
    reason. For up to 200,000 characters; a job of the kind `evaluate` takes more and makes a report."""
    size = sum(map(len, body.original)) + sum(map(len, body.anonymised))
    if size > MOST_CHARACTERS:
        raise RequestError(
            f"at most {MOST_CHARACTERS} characters are measured at once; send more as a job", 413, "TooLarge"
        )
    told = await services.kernel.run(
        measured, body.original, body.anonymised, body.measures, body.labels, body.subjects, body.seed
    )
    return wire.Evaluated.model_validate({name: told[name] for name in wire.Evaluated.model_fields})


def measured(
    original: list[str],
    anonymised: list[str],
    measures: list[str] | None,
    labels: list[str] | None,
    subjects: list[str] | None,
    seed: int,
) -> dict[str, Any]:
    """The measures as plain values: runs in a worker."""
    from allonym.evaluate.reading import Pairs
    from allonym.evaluate.study import evaluate
    from allonym.swap.plain import plain

    pairs = Pairs(
        tuple(str(n) for n in range(1, len(original) + 1)), tuple(original), tuple(anonymised), ({},) * len(original)
    )
    done = evaluate(pairs, measures=measures, labels=labels, subjects=subjects, seed=seed)
    told: dict[str, Any] = plain(done.to_dict())
    for row in told["skipped"]:
        row["reason"] = row["reason"].replace(" (--gold)", "").replace(" (--labels)", " (labels)")
        row["reason"] = row["reason"].replace(" (--subject)", " (subjects)")
    return told

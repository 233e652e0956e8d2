"""Evaluation of a few texts while the client waits; more of them are a job."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from allonym.errors import RequestError
from allonym.server.routes.parameters import AnyServices, Evaluating
from allonym.server.wire import jobs as wire

router = APIRouter(prefix="/v1", tags=["evaluation"])
MOST_CHARACTERS = 200_000
"""Of all texts of a request, before and after; what is longer is a job."""


@router.post("/evaluate", summary="Measure risk and utility of a few texts")
async def evaluate_texts(body: wire.Evaluate, caller: Evaluating, services: AnyServices) -> wire.Evaluated:
    """The measures of `allonym evaluate all` that the texts allow; the others are listed with the reason. For up to
    200,000 characters; a job of the kind `evaluate` takes more and makes a report."""
    if sum(map(len, (*body.original, *body.anonymised))) > MOST_CHARACTERS:
        message = f"at most {MOST_CHARACTERS} characters are measured at once; send more as a job"
        raise RequestError(message, 413, "TooLarge")
    return wire.Evaluated.from_values(await services.kernel.run(measure_anonymisation, body))


def measure_anonymisation(body: wire.Evaluate) -> dict[str, Any]:
    """Return the measures as plain values. Runs in a worker."""
    from allonym.evaluate.pairs import Pairs
    from allonym.evaluate.study import evaluate
    from allonym.serial import to_plain

    count = len(body.original)
    ids = tuple(str(number) for number in range(1, count + 1))
    pairs = Pairs(ids, tuple(body.original), tuple(body.anonymised), ({},) * count)
    options = body.model_dump(include={"measures", "labels", "subjects", "seed"})
    results: dict[str, Any] = to_plain(evaluate(pairs, **options).to_dict())
    for row in results["skipped"]:
        row["reason"] = row["reason"].replace(" (--gold)", "").replace(" (--labels)", " (labels)")
        row["reason"] = row["reason"].replace(" (--subject)", " (subjects)")
    return results

"""``allonym train ner --from-reviews``: going on with a tagger in use from what people reviewed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.errors import MissingExtra

if TYPE_CHECKING:
    from allonym.train.backends import Setup
    from allonym.train.records import Record
    from allonym.train.score import Score

Parts = tuple[list["Record"], list["Record"], list["Record"]]


def from_reviews(
    parts: Parts,
    out: Path,
    *,
    base: str,
    settings: Mapping[str, Any],
    setup: Setup,
    seed: int,
    resume: bool,
    report: Callable[[dict[str, Any]], None],
) -> tuple[dict[str, Any], dict[str, Score]]:
    """Train on the first part, choose the epoch by the second, and judge both taggers by the third.

    Args:
        parts: records to train on, to choose by, to judge by.
        out: folder of the new model.
        base: name or folder of the tagger to go on from.
        settings: options of the tagger that the command line names.
        setup: what labels mean.
        seed: of what is drawn.
        resume: go on where an interrupted run stopped.
        report: called after each epoch.

    Returns:
        What the report says, and the scores of the tagger as it was (``base``) and as it is now (``reviewed``).
    """
    from allonym.train import backends

    try:
        from allonym.train import reviews
    except MissingExtra:
        raise
    except ImportError:
        raise MissingExtra("training the tagger", "train") from None
    folder = reviews.base_folder(base)
    options = reviews.review_options({"seed": seed, **_in_kind(settings)})
    rows: list[dict[str, Any]] = []

    def print_step(row: dict[str, Any]) -> None:
        rows.append(row)
        report(row)

    began = time.monotonic()
    trained_model = reviews.from_reviews(
        parts[0],
        parts[1],
        out,
        base=folder,
        options=options,
        label_map=setup.label_map,
        report=print_step,
        resume=resume,
    )
    seconds = round(time.monotonic() - began, 1)
    scores = {
        name: backends.measure(backends.load("tagger", where), parts[2], setup)
        for name, where in (("base", folder), ("reviewed", out))
    }
    summary = {
        "base": base,
        "options": asdict(options),
        "seconds": seconds,
        "epochs": rows,
        "made": trained_model,
        "test": {name: score.to_dict() for name, score in scores.items()},
    }
    return summary, scores


def _in_kind(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options in their own kinds: a command line has strings."""
    from allonym.train.backends import make_options

    options = asdict(make_options("tagger", settings))
    return {name: options[name] for name in settings}

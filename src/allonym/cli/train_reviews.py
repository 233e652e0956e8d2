"""``allonym train ner --from-reviews``: train a tagger further on reviewed documents."""

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


def train_and_score_reviews(
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
    """Train on the first part, choose the epoch on the second, and score both taggers on the third.

    Args:
        parts: records for train, dev and test.
        out: folder of the new model.
        base: name or folder of the tagger to start from.
        settings: options of the tagger from the command line.
        setup: the label map.
        seed: seed of all random draws.
        resume: continue an interrupted run.
        report: called after each epoch.

    Returns:
        The report, and the scores of the tagger before (``base``) and after training (``reviewed``).
    """
    from allonym.train import backends

    try:
        from allonym.train import reviews
    except MissingExtra:
        raise
    except ImportError:
        raise MissingExtra("training the tagger", "train") from None
    folder = reviews.base_folder(base)
    options = reviews.review_options({"seed": seed, **_convert_options(settings)})
    rows: list[dict[str, Any]] = []

    def print_step(row: dict[str, Any]) -> None:
        rows.append(row)
        report(row)

    began = time.monotonic()
    trained_model = reviews.train_on_reviews(
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


def _convert_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the options from strings to their types."""
    from allonym.train.backends import make_options

    options = asdict(make_options("tagger", settings))
    return {name: options[name] for name in settings}

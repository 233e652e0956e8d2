"""The numbers that summarise an evaluation: a few of each measure, with their meaning for risk and utility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Side = Literal["risk", "utility"]


@dataclass(frozen=True, slots=True)
class Headline:
    """A number of a measure.

    Attributes:
        measure: a name of :data:`allonym.evaluate.measures.MEASURES`.
        key: names the number in JSON; name: in words.
        side: whether it tells risk or utility.
        path: where it is in the measure's plain values, keys with dots.
        better: ``low`` or ``high``.
        kind: ``share`` or ``number``; digits: decimals.
        before: where the same number of the originals is; chance: where that of guessing is. Empty: nowhere.
        note: how to read it.
    """

    measure: str
    key: str
    name: str
    side: Side
    path: str
    better: Literal["low", "high"]
    kind: Literal["share", "number"] = "share"
    digits: int | None = None
    before: str = ""
    chance: str = ""
    note: str = ""


HEADLINES: tuple[Headline, ...] = (
    Headline(
        "linkage",
        "linkage",
        "Found by an intruder",
        "risk",
        "all.after",
        "low",
        before="all.before",
        chance="all.chance",
        note="share of texts whose subject an intruder names who knows other texts about the same subjects",
    ),
    Headline(
        "linkage",
        "released",
        "Found by one who has other released texts",
        "risk",
        "released.all.after",
        "low",
        chance="released.all.chance",
        note="the same by an intruder who has learnt from the anonymised texts of others about the same subjects",
    ),
    Headline(
        "detection",
        "missed",
        "Missed mentions",
        "risk",
        "leaks.all.mentions",
        "low",
        note="share of the marked mentions that are not covered wholly",
    ),
    Headline(
        "residual",
        "residual",
        "Residual risk",
        "risk",
        "total.mean",
        "low",
        "number",
        2,
        note="mean score of what a second reading proposes as missed; nobody has confirmed it",
    ),
    Headline(
        "information",
        "similarity",
        "Semantic similarity",
        "utility",
        "similarity.mean",
        "high",
        "number",
        3,
        chance="similarity.chance",
        note="cosine of sentence vectors, before and after; long tags lower it",
    ),
    Headline(
        "information",
        "removed",
        "Words removed",
        "utility",
        "surface.removed",
        "low",
        note="mean share of a text's words",
    ),
    Headline(
        "information",
        "loss",
        "Accuracy lost",
        "utility",
        "utility.loss",
        "low",
        note="of a classifier that learns the labels, before minus after",
    ),
    Headline(
        "downstream",
        "downstream",
        "Training on it, F1",
        "utility",
        "tasks.label.scores.f1.difference",
        "high",
        "number",
        3,
        note="macro F1 on originals after learning from anonymised texts, less that after learning from originals",
    ),
    Headline(
        "syntheticity",
        "syntheticity",
        "Recognised as changed",
        "utility",
        "f1",
        "low",
        "number",
        2,
        note="F1 of a classifier; 0.5 is chance",
    ),
)
"""All numbers that may stand in the head of a report, risk first."""


def list_headlines(measures: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the headlines that a set of measures has, as plain values in the order of :data:`HEADLINES`.

    Args:
        measures: name to plain values.
    """
    out = []
    for line in HEADLINES:
        value = read_path(measures.get(line.measure, {}), line.path)
        if value is None:
            continue
        row: dict[str, Any] = {name: getattr(line, name) for name in ("key", "measure", "name", "side", "better")}
        row |= {"kind": line.kind, "digits": line.digits, "note": line.note, "value": value}
        for name in ("before", "chance"):
            path = getattr(line, name)
            row[name] = read_path(measures[line.measure], path) if path else None
        out.append(row)
    return out


def read_path(values: object, path: str) -> Any:
    """Return the value at a path of keys with dots; None where there is nothing."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values

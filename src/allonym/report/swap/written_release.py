"""The release as it was written: what was exchanged per category, what was replaced otherwise, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import format_cell, format_power
from allonym.report.page import Block, Facts, Figure, Figures, Settings
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.sections import Paragraph, SectionSpec, ValueTable
from allonym.report.swap.values import find_population, map_by_population
from allonym.report.values import Plain, flatten_settings, has_estimate, read_estimate, read_part, read_path

_ENTITIES = """
    Category           | name
    Entities in chunks | value | count | Different entities of each chunk, added up
    Exchanged          | moved | count
    Share              | share | share.1
"""
_TASK = (
    ("before", "Learnt and judged on originals", 7),
    ("learnt", "Learnt from the release, judged on originals", 0),
    ("applied", "Learnt from originals, judged on the release", 2),
    ("after", "After", 0),
)


def _draw_figures(result: Plain) -> Iterator[Block]:
    if figures := tuple(_list_figures(read_part(result, "released"), find_population(result))):
        yield Figures(figures)


def _list_figures(released: Plain, size: float | None) -> Iterator[Figure]:
    changed, holding = released.get("changed"), released.get("holding")
    if isinstance(changed, int):
        notes = [f"of {holding:,} that hold an exchanged category"] if isinstance(holding, int) else []
        if isinstance(exchanged := released.get("exchanged"), int):
            notes.append(f"{exchanged:,} by exchange alone")
        yield Figure("Chunks changed", changed, "; ".join(notes), "count")
    for name, label in (("risk", "Risk R"), ("remaining", "Population uniques left")):
        values = map_by_population(released.get(name))
        if size is not None and size in values:
            yield Figure(label, values[size], f"N\u00a0=\u00a0{format_power(size)}")
    flags = ", ".join(str(flag) for flag in released.get("flags") or ())
    for name, label, note, digits in (
        ("utility", "Utility U", flags, 4),
        ("distance", "D, nats", "change of the log density, all chunks", 2),
        ("cosine", "Mean cosine", "of changed chunks", 4),
    ):
        if has_estimate(released.get(name)):
            yield Figure(label, read_estimate(released[name]), note, "number", digits)


def _list_entities(result: Plain) -> list[Plain]:
    entities, moved = read_part(result, "released.entities"), read_part(result, "released.moved")
    return [
        {
            "name": name,
            "value": count,
            "moved": moved.get(name, 0),
            "share": moved.get(name, 0) / count if count else None,
        }
        for name, count in entities.items()
        if isinstance(count, int)
    ]


def _draw_counts(result: Plain) -> Iterator[Block]:
    names = {"fallback": "Replaced otherwise", "leftover": "Chunks left without a partner, by reason"}
    groups = tuple(
        (name, _list_counts(read_part(result, key))) for key, name in names.items() if read_part(result, key)
    )
    if groups:
        yield Settings(groups)


def _list_counts(values: Plain) -> Facts:
    order = sorted(values.items(), key=lambda item: (-item[1] if isinstance(item[1], int) else 0, str(item[0])))
    return tuple(
        (str(name), format_cell(value, "count").text if isinstance(value, (int, float)) else str(value))
        for name, value in order
    )


def _draw_task(result: Plain) -> Iterator[Block]:
    task = read_part(result, "task")
    bars = tuple(
        Bar(label, read_estimate(task[name]), slot) for name, label, slot in _TASK if has_estimate(task.get(name))
    )
    if not bars:
        if task:
            yield Settings((("Task utility", flatten_settings(task)),))
        return
    name = str(task.get("label") or task.get("labels") or "task")
    chance = float(task["chance"]) if isinstance(task.get("chance"), (int, float)) else None
    chunks = f" {task['chunks']:,} chunks" if isinstance(task.get("chunks"), int) else ""
    yield Bars(
        f"Task utility: predicting {name}",
        Axis("Accuracy", "share", 0, 1),
        (Group(name, bars, chance),),
        "the most frequent class for all" if chance is not None else "",
        f"A linear classifier on the chunks' vectors;{chunks} it was not trained on.",
    )


written_section = SectionSpec(
    "What was written",
    "written",
    lambda result: any(read_path(result, name) for name in ("released", "fallback", "leftover", "task")),
    (
        Paragraph(
            "The draw that was written, fall-backs included; every figure above is a mean over draws.", when="released"
        ),
        _draw_figures,
        ValueTable("Entities by category", _list_entities, _ENTITIES, when="released.entities"),
        _draw_counts,
        _draw_task,
    ),
)

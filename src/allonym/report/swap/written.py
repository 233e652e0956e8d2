"""The release as it was written: what moved per category, what fell back to another way, and what stays."""

from __future__ import annotations

from collections.abc import Mapping

from allonym.report.numbers import power, show
from allonym.report.page import Block, Column, Facts, Figure, Figures, Row, Section, Settings, Table, Text
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import (
    Plain,
    by_population,
    chosen_population,
    estimate,
    flat,
    known,
    part,
)

_TASK = (
    ("before", "Learnt and judged on originals", 7),
    ("learnt", "Learnt from the release, judged on originals", 0),
    ("applied", "Learnt from originals, judged on the release", 2),
    ("after", "After", 0),
)


def written_section(result: Plain) -> Section | None:
    """Figures of the draw that was written, entities per category, fall-backs and leftovers; task utility."""
    released = part(result, "released")
    blocks: list[Block] = []
    if released:
        blocks.append(Text("The draw that was written, fall-backs included; every figure above is a mean over draws."))
        if figures := _figures(result, released):
            blocks.append(Figures(figures))
        if table := _moved(released):
            blocks.append(table)
    groups = tuple(
        (name, _counts(part(result, key)))
        for key, name in (("fallback", "Replaced otherwise"), ("leftover", "Chunks left without a partner, by reason"))
        if part(result, key)
    )
    if groups:
        blocks.append(Settings(groups))
    if task := part(result, "task"):
        blocks.append(_task(task))
    return Section("What was written", tuple(blocks), "written") if blocks else None


def _figures(result: Plain, released: Plain) -> tuple[Figure, ...]:
    size = chosen_population(result)
    out = []
    changed, holding = released.get("changed"), released.get("holding")
    if isinstance(changed, int):
        note = f"of {holding:,} that hold an exchanged category" if isinstance(holding, int) else ""
        if isinstance(swapped := released.get("exchanged"), int):
            note += f"{'; ' if note else ''}{swapped:,} by exchange alone"
        out.append(Figure("Chunks changed", changed, note, "count"))
    for name, label in (("risk", "Risk R"), ("remaining", "Population uniques left")):
        values = by_population(released.get(name))
        if size in values and size is not None:
            out.append(Figure(label, values[size], f"N\u00a0=\u00a0{power(size)}"))
    for name, label, note in (
        ("utility", "Utility U", ""),
        ("distance", "D, nats", "change of the log density, all chunks"),
        ("cosine", "Mean cosine", "of changed chunks"),
    ):
        if known(released.get(name)):
            flags = ", ".join(str(f) for f in released.get("flags") or ()) if name == "utility" else ""
            out.append(Figure(label, estimate(released[name]), flags or note, "number", 2 if name == "distance" else 4))
    return tuple(out)


def _moved(released: Plain) -> Table | None:
    there, moved = part(released, "entities"), part(released, "moved")
    if not there:
        return None
    columns = (
        Column("Category"),
        Column("Entities in chunks", "count", None, "Different entities of each chunk, added up"),
        Column("Exchanged", "count"),
        Column("Share", "share", 1),
    )
    body = tuple(
        Row((str(c), n, moved.get(c, 0), moved.get(c, 0) / n if n else None))
        for c, n in there.items()
        if isinstance(n, int)
    )
    return Table("Entities by category", columns, body)


def _counts(values: Mapping[str, object]) -> Facts:
    ordered = sorted(values.items(), key=lambda kv: (-kv[1] if isinstance(kv[1], int) else 0, str(kv[0])))
    return tuple((str(k), show(v, "count").text if isinstance(v, (int, float)) else str(v)) for k, v in ordered)


def _task(task: Plain) -> Block:
    bars = tuple(Bar(label, estimate(task[name]), slot) for name, label, slot in _TASK if known(task.get(name)))
    name = str(task.get("label") or task.get("labels") or "task")
    if not bars:
        return Settings((("Task utility", flat(task)),))
    chance = task.get("chance")
    chunks = f" {task['chunks']:,} chunks" if isinstance(task.get("chunks"), int) else ""
    return Bars(
        f"Task utility: predicting {name}",
        Axis("Accuracy", "share", 0, 1),
        (Group(name, bars, float(chance) if isinstance(chance, (int, float)) else None),),
        "the most frequent class for all" if isinstance(chance, (int, float)) else "",
        f"A linear classifier on the chunks' vectors;{chunks} it was not trained on.",
    )

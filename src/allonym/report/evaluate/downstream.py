"""Downstream use in a report: models that learnt from each version, side by side, and what outputs give away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.report.page import Block, Cell, Column, Details, Figure, Figures, Notice, Row, Section, Table, Tag, Text
from allonym.report.swap.given import Plain, estimate, known, part, rows

_NAMES = {"f1": "F1 (macro)", "accuracy": "accuracy", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_READING = (
    "Two models of one kind learn from the same texts, one from the originals and one from the anonymised "
    "version; both are judged on the same other originals. The difference is taken split by split; its "
    "interval allows for the overlap of the splits (Nadeau and Bengio 2003). Where it includes 0, a loss is "
    "neither shown nor ruled out up to its end. Without learning: always the most frequent class, or the first "
    "sentences of a text. "
)
_TAKEN = (
    "Best possible: the sentences that together are most like the reference. Summaries are sentences of the text, so "
    "their ROUGE is not that of models that write, such as P4's."
)
_WRITTEN = "Summaries are written by the model, as in P4."


def downstream_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :meth:`allonym.evaluate.Downstream.to_dict`; None where there is no task.

    Args:
        result: plain values; under ``leaks``, where it is there, those of :class:`allonym.evaluate.OutputLeaks`.
        texts: show the identifiers that stand in outputs, where the values hold them.
    """
    tasks, leaks = part(result, "tasks"), part(result, "leaks")
    if not tasks and not leaks:
        return None
    blocks: list[Block] = []
    if tasks:
        model = str(result.get("model") or "")
        named = f" The model: {model}." if model else ""
        lead = f"What a model that learns from the anonymised texts is worth on original ones (P4, 4.1).{named}"
        blocks.append(Text(lead, "lead"))
        table: list[Row] = []
        for name in tasks:
            table += _rows(str(name), part(tasks, name))
        blocks.append(
            Table(
                "Learnt from originals and from anonymised texts, judged on originals",
                (
                    Column("task"), Column("measure"), _share("originals"), _share("anonymised"),
                    _share("difference"), Column("reads"), _share("without learning"),
                    _share("best possible"),
                ),
                tuple(table),
            )
        )  # fmt: skip
        for name in tasks:
            if reason := _reason(part(tasks, name)):
                blocks.append(Notice(f"{name}: not measured: {reason}."))
        reading = _READING + (_WRITTEN if model.startswith("seq2seq:") else _TAKEN)
        blocks.append(Details("How to read this", (Text(reading),)))
    if leaks:
        blocks += _leaks(leaks, texts)
    return Section("Downstream use", tuple(blocks), "downstream")


def _share(name: str) -> Column:
    return Column(name, "share", 1)


def _rows(name: str, task: Plain) -> list[Row]:
    out = []
    for measure, score in part(task, "scores").items():
        if not isinstance(score, Mapping) or not known(score.get("original")):
            continue
        change = estimate(score.get("difference"))
        reads = (
            Tag("worse", "bad")
            if change.high < 0
            else Tag("better", "good")
            if change.low > 0
            else Tag("not shown", "muted")
        )
        ends: list[Cell] = [
            estimate(part(task, end)[measure]) if measure in part(task, end) else None for end in ("floor", "ceiling")
        ]
        values = (estimate(score.get("original")), estimate(score.get("anonymised")), change)
        out.append(Row((name, _NAMES.get(measure, measure), *values, reads, *ends)))
    return out


def _reason(task: Plain) -> str:
    for score in part(task, "scores").values():
        if isinstance(score, Mapping) and not known(score.get("original")):
            return str(part(score, "original").get("method", "")).removeprefix("none: ")
    return ""


def _leaks(leaks: Plain, texts: bool) -> list[Block]:
    out: list[Block] = [
        Figures(
            (
                Figure("Outputs that leak", estimate(leaks.get("outputs")), "hold a direct identifier", "share", 1),
                Figure("Identifiers in outputs", estimate(leaks.get("identifiers")), "of the originals'", "share", 1),
            )
        )
    ]
    if types := part(leaks, "types"):
        out.append(
            Table(
                "Direct identifiers that show up in outputs",
                (Column("type"), Column("share", "share", 1)),
                tuple(Row((str(name), estimate(value))) for name, value in types.items()),
                "Looked for by surface, whole words; P2 (5.3) had people look for them.",
            )
        )
    if texts and (found := rows(leaks, "found")):
        out.append(
            Table(
                "What was found",
                (Column("output"), Column("type"), Column("identifier")),
                tuple(
                    Row((str(int(f.get("output") or 0) + 1), str(f.get("label", "")), str(f.get("surface", ""))))
                    for f in found
                ),
                shown=20,
            )
        )
    return out

"""Downstream use in a report: models that learnt from each version, side by side, and what outputs give away."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Block, Notice, Tag
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec, ValueTable
from allonym.report.values import (
    Plain,
    has_estimate,
    list_rows,
    missing_reason,
    read_estimate,
    read_part,
    read_path,
    read_rows,
)

_MEASURES = {"f1": "F1 (macro)", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_LEAD = "What a model that learns from the anonymised texts is worth on original ones (P4, 4.1)."
_READING = (
    "Two models of one kind learn from the same texts, one from the originals and one from the anonymised "
    "version; both are judged on the same other originals. The difference is taken split by split; its "
    "interval allows for the overlap of the splits (Nadeau and Bengio 2003). Where it includes 0, a loss is "
    "neither shown nor ruled out up to its end. Without learning: always the most frequent class, or the first "
    "sentences of a text. "
)
_EXTRACTED = (
    "Best possible: the sentences that together are most like the reference. Summaries are sentences of the text, so "
    "their ROUGE is not that of models that write, such as P4's."
)
_WRITTEN = "Summaries are written by the model, as in P4."
_SCORES = """
    task             | task
    measure          | measure
    originals        | original   | share.1
    anonymised       | anonymised | share.1
    difference       | difference | share.1
    reads            | reading
    without learning | floor      | share.1
    best possible    | ceiling    | share.1
"""
_LEAKS = """
    Outputs that leak      | leaks.outputs     | share.1 | hold a direct identifier
    Identifiers in outputs | leaks.identifiers | share.1 | of the originals'
"""
_IDENTIFIERS = """
    output     | output
    type       | label
    identifier | surface
"""


def _write_lead(result: Plain) -> str:
    return f"{_LEAD} The model: {result['model']}." if result.get("model") else _LEAD


def _list_scores(result: Plain) -> Iterator[Plain]:
    for task, values in read_part(result, "tasks").items():
        for score in read_rows(values, "scores"):
            if has_estimate(score.get("original")):
                ends = {end: read_path(values, f"{end}.{score['name']}") for end in ("floor", "ceiling")}
                measure = _MEASURES.get(score["name"], score["name"])
                reading = _tag_difference(score.get("difference"))
                yield {**score, **ends, "task": task, "measure": measure, "reading": reading}


def _tag_difference(difference: object) -> Tag:
    change = read_estimate(difference)
    if change.high < 0:
        return Tag("worse", "bad")
    return Tag("better", "good") if change.low > 0 else Tag("not shown", "muted")


def _explain_missing(result: Plain) -> Iterator[Block]:
    for task, values in read_part(result, "tasks").items():
        missing = (score.get("original") for score in read_rows(values, "scores"))
        reason = next((missing_reason(score) for score in missing if not has_estimate(score)), "")
        if reason:
            yield Notice(f"{task}: not measured: {reason}.")


def _list_leaking_outputs(result: Plain) -> list[Plain]:
    return [
        {**row, "output": str(int(row.get("output") or 0) + 1)}
        for row in list_rows(read_part(result, "leaks"), "found")
    ]


def _has_writing_model(result: Plain) -> bool:
    return str(result.get("model") or "").startswith("seq2seq:")


downstream_section = SectionSpec(
    "Downstream use",
    "downstream",
    lambda result: result.get("tasks") or result.get("leaks"),
    (
        Paragraph(_write_lead, "lead", when="tasks"),
        ValueTable(
            "Learnt from originals and from anonymised texts, judged on originals", _list_scores, _SCORES, when="tasks"
        ),
        _explain_missing,
        Folded(
            "How to read this",
            (Paragraph(lambda result: _READING + (_WRITTEN if _has_writing_model(result) else _EXTRACTED)),),
            when="tasks",
        ),
        KeyFigures(_LEAKS, when="leaks"),
        ValueTable(
            "Direct identifiers that show up in outputs",
            "leaks.types",
            "type | name \n share | value | share.1",
            "Looked for by surface, whole words; P2 (5.3) had people look for them.",
            when="leaks.types",
        ),
        ValueTable("What was found", _list_leaking_outputs, _IDENTIFIERS, shown=20, texts=True, when="leaks.found"),
    ),
)

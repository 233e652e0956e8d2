"""Originals in a model's outputs, in a report: how many, of which label, in which form, and what chance explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Details, Figure, Figures, Notice, Row, Section, Table, Tag, Text
from allonym.report.swap.given import Plain, estimate, part, rows

_SHOWN = 25
_KINDS = {
    "whole": "all of it",
    "part": "a part",
    "shortened": "shortened",
    "edited": "one letter another",
    "initials": "initials alone",
}


def generations_section(result: Mapping[str, Any]) -> Section | None:
    """The section of :meth:`allonym.evaluate.GenerationLeaks.to_dict`; None where there is none. It shows no text."""
    whole, direct = part(result, "all"), part(result, "direct")
    if not whole:
        return None
    blocks: list[Block] = [
        Text(
            f"{result.get('outputs', 0):,} outputs of a model were searched for {whole.get('originals', 0):,} "
            "originals by keyed digests: in any case and grouping, in part, shortened, with one letter another.",
            "lead",
        ),
        _figures(result, whole, direct),
    ]
    if not whole.get("occurrences"):
        high = write(estimate(whole.get("outputs")).high, "share", 2)
        blocks.append(Notice(f"No original was found. Up to {high} of such outputs may hold one, by the interval."))
    blocks += [_labels(result, whole, direct), _forms(result, whole), _places(result)]
    blocks.append(Details("How to read this", (Text(_READING),)))
    return Section("Originals in generations", tuple(blocks), "generations")


def _figures(result: Plain, whole: Plain, direct: Plain) -> Figures:
    found = whole.get("occurrences")
    shown = [
        Figure("Outputs with an original", estimate(whole.get("outputs")), "0 is wanted", "share", 1, _tone(found)),
        Figure("With one that identifies alone", estimate(direct.get("outputs")), "direct identifiers", "share", 1,
               _tone(direct.get("occurrences"))),
        Figure("Originals that turn up", estimate(whole.get("leaked")), f"of {whole.get('originals', 0):,}", "share",
               1),
    ]  # fmt: skip
    if result.get("baseline"):
        note = f"less the {result['baseline']:,} texts that never saw the data"
        shown.append(Figure("Beyond the baseline", estimate(whole.get("excess")), note, "share", 1))
    return Figures(tuple(shown))


def _tone(found: object) -> Any:
    return "bad" if found else "good"


def _labels(result: Plain, whole: Plain, direct: Plain) -> Table:
    compared = bool(result.get("baseline"))
    columns = [
        Column("Label"),
        Column("Originals", "count"),
        Column("Of them leaked", "share", 1, "In part only where no other original has that part"),
        Column("Outputs with one", "share", 1),
        *([Column("Baseline", "share", 1), Column("Difference", "share", 1)] if compared else []),
        Column("Places", "count"),
        Column("By chance", "number", 2, "Places that word frequencies alone would lead one to expect"),
        Column("Common words", "count", None, "Not in the numbers before"),
        Column("Initials", "count", None, "In capitals, alone; not in the numbers before"),
    ]
    body = []
    for row in (*rows(result, "labels"), direct, whole):
        cells: list[Cell] = [str(row.get("label", "")), row.get("originals")]
        cells += [estimate(row.get(n)) if row.get("originals") else None for n in ("leaked", "outputs")]
        cells += [estimate(row.get(n)) for n in ("baseline", "excess")] if compared else []
        cells += [row.get(n) for n in ("occurrences", "chance", "common", "initials")]
        body.append(Row(tuple(cells), "chosen" if row is whole else ""))
    return Table("By label", tuple(columns), tuple(body), shown=_SHOWN)


def _forms(result: Plain, whole: Plain) -> Table:
    counts = part(whole, "kinds")
    body = tuple(Row((said, counts[kind])) for kind, said in _KINDS.items() if counts.get(kind))
    return Table("In which form", (Column("Form"), Column("Places", "count")), body, "" if body else "None.")


def _places(result: Plain) -> Table:
    columns = (
        Column("Output"),
        Column("From", "count"),
        Column("To", "count"),
        Column("Label"),
        Column("Form"),
        Column(""),
    )
    body = []
    for row in rows(result, "places"):
        aside = row.get("common") or row.get("kind") == "initials"
        cells: list[Cell] = [str(row.get("output", "")), row.get("start"), row.get("end"), str(row.get("label", ""))]
        cells += [_KINDS.get(str(row.get("kind")), ""), Tag("counted apart", "muted") if aside else Tag("leak", "bad")]
        body.append(Row(tuple(cells)))
    more = int(result.get("found") or 0) - len(body)
    return Table("Where", columns, tuple(body), f"{more:,} more are not listed." if more > 0 else "", _SHOWN)


_READING = (
    "An original is in an output where a stretch of its words has the digest of the original or of a variant. Case, "
    "diacritics and marks do not matter, and digits may be said. With one letter another, words that a dictionary "
    "knows do not count. What is a common word, or made of common ones, and initials alone are counted apart: they "
    "stand in any text. A rare name may still stand there by chance, or because the prompt held it: compare with a "
    "model that never saw the data. Only what the vault keeps is looked for: what was suppressed, masked or hashed is "
    "not in it."
)

"""The report of a whole evaluation: verdict, a section of each measure, what was skipped, settings, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from allonym.report.evaluate.detection import detection_section
from allonym.report.evaluate.document_risk import document_risk_section
from allonym.report.evaluate.downstream import downstream_section
from allonym.report.evaluate.information import information_section
from allonym.report.evaluate.linkage import linkage_section
from allonym.report.evaluate.residual import residual_section
from allonym.report.evaluate.syntheticity import syntheticity_section
from allonym.report.evaluate.verdict import kind_of, limits_section, skipped_section, small_letter, verdict
from allonym.report.page import Block, Cell, Column, Facts, Notice, Page, Row, Section, Settings, Table, Tag, Text
from allonym.report.plots import Axis, Chart, Multiples, Point, Series
from allonym.report.swap.given import Plain, estimate, flat, known, part, rows

Draw = Callable[..., Section | None]
SECTIONS: Mapping[str, Draw] = {
    "detection": detection_section,
    "linkage": linkage_section,
    "document_risk": document_risk_section,
    "residual": residual_section,
    "information": information_section,
    "downstream": downstream_section,
    "syntheticity": syntheticity_section,
}
"""What draws a measure, by the measure's name; in this order."""

SENSITIVE = "This page holds words of the original texts. Keep it as safe as the texts themselves."


def evaluation_page(result: Plain, *, texts: bool = False) -> Page:
    """The report of an evaluation as a page.

    Args:
        result: plain values, as ``Evaluation.to_dict()`` gives them; parts that are missing are left out.
        texts: whether words of the texts may show, where the values hold them.
    """
    measures = part(result, "measures")
    made = [draw(measures[name], texts=texts) for name, draw in SECTIONS.items() if name in measures]
    made += [skipped_section(result), _settings(result), limits_section()]
    lead = list(verdict(result))
    if texts:
        lead.append(Notice(SENSITIVE, "sensitive"))
    title = str(result.get("title") or "Evaluation")
    return Page(title, tuple(s for s in made if s is not None), str(result.get("created") or ""), tuple(lead))


def compare_page(result: Plain, *, texts: bool = False) -> Page:
    """The report of several anonymised versions of one corpus.

    Args:
        result: plain values, as ``Comparison.to_dict()`` gives them.
        texts: whether words of the texts may show, where the values hold them.
    """
    versions = part(result, "versions")
    human = {str(name) for name in result.get("human") or ()}
    lead: list[Block] = [Text(" ".join(_best(versions, human)), "lead")]
    lines = _lines(versions)
    table = _table(versions, lines, human)
    charts = tuple(_charts(versions, lines))
    blocks: list[Block] = [Multiples("Risk against utility", charts)] if len(charts) > 1 else list(charts)
    made: list[Section | None] = [Section("Side by side", (*blocks, table), "versions")]
    for number, (name, one) in enumerate(versions.items(), 1):
        measures = part(one, "measures")
        drawn = [draw(measures[m], texts=texts) for m, draw in SECTIONS.items() if m in measures]
        own = [*verdict(one), *(s for s in (*drawn, skipped_section(one)) if s is not None)]
        made.append(Section(name, tuple(_apart(own, number)), f"version-{number}"))
    made += [*(_settings(one) for one in list(versions.values())[:1]), limits_section()]
    if texts:
        lead.append(Notice(SENSITIVE, "sensitive"))
    title = str(result.get("title") or "Versions compared")
    return Page(title, tuple(s for s in made if s is not None), str(result.get("created") or ""), tuple(lead))


def _apart(blocks: list[Block], number: int) -> Iterator[Block]:
    # Sections of the same measure would share an anchor.
    for block in blocks:
        if isinstance(block, Section):
            yield Section(block.title, block.blocks, f"{block.anchor}-{number}" if block.anchor else "")
        else:
            yield block


def _settings(result: Plain) -> Section | None:
    groups: list[tuple[str, Facts]] = []
    if settings := flat(part(result, "settings")):
        groups.append(("", settings))
    if seconds := part(result, "seconds"):
        groups.append(("Seconds", tuple((str(k), f"{float(v):,.1f}") for k, v in seconds.items())))
    return Section("Settings", (Settings(tuple(groups)),), "settings") if groups else None


def _lines(versions: Plain) -> list[Plain]:
    """Every number that a version has, once, in the order of the first that has it."""
    found: dict[str, Plain] = {}
    for one in versions.values():
        for row in rows(one, "headlines"):
            if known(row.get("value")):
                found.setdefault(str(row.get("key")), row)
    return sorted(found.values(), key=lambda row: row.get("side") != "risk")


def _value(one: Plain, key: object) -> Any:
    return next((row.get("value") for row in rows(one, "headlines") if row.get("key") == key), None)


def _table(versions: Plain, lines: list[Plain], human: set[str]) -> Table:
    columns = [Column("", hint="which of them"), Column("made by")]
    for row in lines:
        goal = f"{row.get('side')}; {row.get('better')} is better"
        columns.append(Column(str(row.get("name")), kind_of(row), row.get("digits"), f"{row.get('note')} ({goal})"))
    made = []
    if befores := [row for row in lines if known(row.get("before"))]:
        cells: list[Cell] = [estimate(row.get("before")) if row in befores else None for row in lines]
        made.append(Row(("original texts", "", *cells)))
    for name, one in versions.items():
        own = [estimate(_value(one, row.get("key"))) for row in lines]
        made.append(Row((name, Tag("people" if name in human else "machine"), *own)))
    note = "Intervals that overlap do not tell two versions apart; all were measured on the same texts with one seed."
    return Table("Versions", tuple(columns), tuple(made), note)


def _charts(versions: Plain, lines: list[Plain]) -> Iterator[Chart]:
    risks = [row for row in lines if row.get("side") == "risk"]
    useful = [row for row in lines if row.get("side") == "utility"]
    if not useful:
        return
    y = useful[0]
    small = len(risks) > 1
    for risk in risks:
        series = []
        for slot, (name, one) in enumerate(versions.items()):
            across, up = estimate(_value(one, y.get("key"))), estimate(_value(one, risk.get("key")))
            if known(across) and known(up):
                series.append(Series(name, (Point(across, up, name, (), "chosen"),), slot))
        if len(series) < 2:
            continue
        right = "right" if y.get("better") == "high" else "left"
        yield Chart(
            f"{risk.get('name')} against {small_letter(y.get('name'))}",
            Axis(str(y.get("name")), kind_of(y)),
            Axis(str(risk.get("name")), kind_of(risk)),
            tuple(series),
            description="One point for each version, with intervals.",
            better="lower right" if right == "right" else "lower left",
            size="small" if small else "wide",
        )


def _best(versions: Plain, human: set[str]) -> Iterator[str]:
    yield f"{len(versions)} anonymised versions of the same texts."
    for row in _lines(versions):
        found = {name: estimate(_value(one, row.get("key"))) for name, one in versions.items()}
        shown = {name: e for name, e in found.items() if known(e)}
        if len(shown) < 2:
            continue
        sign = 1 if row.get("better") == "low" else -1
        order = sorted(shown, key=lambda name: sign * shown[name].value)
        best, second = shown[order[0]], shown[order[1]]
        name = str(row.get("name"))
        if best.value == second.value:
            yield f"{name}: no difference."
            continue
        clear = best.high < second.low if sign == 1 else best.low > second.high
        said = f"{order[0]} is ahead"
        if not clear:
            said += f" of {order[1]} by less than the intervals tell apart"
        yield f"{name}: {said}{' (made by people)' if order[0] in human else ''}."

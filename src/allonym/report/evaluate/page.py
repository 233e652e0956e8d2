"""The report of a whole evaluation: verdict, a section of each measure, what was skipped, settings, limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from allonym.report.evaluate.detection import detection_section
from allonym.report.evaluate.document_risk import document_risk_section
from allonym.report.evaluate.downstream import downstream_section
from allonym.report.evaluate.information import information_section
from allonym.report.evaluate.linkage import linkage_section
from allonym.report.evaluate.residual import residual_section
from allonym.report.evaluate.syntheticity import syntheticity_section
from allonym.report.evaluate.verdict import choose_number_kind, limits_section, lower_first, skipped_section, verdict
from allonym.report.page import Block, Cell, Column, Facts, Notice, Page, Row, Section, Settings, Table, Tag, Text
from allonym.report.plots import Axis, Chart, Multiples, Point, Series
from allonym.report.sections import SectionSpec
from allonym.report.values import Plain, flatten_settings, has_estimate, list_rows, read_estimate, read_part
from allonym.stats import Estimate

SECTIONS: Mapping[str, SectionSpec] = {
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
    sections = [*_draw_measures(result, texts), skipped_section(result), _draw_settings(result), limits_section()]
    return _make_page(result, "Evaluation", verdict(result), sections, texts)


def compare_page(result: Plain, *, texts: bool = False) -> Page:
    """The report of several anonymised versions of one corpus.

    Args:
        result: plain values, as ``Comparison.to_dict()`` gives them.
        texts: whether words of the texts may show, where the values hold them.
    """
    versions = read_part(result, "versions")
    human = {str(name) for name in result.get("human") or ()}
    headlines = _list_headlines(versions)
    charts = tuple(_draw_charts(versions, headlines))
    multiples = (Multiples("Risk against utility", charts),) if len(charts) > 1 else charts
    table = _draw_table(versions, headlines, human)
    sections: list[Section | None] = [Section("Side by side", (*multiples, table), "versions")]
    for number, (name, version) in enumerate(versions.items(), 1):
        parts = (section for section in (*_draw_measures(version, texts), skipped_section(version)) if section)
        # Sections of the same measure would share an anchor.
        numbered = (replace(s, anchor=f"{s.anchor}-{number}") if s.anchor else s for s in parts)
        sections.append(Section(name, (*verdict(version), *numbered), f"version-{number}"))
    sections += [*(_draw_settings(version) for version in list(versions.values())[:1]), limits_section()]
    lead = Text(" ".join(_compare_versions(versions, headlines, human)), "lead")
    return _make_page(result, "Versions compared", [lead], sections, texts)


def _make_page(
    result: Plain, title: str, lead: Iterable[Block], sections: Iterable[Section | None], texts: bool
) -> Page:
    blocks = (*lead, *([Notice(SENSITIVE, "sensitive")] if texts else []))
    drawn = tuple(section for section in sections if section is not None)
    return Page(str(result.get("title") or title), drawn, str(result.get("created") or ""), blocks)


def _draw_measures(result: Plain, texts: bool) -> Iterator[Section | None]:
    measures = read_part(result, "measures")
    return (draw(measures[name], texts=texts) for name, draw in SECTIONS.items() if name in measures)


def _draw_settings(result: Plain) -> Section | None:
    groups: list[tuple[str, Facts]] = []
    if settings := flatten_settings(read_part(result, "settings")):
        groups.append(("", settings))
    if seconds := read_part(result, "seconds"):
        groups.append(("Seconds", tuple((str(k), f"{float(v):,.1f}") for k, v in seconds.items())))
    return Section("Settings", (Settings(tuple(groups)),), "settings") if groups else None


def _list_headlines(versions: Plain) -> list[Plain]:
    """Every number that a version has, once, in the order of the first that has it; risk first."""
    headlines: dict[str, Plain] = {}
    for version in versions.values():
        for row in list_rows(version, "headlines"):
            if has_estimate(row.get("value")):
                headlines.setdefault(str(row.get("key")), row)
    return sorted(headlines.values(), key=lambda row: row.get("side") != "risk")


def _read_headline(version: Plain, headline: Plain) -> Estimate:
    same = (row.get("value") for row in list_rows(version, "headlines") if row.get("key") == headline.get("key"))
    return read_estimate(next(same, None))


def _draw_table(versions: Plain, headlines: list[Plain], human: set[str]) -> Table:
    columns = [Column("", hint="which of them"), Column("made by")]
    for row in headlines:
        hint = f"{row.get('note')} ({row.get('side')}; {row.get('better')} is better)"
        columns.append(Column(str(row.get("name")), choose_number_kind(row), row.get("digits"), hint))
    body = []
    if any(has_estimate(row.get("before")) for row in headlines):
        cells: list[Cell] = [
            read_estimate(row["before"]) if has_estimate(row.get("before")) else None for row in headlines
        ]
        body.append(Row(("original texts", "", *cells)))
    for name, version in versions.items():
        values = (_read_headline(version, row) for row in headlines)
        body.append(Row((name, Tag("people" if name in human else "machine"), *values)))
    note = "Intervals that overlap do not tell two versions apart; all were measured on the same texts with one seed."
    return Table("Versions", tuple(columns), tuple(body), note)


def _draw_charts(versions: Plain, headlines: list[Plain]) -> Iterator[Chart]:
    risks = [row for row in headlines if row.get("side") == "risk"]
    utilities = [row for row in headlines if row.get("side") == "utility"]
    for risk, utility in product(risks, utilities[:1]):
        series = []
        for slot, (name, version) in enumerate(versions.items()):
            x, y = _read_headline(version, utility), _read_headline(version, risk)
            if has_estimate(x) and has_estimate(y):
                series.append(Series(name, (Point(x, y, name, (), "chosen"),), slot))
        if len(series) > 1:
            yield Chart(
                f"{risk.get('name')} against {lower_first(utility.get('name'))}",
                Axis(str(utility.get("name")), choose_number_kind(utility)),
                Axis(str(risk.get("name")), choose_number_kind(risk)),
                tuple(series),
                description="One point for each version, with intervals.",
                better="lower right" if utility.get("better") == "high" else "lower left",
                size="small" if len(risks) > 1 else "wide",
            )


def _compare_versions(versions: Plain, headlines: list[Plain], human: set[str]) -> Iterator[str]:
    yield f"{len(versions)} anonymised versions of the same texts."
    for row in headlines:
        values = {name: _read_headline(version, row) for name, version in versions.items()}
        sign = 1 if row.get("better") == "low" else -1
        order = sorted(
            (name for name in values if has_estimate(values[name])), key=lambda name: sign * values[name].value
        )
        if len(order) < 2:
            continue
        best, second = values[order[0]], values[order[1]]
        if best.value == second.value:
            yield f"{row.get('name')}: no difference."
            continue
        clear = best.high < second.low if sign == 1 else best.low > second.high
        margin = "" if clear else f" of {order[1]} by less than the intervals tell apart"
        yield f"{row.get('name')}: {order[0]} is ahead{margin}{' (made by people)' if order[0] in human else ''}."

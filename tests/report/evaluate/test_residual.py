"""Residual risk and the red team in a report: what a reader sees, and that no text is among it."""

from __future__ import annotations

import json

import pytest

from allonym.evaluate import Mark, Marked, red_team_summary, residual_risk
from allonym.evaluate.red_team import Finding
from allonym.report import html, markdown
from allonym.report.evaluate.intruders import red_team_section
from allonym.report.evaluate.risk import residual_section
from allonym.report.page import Chart, Figures, Notice, Page, Section, Table

NAME = "Zaphrandel Quux"


def told(whole: int, part: int, clean: int, **more: object) -> dict[str, object]:
    """The plain values of a corpus with so many whole names, parts of names, and nothing."""
    kinds = [False] * whole + [True] * part + [None] * clean
    corpus = [
        Marked(f"c{i}", NAME, () if p is None else (Mark(0, 15, "PERSON", p),), {"context": "ab"[i % 2]})
        for i, p in enumerate(kinds)
    ]
    return json.loads(json.dumps(residual_risk(corpus, by="context", **more).to_dict()))  # type: ignore[arg-type]


def found(section: Section | None, kind: type) -> list[object]:
    assert section is not None
    return [b for b in section.walk() if isinstance(b, kind)]


def words(section: Section | None) -> str:
    return " ".join(b.text for b in found(section, Notice))  # type: ignore[attr-defined]


def test_the_section_shows_table_4_histogram_and_queue() -> None:
    values = told(3, 4, 20, limit=3)
    section = residual_section(values)
    tables = {t.title: t for t in found(section, Table)}  # type: ignore[attr-defined]
    rows = tables["Residual risk by group"].rows
    assert [r.cells[0] for r in rows] == ["a", "b", "Total"]
    assert [r.cells[1] for r in rows] == [14, 13, 27]
    assert [r.cells[0] for r in tables["To be looked at"].rows] == ["c0", "c1", "c2"]
    (chart,) = found(section, Chart)
    assert [(p.x, p.y) for p in chart.series[0].points] == [(0, 20), (1, 0), (2, 0), (3, 4), (4, 0), (5, 3)]  # type: ignore[attr-defined]
    assert sum(p.y for p in chart.series[1].points) <= 27  # type: ignore[attr-defined]
    assert chart.guides[0].points[0][0] == 3  # type: ignore[attr-defined]
    assert "not normally distributed" in words(section)
    page = Page("Risk", (section,) if section else ())
    for made in (html(page), markdown(page), page.to_json()):
        assert "Zaphrandel" not in made
        assert "PERSON_NAME_PARTIAL" in made.replace("\\", "")


@pytest.mark.parametrize(("counts", "tone"), [((0, 3, 30), "good"), ((20, 3, 4), "bad")])
def test_the_verdict_is_p2s_criterion(counts: tuple[int, int, int], tone: str) -> None:
    figures = found(residual_section(told(*counts)), Figures)[0].figures  # type: ignore[attr-defined]
    assert figures[0].tone == tone
    assert figures[0].value.value < 5 if tone == "good" else figures[0].value.value >= 5


def test_warnings_where_numbers_need_them() -> None:
    assert "another sample" in words(residual_section(told(6, 2, 7)))
    assert "another sample" not in words(residual_section(told(1, 1, 40)))
    proposals = {**told(1, 1, 5), "unconfirmed": 4}
    assert "4 marks are proposals" in words(residual_section(proposals))
    other = {**told(1, 1, 5), "other": {"email_partial": "table", "bound": {"value": 3.5, "low": 3, "high": 4}}}
    assert "Table 6" in words(residual_section(other)) and "3.50" in words(residual_section(other))


def test_words_show_only_where_both_want_it() -> None:
    values = told(3, 0, 3, limit=3)
    values["queue"][0]["missed"] = [NAME]  # type: ignore[index]
    hidden, shown = (html(Page("", (residual_section(values, texts=t),))) for t in (False, True))  # type: ignore[arg-type]
    assert NAME not in hidden and NAME in shown


def test_one_conversation_and_nothing_marked() -> None:
    for values in (told(1, 0, 0), told(0, 0, 1), told(0, 0, 5)):
        section = residual_section(values)
        assert section is not None
        assert html(Page("", (section,)))
        assert markdown(Page("", (section,)))
    assert residual_section({}) is None


def test_the_red_team() -> None:
    findings = [Finding(f"c{i}", "ab"[i % 2], i < 19, False, ("URL",) if i < 19 else ()) for i in range(200)]
    values = json.loads(json.dumps(red_team_summary([*findings, Finding("c999", "a")]).to_dict()))
    section = red_team_section(values)
    figures = found(section, Figures)[0].figures  # type: ignore[attr-defined]
    assert [f.value.value for f in figures] == [0.905, 0.095, 0.0]
    assert figures[2].tone == "good"
    assert "1 conversations" not in words(section) and "1 conversation of the sample was" in words(section)
    made = html(Page("", (section,)))  # type: ignore[arg-type]
    assert "90.5" in made and "URL" in made
    assert red_team_section({}) is None

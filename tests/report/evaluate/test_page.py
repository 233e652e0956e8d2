"""The page of a whole evaluation and of several versions: the verdict follows the numbers, and nothing is made up."""

from __future__ import annotations

import pytest

from allonym import report
from allonym.evaluate.study import MEASURES
from allonym.report.evaluate.page import SECTIONS, choose_headline_tone
from allonym.report.page import Bars, Chart, Figures, Multiples, Notice, Table, Text
from allonym.report.values import Values


def number(value, low=None, high=None, n=100):
    return {
        "value": value,
        "low": value if low is None else low,
        "high": value if high is None else high,
        "n": n,
        "method": "Wilson, 95%",
    }


def line(key, value, side="risk", better="low", **more):
    row = {"key": key, "measure": key, "name": key.title(), "side": side, "better": better, "kind": "share"}
    return {**row, "digits": None, "note": f"about {key}", "value": value, "before": None, "chance": None, **more}


def told(linked=(0.5, 0.4, 0.6), **more):
    lines = [
        line("linkage", number(*linked), before=number(0.9, 0.85, 0.95), chance=number(0.1)),
        line("similarity", number(0.8, 0.7, 0.9), "utility", "high", kind="number", digits=2, chance=number(0.3)),
        line("loss", number(-0.01, -0.03, 0.01), "utility"),
    ]
    skipped = [{"measure": "detection", "title": "What was missed", "reason": "needs gold"}]
    return {"texts": 100, "headlines": lines, "measures": panel(), "skipped": skipped, "settings": {"seed": 3}, **more}


def panel(**more):
    """Measures whose panel has the adaptive intruder as its worst."""
    return {"linkage": {"panel": {"worst": {"name": "adaptive", "knows": "has other texts"}, **more}}}


def of(page, kind):
    return [block for block in page.blocks() if isinstance(block, kind)]


def lead(page):
    return next(b.text for b in page.lead if isinstance(b, Text))


def tone_of(result, row):
    return choose_headline_tone(Values(row), Values(result))


def test_an_intruder_above_chance_speaks_against_sharing():
    page = report.evaluation_page(told())
    assert "They are not safe to share" in lead(page)
    assert "identifies the subject of 50.0" in lead(page)
    assert "the adaptive one, who has other texts." in lead(page)
    assert "no worse than before" in lead(page)
    figures = {f.label: f for f in of(page, Figures)[0].figures}
    assert figures["Risk: linkage"].tone == "bad"
    assert figures["Risk: linkage"].before == 0.9
    assert figures["Utility: similarity"].tone == ""
    assert any("needs gold" in item for item in of(page, Notice)[0].items)


@pytest.mark.parametrize(
    ("linked", "tone", "said"),
    [
        ((0.1, 0.05, 0.15), "good", "evidence, not proof"),
        ((0.1, 0.0, 0.6), "warn", "too few texts"),
        ((0.2, 0.11, 0.3), "bad", "not safe to share"),
    ],
)
def test_the_verdict_follows_the_interval(linked, tone, said):
    result = told(linked)
    assert tone_of(result, result["headlines"][0]) == tone
    assert said in lead(report.evaluation_page(result))


def test_a_wide_interval_beside_a_high_chance_is_open_and_not_safe():
    result = told((0.8, 0.49, 0.94))
    result["headlines"][0]["chance"] = number(0.6)
    assert tone_of(result, result["headlines"][0]) == "warn"
    assert "too few texts" in lead(report.evaluation_page(result))


def test_a_group_that_is_found_is_not_hidden_by_the_others():
    groups = [
        {"name": "few", "worst": {"identified": number(0.9, n=20), "chance": number(0.1)}},
        {"name": "many", "worst": {"identified": number(0.1, n=980), "chance": number(0.1)}},
    ]
    result = told((0.11, 0.09, 0.13), measures=panel(groups=groups))
    assert tone_of(result, result["headlines"][0]) == "bad"
    said = lead(report.evaluation_page(result))
    assert "not safe to share" in said and "more in the group few." in said
    groups[0]["worst"]["identified"] = number(0.2, n=20)
    assert tone_of(result, result["headlines"][0]) == "good"


@pytest.mark.parametrize(("passes", "tone"), [(True, ""), (False, "warn"), (None, "")])
def test_a_second_reading_that_nobody_confirmed_is_no_good_news(passes, tone):
    result = told(measures={"residual": {"total": {"passes": passes}}})
    assert tone_of(result, {"measure": "residual", "side": "risk", "value": number(0.0)}) == tone


def test_versions_are_compared_by_the_worst_intruder_of_each():
    naive = {"linkage": {"panel": {"worst": {"name": "naive", "knows": "has originals"}}}}
    page = report.compare_page({"versions": {"tags": told(), "names": told((0.2, 0.1, 0.3), measures=naive)}})
    table = next(block for block in of(page, Table) if block.title == "Versions")
    place = [column.name for column in table.columns].index("worst intruder")
    assert [row.cells[place] for row in table.rows] == ["", "adaptive", "naive"]


def test_a_loss_that_the_interval_does_not_rule_out_is_open():
    result = told()
    result["headlines"][2]["value"] = number(0.05, -0.01, 0.11)
    said = lead(report.evaluation_page(result))
    assert "no worse than before" not in said
    assert "from 1.0 points better to 11.0 worse" in said


def test_texts_that_no_intruder_was_tried_on_are_told():
    result = told((0.1, 0.05, 0.15), measures=panel(unjudged=90))
    page = report.evaluation_page(result)
    assert "of the 10 that could be tried" in lead(page)
    assert any("90 texts" in item for item in of(page, Notice)[0].items)


def test_without_an_intruder_nothing_is_called_safe():
    result = told()
    result["headlines"] = result["headlines"][1:]
    assert "not known" in lead(report.evaluation_page(result))
    result["headlines"] = [line("missed", number(0.0), measure="detection")]
    said = lead(report.evaluation_page(result))
    assert "No intruder has tried" in said
    assert "still stands" not in said


def test_left_overs_and_missed_mentions_are_told():
    total = {"passes": False}
    result = told((0.1, 0.05, 0.15), measures={})
    result["headlines"] += [
        line("residual", number(6.0), kind="number"),
        line("missed", number(0.25), measure="detection"),
    ]
    result["measures"] = {"residual": {"total": total}}
    assert tone_of(result, result["headlines"][-2]) == "warn"
    page = report.evaluation_page(result)
    assert "more left-overs than the limit" in lead(page)
    assert "Of what people marked, 25.0\u00a0% still stands" in lead(page)


def test_numbers_that_are_missing_are_left_out():
    nothing = {"value": None, "low": None, "high": None, "n": 0, "method": "none: one class only"}
    result = told()
    result["headlines"][0]["value"] = nothing
    page = report.evaluation_page(result)
    assert [f.label for f in of(page, Figures)[0].figures] == ["Utility: similarity", "Utility: loss"]
    assert "No measure of risk could be taken" in lead(page)
    assert "nan" not in report.render(page, "markdown").lower()


def test_an_empty_result_still_makes_a_page():
    page = report.evaluation_page({"texts": 0})
    assert page.sections[-1].title == "What this does not cover"
    for form in ("html", "markdown", "json"):
        assert report.render(page, form)


def test_risk_and_utility_stand_in_one_picture():
    bars = of(report.evaluation_page(told()), Bars)[0]
    assert [group.name for group in bars.groups] == [
        "Risk: linkage (low is better)",
        "Utility: similarity (high is better)",
    ]  # a loss below 0 lies outside
    assert bars.groups[0].reference == 0.1


def test_versions_side_by_side():
    result = {"versions": {"tags": told(), "names": told((0.2, 0.15, 0.25))}, "human": ["names"]}
    page = report.compare_page(result)
    assert "Linkage: names is ahead (made by people)." in lead(page)
    assert "Similarity: no difference." in lead(page)
    table = of(page, Table)[0]
    assert [row.cells[0] for row in table.rows] == ["original texts", "tags", "names"]
    assert [c.name for c in table.columns] == ["", "made by", "worst intruder", "Linkage", "Similarity", "Loss"]
    chart = of(page, Chart)[0]
    assert chart.better == "lower right"
    assert [s.name for s in chart.series] == ["tags", "names"]
    anchors = [s.anchor for s in page.sections]
    assert len(anchors) == len(set(anchors))
    assert "Side by side" in report.render(page, "html")


def test_several_risks_are_several_charts():
    one = told()
    one["headlines"].append(line("missed", number(0.2, 0.1, 0.3), measure="detection"))
    page = report.compare_page({"versions": {"a": one, "b": one}})
    assert len(of(page, Multiples)[0].charts) == 2


def test_texts_are_announced():
    assert not any(n.tone == "sensitive" for n in of(report.evaluation_page(told()), Notice))
    assert any(n.tone == "sensitive" for n in of(report.evaluation_page(told(), texts=True), Notice))


def test_every_measure_has_a_section():
    assert list(SECTIONS) == list(MEASURES)

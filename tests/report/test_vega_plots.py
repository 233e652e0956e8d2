"""Plots for notebooks: valid Vega-Lite, of numbers and labels alone."""

from __future__ import annotations

import json
import math

import pytest
from tests.report import synthetic

from allonym import report
from allonym.document import Span
from allonym.errors import UsageError
from allonym.evaluate import Mark, Marked, detection, residual_risk
from allonym.report.page import Axis, Bar, Bars, Chart, Group, Guide, Multiples, Page, Point, Section, Series, Tabs
from allonym.report.vega_plots import MIME, NAMES, Plot, vega
from allonym.stats import Estimate
from allonym.train.records import make_record

SWAP = synthetic.result(steps=3, outcomes=6)
TEXT = "Ada Brook met Cyd in Elmford on Monday."
MARKS = [(0, 9, "PER"), (14, 17, "PER"), (21, 28, "LOC")]


def estimate(value: float, low: float, high: float) -> dict[str, object]:
    return {"value": value, "low": low, "high": high, "n": 50, "method": "made up"}


def document_risk() -> dict[str, object]:
    rate = estimate(0.2, 0.1, 0.3)
    return {
        "calibrated": True, "histogram": [3, 2, 1, 0, 5, 1, 0, 0, 2, 1] * 2, "review": {"above": 0.5, "share": rate},
        "bins": [{"predicted": 0.1, "observed": rate}, {"predicted": 0.7, "observed": estimate(0.8, 0.7, 0.9)}],
        "brier": rate, "traits": [],
    }  # fmt: skip


@pytest.fixture(scope="module")
def found():
    records = [make_record("", str(i), TEXT, MARKS) for i in range(4)]
    spans = [[Span(0, 9, "PERSON"), Span(21, 28, "CITY")]] * 4
    return detection(
        [TEXT] * 4, ["[PERSON_1] met Cyd in [CITY_1] on Monday."] * 4, gold=records, predicted=spans, draws=50
    )


@pytest.fixture(scope="module")
def evaluation(found) -> dict[str, object]:
    corpus = [Marked(f"c{i}", TEXT, (Mark(0, 9, "PERSON", False),) * (i % 3 == 0)) for i in range(12)]
    lines = [
        {"key": key, "measure": key, "name": key.title(), "side": side, "better": better, "kind": "share",
         "note": "", "value": estimate(0.4, 0.3, 0.5), "before": None, "chance": estimate(0.1, 0.1, 0.1)}
        for key, side, better in (("linkage", "risk", "low"), ("similarity", "utility", "high"))
    ]  # fmt: skip
    measures = {
        "detection": found.to_dict(), "residual": residual_risk(corpus).to_dict(), "document_risk": document_risk()
    }  # fmt: skip
    return json.loads(json.dumps({"texts": 4, "headlines": lines, "measures": measures}))


def strings(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@pytest.fixture(scope="module")
def altair():
    return pytest.importorskip("altair", reason="Altair is not installed")


def test_a_swap(altair):
    plots = vega(SWAP)
    assert list(plots)[:4] == ["plane N = 10⁶", "plane", "plane N = 10¹⁸", "intruders"]
    assert "grid" in plots
    for name, plot in plots.items():
        assert not any(company in strings(plot) for company in synthetic.COMPANIES)
        if " N = " not in name:
            altair.Chart.from_dict(plot, validate=True)
    rows = plots["plane"]["data"]["values"]
    assert len(rows) == len(SWAP["releases"])
    assert sum(row["mark"] == "chosen" for row in rows) == 1
    assert all({"x", "y", "series", "label", "Utility U"} <= set(row) for row in rows)
    told = {row["series"]: [r["value"] for r in plots["intruders"]["data"]["values"]] for row in rows}
    assert all(told.values())


def test_an_evaluation(altair, evaluation):
    plots = vega(evaluation)
    assert {"verdict", "recall", "leaks", "residual", "document-risk", "reliability"} <= set(plots)
    for plot in plots.values():
        assert not any(word in strings(plot) for word in ("Brook", "Elmford", "Cyd"))
        altair.Chart.from_dict(plot, validate=True)
    recall = plots["recall"]["data"]["values"]
    scores = evaluation["measures"]["detection"]["levels"]["entity"]["labels"]
    assert [(r["group"], r["value"]) for r in recall] == [("PER", scores["PER"]["recall"]["value"]), ("LOC", 1.0)]
    assert recall[0]["low"] <= recall[0]["value"] <= recall[0]["high"]
    spread = [r for r in plots["residual"]["data"]["values"] if r["series"] == "conversations"]
    assert sum(r["y"] for r in spread) == 12
    assert sum(r["value"] for r in plots["document-risk"]["data"]["values"]) == sum(document_risk()["histogram"])


def test_versions_and_single_measures(altair, evaluation, found):
    (plot,) = vega({"versions": {"a": evaluation, "b": evaluation}}).values()
    assert [(r["series"], r["x"], r["y"], r["y_low"]) for r in plot["data"]["values"]] == [
        ("a", 0.4, 0.4, 0.3),
        ("b", 0.4, 0.4, 0.3),
    ]
    altair.Chart.from_dict(plot, validate=True)
    more = {
        **evaluation,
        "headlines": [*evaluation["headlines"], {**evaluation["headlines"][0], "key": "more", "name": "More"}],
    }
    plots = vega({"versions": {"a": more, "b": more}})
    assert list(plots) == ["versions"] and len(plots["versions"]["concat"]) == 2
    alone = vega(found)
    assert set(alone) == {"leaks", "recall"}
    assert alone["recall"] == vega(evaluation)["recall"]
    assert set(vega(document_risk())) == {"document-risk", "reliability"}


def test_every_name_is_of_a_plot_that_is_drawn(evaluation):
    made = [vega(SWAP), vega(evaluation), vega({"versions": {"a": evaluation, "b": evaluation}})]
    drawn = {plot["title"].partition(", N =")[0] for plots in made for plot in plots.values()}
    unsure = vega(document_risk() | {"calibrated": False})
    drawn |= {plot["title"] for plot in unsure.values()}
    assert set(NAMES) - {"Risk against utility"} <= drawn


def test_a_page_gives_all_its_charts_with_what_they_hold(altair):
    wide = Estimate(0.3, 0.1, 0.6, 9, "made up")
    chart = Chart(
        "One", Axis("x", "power", 1, 1e6, log=True), Axis("y", "share", 0, 1),
        (Series("a", (Point(1, wide, "p", (("dotted.name", wide),), "chosen"), Point(math.nan, 0.2, mark="hollow")), 0, "dashed"),
         Series("b", (Point(10.0, 0.4, mark="frontier"),), 9, "thin"), Series("none", (), 3)),
        (Guide("limit", ((1, 0.5), (1e6, 0.5)), "limit"),),
    )  # fmt: skip
    bars = Bars(
        "Two",
        Axis("v", "count"),
        (Group("g", (Bar("s", wide, 1), Bar("t", math.inf, 2)), 0.5),),
        "chance",
        guides=(("here", 0.2),),
    )
    small = Chart("Small", Axis("x"), Axis("y"), (Series("", (Point(1, 2),)),), size="small")
    tabs = Tabs("Choice", (("first", (chart,)), ("second", (chart,))), 1)
    plots = vega(Page("P", (Section("S", (tabs, bars, Multiples("Many", (small, small)))),), lead=(bars,)))
    assert list(plots) == ["two", "one first", "one", "two 2", "many"]
    for plot in plots.values():
        json.loads(strings(plot))
        altair.Chart.from_dict(plot, validate=True)
    rows = plots["one"]["data"]["values"]
    assert rows[0] == {
        "series": "a", "order": 0, "mark": "chosen", "x": 1.0, "y": 0.3, "y_low": 0.1, "y_high": 0.6, "label": "p",
        "dotted name": "0.30 [0.10, 0.60]",
    }  # fmt: skip
    assert rows[1]["x"] is None
    scale = plots["one"]["layer"][0]["encoding"]["x"]["scale"]
    assert scale == {"type": "log", "domainMin": 1, "domainMax": 1e6}
    (colours,) = {strings(x["encoding"]["color"]["scale"]) for x in plots["one"]["layer"] if "color" in x["encoding"]}
    assert json.loads(colours) == {"domain": ["a", "b"], "range": ["#0b62b8", "#c94f06"]}
    assert len(plots["many"]["concat"]) == 2
    assert [r["value"] for r in plots["two"]["data"]["values"]] == [0.3, None]


def test_a_plot_is_a_dictionary_that_a_notebook_draws(tmp_path):
    plot = vega(document_risk())["reliability"]
    assert isinstance(plot, dict) and repr(plot) == "Plot('Reliability: predicted and true rates')"
    shown = plot._repr_mimebundle_(include=None, exclude=None)
    assert shown[MIME] == plot and type(shown[MIME]) is dict
    plot.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == plot
    for wrong, said in ((tmp_path / "a.png", r"must end in \.json"), (tmp_path / "no" / "a.json", "cannot write plot")):
        with pytest.raises(UsageError, match=said):
            Plot().save(wrong)


@pytest.mark.parametrize("wrong", [{}, {"a": 1}, 5, None, "text"])
def test_what_is_no_result_is_refused(wrong):
    with pytest.raises(UsageError):
        report.vega(wrong)

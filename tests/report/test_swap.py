import copy
import itertools
import json
import re

import pytest
from tests.report.synthetic import COMPANIES, PRODUCTS, result
from tests.report.test_html_page import EVIL, read

from allonym.report import html, markdown, swap_page
from allonym.report.page import Chart, Figures, Notice, Reader, Settings, Table, Text
from allonym.report.swap.values import shorten_powers
from allonym.report.values import format_number, read_estimate

PARTS = sorted(set(result(steps=2, outcomes=2)) - {"title"})


@pytest.fixture(scope="module")
def small():
    return result(steps=4, outcomes=12)


@pytest.fixture(scope="module")
def tiny():
    return result(steps=1, outcomes=2)


@pytest.fixture(scope="module")
def made(small):
    return html(swap_page(small))


def blocks(page, kind):
    return [b for b in page.blocks() if isinstance(b, kind)]


def test_sections_come_in_order(small):
    names = [s.anchor for s in swap_page(small).sections]
    assert names == [
        "releases",
        "intruders",
        "uniqueness",
        "clusters",
        "grid",
        "texts",
        "written",
        "settings",
        "limits",
    ]


def test_every_release_is_a_point_at_every_population_size(small):
    charts = [c for c in blocks(swap_page(small), Chart) if c.better]
    assert len(charts) == 3
    for chart, size in zip(charts, ("1e+06", "1e+12", "1e+18"), strict=True):
        points = [p for s in chart.series for p in s.points]
        assert len(points) == len(small["releases"]) == 24
        wanted = sorted((r["utility"]["value"], r["risk"][size]["value"]) for r in small["releases"])
        found = sorted((p.x.value, p.y.value) for p in points)
        assert [u for u, _ in found] == [u for u, _ in wanted]
        lifted = [1 + risk * 1e-4 if chart.y.name != "Risk R" else risk for _, risk in found]
        assert lifted == pytest.approx([risk for _, risk in wanted], abs=1e-12)
        assert [p.mark for p in points].count("chosen") == 1
        chosen = next(p for p in points if p.mark == "chosen")
        assert chosen.label == "Organization + Product, 4 swaps"
        on = set(small["frontier"][size]) | {small["chosen"]}
        assert sum(p.mark != "" for p in points) == len(on)


def test_a_set_of_categories_looks_the_same_in_every_chart(small):
    page = swap_page(small)
    slots = {}
    for chart in blocks(page, Chart):
        for series in chart.series:
            if " + " in series.name:
                assert slots.setdefault(series.name, series.slot) == series.slot
    assert len(set(slots.values())) == 6


def test_all_numbers_are_in_the_page(small, made):
    text = read(made).text
    for table in small["tables"]:
        for name in ("singles", "doubles", "alone", "k", "n"):
            assert format_number(float(table[name]), "count") in text
    for attack in small["attacks"]:
        for count in attack["table"]:
            assert f"{count:,}" in text
        assert (
            format_number(attack["before"]["value"], "number", 3) in text and format_number(attack["statistic"]) in text
        )
    for release in small["releases"]:
        assert format_number(release["utility"]["value"], "number", 5) in text
        for risk in release["risk"].values():
            assert format_number(risk["value"], "number", 4) in text
    for cluster in small["mixture"]["clusters"]:
        assert format_number(cluster["rho"], "number", 4) in text and ", ".join(cluster["words"]) in text
    for seconds in small["timings"].values():
        assert f"{seconds:,.1f}" in text
    assert "EM did not converge" in text and small["warnings"][0] in text and "no two chunks are a valid pair" in text


def test_the_summary_is_the_chosen_release_as_it_was_written(small):
    text = markdown(swap_page(small)).split("## ")[0]
    assert "Protected: 34 values of company in 34 documents (1,819 chunks)." in text
    assert "exchanges Organization and Product" in text and "62 chunks change (3.4 %)" in text
    assert "the risk falls from 1 to 0.985, with 6.6 expected population uniques left" in text
    assert "utility of 0.9951" in text and "| Mean cosine | 0.941 |" in text
    assert "| Intruder: entities | 0.93 → 0.20 |" in text


def test_an_intruder_is_green_near_guessing_alone(small):
    data = copy.deepcopy(small)
    (attack, *_) = data["attacks"]
    for share, tone in ((0.97, "warn"), (attack["chance"], "good")):
        attack["after"] = {**attack["after"], "value": share, "low": share, "high": share}
        figures = [f for block in blocks(swap_page(data), Figures) for f in block.figures]
        assert next(f.tone for f in figures if f.label.startswith("Intruder")) == tone


def test_marks_of_passages_cover_what_was_put_in(small):
    reader = blocks(swap_page(small), Reader)[0]
    assert len(reader.passages) == 12
    for passage, given in zip(reader.passages, small["outcomes"], strict=True):
        assert (passage.before, passage.after) == (given["before"], given["after"])
        for mark in passage.marks_after:
            assert passage.after[mark.start : mark.end] in (*COMPANIES, *PRODUCTS)
    swapped = reader.passages[0].marks_after[0]
    assert swapped.label == f"Organization\nput in: exchanged\nfrom chunk: {small['outcomes'][0]['partners'][0]}"


def test_hovering_never_shows_what_stood_there_before(small):
    reader = blocks(swap_page(small), Reader)[0]
    for passage in reader.passages:
        for mark in (*passage.marks_after, *passage.marks_before):
            assert not any(name in mark.label for name in (*COMPANIES, *PRODUCTS))


def test_without_texts_no_word_of_the_corpus_shows(small):
    given = copy.deepcopy(small)
    for i, cluster in enumerate(given["mixture"]["clusters"]):
        cluster["words"] = [f"zephyr{i}"]
    given["attacks"][0]["terms"] = [["quokka", 1.0]]
    assert "zephyr0" in html(swap_page(given)) and "quokka" in html(swap_page(given))
    page = swap_page(given, texts=False)
    shown = html(page) + markdown(page) + page.to_json()
    for word in (*COMPANIES, *PRODUCTS, "zephyr0", "zephyr9", "quokka"):
        assert not re.search(rf"\b{re.escape(word)}\b", shown), word
    assert "This report shows texts" not in shown


def test_a_report_with_texts_says_how_sensitive_it_is(made):
    text = read(made).text
    assert text.index("This report shows texts") < text.index("Each mark is one way")


def test_many_passages_are_sampled_and_the_recognised_ones_stay():
    many = result(steps=2, outcomes=60, grids=False)
    page = swap_page(many, passages=45)
    reader = blocks(page, Reader)[0]
    assert len(reader.passages) == 45 and "45 of 60" in reader.note
    still = [f"Chunk {o['chunk']}" for o in many["outcomes"] if any(after for _, after in o["guessed"].values())]
    assert set(still) <= {p.title for p in reader.passages} and len(still) < 45


def test_risk_close_to_one_is_told_apart():
    near = result(steps=3, outcomes=0, grids=False)
    for release in near["releases"]:
        for size in release["risk"]:
            for name in ("value", "low", "high"):
                release["risk"][size][name] = 1 - (1 - release["risk"][size][name]) * 1e-9
    page = swap_page(near)
    chart = next(c for c in blocks(page, Chart) if c.better)
    assert chart.y.name.startswith("Risk R − 1, in units of 10⁻")
    heights = [p.y.value for s in chart.series for p in s.points]
    assert -10 <= min(heights) < -1 and len(set(heights)) > 10


def test_utility_above_one_is_explained():
    above = result(steps=3, outcomes=0, grids=False)
    above["releases"][0]["utility"] = {"value": 1.002, "low": 1.001, "high": 1.003, "n": 3, "method": "mean, SD"}
    chart = next(c for c in blocks(swap_page(above), Chart) if c.better)
    assert any("counts as 1" in g.name for g in chart.guides)


def test_the_bounded_risk_is_drawn_where_it_was_judged_by(small):
    other = copy.deepcopy(small)
    other["settings"]["search"]["risk"] = "bounded"
    chart = next(c for c in blocks(swap_page(other), Chart) if c.better)
    wanted = sorted(r["bounded"]["1e+06"]["value"] for r in other["releases"])
    assert sorted(p.y.value for s in chart.series for p in s.points) == wanted


@pytest.mark.parametrize("missing", PARTS)
@pytest.mark.parametrize("empty", [False, True], ids=["missing", "none"])
def test_every_part_may_be_missing(tiny, missing, empty):
    less = {k: v for k, v in tiny.items() if k != missing}
    if empty:
        less[missing] = None
    page = swap_page(less)
    assert read(html(page)) and markdown(page) and json.loads(page.to_json())


def test_an_empty_result_is_a_page_too():
    page = swap_page({})
    assert [s.anchor for s in page.sections] == ["limits"]
    assert read(html(page))


def test_evil_values_stay_text(small):
    evil = json.loads(json.dumps(small).replace("Organization", json.dumps(EVIL)[1:-1]).replace("entities", "<b>"))
    made = html(swap_page(evil))
    found = read(made)
    assert [tag for tag, _ in found.elements].count("script") == 1 and "<img" not in made
    assert EVIL in found.text


def test_numbers_that_are_none_are_dashes(small):
    holes = json.loads(json.dumps(small))
    for release, name in itertools.product(holes["releases"][:5], ("utility", "distance_per_chunk", "cosine")):
        release[name] = dict.fromkeys(("value", "low", "high")) | {"n": 0, "method": "none"}
    made = html(swap_page(holes))
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b", read(made).text)


def test_the_same_result_gives_the_same_bytes(small):
    again = json.loads(json.dumps(small))
    assert html(swap_page(small)) == html(swap_page(again))


def test_tables_of_releases_are_complete(small):
    tables = blocks(swap_page(small), Table)
    every = next(t for t in tables if any(c.name == "Uniques m" for c in t.columns))
    assert len(every.rows) == 24 and [r.mark for r in every.rows].count("chosen") == 1
    front = next(t for t in tables if t.title == "Releases on the frontier at N = 10¹²")
    assert len(front.rows) == len(small["frontier"]["1e+12"])


def test_estimates_are_read_from_plain_values():
    assert read_estimate({"value": 1, "low": 0, "high": 2, "n": 3, "method": "x"}).high == 2
    assert read_estimate({"value": None, "low": None, "high": None, "n": 0, "method": "x"}).n == 0
    assert read_estimate(3).value == 3 and read_estimate(None).value != read_estimate(None).value
    assert shorten_powers("N = 1e+06 to 1e+18, 2.5e+07") == "N = 10⁶ to 10¹⁸, 2.5\u00a0×\u00a010⁷"


def words_of(page):
    return " ".join(b.text for b in page.blocks() if isinstance(b, (Text, Notice)))


def test_texts_say_which_formula_a_number_follows(small):
    other = copy.deepcopy(small)
    for risk, p, uniques in (("paper", "p of (2.15)", "(2.14)"), ("bounded", "the bounded p*", "(2.13)")):
        other["settings"]["search"]["risk"] = risk
        page = swap_page(other)
        assert f"(2.16) with {p}, utility U is (2.19)." in words_of(page)
        table = next(t for t in blocks(page, Table) if t.title == "Population uniques")
        assert all(uniques in c.hint for c in table.columns if c.name.startswith("E S"))
    other["releases"][0]["flags"] = ["the ratio misleads for another release: U = exp(D / (n d))"]
    assert "utility U is exp(D / (n d)) for all of them" in words_of(swap_page(other))


def test_intervals_of_risks_are_not_called_standard_deviations(small):
    front = next(t for t in blocks(swap_page(small), Table) if t.title.startswith("Releases on the frontier"))
    hint = next(c.hint for c in front.columns if c.name == "Risk R")
    assert "95 % of the model" in hint


def test_the_mixture_that_was_used_is_ringed(small):
    other = copy.deepcopy(small)
    for criterion in ("bic", "icl"):
        other["settings"]["mixture"]["criterion"] = criterion
        for at, row in enumerate(other["mixture"]["selection"]):
            other["mixture"]["chosen"] = at
            chart = next(c for c in blocks(swap_page(other), Chart) if c.title.startswith("Number of clusters"))
            ringed = [(s.name, p.x) for s in chart.series for p in s.points if p.mark == "chosen"]
            assert [(n.split(",")[0].lower(), x) for n, x in ringed] == [(criterion, row["clusters"])]


def test_clusters_are_no_border_where_partners_may_be_sought_beyond(small):
    other = copy.deepcopy(small)
    assert "look in all clusters" not in words_of(swap_page(other))
    other["settings"]["exchange"]["beyond"] = True
    assert "look in all clusters" in words_of(swap_page(other))


def test_p_values_of_runs_that_share_chunks_are_called_too_small(small):
    other = copy.deepcopy(small)
    for runs, said in ((1, False), (30, True)):
        for attack in other["attacks"]:
            attack["before"]["n"] = runs
        facts = [f for b in blocks(swap_page(other), Settings) for g, fs in b.groups if "McNemar" in g for f in fs]
        assert any("share chunks" in str(value) for _, value in facts) == said

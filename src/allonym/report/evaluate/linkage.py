"""The offline intruder in a report, before and after: rates per group, rank curve, terms that gave subjects away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from allonym.report.evaluate.intruders import RATES, SUBJECTS
from allonym.report.numbers import format_number
from allonym.report.page import Block
from allonym.report.plots import Axis, Chart, Guide, Point, Series
from allonym.report.sections import BarChart, Folded, Paragraph, SectionSpec, ValueTable
from allonym.report.values import Plain, has_estimate, list_rows, missing_reason, read_estimate, read_part, read_path

BEFORE, AFTER = 7, 0
_KNOWS = {
    "original": "original texts",
    "anonymised": "anonymised texts, as they are released,",
    "both": "texts, before and after anonymisation,",
}
_FEATURES = {
    "words": "n-grams of words",
    "characters": "n-grams of characters",
    "both": "n-grams of words and of characters",
    "encoder": "vectors of a sentence encoder",
    "all": "n-grams of words and of characters, and vectors of a sentence encoder",
}
_RELEASED = (
    "An intruder who has learnt from the released texts of others about the same subjects, or from texts that were "
    "anonymised by the same means, finds {released.all.after:share.1} [{released.all.after.low:share.1}, "
    "{released.all.after.high:share.1}] after anonymisation."
)
_UNJUDGED = "{unjudged:,} texts are left out: there is no other text about their subject to learn from."
_RATES = """
    Group     | name
    Texts     | texts            | count    | Texts that were judged
    Subjects  | subjects         | count    | Candidates among whom the intruder chose
    Before    | before           | share.1  | Share of original texts whose subject comes first
    After     | after            | share.1  | The same after anonymisation
    Change    | change           | share.1  | After less before, paired
    Blind     | chance.value     | share.1  | The subject with most texts, guessed for all
"""
_TOP = "First {k} | top.{k}.after | share.1 | Subject among the first {k}, after anonymisation\n"
_RANKS = """
    1 / rank  | reciprocal.after | number.3 | Mean reciprocal rank after anonymisation: 1 where all subjects come first
    McNemar p | test.exact       | p        | Exact: were as many found after as before?
"""
_TERMS = """
    Subject            | subject
    Group              | group
    Where it was found | found  | | Terms that spoke most for the subject, the strongest first
    Where it was not   | missed | | Terms that spoke for the subject, and were not enough
"""


def _write_lead(result: Plain) -> str:
    source = (
        f"other people's {_KNOWS.get(str(result.get('knows')), 'texts')} about the same subjects; it never learns from "
        "a text that it judges, nor from a copy"
        if result.get("folds")
        else "a background of texts about the same subjects, without copies of what it judges"
    )
    features = _FEATURES.get(str(result.get("features")), str(result.get("features")))
    return (
        f"A program links each text to the subject whose other texts it is most like. It has learnt from {source}. "
        f"It looks at {features}. It knows more than people who guess from the open world, and is no bound: "
        "whoever knows other things may find others."
    )


def _list_groups(result: Plain) -> list[Plain]:
    groups = [*list_rows(result, "groups"), read_part(result, "all")]
    return [{**group, "name": str(group.get("name") or "all texts")} for group in groups]


def _draw_rates(result: Plain) -> Iterator[Block]:
    ks = sorted({int(k) for group in _list_groups(result) for k in read_part(group, "top")} - {1})
    fields = _RATES + "".join(_TOP.format(k=k) for k in ks) + _RANKS
    table = ValueTable("Found before and after", _list_groups, fields, "Below each value: its 95 % interval.")
    if has_estimate(read_path(result, "all.after")):
        yield table.draw(result)


def _draw_curve(result: Plain) -> Iterator[Block]:
    curve = list_rows(read_part(result, "all"), "curve")
    if len(curve) < 2 or not has_estimate(read_path(result, "all.after")):
        return
    series = []
    for name, slot in (("before", BEFORE), ("after", AFTER)):
        points = (
            Point(
                float(p["k"]),
                read_estimate(p.get(name)).value,
                f"first {p['k']}",
                ((name, read_estimate(p.get(name))),),
            )
            for p in curve
        )
        series.append(Series(name.capitalize(), tuple(points), slot, "full"))
    most = float(curve[-1]["k"])
    yield Chart(
        "Rank curve: how many subjects must be looked at",
        Axis("First k subjects", "count", 1, most),
        Axis("Texts whose subject is among them", "share", 0, 1),
        tuple(series),
        (Guide("blind order", ((1.0, 1 / most), (most, 1.0))),),
        f"Share of texts whose subject is among the first k, up to all {format_number(most, 'count')} candidates.",
        "lower right",
    )


def _list_terms(result: Plain) -> list[Plain]:
    lists = ("found", "missed")
    return [
        {**row, **{name: [term for term, _ in row.get(name) or ()] for name in lists}}
        for row in list_rows(result, "terms")
    ]


def _explain_missing(result: Plain) -> str:
    return missing_reason(read_path(result, "all.after")).capitalize() + "."


linkage_section = SectionSpec(
    "Intruder: record linkage",
    "linkage",
    "all",
    (
        Paragraph(_write_lead),
        Paragraph(_RELEASED, when="released.all.after"),
        Paragraph(_UNJUDGED, "muted", when="unjudged"),
        BarChart(
            "Texts whose subject comes first",
            Axis("Share of texts", "share", 0, 1),
            _list_groups,
            f"Before | before | .{BEFORE} \n After | after | .{AFTER}",
            "chance",
            "guessing blindly",
            "Before and after anonymisation, with the rate of guessing blindly.",
            "Whiskers: Wilson, 95 %. The tick is the subject with most texts, guessed for all.",
            when="all.after",
        ),
        _draw_rates,
        _draw_curve,
        Paragraph(_explain_missing, "muted", when=lambda result: not has_estimate(read_path(result, "all.after"))),
        Folded(
            "The table that all intruders share, anonymised texts",
            (*RATES, replace(SUBJECTS, texts=True)),
            "results",
            when="results.all",
        ),
        Folded(
            "What gave subjects away",
            (ValueTable("", _list_terms, _TERMS, "Anonymised texts; as P3 Tables 5, 6 and 8, from a program.", 30),),
            texts=True,
            when="terms",
        ),
    ),
)

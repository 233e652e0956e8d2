"""What the offline intruder finds, before and after: rates per group, rank curve, terms that gave subjects away."""

from __future__ import annotations

from allonym.report.evaluate.intruders import results_blocks
from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Details, Row, Section, Table, Text
from allonym.report.plots import Axis, Bar, Bars, Chart, Group, Guide, Point, Series
from allonym.report.swap.given import Plain, estimate, known, part, rows

BEFORE, AFTER = 7, 0
_ALL = "all texts"
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


def linkage_section(result: Plain, *, texts: bool = False) -> Section | None:
    """The offline intruder's part of a report.

    Args:
        result: as :meth:`allonym.evaluate.intruder.Reidentification.to_dict` gives it.
        texts: whether subjects are named and terms shown, where ``result`` has them.
    """
    whole = part(result, "all")
    if not whole:
        return None
    linked = [*rows(result, "groups"), whole]
    learnt = _KNOWS.get(str(result.get("knows")), "texts")
    features = _FEATURES.get(str(result.get("features")), str(result.get("features")))
    apart = int(result.get("folds") or 0)
    source = (
        f"other people's {learnt} about the same subjects; it never learns from a text that it judges, nor from a copy"
        if apart
        else "a background of texts about the same subjects, without copies of what it judges"
    )
    blocks: list[Block] = [
        Text(
            f"A program links each text to the subject whose other texts it is most like. It has learnt from {source}. "
            f"It looks at {features}. It knows more than people who guess from the open world, and is no bound: "
            "whoever knows other things may find others."
        )
    ]
    released = part(part(result, "released"), "all")
    if known(released.get("after")):
        after = estimate(released.get("after"))
        blocks.append(
            Text(
                "One who has learnt from the released texts of others about the same subjects, or from texts that were "
                f"anonymised by the same means, finds {write(after.value, 'share', 1)} "
                f"[{write(after.low, 'share', 1)}, {write(after.high, 'share', 1)}] after anonymisation."
            )
        )
    if unjudged := int(result.get("unjudged") or 0):
        blocks.append(
            Text(f"{unjudged:,} texts are left out: there is no other text about their subject to learn from.", "muted")
        )
    if known(whole.get("after")):
        blocks += [_bars(linked), _table(linked)]
        if len(rows(whole, "curve")) > 1:
            blocks.append(_curve(whole))
    else:
        blocks.append(Text(estimate(whole.get("after")).method.removeprefix("none: ").capitalize() + ".", "muted"))
    shared = part(result, "results")
    if not texts:
        shared = {**shared, "subjects": []}
    if found := results_blocks(shared):
        blocks.append(Details("The table that all intruders share, anonymised texts", found))
    if texts and (terms := rows(result, "terms")):
        blocks.append(_terms(terms))
    return Section("Intruder: record linkage", tuple(blocks), "linkage")


def _bars(linked: list[Plain]) -> Bars:
    groups = []
    for one in linked:
        bars = (Bar("Before", estimate(one.get("before")), BEFORE), Bar("After", estimate(one.get("after")), AFTER))
        chance = estimate(one.get("chance")).value
        groups.append(Group(str(one.get("name") or _ALL), bars, chance if chance == chance else None))
    return Bars(
        "Texts whose subject comes first",
        Axis("Share of texts", "share", 0, 1),
        tuple(groups),
        "guessing blindly",
        "Before and after anonymisation, with the rate of guessing blindly.",
        "Whiskers: Wilson, 95 %. The tick is the subject with most texts, guessed for all.",
    )


def _table(linked: list[Plain]) -> Table:
    ks = sorted({int(k) for one in linked for k in part(one, "top")} - {1})
    columns = [
        Column("Group"),
        Column("Texts", "count", None, "Texts that were judged"),
        Column("Subjects", "count", None, "Candidates among whom the intruder chose"),
        Column("Before", "share", 1, "Share of original texts whose subject comes first"),
        Column("After", "share", 1, "The same after anonymisation"),
        Column("Change", "share", 1, "After less before, paired"),
        Column("Blind", "share", 1, "The subject with most texts, guessed for all"),
        *(Column(f"First {k}", "share", 1, f"Subject among the first {k}, after anonymisation") for k in ks),
        Column("1 / rank", "number", 3, "Mean reciprocal rank after anonymisation: 1 where all subjects come first"),
        Column("McNemar p", "p", None, "Exact: were as many found after as before?"),
    ]
    body = []
    for one in linked:
        top = part(one, "top")
        cells: list[Cell] = [str(one.get("name") or _ALL), one.get("texts"), one.get("subjects")]
        cells += [estimate(one.get(name)) for name in ("before", "after", "change")]
        cells.append(estimate(one.get("chance")).value)
        cells += [estimate(part(top, str(k)).get("after")) for k in ks]
        cells += [estimate(part(one, "reciprocal").get("after")), part(one, "test").get("exact")]
        body.append(Row(tuple(cells)))
    return Table("Found before and after", tuple(columns), tuple(body), "Below each value: its 95 % interval.")


def _curve(whole: Plain) -> Chart:
    series = []
    found = rows(whole, "curve")
    for name, slot in (("before", BEFORE), ("after", AFTER)):
        points = tuple(
            Point(float(p["k"]), estimate(p.get(name)).value, f"first {p['k']}", ((name, estimate(p.get(name))),))
            for p in found
        )
        series.append(Series(name.capitalize(), points, slot, "full"))
    most = float(found[-1]["k"])
    blind = Guide("blind order", ((1.0, 1 / most), (most, 1.0)))
    return Chart(
        "Rank curve: how many subjects must be looked at",
        Axis("First k subjects", "count", 1, most),
        Axis("Texts whose subject is among them", "share", 0, 1),
        tuple(series),
        (blind,),
        f"Share of texts whose subject is among the first k, up to all {write(most, 'count')} candidates.",
        "lower right",
    )


def _terms(terms: list[Plain]) -> Details:
    columns = (
        Column("Subject"),
        Column("Group"),
        Column("Where it was found", "text", None, "Terms that spoke most for the subject, the strongest first"),
        Column("Where it was not", "text", None, "Terms that spoke for the subject, and were not enough"),
    )
    body = tuple(
        Row((str(t.get("subject")), str(t.get("group") or ""), _listed(t.get("found")), _listed(t.get("missed"))))
        for t in terms
    )
    table = Table("", columns, body, "Anonymised texts; as P3 Tables 5, 6 and 8, from a program.", shown=30)
    return Details("What gave subjects away", (table,))


def _listed(pairs: object) -> str:
    return ", ".join(str(p[0]) for p in pairs) if isinstance(pairs, (list, tuple)) else ""

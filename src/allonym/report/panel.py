"""The panel of intruders in a report: the worst first, and the table of all beside it."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Axis, Block
from allonym.report.sections import BarChart, KeyFigures, Paragraph, Parts, ValueTable, draw_parts
from allonym.report.values import Plain, Values, get_missing_reason

_LEAD = (
    "Protection is as good as against the worst of these intruders. {texts:,} texts about {subjects:,} subjects were "
    "judged. Texts are held out, not subjects: each intruder has other texts about the same subjects, or about the "
    "candidates, but never the text that it judges, a copy, or, where the subject has several, a part of its document. "
    "All judge the same texts in the same {folds} folds."
)
_UNJUDGED = (
    "{unjudged:,} texts are left out: nobody has another text about their subject, their subject is not known, or "
    "there are more texts than the panel draws."
)
_FIGURES = """
    Identified at worst | worst.identified | share.1 | {among}{judged}, by the {worst.name} intruder, who {worst.knows}
    By guessing         | worst.chance     | share.1 | the most frequent subjects
"""
_TABLE = """
    Intruder   | name
    Knowledge  | knowledge
    Identified | identified | share.1 | Share of the texts whose subject is identified, Wilson's interval
    Originals  | before     | share.1 | The same share of the original texts
    Guessing   | chance.value | share.1 | The most frequent subjects, guessed for all
    n          | n          | count   | Texts, or documents, that were judged
"""
_GROUPS = """
    Group          | name
    Worst intruder | worst
    Identified     | identified   | share.1
    Originals      | before       | share.1
    Guessing       | chance.value | share.1
"""


def list_panel_rows(panel: Values) -> list[Plain]:
    """List the intruders of the table; where one was not asked, its knowledge says why."""
    worst = panel.get_value("worst.name")
    rows: list[Plain] = []
    for row in panel.list_rows("rows"):
        if row.has_estimate("identified"):
            mark = {"mark": "chosen"} if row.get("name") == worst else {}
            rows.append({**row, "knowledge": row.get("knows"), "n": row.get_estimate("identified").n, **mark})
        else:
            rows.append({"name": row.get("name"), "knowledge": get_missing_reason(row.get("identified"))})
    return rows


def list_panel_groups(panel: Values) -> list[Values]:
    """List the worst row of each group."""
    groups = [(group, group.get_part("worst")) for group in panel.list_rows("groups")]
    return [
        Values({**worst, "name": str(group.get("name") or "no group"), "worst": worst.get("name")})
        for group, worst in groups
        if worst.has_estimate("identified")
    ]


def _describe_guesses(panel: Values) -> Plain:
    """Word which guesses count: the first, or the first k."""
    rank, among = int(panel.get("rank") or 1), panel.get_value("worst.among")
    judged = f" of {among}" if among else ""
    return {"among": "first guess" if rank == 1 else f"first {rank} guesses", "judged": judged}


def describe_worst(panel: Values, texts: str = "texts") -> str:
    """Return the headline of a panel as a sentence; why there is none where nothing was measured.

    Args:
        panel: plain values of a panel.
        texts: what was judged, such as ``changed chunks``.
    """
    worst = panel.get_part("worst")
    if not worst.has_estimate("identified"):
        return f"Who is identified was {get_missing_reason(worst.get('identified'))}."
    among = worst.get("among") or f"{panel.get_value('texts'):,} {texts}"
    return worst.fill_template(
        f"The worst of the panel, the {{name}} intruder, identifies {{identified:share.1}} of {among} "
        "(originals {before:share.1}, by guessing {chance:share.1})."
    )


def describe_all(panel: Values) -> str:
    """Return the whole panel in a line."""
    rows = panel.list_rows("rows")
    measured = [row.fill_template("{name} {identified:share.0}") for row in rows if row.has_estimate("identified")]
    missing = [str(row.get("name")) for row in rows if not row.has_estimate("identified")]
    return "; ".join((", ".join(measured), f"not measured: {', '.join(missing)}")[: 1 + bool(missing)])


PANEL: Parts = (
    KeyFigures(_FIGURES, before={"Identified at worst": "worst.before"}, when="worst.identified"),
    Paragraph(_LEAD, when="worst.identified"),
    Paragraph(_UNJUDGED, "muted", when="unjudged"),
    ValueTable("Who identifies the subjects", list_panel_rows, _TABLE, "Below each value: its 95 % interval."),
    ValueTable("The worst intruder of each group", list_panel_groups, _GROUPS, when=list_panel_groups),
    BarChart(
        "Identified, by what the intruder knows",
        Axis("Share of texts", "share", 0, 1),
        lambda panel: [row for row in panel.list_rows("rows") if row.has_estimate("identified")],
        "Originals | before | .7 \n Anonymised | identified | .0",
        "chance.value",
        "guessing",
        "Each intruder of the panel on the original and on the anonymised texts.",
        "Whiskers: Wilson, 95 %.",
        when="worst.identified",
    ),
)
"""The worst intruder, the table of all, and a chart of it; drawn from the plain values of a panel."""


def draw_panel(result: Values, parts: Parts = PANEL) -> Iterator[Block]:
    """Yield the blocks of the panel of a result; none where it has none."""
    if panel := result.get_part("panel"):
        yield from draw_parts(parts, Values({**panel, **_describe_guesses(panel)}))

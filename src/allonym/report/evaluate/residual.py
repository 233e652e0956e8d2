"""Residual risk in a report: P2's Table 4 with its criterion, how scores are spread, what was missed, what to read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Details, Figure, Figures, Notice, Row, Section, Table, Tag, Text
from allonym.report.plots import Axis, Chart, Guide, Point, Series
from allonym.report.swap.given import Plain, estimate, known, part, rows
from allonym.stats import Estimate

_SHOWN = 25


def residual_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :meth:`allonym.evaluate.ResidualRisk.to_dict`; None where there is none.

    Args:
        result: plain values.
        texts: show what was missed in the conversations of the queue, where the values hold it.
    """
    total = part(result, "total")
    if not total:
        return None
    limit = float(result.get("limit") or 5)
    blocks: list[Block] = [_lead(result), _figures(total, limit), *_notices(result, total, limit)]
    blocks += [_table_4(result, limit), _spread(result, total, limit), _types(result), _queue(result, limit, texts)]
    blocks.append(Details("How to read this", (Text(_READING),)))
    return Section("Residual risk", tuple(blocks), "residual")


def _lead(result: Plain) -> Text:
    said = (
        "What anonymisation has missed, scored as in P2: each thing once per conversation, 0 to 5 by its type, half "
        "where only a part was missed."
    )
    return Text(said, "lead")


def _figures(total: Plain, limit: float) -> Figures:
    passes = total.get("passes")
    word = "holds" if passes else "fails" if passes is False else "cannot be told"
    above = estimate(total.get("above"))
    return Figures(
        (
            Figure(
                "Mean + SD",
                estimate(total.get("bound")),
                f"P2's criterion, below {limit:g}: {word}",
                digits=2,
                tone="good" if passes else "bad" if passes is False else "",
            ),
            Figure("Mean score", estimate(total.get("mean")), "per conversation", digits=2),
            Figure(f"Above {limit:g}", above, "of the conversations, counted", "share", 1),
            Figure("With a whole direct identifier", estimate(total.get("direct")), "one item of score 5", "share", 1),
        )
    )


def _notices(result: Plain, total: Plain, limit: float) -> list[Block]:
    out: list[Block] = []
    if count := int(result.get("unconfirmed") or 0):
        out.append(
            Notice(
                f"{count:,} marks are proposals that no person has confirmed. They all count here, so this is an upper "
                "bound of what was proposed, not a measurement.",
                "warning",
            )
        )
    normal = part(total, "normality")
    if normal.get("off"):
        implied, counted = estimate(normal.get("implied")), estimate(total.get("above"))
        out.append(
            Notice(
                f"The scores are not normally distributed, as P2 assumes ({normal.get('test')}, p = "
                f"{write(estimate(normal.get('p')).value, 'p')}, skewness "
                f"{write(estimate(normal.get('skewness')).value, 'number', 1)}). With this mean and SD a normal "
                f"distribution would have {write(implied.value, 'share', 1)} above {limit:g}; "
                f"{write(counted.value, 'share', 1)} are counted. Go by the counted share.",
            )
        )
    bound = estimate(total.get("bound"))
    if total.get("passes") and bound.high >= limit:
        out.append(
            Notice(
                f"The criterion holds for this sample, but the interval of mean + SD reaches {limit:g} or more: "
                "another sample of this size might fail.",
                "warning",
            )
        )
    other = result.get("other")
    if isinstance(other, Mapping):
        shown = write(estimate(other.get("bound")).value, "number", 2)
        reading = (
            "Table 6 (score 4, half 2)" if other.get("email_partial") == "table" else "P2's text (score 3, half 1)"
        )
        out.append(
            Notice(f"Partly missed e-mail addresses are scored otherwise by {reading}: mean + SD would be {shown}.")
        )
    return out


def _table_4(result: Plain, limit: float) -> Table:
    columns = (
        Column(str(result.get("by") or "Conversations")),
        Column("Count", "count"),
        Column("Mean", "number", 2),
        Column("SD", "number", 2, "With n - 1"),
        Column("P95", "number", 1, "95th percentile, interpolated"),
        Column("Max", "count"),
        Column("Mean + SD", "number", 2, "P2's criterion compares this with the limit"),
        Column(f"Below {limit:g}"),
        Column(f"Share above {limit:g}", "share", 1, "Counted"),
    )
    body = []
    for row in (*rows(result, "groups"), part(result, "total")):
        passes = row.get("passes")
        verdict = Tag("yes", "good") if passes else Tag("no", "bad") if passes is False else Tag("–", "muted")
        cells: list[Cell] = [str(row.get("name", "")), row.get("count")]
        cells += [estimate(row.get(n)) for n in ("mean", "sd", "p95")]
        cells += [estimate(row.get("max")).value, estimate(row.get("bound")), verdict, estimate(row.get("above"))]
        body.append(Row(tuple(cells), "chosen" if row is part(result, "total") else ""))
    return Table("Residual risk by group (P2, Table 4)", columns, tuple(body))


def _spread(result: Plain, total: Plain, limit: float) -> Chart:
    counted = [(int(a), int(b)) for a, b in result.get("histogram") or ()]
    top = max((n for _, n in counted), default=1)
    n = sum(b for _, b in counted) or 1
    points = tuple(
        Point(score, count, f"Score {score}", (("Conversations", count), ("Share", write(count / n, "share", 1))))
        for score, count in counted
    )
    series = [Series("conversations", points, 0, "full")]
    mean, sd = estimate(total.get("mean")), estimate(total.get("sd"))
    if known(total.get("sd")) and sd.value > 0:
        series.append(Series("a normal distribution", _bell(mean, sd, n, counted[-1][0]), 1, "dashed"))
        top = max(top, *(int(p.y) + 1 for p in series[-1].points if not isinstance(p.y, Estimate)))
    return Chart(
        "How the scores are spread",
        Axis("Residual risk", "count", -0.5, max(limit, counted[-1][0] if counted else limit) + 0.5),
        Axis("Conversations", "count", 0, top * 1.05),
        tuple(series),
        (Guide(f"limit {limit:g}", ((limit, 0.0), (limit, top * 1.05)), "limit"),),
        "Conversations with each score; P2 takes the scores to be normally distributed.",
    )


def _bell(mean: Estimate, sd: Estimate, n: int, most: int) -> tuple[Point, ...]:
    """What a normal distribution would have at each score: its mass from half below to half above."""

    def below(x: float) -> float:
        return 0.5 * (1 + math.erf((x - mean.value) / (sd.value * math.sqrt(2))))

    return tuple(
        Point(s, n * (below(s + 0.5) - below(s - 0.5)), f"Normal at {s}", (), "hollow") for s in range(most + 1)
    )


def _types(result: Plain) -> Table:
    columns = (
        Column("Missed"),
        Column("Things", "count"),
        Column("Mentions", "count"),
        Column("Conversations", "count"),
        Column("Risk", "count", None, "What it adds to all scores"),
    )
    names = ("tag", "items", "mentions", "conversations", "risk")
    body = tuple(Row(tuple(row.get(n) for n in names)) for row in rows(result, "types"))
    return Table("What was missed", columns, body, "" if body else "Nothing is marked.", _SHOWN)


def _queue(result: Plain, limit: float, texts: bool) -> Table:
    found = rows(result, "queue")
    shown = texts and any(row.get("missed") for row in found)
    columns = [
        Column("Conversation"),
        *([Column(str(result["by"]))] if result.get("by") else []),
        Column("Score", "count"),
        Column("Direct", "count", None, "Things of score 5: they identify alone"),
        Column("What was missed"),
        *([Column("As it stands")] if shown else []),
    ]
    body = []
    for row in found:
        tags = ", ".join(f"{item.get('tag')} ({item.get('score')})" for item in rows(row, "items") if item.get("score"))
        cells: list[Cell] = [str(row.get("id", "")), *([str(row.get("group", ""))] if result.get("by") else [])]
        cells += [row.get("score"), row.get("direct"), tags]
        cells += ["; ".join(map(str, row.get("missed") or ()))] if shown else []
        body.append(Row(tuple(cells)))
    note = f"Conversations above {limit:g}, the worst first." if body else f"No conversation is above {limit:g}."
    return Table("To be looked at", tuple(columns), tuple(body), note, _SHOWN)


_READING = (
    "The score of a conversation is the sum over the things that were missed in it. P2 calls anonymisation successful "
    "where mean + SD is below 5, the score of one direct identifier, and takes scores to be normal, so that about 16 % "
    "at most lie above. The counted share with its interval needs no such assumption. A score above the limit made of "
    "indirect identifiers of different people identifies nobody as a rule, says P2; one with a whole direct identifier "
    "may. What annotators have not seen is not in the score."
)
